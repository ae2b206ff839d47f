"""Log of qnn-context-binary-generator: how long each stage took, and what one execution moves over DDR.

The lines that matter are "Completed stage: NAME (N us)" and the four counts below "DDR bandwidth summary"; between
them stands whatever else the backend logs. Several graphs are prepared one after another; each begins anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from htpsim.errors import FormatError
from htpsim.formats.form import Format, Match
from htpsim.formats.skipped import Skipped
from htpsim.formats.source import Source, shown
from htpsim.formats.values import Fact, Report, Value, row

NAME: Final = "qnn-context-log"

SUMMARY: Final = "DDR bandwidth summary"
COUNTS: Final = ("spill_bytes", "fill_bytes", "write_total_bytes", "read_total_bytes")

_STAGE: Final = re.compile(
    r"(?P<word>Starting|Completed) stage: (?P<name>[A-Za-z].{0,100}?)(?: \((?P<us>\d{1,15}) us\))?\s*", re.ASCII
)
_WORDS: Final = re.compile(r"(?:Starting|Completed) stage: ")
_COUNT: Final = re.compile(rf"(?P<name>{'|'.join(COUNTS)})\s*=\s*(?P<digits>\d{{1,18}})\s*", re.ASCII)
_ERROR: Final = re.compile(r"\[\s*ERROR\s*\]|<E>")
_LISTED_MAX: Final = 20


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of the preparation of a graph."""

    name: str
    line: int
    duration: Value[int] | None
    """``None`` for a stage that did not complete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """One graph, in the order of the log; the log does not name it."""

    stages: tuple[Stage, ...]
    spill_bytes: Value[int] | None = None
    fill_bytes: Value[int] | None = None
    write_total_bytes: Value[int] | None = None
    read_total_bytes: Value[int] | None = None

    @property
    def dram_bytes(self) -> int | None:
        """What one execution reads and writes over DDR by the compiler's own count; ``None`` where it is not stated."""
        if self.read_total_bytes is None or self.write_total_bytes is None:
            return None
        return self.read_total_bytes.value + self.write_total_bytes.value


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextLog:
    """One log."""

    graphs: tuple[Prepared, ...]
    errors: tuple[Value[str], ...]


def sniff(source: Source) -> Match:
    """Say whether stages or a summary stand in the text, outside JSON."""
    if source.text.lstrip().startswith("{"):
        return Match.NO
    stages = len(_WORDS.findall(source.text))
    return Match.YES if SUMMARY in source.text or stages > 1 else Match.TRACES if stages else Match.NO


def read(source: Source, lenient: bool = False) -> Report:
    r"""Read a log.

    Parameters
    ----------
    source
        The text.
    lenient
        Skip a stage or count that cannot be read, with a note for each.

    Raises
    ------
    FormatError
        Names the line of a stage or count that could not be read, or of a text without any.

    Examples
    --------
    >>> from htpsim.formats.source import from_text
    >>> text = "====== DDR bandwidth summary ======\nwrite_total_bytes=10\nread_total_bytes=90\n"
    >>> read(from_text("a.log", text)).data.graphs[0].dram_bytes
    100
    """
    log, notes = _parse(source, lenient)
    return Report(NAME, source.name, log, tuple(_facts(log)), source.notes + notes + _warnings(log, source))


@dataclass(slots=True)
class _Draft:
    stages: dict[str, Stage] = field(default_factory=dict)
    counts: dict[str, Value[int]] = field(default_factory=dict)

    def made(self) -> Prepared:
        return Prepared(stages=tuple(self.stages.values()), **self.counts)


def _parse(source: Source, lenient: bool) -> tuple[ContextLog, tuple[str, ...]]:
    drafts: list[_Draft] = []
    errors: list[Value[str]] = []
    skipped = Skipped()
    for number, line in enumerate(source.lines, start=1):
        try:
            _take(source, drafts, number, line.strip())
        except FormatError as error:
            if not lenient:
                raise
            skipped.add(number, error)
        if _ERROR.search(line[:200]):
            errors.append(Value(shown(line)[1:-1], "", number))
    if not drafts:
        number = next((number for number, line in enumerate(source.lines, start=1) if line.strip()), 1)
        got = shown(source.lines[number - 1]) if source.text.strip() else "an empty file"
        raise source.error(number, got, f"a log with 'Completed stage:' or '{SUMMARY}'")
    return ContextLog(graphs=tuple(draft.made() for draft in drafts), errors=tuple(errors)), skipped.notes


def _take(source: Source, drafts: list[_Draft], number: int, text: str) -> None:
    if SUMMARY in text:
        if not drafts or drafts[-1].counts:
            drafts.append(_Draft())
        return
    if text.startswith(COUNTS):
        count = _COUNT.fullmatch(text)
        if count is None:
            raise source.error(number, shown(text), "a count such as 'read_total_bytes=635039744'")
        if not drafts or count["name"] in drafts[-1].counts:
            raise source.error(
                number, f"{count['name']} outside a summary", f"'{SUMMARY}' above it, and each count once"
            )
        drafts[-1].counts[count["name"]] = Value(int(count["digits"]), "bytes", number)
        return
    if not _WORDS.match(text):
        return
    stage = _STAGE.fullmatch(text)
    if stage is None or (stage["word"] == "Completed") != (stage["us"] is not None):
        raise source.error(number, shown(text), "a stage such as 'Completed stage: VTCM Allocation (114167 us)'")
    name = stage["name"]
    known = drafts[-1].stages.get(name) if drafts else None
    starts = stage["word"] == "Starting"
    if not drafts or (known is not None and (starts or known.duration is not None)):
        drafts.append(_Draft())  # a stage that comes again is of the next graph
    duration = None if starts else Value(int(stage["us"]), "us", number)
    drafts[-1].stages[name] = Stage(name, number, duration)


def _facts(log: ContextLog) -> Iterator[Fact]:
    for number, graph in enumerate(log.graphs[:1000]):
        place = f"graph {number}" if len(log.graphs) > 1 else "graph"
        for stage in graph.stages[:100]:
            yield row(place, stage.name, stage.duration, "" if stage.duration else "did not complete")
        for name in COUNTS:
            yield row(place, name, getattr(graph, name))
        if graph.dram_bytes is not None:
            yield Fact(place, "DDR traffic of an execution", graph.dram_bytes, "bytes", note="read and written")
    for error in log.errors[:_LISTED_MAX]:
        yield row("log", "error", error)


def _warnings(log: ContextLog, source: Source) -> tuple[str, ...]:
    notes = []
    open_stages = [(stage.line, stage.name) for graph in log.graphs for stage in graph.stages if stage.duration is None]
    notes += [f"line {line}: the stage {name} did not complete" for line, name in open_stages[:_LISTED_MAX]]
    if not any(graph.dram_bytes is not None for graph in log.graphs):
        notes.append("no DDR summary in the log: how much an execution moves is missing, not zero")
    else:
        notes.append("the DDR traffic is the compiler's estimate of one execution, not a measurement")
    notes.append("stages are times of preparing the graph on the host, not of executing it")
    if _COUNT.fullmatch(source.lines[-1].strip()):
        notes += source.doubts
    return tuple(notes)


FORMAT: Final = Format(
    NAME,
    "QNN context generator log",
    "what qnn-context-binary-generator logs: times of the stages, bytes that an execution moves over DDR",
    sniff,
    read,
)
