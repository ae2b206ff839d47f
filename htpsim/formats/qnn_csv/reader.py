"""CSV of qnn-net-run and qnn-profile-viewer, in every variant of its columns, whole or cut off.

A row that the tool itself measured (timing source NETRUN) opens a phase or an execution; the backend's rows that
follow belong to it::

    17992257015,EXECUTE,13399,US,NETRUN,ROOT,Graph 0: prefill      opens an execution of graph 0
    17992257015,EXECUTE,12179,US,BACKEND,ROOT,Accelerator (execute) time
    17992257015,EXECUTE,7492,CYCLES,BACKEND,SUB-EVENT,MatMul:OpId_120 (cycles)

Rows stand by graph and not by time, so two neighbours in the file need not be neighbours in time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from htpsim.errors import FormatError
from htpsim.formats.form import Format, Match
from htpsim.formats.profilerows import Row, RowReader
from htpsim.formats.qnn_csv.log import NETRUN, CsvExecution, CsvLog, CsvMeasurement, CsvPhase
from htpsim.formats.qnn_csv.report import facts, warnings
from htpsim.formats.samples import choose, refuse_selectors, statistic_ns
from htpsim.formats.source import Source, shown
from htpsim.formats.values import Report, ServiceQuery, ServiceTime, Value, time_ns

NAME: Final = "qnn-csv"

PREFERRED: Final = (
    "Accelerator (execute) time",
    "QNN accelerator (execute) time",
    "GRAPH_EXECUTE",
    "QNN (execute) time",
    NETRUN,
)
"""Which event is the service time of a graph, best first: the accelerator's own time where it is stated."""

EXECUTE: Final = "EXECUTE"
_GRAPH: Final = re.compile(r"Graph (?P<index>\d{1,6}): ?(?P<name>.*)", re.ASCII)
_KNOWN_ENDS: Final = (" time", "(cycles)", " used", " occured", " occurred", " acquire", "null")
_TOOL: Final = re.compile(r"\s*qnn-(?:net-run|profile-viewer) version\s*,")
_NETRUN_ROW: Final = re.compile(r"(?:\d+,\s*)?[A-Z][A-Z -]*,\s*[\d.]+,\s*[A-Z/]+,\s*NETRUN\s*,", re.ASCII)
_SPACED_HEADER: Final = re.compile(r"\s*(?:Msg Timestamp, )?Message, Time, Unit of Measurement, ")
_HEADER: Final = re.compile(r"\s*(?:Msg Timestamp,)?Message,Time,Unit of Measurement,")
_LOOKED_AT: Final = 400


def sniff(source: Source) -> Match:
    """Say whether this is such a CSV; one without a row by the tool is another writer's with the same columns."""
    best = Match.NO
    for line in source.lines[:_LOOKED_AT]:
        if _TOOL.match(line) or _NETRUN_ROW.match(line) or _SPACED_HEADER.match(line):
            return Match.YES
        if _HEADER.match(line):
            best = Match.TRACES
    return best


def read(source: Source, lenient: bool = False) -> Report:
    r"""Read a CSV.

    Parameters
    ----------
    source
        The text.
    lenient
        Skip rows that cannot be read, with a note for each.

    Raises
    ------
    FormatError
        Names the line that could not be read.

    Examples
    --------
    >>> from htpsim.formats.source import from_text
    >>> log = read(from_text("a.csv", "EXECUTE,3301,US,NETRUN,ROOT,Graph 0: vit\n")).data
    >>> log.executions[0].event("NetRun"), log.phase("INIT"), log.missing_columns
    (Value(value=3301, unit='us', line=1), None, ('Msg Timestamp',))
    """
    log, notes = _parse(source, lenient)
    return Report(NAME, source.name, log, facts(log), source.notes + notes + warnings(log))


def service_time(source: Source, query: ServiceQuery) -> ServiceTime:
    """Find the service time of a graph over its complete executions.

    Raises
    ------
    FormatError
        When there is no such graph, statistic or event, with the nearest; or no execution that is whole.
    """
    values, label, line = _samples(source, query)
    where = f"{source.name}:{line}"
    return ServiceTime(statistic_ns(values, query.statistic, where), f"{where} {label}", query.statistic)


def samples(source: Source, query: ServiceQuery) -> tuple[int, ...]:
    """Return an event of every complete execution of a graph [ns], in the order of the file."""
    return _samples(source, query)[0]


def _samples(source: Source, query: ServiceQuery) -> tuple[tuple[int, ...], str, int]:
    """Return the samples, what they are, and the line of the first."""
    refuse_selectors(source.name, query)
    log, _ = _parse(source, lenient=False)
    graph = choose(f"{source.name}:1", "graph", query.graph, log.graphs)
    whole = log.of(graph)
    if not whole:
        line = log.of(graph, complete=False)[0].line
        raise source.error(line, f"one execution of {graph}, which is cut off", "a whole one")
    timed = [name for name in sorted(set.union(*(set(item.names) for item in whole))) if _is_time(whole, name)]
    wanted = query.event or next((name for name in PREFERRED if name in timed), None)
    event = choose(f"{source.name}:{whole[0].line}", "event", wanted, timed)
    values = []
    for item in whole:
        stated = item.events(event)
        if len(stated) > 1:
            raise source.error(stated[1].line, f"a second '{event}' of one execution", "one; choose another event")
        values += [time_ns(value, source.name) for value in stated]
    label = f"{event} of {graph}" if graph else event
    return tuple(values), label, whole[0].events(event)[0].line if whole[0].events(event) else whole[0].line


