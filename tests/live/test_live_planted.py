"""Bugs planted in the testbed are noticed by the rules that check its traces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from htpsim.live.cores import Job, LiveCore
from htpsim.live.guard import LiveGuard, Slot
from htpsim.results.log import RunLog
from htpsim.sched import guard as rules
from htpsim.spec import Device, Guard, Scenario
from tests.faults.planted import Plant, after, notices, swap
from tests.live.bench import checked, play_until, scene, vlm

BUSY = 40
"""GraphExecutes in which a bug must have shown itself."""
NON_PREEMPTIVE = Device(yield_latency_ns=10**10)


def held_to(scenario: Scenario, *names: str) -> Callable[[], None]:
    """Return a check: run for real, and hold the trace to some rules."""

    def check() -> None:
        log: RunLog = play_until(lambda log: len(log.executes) >= BUSY, scenario, check=False).log
        report = checked(log, names)
        assert set(report.checked) == set(names), report.skipped
        assert report.ok, report.violations[:3]

    return check


def grant_in_two_steps(self: LiveGuard, now_ns: int, caller: int) -> None:
    """Grant whoever was called last: what a guard does whose queue is a stack."""
    for lane in self.lanes:
        while rules.can_grant(lane.record):
            newest = max(
                (i for i, a in enumerate(lane.accounts) if a.waiting), key=lambda i: lane.accounts[i].called_ns
            )
            j = rules.grant(lane.record, lane.accounts, self.callers, now_ns, lambda *_, n=newest: n, self.policy.wake)
            self.callers[j].granted_ns = now_ns
            if j != caller:
                self.conditions[j].notify()


def let_in_one_more(self: LiveGuard, lane: int, account: int, caller: int, deadline_ns: int) -> tuple[int, int]:
    """Let a thread through without asking."""
    now_ns = self.clock()
    with self.lock:
        self.lanes[lane].record.holders += 1
        self.lanes[lane].accounts[account].held += 1
        return now_ns, now_ns


def lose_the_weight(self: LiveGuard, lane: int, account: int, *_: Any) -> None:
    """Forget a weight once its thread was woken."""
    self.lanes[lane].accounts[account].weight = 1


def choose_the_lowest(self: LiveCore) -> Job | None:
    """Choose by the priority upside down."""
    heads = [queue[0] for queue in self.queues.values() if queue]
    return max(heads, key=Job.order) if heads else None


def forget_to_release(self: Slot, *error: object) -> None:
    """Leave without giving the slot back: once, so that another slot keeps the run going."""
    if self.guard.forgot:  # type: ignore[attr-defined]
        self.released_ns = self.guard.release(self.lane, self.account, self.cost_ns)
        return
    self.guard.forgot = True  # type: ignore[attr-defined]
    self.released_ns = self.guard.clock()


FOUR = tuple(vlm(f"vlm{n}", guard_priority=n % 2) for n in range(4))
HEAVY = (vlm("vlm0", weight=8), vlm("vlm1"), vlm("vlm2"))
LEVELS = tuple(
    vlm(f"vlm{n}", vit_path="qnn", llm_path="qnn", llm_priority="HIGH" if n % 2 else "NORMAL") for n in range(5)
)


def forgetful(patch: pytest.MonkeyPatch) -> None:
    """Plant a guard that forgets."""
    patch.setattr(LiveGuard, "forgot", False, raising=False)
    patch.setattr(Slot, "__exit__", forget_to_release)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scenario", "rule", "plants"),
    [
        (scene(*FOUR, guard=Guard(policy="fifo", slots=1)), "guard-order",
         [swap(LiveGuard, "_grant", grant_in_two_steps)]),
        (scene(*FOUR, guard=Guard(policy="priority", slots=1)), "guard-order",
         [swap(LiveGuard, "_grant", grant_in_two_steps)]),
        (scene(*HEAVY, guard=Guard(policy="sfq", slots=1)), "guard-order",
         [after(LiveGuard, "acquire", lose_the_weight)]),
        (scene(*HEAVY, guard=Guard(policy="stride", slots=1)), "guard-order",
         [after(LiveGuard, "acquire", lose_the_weight)]),
        (scene(*FOUR), "guard-exclusion", [swap(LiveGuard, "acquire", let_in_one_more)]),
        (scene(*FOUR, guard=Guard(slots=2)), "guard-work", [forgetful]),
        (scene(*LEVELS, device=NON_PREEMPTIVE), "running-set", [swap(LiveCore, "choose", choose_the_lowest)]),
    ],
)  # fmt: skip
def test_the_rule_notices_the_bug(scenario: Scenario, rule: str, plants: list[Plant]) -> None:
    notices(held_to(scenario, rule), *plants)
