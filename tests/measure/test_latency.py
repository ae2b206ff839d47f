"""The arithmetic on samples that are given: quantiles, histogram, signs of noise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htpsim.errors import HtpsimError
from htpsim.experiments.measured.latency import BARS, doubts, histogram, latency

SAMPLES = st.lists(st.integers(1, 10**12), min_size=1, max_size=60)


@given(SAMPLES)
def test_every_figure_lies_between_the_least_and_the_largest(samples: list[int]) -> None:
    found = latency(samples)

    assert (found.n, found.min_ns, found.max_ns) == (len(samples), min(samples), max(samples))
    assert found.min_ns <= found.mean_ns <= found.max_ns
    for _, metric in found.quantiles:
        assert metric.value is None or metric.value in samples
    stated = [metric.value for _, metric in found.quantiles if metric.value is not None]
    assert stated == sorted(stated)


@given(SAMPLES)
def test_the_mean_is_exact(samples: list[int]) -> None:
    assert abs(latency(samples).mean_ns * len(samples) - sum(samples)) * 2 <= len(samples)


def test_quantiles_are_order_statistics_and_wait_for_enough_samples() -> None:
    found = dict(latency(list(range(1, 201))).quantiles)

    assert {percent: metric.value for percent, metric in found.items()} == {50: 100, 90: 180, 95: 190, 99: 198}
    few = dict(latency(list(range(1, 21))).quantiles)
    assert {percent: metric.value for percent, metric in few.items()} == {50: 10, 90: 18, 95: None, 99: None}
    assert few[95].why == "20 samples, p95 needs 40"


def test_the_order_of_the_runs_decides_the_drift_alone() -> None:
    rising = [1_000] * 20 + [1_100] * 20 + [1_200] * 20

    assert latency(rising).drift == pytest.approx(0.2)
    assert latency(rising[::-1]).drift == pytest.approx(1 / 1.2 - 1)
    assert latency(rising).quantiles == latency(rising[::-1]).quantiles
    assert latency([1_000] * 14).drift is None


def test_outliers_are_far_beyond_the_quartiles() -> None:
    # Quartiles 25 and 75: beyond 75 + 3 x 50 = 225 lies what is larger than that.
    spread = list(range(1, 101))

    assert latency([*spread[:98], 225, 226]).outliers == pytest.approx(0.01)
    assert latency(spread).outliers == 0
    assert latency(spread[:7]).outliers is None


def test_a_warm_up_that_went_on_is_seen() -> None:
    found = latency([5_000] * 30 + [1_000, 1_010] * 100)

    assert (found.cut, found.unsettled) == (30, "")
    assert found.to_dict()["settled_after"] == 30
    assert latency([1_000] * 10).unsettled
    assert latency([1_000] * 10).to_dict()["settled_after"] is None


def test_bars_are_as_high_as_their_share() -> None:
    values = np.array([0] * 8 + [10] * 4 + [20] * 1 + [40] * 8)

    assert histogram(values, 40, bins=4) == "█▄▁█"
    assert histogram(np.array([0] * 1000 + [39]), 40, bins=4) == "█  ▁"


@given(SAMPLES)
def test_a_histogram_has_a_full_bar_and_starts_with_one(samples: list[int]) -> None:
    line = histogram(np.sort(np.array(samples)), max(samples))

    assert set(line) <= set(BARS)
    assert BARS[-1] in line
    assert line[0] != " "


def test_no_run_is_refused() -> None:
    with pytest.raises(HtpsimError, match="got no run"):
        latency([])


CALM = [1_000, 1_001] * 60


@pytest.mark.parametrize(
    ("samples", "share", "said"),
    [
        (CALM, 1.0, []),
        (CALM, None, []),
        (CALM, 0.5, ["had 50 % of a core"]),
        ([*CALM, *[1_100] * 60], 1.0, ["+9.9 % against the first"]),
        ([*CALM, *[9_000] * 4], 1.0, ["3.2 % of the runs are far out"]),
        ([*[9_000] * 20, *CALM], 1.0, ["are far out", "the first 20 runs"]),
    ],
)
def test_what_speaks_against_a_measurement_is_said(samples: list[int], share: float | None, said: list[str]) -> None:
    found = doubts(latency(samples), share)

    assert len(found) == len(said)
    for doubt, words in zip(found, said, strict=True):
        assert words in doubt
