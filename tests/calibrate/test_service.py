"""The model of a service time: which is chosen, what it keeps, and what it says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htpsim.experiments.calibrate import service_model
from htpsim.experiments.calibrate.evidence import Counts, counted
from htpsim.experiments.calibrate.service import ENOUGH, FEW, FITTED, NARROW, POINTS_MAX, best_fit
from htpsim.spec import table
from htpsim.units import NS_PER_MS


def normal(n: int, cv: float, seed: int = 1, mean: float = 20e6) -> Counts:
    values = np.random.default_rng(seed).normal(mean, cv * mean, n)
    return counted(tuple(int(value) for value in values))


def test_an_average_is_a_constant_that_says_so() -> None:
    model = service_model(((5_000_000, 1),), None)

    assert (model.written, model.n) == ("5ms", None)
    assert "spread is not stated" in model.reason


@pytest.mark.parametrize("n", range(1, FEW))
def test_few_executions_say_nothing_of_their_spread(n: int) -> None:
    model = service_model(normal(n, 0.2), n)

    assert model.distribution.kind == "constant"
    assert "too few to say" in model.reason


def test_from_five_on_the_executions_themselves_are_drawn_from() -> None:
    counts = normal(FEW, 0.2)
    model = service_model(counts, FEW)

    assert model.distribution.kind == "sample"
    assert sorted(model.distribution.sample) == [value for value, _ in counts]


def test_a_narrow_spread_is_not_worth_drawing() -> None:
    assert service_model(normal(50, NARROW / 3), 50).distribution.kind == "constant"
    assert service_model(normal(50, NARROW * 3), 50).distribution.kind != "constant"


def test_a_fit_is_taken_between_thirty_and_two_hundred() -> None:
    assert service_model(normal(FITTED - 1, 0.2), FITTED - 1).fit is None
    fitted = service_model(normal(FITTED, 0.2), FITTED)
    assert fitted.fit is not None
    assert fitted.fit.good
    assert fitted.distribution == fitted.fit.distribution
    assert service_model(normal(ENOUGH, 0.2), ENOUGH).distribution.kind == "sample"


def test_two_peaks_are_no_fit() -> None:
    """As of a real decode graph, which takes 7.2 or 7.7 ms because its wait is one of two."""
    rng = np.random.default_rng(3)
    values = np.where(rng.random(150) < 0.5, 7.2e6, 7.7e6) + rng.normal(0, 2e4, 150)
    model = service_model(counted(tuple(int(value) for value in values)), 150)

    assert model.distribution.kind == "sample"
    assert "nothing fits" in model.reason
    assert model.fit is not None
    assert model.fit.distance > 2 * model.fit.bound


@pytest.mark.parametrize(
    ("kind", "draw"),
    [
        ("lognormal", lambda rng: rng.lognormal(16, 0.5, 2000)),
        ("exponential", lambda rng: rng.exponential(1e7, 2000)),
        ("uniform", lambda rng: rng.uniform(1e6, 3e7, 2000)),
        ("erlang", lambda rng: rng.gamma(3, 3e6, 2000)),
    ],
)
def test_the_family_that_made_the_data_is_found(kind: str, draw: object) -> None:
    values = draw(np.random.default_rng(5))  # type: ignore[operator]
    counts = counted(tuple(int(value) for value in values))
    fit = best_fit(counts, round(float(np.mean(values))))

    assert fit is not None
    # One exponential stage is the exponential distribution, by either name.
    same = {"exponential": {"exponential", "erlang"}}.get(kind, {kind})
    assert fit.distribution.kind in same
    assert fit.good


def test_distances_are_those_of_scipy() -> None:
    from scipy import stats

    values = np.random.default_rng(8).uniform(1e6, 3e6, 300).astype(np.int64)
    fit = best_fit(counted(tuple(values.tolist())), int(values.mean()))
    assert fit is not None
    assert fit.distribution.kind == "uniform"
    low, high = fit.distribution.low, fit.distribution.high

    assert fit.distance == pytest.approx(stats.kstest(values, stats.uniform(low, high - low).cdf).statistic)


@given(st.lists(st.integers(10**6, 10**9), min_size=FEW, max_size=400))
def test_a_sample_keeps_the_mean_and_the_range(values: list[int]) -> None:
    model = service_model(counted(tuple(values)), len(values), method="sample")
    if model.distribution.kind == "constant":
        return
    drawn = table(model.distribution)

    assert len(drawn) <= POINTS_MAX
    assert drawn.mean() == pytest.approx(np.mean(values), rel=1e-3)
    assert min(values) - 1000 <= drawn.min() <= drawn.max() <= max(values) + 1000


@given(
    st.lists(st.integers(10**6, 10**8), min_size=1, max_size=60), st.sampled_from(["constant", "sample", "fit", "auto"])
)
def test_every_model_can_be_drawn_from_and_has_a_reason(values: list[int], method: str) -> None:
    model = service_model(counted(tuple(values)), len(values), method=method)  # type: ignore[arg-type]

    assert model.distribution.problems() == []
    assert model.reason
    assert model.distribution.expected > 0


def test_a_cold_first_execution_is_left_out() -> None:
    """The real trace: 411 us, then 49 and 37."""
    model = service_model(counted((410_885, 49_167, 37_031)), 3, first_ns=410_885)

    assert model.cold_ns == 410_885
    assert (model.n, model.mean_ns) == (2, 43_099)
    assert service_model(counted((49_167, 410_885, 37_031)), 3, first_ns=49_167).cold_ns is None


def test_a_constant_is_what_was_asked_for() -> None:
    counts = counted((1 * NS_PER_MS, 2 * NS_PER_MS, 9 * NS_PER_MS, 9 * NS_PER_MS, 9 * NS_PER_MS))

    assert service_model(counts, 5, method="constant", statistic="median").written == "9ms"
    assert service_model(counts, 5, method="constant").written == "6ms"
