"""Which policy explains a trace: how many of its grants each built-in one would have made.

A policy is replayed beside the recorded calls, grants and releases, with the recorded charges. Before each grant it is
asked whom it would choose among those that really waited; then the recorded grant is made, whatever it said, so that
every grant is judged on the true past. Its parameters are tried on a small grid, and the best are reported; a replay
that has missed as much as the best so far is given up. Only grants at which two accounts or more waited say anything;
the others are left out of the share.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, product
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final

from htpsim.invariants.rule import no_guard
from htpsim.invariants.spans import History, Lane, Span
from htpsim.invariants.trace import NOWHERE, Account, Trace
from htpsim.sched import POLICIES, Policy, guard, open_lane, policy_params
from htpsim.sched.policy import CALL_FIELDS, NO_DEADLINE
from htpsim.spec.records import record_class

MS: Final = 1_000_000
GRID: Final[Mapping[str, tuple[int, ...]]] = MappingProxyType(
    {
        "period_ns": (10 * MS, 30 * MS, 100 * MS, 300 * MS, 1000 * MS),
        "idle_over_budget": (0, 1),
        "borrow": (0, 1, 2),
        "unit": (0, 1),
        "ageing_ns": (0, 10 * MS, 100 * MS),
        "quantum_ns": (MS, 10 * MS, 100 * MS),
        "slice_ns": (MS, 10 * MS, 100 * MS),
        "compensate": (0, 1),
    }
)
"""Values tried for a parameter of that name, beside its default."""

Progress = Callable[[float, int, str], None]
"""Told how many replays are done, of how many, and of which policy the next one is."""

_Call: type[Any] = record_class("Call", CALL_FIELDS)


@dataclass(frozen=True, slots=True)
class Grant:
    """One recorded grant, and whom it was chosen from."""

    time_ns: int
    execute: int
    account: str
    waiting: tuple[tuple[str, int], ...]
    """(account, time its oldest call had waited [ns]), those that were not chosen included."""


@dataclass(frozen=True, slots=True)
class Fit:
    """How well one policy explains a trace, with the parameters that explain it best."""

    policy: str
    params: tuple[tuple[str, int], ...]
    ranks: str
    """What it takes for a rank: "" for the recorded rank, "weight" where none was recorded."""
    made: int
    """Grants with a choice that it would have made."""
    missed: frozenset[int]
    """Numbers of the graphExecutes it would not have granted."""


@dataclass(slots=True)
class Explanation:
    """What explains the grants of a trace."""

    grants: int = 0
    choices: int = 0
    """Grants at which two accounts or more waited."""
    fits: list[Fit] = field(default_factory=list)
    """Policies, the best first, the simplest first among equals; those that would be ``fifo`` here are left out."""
    unexplained: list[Grant] = field(default_factory=list)
    """Grants that no policy would have made."""
    note: str = ""
    """Why there is nothing to explain, or what limits the answer."""


def explain(
    trace: Trace, policies: Mapping[str, type[Policy]] = POLICIES, progress: Progress | None = None
) -> Explanation:
    """Say how many grants of a trace each policy would have made.

    Parameters
    ----------
    trace : Trace
        With calls and grants; what a call cost is what the trace says it held its core for, or submit to return.
    policies : mapping
        Policies to try, by name.
    progress : callable, optional
        Told before every replay how many are done, of how many, and the policy.

    Examples
    --------
    >>> explain(Trace()).note
    'no call passes a guard'
    """
    history = History(trace)
    reason = no_guard(history)
    if reason:
        return Explanation(note=reason)
    lanes = [Recorded(history, lane) for lane in history.guard_events]
    records = [record for lane in lanes for record in lane.grants()]
    choices = {grant.execute: grant for grant in records if len(grant.waiting) > 1}
    found = Explanation(grants=len(records), choices=len(choices))
    if not choices:
        found.note = "no two accounts were ever in line together, so any policy would have made these grants"
        return found
    if trace.guard.slots is None:
        found.note = "the trace does not say how many slots the guard has; one was assumed where a policy asks"
    found.fits = _best_fits(history, lanes, policies, choices, progress)
    found.fits.sort(key=lambda fit: (-fit.made, _size(policies[fit.policy]), fit.policy))
    unexplained = frozenset(choices).intersection(*(fit.missed for fit in found.fits))
    found.unexplained = [choices[number] for number in sorted(unexplained)]
    return found


def _best_fits(
    history: History,
    lanes: Sequence[Recorded],
    policies: Mapping[str, type[Policy]],
    choices: Mapping[int, Grant],
    progress: Progress | None,
) -> list[Fit]:
    """Return the best fit of each policy over its grid, the first of equals; none for one that lacks what it asks."""
    points = [
        (name, ranks, params)
        for name, policy in policies.items()
        for ranks in _ranks(history, name)
        for params in grid(policy, dict(history.trace.guard.params) if history.trace.guard.policy == name else {})
    ]
    best: dict[str, Fit] = {}
    for done, (name, ranks, params) in enumerate(points):
        if progress is not None:
            progress(done, len(points), name)
        policy = policies[name]
        most = len(best[name].missed) if name in best else len(choices) + 1
        missed: set[int] = set()
        for lane in lanes:
            missed |= lane.missed_by(policy, params, ranks, choices, most - len(missed))
        if len(missed) < most:
            changed = [(key, value) for key, value in params.items() if value != policy.params[key][0]]
            best[name] = Fit(name, tuple(changed), ranks, len(choices) - len(missed), frozenset(missed))
    return list(best.values())


def _ranks(history: History, name: str) -> tuple[str, ...]:
    """Return what a policy may take for a rank: nothing at all where it would be ``fifo`` by another name."""
    accounts = [account for accounts in history.accounts.values() for account in accounts]
    if name == history.trace.guard.policy:
        return ("",)
    if name == "edf" and all(span.call.deadline_ns == NOWHERE for span in history.guarded):
        return ()
    if name == "priority" and len({account.rank for account in accounts}) == 1:
        return ("weight",) if len({account.weight for account in accounts}) > 1 else ()
    return ("",)


def _size(policy: type[Policy]) -> int:
    """Return how much a policy keeps and asks for: of two that explain the same, the smaller one does it better."""
    return len(policy.params) + len(policy.lane_fields) + len(policy.account_fields)


def grid(policy: type[Policy], declared: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Yield the parameters to try: the defaults, what the trace declares, and a small grid.

    >>> len(list(grid(POLICIES["drr"], {})))
    3
    """
    defaults = policy_params(policy, ())
    tried = [{**defaults, **declared}]
    values = {name: (default, *GRID.get(name, ())) for name, default in defaults.items()}
    for point in product(*(dict.fromkeys(each) for each in values.values())):
        params = dict(zip(defaults, point, strict=True))
        if params not in tried:
            tried.append(params)
    yield from tried


