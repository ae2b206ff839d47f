"""Who held a place (a core, the slots of a guard) at any instant, as one list of segments in which nothing changes."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple


class Segment(NamedTuple):
    """A stretch of time in which the same ones hold the place."""

    start_ns: int
    end_ns: int
    holders: tuple[int, ...]
    """rising; empty while nobody does"""


class Occupants:
    """The holders of one place over time.

    Parameters
    ----------
    stretches
        (holder, start_ns, end_ns); one without length is left out.

    Examples
    --------
    >>> place = Occupants([(7, 0, 10), (8, 5, 20)])
    >>> [segment for segment in place.between(4, 25)]  # doctest: +NORMALIZE_WHITESPACE
    [Segment(start_ns=4, end_ns=5, holders=(7,)), Segment(start_ns=5, end_ns=10, holders=(7, 8)),
     Segment(start_ns=10, end_ns=20, holders=(8,)), Segment(start_ns=20, end_ns=25, holders=())]
    """

    def __init__(self, stretches: Iterable[tuple[int, int, int]]) -> None:
        changes: dict[int, list[tuple[int, int]]] = {}
        for holder, start_ns, end_ns in stretches:
            if end_ns > start_ns:
                changes.setdefault(start_ns, []).append((holder, 1))
                changes.setdefault(end_ns, []).append((holder, -1))
        self._times = sorted(changes)
        self._holders: list[tuple[int, ...]] = []
        count: dict[int, int] = {}
        for time in self._times:
            for holder, step in changes[time]:
                count[holder] = count.get(holder, 0) + step
                if not count[holder]:
                    del count[holder]
            self._holders.append(tuple(sorted(count)))

    def between(self, start_ns: int, end_ns: int) -> Iterator[Segment]:
        """Yield the segments that fill a stretch of time, without a gap."""
        times = self._times
        i = bisect_right(times, start_ns) - 1
        last = bisect_left(times, end_ns)
        at = start_ns
        while at < end_ns:
            until = times[i + 1] if i + 1 < last else end_ns
            yield Segment(at, until, self._holders[i] if i >= 0 else ())
            at, i = until, i + 1


def shared_out(amount_ns: int, among: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Yield each one's equal part of an amount; what division leaves goes to the first, so the parts sum exactly.

    >>> list(shared_out(10, (3, 4, 9)))
    [(3, 4), (4, 3), (9, 3)]
    """
    part_ns, left = divmod(amount_ns, len(among))
    for place, one in enumerate(among):
        yield one, part_ns + (place < left)
