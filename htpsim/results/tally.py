"""What a run without records leaves: counts, sums and extremes, exact, and latencies in bins of a known width.

Its size does not depend on how long was simulated. A quantile is told as the two ends of the bin that holds it: the
value of a run with records lies between them. A bin is at most 1/128 of its lower end wide; below 256 ns, exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

MANTISSA = 7
"""Bits of a value that its bin keeps below the first."""
BINS = 58 << MANTISSA

TALLIED = ("ttft", "itl", "vit", "job")
"""Measures, as `samples.DEFINITIONS` defines them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """One measure of one client over the measured window."""

    count: int
    total_ns: int
    least_ns: int
    """0 without any sample, as is the greatest"""
    most_ns: int
    bins: npt.NDArray[np.int64]
    """samples by bin; see `bin_start_ns`"""

    @property
    def mean_ns(self) -> float | None:
        """The mean, exact; None without any sample."""
        return self.total_ns / self.count if self.count else None

    def quantile_ns(self, percent: int) -> tuple[int, int] | None:
        """Return the least and the greatest that the order statistic can be; None without any sample.

        >>> bins = np.zeros(BINS, dtype=np.int64)
        >>> bins[[10, 300]] = 3, 1
        >>> latency = Latency(count=4, total_ns=0, least_ns=10, most_ns=346, bins=bins)
        >>> latency.quantile_ns(50), latency.quantile_ns(99)
        ((10, 10), (344, 345))
        """
        if not self.count:
            return None
        rank = max(1, -(-self.count * percent // 100))
        place = int(np.searchsorted(np.cumsum(self.bins), rank))
        low, high = bin_start_ns(place), bin_start_ns(place + 1) - 1
        return max(low, self.least_ns), max(min(high, self.most_ns), low)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientTally:
    """The figures of one client: requests over the whole run, the rest over the measured window."""

    name: str
    arrived: int
    done: int
    dropped: int
    refused: int
    calls: int
    """graphExecutes that returned"""
    device_ns: int
    """acquire + run + evict + restore of those"""
    guard_wait_ns: int
    device_wait_ns: int
    tokens: int
    latencies: dict[str, Latency]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The figures of one run without records."""

    replication: int
    start_ns: int
    end_ns: int
    executes: int
    """graphExecutes called in the whole run"""
    clients: dict[str, ClientTally]


def bin_start_ns(place: int) -> int:
    """Return the least value of a bin.

    >>> bin_start_ns(255), bin_start_ns(256), bin_start_ns(257)
    (255, 256, 258)
    """
    if place < 2 << MANTISSA:
        return place
    shift = (place >> MANTISSA) - 1
    return (place - (shift << MANTISSA)) << shift