@dataclass(slots=True)
class _Instant:
    """What the guard saw in one instant: runs of grants, each before a call or a release, and those at the end."""

    now_ns: int
    steps: list[tuple[list[tuple[int, int]], bool, int, int]] = field(default_factory=list)
    """(grants, whether it is a call and not a release, account, position of the call or cost [ns])"""
    grants: list[tuple[int, int]] = field(default_factory=list)
    """(account, graphExecute)"""


class Recorded:
    """One set of slots as it was recorded, to be replayed beside a policy."""

    def __init__(self, history: History, lane: Lane) -> None:
        self.history = history
        self.events = history.guard_events[lane]
        self.accounts: Sequence[Account] = history.accounts[lane[0]]
        # A recording's clock has its own origin; a policy's periods are counted from the first call.
        self.origin_ns = 0 if history.trace.engine else self.events[0][0]
        self.calls: list[Any] = []
        """Records that every replay uses again: what changes in them is set when the call is made."""
        self.instants = list(self._instants())
        """Looked up once, because a policy with parameters is replayed dozens of times."""

    def _instants(self) -> Iterator[_Instant]:
        for at_ns, group in groupby(self.events, key=lambda event: event[0]):
            instant = _Instant(at_ns - self.origin_ns)
            for _, kind, span in group:
                account = self.history.account(span)
                if kind == "grant":
                    instant.grants.append((account, span.execute))
                    continue
                if kind == "call":
                    value = len(self.calls)
                    self.calls.append(_Call())
                    deadline_ns = span.call.deadline_ns
                    self.calls[-1].deadline_ns = NO_DEADLINE if deadline_ns == NOWHERE else deadline_ns - self.origin_ns
                else:
                    value = self.history.charge_ns(span)
                instant.steps.append((instant.grants, kind == "call", account, value))
                instant.grants = []
            yield instant

    def grants(self) -> Iterator[Grant]:
        """Yield every grant with those who waited."""
        waiting: dict[int, list[Span]] = {}
        for at_ns, kind, span in self.events:
            number = self.history.account(span)
            if kind == "call":
                waiting.setdefault(number, []).append(span)
            elif kind == "grant":
                heads = {number: queue[0] for number, queue in sorted(waiting.items()) if queue}
                told = tuple((self.accounts[number].handle, at_ns - head.called_ns) for number, head in heads.items())
                yield Grant(at_ns, span.execute, self.accounts[number].handle, told)
                waiting[number].remove(span)

    def missed_by(
        self, policy: type[Policy], params: Mapping[str, int], ranks: str, choices: Container[int], most: int
    ) -> set[int]:
        """Return which of `choices` the policy would not have granted when they were, or the first `most` of them."""
        replay = _Replay(self, policy, params, ranks, choices)
        lane, accounts, calls = replay.lane, replay.accounts, self.calls
        wake, charge = policy.wake, policy.charge
        for instant in self.instants:
            now_ns = instant.now_ns
            if 0 <= replay.due_ns < now_ns:
                replay.pass_time(now_ns - 1)
            for granted, is_call, account, value in instant.steps:
                if granted:
                    replay.grant(granted, now_ns)
                if is_call:
                    guard.call(lane, accounts, calls, account, value, now_ns, wake)
                else:
                    guard.release(lane, accounts, account, value, now_ns, charge)
            if 0 <= replay.due_ns <= now_ns:
                replay.pass_time(now_ns)
            if instant.grants:
                replay.grant(instant.grants, now_ns)
            if len(replay.missed) >= most:
                break
        return replay.missed


