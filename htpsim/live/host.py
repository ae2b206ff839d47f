"""What the system says of this machine and this process; None where it does not say."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import platform
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from htpsim.units import BYTE_UNITS

_CPU: Final = Path("/proc/cpuinfo")
_STATM: Final = Path("/proc/self/statm")
_ROLLUP: Final = Path("/proc/self/smaps_rollup")
_GOVERNOR: Final = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
_NAMES: Final = ("model name", "Hardware", "cpu model")


def cpu_name() -> str:
    """Return the name of the processor, or of its architecture.

    >>> bool(cpu_name())
    True
    """
    with contextlib.suppress(OSError):
        for line in _CPU.read_text(encoding="utf-8", errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() in _NAMES and value.strip():
                return " ".join(value.split())
    return platform.processor() or platform.machine() or "unknown"


def governor() -> str | None:
    """Return who decides the processor's frequency."""
    with contextlib.suppress(OSError):
        return _GOVERNOR.read_text(encoding="ascii", errors="replace").strip() or None
    return None


def usable_cpus() -> int:
    """Return how many processors this process may run on.

    >>> usable_cpus() >= 1
    True
    """
    return len(processors())


def processors() -> tuple[int, ...]:
    """Return the processors that this process may use.

    >>> len(processors()) >= 1
    True
    """
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def resident_bytes() -> int | None:
    """Return the memory of this process that is resident, after giving back what it does not need."""
    gc.collect()
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)  # glibc keeps what was freed; another C library has no such function
    with contextlib.suppress(OSError, ValueError, IndexError):  # the exact figure, which older kernels do not give
        for line in _ROLLUP.read_text(encoding="ascii").splitlines():
            if line.startswith("Rss:"):
                return int(line.split()[1]) * BYTE_UNITS["KiB"]
    with contextlib.suppress(OSError, ValueError):
        return int(_STATM.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return None


def forget(files: Sequence[Path]) -> bool:
    """Ask the system to drop files from its cache, so that reading them is cold; say whether it was asked.

    >>> forget([])
    False
    """
    if not files or not hasattr(os, "posix_fadvise"):
        return False
    for path in files:
        number = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(number, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(number)
    return True


def switches() -> int | None:
    """Return how often the system took a core away from this process while it had work."""
    try:
        import resource
    except ImportError:  # not on Windows
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


def cpu_clock(threads: int) -> int:
    """Return processor time [ns]: of the calling thread where it does all the work, else of the process.

    >>> cpu_clock(1) <= cpu_clock(1)
    True
    """
    return time.thread_time_ns() if threads == 1 else time.process_time_ns()
