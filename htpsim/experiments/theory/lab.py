"""Where an oracle meets the simulator: how long to run, how to average, what was found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from statistics import NormalDist, fmean, stdev

import numpy as np

from htpsim.errors import InvariantError
from htpsim.experiments.theory.stations import MEAN_NS, Floats, times
from htpsim.experiments.theory.variance import customers_needed
from htpsim.results.log import RunLog
from htpsim.spec import Scenario

Engine = Callable[[Scenario, int], RunLog]
Make = Callable[[int, int], Scenario]
"""From a duration in ns and a seed to a scenario."""

LEVEL = 0.99
"""Chance that a right simulator passes the whole family."""

FAMILY_MAX = 50
"""Intervals a family may have at most; sample sizes are planned for so many."""

SEED = 20_07
"""Seed of every oracle, chosen before the first run; a run's number is added to it."""

_RUN_CUSTOMERS = 40_000
"""Customers of one run at most, so that its rows fit in memory; longer samples are several runs."""
REPLICATIONS = 12
"""Runs of an average whose variance is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Theory beside simulation, before the family is known that decides how wide the interval is."""

    name: str
    unit: str
    theory: float
    simulated: float
    n: int
    """customers, jobs or instants averaged over"""
    error: float = 0.0
    """standard deviation of `simulated`; 0 for what must agree exactly"""
    freedom: int = 0
    """degrees of freedom where that deviation was itself estimated; 0: it is known"""
    tolerance: float = 0.0
    """how far apart exact values may be: an instant, an unfinished job"""

    @property
    def statistical(self) -> bool:
        """Whether chance has a part in it."""
        return self.error > 0


@dataclass(frozen=True, slots=True)
class Group:
    """One average of a station: whose calls, what theory says of their mean, and the variance of that average."""

    name: str
    members: Iterable[int]
    """positions of the clients"""
    rate: float
    """arrivals of the group a mean service"""
    theory: float
    variance: float | None
    """a customer, in mean services squared; None: not known, replicate"""
    until: str = "started_ns"
    """the wait ends here; finished_ns for the time in the system"""


@dataclass(frozen=True, slots=True)
class Lab:
    """An engine and how precise it shall be."""

    engine: Engine
    quick: bool

    @property
    def relative(self) -> float:
        """The planned half width over the mean: coarse when quick, a tenth otherwise."""
        return 0.35 if self.quick else 0.1

    def averages(self, groups: Sequence[Group], rho: float, make: Make) -> list[Finding]:
        """Simulate a station of utilisation `rho` for long enough and return a finding for every group."""
        measured = max(self._customers(g, rho) / g.rate for g in groups)
        unknown = any(g.variance is None for g in groups)
        runs = max(ceil(measured * sum(g.rate for g in groups) / _RUN_CUSTOMERS), REPLICATIONS if unknown else 1)
        samples: list[list[Floats]] = [[] for _ in groups]
        for log, window_ns in self.windows(make, measured / runs, 10 / (1 - rho) ** 2, runs):
            for sample, g in zip(samples, groups, strict=True):
                sample.append(times(log, g.members, window_ns, g.until))
        return [_finding(g, sample) for g, sample in zip(groups, samples, strict=True)]

    def windows(
        self, make: Make, measured: float, settle: float, runs: int
    ) -> Iterator[tuple[RunLog, tuple[int, int]]]:
        """Simulate `runs` times: settle, measure, and settle again so that what was measured can end."""
        window_ns = (round(settle * MEAN_NS), round((settle + measured) * MEAN_NS))
        for run in range(runs):
            yield self.run(make(window_ns[1] + window_ns[0], SEED + run)), window_ns

    def run(self, scenario: Scenario) -> RunLog:
        """Simulate a scenario all of whose clients must load."""
        log = self.engine(scenario, 0)
        if log.failed:
            raise InvariantError(f"an oracle's clients must load, got: {'; '.join(log.failed.values())}")
        return log

    def replicated(self, name: str, theory: float, values: Sequence[float], n: int, unit: str = "service") -> Finding:
        """Return the finding of independent runs, one value each."""
        error, freedom = spread_of_mean(values)
        return Finding(name=name, unit=unit, theory=theory, simulated=fmean(values), n=n, error=error, freedom=freedom)

    def _customers(self, group: Group, rho: float) -> int:
        variance = group.variance if group.variance is not None else guessed_variance(group.theory, rho)
        return customers_needed(variance, group.theory, self.relative, planned_z())


def planned_z() -> float:
    """Return the normal quantile for which samples are planned.

    >>> round(planned_z(), 2)
    3.72
    """
    return quantile_z(FAMILY_MAX)


def quantile_z(family: int) -> float:
    """Return the two-sided normal quantile of one among `family` intervals that hold together at LEVEL (Bonferroni).

    >>> round(quantile_z(1), 3)
    2.576
    """
    return NormalDist().inv_cdf(1 - (1 - LEVEL) / family / 2)


def quantile_t(family: int, freedom: int) -> float:
    """Return the same of Student's t.

    >>> round(quantile_t(1, 10), 3)
    3.169
    """
    from scipy import stats

    return float(stats.t.ppf(1 - (1 - LEVEL) / family / 2, freedom))


def guessed_variance(mean: float, rho: float) -> float:
    """Return a planning value where the variance is not known: that of M/M/1, in proportion to the mean squared.

    (2 + 5 rho - 4 rho^2 + rho^3) / (rho (1 - rho)^2), Daley 1968. It decides a sample size and nothing else.

    >>> round(guessed_variance(1.0, 0.5), 9)
    29.0
    """
    return mean**2 * (2 + 5 * rho - 4 * rho**2 + rho**3) / (rho * (1 - rho) ** 2)


def _finding(group: Group, sample: list[Floats]) -> Finding:
    n = sum(len(part) for part in sample)
    simulated = float(np.concatenate(sample).mean())
    if group.variance is not None:
        error, freedom = sqrt(group.variance / n), 0
    else:
        error, freedom = spread_of_mean([float(part.mean()) for part in sample])
    return Finding(
        name=group.name, unit="service", theory=group.theory, simulated=simulated, n=n, error=error, freedom=freedom
    )


def spread_of_mean(means: Sequence[float]) -> tuple[float, int]:
    """Return the standard deviation of the mean of independent runs, and its degrees of freedom.

    >>> spread_of_mean([1.0, 3.0])
    (1.0, 1)
    """
    return stdev(means) / sqrt(len(means)), len(means) - 1
