"""Intervals contain the answer as often as they say, and warm-up is cut where it ends."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from htpsim.results.metric import Metric
from htpsim.results.replications import estimate
from htpsim.results.statistics import bootstrap_interval, mser5, quantile_interval, quantile_ranks
from htpsim.sim import simulate
from htpsim.spec import (
    Arrivals,
    Context,
    Device,
    Distribution,
    Graph,
    Model,
    OtherClient,
    Run,
    Scenario,
    exponential,
    table,
)

REPETITIONS = 10_000


@given(st.integers(1, 400), st.sampled_from([50, 90, 95, 99]))
def test_the_coverage_of_ranks_is_that_of_the_binomial(n: int, percent: int) -> None:
    ranks = quantile_ranks(n, percent)
    if ranks is None:  # not even the whole sample is wide enough
        assert binom.cdf(n - 1, n, percent / 100) - binom.cdf(0, n, percent / 100) < 0.95
        return
    low, high, coverage = ranks
    assert coverage == pytest.approx(sum(binom.pmf(k, n, percent / 100) for k in range(low + 1, high + 1)))
    assert coverage >= 0.95
    for closer in ((low + 1, high), (low, high - 1)):
        assert binom.cdf(closer[1], n, percent / 100) - binom.cdf(closer[0], n, percent / 100) < 0.95


def test_a_quantile_lies_between_its_ranks() -> None:
    found = quantile_interval(np.sort(np.random.default_rng(1).exponential(1000, 5000)).astype(np.int64), 99)
    assert found is not None
    assert found.low < -1000 * math.log(0.01) < found.high


def test_the_bootstrap_agrees_with_students_t_where_both_hold() -> None:
    values = np.random.default_rng(2).normal(50, 5, 40).tolist()
    t = estimate([Metric(value, 1, "ns") for value in values])
    found = bootstrap_interval(values)
    assert (found.high - found.low) / 2 == pytest.approx(t.half_width, rel=0.1)
    assert bootstrap_interval(values) == found
    assert bootstrap_interval([3.0] * 9) is None


@given(st.integers(0, 30), st.integers(0, 2**32 - 1))
def test_warm_up_is_cut_where_it_ends(batches: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    settled = rng.normal(10, 1, 1000)
    found = mser5(np.concatenate([rng.normal(40, 1, 5 * batches), settled]))
    assert not found.refused
    assert 5 * batches <= found.cut <= 5 * batches + 350  # a chance dip may cut a little more, never less


@given(st.integers(0, 49), st.floats(0.1, 10))
def test_a_series_that_never_settles_or_is_short_is_refused(short: int, slope: float) -> None:
    assert "not settled" in mser5([slope * i for i in range(600)]).refused
    assert "MSER-5 needs" in mser5([1.0] * short).refused


JOBS = 40
"""A replication's jobs. Student's t wants means that are near normal: over ten jobs, the difference of
an exponential and a uniform time seen through the same draws is skewed, and is contained 93.5 % of the time."""


def lone(service: Distribution) -> Scenario:
    """One client with the core to itself: its service times are independent draws, whose mean is known exactly."""
    graph = Graph(name="g", context="c", service=service)
    model = Model(name="m", role="other", contexts=(Context(name="c", weights_bytes=1),), graphs=(graph,))
    jobs = Arrivals(kind="periodic", period_ns=10_000_000)
    return Scenario(
        device=Device(cores=1), run=Run(duration_ns=JOBS * 10_000_000, warmup_ns=0, replications=1),
        clients=(OtherClient(name="c", model=model, arrivals=jobs),),
    )  # fmt: skip


def means(service: Distribution, replications: int) -> np.ndarray:
    """The mean service time of a replication's jobs, for every replication, as the engine ran them."""
    scenario = lone(service)
    return np.array([np.mean([row[-1] for row in simulate(scenario, r).executes[:JOBS]]) for r in range(replications)])


@pytest.mark.verify
def test_intervals_of_a_mean_and_of_a_paired_difference_contain_it_as_often_as_they_say() -> None:
    """10,000 intervals of each, over six replications each; the pair sees the same draws."""
    per, services = 6, (Distribution(kind="uniform", low=5_000, high=15_000), exponential(11_000))
    answers = [float(table(service).mean()) for service in services]
    first, other = (means(service, REPETITIONS * per).reshape(-1, per) for service in services)
    for samples, answer in ((first, answers[0]), (other - first, answers[1] - answers[0])):
        found = [estimate([Metric(value, 1, "ns") for value in sample]) for sample in samples]
        hits = sum(abs(one.mean - answer) <= one.half_width for one in found)
        assert len(found) == REPETITIONS
        assert 0.943 <= hits / REPETITIONS <= 0.957, f"{hits} of {REPETITIONS}"


@pytest.mark.verify
def test_the_order_statistic_interval_covers_as_the_binomial_says() -> None:
    n, answer = 5000, -math.log(0.01)
    low, high, coverage = quantile_ranks(n, 99)
    rng = np.random.default_rng(4)
    hits = 0
    for _ in range(REPETITIONS):
        tail = np.partition(rng.exponential(1.0, n), (low, high))
        hits += tail[low] <= answer <= tail[high]
    assert abs(hits / REPETITIONS - coverage) <= 0.007, f"{hits} of {REPETITIONS}, {coverage}"
