"""CSV that ONNX Runtime's QNN execution provider writes (``profiling_file_path``): events of the backend alone.

The columns are those of qnn-profile-viewer, and what they hold is not: no row is measured by a tool, so no row names a
graph, timestamps may be ``UNKNOWN`` and names ``NULL``. A run begins with its EXECUTE row, or, where there is none,
where an event of the top level comes again. An eighth column names the ONNX nodes behind an operator.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from htpsim.formats.form import Format, Match
from htpsim.formats.profilerows import Row, RowReader
from htpsim.formats.samples import choose, refuse_selectors, statistic_ns
from htpsim.formats.source import Source
from htpsim.formats.values import Fact, Report, ServiceQuery, ServiceTime, Value, row, time_ns
from htpsim.units import TIME_UNITS

NAME: Final = "ort-qnn-csv"
EXECUTE: Final = "EXECUTE"
ROOT: Final = "ROOT"

PREFERRED: Final = (
    "Accelerator (execute) time",
    "QNN accelerator (execute) time",
    "QNN (execute) time",
    EXECUTE,
    "RPC (execute) time",
)
"""Which event is the time of a run, best first; EXECUTE is the nameless row that the run begins with."""

_HEADER: Final = re.compile(r"\s*Msg Timestamp,Message,Time,Unit of Measurement,Timing Source,Event Level,")
_ROW: Final = re.compile(r"(?:\d{1,19}|UNKNOWN),[A-Z][A-Z -]*,[\d.]+,[A-Z/]+,BACKEND,")
_ONCE: Final = re.compile(r"\((?:load binary|init|finalize|deinit|de-init)\)")
_LOOKED_AT: Final = 400
_LISTED_MAX: Final = 40


@dataclass(frozen=True, slots=True)
class OrtMeasurement:
    """One event."""

    event: str
    value: Value[int] | Value[float]
    onnx_ops: str | None = None
    """The ONNX nodes behind an operator, where the file has that column."""


@dataclass(frozen=True, slots=True)
class OrtQnnRun:
    """One run of whatever graph: the file names none."""

    line: int
    measurements: tuple[OrtMeasurement, ...]
    operations: tuple[OrtMeasurement, ...]
    complete: bool = True

    def event(self, name: str) -> Value[int] | Value[float] | None:
        """Return the value of an event, ``None`` where it is absent."""
        return next((item.value for item in self.measurements if item.event == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrtQnnLog:
    """One CSV."""

    columns: tuple[str, ...]
    runs: tuple[OrtQnnRun, ...]
    once: tuple[OrtMeasurement, ...]
    """What happens once: loading, finalising, freeing."""

    cut: Value[str] | None
    """The last line, where it ends in the middle of its fields."""

    @property
    def whole(self) -> tuple[OrtQnnRun, ...]:
        """The runs that list all that others list."""
        return tuple(run for run in self.runs if run.complete)


def sniff(source: Source) -> Match:
    """Say whether this is such a CSV: the header first, rows of the backend, none of a tool."""
    lines = [line for line in source.lines[:_LOOKED_AT] if line.strip()]
    if not lines or not _HEADER.match(lines[0]) or any(",NETRUN," in line for line in lines):
        return Match.NO
    return Match.YES if any(_ROW.match(line) for line in lines[1:]) else Match.NO


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
    >>> header = "Msg Timestamp,Message,Time,Unit of Measurement,Timing Source,Event Level,Event Identifier\n"
    >>> log = read(from_text("a.csv", header + "UNKNOWN,EXECUTE,3100,US,BACKEND,ROOT,NULL\n")).data
    >>> log.runs[0].event("EXECUTE")
    Value(value=3100, unit='us', line=2)
    """
    log, notes = _parse(source, lenient)
    return Report(NAME, source.name, log, _facts(log), source.notes + notes + _warnings(log))


def service_time(source: Source, query: ServiceQuery) -> ServiceTime:
    """Find the time of a run over all whole ones."""
    values, event, line = _samples(source, query)
    where = f"{source.name}:{line}"
    return ServiceTime(statistic_ns(values, query.statistic, where), f"{where} {event}", query.statistic)


def samples(source: Source, query: ServiceQuery) -> tuple[int, ...]:
    """Return an event of every whole run [ns], in the order of the file."""
    return _samples(source, query)[0]


def _samples(source: Source, query: ServiceQuery) -> tuple[tuple[int, ...], str, int]:
    refuse_selectors(source.name, query)
    if query.graph is not None:
        raise source.error(1, f"graph '{query.graph}'", "none: this file names no graph")
    log, _ = _parse(source, lenient=False)
    timed = dict.fromkeys(item.event for run in log.whole for item in run.measurements if item.value.unit in TIME_UNITS)
    wanted = query.event or next((name for name in PREFERRED if name in timed), None)
    event = choose(f"{source.name}:1", "event", wanted, list(timed))
    stated = [value for run in log.whole if (value := run.event(event)) is not None]
    return tuple(time_ns(value, source.name) for value in stated), event, stated[0].line


