"""Rules of the guard, whatever its policy: who holds a slot, who is inside, who waits while one is free."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Final

from htpsim.invariants.rule import Finding, Rule, no_guard, no_slots
from htpsim.invariants.spans import History, Lane, Span
from htpsim.invariants.trace import NOWHERE


def lane_name(lane: Lane) -> str:
    """Name a set of slots.

    >>> lane_name((0, 1)), lane_name((3, -1))
    ('process 0, core 1', 'process 3')
    """
    process, core = lane
    return f"process {process}" if core == NOWHERE else f"process {process}, core {core}"


def too_many_holders(history: History) -> Iterator[Finding]:
    """Find grants beyond the slots."""
    slots = history.trace.guard.slots or 0
    for lane, events in history.guard_events.items():
        holders: dict[int, Span] = {}
        for at_ns, kind, span in events:
            if kind == "release":
                holders.pop(span.execute, None)
            elif kind == "grant":
                holders[span.execute] = span
                # Who gives its slot back in this very instant is not in the way, whichever was written down first.
                staying = [number for number, holder in holders.items() if holder.released_ns != at_ns]
                if len(staying) > slots and span.execute in staying:
                    others = ", ".join(str(number) for number in staying if number != span.execute)
                    message = (
                        f"{history.name(span)} was granted while {others} held: {len(staying)} holders of {slots} "
                        f"slot{'s' if slots > 1 else ''} of {lane_name(lane)}"
                    )
                    yield at_ns, span.execute, message, len(staying) - slots


def outside_its_slot(history: History) -> Iterator[Finding]:
    """Find guarded graphs that ran without a slot, and slots of calls that do not pass the guard."""
    for span in history.sound:
        call = span.call
        if call.path != "genie":
            if span.granted_ns != NOWHERE:
                yield span.granted_ns, span.execute, f"{history.name(span)} holds a slot on path {call.path}", 0
        elif call.under is not None:
            yield from _outside_slot_of_another(history, span)
        elif span.submitted_ns != NOWHERE and span.granted_ns == NOWHERE:
            yield span.submitted_ns, span.execute, f"{history.name(span)} was submitted without a slot", 0


def _outside_slot_of_another(history: History, span: Span) -> Iterator[Finding]:
    """Find what ran before or after the slot that it was said to run under."""
    owner = history.spans.get(span.call.under if span.call.under is not None else NOWHERE)
    if owner is None or owner.granted_ns == NOWHERE or owner.call.thread != span.call.thread:
        yield span.called_ns, span.execute, f"{history.name(span)} runs under a slot that its thread does not hold", 0
        return
    begin_ns, end_ns = owner.slot_ns
    last_ns = span.returned_ns if span.returned_ns != NOWHERE else span.called_ns
    if span.called_ns < begin_ns or (end_ns != NOWHERE and last_ns > end_ns):
        outside_ns = max(begin_ns - span.called_ns, last_ns - end_ns if end_ns != NOWHERE else 0)
        yield span.called_ns, span.execute, f"{history.name(span)} ran {outside_ns} ns outside its slot", outside_ns


def overtaken_in_account(history: History) -> Iterator[Finding]:
    """Find calls granted before an older call of the same account."""
    for lane, spans in history.lanes.items():
        queues: dict[int, list[Span]] = {}
        for span in sorted(spans, key=lambda span: span.called_ns):
            queues.setdefault(history.account(span), []).append(span)
        for queue in queues.values():
            slowest = queue[0]
            for span in queue[1:]:
                if span.granted_ns != NOWHERE and _later(slowest, span, history.slack_ns):
                    ahead_ns = span.called_ns - slowest.called_ns
                    message = (
                        f"{history.name(span)} was granted before {slowest.execute}, called {ahead_ns} ns earlier "
                        f"by the same account of {lane_name(lane)}"
                    )
                    yield span.granted_ns, span.execute, message, ahead_ns
                elif slowest.granted_ns != NOWHERE:
                    slowest = span


def _later(older: Span, younger: Span, slack_ns: int) -> bool:
    """Tell whether the older call was granted later, by more than a recorder may blur."""
    if younger.called_ns - older.called_ns < slack_ns:
        return False
    return older.granted_ns == NOWHERE or older.granted_ns > younger.granted_ns


def idle_slots(history: History) -> Iterator[Finding]:
    """Find free slots while a call waits."""
    slots = history.trace.guard.slots or 0
    for lane, events in history.guard_events.items():
        waiting: dict[int, Span] = {}
        holders: set[int] = set()
        victim: Span | None = None
        since_ns = NOWHERE
        for at_ns, group in groupby(events, key=lambda event: event[0]):
            for _, kind, span in group:
                if kind == "call":
                    waiting[span.execute] = span
                elif kind == "grant":
                    waiting.pop(span.execute, None)
                    holders.add(span.execute)
                else:
                    holders.discard(span.execute)
            idle = bool(waiting) and len(holders) < slots
            if victim is None and idle:
                victim, since_ns = next(iter(waiting.values())), at_ns
            elif victim is not None and not idle:
                if at_ns - since_ns > history.slack_ns:
                    yield since_ns, victim.execute, _idle(history, lane, victim, at_ns - since_ns), at_ns - since_ns
                victim = None
        if victim is not None and history.last_ns - since_ns > history.slack_ns:
            idle_ns = history.last_ns - since_ns
            yield since_ns, victim.execute, _idle(history, lane, victim, idle_ns), idle_ns


def _idle(history: History, lane: Lane, victim: Span, idle_ns: int) -> str:
    return f"{history.name(victim)} waited {idle_ns} ns while a slot of {lane_name(lane)} was free"


def _not_promised(history: History) -> str:
    reason = no_slots(history)
    if reason or history.trace.guard.work_conserving:
        return reason
    policy = history.trace.guard.policy
    if history.trace.guard.work_conserving is False:
        return f"policy {policy} may leave a slot free while calls wait"
    return "the trace does not say that the policy never leaves a slot free while calls wait"


def _no_cover(history: History) -> str:
    if any(event.kind == "grant" for event in history.trace.events):
        return ""
    return no_guard(history)


EXCLUSION: Final = Rule("guard-exclusion", "never more holders than slots", no_slots, too_many_holders)
COVER: Final = Rule(
    "guard-cover",
    "every guarded graph runs while its thread holds a slot, and no other does",
    _no_cover,
    outside_its_slot,
)
FIFO: Final = Rule("guard-fifo", "calls of one account are granted in their order", no_guard, overtaken_in_account)
WORK: Final = Rule(
    "guard-work", "no slot is free while a call waits, where the policy promises it", _not_promised, idle_slots
)
