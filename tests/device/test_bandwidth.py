"""Bandwidth shares against the rule in its plainest form: least demand first, an equal part of what is left each."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from htpsim.device.bandwidth import drawn_at, share_bandwidth, share_cores
from htpsim.device.rates import share_rates
from htpsim.device.records import ACQUIRING, FULL_RATE, NO_DRAW, RUNNING

demands = st.lists(st.integers(0, 12), min_size=1, max_size=6)
orders = st.randoms(use_true_random=False)


def holding(demands: list[int], numbers: list[int], cores: int = 1) -> list[Any]:
    """Graphs on all of `cores` cores; `numbers` are their last tie-break."""
    return [
        SimpleNamespace(
            demand=demand,
            execute=number,
            state=RUNNING,
            cores=(1 << cores) - 1,
            width=cores,
            top=FULL_RATE,
            seen=0,
            cap=0,
        )
        for demand, number in zip(demands, numbers, strict=True)
    ]


def shares(jobs: list[Any], bandwidth: int, core_bandwidth: int = 0, cores: int = 1) -> list[int]:
    dev = SimpleNamespace(
        holders=len(jobs), parallel=0, cores=cores, bandwidth=bandwidth, core_bandwidth=core_bandwidth
    )
    share_bandwidth(dev, jobs, list(range(len(jobs))))
    return [job.cap for job in jobs]


def plain(caps: list[int], numbers: list[int], bandwidth: int, width: int = 1) -> list[int]:
    """Serve who draws, least first, with an equal part of what is left; `width` cores each carry a part of a graph."""
    drawing = sorted((k for k in range(len(caps)) if caps[k] != NO_DRAW), key=lambda k: (caps[k] // width, numbers[k]))
    left, found = bandwidth, list(caps)
    for place, k in enumerate(drawing):
        found[k] = min(caps[k], left // (len(drawing) - place) * width)
        left -= -(-found[k] // width)
    return found


@given(demands, st.integers(1, 60), orders)
@example([5, 5, 100], 17, None)
@example([9, 9], 5, None)
def test_the_device_is_shared_max_min_fairly(demands: list[int], bandwidth: int, order: Any) -> None:
    numbers = list(range(len(demands)))
    if order:
        order.shuffle(numbers)
    wanted = [demand or NO_DRAW for demand in demands]

    found = shares(holding(demands, numbers), bandwidth)

    assert found == plain(wanted, numbers, bandwidth)
    assert sum(cap for cap in found if cap != NO_DRAW) == min(bandwidth, sum(demands))


def test_two_share_alike_whoever_asks_for_more_or_comes_first() -> None:
    for *wanted, bandwidth in product(range(1, 7), range(1, 7), range(1, 14)):
        for numbers in ([0, 1], [1, 0]):
            assert shares(holding(wanted, numbers), bandwidth) == plain(wanted, numbers, bandwidth)


@given(demands, st.integers(1, 30), st.integers(1, 3), orders)
@example([7, 6], 5, 2, None)
@example([10, 10, 10], 10, 1, None)
def test_a_core_is_shared_alike_through_every_core_of_a_graph(
    demands: list[int], bandwidth: int, cores: int, order: Any
) -> None:
    numbers = list(range(len(demands)))
    if order:
        order.shuffle(numbers)
    wanted = [demand or NO_DRAW for demand in demands]
    if sum(cap != NO_DRAW for cap in wanted) > 1:  # one alone has less than a core carries: a scenario sees to that
        for _ in range(cores):
            wanted = plain(wanted, numbers, bandwidth, cores)

    assert shares(holding(demands, numbers, cores), 0, bandwidth, cores) == wanted


def test_cores_then_the_device_and_only_who_is_there_draws() -> None:
    jobs = holding([8, 8, 8, 8], [0, 1, 2, 3])
    for job, core in zip(jobs, (1, 1, 2, 2), strict=True):
        job.cores = core
    jobs[3].state = ACQUIRING

    assert shares(jobs, 0, 9, 2) == [4, 5, 8, NO_DRAW]
    assert shares(jobs, 17, 9, 2) == [4, 5, 8, NO_DRAW]
    assert shares(jobs, 14, 9, 2) == [4, 5, 5, NO_DRAW]
    assert shares(jobs, 13, 9, 2) == [4, 4, 5, NO_DRAW]


def test_only_graphs_that_run_on_a_common_core_slow_each_other() -> None:
    def tops(*graphs: tuple[int, int, int]) -> list[int]:
        jobs = [SimpleNamespace(cores=cores, qnn=qnn, state=state, top=0) for cores, qnn, state in graphs]
        share_cores(SimpleNamespace(holders=len(jobs), parallel_rate=7), jobs, list(range(len(jobs))))
        return [job.top for job in jobs]

    assert tops((1, 1, RUNNING), (2, 1, RUNNING)) == [FULL_RATE, FULL_RATE]
    assert tops((1, 1, RUNNING), (3, 1, RUNNING), (2, 1, RUNNING)) == [7, 7, 7]
    assert tops((1, 1, RUNNING), (1, 0, RUNNING), (1, 1, ACQUIRING)) == [FULL_RATE, FULL_RATE, FULL_RATE]
    assert tops((1, 1, RUNNING), (1, 1, RUNNING), (1, 0, RUNNING)) == [7, 7, FULL_RATE]


@given(st.integers(0, 1 << 40), st.integers(1, FULL_RATE))
@example(1, 1)
def test_what_is_drawn_at_a_rate_is_that_part_of_the_demand_and_never_nothing(demand: int, rate: int) -> None:
    assert drawn_at(demand, rate) == (demand if rate == FULL_RATE else max(1, demand * rate // FULL_RATE))


def test_a_rate_is_never_nothing() -> None:
    about = {"left": FULL_RATE, "rate": 0, "share": NO_DRAW, "settled_ns": 0, "yield_due": 0, "yield_asked": 0}
    jobs = holding([1 << 40, 1 << 40], [0, 1])
    for job in jobs:
        vars(job).update(about)
    dev = SimpleNamespace(holders=2, parallel=0, cores=1, bandwidth=2, core_bandwidth=0, rates_stale=1)

    share_rates(dev, jobs, [0, 1], 5)

    assert [(job.cap, job.rate, job.timer_ns) for job in jobs] == [(1, 1, 5 + FULL_RATE)] * 2
    assert dev.rates_stale == 0
