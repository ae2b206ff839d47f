"""Rules of accounting: the parts sum to the whole, and the operational laws hold on the sample path.

What a recorder counted (``parts``) and what it wrote down as events are two accounts of one run. These rules compare
them: graphExecute by graphExecute, and in sum over stations by Little's law (Little 1961) and the utilisation law
(Denning and Buzen 1978), which are exact on any sample path once the ends are corrected for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from htpsim.invariants.rule import Finding, Rule, no_device_events
from htpsim.invariants.spans import History, Span, Stretch
from htpsim.invariants.trace import NOWHERE


def wrong_parts(history: History) -> Iterator[Finding]:
    """Find graphExecutes whose parts do not sum to call-to-return, or are not what their events say."""
    for span in history.sound:
        parts = span.parts
        if parts is None or span.returned_ns == NOWHERE:
            continue
        whole_ns = span.returned_ns - span.called_ns
        if sum(parts) != whole_ns:
            message = f"{history.name(span)}: parts sum to {sum(parts)} ns, call to return took {whole_ns} ns"
            yield span.returned_ns, span.execute, message, sum(parts) - whole_ns
        if min(parts) < 0:
            yield span.returned_ns, span.execute, f"{history.name(span)}: a part is negative: {parts}", -min(parts)
        for what, said_ns, seen_ns in _compared(span):
            if said_ns != seen_ns:
                message = f"{history.name(span)}: {what} was counted as {said_ns} ns, its events say {seen_ns} ns"
                yield span.returned_ns, span.execute, message, said_ns - seen_ns


def _compared(span: Span) -> Iterator[tuple[str, int, int]]:
    """Yield (part, as counted, as its events say)."""
    parts = span.parts
    assert parts is not None
    granted_ns = span.granted_ns if span.granted_ns != NOWHERE else span.called_ns
    yield "guard wait", parts.guard_wait_ns, granted_ns - span.called_ns
    yield "guard overhead and RPC", parts.guard_overhead_ns + parts.rpc_ns, span.submitted_ns - granted_ns
    if not span.holds:
        return
    yield "device wait", parts.device_wait_ns, waited_ns(span)
    yield "acquire", parts.acquire_ns, length_ns(span.acquires)
    yield "run", parts.run_ns, length_ns(span.runs)
    yield "evict", parts.evict_ns, length_ns(span.evicts)
    yield "restore", parts.restore_ns, length_ns(span.restores)
    yield "RPC return", parts.rpc_return_ns, span.returned_ns - span.finished_ns


def length_ns(stretches: list[Stretch]) -> int:
    """Return the length of those that have ended.

    >>> length_ns([(2, 5), (7, NOWHERE)])
    3
    """
    return sum(end - begin for begin, end in stretches if end != NOWHERE)


def waited_ns(span: Span) -> int:
    """Return how long a graphExecute waited for its core, evicted or not."""
    began = [begin for begin, _ in span.holds]
    ended = [span.submitted_ns, *(end for _, end in span.holds[:-1])]
    return sum(begin - end for begin, end in zip(began, ended, strict=True))


def _station(first: str, last: str, wait: Callable[[Span], int]) -> Callable[[History], Iterator[Finding]]:
    """Return the check of Little's law for the station that `first` enters and `last` leaves."""

    def find(history: History) -> Iterator[Finding]:
        inside, area, now_ns = 0, 0, 0
        counted = {span.execute for span in history.sound if span.parts is not None or span.returned_ns == NOWHERE}
        for event in history.trace.events:
            if event.execute in counted and event.kind in (first, last):
                area += inside * (event.time_ns - now_ns)
                now_ns = event.time_ns
                inside += 1 if event.kind == first else -1
        area += inside * (history.last_ns - now_ns)
        waits = sum(wait(span) for span in history.sound if span.execute in counted and span.returned_ns != NOWHERE)
        # End correction: who was still inside, and who had left the station but not yet returned.
        left = [s for s in history.sound if s.execute in counted and s.returned_ns == NOWHERE]
        waits += sum(_so_far(span, first, last, history.last_ns) for span in left)
        if area != waits:
            message = f"{first} to {last}: the number inside sums to {area} ns, the times spent there to {waits} ns"
            yield history.last_ns, f"{first} to {last}", message, area - waits

    return find


