"""Trace files as text: JSON lines, and the JSON that trace viewers open. Both hold the records of ``trace_records``.

JSON lines: the header is the first line, every other line one event. Files of several processes may be put one behind
the other, for a later line that is a header again begins the next of them.

Chrome trace JSON: the header is under ``otherData``; every event of the schema is an instant event of category
``htpsim`` whose ``args`` are the record. ``args.t`` is the exact time in ns; without it ``ts``, in us, is taken. What
viewers draw is added by ``writers.chrome``; a reader passes over it and over whatever else is in the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NoReturn

from htpsim.errors import FormatError
from htpsim.formats import jsontext
from htpsim.formats.source import Source, shown
from htpsim.formats.trace_records import MARK, Record, TraceBuilder, Wrong, header_record, records
from htpsim.formats.writers.chrome import US, named, process_id, view_events
from htpsim.formats.writers.timeline import Timeline
from htpsim.invariants.trace import NOWHERE, Trace, merge

CATEGORY: Final = "htpsim"


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
    waiting = ""
    for event in _chrome_events(trace):
        if waiting:
            yield f"{waiting},"
        waiting = _dump(event)
    yield waiting
    yield "]}"


def _chrome_events(trace: Trace) -> Iterator[Record]:
    """Yield what is there for the eye, then the schema's events, on rows of their own beneath."""
    timeline = Timeline(trace)
    yield from view_events(timeline)
    pid, first = process_id(len(timeline.groups)), len(timeline.tracks) + 1
    tracks: dict[str, int] = {}
    for record in records(trace):
        call = trace.calls.get(record.get("id", NOWHERE))
        name = str(record.get("client") or record.get("place") or "registry")
        if call:
            name = f"process {call.process}: {call.thread}"
        if not tracks:
            yield from named("process", pid, 0, "events, for htpsim check", pid)
        if name not in tracks:
            tracks[name] = first + len(tracks)
            yield from named("thread", pid, tracks[name], name, tracks[name])
        args = {key: value for key, value in record.items() if key != "ev"}
        yield {
            "name": record["ev"], "cat": CATEGORY, "ph": "i", "s": "t", "ts": record["t"] / US,
            "pid": pid, "tid": tracks[name], "args": args,
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
