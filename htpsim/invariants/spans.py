"""From events to spans: when each graphExecute waited, held a slot, held its core.

A graphExecute whose events do not follow the table below is *unsound*: rule ``causality`` reports it, and every other
rule leaves it out, because nothing further can be concluded from it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from htpsim.invariants.trace import DEVICE_KINDS, NOWHERE, Account, Call, Event, Parts, Trace

AFTER: Final = {
    "call": ("",),
    "grant": ("call",),
    "submit": ("call", "grant"),
    "start": ("submit",),
    "run": ("start", "resume"),
    "yield": ("run",),
    "freed": ("yield",),
    "resume": ("freed",),
    "finish": ("run",),
    "return": ("submit", "finish"),
    "release": ("return",),
}
"""What may come right before each event of one graphExecute."""

Stretch = tuple[int, int]
"""Begin and end [ns]; an end of NOWHERE is still open."""

Lane = tuple[int, int]
"""One set of slots: (process, core), or (process, NOWHERE) where slots are a process's."""


@dataclass(slots=True)
class Span:
    """One graphExecute: its facts and its instants, NOWHERE where they did not come."""

    call: Call
    called_ns: int = NOWHERE
    granted_ns: int = NOWHERE
    submitted_ns: int = NOWHERE
    started_ns: int = NOWHERE
    finished_ns: int = NOWHERE
    returned_ns: int = NOWHERE
    released_ns: int = NOWHERE
    """Its return, where the recorder writes no releases."""
    acquires: list[Stretch] = field(default_factory=list)
    runs: list[Stretch] = field(default_factory=list)
    evicts: list[Stretch] = field(default_factory=list)
    restores: list[Stretch] = field(default_factory=list)
    holds: list[Stretch] = field(default_factory=list)
    """On its core, evict included."""
    parts: Parts | None = None
    fault: tuple[Event, str] | None = None
    """First event that does not follow, and why."""

    @property
    def execute(self) -> int:
        """Its number."""
        return self.call.execute

    @property
    def sound(self) -> bool:
        """Whether its events follow the table."""
        return self.fault is None

    @property
    def slot_ns(self) -> Stretch:
        """When it held a slot; (NOWHERE, NOWHERE) when it did not."""
        return self.granted_ns, self.released_ns

    @property
    def cost_ns(self) -> int:
        """Time for which it held its core, which is what the guard charges; without device events, submit to return."""
        if self.holds:
            return sum(end - begin for begin, end in self.holds if end != NOWHERE)
        if self.returned_ns == NOWHERE:
            return 0
        return self.parts.core_ns if self.parts is not None else self.returned_ns - self.submitted_ns


def enter(span: Span, event: Event) -> None:
    """Enter one event that follows."""
    at, kind = event.time_ns, event.kind
    match kind:
        case "call":
            span.called_ns = at
        case "grant":
            span.granted_ns = at
        case "submit":
            span.submitted_ns = at
        case "start":
            span.started_ns = at
            span.acquires.append((at, NOWHERE))
            span.holds.append((at, NOWHERE))
        case "resume":
            span.restores.append((at, NOWHERE))
            span.holds.append((at, NOWHERE))
        case "run":
            close(span.restores or span.acquires, at)
            span.runs.append((at, NOWHERE))
        case "yield":
            close(span.runs, at)
            span.evicts.append((at, NOWHERE))
        case "freed":
            close(span.evicts, at)
            close(span.holds, at)
        case "finish":
            span.finished_ns = at
            close(span.runs, at)
            close(span.holds, at)
        case "return":
            span.returned_ns = at
        case "release":
            span.released_ns = at


def close(stretches: list[Stretch], at_ns: int) -> None:
    """End the last of `stretches`."""
    stretches[-1] = (stretches[-1][0], at_ns)


