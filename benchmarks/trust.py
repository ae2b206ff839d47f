"""How well the simulator predicts this machine: scenarios run on real threads, predicted from instances alone, scored.

Run with ``python -m benchmarks.trust``, on a machine that does nothing else. ``--write`` puts the tables into
docs/trust.md in place of those that are there; ``--quick`` takes three minutes and decides nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from importlib.metadata import version
from pathlib import Path

from benchmarks.run import put
from benchmarks.trust_tables import TABLES, VARIANTS, as_dict
from htpsim.errors import HtpsimError
from htpsim.live.host import processors
from htpsim.live.machine import described
from htpsim.live.runs import bench_of
from htpsim.live.trials import Trials, run_trials
from htpsim.live.written import write_calibrated
from htpsim.scenario import load
from htpsim.spec import Scenario
from htpsim.units import parse_time

PAGE = Path(__file__).resolve().parents[1] / "docs" / "trust.md"
OTHERS = ("weights_4211", "strict_priority", "quota", "vit_split", "qnn_priority", "two_cores")


def scenarios(duration: str, only: list[str]) -> dict[str, Scenario]:
    """Return every scenario that this machine has the processors for, with its time."""
    sets = [f'run.duration="{duration}"']
    file = load("live/variants", set_values=sets)
    found = {name: file.resolve(name).scenario for name in VARIANTS}
    found |= {name: load(f"live/{name}", set_values=sets).resolve().scenario for name in OTHERS}
    found = {name: each for name, each in found.items() if each.device.cores <= len(processors())}
    return {name: each for name, each in found.items() if not only or name in only}


def about(given: argparse.Namespace, spent_s: float) -> str:
    """Say on what, and how long, it was measured."""
    load_now = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    runtime = f", onnxruntime {version('onnxruntime')}" if given.work == "onnx" else ", graphs that only take time"
    return (
        f"{described()}{runtime}. {given.repeats} repeats of {given.duration} a scenario, interleaved, before each one "
        f"instance {given.solo} alone; {spent_s / 60:.0f} minutes in all. Load of the machine before: "
        f"{given.load:.2f}, at the end: {load_now:.2f}."
    )


def _rounds(text: str) -> int:
    if not text.isdecimal() or int(text) < 2:
        raise argparse.ArgumentTypeError(f"got '{text}', expected two or more: an interval takes two")
    return int(text)


def _time(text: str) -> str:
    try:
        length_ns = parse_time(text)
    except HtpsimError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    if length_ns <= 0:
        raise argparse.ArgumentTypeError(f"got '{text}', expected a time above zero")
    return text


def main() -> int:
    """Run the trials, print the tables, and write them where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=_rounds, default=5, help="rounds, two or more (default 5)")
    parser.add_argument(
        "--for", dest="duration", type=_time, default="20s", help="measured time of a scenario (default 20s)"
    )
    parser.add_argument(
        "--solo", type=_time, default="3s", help="measured time of an instance alone, before each (default 3s)"
    )
    parser.add_argument("--quick", action="store_true", help="2 repeats of 5s, 2s alone")
    parser.add_argument(
        "--only", action="append", default=[], choices=(*VARIANTS, *OTHERS), metavar="NAME",
        help=f"only this scenario, repeatable: {', '.join((*VARIANTS, *OTHERS))}",
    )  # fmt: skip
    parser.add_argument("--work", choices=("onnx", "timed"), default="onnx", help="what graphs do (default onnx)")
    parser.add_argument("--write", action="store_true", help=f"write the tables into {PAGE.name}")
    parser.add_argument("--out", type=Path, help="folder for the calibrated scenarios and trust.json")
    given = parser.parse_args()
    if given.quick:
        given.repeats, given.duration, given.solo = 2, "5s", "2s"
    given.load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    begun = time.monotonic()

    def told(text: str) -> None:
        print(f"{time.monotonic() - begun:6.0f} s  {text}", file=sys.stderr, flush=True)

    found = run_trials(
        scenarios(given.duration, given.only), bench_of(given.work), rounds=given.repeats,
        solo_ns=parse_time(given.solo), told=told,
    )  # fmt: skip
    text = about(given, time.monotonic() - begun)
    show(found, text, write=given.write)
    if given.out is not None:
        given.out.mkdir(parents=True, exist_ok=True)
        write_calibrated(found, given.out, text)
        (given.out / "trust.json").write_text(json.dumps(as_dict(found), indent=2) + "\n", encoding="utf-8")
    return 0


def show(found: Trials, text: str, *, write: bool) -> None:
    """Print every table, and put it into the page where asked."""
    print(text)
    page = put(PAGE.read_text(encoding="utf-8"), "about", text) if write else ""
    for name, (title, table) in TABLES.items():
        made = table(found)
        print(f"\n{title}\n\n{made}", flush=True)
        page = put(page, name, made) if write else ""
    if write:
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
