"""A state machine that calls, grants and releases at random, and holds a policy to what every policy must keep.

It drives the guard's rules as an engine does, writes down what happens as a trace, and checks the trace at the end:
never more holders than slots, calls of an account in order, no slot free while a call waits where the policy promises
it, and for a built-in policy that each grant is the one it must make. At the end everybody is served: a policy under
which a call is never granted fails.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from htpsim.experiments.trace_facts import promises_work
from htpsim.invariants import Account, Call, Event, GuardFacts, Trace, check_trace
from htpsim.sched import POLICIES, Policy, guard, policy_class, policy_params
from htpsim.sched.policy import ACCOUNT_FIELDS, CALL_FIELDS, LANE_FIELDS, NO_DEADLINE
from htpsim.spec.records import record_class
from htpsim.testing.choose import brief

PATIENCE: Final = 2000
"""Instants that pass, at the end, before a call that still waits is reported."""

_Call: type[Any] = record_class("Call", CALL_FIELDS)


class GuardMachine(RuleBasedStateMachine):
    """Random calls, grants and releases at one set of slots; `guard_machine` makes one for a policy."""

    policy: type[Policy] = POLICIES["fifo"]
    params: dict[str, int] = {}  # noqa: RUF012 - replaced as a whole by `guard_machine`
    slots: tuple[int, ...] = (1, 2)
    guard_rules: ModuleType | Any = guard
    """The guard's own functions: ``call``, ``can_grant``, ``grant``, ``release``, ``validate``, ``open_account``."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ns = 0
        self.due_ns = 0
        self.calls: list[Any] = []
        self.accounts: list[Any] = []
        self.lane: Any = record_class("Lane", (*LANE_FIELDS, *self.policy.lane_fields, *self.policy.params))()
        self.holding: dict[int, int] = {}
        self.granted_ns: dict[int, int] = {}
        self.trace = Trace()

    @initialize(
        weights=st.lists(st.integers(1, 8), min_size=1, max_size=4), ranks=st.permutations(range(4)), data=st.data()
    )
    def open_guard(self, weights: list[int], ranks: list[int], data: st.DataObject) -> None:
        """Open the guard with an account for each weight."""
        account_type = record_class("Account", (*ACCOUNT_FIELDS, *self.policy.account_fields))
        self.accounts = [account_type() for _ in weights]
        self.lane.slots = data.draw(st.sampled_from(self.slots))
        self.lane.accounts = len(weights)
        self.lane.weight_sum = sum(weights)
        for name, value in self.params.items():
            setattr(self.lane, name, value)
        for number, weight in enumerate(weights):
            self.guard_rules.open_account(self.accounts, number, weight, ranks[number])
        self.trace = Trace(
            engine="guard machine",
            guard=GuardFacts(
                policy=self.policy.name,
                params=tuple(self.params.items()),
                slots=self.lane.slots,
                work_conserving=promises_work_of(self.policy, self.params),
                accounts=tuple(Account(0, f"h{n}", w, ranks[n]) for n, w in enumerate(weights)),
            ),
        )
        self.pass_timers()

    @rule(
        wait_ns=st.integers(1, 30),
        leavers=st.lists(st.integers(0, 7), max_size=2),
        callers=st.lists(st.integers(0, 3), max_size=3),
    )
    def instant(self, wait_ns: int, leavers: list[int], callers: list[int]) -> None:
        """Let time pass, then calls return and others come in one instant, and then timers and grants, as an engine."""
        at_ns = self.now_ns + wait_ns
        while 0 <= self.due_ns < at_ns:
            self.now_ns = self.due_ns
            self.pass_timers()
            self.serve()
        self.now_ns = at_ns
        for which in leavers:
            if self.holding:
                self.release(sorted(self.holding)[which % len(self.holding)])
        for number in callers:
            self.call(number % len(self.accounts))
        self.pass_timers()
        self.serve()

    def pass_timers(self) -> None:
        """Let the policy do what is due now."""
        while 0 <= self.due_ns <= self.now_ns:
            self.due_ns = self.policy.timer(self.lane, self.accounts, self.due_ns)

    def note(self, kind: str, j: int) -> None:
        """Write an event of call `j` down."""
        self.trace.events.append(Event(self.now_ns, kind, j))

    def call(self, number: int) -> None:
        """Let an account call."""
        j = len(self.calls)
        record = _Call()
        record.deadline_ns = NO_DEADLINE
        self.calls.append(record)
        account = self.trace.guard.accounts[number]
        self.trace.calls[j] = Call(
            execute=j, thread=f"t{j}", handle=account.handle, weight=account.weight, rank=account.rank
        )
        self.note("call", j)
        self.guard_rules.call(self.lane, self.accounts, self.calls, number, j, self.now_ns, self.policy.wake)

    def serve(self) -> None:
        """Make every grant that can be made, as an engine does within an instant."""
        while self.guard_rules.can_grant(self.lane):
            j = self.guard_rules.grant(
                self.lane, self.accounts, self.calls, self.now_ns, self.policy.pick, self.policy.wake
            )
            if j == guard.NOBODY:
                return
            assert j != guard.NOT_WAITING, f"policy {self.policy.name} chose an account with nobody waiting"
            handle = self.trace.calls[j].handle
            self.holding[j] = next(n for n, a in enumerate(self.trace.guard.accounts) if a.handle == handle)
            self.granted_ns[j] = self.now_ns
            self.note("grant", j)
            self.note("submit", j)

    def release(self, j: int) -> None:
        """End a call; it is charged for as long as it held its slot."""
        self.note("return", j)
        self.note("release", j)
        number, cost_ns = self.holding.pop(j), self.now_ns - self.granted_ns[j]
        self.guard_rules.release(self.lane, self.accounts, number, cost_ns, self.now_ns, self.policy.charge)

    @invariant()
    def records_agree(self) -> None:
        """Hold the guard's own records against each other."""
        self.guard_rules.validate(self.lane, self.accounts, self.calls, self.policy.name)

    def teardown(self) -> None:
        """Serve everybody, then check what happened."""
        for _ in range(PATIENCE):
            if self.holding or self.lane.waiting:
                self.instant(1 if self.holding else max(1, self.due_ns - self.now_ns), [0], [])
        assert not self.lane.waiting, f"policy {self.policy.name} leaves {self.lane.waiting} accounts waiting for ever"
        check_trace(self.trace).require()


