"""Distributions as data, and the integer quantile tables they become before an engine starts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt

from htpsim.errors import ScenarioError
from htpsim.rng import TABLE_SIZE

Kind = Literal["constant", "sample", "exponential", "lognormal", "uniform", "erlang"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """A non-negative integer quantity: nanoseconds, tokens or a count.

    ``constant`` uses `mean`; ``sample`` draws from `sample` with equal chance; ``exponential`` has mean `mean`;
    ``lognormal`` has mean `mean` and coefficient of variation `cv`; ``uniform`` spans [`low`, `high`];
    ``erlang`` has mean `mean` and `stages` exponential stages.
    """

    kind: Kind = "constant"
    mean: int = 0
    cv: float = 0.0
    sample: tuple[int, ...] = ()
    low: int = 0
    high: int = 0
    stages: int = 1

    def problems(self) -> list[str]:
        """Return what is wrong with it, empty when it can be drawn from."""
        found = []
        if self.kind == "sample" and not self.sample:
            found.append("sample: got no values, expected at least one")
        if self.kind == "uniform" and not 0 <= self.low <= self.high:
            found.append(f"uniform: got low {self.low} and high {self.high}, expected 0 <= low <= high")
        if self.mean < 0 or min(self.sample, default=0) < 0:
            found.append("got a negative value, expected 0 or more")
        if self.kind == "lognormal" and not 0 <= self.cv <= 10:
            found.append(f"cv: got {self.cv}, expected 0 to 10")
        if self.kind == "erlang" and self.stages < 1:
            found.append(f"stages: got {self.stages}, expected at least 1")
        return found

    @property
    def expected(self) -> float:
        """The mean of the quantile table, which is what an engine really draws from."""
        return float(np.mean(table(self)))


def constant(value: int) -> Distribution:
    """Return the distribution that always gives `value`.

    >>> constant(300).mean
    300
    """
    return Distribution(kind="constant", mean=value)


def exponential(mean: int) -> Distribution:
    """Return the exponential distribution with mean `mean`.

    >>> abs(exponential(10**9).expected / 10**9 - 1) < 1e-4
    True
    """
    return Distribution(kind="exponential", mean=mean)


@lru_cache(maxsize=256)
def table(distribution: Distribution) -> npt.NDArray[np.int64]:
    """Return the quantile table of a distribution: sorted integers, each equally likely.

    Length 1 for a constant, the sample's own for a sample, 65,536 otherwise (quantiles at midpoints).

    >>> table(constant(7)).tolist()
    [7]
    """
    problems = distribution.problems()
    if problems:
        raise ScenarioError(*problems)
    values = np.rint(_quantiles(distribution)).astype(np.int64)
    values.setflags(write=False)
    return values


def _quantiles(d: Distribution) -> npt.NDArray[np.float64]:
    if d.kind == "constant" or (d.kind == "lognormal" and d.cv == 0):
        return np.array([d.mean], dtype=np.float64)
    if d.kind == "sample":
        return np.sort(np.array(d.sample, dtype=np.float64))
    u = (np.arange(TABLE_SIZE) + 0.5) / TABLE_SIZE
    if d.kind == "uniform":
        return d.low + u * (d.high - d.low)
    if d.kind == "exponential":
        return -np.log1p(-u) * d.mean
    from scipy import special

    if d.kind == "erlang":
        quantiles: npt.NDArray[np.float64] = special.gammaincinv(d.stages, u) * (d.mean / d.stages)
        return quantiles
    sigma = np.sqrt(np.log1p(d.cv**2))
    lognormal: npt.NDArray[np.float64] = np.exp(special.ndtri(u) * sigma - sigma**2 / 2) * d.mean
    return lognormal
