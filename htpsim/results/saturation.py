"""Whether each client's work keeps up with what arrives: stable, backlogged or overloaded.

Where requests arrive by the clock and more come than can be served, the line grows for as long as the run lasts, and
the mean of any latency says how long the run was and nothing else. The verdict is read off the line in ten stretches
of the measured window; a closed loop waits for its answers and is always stable.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from htpsim.results.columns import DROPPED, NEVER, REFUSED
from htpsim.results.metric import IntArray
from htpsim.results.shares import all_clients
from htpsim.results.tables import Tables
from htpsim.spec import Instance

STABLE, BACKLOGGED, OVERLOADED = "stable", "backlogged", "overloaded"
STRETCHES: Final = 10
LAG: Final = 0.05
"""Overloaded: this share of the arrivals or more is left over at the end."""
GROWN_MIN: Final = 5
"""... and that is at least so many requests."""
RISES: Final = 35
"""... and of the 45 pairs of instants so many more show a longer line later than a shorter one."""
DROPPED_SHARE: Final = 0.01
"""Or a full queue drops this share of what arrives."""
IN_LINE_SHARE: Final = 0.9
"""Backlogged: somebody waits for this share of the time or more."""


class Saturation(NamedTuple):
    """The verdict on one client."""

    state: str
    why: str = ""


def saturation(tables: Tables, client: int) -> Saturation:
    """Return whether a client keeps up with its arrivals in the measured window."""
    spec = all_clients(tables.log.scenario)[client]
    r = tables.requests
    mine = r["client"] == client
    arrived = mine & tables.measured(r["arrived_ns"])
    count = int(np.count_nonzero(arrived))
    if spec.arrivals.kind == "closed" or not count:
        return Saturation(STABLE)
    dropped = int(np.count_nonzero(arrived & (r["state"] == DROPPED)))
    if dropped >= max(1.0, DROPPED_SHARE * count):
        return Saturation(OVERLOADED, f"{dropped:,} of {count:,} requests were dropped from its full queue")
    held = mine & (r["state"] != DROPPED) & (r["state"] != REFUSED)
    line = _Line(r["arrived_ns"][held], r["done_ns"][held])
    instants = np.linspace(tables.log.start_ns, tables.log.end_ns, STRETCHES + 1).astype(np.int64)
    at = line.length(instants)
    grown = int(at[-1] - at[0])
    if grown >= max(GROWN_MIN, LAG * count) and _rises(at[1:]) >= RISES:
        return Saturation(OVERLOADED, f"its line grew from {at[0]:,} to {at[-1]:,} requests, of {count:,} that arrived")
    served = 1 if isinstance(spec, Instance) else spec.outstanding
    share = line.share_above(served, tables.log.start_ns, tables.log.end_ns) if served else 0.0
    if share >= IN_LINE_SHARE:
        return Saturation(BACKLOGGED, f"somebody was in line for {100 * share:.0f} % of the time")
    return Saturation(STABLE)


class _Line:
    """Who is in the system: arrived and not done."""

    def __init__(self, arrived_ns: IntArray, done_ns: IntArray) -> None:
        self._arrived = np.sort(arrived_ns)
        self._done = np.sort(done_ns[done_ns != NEVER])

    def length(self, at_ns: IntArray) -> IntArray:
        """Return how many are in the system at some instants."""
        came: IntArray = np.searchsorted(self._arrived, at_ns, side="right")
        went: IntArray = np.searchsorted(self._done, at_ns, side="right")
        return came - went

    def share_above(self, count: int, start_ns: int, end_ns: int) -> float:
        """Return the share of a stretch of time in which more than `count` are in the system."""
        changes = np.concatenate([self._arrived, self._done])
        inside = np.unique(np.clip(np.append(changes, [start_ns, end_ns]), start_ns, end_ns))
        above = self.length(inside[:-1]) > count
        return float((inside[1:] - inside[:-1])[above].sum() / max(1, end_ns - start_ns))


def _rises(values: IntArray) -> int:
    """Return Mann and Kendall's S: pairs that rise less pairs that fall.

    >>> _rises(np.arange(10)), _rises(np.array([1, 2, 1]))
    (45, 0)
    """
    later, earlier = np.triu_indices(len(values), 1)[::-1]
    return int(np.sign(values[later] - values[earlier]).sum())
