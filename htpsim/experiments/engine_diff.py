"""Where two engines part: the first instant at which one run's log is not the other's, and what each says there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from htpsim.experiments.engine import simulate
from htpsim.results.columns import NEVER, Execute, Request, Slice
from htpsim.results.log import RunLog
from htpsim.spec import Scenario


class Parting(NamedTuple):
    """One row that is not the same in both logs."""

    at_ns: int
    """when it first matters"""
    table: str
    row: str
    """which: a graphExecute, a request"""
    differs: dict[str, tuple[object, object]]
    """column -> (reference, kernel)"""


@dataclass(frozen=True, slots=True)
class EngineDiff:
    """What two logs of one run have that is not the same, earliest first."""

    engines: tuple[str, str]
    executes: int
    partings: list[Parting]

    @property
    def same(self) -> bool:
        """Whether the logs are the same to the bit."""
        return not self.partings


def diff_engines(scenario: Scenario, replication: int = 0) -> EngineDiff:
    """Run one replication in both engines and compare what they leave behind.

    Raises
    ------
    ScenarioError
        When the kernel does not know something in the scenario.

    Examples
    --------
    >>> diff_engines(Scenario()).same
    True
    """
    theirs = simulate(scenario, replication, engine="reference")
    ours = simulate(scenario, replication, engine="kernel")
    return diff_logs(theirs, ours)


def diff_logs(theirs: RunLog, ours: RunLog) -> EngineDiff:
    """Compare two logs of one run, the reference engine's first.

    Examples
    --------
    >>> log = simulate(Scenario(), engine="reference")
    >>> diff_logs(log, log).partings
    []
    """
    found = [*_rows(theirs, ours), *_rest(theirs, ours)]
    return EngineDiff((theirs.engine, ours.engine), len(theirs.executes), sorted(found, key=lambda p: p.at_ns))


def _rows(theirs: RunLog, ours: RunLog) -> Iterator[Parting]:
    """Yield what differs in the tables of rows."""
    for table, columns, key in (("executes", Execute, 1), ("requests", Request, 2), ("slices", Slice, 3)):
        fields: Sequence[str] = columns._fields
        a = {tuple(row[:key]): row for row in getattr(theirs, table)}
        b = {tuple(row[:key]): row for row in getattr(ours, table)}
        for name in sorted(a.keys() | b.keys()):
            one, other = a.get(name), b.get(name)
            if one == other:
                continue
            what = " ".join(f"{field} {value}" for field, value in zip(fields, name, strict=False))
            if one is None or other is None:
                there: Any = one or other
                side = ("missing", "there") if one is None else ("there", "missing")
                yield Parting(_first_ns(fields, there, None), table, what, {"row": side})
                continue
            pairs = zip(fields, one, other, strict=True)
            differs: dict[str, tuple[object, object]] = {f: (x, y) for f, x, y in pairs if x != y}
            yield Parting(_first_ns(fields, one, other), table, what, differs)


def _first_ns(fields: Sequence[str], one: Sequence[int], other: Sequence[int] | None) -> int:
    """Return the earliest instant of a row at which the two say different things; of a lone row, its earliest."""
    instants = []
    for n, field in enumerate(fields):
        differs = other is None or one[n] != other[n]
        if field.endswith("_ns") and differs:
            instants += [value for value in (one[n], other[n] if other is not None else NEVER) if value != NEVER]
    return min(instants, default=max(one[-1], 0))


def _rest(theirs: RunLog, ours: RunLog) -> Iterator[Parting]:
    """Yield what differs in the rest: its order in time, names, loading, memory."""
    for name in ("ready_ns", "start_ns", "end_ns", "clients", "graphs", "accounts", "memory", "loads", "copies"):
        one, other = getattr(theirs, name), getattr(ours, name)
        if one != other:
            yield Parting(theirs.start_ns, name, "", {name: (one, other)})
    if theirs.failed != ours.failed or theirs.notes != ours.notes:
        yield Parting(theirs.start_ns, "failed", "", {"failed": (theirs.failed, ours.failed)})
