"""Intervals and truncation: what a sample allows one to say, each method under its own premise.

Student's t and the bootstrap rest on independent replications; the order-statistic interval of a quantile on
independent samples, which the tokens of one run are not; MSER-5 on a run that settles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from htpsim.results.metric import IntArray

CONFIDENCE: Final = 0.95
BATCH: Final = 5
"""Samples of a batch in MSER-5 (White 1997)."""
RESAMPLES: Final = 9_999
BOOTSTRAP_MIN: Final = 5
"""Replications below which the bootstrap has too few distinct resamples to mean much."""
_SEED: Final = 95


@dataclass(frozen=True, slots=True)
class Interval:
    """From where to where the answer lies, and how sure that is."""

    low: float
    high: float
    coverage: float
    """chance that such an interval contains the answer, under the premise of the method"""


def bootstrap_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval | None:
    """Return the bias-corrected bootstrap interval of a mean over replications; None where it would not mean much.

    Seeded, so the same values give the same interval.

    >>> found = bootstrap_interval([9.0, 10.0, 10.5, 11.0, 12.0, 9.5])
    >>> 9.0 < found.low < 10.3 < found.high < 12.0
    True
    >>> bootstrap_interval([1.0, 2.0]) is None
    True
    """
    if len(values) < BOOTSTRAP_MIN or len(set(values)) == 1:
        return None
    from scipy.stats import bootstrap

    found = bootstrap(
        (np.asarray(values, dtype=np.float64),), np.mean, confidence_level=confidence, n_resamples=RESAMPLES,
        method="BCa", rng=np.random.default_rng(_SEED),
    )  # fmt: skip
    low, high = float(found.confidence_interval.low), float(found.confidence_interval.high)
    return Interval(low, high, confidence) if np.isfinite(low) and np.isfinite(high) else None


def quantile_ranks(n: int, percent: float, confidence: float = CONFIDENCE) -> tuple[int, int, float] | None:
    """Return the ranks, from 0, of the order statistics around a quantile, and their exact coverage.

    The number of independent samples at or below the quantile is binomial, so the coverage is exact for any
    continuous distribution; it is not below `confidence`. None where even the extremes do not cover the quantile.

    >>> quantile_ranks(100, 50)
    (40, 60, 0.9539559330706572)
    >>> quantile_ranks(100, 99) is None
    True
    """
    from scipy.stats import binom

    share = percent / 100
    tail = (1 - confidence) / 2
    low = max(0, int(binom.ppf(tail, n, share)) - 1)
    high = min(n - 1, int(binom.ppf(1 - tail, n, share)))
    below = np.asarray(binom.cdf(np.arange(n), n, share))
    while below[high] - below[low] < confidence:
        if low == 0 and high == n - 1:
            return None
        low, high = max(0, low - 1), min(n - 1, high + 1)
    for closer in ((low + 1, high), (low, high - 1)):
        if below[closer[1]] - below[closer[0]] >= confidence:
            low, high = closer
            break
    return low, high, float(below[high] - below[low])


def quantile_interval(ordered: IntArray, percent: float, confidence: float = CONFIDENCE) -> Interval | None:
    """Return the interval of a quantile between two order statistics of independent, sorted samples.

    >>> quantile_interval(np.arange(1, 101), 50)
    Interval(low=41.0, high=61.0, coverage=0.9539559330706572)
    """
    ranks = quantile_ranks(len(ordered), percent, confidence)
    if ranks is None:
        return None
    low, high, coverage = ranks
    return Interval(float(ordered[low]), float(ordered[high]), coverage)


@dataclass(frozen=True, slots=True)
class Truncation:
    """How much of the beginning of a series MSER-5 cuts off."""

    cut: int
    """samples to leave out"""
    n: int
    refused: str = ""
    """why the cut is not to be trusted: it is over half of the run, or there are too few samples"""


def mser5(series: Sequence[float] | npt.NDArray[np.float64]) -> Truncation:
    """Return where a series settles: the cut that makes the standard error of what remains least, by batches of five.

    A least value in the second half is no warm-up but a run that never settled, or was too short; it is refused.

    >>> mser5([50.0] * 20 + [10.0, 12.0] * 200)
    Truncation(cut=20, n=420, refused='')
    >>> mser5([float(i) for i in range(400)]).refused
    'it would cut over half of the run: the series has not settled'
    """
    values = np.asarray(series, dtype=np.float64)
    n = len(values)
    batches = values[: n - n % BATCH].reshape(-1, BATCH).mean(axis=1)
    count = len(batches)
    if count < 10:
        return Truncation(0, n, f"{n} samples, MSER-5 needs {10 * BATCH}")
    left = np.arange(count, 0, -1)
    sums = np.cumsum(batches[::-1])[::-1]
    squares = np.cumsum((batches**2)[::-1])[::-1]
    error = np.maximum(squares - sums**2 / left, 0.0) / left**2
    # The last few batches always look settled: there is hardly anything left that could vary.
    best = int(np.argmin(error[: count - BATCH]))
    if 2 * best > count:
        return Truncation(0, n, "it would cut over half of the run: the series has not settled")
    return Truncation(best * BATCH, n)
