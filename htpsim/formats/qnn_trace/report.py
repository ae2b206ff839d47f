"""The table of a QNN trace, and what a reader of its figures should know."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields

from htpsim.formats.qnn_trace.data import EXECUTE, RunExecution, Trace
from htpsim.formats.samples import median_ns
from htpsim.formats.values import Fact, Value, row

_LISTED_MAX = 200
_FIRST_SLOWER = 2


def facts(trace: Trace) -> tuple[Fact, ...]:
    """List executions phase by phase, operations by their cycles, and the summary."""
    rows = [row("trace", "artifact", trace.artifact)]
    if trace.unit:
        rows.append(Fact("trace", "unit of the events", trace.unit, note=_UNIT_NOTES[trace.unit]))
    rows.append(Fact("trace", "cut off", trace.truncated, note="derived"))
    rows += _executions(trace)
    if trace.operations is not None:
        ops = trace.operations
        rows += [
            Fact("operations", "distinct", ops.distinct, "count", note=f"derived; drawn {ops.events} times"),
            Fact("operations", "sum", ops.cycles, "cycles", note="derived; each counted once"),
            Fact("operations", "span", ops.span_cycles, "cycles", note="derived"),
        ]
        rows += [
            Fact("operations", item.name, item.cycles, "cycles", note=f"derived; {item.runs} runs")
            for item in ops.operations[:_LISTED_MAX]
        ]
        rows += _unlisted("operations", len(ops.operations))
    rows += [row("events", name, value) for name, value in trace.events[:_LISTED_MAX]]
    rows += _unlisted("events", len(trace.events))
    if trace.summary is not None:
        for field in fields(trace.summary):
            value = getattr(trace.summary, field.name)
            if isinstance(value, Value):
                rows.append(row("summary", field.name.replace("_", " "), value))
        rows += [row("summary", name, value) for name, value in trace.summary.others]
    return tuple(rows)


_UNIT_NOTES = {
    "ticks": "of 19.2 MHz; the file does not state it, its own microseconds agree",
    "cycles": "no clock is stated, so there are no times",
    "us": "assumed, as usual in such files; there is no header",
}


def _unlisted(section: str, count: int) -> list[Fact]:
    if count <= _LISTED_MAX:
        return []
    return [Fact(section, "not listed", count - _LISTED_MAX, "count", note="derived")]


def _executions(trace: Trace) -> list[Fact]:
    rows: list[Fact] = []
    for number, item in enumerate(trace.executions[:_LISTED_MAX], start=1):
        core = "" if item.core is None else f" on core {item.core}"
        section = f"{item.graph} / execution {number}{core}"
        for phase in item.phases:
            rows.append(row(section, phase.event, phase.ticks))
            rows.append(row(section, phase.event, phase.time) if phase.time else _converted(section, phase.event, item))
    return rows + _unlisted("executions", len(trace.executions))


def _converted(section: str, event: str, item: RunExecution) -> Fact:
    phase = item.phase(event)
    return Fact(section, event, phase.time_ns if phase else None, "ns", note="derived from the ticks")


def warnings(trace: Trace) -> tuple[str, ...]:
    """Say what is cut, doubled, or easily misread."""
    notes = []
    if trace.truncated:
        notes.append("the file ends in the middle: what comes after the last whole event is missing, not zero")
    if trace.operations is not None and trace.operations.events > trace.operations.distinct:
        ops = trace.operations
        notes.append(f"{ops.events} events draw {ops.distinct} operations, each under several processes: counted once")
    if trace.loose:
        notes.append(f"{len(trace.loose)} phases lie in no '{EXECUTE}' and are in no execution")
    for graph in trace.graphs:
        notes += _first_run(graph, trace.of(graph))
    measured = trace.summary.htp if trace.summary else None
    if trace.events and measured is not None:
        total = sum(value.value for _, value in trace.events)
        if abs(total - measured.value) > 0.05 * measured.value:
            notes.append(f"the events add up to {total} us, the summary states {measured.value} us on the HTP")
    return tuple(notes)


def _first_run(graph: str, executions: tuple[RunExecution, ...]) -> list[str]:
    times = [item.phases[0].time_ns for item in executions]
    middle = median_ns(Counter(times[1:])) if len(times) > 1 else 0
    if not middle or times[0] < _FIRST_SLOWER * middle:
        return []
    power = executions[0].phase("Resource Power On")
    part = f", {power.time_ns / 1000:.1f} us of it power-on" if power else ""
    took = f"the first execution of {graph} took {times[0] / 1000:.1f} us{part}"
    return [f"{took}; the median of the others is {middle / 1000:.1f} us"]
