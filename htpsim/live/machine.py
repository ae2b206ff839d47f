"""What the testbed asks of the machine: processors to bind threads to, finer timers."""

from __future__ import annotations

import ctypes
import os
import platform
from dataclasses import dataclass
from typing import Final

from htpsim.errors import ScenarioError
from htpsim.live.host import cpu_name, processors, usable_cpus

_PR_SET_TIMERSLACK: Final = 29


@dataclass(frozen=True, slots=True)
class Seats:
    """Which processor each HTP core takes, and which are left for the threads of the instances."""

    cores: tuple[int, ...]
    hosts: tuple[int, ...]
    shared: bool
    """the threads of the instances share processors with the cores: there are no others"""


def seats(cores: int) -> Seats:
    """Give every HTP core a processor of its own, the last ones, and the others to the instances.

    Raises
    ------
    ScenarioError
        When there are fewer processors than cores.

    Examples
    --------
    >>> len(seats(1).cores)
    1
    """
    there = processors()
    if cores > len(there):
        raise ScenarioError(
            f"device.cores: got {cores}, expected at most {len(there)}: the testbed binds each core to a processor"
        )
    hosts = there[: len(there) - cores]
    return Seats(there[len(there) - cores :], hosts or there, not hosts)


def bind(where: tuple[int, ...]) -> bool:
    """Bind the calling thread to processors; tell whether this system can."""
    if not hasattr(os, "sched_setaffinity"):
        return False
    os.sched_setaffinity(0, where)  # 0 is the calling thread
    return True


def sharpen_timers(slack_ns: int = 1) -> bool:
    """Let the kernel wake the calling thread as soon as its sleep is over, not up to 50 us later; tell if it can.

    >>> sharpen_timers() in (True, False)
    True
    """
    if platform.system() != "Linux":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    return bool(libc.prctl(_PR_SET_TIMERSLACK, ctypes.c_ulong(slack_ns), 0, 0, 0) == 0)


def described() -> str:
    """Say in a few words what machine this is, for a provenance."""
    system, python = platform.system(), platform.python_version()
    return f"{cpu_name()}, {usable_cpus()} processors, {system}, Python {python}"
