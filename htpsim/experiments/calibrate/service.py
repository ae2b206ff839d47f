"""From measured times of one graph to the distribution that a scenario draws from, with the reason for the choice.

=====================================  ============================================================
what is known                          what is written
=====================================  ============================================================
an average only                        a constant: the spread is not known
fewer than 5 executions                a constant: too few to say how they spread
a spread below 1 %                     a constant: drawing would change nothing
5 to 29 executions                     the executions as they are: too few to judge a fit
30 to 199 executions                   a fitted distribution, if one fits; it fills in the tail that
                                       so few cannot show. Else the executions as they are
200 executions or more                 the executions as they are: their own p99 is known
=====================================  ============================================================

A fit is judged by the Kolmogorov-Smirnov distance D: sqrt(n) x D may be at most the figure in `BOUNDS`, beyond which
one of twenty samples of that family lies. Parameters that come from the same data make it smaller than the 1.358 of
known ones: for a normal (here of logarithms) and an exponential these are the figures of Lilliefors; an Erlang is held
to that of the normal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from htpsim.experiments.calibrate.evidence import Counts
from htpsim.formats.samples import mean_ns, median_ns
from htpsim.scenario.distributions import from_distribution
from htpsim.spec import Distribution
from htpsim.units import NS_PER_MS, NS_PER_US, format_time

Method: TypeAlias = Literal["auto", "constant", "sample", "fit"]
METHODS: Final = ("auto", "constant", "sample", "fit")
STATISTICS: Final = ("average", "median")

FEW: Final = 5
FITTED: Final = 30
ENOUGH: Final = 200
POINTS_MAX: Final = 100
"""A larger sample is written as this many means of equal parts of it, which keeps the mean and all but the extremes."""

NARROW: Final = 0.01
COLD: Final = 1.5
BOUNDS: Final = {"lognormal": 0.886, "erlang": 0.886, "exponential": 1.06, "uniform": 1.358}
CV_DIGITS: Final = 6
CV_MAX: Final = 10.0
"""Of a scenario's lognormal."""


@dataclass(frozen=True, slots=True)
class Fit:
    """One family of distributions, fitted."""

    distribution: Distribution
    distance: float
    """Kolmogorov-Smirnov: the largest difference between the two distribution functions."""

    bound: float
    """What it may be at most."""

    @property
    def good(self) -> bool:
        """Whether the data may come from it."""
        return self.distance <= self.bound


@dataclass(frozen=True, slots=True)
class ServiceModel:
    """What a scenario draws from, and why."""

    distribution: Distribution
    n: int | None
    mean_ns: int
    median_ns: int
    reason: str
    fit: Fit | None = None
    """The best one, taken or not; ``None`` where none was tried."""

    cold_ns: int | None = None
    """A first execution that was left out."""

    @property
    def written(self) -> Any:
        """The distribution as a scenario file states it."""
        return from_distribution(self.distribution, "ns")


def service_model(
    counts: Counts,
    n: int | None,
    *,
    method: Method = "auto",
    statistic: str = "average",
    first_ns: int | None = None,
) -> ServiceModel:
    """Choose what a scenario draws a service time from.

    Parameters
    ----------
    counts
        Times [ns] with how often each occurred; one value where only an average is known.
    n
        Executions; ``None`` for an average of a number that is not stated.
    method
        "auto" chooses by the table above; the others insist.
    statistic
        What a constant is: the "average", or the "median".
    first_ns
        The first execution [ns]: where none took longer, and it took over one and a half times the median of the
        others, it pays for what happens once and is left out.

    Examples
    --------
    >>> service_model(((7_000_000, 10),), 10).written
    '7ms'
    >>> service_model(((7_000_000, 2), (7_500_000, 1)), 3).reason
    '3 executions, too few to say how they spread'
    """
    cold_ns = None
    if n is not None and first_ns is not None and n > 2:
        warm = _without(counts, first_ns)
        if first_ns >= warm[-1][0] and first_ns > COLD * median_ns(dict(warm)):
            counts, n, cold_ns = warm, n - 1, first_ns
    table = dict(counts)
    average, median = mean_ns(table), median_ns(table)
    constant = Distribution(kind="constant", mean=average if statistic == "average" else median)

    def model(distribution: Distribution, reason: str, fit: Fit | None = None) -> ServiceModel:
        return ServiceModel(distribution, n, average, median, reason, fit, cold_ns)

    if n is None:
        return model(constant, "an average; the spread is not stated")
    if method == "constant":
        return model(constant, f"a constant as asked, the {statistic}")
    if method == "auto" and n < FEW:
        return model(constant, f"{n} execution{'s' * (n > 1)}, too few to say how they spread")
    if len(counts) == 1:
        return model(constant, "all alike")
    cv = _cv(counts, average)
    if method == "auto" and cv < NARROW:
        return model(constant, f"the {statistic}: a spread of {100 * cv:.2g} % is not worth drawing")
    wanted = method == "fit" or (method == "auto" and FITTED <= n < ENOUGH)
    fit = best_fit(counts, average) if wanted else None
    if method == "fit" and fit is not None:
        return model(fit.distribution, f"a fit as asked: {_verdict(fit)}", fit)
    if method == "auto" and fit is not None and fit.good and n < ENOUGH:
        return model(fit.distribution, f"{fit.distribution.kind} fits: {_verdict(fit)}", fit)
    return model(_sample(counts, n), _why_sample(n, fit, method), fit)


