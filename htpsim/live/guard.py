"""A real guard: one lock and its conditions around the rules and policies of ``sched``, which are used as they are.

A thread registers the weight of its dialog handle in a ``threading.local`` and calls; the policy decides under the lock
who is granted, and whoever is granted is woken. The instants that are noted are those of the decisions: a call is
noted where the guard takes it in, a grant where the policy makes it, not where the thread wakes up. What waking takes
is a part of its own. Timers of a policy are caught up before anything else is decided, each at the instant it asked
for, so a policy cannot see that a real thread is never woken on time.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from htpsim.errors import InvariantError
from htpsim.live.stopping import Clock, Stop
from htpsim.results.columns import NEVER
from htpsim.sched import POLICIES, Policy, open_lane, policy_class, policy_params, watched
from htpsim.sched import guard as rules
from htpsim.sched.policy import CALL_FIELDS
from htpsim.spec.plan import NO_ACCOUNT, NO_HANDLE, AccountPlan, Plan
from htpsim.spec.records import record_class
from htpsim.units import NS_PER_S

Caller: Final[type[Any]] = record_class("Caller", (*CALL_FIELDS, "granted_ns", "account"))
"""What a guard keeps of one thread: it has one call out at a time."""


class Handles(threading.local):
    """What a thread carries: the dialog handle under which its weight is registered, if any."""

    handle: str = NO_HANDLE


class LiveLane:
    """One set of slots and its accounts."""

    def __init__(self, policy: type[Policy], params: dict[str, int], slots: int, accounts: Sequence[AccountPlan]):
        self.record, self.accounts = open_lane(policy, params, slots, [(a.weight, a.priority) for a in accounts])
        self.grants = 0
        self.timer_due_ns = 0


class LiveGuard:
    """One process's guard, for any number of threads.

    Parameters
    ----------
    plan : Plan
        The scenario, numbered: policy, slots and accounts.
    process : int
        Whose guard it is.
    clock, stop
        Time of the run, and its end.
    check : bool
        Validate the records after every action.
    """

    def __init__(self, plan: Plan, process: int, clock: Clock, stop: Stop, *, check: bool = False) -> None:
        spec = plan.scenario.guard
        policy = policy_class(spec.policy)
        self.policy = policy if spec.policy in POLICIES else watched(policy)
        self.process = process
        self.clock = clock
        self.stop = stop
        self.check = check
        self.lock = threading.Lock()
        self.opened = [account for account in plan.accounts if account.process == process]
        lanes = plan.scenario.device.cores if spec.slots_per == "core" else 1
        params = policy_params(policy, spec.params)
        self.lanes = [LiveLane(self.policy, params, plan.slots(), self.opened) for _ in range(lanes)]
        self.callers: list[Any] = []
        self.conditions: list[threading.Condition] = []
        self.waiting: set[int] = set()
        """callers that wait for a grant; not those who have it and have not been woken yet"""
        stop.on_raise(self._wake_all)

    def join(self) -> int:
        """Let one more thread call; return its number."""
        with self.lock:
            self.callers.append(Caller())
            self.conditions.append(threading.Condition(self.lock))
            return len(self.callers) - 1

    def weigh(self, sums: Sequence[int | None], now_ns: int) -> int:
        """Let only those count in a lane's sum of weights who can call in it, from an instant on; return it."""
        with self.lock:
            self._pass_time(now_ns - 1)
            for lane, weight_sum in zip(self.lanes, sums, strict=True):
                if weight_sum:
                    lane.record.weight_sum = weight_sum
            return now_ns

    def acquire(self, lane: int, account: int, caller: int, deadline_ns: int) -> tuple[int, int]:
        """Wait for a slot; return when the call was taken in and when it was granted.

        Raises
        ------
        Stopped
            When the run ends first.
        """
        own = self.callers[caller]
        with self.lock:
            called_ns = self.clock()
            self._pass_time(called_ns)
            shared = self.lanes[lane]
            own.deadline_ns, own.granted_ns, own.account = deadline_ns, NEVER, account
            rules.call(shared.record, shared.accounts, self.callers, account, caller, called_ns, self.policy.wake)
            condition = self.conditions[caller]
            self.waiting.add(caller)
            try:
                self._grant(called_ns, caller)
                while own.granted_ns == NEVER:
                    self.stop.check()
                    condition.wait(self._until_timer())
                    if own.granted_ns == NEVER:
                        now_ns = self.clock()
                        if self._pass_time(now_ns):
                            self._grant(now_ns, caller)
            finally:
                self.waiting.discard(caller)
            return called_ns, own.granted_ns

    def release(self, lane: int, account: int, cost_ns: int) -> int:
        """Give a slot back, charge its use, and let the policy grant; return the instant."""
        with self.lock:
            now_ns = self.clock()
            self._pass_time(now_ns)
            shared = self.lanes[lane]
            rules.release(shared.record, shared.accounts, account, cost_ns, now_ns, self.policy.charge)
            self._grant(now_ns, NEVER)
            return now_ns

    def _grant(self, now_ns: int, caller: int) -> None:
        """Make every grant that is possible, and wake those granted but for the caller itself."""
        for lane in self.lanes:
            while True:
                j = rules.grant(
                    lane.record, lane.accounts, self.callers, now_ns, self.policy.pick, self.policy.wake
                )  # fmt: skip
                if j == rules.NOT_WAITING:
                    raise InvariantError(
                        f"policy {self.policy.name} chose an account with nobody waiting at {now_ns} ns"
                    )
                if j < 0:
                    break
                lane.grants += 1
                self.callers[j].granted_ns = now_ns
                self.waiting.discard(j)
                if j != caller:
                    self.conditions[j].notify()
            if self.check:
                rules.validate(lane.record, lane.accounts, self.callers, self.policy.name)

    def _pass_time(self, now_ns: int) -> bool:
        """Let the timers that are due come, each at its instant; tell whether there was any."""
        any_due = False
        for lane in self.lanes:
            while NEVER != lane.timer_due_ns <= now_ns:
                any_due = True
                lane.timer_due_ns = self.policy.timer(lane.record, lane.accounts, lane.timer_due_ns)
        return any_due

    def _until_timer(self) -> float | None:
        """Return how long [s] a waiting thread may sleep before a timer is due."""
        due = [lane.timer_due_ns for lane in self.lanes if lane.timer_due_ns != NEVER]
        return max(0, min(due) - self.clock()) / NS_PER_S if due else None

    def _wake_all(self) -> None:
        with self.lock:
            for condition in self.conditions:
                condition.notify_all()

    def settled(self) -> tuple[int, int]:
        """Return how many threads wait for a grant, and how many slots are held."""
        with self.lock:
            return len(self.waiting), sum(lane.record.holders for lane in self.lanes)


