"""Loads in flight: how long a context binary takes to come in while others come in too.

Loads share the load bandwidth equally, like water: with n reading, each gets ``max(1, bandwidth // n)`` bytes/s, and
whenever one starts or ends the rest are settled at the old rate and go on at the new one. What is left is counted in
bytes x 10^9, so that a nanosecond at an integer rate is an integer and no order of events can round differently. A
load ends at the first nanosecond at which nothing is left. One that has read its last byte takes no bandwidth, even
before its end was collected, so a start in the same instant sees the same rate whichever is handled first.

Without a bandwidth, and for a file without bytes, a load ends in the instant it starts.

A load is in one of three states, the middle two told apart by what is left::

    absent  --start-->     reading
    reading --last byte--> read
    read    --finish-->    absent
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from htpsim.errors import InvariantError
from htpsim.memory.transitions import step
from htpsim.units import NS_PER_S


class State(StrEnum):
    """Where a load stands."""

    ABSENT = "absent"
    READING = "reading"
    READ = "read"


class Stimulus(StrEnum):
    """What happens to a load."""

    START = "start"
    LAST_BYTE = "last byte"
    FINISH = "finish"


TRANSITIONS: Final = {
    (State.ABSENT, Stimulus.START): State.READING,
    (State.READING, Stimulus.LAST_BYTE): State.READ,
    (State.READ, Stimulus.FINISH): State.ABSENT,
}


class Loading:
    """The loads of one device, sharing its load bandwidth.

    Parameters
    ----------
    bandwidth : int or None [bytes/s]
        What all loads together get; none means that loads take no time.

    Examples
    --------
    >>> loading = Loading(2_000_000_000)
    >>> loading.start(0, 1_000_000_000, now_ns=0)
    >>> loading.start(1, 2_000_000_000, now_ns=0)
    >>> loading.next_end_ns(0)
    1000000000
    >>> loading.finish(1_000_000_000), loading.next_end_ns(1_000_000_000)
    ([0], 1500000000)
    """

    __slots__ = ("_bandwidth", "_left", "_settled_ns")

    def __init__(self, bandwidth: int | None) -> None:
        self._bandwidth = bandwidth
        self._left: dict[int, int] = {}
        self._settled_ns = 0

    def start(self, load_id: int, bytes: int, now_ns: int) -> None:
        """Begin to read `bytes` as load `load_id`.

        Raises
        ------
        IllegalTransition
            When a load of that id is in flight.
        """
        step(TRANSITIONS, f"load {load_id}", self.state(load_id), Stimulus.START)
        self._settle(now_ns)
        self._left[load_id] = 0 if self._bandwidth is None else bytes * NS_PER_S

    def next_end_ns(self, now_ns: int) -> int | None:
        """Return the instant at which the next load ends if nothing changes; None when none is in flight."""
        self._settle(now_ns)
        if not self._left:
            return None
        return now_ns + -(-min(self._left.values()) // self._rate())

    def finish(self, now_ns: int) -> list[int]:
        """Take out the loads that have read all they asked for by `now_ns` and return their ids, lowest first."""
        self._settle(now_ns)
        ended = sorted(load_id for load_id, left in self._left.items() if left == 0)
        for load_id in ended:
            del self._left[load_id]
        return ended

    def state(self, load_id: int) -> State:
        """Return the state of a load."""
        left = self._left.get(load_id)
        if left is None:
            return State.ABSENT
        return State.READING if left else State.READ

    def validate(self) -> None:
        """Check that no load has less than nothing left.

        Raises
        ------
        InvariantError
            When one has, or waits for bandwidth where loads take no time.
        """
        for load_id, left in self._left.items():
            if left < 0 or (left and self._bandwidth is None):
                raise InvariantError(f"load {load_id}: {left} byte-ns left at bandwidth {self._bandwidth}")

    def _rate(self) -> int:
        """Return the bytes/s each load that still reads gets."""
        reading = sum(1 for left in self._left.values() if left)
        return max(1, (self._bandwidth or 0) // max(1, reading))

    def _settle(self, now_ns: int) -> None:
        """Take off what was read since the last change."""
        elapsed_ns = now_ns - self._settled_ns
        if elapsed_ns < 0:
            raise InvariantError(f"loading: asked about {now_ns} ns after {self._settled_ns} ns")
        if elapsed_ns:
            read = self._rate() * elapsed_ns
            self._left = {load_id: max(0, left - read) for load_id, left in self._left.items()}
        self._settled_ns = now_ns
