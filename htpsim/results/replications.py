"""One figure over several replications: its mean, and the half-width of its confidence interval.

Replications are independent, samples within one are not, so the interval rests on the replications alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from htpsim.results.metric import Metric
from htpsim.results.summary import Summary

CONFIDENCE: Final = 0.95


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure over replications."""

    mean: float | None
    half_width: float | None
    """half of the 95 % confidence interval by Student's t; None for a single replication"""
    n: int
    """replications"""
    unit: str
    why: str = ""


def across(summaries: Sequence[Summary], path: str) -> Estimate:
    """Return the metric at `path` over replications; missing when it is missing in any of them."""
    return estimate([summary.metric(path) for summary in summaries])


def estimate(metrics: Sequence[Metric]) -> Estimate:
    """Return the mean of one metric over replications, with its confidence interval.

    >>> e = estimate([Metric(1.0, 9, "ns"), Metric(2.0, 9, "ns"), Metric(3.0, 9, "ns")])
    >>> e.mean, round(e.half_width, 3)
    (2.0, 2.484)
    """
    if not metrics:
        return Estimate(None, None, 0, "", "no run")
    unit, n = metrics[0].unit, len(metrics)
    values = [m.value for m in metrics if m.value is not None]
    if len(values) < n:
        why = next(m.why for m in metrics if m.value is None)
        return Estimate(
            None, None, n, unit, why if n == 1 or not values else f"{why} (in {n - len(values)} of {n} runs)"
        )
    mean = math.fsum(values) / n
    if n == 1:
        return Estimate(mean, None, n, unit)
    from scipy.special import stdtrit

    variance = math.fsum((value - mean) ** 2 for value in values) / (n - 1)
    return Estimate(mean, float(stdtrit(n - 1, (1 + CONFIDENCE) / 2)) * math.sqrt(variance / n), n, unit)
