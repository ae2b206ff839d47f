"""Trace files as text: JSON lines, and the JSON that trace viewers open. Both hold the records of ``trace_records``.

JSON lines: the header is the first line, every other line one event. Files of several processes may be put one behind
the other, for a later line that is a header again begins the next of them.

Chrome trace JSON: the header is under ``otherData``; every event of the schema is an instant event of category
``htpsim`` whose ``args`` are the record. ``args.t`` is the exact time in ns; without it ``ts``, in us, is taken. Spans
of category ``view`` are added for the eye only; a reader passes over them and over whatever else is in the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NoReturn

from htpsim.errors import FormatError
from htpsim.formats import jsontext
from htpsim.formats.source import Source, shown
from htpsim.formats.trace_records import MARK, Record, TraceBuilder, Wrong, header_record, records
from htpsim.invariants.spans import History, Span
from htpsim.invariants.trace import NOWHERE, Trace, merge

CATEGORY: Final = "htpsim"
VIEW: Final = "view"
US: Final = 1000


def write_lines(trace: Trace) -> Iterator[str]:
    """Yield the lines of a trace in JSON lines, without line ends.

    >>> list(write_lines(Trace(source="demo")))
    ['{"htpsim_trace":1,"clock":"ns","source":"demo"}']
    """
    yield _dump(header_record(trace))
    yield from map(_dump, records(trace))


def _dump(record: Mapping[str, Any]) -> str:
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False)


def read_lines(source: Source, lenient: bool = False) -> tuple[Trace, list[str]]:
    """Read JSON lines; return the trace and notes on what a lenient reading left out.

    Raises
    ------
    FormatError
        Names the first line that does not fit.
    """
    builders: list[TraceBuilder] = []
    notes: list[str] = []
    for number, line in enumerate(source.lines, start=1):
        if not line.strip():
            continue
        try:
            record = _parsed(line)
            if not builders or (isinstance(record, dict) and MARK in record):
                builders.append(TraceBuilder(record))
            else:
                builders[-1].add(record)
        except Wrong as wrong:
            if not lenient or not builders:
                raise source.error(number, wrong.got, wrong.expected) from wrong
            notes.append(f"line {number}: left out: {wrong.got}, expected {wrong.expected}")
    if not builders:
        raise source.error(1, "an empty file", f'a trace, whose first line is a header: {{"{MARK}": 1}}')
    return _merged(source, [builder.finish() for builder in builders]), notes


def _parsed(line: str) -> object:
    """Return the JSON of one line."""
    try:
        return json.loads(line, parse_constant=_refuse_constant, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        cut = " (the file may have been cut off here)" if not line.rstrip().endswith("}") else ""
        raise Wrong(f"{shown(line)}, which is no JSON{cut}", "one JSON object a line") from error


def _refuse_constant(word: str) -> NoReturn:
    raise Wrong(f"{word}", "a number")


def _once(pairs: list[tuple[str, Any]]) -> Record:
    record = dict(pairs)
    if len(record) < len(pairs):
        keys = [key for key, _ in pairs]
        raise Wrong(f"key '{next(key for key in keys if keys.count(key) > 1)}' twice", "each key once")
    return record


def _merged(source: Source, traces: list[Trace]) -> Trace:
    try:
        return traces[0] if len(traces) == 1 else merge(traces)
    except ValueError as error:
        raise FormatError(f"{source.name}: {error}") from error


def write_chrome(trace: Trace) -> Iterator[str]:
    """Yield the lines of a trace as Chrome trace JSON, one event a line."""
    yield f'{{"displayTimeUnit":"ns","otherData":{_dump(header_record(trace))},"traceEvents":['
    events = [_dump(event) for event in _chrome_events(trace)]
    yield from (f"{event}," for event in events[:-1])
    yield from events[-1:]
    yield "]}"


def _chrome_events(trace: Trace) -> Iterator[Record]:
    """Yield the spans for the eye, then the schema's events."""
    history = History(trace)
    tracks: dict[tuple[int, str], int] = {}

    def track(process: int, name: str) -> int:
        return tracks.setdefault((process, name), len(tracks) + 1)

    views = [view for span in history.sound for view in _views(span, track, history.last_ns)]
    for record in records(trace):
        call = trace.calls.get(record.get("id", NOWHERE))
        place = (call.process, call.thread) if call else (0, record.get("client", record.get("place", "registry")))
        args = {key: value for key, value in record.items() if key != "ev"}
        views.append(
            {
                "name": record["ev"], "cat": CATEGORY, "ph": "i", "s": "t", "ts": record["t"] / US,
                "pid": place[0], "tid": track(*place), "args": args,
            }
        )  # fmt: skip
    for (process, name), number in tracks.items():
        yield {"name": "thread_name", "ph": "M", "pid": process, "tid": number, "args": {"name": name}}
    yield from views


