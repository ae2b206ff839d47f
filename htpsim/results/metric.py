"""A measured number that knows its unit, its sample count, and why it is missing."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

import numpy as np
import numpy.typing as npt

from htpsim.units import format_bytes, format_time

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

QUANTILES: Final = (50, 95, 99)
SAMPLES_MIN: Final = 5
NOT_AVAILABLE: Final = "n/a"
DIGITS: Final = 6
"""Floats are rounded to this many decimals where they leave the program."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One number of a summary; `value` is None where it would mislead, and `why` then says so.

    >>> str(Metric(178_800_000, 40, "ns")), str(Metric(None, 12, "ns", "12 samples, p99 needs 200"))
    ('179 ms', 'n/a')
    """

    value: int | float | None
    n: int
    """how many samples it rests on"""
    unit: str
    """"ns", "bytes", "share" (of one), "count", "per_s", "tokens_per_s" or "cores"."""
    why: str = ""
    """reason for a missing value"""

    def to_dict(self) -> dict[str, int | float | str | None]:
        """Return the JSON form: integers stay integers, floats are rounded to six decimals."""
        value = round(self.value, DIGITS) if isinstance(self.value, float) else self.value
        return {"value": value, "n": self.n, "unit": self.unit, "why": self.why}

    def __str__(self) -> str:
        if self.value is None:
            return NOT_AVAILABLE
        if self.unit == "ns":
            return format_time(self.value)
        if self.unit == "bytes":
            return format_bytes(self.value)
        if self.unit == "share":
            return f"{100 * self.value:.1f} %"
        if self.unit == "count":
            return f"{self.value:,}"
        return f"{self.value:.2f} {self.unit.replace('_per_', '/').replace('per_', '1/')}"


@dataclass(frozen=True, slots=True)
class Stats:
    """Mean, three quantiles and the maximum of one set of samples."""

    mean: Metric
    p50: Metric
    p95: Metric
    p99: Metric
    max: Metric

    def to_dict(self) -> dict[str, dict[str, int | float | str | None]]:
        """Return the JSON form of the five metrics."""
        return {f.name: getattr(self, f.name).to_dict() for f in fields(self)}


SHARES: Final = (
    *("choices", "waited", "slow_tokens", "utilisation"),
    *("share", "fair_share", "weight_share", "guarded_share"),
)
"""Last parts of the paths of figures that are shares of one."""


def unit_of(path: str) -> str:
    """Return the unit of a metric by its path.

    >>> [unit_of(path) for path in ("overall.itl.p99", "overall.tokens_per_s", "memory.device.steady_bytes")]
    ['ns', 'tokens_per_s', 'bytes']
    """
    last = path.rsplit(".", 1)[-1]
    if last in ("mean", "p50", "p95", "p99", "max", "open_age") or last.endswith("_ns"):
        return "ns"
    if last.endswith("_bytes"):
        return "bytes"
    if last.endswith("_per_s"):
        return last if last == "tokens_per_s" else "per_s"
    if last == "demand":
        return "cores"
    return "share" if last in SHARES else "count"


def missing(why: str, unit: str, n: int = 0) -> Metric:
    """Return a metric without a value, and the reason.

    >>> missing("no deadline set", "count").value is None
    True
    """
    return Metric(None, n, unit, why)


def ratio(part: int | float, whole: int | float, n: int, why: str) -> Metric:
    """Return the share `part` / `whole`, or a missing one with reason `why` when there is no whole.

    >>> ratio(1, 4, 4, "").value
    0.25
    """
    return Metric(part / whole, n, "share") if whole else missing(why, "share", n)


def samples_needed(percent: int) -> int:
    """Return how many samples the quantile `percent` needs: two beyond it, and never fewer than five.

    >>> [samples_needed(p) for p in (50, 95, 99)]
    [5, 40, 200]
    """
    return max(SAMPLES_MIN, -(-200 // (100 - percent)))


def order_statistic(ordered: IntArray, percent: int) -> int:
    """Return the inverted-CDF quantile of sorted values: the least one with `percent` % at or below it.

    An order statistic, so it is a value that occurred and never exceeds the maximum.

    >>> order_statistic(np.arange(1, 11), 95), order_statistic(np.arange(1, 11), 50)
    (10, 5)
    """
    return int(ordered[-(-len(ordered) * percent // 100) - 1])


def total(values: IntArray) -> int:
    """Return the exact sum of integers, also where 64 bits would not hold it."""
    if not len(values):
        return 0
    largest = max(abs(int(values.max())), abs(int(values.min())))
    return int(values.sum()) if largest * len(values) < 2**62 else sum(values.tolist())


def stats(values: IntArray, unit: str = "ns", *, why: str = "") -> Stats:
    """Describe samples; with a `why`, every number is withheld for that reason and only the count is kept.

    >>> s = stats(np.array([3, 1, 2, 5, 4]))
    >>> s.mean.value, s.p50.value, s.p95.why
    (3.0, 3, '5 samples, p95 needs 40')
    """
    n = len(values)
    if why or not n:
        none = missing(why or "no samples", unit, n)
        return Stats(none, none, none, none, none)
    ordered = np.sort(values)
    p50, p95, p99 = (
        Metric(order_statistic(ordered, p), n, unit)
        if n >= samples_needed(p)
        else missing(f"{n} sample{'s' * (n > 1)}, p{p} needs {samples_needed(p)}", unit, n)
        for p in QUANTILES
    )
    return Stats(Metric(total(values) / n, n, unit), p50, p95, p99, Metric(int(ordered[-1]), n, unit))
