"""Chrome-like traces of the HTP, and summaries of them, whole or cut off.

What the numbers mean depends on the header: a RUN_TRACE counts ticks of 19.2 MHz, an OP_TRACE counts cycles, and a
trace without a header microseconds, as such files usually do. The events are read one after another.
"""

from __future__ import annotations

import re
from typing import Final, NoReturn

from htpsim.errors import FormatError
from htpsim.formats.form import Format, Match
from htpsim.formats.jsonevents import Cursor, Event
from htpsim.formats.qnn_trace import summary
from htpsim.formats.qnn_trace.data import EXECUTE, Number, RunExecution, Trace
from htpsim.formats.qnn_trace.optrace import OpCollector
from htpsim.formats.qnn_trace.report import facts, warnings
from htpsim.formats.qnn_trace.runtrace import RunTrace
from htpsim.formats.samples import choose, refuse_selectors, statistic_ns
from htpsim.formats.source import Source, shown
from htpsim.formats.tree import Node
from htpsim.formats.values import Report, ServiceQuery, ServiceTime, Value, time_ns

NAME: Final = "qnn-trace"
RUN: Final = "RUN_TRACE"
OP: Final = "OP_TRACE"

_EXPECTED: Final = "a QNN trace with 'traceEvents', or the summary of one"
_ARTIFACT: Final = re.compile(r'"artifact_type"\s*:\s*"(\w{1,40})"')
_EVENTS: Final = re.compile(r'"traceEvents"\s*:\s*\[')
_HTP: Final = re.compile(r'"htp_(?:execution_time_us|overall_summary)"\s*:')
_SUMMARY_EVENTS: Final = {
    "htp_execution_time": "htp",
    "total_inference_time": "total",
    "vtcm_acquisition_time": "vtcm_acquire",
    "resource_power_up_time": "power_up",
}


def sniff(source: Source) -> Match:
    """Say whether this is such a trace or summary; other programs write traces of the same form."""
    if not source.text.lstrip().startswith("{"):
        return Match.NO
    artifact = _ARTIFACT.search(source.text)
    if artifact:
        return Match.YES if artifact[1] in (RUN, OP) else Match.NO
    if _HTP.search(source.text):
        return Match.YES
    return Match.TRACES if _EVENTS.search(source.text) else Match.NO


def read(source: Source, lenient: bool = False) -> Report:
    """Read a trace or a summary.

    Parameters
    ----------
    source
        The text.
    lenient
        Take ticks that contradict the stated time, with a note.

    Raises
    ------
    FormatError
        Names the line of what is no JSON, or of an event that cannot be read.

    Examples
    --------
    >>> from htpsim.formats.source import from_text
    >>> text = '''{"header": {"artifact_type": "RUN_TRACE"}, "traceEvents": [
    ... {"name": "QNN DSP Execute", "ph": "X", "ts": 0, "dur": 192, "args": {"graph_name": "vit"}}]}'''
    >>> trace = read(from_text("a.json", text)).data
    >>> trace.executions[0].graph, trace.executions[0].phases[0].time_ns
    ('vit', 10000)
    """
    trace, notes = _parse(source, lenient)
    return Report(NAME, source.name, trace, facts(trace), source.notes + notes + warnings(trace))


def service_time(source: Source, query: ServiceQuery) -> ServiceTime:
    """Find the time of a graph on the DSP over all its executions, or a figure of a summary.

    Raises
    ------
    FormatError
        When there is no such graph, statistic or event, with the nearest; or only cycles, which are no time.
    """
    refuse_selectors(source.name, query)
    trace, _ = _parse(source, lenient=False)
    if not trace.executions and trace.summary is not None:
        return _of_summary(source, trace, query)
    values, label, line = _samples(source, trace, query)
    where = f"{source.name}:{line}"
    return ServiceTime(statistic_ns(values, query.statistic, where), f"{where} {label}", query.statistic)


def samples(source: Source, query: ServiceQuery) -> tuple[int, ...]:
    """Return an event of every execution of a graph [ns], in the order of time."""
    refuse_selectors(source.name, query)
    trace, _ = _parse(source, lenient=False)
    return _samples(source, trace, query)[0]


def _samples(source: Source, trace: Trace, query: ServiceQuery) -> tuple[tuple[int, ...], str, int]:
    if not trace.executions:
        _refuse_untimed(source, trace)
    graph = choose(f"{source.name}:1", "graph", query.graph, trace.graphs)
    executions = trace.of(graph)
    first = executions[0].line
    events = list(dict.fromkeys(phase.event for item in executions for phase in item.phases))
    event = choose(f"{source.name}:{first}", "event", query.event or EXECUTE, events)
    values = [value for item in executions for value in _times(source, item, event)]
    return tuple(values), f"{event} of {graph}", first


