"""The command that says what is installed here, what each extra adds, and whether the parts work."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from importlib import metadata
from typing import Any, Final

import click

from htpsim.cli.options import as_json as json_option
from htpsim.cli.terminal import show, show_json, working

ADDS: Final = {
    "cluster": "htpsim sweep --cluster: points on several machines",
    "docs": "the documentation as a site: mkdocs build -f .mkdocs.yml",
    "measure": "htpsim measure: your own model in ONNX Runtime, as a preset",
    "notebook": "JupyterLab, for the notebooks",
    "parquet": "records as Parquet files",
    "perfetto": "htpsim export --as perfetto",
    "test": "the tests, and htpsim.testing for your policy",
}
"""What one gains by installing an extra."""
BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")
"""Programs that the tests of the HTML report drive; every browser shows the report."""
DISTRIBUTION: Final = "htpsim"
_REQUIREMENT: Final = re.compile(r"^([A-Za-z0-9._-]+).*?(?:extra\s*==\s*['\"]([\w-]+)['\"])?\s*$")
YES, NO = "yes", "no"


@dataclass(frozen=True, slots=True)
class Package:
    """One package that htpsim asks for."""

    name: str
    version: str | None
    """None where it is not installed"""


@dataclass(frozen=True, slots=True)
class Extra:
    """One extra, and what it lacks here."""

    name: str
    adds: str
    missing: tuple[str, ...]

    @property
    def lacks(self) -> str:
        """What is not here, in words; "" where nothing is missing."""
        return f"(lacks {', '.join(self.missing)})" if self.missing else ""

    @property
    def command(self) -> str:
        """What installs it."""
        return f'pip install "{DISTRIBUTION}[{self.name}]"'


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What is here."""

    htpsim: str
    python: str
    machine: str
    cores: int
    packages: tuple[Package, ...]
    extras: tuple[Extra, ...]
    parts: dict[str, tuple[str, str]] = field(default_factory=dict)
    """part -> (yes or no, what to know)"""


def requirements() -> Iterator[tuple[str, str]]:
    """Yield each package that htpsim asks for, with the extra that asks for it; "" for all users.

    >>> ("simpy", "") in set(requirements())
    True
    """
    for text in metadata.requires(DISTRIBUTION) or ():
        found = _REQUIREMENT.match(text)
        if found is not None:
            yield found[1], found[2] or ""


def diagnose() -> Diagnosis:
    """Look at what is installed, and try the parts that may not work everywhere."""
    asked = list(requirements())
    own = tuple(Package(name, version_of(name)) for name, extra in asked if not extra)
    names = dict.fromkeys(extra for _, extra in asked if extra)
    extras = tuple(
        Extra(extra, ADDS.get(extra, ""), tuple(n for n, e in asked if e == extra and version_of(n) is None))
        for extra in names
    )
    return Diagnosis(
        htpsim=metadata.version(DISTRIBUTION), python=platform.python_version(),
        machine=f"{platform.system()} {platform.machine()}", cores=os.cpu_count() or 1, packages=own, extras=extras,
        parts={"compiled engine": _kernel(), "scenarios": _scenarios(), "browser": _browser()},
    )  # fmt: skip


def version_of(name: str) -> str | None:
    """Return the installed version of a package, None where it is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _kernel() -> tuple[str, str]:
    """Try the compiled engine on a scenario that is over in a blink, and hold it to the other."""
    try:
        from htpsim.experiments.engine_diff import diff_engines
        from htpsim.scenario import load

        shortest = ["run.duration=100ms", "run.warmup=0s", "run.replications=1"]
        found = diff_engines(load("four_vlms", set_values=shortest).base)  # what most scenarios are built on
    except Exception as error:  # whatever it is, the reference engine is there, and this is what to report
        text = f"{type(error).__name__}: {error}".splitlines()[0]
        return NO, f"{text}; the reference engine does it all"
    if found.engines[0] == found.engines[1]:
        return NO, f"Numba {version_of('numba')} does not compile it; the reference engine does it all"
    same = found.same
    return (
        (YES, "compiles, and leaves what the reference engine leaves") if same else (NO, "differs from the reference")
    )


def _scenarios() -> tuple[str, str]:
    from htpsim.scenario import shipped

    found = shipped()
    where = os.path.commonpath([str(path.parent) for path in found.values()]) if found else ""
    return (YES, f"{len(found)} in {where}") if found else (NO, "none are shipped with this installation")


def _browser() -> tuple[str, str]:
    found = next((path for path in map(shutil.which, BROWSERS) if path), None)
    if found:
        return YES, f"{found}; the tests of the HTML report use it"
    return NO, "no Chromium, which only the tests of the HTML report need; any browser shows a report"


@click.command()
@json_option
def doctor(as_json: bool) -> None:
    """Say what is installed, and what works here.

    Versions, what each extra adds and whether it is there, whether the compiled engine works, where the shipped
    scenarios are. Exit code 0 whatever it finds: htpsim works without everything that is marked no.
    """
    with working("looking"):
        found = diagnose()
    if as_json:
        show_json(diagnosis_dict(found))
    else:
        show(_page(found))


def diagnosis_dict(found: Diagnosis) -> dict[str, Any]:
    """Return a diagnosis in JSON form."""
    return {
        "htpsim": found.htpsim,
        "python": found.python,
        "executable": sys.executable,
        "machine": found.machine,
        "cores": found.cores,
        "packages": {package.name: package.version for package in found.packages},
        "extras": [{**asdict(e), "installed": not e.missing, "install": e.command} for e in found.extras],
        "parts": {name: {"works": state == YES, "note": note} for name, (state, note) in found.parts.items()},
    }


def _page(found: Diagnosis) -> Any:
    from rich.text import Text

    from htpsim.report.cells import stack, table

    head = f"htpsim {found.htpsim}, Python {found.python}, {found.machine}, {found.cores} cores"
    packages = ", ".join(f"{p.name} {p.version or '(missing)'}" for p in found.packages)
    extras = [[e.name, NO if e.missing else YES, " ".join(filter(None, [e.adds, e.lacks]))] for e in found.extras]
    parts = [[name, state, note] for name, (state, note) in found.parts.items()]
    missing = [e.command for e in found.extras if e.missing]
    return stack(
        Text(head, style="bold"),
        Text(f"Stands on: {packages}."),
        table("What works here", ["part", "works", "note"], parts, left=3, fixed=False),
        table("Extras", ["extra", "here", "adds"], extras, left=3, fixed=False),
        Text(f"To add one: {missing[0]}") if missing else None,
    )