class _Replay:
    """The records of one lane, moved by what was recorded."""

    def __init__(
        self, recorded: Recorded, policy: type[Policy], params: Mapping[str, int], ranks: str, choices: Container[int]
    ) -> None:
        self.policy = policy
        self.choices = choices
        self.missed: set[int] = set()
        """Those of `choices` that the policy would not have made."""
        opened = [(account.weight, account.weight if ranks else account.rank) for account in recorded.accounts]
        self.lane, self.accounts = open_lane(policy, params, recorded.history.trace.guard.slots or 1, opened)
        # What a pick may move: the fields that the policy keeps (and two more, so that there are always several).
        self.lane_names = ("slots", "holders", *policy.lane_fields)
        self.account_names = ("waiting", "held", *policy.account_fields)
        self.lane_values = attrgetter(*self.lane_names)
        self.account_values = attrgetter(*self.account_names)
        self.calls = recorded.calls
        self.due_ns = 0

    def pass_time(self, now_ns: int) -> None:
        while 0 <= self.due_ns <= now_ns:
            self.due_ns = self.policy.timer(self.lane, self.accounts, self.due_ns)

    def grant(self, granted: Sequence[tuple[int, int]], now_ns: int) -> None:
        """Make the grants of one instant, and note those that the policy would not have made."""
        lane, accounts = self.lane, self.accounts
        remaining = list(granted)
        while remaining:
            # A policy may move its clock as it picks. Where it picks whom the trace granted, that is the grant's own
            # pick; otherwise, and where its slots are taken, everything is put back.
            lane_before, before = self.lane_values(lane), list(map(self.account_values, accounts))
            choice = self.policy.pick(lane, accounts, now_ns)
            place = next((k for k, (account, _) in enumerate(remaining) if account == choice), None)
            account, execute = remaining.pop(place or 0)
            if place is not None and guard.can_grant(lane):
                guard.grant(lane, accounts, self.calls, now_ns, _the_pick_was(choice), self.policy.wake)
                continue
            if self.lane_values(lane) != lane_before:
                put_back(lane, self.lane_names, lane_before)
            for record, values in zip(accounts, before, strict=True):
                if self.account_values(record) != values:
                    put_back(record, self.account_names, values)
            if place is None and execute in self.choices:
                self.missed.add(execute)
            pick = self.policy.pick if place is not None else self.forced(account)
            guard.grant(lane, accounts, self.calls, now_ns, pick, self.policy.wake)

    def forced(self, account: int) -> guard.Pick:
        """Return a pick that chooses `account`: the policy's own, with the others hidden, so its clock moves on."""

        def pick(lane: Any, accounts: Any, now_ns: int) -> int:
            others = [other for number, other in enumerate(accounts) if number != account]
            waiting = [other.waiting for other in others]
            for other in others:  # they do not wait, yet they are not idle either
                other.waiting = 0
                other.held += 1
            self.policy.pick(lane, accounts, now_ns)
            for other, was_waiting in zip(others, waiting, strict=True):
                other.waiting = was_waiting
                other.held -= 1
            return account

        return pick


def _the_pick_was(account: int) -> guard.Pick:
    return lambda lane, accounts, now_ns: account


def put_back(record: Any, names: Sequence[str], values: Sequence[int]) -> None:
    """Give fields of a record the values that they had."""
    for name, value in zip(names, values, strict=True):
        setattr(record, name, value)
