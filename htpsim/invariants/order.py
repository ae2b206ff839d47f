"""The rule of order: every grant is the one that the declared policy makes, given who waited and what was charged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from htpsim.invariants.choices import Line, Reference
from htpsim.invariants.choices_fair import REFERENCES
from htpsim.invariants.guard import lane_name
from htpsim.invariants.rule import Finding, Rule, no_slots
from htpsim.invariants.spans import History, Lane, Span
from htpsim.invariants.trace import NOWHERE
from htpsim.sched import POLICIES, policy_params


class Replay:
    """One set of slots, as its calls and grants were recorded, and the reference that is asked beside them."""

    def __init__(self, history: History, lane: Lane) -> None:
        guard = history.trace.guard
        self.history = history
        self.lane = lane
        self.accounts = history.accounts[lane[0]]
        self.line = Line()
        self.reference: Reference = REFERENCES[guard.policy](
            self.line, self.accounts, guard.slots or 1, policy_params(POLICIES[guard.policy], guard.params)
        )

    def run(self) -> Iterator[Finding]:
        """Go through the calls, grants and releases, and yield the grants that the reference does not make."""
        events = self.history.guard_events[self.lane]
        for at_ns, group in groupby(events, key=lambda event: event[0]):
            entries = [(kind, span) for _, kind, span in group]
            found = list(self.instant(entries, at_ns))
            # Where a slot was held for no time at all, what came first in the instant cannot be told.
            if not any(span.slot_ns == (at_ns, at_ns) for _, span in entries):
                yield from found

    def instant(self, entries: list[tuple[str, Span]], at_ns: int) -> Iterator[Finding]:
        """Go through one instant."""
        self.pass_time(at_ns - 1)
        granted: list[Span] = []
        for kind, span in entries:
            if kind == "grant":
                granted.append(span)
                continue
            yield from self.grant(granted, at_ns)
            granted = []
            if kind == "release":
                self.release(span, at_ns)
            else:
                self.call(span, at_ns)
        self.pass_time(at_ns)  # what is due at an instant comes after its returns and calls
        yield from self.grant(granted, at_ns)

    def pass_time(self, now_ns: int) -> None:
        """Let what is due up to an instant happen, with the sum of weights then in force."""
        guard = self.history.trace.guard
        if guard.weighed_ns == NOWHERE or now_ns < guard.weighed_ns:
            self.reference.pass_time(now_ns)
            return
        self.reference.pass_time(min(now_ns, guard.weighed_ns - 1))
        for process, core, weight_sum in guard.weight_sums:
            if (process, core) == self.lane:
                self.reference.weight_sum = weight_sum
        self.reference.pass_time(now_ns)

    def call(self, span: Span, at_ns: int) -> None:
        """Let it wait."""
        account = self.history.account(span)
        if self.line.join(account, span):
            self.reference.head(account, at_ns)

    def release(self, span: Span, at_ns: int) -> None:
        """Give the slot back."""
        account = self.history.account(span)
        self.line.held[account] -= 1
        self.reference.released(account, self.history.charge_ns(span), at_ns)

    def grant(self, granted: Sequence[Span], at_ns: int) -> Iterator[Finding]:
        """Compare the grants of one instant, whose order was not recorded, with the reference's choices."""
        remaining = list(granted)
        while remaining:
            choice = self.reference.choose(at_ns)
            by_account = {self.history.account(span): span for span in reversed(remaining)}
            span = by_account.get(choice, remaining[0])
            account = self.history.account(span)
            if account != choice and not self.blurred(account, choice):
                yield at_ns, span.execute, self.departure(span, choice), 0
            remaining.remove(span)
            self.reference.granted(account, at_ns)
            if self.line.take(account, span):
                self.reference.head(account, at_ns)

    def blurred(self, account: int, choice: int) -> bool:
        """Tell whether two calls came so close together that a recorder may have swapped them."""
        slack_ns, heads = self.history.slack_ns, self.line.heads()
        return bool(slack_ns and choice != NOWHERE) and (
            abs(heads[account].called_ns - heads[choice].called_ns) <= slack_ns
        )

    def departure(self, span: Span, choice: int) -> str:
        """Word a grant that the reference does not make."""
        policy, lane = self.history.trace.guard.policy, lane_name(self.lane)
        wanted = "nobody yet"
        if choice != NOWHERE:
            since_ns = self.line.heads()[choice].called_ns
            wanted = f"'{self.accounts[choice].handle}', waiting since {since_ns} ns"
        return f"{self.history.name(span)} of '{span.call.handle}' was granted; {policy} at {lane} chooses {wanted}"


def other_choices(history: History) -> Iterator[Finding]:
    """Find grants that the declared policy would not have made."""
    for lane in history.guard_events:
        yield from Replay(history, lane).run()


def _no_reference(history: History) -> str:
    guard = history.trace.guard
    reason = no_slots(history)
    if reason:
        return reason
    if not guard.policy:
        return "the trace does not name the guard's policy"
    if guard.policy not in REFERENCES:
        return f"policy {guard.policy} is not one of the built-in ones, whose choices are known"
    charges = history.trace.engine or history.has_device_events
    if not charges and guard.policy not in ("fifo", "priority"):
        return f"a recording does not say what {guard.policy} charged; explain-policy compares it with every policy"
    return ""


ORDER: Final = Rule("guard-order", "each grant is the one that the declared policy makes", _no_reference, other_choices)
