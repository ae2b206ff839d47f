"""The rule of shares: policies that share by weight keep their published bounds wherever the premise holds.

In any interval in which two accounts are backlogged throughout, what each was served over its weight differs by at most
the sum of their longest graphExecutes over weight (SFQ: Goyal, Vin, Cheng 1996, theorem 1), plus one quantum for
deficit round robin (Shreedhar, Varghese 1995). An account is backlogged while it has a call
waiting or in service; a dialog with one outstanding call is not, between its calls. The bounds are for one server, so
the rule applies to one slot. Service is what the guard charges, of calls granted and released within the interval.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations, groupby
from typing import Final

from htpsim.invariants.guard import lane_name
from htpsim.invariants.rule import Finding, Rule, no_slots
from htpsim.invariants.spans import History, Lane

BOUNDED: Final = {"drr": "quantum_ns", "sfq": ""}
"""Policies with such a bound, and the parameter that it grows by."""


@dataclass(slots=True)
class Backlog:
    """One account at one slot: when it was backlogged, and what it was served."""

    weight: int
    stretches: list[tuple[int, int]] = field(default_factory=list)
    served: list[tuple[int, int, int]] = field(default_factory=list)
    """(granted, released, cost)"""

    @property
    def longest_ns(self) -> int:
        """Its dearest call."""
        return max((cost for _, _, cost in self.served), default=0)


def backlogs(history: History, lane: Lane) -> dict[int, Backlog]:
    """Return the backlog of every account at one set of slots."""
    found: dict[int, Backlog] = {}
    inside: dict[int, int] = {}
    since: dict[int, int] = {}
    for at_ns, group in groupby(history.guard_events[lane], key=lambda event: event[0]):
        for _, kind, span in group:
            account = history.account(span)
            backlog = found.setdefault(account, Backlog(span.call.weight or 1))
            if kind == "call":
                inside[account] = inside.get(account, 0) + 1
            elif kind == "release":
                inside[account] -= 1
                backlog.served.append((span.granted_ns, at_ns, history.charge_ns(span)))
        for account, count in inside.items():
            if count and account not in since:
                since[account] = at_ns
            elif not count and account in since:
                found[account].stretches.append((since.pop(account), at_ns))
    for account, begin_ns in since.items():
        found[account].stretches.append((begin_ns, history.last_ns))
    return found


def together(one: Backlog, two: Backlog) -> Iterator[tuple[int, int]]:
    """Yield the intervals in which both are backlogged throughout.

    >>> list(together(Backlog(1, [(0, 5), (7, 9)]), Backlog(1, [(3, 8)])))
    [(3, 5), (7, 8)]
    """
    i = j = 0
    while i < len(one.stretches) and j < len(two.stretches):
        (begin_one, end_one), (begin_two, end_two) = one.stretches[i], two.stretches[j]
        begin_ns, end_ns = max(begin_one, begin_two), min(end_one, end_two)
        if begin_ns < end_ns:
            yield begin_ns, end_ns
        if end_one <= end_two:
            i += 1
        else:
            j += 1


def service(one: Backlog, two: Backlog) -> list[tuple[int, int, int]]:
    """Return (granted, released, step) of their calls, in order; a step is cost over weight times both weights."""
    steps = [(granted, released, cost * two.weight) for granted, released, cost in one.served]
    steps += [(granted, released, -cost * one.weight) for granted, released, cost in two.served]
    return sorted(steps)


def worst_gap(steps: list[tuple[int, int, int]], begin_ns: int, end_ns: int) -> tuple[int, int]:
    """Return the largest difference of service within an interval, in the unit of the steps, and when it was reached.

    >>> worst_gap([(0, 2, 2), (2, 5, 3), (5, 6, -1)], 0, 9)
    (5, 5)
    """
    lowest = highest = total = worst = 0
    at_ns = begin_ns
    for _, released_ns, step in steps[bisect_left(steps, (begin_ns, 0, 0)) :]:
        if released_ns > end_ns:
            break
        total += step
        gap = max(total - lowest, highest - total)
        if gap > worst:
            worst, at_ns = gap, released_ns
        lowest, highest = min(lowest, total), max(highest, total)
    return worst, at_ns


def unfair_shares(history: History) -> Iterator[Finding]:
    """Find pairs of accounts that drifted further apart than the bound while both were backlogged."""
    guard = history.trace.guard
    extra = dict(guard.params).get(BOUNDED[guard.policy], 0)
    for lane in history.guard_events:
        found = backlogs(history, lane)
        for (i, one), (j, two) in combinations(sorted(found.items()), 2):
            steps, both = service(one, two), one.weight * two.weight
            bound = one.longest_ns * two.weight + two.longest_ns * one.weight + extra * both
            # A charge rounds down to 2^-16 ns of virtual time, so each call may add that much.
            bound += (len(steps) * both >> 16) + 1
            for begin_ns, end_ns in together(one, two):
                gap, at_ns = worst_gap(steps, begin_ns, end_ns)
                if gap > bound:
                    yield at_ns, *_unfair(history, lane, (i, j), gap // both, bound // both)


def _unfair(history: History, lane: Lane, pair: tuple[int, int], gap_ns: int, bound_ns: int) -> tuple[str, str, int]:
    names = " and ".join(f"'{history.accounts[lane[0]][number].handle}'" for number in pair)
    message = (
        f"{names} at {lane_name(lane)}, both backlogged: service over weight drifted apart by {gap_ns} ns, "
        f"the bound is {bound_ns} ns"
    )
    return names, message, gap_ns - bound_ns


def _no_bound(history: History) -> str:
    guard = history.trace.guard
    reason = no_slots(history)
    if reason:
        return reason
    if guard.policy not in BOUNDED:
        return f"the bounds are those of {', '.join(BOUNDED)}; the policy is {guard.policy or 'not named'}"
    if guard.slots != 1:
        return f"the bound is for one slot, the guard has {guard.slots}"
    if any(span.call.weight is None for span in history.guarded):
        return "a call's weight was not recorded"
    return ""


BOUND: Final = Rule(
    "share-bound",
    "two accounts that are both backlogged are served by weight, within the policy's bound",
    _no_bound,
    unfair_shares,
)
