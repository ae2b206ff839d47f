"""Which policy explains a trace: how many of its grants each built-in one would have made.

A policy is replayed beside the recorded calls, grants and releases, with the recorded charges. Before each grant it is
asked whom it would choose among those that really waited; then the recorded grant is made, whatever it said, so that
every grant is judged on the true past. Its parameters are tried on a small grid, and the best are reported. Only grants
at which two accounts or more waited say anything; the others are left out of the share.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, product
from types import MappingProxyType
from typing import Any, Final

from htpsim.invariants.rule import no_guard
from htpsim.invariants.spans import History, Lane, Span
from htpsim.invariants.trace import NOWHERE, Account, Trace
from htpsim.sched import POLICIES, Policy, guard, policy_params
from htpsim.sched.policy import ACCOUNT_FIELDS, CALL_FIELDS, LANE_FIELDS, NO_DEADLINE
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


def explain(trace: Trace, policies: Mapping[str, type[Policy]] = POLICIES) -> Explanation:
    """Say how many grants of a trace each policy would have made.

    Parameters
    ----------
    trace : Trace
        With calls and grants; what a call cost is what the trace says it held its core for, or submit to return.
    policies : mapping
        Policies to try, by name.

    Examples
    --------
    >>> explain(Trace()).note
    'no call passes a guard'
    """
    history = History(trace)
    reason = no_guard(history)
    if reason:
        return Explanation(note=reason)
    records = [record for lane in history.guard_events for record in Recorded(history, lane).grants()]
    choices = {grant.execute: grant for grant in records if len(grant.waiting) > 1}
    found = Explanation(grants=len(records), choices=len(choices))
    if not choices:
        found.note = "no two accounts were ever in line together, so any policy would have made these grants"
        return found
    if trace.guard.slots is None:
        found.note = "the trace does not say how many slots the guard has; one was assumed where a policy asks"
    for name, policy in policies.items():
        fits = list(_fits(history, name, policy, choices.keys()))
        if fits:
            found.fits.append(max(fits, key=lambda fit: fit.made))
    found.fits.sort(key=lambda fit: (-fit.made, _size(policies[fit.policy]), fit.policy))
    unexplained = frozenset(choices).intersection(*(fit.missed for fit in found.fits))
    found.unexplained = [choices[number] for number in sorted(unexplained)]
    return found


def _fits(history: History, name: str, policy: type[Policy], choices: Any) -> Iterator[Fit]:
    """Yield the fit of a policy for every point of its grid; none for one that lacks what it looks at."""
    for ranks in _ranks(history, name):
        for params in grid(policy, dict(history.trace.guard.params) if history.trace.guard.policy == name else {}):
            missed: set[int] = set()
            for lane in history.guard_events:
                missed |= Recorded(history, lane, ranks).missed_by(policy, params)
            missed &= set(choices)
            changed = [(key, value) for key, value in params.items() if value != policy.params[key][0]]
            yield Fit(name, tuple(changed), ranks, len(choices) - len(missed), frozenset(missed))


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


class Recorded:
    """One set of slots as it was recorded, to be replayed beside a policy."""

    def __init__(self, history: History, lane: Lane, ranks: str = "") -> None:
        self.history = history
        self.events = history.guard_events[lane]
        self.accounts: Sequence[Account] = history.accounts[lane[0]]
        self.ranks = ranks
        # A recording's clock has its own origin; a policy's periods are counted from the first call.
        self.origin_ns = 0 if history.trace.engine else self.events[0][0]

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

    def missed_by(self, policy: type[Policy], params: Mapping[str, int]) -> set[int]:
        """Return the graphExecutes that `policy` would not have granted when they were."""
        replay = _Replay(self, policy, params)
        missed: set[int] = set()
        for at_ns, group in groupby(self.events, key=lambda event: event[0]):
            now_ns = at_ns - self.origin_ns
            replay.pass_time(now_ns - 1)
            granted: list[Span] = []
            for _, kind, span in group:
                if kind == "grant":
                    granted.append(span)
                    continue
                missed |= replay.grant(granted, now_ns)
                granted = []
                if kind == "release":
                    replay.release(span, now_ns)
                else:
                    replay.call(span, now_ns)
            replay.pass_time(now_ns)
            missed |= replay.grant(granted, now_ns)
        return missed


class _Replay:
    """The records of one lane, moved by what was recorded."""

    def __init__(self, recorded: Recorded, policy: type[Policy], params: Mapping[str, int]) -> None:
        self.recorded = recorded
        self.policy = policy
        self.lane: Any = record_class("Lane", (*LANE_FIELDS, *policy.lane_fields, *policy.params))()
        account_type = record_class("Account", (*ACCOUNT_FIELDS, *policy.account_fields))
        self.accounts: list[Any] = [account_type() for _ in recorded.accounts]
        self.calls: list[Any] = []
        self.due_ns = 0
        self.lane.slots = recorded.history.trace.guard.slots or 1
        self.lane.accounts = len(self.accounts)
        self.lane.weight_sum = sum(account.weight for account in recorded.accounts)
        for name, value in params.items():
            setattr(self.lane, name, value)
        for number, account in enumerate(recorded.accounts):
            rank = account.weight if recorded.ranks else account.rank
            guard.open_account(self.accounts, number, account.weight, rank)

    def pass_time(self, now_ns: int) -> None:
        while 0 <= self.due_ns <= now_ns:
            self.due_ns = self.policy.timer(self.lane, self.accounts, self.due_ns)

    def call(self, span: Span, now_ns: int) -> None:
        call = _Call()
        deadline_ns = span.call.deadline_ns
        call.deadline_ns = NO_DEADLINE if deadline_ns == NOWHERE else deadline_ns - self.recorded.origin_ns
        self.calls.append(call)
        account = self.recorded.history.account(span)
        guard.call(self.lane, self.accounts, self.calls, account, len(self.calls) - 1, now_ns, self.policy.wake)

    def release(self, span: Span, now_ns: int) -> None:
        account, cost_ns = self.recorded.history.account(span), self.recorded.history.charge_ns(span)
        guard.release(self.lane, self.accounts, account, cost_ns, now_ns, self.policy.charge)

    def grant(self, granted: Sequence[Span], now_ns: int) -> set[int]:
        """Make the grants of one instant; return those that the policy would not have made."""
        missed: set[int] = set()
        remaining = list(granted)
        while remaining:
            choice = self.policy.pick(copied(self.lane), [copied(account) for account in self.accounts], now_ns)
            by_account = {self.recorded.history.account(span): span for span in reversed(remaining)}
            span = by_account.get(choice, remaining[0])
            account = self.recorded.history.account(span)
            if account != choice:
                missed.add(span.execute)
            pick = self.policy.pick if account == choice else self.forced(account)
            guard.grant(self.lane, self.accounts, self.calls, now_ns, pick, self.policy.wake)
            remaining.remove(span)
        return missed

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


def copied(record: Any) -> Any:
    """Return a record with the same fields."""
    other = type(record)()
    for name in type(record).fields:
        setattr(other, name, getattr(record, name))
    return other