def _views(span: Span, track: Any, last_ns: int) -> Iterator[Record]:
    """Yield what one graphExecute looks like: its wait for the guard on its thread, its stretches on its cores."""
    call = span.call
    stretches = [(call.process, call.thread, "guard wait", span.called_ns, span.granted_ns)]
    stretches.append((call.process, call.thread, call.graph or "graphExecute", span.submitted_ns, span.returned_ns))
    for core in call.cores:
        stretches += [(call.process, f"core {core}", call.graph, begin, end) for begin, end in span.holds]
    for process, name, what, begin_ns, end_ns in stretches:
        if begin_ns != NOWHERE and (end_ns != NOWHERE or what != "guard wait" or call.path == "genie"):
            until_ns = end_ns if end_ns != NOWHERE else last_ns
            if until_ns > begin_ns:
                yield {
                    "name": what, "cat": VIEW, "ph": "X", "ts": begin_ns / US, "dur": (until_ns - begin_ns) / US,
                    "pid": process, "tid": track(process, name), "args": {"graphExecute": span.execute},
                }  # fmt: skip


def read_chrome(source: Source, lenient: bool = False) -> tuple[Trace, list[str]]:
    """Read Chrome trace JSON that holds events of the schema; return the trace and notes on what was left out.

    Raises
    ------
    FormatError
        Names the line of the first event that does not fit.
    """
    try:
        document = json.loads(source.text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError, Wrong):
        jsontext.parse(source)  # says where and why, and is stricter than the standard library
        raise FormatError(f"{source.name}: got JSON with NaN or an endless nesting, expected a trace") from None
    events = document.get("traceEvents") if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(events, list):
        raise source.error(1, "JSON without a list 'traceEvents'", "a Chrome trace with 'otherData' and 'traceEvents'")
    try:
        builder = TraceBuilder(document.get("otherData"))
    except Wrong as wrong:
        raise source.error(_line_of(source, "otherData"), wrong.got, f"{wrong.expected} under 'otherData'") from wrong
    notes: list[str] = []
    for position, event in enumerate(events):
        if not isinstance(event, dict) or event.get("cat") != CATEGORY:
            continue
        try:
            builder.add(_record_of(event))
        except Wrong as wrong:
            line = _line_of(source, "traceEvents", position)
            if not lenient:
                raise source.error(line, wrong.got, wrong.expected) from wrong
            notes.append(f"line {line}: left out: {wrong.got}, expected {wrong.expected}")
    return builder.finish(), notes


def _record_of(event: Record) -> Record:
    """Return the record of an instant event."""
    args = event.get("args", {})
    if not isinstance(args, dict):
        raise Wrong(f"{shown(str(args))} for 'args'", "an object")
    record = {"ev": event.get("name"), **args}
    if "t" not in record:
        ts = event.get("ts")
        if isinstance(ts, bool) or not isinstance(ts, int | float) or not 0 <= ts < 2**62 / US:
            raise Wrong(f"{shown(str(ts))} for 'ts'", "a time in us, or 'args.t' in ns")
        record["t"] = round(ts * US)
    return record


def _line_of(source: Source, key: str, position: int | None = None) -> int:
    """Return the line of a member of the document, or of an item of it. Only a refusal asks, so it may take long."""
    member = jsontext.parse(source).find(key)
    if member is None:
        return 1
    return member.line if position is None else member.items()[position].line
