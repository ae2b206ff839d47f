"""How threads of the testbed end: the run is over, or somebody broke it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from htpsim.units import NS_PER_S

Clock = Callable[[], int]
"""Returns nanoseconds since the run began."""

LONG_NS: Final = NS_PER_S // 10
"""A pause from which on it matters more that the end of the run cuts it short than when exactly it ends [ns]."""


class Stopped(Exception):
    """The run is over; the thread that meets this ends."""


class Stop:
    """One flag for all threads of a run, and whom to wake when it is raised.

    >>> stop = Stop()
    >>> stop.raised, stop.raise_(), stop.raised
    (False, None, True)
    """

    def __init__(self) -> None:
        self._event = threading.Event()
        self._wakers: list[Callable[[], None]] = []

    @property
    def raised(self) -> bool:
        """Whether it was raised."""
        return self._event.is_set()

    def on_raise(self, wake: Callable[[], None]) -> None:
        """Have `wake` called when it is raised."""
        self._wakers.append(wake)

    def raise_(self) -> None:
        """Raise it and wake everybody."""
        self._event.set()
        for wake in self._wakers:
            wake()

    def check(self) -> None:
        """Raise Stopped when the run is over."""
        if self._event.is_set():
            raise Stopped

    def sleep(self, length_ns: int) -> None:
        """Sleep, or raise Stopped when the run ends meanwhile."""
        if length_ns > 0 and self._event.wait(length_ns / NS_PER_S):
            raise Stopped
        self.check()

    def pause(self, length_ns: int) -> None:
        """Sleep for a gap of the host: a short one as exactly as can be, a long one only while the run lasts."""
        if length_ns < LONG_NS:
            time.sleep(length_ns / NS_PER_S)
        else:
            self.sleep(length_ns)

    def wait(self, length_s: float) -> bool:
        """Sleep; tell whether it was raised meanwhile."""
        return self._event.wait(length_s)


def clock_from_now() -> Clock:
    """Return a clock that reads nanoseconds since this moment and never goes back.

    >>> clock = clock_from_now()
    >>> clock() <= clock()
    True
    """
    begun_ns = time.perf_counter_ns()
    read = time.perf_counter_ns
    return lambda: read() - begun_ns