def _so_far(span: Span, first: str, last: str, end_ns: int) -> int:
    """Return the time that one still out has spent between two events."""
    instants = {"call": span.called_ns, "grant": span.granted_ns, "submit": span.submitted_ns}
    instants |= {"finish": span.finished_ns, "return": span.returned_ns}
    begun_ns, ended_ns = instants[first], instants[last]
    if begun_ns == NOWHERE:
        return 0
    return (ended_ns if ended_ns != NOWHERE else end_ns) - begun_ns


def little(history: History) -> Iterator[Finding]:
    """Find a station at which the mean number inside is not throughput times mean time."""
    if history.guarded:
        guarded = _station("call", "grant", lambda span: span.parts.guard_wait_ns if span.parts else 0)
        yield from guarded(_only_guarded(history))
    yield from _station("call", "return", lambda span: sum(span.parts) if span.parts else 0)(history)
    if history.has_device_events:
        device = _station("submit", "finish", lambda s: s.parts.device_wait_ns + s.parts.core_ns if s.parts else 0)
        yield from device(history)


def _only_guarded(history: History) -> History:
    """Return the part of a history that passes the guard."""
    part = History(history.trace, history.slack_ns)
    part.sound = list(history.guarded)
    return part


def busy(history: History) -> Iterator[Finding]:
    """Find cores whose busy time is not the time that graphExecutes say they held them."""
    claimed: dict[int, int] = {}
    held: dict[int, list[tuple[int, int]]] = {}
    for span in history.sound:
        open_ns = sum(history.last_ns - begin for begin, end in span.holds if end == NOWHERE)
        so_far_ns = length_ns(span.holds) + open_ns
        core_ns = span.parts.core_ns if span.parts and span.finished_ns != NOWHERE else so_far_ns
        for core in span.call.cores:
            claimed[core] = claimed.get(core, 0) + core_ns
            marks = held.setdefault(core, [])
            for begin_ns, end_ns in span.holds:
                marks += [(begin_ns, 1), (end_ns if end_ns != NOWHERE else history.last_ns, -1)]
    for core, marks in sorted(held.items()):
        inside, area, busy_ns, now_ns = 0, 0, 0, 0
        for at_ns, step in sorted(marks):
            area += inside * (at_ns - now_ns)
            busy_ns += (at_ns - now_ns) if inside else 0
            now_ns, inside = at_ns, inside + step
        if area != claimed[core]:
            message = f"core {core} was held for {area} ns, its graphExecutes count {claimed[core]} ns"
            yield history.last_ns, f"core {core}", message, area - claimed[core]
        elif busy_ns > history.last_ns:
            message = f"core {core} was busy for {busy_ns} of {history.last_ns} ns"
            yield history.last_ns, f"core {core}", message, busy_ns - history.last_ns


def _no_parts(history: History) -> str:
    return "" if history.trace.parts else "the recorder counted no parts (guard wait, run ...)"


def _no_parts_or_device(history: History) -> str:
    return _no_parts(history) or no_device_events(history)


PARTS: Final = Rule(
    "parts",
    "the parts of a graphExecute sum to the time from call to return, and agree with its events",
    _no_parts,
    wrong_parts,
)
LITTLE: Final = Rule(
    "little", "the number at a station, over time, is what arrivals spent there (Little's law)", _no_parts, little
)
UTILISATION: Final = Rule(
    "utilisation", "a core is busy for as long as graphExecutes held it (utilisation law)", _no_parts_or_device, busy
)
