"""Figures that are kept as a run goes, where its rows are not: counts, sums, extremes, bins."""

from __future__ import annotations

from typing import Any

from htpsim.results.tally import BINS, MANTISSA, TALLIED

MEASURES = len(TALLIED)
TTFT, ITL, VIT, JOB = range(MEASURES)
WHOLE = 2 << MANTISSA


def tally(w: Any, u: int, measure: int, value_ns: int) -> None:
    """Count a sample that ends now, if that is within the measured window."""
    if w.st.now_ns <= w.st.start_ns:
        return
    place = u * MEASURES + measure
    kept = w.tallies[place]
    if kept.count == 0 or value_ns < kept.least_ns:
        kept.least_ns = value_ns
    kept.most_ns = max(kept.most_ns, value_ns)
    kept.count += 1
    kept.total_ns += value_ns
    w.bins[place * BINS + bin_of(value_ns)] += 1


def bin_of(value_ns: int) -> int:
    """Return the bin of a value: its bit length and the bits below the first.

    >>> from htpsim.results.tally import bin_start_ns
    >>> all(bin_start_ns(bin_of(v)) <= v < bin_start_ns(bin_of(v) + 1) for v in (0, 7, 255, 256, 999, 10**9, 2**61))
    True
    """
    shift = 0
    while value_ns >= WHOLE << 8:
        value_ns >>= 8
        shift += 8
    while value_ns >= WHOLE:
        value_ns >>= 1
        shift += 1
    return (shift << MANTISSA) + value_ns


def tally_call(w: Any, job: Any) -> None:
    """Count a graphExecute that returns now."""
    if w.st.now_ns <= w.st.start_ns:
        return
    user = w.users[job.user]
    user.calls += 1
    user.device_ns += job.acquired_ns + job.run_ns + job.evict_ns + job.restore_ns
    user.guard_wait_ns += job.granted_ns - job.called_ns
    user.device_wait_ns += job.wait_ns


def forget(w: Any, r: int) -> None:
    """Let the place of a request that is over be taken by another, where none is kept."""
    if not w.st.keeps:
        w.requests[r].next = w.st.free_request
        w.st.free_request = r
