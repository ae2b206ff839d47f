"""The formulas agree with each other, with what is published, and with brute force."""

from __future__ import annotations

from math import lcm

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from htpsim.errors import ScenarioError
from htpsim.experiments.theory import closed, queues
from htpsim.experiments.theory.chains import closed_throughput_variance, mmc_wait_variance, priority_wait_variance
from htpsim.experiments.theory.path_oracles import GOLDEN, waits_in_order
from htpsim.experiments.theory.response import (
    Task,
    edf_schedulable,
    fits,
    non_preemptive_responses,
    preemptive_responses,
)
from htpsim.experiments.theory.variance import mg1_wait_variance
from tests.policies.harness import Client, drive

MS = 1_000_000


@st.composite
def classes(draw: st.DrawFn) -> tuple[list[float], list[float], list[float]]:
    """Draw rates and moments of a stable queue."""
    n = draw(st.integers(1, 4))
    m1 = draw(st.lists(st.floats(0.1, 5), min_size=n, max_size=n))
    cv2 = draw(st.lists(st.floats(0, 4), min_size=n, max_size=n))
    shares = draw(st.lists(st.floats(0.05, 0.9 / n), min_size=n, max_size=n))
    return [s / m for s, m in zip(shares, m1, strict=True)], m1, [m**2 * (1 + c) for m, c in zip(m1, cv2, strict=True)]


@given(classes())
def test_priority_obeys_the_conservation_law(given_classes: tuple[list[float], list[float], list[float]]) -> None:
    rates, m1, m2 = given_classes

    waits = queues.cobham_waits(rates, m1, m2)

    weighed = sum(r * m * w for r, m, w in zip(rates, m1, waits, strict=True))
    assert weighed == pytest.approx(queues.conserved(rates, m1, m2))


@given(classes())
def test_one_class_is_the_queue_in_order_of_arrival(
    given_classes: tuple[list[float], list[float], list[float]],
) -> None:
    (rate, *_), (m1, *_), (m2, *_) = given_classes
    wait = queues.mg1_wait(rate, m1, m2)

    assert queues.cobham_waits([rate], [m1], [m2])[0] == pytest.approx(wait)
    assert queues.preemptive_responses([rate], [m1], [m2])[0] == pytest.approx(wait + m1)


def test_published_figures() -> None:
    # A queue solver's own example: two classes, waits 1.53125 and 2.0625 with service counted in.
    assert queues.mm1_wait(0.8, 1.0) == pytest.approx(4.0)
    assert queues.md1_wait(0.8, 1.0) == pytest.approx(2.0)
    # Erlang's C for 2 servers offered 1.5 and 10 offered 8.
    assert queues.erlang_c(2, 1.5) == pytest.approx(0.642857, abs=1e-6)
    assert queues.erlang_c(10, 8.0) == pytest.approx(0.409180, abs=1e-6)
    # Decode streams of a phone: 31.9 ms on the accelerator, 6.9 ms on the host (fitted there to N = 1 and 3).
    rates = [1_000 * closed.mva([31.9], 6.9, n).throughput for n in (1, 2, 3)]
    assert rates == pytest.approx([25.8, 30.8, 31.35], abs=0.35)


@given(st.integers(1, 12), st.floats(0.1, 5), st.floats(0.1, 20))
def test_mean_value_analysis_is_the_machine_repair_model(customers: int, service: float, think: float) -> None:
    one, other = closed.mva([service], think, customers), closed.machine_repair(customers, service, think)

    assert one.throughput == pytest.approx(other.throughput)
    assert one.response == pytest.approx(other.response)
    assert one.throughput <= closed.throughput_bound([service], think, customers) + 1e-12


def test_an_overloaded_queue_has_no_mean() -> None:
    with pytest.raises(ScenarioError, match=r"utilisation: got 1"):
        queues.mm1_wait(1.0, 1.0)
    with pytest.raises(ScenarioError, match="utilisation"):
        non_preemptive_responses([Task(2, 3), Task(1, 3)])


# --- variances ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rho", [0.2, 0.5, 0.8])
def test_two_ways_to_the_variance_of_the_mean_wait_agree(rho: float) -> None:
    daley = rho * (2 + 5 * rho - 4 * rho**2 + rho**3) / (1 - rho) ** 4

    assert mg1_wait_variance(rho, [1, 2, 6, 24]) == pytest.approx(daley)
    assert mmc_wait_variance(1, rho, 1.0) == pytest.approx(daley, rel=1e-3)