class Slot:
    """A slot as a thread holds it: taken on entering the scope, given back and charged on leaving it, however."""

    __slots__ = (
        "account", "called_ns", "caller", "cost_ns", "deadline_ns", "granted_ns", "guard", "lane", "released_ns",
    )  # fmt: skip

    def __init__(self, guard: LiveGuard, lane: int, account: int, caller: int, deadline_ns: int) -> None:
        self.guard = guard
        self.lane = lane
        self.account = account
        self.caller = caller
        self.deadline_ns = deadline_ns
        self.cost_ns = 0
        """to be set before leaving: time on the core"""
        self.called_ns = self.granted_ns = self.released_ns = NEVER

    def __enter__(self) -> Slot:
        self.called_ns, self.granted_ns = self.guard.acquire(self.lane, self.account, self.caller, self.deadline_ns)
        return self

    def __exit__(self, *error: object) -> None:
        self.released_ns = self.guard.release(self.lane, self.account, self.cost_ns)


class Weights:
    """Which account a thread's call is charged to: looked up in what the thread itself carries."""

    def __init__(self, plan: Plan) -> None:
        self.handles = Handles()
        self.numbers = {(a.process, a.name.partition("/")[2]): n for n, a in enumerate(plan.accounts)}

    def register(self, handle: str) -> None:
        """Register a dialog handle on the calling thread."""
        self.handles.handle = handle

    @contextmanager
    def during(self, handle: str) -> Iterator[None]:
        """Carry a handle for a while."""
        before, self.handles.handle = self.handles.handle, handle
        try:
            yield
        finally:
            self.handles.handle = before

    def account(self, process: int, owner: str) -> int:
        """Return the account that the calling thread's handle names, that of calls without one, or NO_ACCOUNT."""
        handle = self.handles.handle
        if handle != NO_HANDLE and (process, handle) in self.numbers:
            return self.numbers[process, handle]
        return self.numbers.get((process, f"{owner} unregistered"), NO_ACCOUNT)
