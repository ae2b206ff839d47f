"""The guard of one process in SimPy: when a grant is made, and when a policy's timer is due."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simpy.events import Event

from htpsim.errors import InvariantError
from htpsim.results.columns import NEVER
from htpsim.sched import Policy
from htpsim.sched import guard as rules
from htpsim.sched.policy import ACCOUNT_FIELDS, LANE_FIELDS
from htpsim.sim.clock import GRANT, TIMER, Clock, rank
from htpsim.sim.records import JobPool
from htpsim.spec.plan import AccountPlan
from htpsim.spec.records import record_class


class Lane:
    """One set of slots with its own clock and its own records of every account of the process."""

    def __init__(self, policy: type[Policy], params: dict[str, int], slots: int, accounts: list[AccountPlan]) -> None:
        lane_type = record_class("LaneRecord", (*LANE_FIELDS, *policy.lane_fields, *policy.params))
        account_type = record_class("Account", (*ACCOUNT_FIELDS, *policy.account_fields))
        self.record: Any = lane_type()
        self.accounts: list[Any] = [account_type() for _ in accounts]
        self.record.slots = slots
        self.record.accounts = len(accounts)
        self.record.weight_sum = sum(a.weight for a in accounts)
        for name, value in params.items():
            setattr(self.record, name, value)
        self.grants = 0
        for i, account in enumerate(accounts):
            rules.open_account(self.accounts, i, account.weight, account.priority)


class GuardShell:
    """One process's guard; ``granted`` is told of every call that gets its slot."""

    def __init__(
        self,
        env: Clock,
        process: int,
        policy: type[Policy],
        lanes: list[Lane],
        pool: JobPool,
        granted: Callable[[int], None],
        *,
        check: bool = False,
    ) -> None:
        self.env = env
        self.process = process
        self.policy = policy
        self.jobs = pool.jobs
        self.granted = granted
        self.check = check
        self.lanes = lanes
        self.timers_due_ns = [NEVER] * len(lanes)
        """for each lane the instant for which its policy asked, or NEVER"""
        self._rank = rank(GRANT, process)
        self._pending = False
        for number in range(len(lanes)):
            self._set_timer(number, 0)

    def _set_timer(self, number: int, at_ns: int) -> None:
        self.timers_due_ns[number] = at_ns
        event = self.env.at(at_ns - self.env.now, rank(TIMER, self.process, number), self._timer)
        event.lane = number  # type: ignore[attr-defined]

    def _timer(self, event: Event) -> None:
        """Let the policy do what is due."""
        number: int = event.lane  # type: ignore[attr-defined]
        lane, now = self.lanes[number], self.env.now
        self.timers_due_ns[number] = NEVER
        following = self.policy.timer(lane.record, lane.accounts, now)
        if following >= 0:
            self._set_timer(number, following)
        self._ask_for_grant(lane)

    def call(self, lane: Lane, account: int, j: int) -> None:
        """Let graphExecute `j` wait for a slot of `lane`."""
        rules.call(lane.record, lane.accounts, self.jobs, account, j, self.env.now, self.policy.wake)
        self._ask_for_grant(lane)

    def release(self, lane: Lane, account: int, cost_ns: int) -> None:
        """Give back a slot and charge its use."""
        rules.release(lane.record, lane.accounts, account, cost_ns, self.env.now, self.policy.charge)
        self._ask_for_grant(lane)

    def _ask_for_grant(self, lane: Lane) -> None:
        if not self._pending and rules.can_grant(lane.record):
            self._pending = True
            self.env.soon(self._rank, self._grant)
        if self.check:
            rules.validate(lane.record, lane.accounts, self.jobs, self.policy.name)

    def _grant(self) -> None:
        """Make one grant, and ask for the next if one more is possible."""
        self._pending = False
        for lane in self.lanes:
            if not rules.can_grant(lane.record):
                continue
            j = self._choose(lane)
            if j != rules.NOBODY:
                if any(rules.can_grant(other.record) for other in self.lanes):
                    self._pending = True
                    self.env.soon(self._rank, self._grant)
                self.granted(j)
                return

    def _choose(self, lane: Lane) -> int:
        """Ask the policy, and check its answer: it may be a user's own."""
        j = rules.grant(lane.record, lane.accounts, self.jobs, self.env.now, self.policy.pick, self.policy.wake)
        if j == rules.NOT_WAITING:
            raise InvariantError(f"policy {self.policy.name} chose an account with nobody waiting at {self.env.now} ns")
        if j != rules.NOBODY:
            lane.grants += 1
        if self.check:
            rules.validate(lane.record, lane.accounts, self.jobs, self.policy.name)
        return j
