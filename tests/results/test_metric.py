"""Quantiles are values that occurred, and are withheld when the samples cannot carry them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htpsim.results.metric import Metric, order_statistic, samples_needed, stats, total

samples = st.lists(st.integers(0, 10**12), min_size=1, max_size=300)


@given(samples, st.sampled_from([50, 95, 99]))
def test_a_quantile_is_the_least_sample_with_enough_at_or_below_it(values: list[int], percent: int) -> None:
    ordered = sorted(values)
    oracle = next(v for v in ordered if 100 * sum(w <= v for w in ordered) >= percent * len(ordered))

    assert order_statistic(np.array(ordered), percent) == oracle


@given(samples)
def test_quantiles_are_ordered_and_never_above_the_maximum(values: list[int]) -> None:
    s = stats(np.array(values))
    shown = [m.value for m in (s.p50, s.p95, s.p99, s.max) if m.value is not None]

    assert shown == sorted(shown)
    assert s.max.value == max(values)
    assert s.mean.value == sum(values) / len(values)


@pytest.mark.parametrize(("name", "percent", "needed"), [("p50", 50, 5), ("p95", 95, 40), ("p99", 99, 200)])
def test_a_quantile_needs_two_samples_beyond_it(name: str, percent: int, needed: int) -> None:
    enough, few = np.arange(needed), np.arange(needed - 1)

    assert samples_needed(percent) == needed
    assert getattr(stats(enough), name).value == order_statistic(enough, percent)
    assert getattr(stats(few), name) == Metric(None, needed - 1, "ns", f"{needed - 1} samples, {name} needs {needed}")


def test_without_samples_nothing_is_zero() -> None:
    s = stats(np.empty(0, dtype=np.int64))

    assert [m.value for m in (s.mean, s.p50, s.p95, s.p99, s.max)] == [None] * 5
    assert s.mean.why == "no samples"


def test_a_reason_withholds_every_number_and_keeps_the_count() -> None:
    s = stats(np.arange(1000), why="starved")

    assert {(m.value, m.n, m.why) for m in (s.mean, s.p50, s.p95, s.p99, s.max)} == {(None, 1000, "starved")}


def test_sums_are_exact_beyond_64_bits() -> None:
    assert total(np.full(10, 2**62, dtype=np.int64)) == 10 * 2**62


def test_integers_stay_integers_and_floats_are_rounded_the_same_everywhere() -> None:
    assert Metric(7, 7, "count").to_dict()["value"] == 7
    assert type(Metric(7, 7, "count").to_dict()["value"]) is int
    assert repr(Metric(1 / 3, 3, "share").to_dict()["value"]) == "0.333333"


@pytest.mark.parametrize(
    ("metric", "text"),
    [
        (Metric(178_800_000, 1, "ns"), "179 ms"),
        (Metric(482_812_160, 1, "bytes"), "460 MiB"),
        (Metric(0.25, 1, "share"), "25.0 %"),
        (Metric(1234, 1, "count"), "1,234"),
        (Metric(19.97, 1, "tokens_per_s"), "19.97 tokens/s"),
        (Metric(2.0, 1, "per_s"), "2.00 1/s"),
        (Metric(0.5, 1, "cores"), "0.50 cores"),
        (Metric(None, 0, "ns", "why"), "n/a"),
    ],
)
def test_a_metric_reads_in_the_unit_of_its_kind(metric: Metric, text: str) -> None:
    assert str(metric) == text
