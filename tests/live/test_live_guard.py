"""The guard under real threads: slots, order, timers, a thread's own weight, and what it leaves behind."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from htpsim.live.guard import LiveGuard, Slot, Weights
from htpsim.live.stopping import Stop, Stopped, clock_from_now
from htpsim.sched import POLICIES
from htpsim.sched.guard import validate
from htpsim.sched.policy import NO_DEADLINE
from htpsim.spec import Guard
from htpsim.spec.plan import Plan, make_plan
from tests.live.bench import scene, vlm, wait_until

WEIGHTS = (4, 2, 1)


def plan_of(policy: str, slots: int = 1, **params: int) -> Plan:
    instances = [vlm(f"vlm{n}", weight=weight, guard_priority=n) for n, weight in enumerate(WEIGHTS)]
    return make_plan(scene(*instances, guard=Guard(policy=policy, slots=slots, params=tuple(params.items()))))


def guard_of(plan: Plan) -> LiveGuard:
    return LiveGuard(plan, 0, clock_from_now(), Stop(), check=True)


def start(*targets: Callable[[], None]) -> list[threading.Thread]:
    threads = [threading.Thread(target=target, daemon=True) for target in targets]
    for thread in threads:
        thread.start()
    return threads


def join(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive(), "it hangs"


@pytest.mark.parametrize("policy", sorted(POLICIES))
@pytest.mark.parametrize("slots", [1, 2])
def test_no_more_threads_than_slots_hold_one_and_everybody_is_served(policy: str, slots: int) -> None:
    guard = guard_of(plan_of(policy, slots))
    inside, most, served, count = 0, 0, [0, 0, 0], threading.Lock()

    def work(index: int, caller: int) -> None:
        nonlocal inside, most
        for _ in range(40):
            with Slot(guard, 0, index, caller, NO_DEADLINE) as slot:
                with count:
                    inside += 1
                    most = max(most, inside)
                slot.cost_ns = 1_000 * (index + 1)
                with count:
                    inside -= 1
                    served[index] += 1

    callers = [guard.join() for _ in range(3)]
    join(start(*(lambda n=n: work(n, callers[n]) for n in range(3))))  # type: ignore[misc]

    assert most <= slots
    assert served == [40, 40, 40]
    assert guard.settled() == (0, 0)
    validate(guard.lanes[0].record, guard.lanes[0].accounts, guard.callers, policy)


def test_whoever_waits_is_granted_in_the_order_of_the_policy_not_of_the_threads() -> None:
    guard = guard_of(plan_of("priority"))
    order: list[int] = []
    callers = [guard.join() for _ in range(3)]

    def ask(index: int) -> None:
        with Slot(guard, 0, index, callers[index], NO_DEADLINE):
            order.append(index)

    with Slot(guard, 0, 0, guard.join(), NO_DEADLINE):
        threads = []
        for index in range(3):
            threads += start(lambda n=index: ask(n))  # type: ignore[misc]
            wait_until(lambda n=index: guard.settled()[0] == n + 1)  # type: ignore[misc]
    join(threads)

    assert order == [2, 1, 0]


def test_a_slot_is_given_back_and_charged_whatever_happens_within_it() -> None:
    guard = guard_of(plan_of("sfq"))

    def die_within() -> None:
        with Slot(guard, 0, 1, guard.join(), NO_DEADLINE) as slot:
            slot.cost_ns = 7
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        die_within()

    assert guard.settled() == (0, 0)
    assert guard.lanes[0].accounts[1].charged_ns == 7


def test_a_timer_that_is_overslept_comes_at_its_instant_all_the_same() -> None:
    period_ns = 3_000_000
    guard = guard_of(plan_of("quota", period_ns=period_ns, idle_over_budget=1))
    caller = guard.join()
    for _ in range(2):
        with Slot(guard, 0, 2, caller, NO_DEADLINE) as slot:
            slot.cost_ns = 10 * period_ns  # far beyond its budget: the next waits some periods, and no release comes

    assert slot.granted_ns > slot.called_ns
    assert guard.lanes[0].timer_due_ns % period_ns == 0
    assert slot.granted_ns >= 10 * period_ns


def test_a_thread_that_waits_is_let_go_when_the_run_is_over() -> None:
    plan = plan_of("fifo")
    stop = Stop()
    guard = LiveGuard(plan, 0, clock_from_now(), stop)
    ended: list[str] = []
    holder, waiter = guard.join(), guard.join()

    def wait() -> None:
        try:
            guard.acquire(0, 1, waiter, NO_DEADLINE)
        except Stopped:
            ended.append("let go")

    with Slot(guard, 0, 0, holder, NO_DEADLINE):
        threads = start(wait)
        wait_until(lambda: guard.settled()[0] == 1)
        stop.raise_()
        join(threads)

    assert ended == ["let go"]


def test_who_has_been_granted_does_not_wait_any_more_however_late_its_thread_wakes() -> None:
    """The watch for deadlocks looks at who waits; on a busy machine a thread may sleep on for long after its grant."""
    guard = guard_of(plan_of("fifo"))
    holder, waiter = guard.join(), guard.join()
    woken = guard.conditions[waiter].notify
    guard.conditions[waiter].notify = lambda n=1: None  # type: ignore[method-assign]

    def ask() -> None:
        with Slot(guard, 0, 1, waiter, NO_DEADLINE):
            pass

    with Slot(guard, 0, 0, holder, NO_DEADLINE):
        threads = start(ask)
        wait_until(lambda: guard.settled()[0] == 1)

    assert guard.settled() == (0, 1)
    with guard.lock:
        woken()
    join(threads)
    assert guard.settled() == (0, 0)


def test_a_weight_belongs_to_the_thread_that_registered_it() -> None:
    plan = plan_of("sfq")
    weights, found = Weights(plan), {}

    def look(name: str, registered: bool) -> None:
        if registered:
            weights.register(name)
        time.sleep(0.002)
        found[name, registered] = weights.account(0, name)

    join(start(*(lambda n=n: look(f"vlm{n}", True) for n in range(3)), lambda: look("vlm0", False)))  # type: ignore[misc]

    assert [found[f"vlm{n}", True] for n in range(3)] == [0, 1, 2]
    assert found["vlm0", False] == -1


def test_a_handle_is_carried_for_a_query_only_where_that_is_the_rule() -> None:
    scenario = scene(guard=Guard(slots=1, registration="query"))
    weights = Weights(make_plan(scenario))

    outside = weights.account(0, "vlm0")
    with weights.during("vlm0"):
        within = weights.account(0, "vlm0")

    names = [account.name for account in make_plan(scenario).accounts]
    assert names[outside] == "process 0/vlm0 unregistered"
    assert names[within] == "process 0/vlm0"
    assert weights.account(0, "vlm0") == outside
