"""Rules of memory: what is taken is given back or held for somebody, within the limits, and not while it is used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from htpsim.invariants.rule import Finding, Rule
from htpsim.invariants.spans import History, Span
from htpsim.invariants.trace import NOWHERE, MemoryEvent

_Slot = tuple[str, str, str]
"""(ledger, place, item)"""


def unbalanced(history: History) -> Iterator[Finding]:
    """Find more given back than taken, and bytes held at the end for nobody."""
    held: dict[_Slot, int] = {}
    last: dict[_Slot, MemoryEvent] = {}
    for event in history.trace.memory:
        slot = event.ledger, event.place, event.item
        held[slot] = held.get(slot, 0) + event.delta_bytes
        last[slot] = event
        if held[slot] < 0:
            message = f"{event.item} gave back {-event.delta_bytes} B of the {held[slot] - event.delta_bytes} B it held"
            yield event.time_ns, event.item, f"{event.ledger} ledger, {event.place}: {message}", -held[slot]
            held[slot] = 0
    if not history.trace.uses:
        return
    users = users_at_end(history)
    left_ns = {event.copy: event.time_ns for event in history.trace.uses if event.kind == "detach"}
    for (ledger, place, item), count_bytes in held.items():
        event = last[ledger, place, item]
        there = users.get(event.copy, set())
        if event.delta_bytes > 0 and event.time_ns >= left_ns.get(event.copy, history.last_ns + 1):
            continue  # it was being loaded again when the trace ended
        if count_bytes and event.copy and (event.user not in there if event.user else not there):
            whose = f"'{event.user}', no user of" if event.user else "nobody: no user has"
            message = f"{ledger} ledger, {place}: {item} still holds {count_bytes} B for {whose} copy '{event.copy}'"
            yield event.time_ns, item, message, count_bytes


def users_at_end(history: History) -> dict[str, set[str]]:
    """Return the users that each copy is left with."""
    users: dict[str, set[str]] = {}
    for event in history.trace.uses:
        if event.kind == "attach":
            users.setdefault(event.copy, set()).add(event.user)
        elif event.kind == "detach":
            users.get(event.copy, set()).discard(event.user)
    return users


def emptied(history: History) -> dict[str, list[int]]:
    """Return the instants at which the last user of a copy left, so that it was unloaded, by copy."""
    users: dict[str, set[str]] = {}
    found: dict[str, list[int]] = {}
    for event in history.trace.uses:
        there = users.setdefault(event.copy, set())
        if event.kind == "attach":
            there.add(event.user)
        elif event.kind == "detach" and there:
            there.discard(event.user)
            if not there:
                found.setdefault(event.copy, []).append(event.time_ns)
    return found


def over_limit(history: History) -> Iterator[Finding]:
    """Find places that hold more than they may, and more protection domains than a process may open on a core."""
    device = history.trace.device
    assert device is not None
    limits = dict(device.limits)
    held: dict[tuple[str, str], int] = {}
    for event in history.trace.memory:
        at = event.ledger, event.place
        held[at] = held.get(at, 0) + event.delta_bytes
        limit = limits.get(event.ledger)
        if event.delta_bytes > 0 and limit is not None and held[at] > limit:
            message = f"{event.ledger} ledger, {event.place}: {event.item} made it {held[at]} B, the limit is {limit} B"
            yield event.time_ns, event.item, message, held[at] - limit
        if event.delta_bytes > 0 and event.ledger == "pd" and device.pd_count:
            core, _, _ = event.place.rpartition(" pd ")
            pds = [
                place
                for (ledger, place), count in held.items()
                if ledger == "pd" and count and place.startswith(f"{core} pd ")
            ]
            if len(pds) > device.pd_count:
                message = f"{core}: {len(pds)} protection domains are open, the limit is {device.pd_count}"
                yield event.time_ns, event.item, message, len(pds) - device.pd_count


def freed_in_use(history: History) -> Iterator[Finding]:
    """Find bytes given back while a graphExecute that needs them was out."""
    by_copy: dict[str, list[Span]] = {}
    for event in history.trace.memory:
        if event.delta_bytes >= 0 or not event.copy:
            continue
        if event.copy not in by_copy:
            by_copy[event.copy] = [span for span in history.sound if on_copy(span, event.copy)]
        for span in by_copy[event.copy]:
            until_ns = span.returned_ns if span.returned_ns != NOWHERE else history.last_ns + 1
            if event.user in ("", span.call.client) and span.called_ns < event.time_ns < until_ns:
                message = (
                    f"{event.item} was freed while {history.name(span)} was out, for {until_ns - event.time_ns} ns more"
                )
                yield event.time_ns, span.execute, message, until_ns - event.time_ns


def on_copy(span: Span, copy: str) -> bool:
    """Tell whether a graphExecute runs on a context of a copy."""
    return span.call.context == copy or span.call.context.startswith(f"{copy}/")


def wrong_references(history: History) -> Iterator[Finding]:
    """Find counts that are not the number of users, users that come or go twice, and copies unloaded under users."""
    users: dict[str, set[str]] = {}
    for event in history.trace.uses:
        there = users.setdefault(event.copy, set())
        name = f"copy '{event.copy}'"
        if event.kind == "attach":
            if event.user in there:
                yield event.time_ns, event.copy, f"{name}: '{event.user}' came to use it twice", 1
            there.add(event.user)
        elif event.kind == "detach":
            if event.user not in there:
                yield event.time_ns, event.copy, f"{name}: '{event.user}' let go of it without using it", 1
            there.discard(event.user)
        elif event.kind == "count":
            if event.users != len(there):
                message = (
                    f"{name} is counted to have {event.users} users, it has {len(there)}: {', '.join(sorted(there))}"
                )
                yield event.time_ns, event.copy, message, event.users - len(there)
        elif there:
            yield (
                event.time_ns,
                event.copy,
                f"{name}: '{event.kind}' while {', '.join(sorted(there))} use it",
                len(there),
            )
    yield from _strangers(history)


def _strangers(history: History) -> Iterator[Finding]:
    """Find graphExecutes on a copy that their client does not use."""
    joined: dict[tuple[str, str], int] = {}
    for event in history.trace.uses:
        if event.kind == "attach":
            joined.setdefault((event.copy, event.user), event.time_ns)
    copies = sorted({copy for copy, _ in joined}, key=len, reverse=True)
    for span in history.sound:
        copy = next((copy for copy in copies if on_copy(span, copy)), None)
        if copy is not None and joined.get((copy, span.call.client), history.last_ns + 1) > span.called_ns:
            message = f"{history.name(span)} ran on copy '{copy}', which {span.call.client} does not use"
            yield span.called_ns, span.execute, message, 0


def _no_memory(history: History) -> str:
    return "" if history.trace.memory else "the trace has no memory events (take, free)"


def _no_limits(history: History) -> str:
    reason = _no_memory(history)
    if reason or history.trace.device is None:
        return reason or "the trace does not state the device's limits"
    return "" if history.trace.device.limits or history.trace.device.pd_count else "the device has no limits"


def _no_uses(history: History) -> str:
    return "" if history.trace.uses else "the trace does not say who uses which loaded copy"


BALANCE: Final = Rule(
    "memory-balance", "bytes taken are bytes given back or held for a user that is there", _no_memory, unbalanced
)
LIMIT: Final = Rule("memory-limit", "no place holds more than its limit", _no_limits, over_limit)
IN_USE: Final = Rule("memory-in-use", "nothing is freed while a graphExecute needs it", _no_memory, freed_in_use)
REFERENCES: Final = Rule("references", "references are users, and only users execute", _no_uses, wrong_references)