@dataclass(slots=True)
class _Draft:
    line: int
    measurements: list[OrtMeasurement] = field(default_factory=list)
    operations: list[OrtMeasurement] = field(default_factory=list)
    names: set[str] = field(default_factory=set)

    def add(self, item: OrtMeasurement) -> None:
        self.measurements.append(item)
        self.names.add(item.event)


@dataclass(slots=True)
class _Collector:
    source: Source
    runs: list[_Draft] = field(default_factory=list)
    once: list[OrtMeasurement] = field(default_factory=list)
    by_execute: bool = False
    """Whether runs begin with a row of their own."""

    def take(self, row: Row) -> None:
        item = OrtMeasurement(row.identifier or row.message, row.value, (row.extra and row.extra[0]) or None)
        if _ONCE.search(item.event) or row.message in ("INIT", "FINALIZE", "DE-INIT", "DEINIT"):
            self.once.append(item)
            return
        opens = row.message == EXECUTE and row.level == ROOT and row.identifier is None
        self.by_execute = self.by_execute or opens
        repeated = row.level == ROOT and not self.by_execute and self.runs and item.event in self.runs[-1].names
        if opens or repeated or not self.runs:
            self.runs.append(_Draft(row.line))
        if row.message == "NODE" or (row.level != ROOT and row.value.unit == "cycles"):
            self.runs[-1].operations.append(item)
        else:
            self.runs[-1].add(item)

    def made(self, cut: bool) -> tuple[OrtQnnRun, ...]:
        """Return the runs; the last one is not whole where the file ends before it lists what the others do."""
        found = [OrtQnnRun(run.line, tuple(run.measurements), tuple(run.operations)) for run in self.runs]
        if len(self.runs) > 1 and self.runs[-1].names < self.runs[-2].names:
            cut = True
        if cut and found:
            last = found.pop()
            found.append(OrtQnnRun(last.line, last.measurements, last.operations, complete=False))
        return tuple(found)


def _parse(source: Source, lenient: bool) -> tuple[OrtQnnLog, tuple[str, ...]]:
    reader = RowReader(source, lenient)
    collector = _Collector(source)
    names: set[str | None] = {None}
    for item in reader.rows():
        if item.line == reader.unterminated and item.identifier not in names:
            reader.cut = Value(source.lines[item.line - 1], "", item.line)
            continue
        names.add(item.identifier)
        collector.take(item)
    log = OrtQnnLog(
        columns=reader.layout.columns,
        runs=collector.made(reader.cut is not None),
        once=tuple(collector.once),
        cut=reader.cut,
    )
    return log, reader.skipped.notes


def _facts(log: OrtQnnLog) -> tuple[Fact, ...]:
    rows = [row("once", item.event, item.value) for item in log.once[:_LISTED_MAX]]
    rows.append(Fact("runs", "whole runs", len(log.whole), "count", note="" if log.whole else "none in the file"))
    events = dict.fromkeys(item.event for run in log.whole for item in run.measurements)
    for name in list(events)[:_LISTED_MAX]:
        values = [value for run in log.whole if (value := run.event(name)) is not None]
        least, most = (pick(values, key=lambda value: value.value) for pick in (min, max))
        if least.value == most.value:
            rows.append(row("runs", name, values[0], f"each of {len(values)}" if len(values) > 1 else ""))
            continue
        mean = round(sum(value.value for value in values) / len(values), 3)
        rows.append(Fact("runs", name, mean, values[0].unit, note=f"mean of {len(values)}"))
        rows += [row("runs", name, least, "least"), row("runs", name, most, "most")]
    for run in log.whole[:1]:
        rows += [row("operators of a run", item.event, item.value, item.onnx_ops or "") for item in run.operations]
    return tuple(rows[:1000])


def _warnings(log: OrtQnnLog) -> tuple[str, ...]:
    notes = ["the file names no graph: several sessions in one process are not told apart"]
    if not log.runs and not log.once:
        notes.append("the file has a header only: nothing was measured, which is not zero")
    if log.cut is not None:
        notes.append(f"line {log.cut.line} is cut off and not read")
    notes += [f"the run of line {run.line} is cut off: it is in no mean" for run in log.runs if not run.complete]
    if any(run.operations for run in log.runs):
        notes.append("profiling was detailed, which itself slows execution: not for calibration")
    return tuple(notes)


FORMAT: Final = Format(
    NAME,
    "ONNX Runtime QNN CSV",
    "rows that ONNX Runtime's QNN execution provider writes: events of the backend by run, operators in cycles",
    sniff,
    read,
    service_time,
    samples,
)
