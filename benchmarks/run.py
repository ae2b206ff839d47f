"""How fast the engines are: interleaved, in ratios, against a bare SimPy loop that does the same graphExecutes.

Run with ``make bench``. ``--write`` puts the tables into docs/performance.md in place of those that are there.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
from importlib.metadata import version
from pathlib import Path

from benchmarks.sections import SECTIONS

PAGE = Path(__file__).resolve().parents[1] / "docs" / "performance.md"


def put(text: str, name: str, table: str) -> str:
    """Return a page with a table in its place, which two comments mark."""
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)", re.DOTALL)
    assert pattern.search(text), f"the page has no place for {name}"
    return pattern.sub(lambda found: f"{found[1]}{table}\n{found[2]}", text)


def about() -> str:
    """Say with what it was measured."""
    programs = ", ".join(f"{name} {version(name)}" for name in ("numba", "numpy", "simpy"))
    return f"Python {platform.python_version()}, {programs}. What stands as three numbers is least / median / greatest."


def circumstances(rounds: int) -> str:
    """Say, beneath a table, how often each was measured and what else the machine did meanwhile."""
    load = os.getloadavg()[0] / (os.cpu_count() or 1) if hasattr(os, "getloadavg") else 0.0
    busy = f"; others kept the machine busy, at a load of {load:.1f} a core" if load > 1 else ""
    return f"{rounds} rounds{busy}."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="turns of each (default 5)")
    parser.add_argument("--only", choices=SECTIONS, action="append", help="only this table; repeatable")
    parser.add_argument("--write", action="store_true", help=f"write the tables into {PAGE.name}")
    given = parser.parse_args()
    print(about(), flush=True)
    for name in given.only or SECTIONS:
        title, measure = SECTIONS[name]
        table = f"{measure(given.rounds)}\n\n{circumstances(given.rounds)}"
        print(f"\n{title}\n\n{table}", flush=True)
        if given.write:
            text = put(PAGE.read_text(encoding="utf-8"), name, table)
            PAGE.write_text(put(text, "about", about()), encoding="utf-8")


if __name__ == "__main__":
    main()
