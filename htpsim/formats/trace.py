"""Traces of graphExecutes: JSON lines and Chrome trace JSON, written by htpsim and by a recorder around a real guard.

Perfetto's own format is written too, for viewers; it is not read.

What a trace says is in ``htpsim.invariants.trace``; ``docs/tracing-your-device.md`` shows how to record one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal

from htpsim.errors import FormatError, HtpsimError, unknown_name
from htpsim.formats.form import Format, Match
from htpsim.formats.source import Source, load
from htpsim.formats.trace_records import MARK
from htpsim.formats.trace_text import read_chrome, read_lines, write_chrome, write_lines
from htpsim.formats.values import Fact, Report
from htpsim.formats.writers.extra import needed
from htpsim.formats.writers.perfetto import PROTOS, write_perfetto
from htpsim.formats.writers.whole import whole_file, write_text
from htpsim.invariants.trace import Trace, merge

Form = Literal["lines", "chrome", "perfetto"]
HEAD: Final = 1 << 16
"""Characters within which a header is looked for, at either end of a file."""

WRITERS: Final[Mapping[str, Callable[[Trace], Iterator[str]]]] = MappingProxyType(
    {"lines": write_lines, "chrome": write_chrome}
)
"""Of the forms that are text, and can be read again."""

SUFFIXES: Final = MappingProxyType(
    {".jsonl": "lines", ".ndjson": "lines", ".pftrace": "perfetto", ".perfetto-trace": "perfetto"}
)
"""What the end of a name says; every other is Chrome trace JSON."""


def sniff(source: Source) -> Match:
    """Tell whether a text is a trace in either form."""
    text = source.text.lstrip()
    if f'"{MARK}"' not in text[:HEAD] and f'"{MARK}"' not in text[-HEAD:]:
        return Match.NO
    return Match.YES if text.startswith("{") else Match.TRACES


def parse_trace(source: Source, lenient: bool = False) -> tuple[Trace, list[str]]:
    """Read a trace in either form; return it with notes on what a lenient reading left out.

    Raises
    ------
    FormatError
        Names file and line, what is there, and what was expected.

    Examples
    --------
    >>> from htpsim.formats.source import from_text
    >>> text = '{"htpsim_trace": 1}' + chr(10) + '{"ev": "call", "t": 5, "id": 0, "thread": "a"}'
    >>> parse_trace(from_text("a.jsonl", text))[0].events
    [Event(time_ns=5, kind='call', execute=0)]
    """
    return read_lines(source, lenient) if _is_lines(source) else read_chrome(source, lenient)


def _is_lines(source: Source) -> bool:
    """Tell the two forms apart: in JSON lines the first line is an object by itself."""
    first = next((line for line in source.lines if line.strip()), "")
    try:
        return "traceEvents" not in json.loads(first)
    except (ValueError, RecursionError, TypeError):
        return '"traceEvents"' not in source.text and '"otherData"' not in source.text


def read_trace(path: str | os.PathLike[str], *more: str | os.PathLike[str], lenient: bool = False) -> Trace:
    """Read a trace; of several files, one a process say, make one.

    Raises
    ------
    FormatError
        Names file and line, what is there, and what was expected.
    """
    for each in (path, *more):
        if SUFFIXES.get(Path(each).suffix) == "perfetto" and Path(each).is_file():
            raise FormatError(f"{each}: got a Perfetto trace, which is only written, expected one in .jsonl or .json")
    traces = [parse_trace(load(each, lenient), lenient)[0] for each in (path, *more)]
    try:
        return traces[0] if not more else merge(traces)
    except ValueError as error:
        names = ", ".join(os.fspath(each) for each in (path, *more))
        raise FormatError(f"{names}: {error}") from error


def write_trace(trace: Trace, path: str | os.PathLike[str], form: Form | None = None) -> None:
    """Write a trace.

    Parameters
    ----------
    trace : Trace
        What to write.
    path : path
        Where to; it is replaced as a whole, or left as it was.
    form : str, optional
        "lines", "chrome" or "perfetto"; by default what the name ends in decides: ``.jsonl`` is lines, ``.pftrace``
        perfetto, everything else chrome.

    Raises
    ------
    HtpsimError
        For another form, and for perfetto without its package.
    """
    chosen = form_of(path, form)
    if chosen in WRITERS:
        write_text(WRITERS[chosen](trace), path)
        return
    with whole_file(path) as unfinished, unfinished.open("wb") as packets:
        write_perfetto(trace, packets)


def form_of(path: str | os.PathLike[str], form: str | None = None) -> Form:
    """Return the form that a trace of this name is written in, once it is known that it can be.

    Raises
    ------
    HtpsimError
        For a form that does not exist, and for perfetto without its package.

    Examples
    --------
    >>> form_of("a.jsonl"), form_of("a.json")
    ('lines', 'chrome')
    """
    chosen = form or SUFFIXES.get(Path(path).suffix, "chrome")
    if chosen == "perfetto":
        needed(PROTOS, "perfetto")
        return "perfetto"
    if chosen not in WRITERS:
        raise HtpsimError(unknown_name("form", chosen, (*WRITERS, "perfetto")))
    return "lines" if chosen == "lines" else "chrome"


def next_steps(path: str | os.PathLike[str]) -> str:
    """Say what a trace of this name can be given to.

    >>> next_steps("a.json")
    'htpsim check a.json, htpsim explain-policy a.json, or a trace viewer.'
    """
    if SUFFIXES.get(Path(path).suffix) == "perfetto":
        return "open it in ui.perfetto.dev."
    return f"htpsim check {path}, htpsim explain-policy {path}, or a trace viewer."


def read(source: Source, lenient: bool) -> Report:
    """Read a trace as a report, for ``htpsim inspect``."""
    trace, notes = parse_trace(source, lenient)
    return Report("htpsim-trace", source.name, trace, tuple(facts_of(trace)), (*source.notes, *notes))


def facts_of(trace: Trace) -> Sequence[Fact]:
    """Return what a trace holds, as rows.

    >>> [fact.value for fact in facts_of(Trace(source="demo"))][:2]
    ['demo', 0]
    """
    calls = trace.calls.values()
    first_ns = min((event.time_ns for event in trace.events), default=0)
    guard = trace.guard
    rows = [
        ("trace", "source", trace.source or None, ""),
        ("trace", "graphExecutes", len(trace.calls), ""),
        ("trace", "threads", len({(call.process, call.thread) for call in calls}), ""),
        ("trace", "processes", len({call.process for call in calls}), ""),
        ("trace", "dialog handles", len({(c.process, c.handle) for c in calls if c.handle is not None}), ""),
        ("trace", "length", trace.last_ns - first_ns, "ns"),
        ("trace", "device events", any(event.kind == "start" for event in trace.events), ""),
        ("guard", "policy", guard.policy or None, ""),
        ("guard", "slots", guard.slots, f"a {guard.slots_per}"),
        ("guard", "grants", sum(event.kind == "grant" for event in trace.events), ""),
    ]
    paths = sorted({call.path for call in calls})
    rows += [("paths", path, sum(call.path == path for call in calls), "graphExecutes") for path in paths]
    return [Fact(section, name, value, unit) for section, name, value, unit in rows]


FORMAT: Final = Format(
    name="htpsim-trace",
    title="trace of graphExecutes",
    description="written by htpsim and by the recorder of docs/tracing-your-device.md: calls, grants, submits, returns",
    sniff=sniff,
    read=read,
)
