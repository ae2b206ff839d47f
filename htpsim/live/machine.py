"""What the testbed asks of the machine: processors to bind threads to, finer timers, how much memory is resident."""

from __future__ import annotations

import ctypes
import gc
import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from htpsim.errors import ScenarioError

_PR_SET_TIMERSLACK: Final = 29
_KIB: Final = 1024


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


def processors() -> tuple[int, ...]:
    """Return the processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


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


def give_back_memory() -> bool:
    """Give what was freed back to the system, so that what becomes resident is what is taken; tell if it can.

    >>> give_back_memory() in (True, False)
    True
    """
    gc.collect()
    if platform.system() != "Linux":
        return False
    libc = ctypes.CDLL(None)
    return hasattr(libc, "malloc_trim") and bool(libc.malloc_trim(0))


def resident_bytes() -> int:
    """Return the memory of this process that is resident; 0 where the system does not tell.

    >>> resident_bytes() >= 0
    True
    """
    try:
        for line in Path("/proc/self/smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Rss:"):
                return int(line.split()[1]) * _KIB
    except (OSError, ValueError, IndexError):
        pass
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def described() -> str:
    """Say in a few words what machine this is, for a provenance."""
    name = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), name)
    except OSError:
        pass
    return f"{name}, {len(processors())} processors, {platform.system()}, Python {platform.python_version()}"
