"""What made a result: program, versions, machine, command, time. Kept apart, so that results can be compared."""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import metadata
from typing import Final

PROGRAM: Final = "htpsim"
LIBRARIES: Final = ("numba", "numpy", "pandas", "simpy")


def provenance(command: Sequence[str] = (), *, engine: str = "", seconds: float | None = None) -> dict[str, object]:
    """Return what is known about the making of a result.

    Parameters
    ----------
    command
        The command line, as given.
    engine
        The engine that ran.
    seconds
        Wall-clock time the simulation took [s].

    Examples
    --------
    >>> provenance(["htpsim", "run", "x"])["program"]
    'htpsim'
    """
    return {
        "program": PROGRAM,
        "version": _version(PROGRAM),
        "engine": engine,
        "command": list(command),
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": None if seconds is None else round(seconds, 3),
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "machine": platform.machine(),
        "libraries": {name: _version(name) for name in LIBRARIES},
    }


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"
