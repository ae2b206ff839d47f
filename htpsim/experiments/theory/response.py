"""Response-time analysis of fixed priorities: how late a periodic task can finish. Whole numbers of any unit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from htpsim.errors import ScenarioError


@dataclass(frozen=True, slots=True)
class Task:
    """A task: comes at least `period_ns` apart, runs for at most `cost_ns`; the first in a list is the highest."""

    cost_ns: int
    period_ns: int


def non_preemptive_responses(tasks: Sequence[Task]) -> list[int]:
    """Return the worst response of each task when a running one is never interrupted.

    For every instance q in the busy period: w(q) = B + q C + sum over higher j of (floor(w(q) / T_j) + 1) C_j, with B
    the longest lower cost, and R = max of w(q) - q T + C. Looking at the first instance only is the refuted analysis.

    Source: Davis, Burns, Bril, Lukkien, Real-Time Systems 35 (2007), doi 10.1007/s11241-007-9012-7.

    Raises
    ------
    ScenarioError
        When the tasks together want the core all the time or more: there is no bound then.

    Examples
    --------
    >>> non_preemptive_responses([Task(10, 25), Task(10, 35), Task(10, 35)])
    [20, 30, 35]
    """
    _refuse_overload(tasks)
    return [_worst(tasks, i) for i in range(len(tasks))]


def _worst(tasks: Sequence[Task], i: int) -> int:
    own, higher = tasks[i], tasks[:i]
    blocking_ns = max((task.cost_ns for task in tasks[i + 1 :]), default=0)
    worst_ns = 0
    for q in range(-(-_busy_period(tasks[: i + 1], blocking_ns) // own.period_ns)):
        wait_ns, before_ns = blocking_ns + q * own.cost_ns, -1
        while wait_ns != before_ns:
            before_ns = wait_ns
            arrived_ns = sum((before_ns // task.period_ns + 1) * task.cost_ns for task in higher)
            wait_ns = blocking_ns + q * own.cost_ns + arrived_ns
        worst_ns = max(worst_ns, wait_ns - q * own.period_ns + own.cost_ns)
    return worst_ns


def _busy_period(tasks: Sequence[Task], blocking_ns: int) -> int:
    """Return the longest time for which the core is busy with these tasks after one blocked them."""
    length_ns, before_ns = blocking_ns + sum(task.cost_ns for task in tasks), -1
    while length_ns != before_ns:
        before_ns = length_ns
        length_ns = blocking_ns + sum(-(-before_ns // task.period_ns) * task.cost_ns for task in tasks)
    return length_ns


def preemptive_responses(tasks: Sequence[Task]) -> list[int]:
    """Return the worst response of each task when a higher one interrupts at once: R = C + sum of ceil(R / T_j) C_j.

    Holds while responses stay within periods. Source: Joseph, Pandya, Computer Journal 29 (1986).

    >>> preemptive_responses([Task(3, 7), Task(3, 12), Task(5, 20)])
    [3, 6, 20]
    """
    _refuse_overload(tasks)
    responses = []
    for i, task in enumerate(tasks):
        response_ns, before_ns = task.cost_ns, -1
        while response_ns != before_ns:
            before_ns = response_ns
            response_ns = task.cost_ns + sum(-(-before_ns // t.period_ns) * t.cost_ns for t in tasks[:i])
        responses.append(response_ns)
    return responses


def edf_schedulable(tasks: Sequence[Task]) -> bool:
    """Tell whether uninterrupted earliest deadline first meets every deadline (= period), whenever tasks come.

    Utilisation at most 1 and, periods sorted, C_i + sum over shorter T_j of floor((L - 1) / T_j) C_j <= L for each i
    and every whole T_1 < L < T_i. Source: Jeffay, Stanat, Martel, IEEE RTSS 1991.

    >>> edf_schedulable([Task(1, 4), Task(3, 8)]), edf_schedulable([Task(1, 4), Task(5, 8)])
    (True, False)
    """
    ordered = sorted(tasks, key=lambda task: task.period_ns)
    if not fits(ordered):
        return False
    for i, task in enumerate(ordered):
        # The left side grows only just above a multiple of a period, so those lengths decide.
        steps = {m * t.period_ns + 1 for t in ordered[:i] for m in range(1, -(-task.period_ns // t.period_ns) + 1)}
        for length in {ordered[0].period_ns + 1, *steps}:
            if ordered[0].period_ns < length < task.period_ns:
                demand = task.cost_ns + sum((length - 1) // t.period_ns * t.cost_ns for t in ordered[:i])
                if demand > length:
                    return False
    return True


def fits(tasks: Sequence[Task]) -> bool:
    """Tell whether the tasks want at most all of the core, in whole numbers.

    >>> fits([Task(1, 2), Task(1, 2)]), fits([Task(1, 2), Task(2, 3)])
    (True, False)
    """
    whole = 1
    for task in tasks:
        whole *= task.period_ns
    return sum(task.cost_ns * whole // task.period_ns for task in tasks) <= whole


def _refuse_overload(tasks: Sequence[Task]) -> None:
    utilisation = sum(task.cost_ns / task.period_ns for task in tasks)
    if utilisation >= 1:
        raise ScenarioError(f"tasks: got a utilisation of {utilisation:.3f}, expected less than 1 for a bound to exist")
