"""Times of many executions, kept as counts by value: exact figures of a log of any length in bounded memory."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from htpsim.formats.samples import mean_ns, median_ns

Key: TypeAlias = tuple[str, str]
"""Kind and name of a series, such as ("execute", graph)."""

VALUES_MAX: Final = 2**20
"""So many different values are kept in all; a clock of 0.1 ms has some hundred a graph."""


@dataclass(frozen=True, slots=True)
class Times:
    """What repeated times amount to [ns]."""

    n: int
    total_ns: int
    mean_ns: int
    median_ns: int
    min_ns: int
    max_ns: int
    first_ns: int
    line: int
    """Where the first one ends."""

    last_line: int
    """Where the last one ends."""

    counts: tuple[tuple[int, int], ...]
    """Value and how often, ascending."""


@dataclass(slots=True)
class _Series:
    first: int
    line: int
    last_line: int
    counts: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class Recorder:
    """Counts times by series; keeps those of one series in their order.

    Examples
    --------
    >>> recorder = Recorder(keep=("execute", "vit"))
    >>> for line, value in enumerate((30, 10, 10), start=1):
    ...     recorder.add(("execute", "vit"), value, line)
    >>> recorder.times(("execute", "vit")).median_ns, list(recorder.kept)
    (10, [30, 10, 10])
    """

    keep: Key | None = None
    kept: array[int] = field(default_factory=lambda: array("q"))
    values: int = 0
    """How many different values there are in all series."""

    series: dict[Key, _Series] = field(default_factory=dict)

    def add(self, key: Key, value_ns: int, line: int) -> None:
        """Count one time."""
        found = self.series.get(key)
        if found is None:
            found = self.series[key] = _Series(value_ns, line, line)
        found.last_line = line
        counts = found.counts
        if value_ns in counts:
            counts[value_ns] += 1
        else:
            counts[value_ns] = 1
            self.values += 1
        if key == self.keep:
            self.kept.append(value_ns)

    def times(self, key: Key) -> Times | None:
        """Return what a series amounts to, ``None`` where it has no time."""
        found = self.series.get(key)
        if found is None:
            return None
        counts = found.counts
        return Times(
            n=sum(counts.values()),
            total_ns=sum(value * count for value, count in counts.items()),
            mean_ns=mean_ns(counts),
            median_ns=median_ns(counts),
            min_ns=min(counts),
            max_ns=max(counts),
            first_ns=found.first,
            line=found.line,
            last_line=found.last_line,
            counts=tuple(sorted(counts.items())),
        )

    def names(self, kind: str) -> tuple[str, ...]:
        """Return the names of all series of a kind, in the order of their first times."""
        return tuple(name for found, name in self.series if found == kind)