class History:
    """A trace made ready for the rules: spans, lanes and accounts, each computed once.

    Examples
    --------
    >>> trace = Trace(calls={0: Call(execute=0, thread="a")}, events=[Event(3, "call", 0), Event(5, "grant", 0)])
    >>> History(trace).spans[0].granted_ns
    5
    """

    def __init__(self, trace: Trace, slack_ns: int = 0) -> None:
        self.trace = trace
        self.slack_ns = slack_ns
        """What a recorder's clock and a thread's wake-up may blur."""
        self.last_ns = trace.last_ns
        self.memo: dict[str, dict[str, list[tuple[int, int | str, str, int]]]] = {}
        """Findings that several rules make in one sweep."""

    @cached_property
    def spans(self) -> dict[int, Span]:
        """Every graphExecute, sound or not, in order of its call."""
        trace = self.trace
        spans = {number: Span(call, parts=trace.parts.get(number)) for number, call in trace.calls.items()}
        last: dict[int, Event] = {}
        for event in trace.events:
            span = spans.get(event.execute)
            if span is None or span.fault is not None:
                continue
            before = last.get(event.execute)
            kind_before = before.kind if before else ""
            if before is not None and event.time_ns < before.time_ns:
                span.fault = event, f"at {event.time_ns} ns, before its {kind_before} at {before.time_ns} ns"
            elif kind_before not in AFTER[event.kind]:
                wanted = " or ".join(f"'{kind}'" for kind in AFTER[event.kind] if kind) or "nothing"
                span.fault = event, f"after {kind_before or 'nothing'}, expected after {wanted}"
            else:
                enter(span, event)
                last[event.execute] = event
        if not trace.engine and not any(event.kind == "release" for event in trace.events):
            for span in spans.values():
                if span.granted_ns != NOWHERE:
                    span.released_ns = span.returned_ns
        return spans

    @cached_property
    def sound(self) -> list[Span]:
        """Spans that rules may conclude from, in order of call."""
        return [span for span in self.spans.values() if span.sound and span.called_ns != NOWHERE]

    @cached_property
    def guarded(self) -> list[Span]:
        """Sound spans that asked the guard for a slot of their own."""
        return [span for span in self.sound if span.call.path == "genie" and span.call.under is None]

    @cached_property
    def has_device_events(self) -> bool:
        """Whether the recorder saw the device."""
        return any(event.kind in DEVICE_KINDS for event in self.trace.events)

    def lane(self, span: Span) -> Lane:
        """Return the set of slots that a guarded graphExecute asks for."""
        if self.trace.guard.slots_per == "core":
            return span.call.process, span.call.cores[0] if span.call.cores else NOWHERE
        return span.call.process, NOWHERE

    @cached_property
    def lanes(self) -> dict[Lane, list[Span]]:
        """Guarded spans by the slots they ask for, in order of call."""
        lanes: dict[Lane, list[Span]] = {}
        for span in self.guarded:
            lanes.setdefault(self.lane(span), []).append(span)
        return lanes

    @cached_property
    def guard_events(self) -> dict[Lane, list[tuple[int, str, Span]]]:
        """What the guard saw at each set of slots: (time, "call" or "grant" or "release", span), as recorded."""
        spans = {span.execute: span for span in self.guarded}
        explicit = bool(self.trace.engine) or any(event.kind == "release" for event in self.trace.events)
        kinds = {"call": "call", "grant": "grant", "release" if explicit else "return": "release"}
        seen: dict[Lane, list[tuple[int, str, Span]]] = {}
        for event in self.trace.events:
            span = spans.get(event.execute)
            if span is not None and event.kind in kinds:
                seen.setdefault(self.lane(span), []).append((event.time_ns, kinds[event.kind], span))
        return seen

    @cached_property
    def held_under(self) -> dict[int, list[Span]]:
        """Spans that ran under the slot of another, by that other's number."""
        under: dict[int, list[Span]] = {}
        for span in self.sound:
            if span.call.under is not None:
                under.setdefault(span.call.under, []).append(span)
        return under

    def charge_ns(self, span: Span) -> int:
        """Return what the guard charges when the slot of `span` is given back."""
        return span.cost_ns + sum(other.cost_ns for other in self.held_under.get(span.execute, ()))

    @cached_property
    def accounts(self) -> dict[int, list[Account]]:
        """Accounts of each process, in the order by which ties are broken: as declared, then as first seen."""
        accounts: dict[int, list[Account]] = {}
        declared = list(self.trace.guard.accounts)
        calls = (span.call for span in self.guarded)
        seen = [Account(call.process, call.handle or "", call.weight or 1, call.rank) for call in calls]
        known: set[tuple[int, str]] = set()
        for account in declared + seen:
            if (account.process, account.handle) not in known:
                known.add((account.process, account.handle))
                accounts.setdefault(account.process, []).append(account)
        return accounts

    @cached_property
    def _account_numbers(self) -> dict[tuple[int, str], int]:
        return {
            (process, account.handle): number
            for process, accounts in self.accounts.items()
            for number, account in enumerate(accounts)
        }

    def account(self, span: Span) -> int:
        """Return the position of the account of a guarded span among those of its process."""
        return self._account_numbers[span.call.process, span.call.handle or ""]

    def name(self, span: Span) -> str:
        """Name a graphExecute in a message."""
        return f"graphExecute {span.execute} ({span.call.graph or 'no graph'}, {span.call.thread})"