def test_a_class_alone_has_the_variance_of_its_queue() -> None:
    alone = priority_wait_variance(1, (0.5, 1e-9), 1.0, 0)

    assert alone == pytest.approx(mg1_wait_variance(0.5, [1, 2, 6, 24]), rel=1e-3)


def test_a_busy_loop_completes_as_a_poisson_process() -> None:
    assert closed_throughput_variance(6, 1.0, 0.01) == pytest.approx(1.0, abs=0.01)


# --- recursion ----------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 30)), min_size=1, max_size=60), st.integers(1, 3))
def test_the_recursion_is_what_fifo_does(jobs: list[tuple[int, int]], servers: int) -> None:
    at, arrivals = 0, []
    for gap, _ in jobs:
        at += gap
        arrivals.append(at)
    costs = [cost for _, cost in jobs]

    trace = drive("fifo", [Client(tuple(costs), arrivals_ns=tuple(arrivals))], slots=servers, grants=1_000)

    assert [s.wait_ns for s in trace.served] == waits_in_order(arrivals, costs, servers)


# --- response times -----------------------------------------------------------------------------------------------


def test_the_golden_example_and_the_refuted_analysis() -> None:
    assert non_preemptive_responses(GOLDEN) == [2 * MS, 3 * MS, 3_500_000]
    assert first_instances(GOLDEN) == [2 * MS, 3 * MS, 3 * MS]
    assert preemptive_responses([Task(3, 7), Task(3, 12), Task(5, 20)]) == [3, 6, 20]


def first_instances(tasks: tuple[Task, ...]) -> list[int]:
    """Return what the analysis gave that looked at the first instance of a busy period only."""
    worst = []
    for i, own in enumerate(tasks):
        blocking = max((t.cost_ns for t in tasks[i + 1 :]), default=0)
        wait, before = blocking, -1
        while wait != before:
            before = wait
            wait = blocking + sum((before // t.period_ns + 1) * t.cost_ns for t in tasks[:i])
        worst.append(wait + own.cost_ns)
    return worst


task_sets = st.lists(st.builds(Task, st.integers(1, 6), st.integers(8, 40)), min_size=1, max_size=4)


@given(task_sets, st.lists(st.integers(0, 40), min_size=4, max_size=4))
def test_no_release_is_worse_than_the_analysis_says(tasks: list[Task], offsets: list[int]) -> None:
    assume(sum(t.cost_ns / t.period_ns for t in tasks) < 1)
    clients = [
        Client(
            (t.cost_ns,),
            rank=-i,
            arrivals_ns=tuple(range(offset, offset + 800, t.period_ns)),
        )
        for i, (t, offset) in enumerate(zip(tasks, offsets, strict=False))
    ]

    trace = drive("priority", clients, grants=10_000)

    bounds = non_preemptive_responses(tasks)
    for i, bound in enumerate(bounds):
        assert max(s.released_ns - s.called_ns for s in trace.of(i)) <= bound


@given(task_sets)
def test_the_analysis_is_attained(tasks: list[Task]) -> None:
    """In whole nanoseconds what blocks has begun at least one earlier, so it blocks for one less than it costs."""
    assume(sum(t.cost_ns / t.period_ns for t in tasks) < 1)
    for i in range(len(tasks)):
        blocker = max(range(i + 1, len(tasks)), key=lambda j: tasks[j].cost_ns, default=-1)
        below = [Task(tasks[blocker].cost_ns - 1, tasks[blocker].period_ns)] if blocker >= 0 else []
        bound = non_preemptive_responses([*tasks[: i + 1], *below])[i]
        clients = [
            Client(
                (t.cost_ns,),
                rank=-j,
                arrivals_ns=() if j > i and j != blocker else tuple(range(int(j != blocker), 700, t.period_ns)),
            )
            for j, t in enumerate(tasks)
        ]

        trace = drive("priority", clients, grants=10_000)

        assert max(s.released_ns - s.called_ns for s in trace.of(i)) == bound


@given(task_sets)
def test_the_condition_for_edf_is_its_definition(tasks: list[Task]) -> None:
    ordered = sorted(tasks, key=lambda t: t.period_ns)
    whole = lcm(*(t.period_ns for t in tasks))

    holds = sum(t.cost_ns * (whole // t.period_ns) for t in tasks) <= whole
    for i, task in enumerate(ordered):
        for length in range(ordered[0].period_ns + 1, task.period_ns):
            holds &= task.cost_ns + sum((length - 1) // t.period_ns * t.cost_ns for t in ordered[:i]) <= length

    assert edf_schedulable(tasks) == holds
    assert fits(tasks) == (sum(t.cost_ns * (whole // t.period_ns) for t in tasks) <= whole)