def _times(source: Source, execution: RunExecution, event: str) -> list[int]:
    found = [phase for phase in execution.phases if phase.event == event]
    if len(found) > 1:
        raise source.error(found[1].ticks.line, f"a second '{event}' of one execution", "one; choose another event")
    if found and found[0].time_ns <= 0:
        raise source.error(found[0].ticks.line, f"{found[0].ticks.value} ticks", "a time above zero")
    return [phase.time_ns for phase in found]


def _refuse_untimed(source: Source, trace: Trace) -> NoReturn:
    line = trace.artifact.line if trace.artifact else 1
    if trace.operations is not None:
        raise source.error(line, "cycles without a clock", "a RUN_TRACE, which holds times")
    raise source.error(line, "no execution", f"at least one event '{EXECUTE}' of a RUN_TRACE")


def _of_summary(source: Source, trace: Trace, query: ServiceQuery) -> ServiceTime:
    held: dict[str, Number] = {
        name: value for name, field in _SUMMARY_EVENTS.items() if (value := getattr(trace.summary, field)) is not None
    }
    if query.graph is not None:
        raise FormatError(f"{source.name}: graph: got '{query.graph}', expected none: a summary names no graph")
    wanted = query.event or next(iter(held), None)
    event = choose(f"{source.name}:1", "event", wanted, list(held))
    if query.statistic != "average":
        raise FormatError(f"{source.name}: statistic: got '{query.statistic}', expected average: it has one figure")
    value = held[event]
    return ServiceTime(time_ns(value, source.name), f"{source.name}:{value.line} {event}", query.statistic)


def _parse(source: Source, lenient: bool) -> tuple[Trace, tuple[str, ...]]:
    stated = _ARTIFACT.search(source.text)
    kind = stated[1] if stated else None
    cursor = Cursor(source, _EXPECTED)
    run, ops = RunTrace(lenient), OpCollector()
    plain: list[tuple[str, Number]] = []
    header: Node | None = None
    figures: list[Node] = []
    listed = False
    for key in cursor.members():
        if key == "traceEvents":
            listed = True
            for event in cursor.events(key):
                if kind == RUN:
                    run.take(event)
                elif kind == OP:
                    ops.take(event)
                else:
                    plain += _plain(event)
        elif key == "header":
            header = cursor.node(key)
        elif key == "data" and cursor.mark == "{":
            figures += summary.overall_rows(cursor)
        elif key in ("metadata", *summary.sections()) and cursor.mark == "{":
            figures.append(cursor.node(key))
    cursor.finish()
    found = summary.from_nodes(figures)
    if not listed and found is None:
        raise source.error(1, shown(source.text[:80]), _EXPECTED)
    artifact = header.text("artifact_type") if header else None
    if artifact is not None and artifact.value not in (RUN, OP):
        raise source.error(artifact.line, f"artifact_type {shown(artifact.value)}", f"{RUN} or {OP}")
    if kind != (artifact.value if artifact else None):
        raise source.error(artifact.line if artifact else 1, f"artifact_type {kind} elsewhere", "one, in the header")
    executions, loose = run.executions()
    return Trace(
        artifact=artifact,
        version=_version(header),
        unit={RUN: "ticks", OP: "cycles"}.get(kind or "", "us") if listed else "",
        executions=executions,
        loose=loose,
        operations=ops.trace(),
        events=tuple(plain),
        summary=found,
        truncated=cursor.truncated,
    ), tuple(run.notes)


def _plain(event: Event) -> list[tuple[str, Number]]:
    if event.text("ph") != "X":
        return []
    name, duration = event.text("name"), event.number("dur")
    if name is None:
        event.refuse("name", "a name")
    if duration is None:
        event.refuse("dur", "a number")
    exact = int(duration) if duration == int(duration) else duration
    return [(name, Value(exact, "us", event.line))]


def _version(header: Node | None) -> str | None:
    node = header.find("version") if header else None
    if node is None:
        return None
    parts = [node.whole(part) for part in ("major", "minor", "patch")]
    return ".".join(str(part.value) for part in parts if part is not None) or None


FORMAT: Final = Format(
    NAME,
    "QNN trace",
    "RUN_TRACE and OP_TRACE of qnn-profile-viewer, and their summary: executions and operations on the HTP",
    sniff,
    read,
    service_time,
    samples,
)
