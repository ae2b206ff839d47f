"""What is pending, in the total order of instants: a binary heap of records, smallest (time, place, number) first.

A *place* ranks what happens within one instant, as in the reference engine: phase, index, number in one integer.
"""

from __future__ import annotations

from typing import Any, Final

INDEX_BITS: Final = 16
NUMBER_BITS: Final = 44
DEVICE, HOST, TIMER, GRANT = range(4)
RETURN, GAP, ARRIVAL = range(3)
GRANTS: Final = GRANT << (INDEX_BITS + NUMBER_BITS)
NO_TIME: Final = 1 << 62
AFTER_READY: Final = 1
"""Place of the summing of weights: where SimPy puts what follows from an event at once."""


def place(phase: int, index: int, number: int) -> int:
    """Return the place within an instant."""
    return ((phase << INDEX_BITS) + index << NUMBER_BITS) + number


def host_place(user: int, kind: int, number: int) -> int:
    """Return the place of what a client's threads do: returns, then ends of gaps, then arrivals, by number."""
    return (((HOST << INDEX_BITS) + user << 2) + kind << NUMBER_BITS - 2) + number


def push(w: Any, at_ns: int, where: int, kind: int, what: int) -> None:
    """Put an event into the heap."""
    heap, st = w.heap, w.st
    k = st.queued
    st.queued = k + 1
    while k > 0:
        above = heap[k - 1 >> 1]
        if above.at_ns < at_ns or (above.at_ns == at_ns and above.place <= where):
            break
        copy(above, heap[k])
        k = k - 1 >> 1
    event = heap[k]
    event.at_ns = at_ns
    event.place = where
    event.number = st.pushed
    event.kind = kind
    event.what = what
    st.pushed += 1


def drop_first(w: Any) -> None:
    """Take the first event out of the heap."""
    heap, st = w.heap, w.st
    st.queued -= 1
    count = st.queued
    last = heap[count]
    k = 0
    below = 1
    while below < count:
        if below + 1 < count and precedes(heap[below + 1], heap[below]):
            below += 1
        if precedes(last, heap[below]):
            break
        copy(heap[below], heap[k])
        k = below
        below = 2 * k + 1
    copy(last, heap[k])


def precedes(a: Any, b: Any) -> bool:
    """Tell whether an event comes before another."""
    if a.at_ns != b.at_ns:
        return bool(a.at_ns < b.at_ns)
    if a.place != b.place:
        return bool(a.place < b.place)
    return bool(a.number < b.number)


def copy(source: Any, target: Any) -> None:
    """Copy an event."""
    target.at_ns = source.at_ns
    target.place = source.place
    target.number = source.number
    target.kind = source.kind
    target.what = source.what
