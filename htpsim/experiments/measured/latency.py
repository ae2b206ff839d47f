"""How long runs took, and whether they can be trusted: quantiles, a histogram, and signs of noise.

==========  ==========================================================================================
sign        what it is, and what it hints at
==========  ==========================================================================================
drift       median of the last third over that of the first, less one: heat, a governor, a swapping machine
outliers    share of runs beyond the upper quartile by three times the distance of the quartiles
settled     runs that MSER-5 would cut off in front: warm-up that went on after the warm-up
cpu share   processor time a run over its length and its threads: less means that others had the core
==========  ==========================================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from htpsim.errors import HtpsimError
from htpsim.results.metric import IntArray, Metric, missing, order_statistic, samples_needed, total
from htpsim.results.statistics import mser5

PERCENTS: Final = (50, 90, 95, 99)
BARS: Final = " ▁▂▃▄▅▆▇█"
BINS: Final = 40
FAR: Final = 3
"""Distances of the quartiles beyond which a run is an outlier (Tukey's "far out")."""
DRIFT_MAX: Final = 0.03
OUTLIERS_MAX: Final = 0.02
CPU_MIN: Final = 0.97
"""Of one thread: less than that, and somebody else had the core."""
_DRIFT_NEEDS: Final = 15
_QUARTILES_NEED: Final = 8


@dataclass(frozen=True, slots=True)
class Latency:
    """A set of runs."""

    n: int
    mean_ns: int
    min_ns: int
    max_ns: int
    quantiles: tuple[tuple[int, Metric], ...]
    """percent -> order statistic, withheld where too few runs lie beyond it"""
    histogram: str
    """one line of bars from least to p99, or to the largest; each as high as its share"""
    histogram_to_ns: int
    drift: float | None
    """None for too few runs"""
    outliers: float | None
    cut: int
    """runs that MSER-5 would leave out in front"""
    unsettled: str
    """why MSER-5 found no such place; "" where it did"""

    @property
    def median_ns(self) -> int:
        """The median as an order statistic; of few runs the mean."""
        found = dict(self.quantiles)[50].value
        return self.mean_ns if found is None else int(found)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "n": self.n,
            "mean_ns": self.mean_ns,
            "min_ns": self.min_ns,
            "max_ns": self.max_ns,
            **{f"p{percent}": metric.to_dict() for percent, metric in self.quantiles},
            "drift": None if self.drift is None else round(self.drift, 6),
            "outliers": None if self.outliers is None else round(self.outliers, 6),
            "settled_after": None if self.unsettled else self.cut,
        }


def latency(samples_ns: Sequence[int]) -> Latency:
    """Describe runs in the order in which they were made.

    Raises
    ------
    HtpsimError
        When there is none.

    Examples
    --------
    >>> found = latency([5_000, 4_000, 6_000, 4_000, 5_000])
    >>> found.mean_ns, found.median_ns, dict(found.quantiles)[99].why
    (4800, 5000, '5 samples, p99 needs 200')
    """
    if not len(samples_ns):
        raise HtpsimError("latency: got no run, expected at least one")
    values = np.asarray(samples_ns, dtype=np.int64)
    ordered = np.sort(values)
    n = len(values)
    quantiles = tuple((percent, _quantile(ordered, percent)) for percent in PERCENTS)
    p99 = quantiles[-1][1].value
    reach = int(ordered[-1]) if p99 is None else int(p99)
    settling = mser5(values.astype(np.float64))
    return Latency(
        n=n,
        mean_ns=round(total(values) / n),
        min_ns=int(ordered[0]),
        max_ns=int(ordered[-1]),
        quantiles=quantiles,
        histogram=histogram(ordered, reach),
        histogram_to_ns=reach,
        drift=_drift(values),
        outliers=_outliers(ordered),
        cut=settling.cut,
        unsettled=settling.refused,
    )


def _quantile(ordered: IntArray, percent: int) -> Metric:
    n, needed = len(ordered), samples_needed(percent)
    if n < needed:
        return missing(f"{n} sample{'s' * (n > 1)}, p{percent} needs {needed}", "ns", n)
    return Metric(order_statistic(ordered, percent), n, "ns")


def histogram(ordered: IntArray, reach_ns: int, bins: int = BINS) -> str:
    """Return how sorted values spread, from the least to `reach_ns`, as one line of bars.

    Every bar that holds a value shows; the highest is full.

    >>> histogram(np.array([10, 10, 10, 10, 20, 30]), 30, bins=5)
    '█ ▂ ▂'
    >>> histogram(np.array([7, 7]), 7, bins=5)
    '█'
    """
    if ordered[0] >= reach_ns:
        return BARS[-1]
    counts, _ = np.histogram(ordered, bins=bins, range=(int(ordered[0]), reach_ns))
    steps = len(BARS) - 1
    return "".join(BARS[-(-int(count) * steps // int(counts.max()))] for count in counts)


def _drift(values: IntArray) -> float | None:
    if len(values) < _DRIFT_NEEDS:
        return None
    third = len(values) // 3
    return float(np.median(values[-third:]) / np.median(values[:third])) - 1


def _outliers(ordered: IntArray) -> float | None:
    if len(ordered) < _QUARTILES_NEED:
        return None
    low, high = (order_statistic(ordered, percent) for percent in (25, 75))
    return float(np.mean(ordered > high + FAR * (high - low)))


def doubts(found: Latency, cpu_share: float | None) -> tuple[str, ...]:
    """Say what speaks against taking these runs for those of an idle machine; nothing where nothing does.

    Parameters
    ----------
    found
        The runs.
    cpu_share
        Processor time over the length of the runs, of one thread; None where several share the work.

    Examples
    --------
    >>> doubts(latency([1_000] * 60 + [2_000] * 60), 0.5)[0]
    'the runs had 50 % of a core: the machine was busy, so they took longer than they need'
    """
    said = []
    if cpu_share is not None and cpu_share < CPU_MIN:
        said.append(
            f"the runs had {100 * cpu_share:.0f} % of a core: the machine was busy, so they took longer than they need"
        )
    if found.drift is not None and abs(found.drift) > DRIFT_MAX:
        said.append(f"the last third of the runs took {100 * found.drift:+.1f} % against the first: a drift")
    if found.outliers is not None and found.outliers > OUTLIERS_MAX:
        said.append(f"{100 * found.outliers:.1f} % of the runs are far out: something interrupted them")
    if 10 * found.cut > found.n:
        said.append(f"the first {found.cut} runs were still unlike the others: try more --warmup")
    return tuple(said)