def _why_sample(n: int, fit: Fit | None, method: Method) -> str:
    shape = f"as {POINTS_MAX} means of equal parts" if n > POINTS_MAX else "as they are"
    if method == "sample":
        return f"the executions {shape}, as asked"
    if n >= ENOUGH:
        return f"the executions {shape}: enough of them to need no fit"
    if fit is None:
        return f"the executions {shape}: too few to judge a fit"
    return f"the executions {shape}: nothing fits, the best being {fit.distribution.kind}, {_verdict(fit)}"


def _verdict(fit: Fit) -> str:
    sign = "<=" if fit.good else ">"
    return f"KS distance {fit.distance:.3f} {sign} {fit.bound:.3f}"


def _without(counts: Counts, value: int) -> Counts:
    """Return the counts with one occurrence of a value less."""
    return tuple((each, count - (each == value)) for each, count in counts if count > (each == value))


def _cv(counts: Counts, average: int) -> float:
    total = sum(count for _, count in counts)
    variance = sum(count * (value - average) ** 2 for value, count in counts) / max(1, total - 1)
    return float(np.sqrt(variance)) / average if average else 0.0


def _sample(counts: Counts, n: int) -> Distribution:
    """Return the executions, or the means of equal parts of them, whose own mean is that of all."""
    values = np.repeat(np.array([v for v, _ in counts], dtype=np.int64), np.array([c for _, c in counts]))
    if n <= POINTS_MAX:
        return Distribution(kind="sample", sample=tuple(values.tolist()))
    grain = NS_PER_US if int(values[0]) >= NS_PER_MS // 10 else 1
    # Part k holds n/POINTS_MAX executions; one that lies across a border counts in both with its shares.
    cumulative = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
    edges = np.arange(POINTS_MAX + 1) * (n / POINTS_MAX)
    below = np.interp(edges, np.arange(n + 1), cumulative)
    means = np.rint(np.diff(below) * POINTS_MAX / n / grain).astype(np.int64) * grain
    return Distribution(kind="sample", sample=tuple(means.tolist()))


def best_fit(counts: Counts, average: int) -> Fit | None:
    """Return the family that lies nearest, fitted by maximum likelihood; ``None`` where all values are alike.

    >>> fit = best_fit(tuple((1_000 + 10 * i, 1) for i in range(100)), 1_495)
    >>> fit.distribution.kind, fit.good
    ('uniform', True)
    """
    if len(counts) < 2 or counts[0][0] <= 0:
        return None
    from scipy import stats

    values = np.array([value for value, _ in counts], dtype=np.float64)
    weights = np.array([count for _, count in counts], dtype=np.float64)
    n = weights.sum()
    logs = np.log(values)
    mu = float(np.average(logs, weights=weights))
    sigma = float(np.sqrt(np.average((logs - mu) ** 2, weights=weights)))
    data = np.repeat(values, weights.astype(np.int64))
    stages = max(1, round(stats.gamma.fit(data, floc=0)[0]))
    low, high = int(values[0]), int(values[-1])
    # The mean is that of the data, so that a fit keeps the throughput; maximum likelihood decides the shape.
    scale = average / float(np.exp(sigma**2 / 2))
    cv = min(CV_MAX, round(float(np.sqrt(np.expm1(sigma**2))), CV_DIGITS))
    candidates: list[tuple[Distribution, npt.NDArray[np.float64]]] = [
        (Distribution(kind="lognormal", mean=average, cv=cv), stats.lognorm.cdf(values, sigma, scale=scale)),
        (Distribution(kind="erlang", mean=average, stages=stages),
         stats.gamma.cdf(values, stages, scale=average / stages)),
        (Distribution(kind="uniform", low=low, high=high), stats.uniform.cdf(values, low, high - low)),
        (Distribution(kind="exponential", mean=average), stats.expon.cdf(values, scale=average)),
    ]  # fmt: skip
    root = float(np.sqrt(n))
    fits = [Fit(d, _distance(cdf, weights / n), BOUNDS[d.kind] / root) for d, cdf in candidates]
    return min(fits, key=lambda fit: fit.distance)


def _distance(cdf: npt.NDArray[np.float64], share: npt.NDArray[np.float64]) -> float:
    """Return the Kolmogorov-Smirnov distance of a distribution function from values with their shares."""
    above = np.cumsum(share)
    return float(max(np.max(np.abs(above - cdf)), np.max(np.abs(cdf - (above - share)))))


def told(model: ServiceModel) -> str:
    """Say in a few words what a model is, for a table.

    >>> told(service_model(((7_000_000, 10),), 10))
    'constant 7 ms'
    """
    d = model.distribution
    if d.kind == "constant":
        return f"constant {format_time(d.mean)}"
    return f"{d.kind}, mean {format_time(d.expected)}"
