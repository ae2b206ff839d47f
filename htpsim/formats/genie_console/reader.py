"""Console logs of libGenie, verbose or not, of a run that worked or failed: read line by line, of any length."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final, TypeAlias

from htpsim.formats.form import Format, Match, Streamed
from htpsim.formats.genie_console.data import ConsoleLog, Number
from htpsim.formats.genie_console.executions import ALL, EXECUTE, Pairing
from htpsim.formats.genie_console.report import facts, warnings
from htpsim.formats.genie_console.scan import Scanner, scan
from htpsim.formats.genie_console.times import Key, Recorder
from htpsim.formats.samples import choose, refuse_selectors, statistic_ns, statistic_of
from htpsim.formats.source import Source, shown
from htpsim.formats.stream import Lines
from htpsim.formats.values import Report, ServiceQuery, ServiceTime, time_ns

NAME: Final = "genie-console"
TOKEN_TIME: Final = "token-time"

_SURE: Final = re.compile(
    r"^(?:.{0,80}Using (?:lib)?Genie\S{0,20} version \d"
    r"|.{0,20}libGenie\S{0,20} = \d"
    r"|.{0,20}GenieAPIService: \d"
    r'|.{0,120}\[ {0,4}INFO {0,4}\] {1,4}"(?:Using create From Binary|Allocated total size = \d)'
    r"|.{0,80}ms \[.{0,60}<I> QnnGraph_execute started\. graph = 0x"
    r"|\[KPIS\]:[ \t]*$"
    r"|(?:Prompt Processing Time|Token Generation Time|Token generation): \d+ us)",
    re.MULTILINE | re.ASCII,
)
_WORDS: Final = ("enie", "create From", "Allocated total", "QnnGraph_exec", "[KPIS]:", "Processing Time", "Token ")
"""Without any of these there is no need to look at each line."""

_KPI_EVENTS: Final = {
    "init-time": "init",
    "time-to-first-token": "ttft",
    "prompt-processing-time": "prompt_time",
    "token-generation-time": "generation_time",
}
_Found: TypeAlias = tuple[ConsoleLog, Recorder, tuple[str, ...]]


def sniff(source: Source) -> Match:
    """Say whether this is such a log; a JSON file that quotes one is not."""
    if source.text.lstrip().startswith("{"):
        return Match.NO
    if not any(word in source.text for word in _WORDS):
        return Match.NO
    return Match.YES if _SURE.search(source.text) else Match.NO


def read(source: Lines, lenient: bool = False) -> Report:
    r"""Read a log.

    Parameters
    ----------
    source
        The text, or its lines one after another.
    lenient
        Skip lines that cannot be read, with a note for each.

    Raises
    ------
    FormatError
        Names the line of a figure without its unit, or of a clock that runs backwards.

    Examples
    --------
    >>> from htpsim.formats.source import from_text
    >>> log = read(from_text("a.log", "Using libGenie.so version 1.1.0\nInit Time: 6549034 us\n")).data
    >>> log.version.value, log.queries[0].init, log.executions
    ('1.1.0', Value(value=6549034, unit='us', line=2), None)
    """
    log, _, notes = _parse(source, lenient, None)
    return Report(NAME, source.name, log, facts(log), source.notes + notes + warnings(log))


def service_time(source: Lines, query: ServiceQuery) -> ServiceTime:
    """Find the time of a graph over its executions, of a decode step, or of a key figure over all queries.

    The event is ``execute`` with the name of a graph, ``step`` (narrowed by a context length), ``host-gap-graph``,
    ``host-gap-step``, or a key figure such as ``time-to-first-token`` and ``token-time``.

    Raises
    ------
    FormatError
        When nothing fits, with the nearest, or several would do.
    """
    refuse_selectors(source.name, query, "context_length")
    log, recorder, _ = _parse(source, False, None)
    key, values, line, label = _chosen(source, log, recorder, query)
    where = f"{source.name}:{line}"
    if key is None:
        return ServiceTime(statistic_ns(values, query.statistic, where), f"{where} {label}", query.statistic)
    found = statistic_of(recorder.series[key].counts, query.statistic, where)
    return ServiceTime(found, f"{where} {label}", query.statistic)


def samples(source: Lines, query: ServiceQuery) -> tuple[int, ...]:
    """Return single times as :func:`service_time` finds them [ns], in the order of the log."""
    refuse_selectors(source.name, query, "context_length")
    log, recorder, _ = _parse(source, False, None)
    key, values, _, _ = _chosen(source, log, recorder, query)
    if key is None:
        return values
    # A second pass, so that a long log is never held: only now it is known which times are wanted.
    _, recorder, _ = _parse(source, False, key)
    return tuple(recorder.kept)


def _chosen(
    source: Lines, log: ConsoleLog, recorder: Recorder, query: ServiceQuery
) -> tuple[Key | None, tuple[int, ...], int, str]:
    """Return the series that is meant, or the values of a key figure; the first line, and what it is."""
    kinds = {kind: None for kind, _ in recorder.series}
    figures = {name: list(_figures(log, name, source.name)) for name in (*_KPI_EVENTS, TOKEN_TIME)}
    held = [*kinds, *(name for name, values in figures.items() if values)]
    wanted = query.event.replace("_", "-") if query.event else EXECUTE if EXECUTE in kinds else None
    event = choose(f"{source.name}:1", "event", wanted, held)
    if event in figures:
        if query.graph is not None or query.context_length is not None:
            raise source.error(1, f"a graph or a context length for {event}", "none: it is of a whole query")
        values = tuple(value for value, _ in figures[event])
        return None, values, figures[event][0][1], event
    names = [name for name in recorder.names(event) if name != ALL]
    if event == EXECUTE:
        if query.context_length is not None:
            raise source.error(1, "a context length for a graph", "none: the graph's name tells it")
        name = choose(f"{source.name}:1", "graph", query.graph, names)
        label = f"{event} of {name}"
    else:
        if query.graph is not None:
            raise source.error(1, f"graph {shown(query.graph)} for {event}", "none")
        name, label = ALL, event
        if query.context_length is not None:
            name = choose(f"{source.name}:1", "context length", str(query.context_length), names)
            label = f"{event} at context length {name}"
    key = (event, name)
    return key, (), recorder.series[key].line, label


def _figures(log: ConsoleLog, name: str, file: str) -> Iterator[tuple[int, int]]:
    """Yield the times [ns] of a key figure with their lines."""
    for query in log.queries:
        if name == TOKEN_TIME:
            if query.token_time_ns:
                yield query.token_time_ns, query.line
            continue
        value: Number | None = getattr(query, _KPI_EVENTS[name])
        if value is not None and value.value > 0:
            yield time_ns(value, file), value.line


def _parse(source: Lines, lenient: bool, keep: Key | None) -> _Found:
    recorder = Recorder(keep)
    scanner = Scanner(source, Pairing(recorder, source.error))
    notes = scan(source, scanner, lenient)
    if not scanner.known_lines and not scanner.failures:
        first = next((line for line in islice(source.lines, 1000) if line.strip()), "")
        got = shown(first[:80]) if first else "an empty file"
        raise source.error(1, got, "a line of libGenie, such as 'Using libGenie.so version 1.1.0' or '[KPIS]:'")
    if scanner.long_lines:
        first_long = scanner.long_lines[0]
        notes += (
            f"line {first_long} is very long: only its beginning was looked at, as of {len(scanner.long_lines)} lines",
        )
    log = ConsoleLog(
        version=scanner.version,
        service=scanner.service,
        builds=tuple(scanner.builds.items()),
        settings=tuple(scanner.settings),
        model_files=tuple(scanner.model_files),
        graphs_announced=scanner.graphs_announced,
        graphs_of=tuple(scanner.graphs_of),
        arch=scanner.arch,
        hvx_threads=scanner.hvx_threads,
        create_modes=tuple(scanner.create_modes),
        contexts_created=scanner.contexts_created,
        context_loads=tuple(scanner.context_loads),
        most=scanner.most,
        left=tuple(scanner.left),
        allocations=tuple(scanner.allocations),
        memory=tuple(scanner.memory.contexts.values()),
        model_loads=tuple(scanner.model_loads),
        load_total=scanner.load_total,
        errors=tuple(scanner.errors),
        failures=tuple(scanner.failures),
        queries=tuple(scanner.kpis.queries),
        executions=scanner.pairing.result(),
        torn_lines=scanner.torn_lines,
    )
    return log, recorder, notes


FORMAT: Final = Format(
    NAME,
    "Genie console log",
    "what genie-t2t-run, genie-app or a service on libGenie prints: key figures, failures, memory, graph executions",
    sniff,
    read,
    service_time,
    samples,
    Streamed(read, service_time, samples),
)