def promises_work_of(policy: type[Policy], params: dict[str, int]) -> bool:
    """Tell whether a policy promises that no slot is free while a call waits."""
    if policy.name in POLICIES:
        return promises_work(policy.name, params)
    return bool(getattr(policy, "work_conserving", False))


def guard_machine(
    policy: str | type[Policy],
    *,
    params: dict[str, int] | None = None,
    slots: tuple[int, ...] = (1, 2),
    rules: ModuleType | Any = guard,
) -> type[GuardMachine]:
    """Return the state machine that tests a policy; its ``TestCase`` is what a test module needs.

    Parameters
    ----------
    policy : str or class
        A built-in policy, ``module:Class``, or the class itself.
    params : dict, optional
        Its parameters; the others have their default.
    slots : tuple of int
        Numbers of slots to try.
    rules : module or object
        The guard's own functions, to test others in their place.

    Examples
    --------
    >>> from hypothesis import settings
    >>> from hypothesis.stateful import run_state_machine_as_test
    >>> run_state_machine_as_test(guard_machine("sfq"), settings=settings(max_examples=3))
    """
    chosen = policy_class(policy) if isinstance(policy, str) else policy
    values = policy_params(chosen, tuple((params or {}).items()))
    fields = {"policy": chosen, "params": values, "slots": slots, "guard_rules": rules}
    made: type[GuardMachine] = type(f"GuardMachine_{chosen.name}", (GuardMachine,), fields)
    brief(made)
    return made