def _is_time(executions: tuple[CsvExecution, ...], event: str) -> bool:
    return any(value.unit in ("ns", "us", "ms", "s") for item in executions for value in item.events(event))


@dataclass(slots=True)
class _Draft:
    """An execution while it is being read."""

    graph: str
    index: int | None
    line: int
    timestamp: int | None
    measurements: list[CsvMeasurement] = field(default_factory=list)
    operations: list[CsvMeasurement] = field(default_factory=list)

    def made(self) -> CsvExecution:
        return CsvExecution(
            self.graph, self.index, self.line, self.timestamp, tuple(self.measurements), tuple(self.operations)
        )


@dataclass(slots=True)
class _Collector:
    """Sorts rows into phases and executions."""

    source: Source
    executions: list[_Draft] = field(default_factory=list)
    phases: dict[str, CsvPhase] = field(default_factory=dict)
    found: dict[str, list[CsvMeasurement]] = field(default_factory=dict)
    overall: list[CsvMeasurement] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    """One string for each event name, however many rows have it."""

    def take(self, row: Row) -> None:
        """Sort in one row."""
        name = self.names.setdefault(row.identifier or "null", row.identifier or "null")
        by_tool = row.timing_source == "NETRUN"
        if row.message != EXECUTE:
            if row.message not in self.phases:
                if not by_tool:
                    raise self._headless(row, name)
                self.phases[row.message] = CsvPhase(row.message, row.line, row.timestamp)
            event = NETRUN if by_tool and row.identifier is None else name
            self.found.setdefault(row.message, []).append(CsvMeasurement(event, row.value))
        elif by_tool and row.value.unit == "inf/sec":
            self.overall.append(CsvMeasurement("NetRun IPS" if row.identifier is None else name, row.value))
        elif by_tool:
            self._open(row)
        elif not self.executions:
            raise self._headless(row, name)
        elif row.level == "SUB-EVENT":
            self.executions[-1].operations.append(CsvMeasurement(name.removesuffix(" (cycles)"), row.value))
        else:
            self.executions[-1].measurements.append(CsvMeasurement(name, row.value))

    def _headless(self, row: Row, name: str) -> FormatError:
        expected = "a row of the tool itself first, with timing source NETRUN"
        return self.source.error(row.line, f"an event of no {row.message} that was opened: {shown(name)}", expected)

    def _open(self, row: Row) -> None:
        graph = _GRAPH.fullmatch(row.identifier or "")
        if graph is None and row.identifier is not None:
            raise self.source.error(row.line, shown(row.identifier), "a graph such as 'Graph 0: vit'")
        name = self.names.setdefault(graph["name"], graph["name"]) if graph else ""
        draft = _Draft(name, int(graph["index"]) if graph else None, row.line, row.timestamp)
        draft.measurements.append(CsvMeasurement(NETRUN, row.value))
        self.executions.append(draft)


def _cut_name(row: Row, source: Source, names: dict[str, str]) -> bool:
    """Say whether the identifier of a last row without line end may be cut: a name that nothing confirms."""
    if row.identifier is None:
        return source.lines[row.line - 1].endswith(",")
    name = row.identifier
    return name not in names and not name.endswith(_KNOWN_ENDS) and _GRAPH.fullmatch(name) is None


def _parse(source: Source, lenient: bool) -> tuple[CsvLog, tuple[str, ...]]:
    reader = RowReader(source, lenient)
    collector = _Collector(source)
    for row in reader.rows():
        if row.line == reader.unterminated and _cut_name(row, source, collector.names):
            reader.cut = Value(source.lines[row.line - 1], "", row.line)
            continue
        try:
            collector.take(row)
        except FormatError as error:
            if not lenient:
                raise
            reader.skipped.add(row.line, error)
    phases = (
        CsvPhase(item.message, item.line, item.timestamp, tuple(collector.found[item.message]))
        for item in collector.phases.values()
    )
    log = CsvLog(
        columns=reader.layout.columns,
        missing_columns=reader.layout.missing,
        header_line=reader.layout.header_line,
        header_has_spaces=reader.layout.header_has_spaces,
        preamble=tuple(reader.layout.preamble),
        phases=tuple(phases),
        executions=tuple(item.made() for item in collector.executions),
        overall=tuple(collector.overall),
        cut=reader.cut,
    )
    return log.settled(reader.unterminated), reader.skipped.notes


FORMAT: Final = Format(
    NAME,
    "QNN profiling CSV",
    "rows that qnn-net-run or qnn-profile-viewer writes: every event of every execution, by graph",
    sniff,
    read,
    service_time,
    samples,
)
