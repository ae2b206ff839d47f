"""The guard of one process in SimPy: when a grant is made, and when a policy's timer is due."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simpy.events import Event

from htpsim.errors import InvariantError
from htpsim.results.columns import NEVER
from htpsim.sched import Policy, open_lane
from htpsim.sched import guard as rules
from htpsim.sim.clock import TIMER, Clock, place
from htpsim.spec.plan import AccountPlan


class Lane:
    """One set of slots with its own clock and its own records of every account of the process."""

    def __init__(self, guard: GuardShell, params: dict[str, int], slots: int, accounts: list[AccountPlan]) -> None:
        policy = guard.policy
        self.guard = guard
        self.env = guard.env
        self.jobs = guard.jobs
        self.wanted, self.check = guard.wanted, guard.check
        self.wake, self.charge = policy.wake, policy.charge
        self.record, self.accounts = open_lane(policy, params, slots, [(a.weight, a.priority) for a in accounts])
        self.grants = 0
        self.timer_due_ns = NEVER
        """the instant for which the policy asked"""

    def call(self, account: int, j: int) -> None:
        """Let graphExecute `j` wait for a slot."""
        if rules.call(self.record, self.accounts, self.jobs, account, j, self.env._now, self.wake):
            self.env.wanted |= self.wanted
        if self.check:
            self.validate()

    def release(self, account: int, cost_ns: int) -> None:
        """Give back a slot and charge its use."""
        if rules.release(self.record, self.accounts, account, cost_ns, self.env._now, self.charge):
            self.env.wanted |= self.wanted
        if self.check:
            self.validate()

    def validate(self) -> None:
        """Raise InvariantError unless the lane's records agree."""
        rules.validate(self.record, self.accounts, self.jobs, self.guard.policy.name)


class GuardShell:
    """One process's guard; ``granted`` is told of every call that gets its slot, and of the time this takes."""

    def __init__(
        self,
        env: Clock,
        process: int,
        policy: type[Policy],
        jobs: list[Any],
        granted: Callable[[int, int], None],
        overhead_ns: int,
        *,
        check: bool = False,
    ) -> None:
        self.env = env
        self.process = process
        self.policy = policy
        self.jobs = jobs
        self.granted = granted
        self.overhead_ns = overhead_ns
        self.check = check
        self.lanes: list[Lane] = []
        self.wanted = env.bit(self._grant)

    def add_lane(self, params: dict[str, int], slots: int, accounts: list[AccountPlan]) -> None:
        """Add a set of slots, and let the policy's timer come at time 0."""
        lane = Lane(self, params, slots, accounts)
        self.lanes.append(lane)
        self._set_timer(len(self.lanes) - 1, lane, 0)

    def _set_timer(self, number: int, lane: Lane, at_ns: int) -> None:
        lane.timer_due_ns = at_ns
        event = self.env.at(at_ns - self.env.now, place(TIMER, self.process, number), self._timer)
        event.lane = number  # type: ignore[attr-defined]

    def _timer(self, event: Event) -> None:
        """Let the policy do what is due."""
        number: int = event.lane  # type: ignore[attr-defined]
        lane = self.lanes[number]
        lane.timer_due_ns = NEVER
        following = self.policy.timer(lane.record, lane.accounts, self.env.now)
        if following >= 0:
            self._set_timer(number, lane, following)
        if rules.can_grant(lane.record):
            self.env.wanted |= self.wanted

    def _grant(self) -> None:
        """Make one grant, and ask for the next if one more is possible."""
        policy, now = self.policy, self.env._now
        for lane in self.lanes:
            j = rules.grant(lane.record, lane.accounts, self.jobs, now, policy.pick, policy.wake)
            if self.check:
                lane.validate()
            if j >= 0:
                lane.grants += 1
                for other in self.lanes:
                    if rules.can_grant(other.record):
                        self.env.wanted |= self.wanted
                self.granted(j, self.overhead_ns)
                return
            if j == rules.NOT_WAITING:
                raise InvariantError(f"policy {policy.name} chose an account with nobody waiting at {now} ns")
