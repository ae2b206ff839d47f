"""The data of a QNN profiling CSV: phases that happen once, executions that repeat, their measurements."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from htpsim.formats.values import Value

Number: TypeAlias = Value[int] | Value[float]

NETRUN: Final = "NetRun"
"""The event of a row that the tool itself measured; the viewer's text gives it this name."""

HVX_THREADS: Final = "Number of HVX threads used"


@dataclass(frozen=True, slots=True)
class CsvMeasurement:
    """One measured event."""

    event: str
    value: Number


def held(measurements: tuple[CsvMeasurement, ...], event: str) -> tuple[Number, ...]:
    """Return every value of an event, in the order of the file.

    >>> held((CsvMeasurement("x", Value(5, "us", 1)), CsvMeasurement("x", Value(6, "us", 2))), "x")
    (Value(value=5, unit='us', line=1), Value(value=6, unit='us', line=2))
    """
    return tuple(item.value for item in measurements if item.event == event)


@dataclass(frozen=True, slots=True)
class CsvPhase:
    """What happens once: INIT, COMPOSE GRAPHS, FINALIZE, DE-INIT."""

    message: str
    """The whole word of the Message column; INIT is not DE-INIT."""

    line: int
    timestamp: int | None
    measurements: tuple[CsvMeasurement, ...] = ()

    def events(self, event: str) -> tuple[Number, ...]:
        """Return every value of an event: one for each context binary where several are loaded."""
        return held(self.measurements, event)

    def event(self, event: str) -> Number | None:
        """Return the value of an event that is measured once, ``None`` where it is absent or repeated."""
        found = self.events(event)
        return found[0] if len(found) == 1 else None


@dataclass(frozen=True, slots=True)
class CsvExecution:
    """One execution of one graph."""

    graph: str
    index: int | None
    """The number that the tool gave the graph."""

    line: int
    timestamp: int | None
    """The backend's own clock; it tells executions apart and orders them, its unit is not stated."""

    measurements: tuple[CsvMeasurement, ...] = ()
    operations: tuple[CsvMeasurement, ...] = ()
    """Cycles by operation, of detailed profiling only."""

    complete: bool = True
    """Whether it lists all that other executions of its graph list; the last one of a cut file does not."""

    def events(self, event: str) -> tuple[Number, ...]:
        """Return every value of an event."""
        return held(self.measurements, event)

    def event(self, event: str) -> Number | None:
        """Return the value of an event that is measured once, ``None`` where it is absent or repeated."""
        found = self.events(event)
        return found[0] if len(found) == 1 else None

    @property
    def names(self) -> frozenset[str]:
        """Which events it measures."""
        return frozenset(item.event for item in self.measurements)


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvLog:
    """One CSV. A phase that it does not have is ``None``, and so is every value of it."""

    columns: tuple[str, ...]
    missing_columns: tuple[str, ...]
    header_line: int | None
    header_has_spaces: bool
    preamble: tuple[tuple[str, Value[str]], ...]
    phases: tuple[CsvPhase, ...]
    executions: tuple[CsvExecution, ...]
    """In the order of the file, which goes by graph, not by time."""

    overall: tuple[CsvMeasurement, ...] = ()
    """Rates over the whole run, such as inferences a second."""

    cut: Value[str] | None = None
    """The last line, where it ends in the middle of its fields."""

    truncated: bool = False

    def phase(self, message: str) -> CsvPhase | None:
        """Return a phase by its whole name."""
        return next((item for item in self.phases if item.message == message), None)

    @property
    def graphs(self) -> tuple[str, ...]:
        """The names of all graphs, in the order of the file."""
        return tuple(dict.fromkeys(item.graph for item in self.executions))

    def by_graph(self) -> dict[str, list[CsvExecution]]:
        """Return all executions by graph, in the order of the file."""
        found: dict[str, list[CsvExecution]] = {}
        for item in self.executions:
            found.setdefault(item.graph, []).append(item)
        return found

    def of(self, graph: str, complete: bool = True) -> tuple[CsvExecution, ...]:
        """Return the executions of a graph; complete ones only, unless all are wanted."""
        return tuple(item for item in self.executions if item.graph == graph and (item.complete or not complete))

    @property
    def tool_version(self) -> str | None:
        """The version of the viewer, else of qnn-net-run."""
        versions = {name: value.value for name, value in self.preamble}
        return versions.get("qnn-profile-viewer version") or versions.get("qnn-net-run version")

    @property
    def level(self) -> str | None:
        """The profiling level, derived: detailed lists operations; ``None`` when nothing was executed."""
        if any(item.operations for item in self.executions):
            return "detailed"
        return "basic" if self.executions else None

    @property
    def hvx_threads(self) -> Number | None:
        """How many HVX threads were used; the most of any execution."""
        stated = [value for item in self.executions for value in item.events(HVX_THREADS)]
        return max(stated, key=lambda value: value.value) if stated else None

    def settled(self, unterminated: int | None) -> CsvLog:
        """Mark the last execution as incomplete where the file ends within it.

        Parameters
        ----------
        unterminated
            The number of a last line that has no line end.
        """
        if not self.executions:
            return replace(self, truncated=self.cut is not None)
        *others, last = self.executions
        graph = last.graph
        if unterminated == last.line:
            longer = {item.graph for item in others if item.index == last.index and item.graph.startswith(graph)}
            graph = longer.pop() if len(longer) == 1 else graph
        # Graphs of one backend list the same events, so any other execution tells what is missing.
        before = next((item for item in reversed(others) if item.graph == graph), others[-1] if others else None)
        whole = self.cut is None or self.cut.line < last.line
        confirmed = unterminated != last.line or any(item.graph == graph for item in others)
        whole = whole and graph == last.graph and confirmed
        if whole and not (before and _begins(last, before)):
            return replace(self, truncated=self.cut is not None)
        return replace(self, executions=(*others, replace(last, graph=graph, complete=False)), truncated=True)


def _begins(last: CsvExecution, before: CsvExecution) -> bool:
    """Say whether an execution lists the first of another's events, and not the others."""
    listed = [item.event for item in last.measurements]
    return len(listed) < len(before.measurements) and all(
        event == item.event for event, item in zip(listed, before.measurements, strict=False)
    )
