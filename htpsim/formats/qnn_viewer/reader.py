"""Text printed by qnn-profile-viewer: statistics of a qnn-net-run, by section and graph, for CPU and HTP.

The log is a sequence of sections. A line is a heading, a graph, a measurement, decoration, or not of the log::

    Execute Stats (Average):              section
    ------------------------              decoration
    Graph 0 (inception_v3):               graph: the measurements below are its own
        NetRun: 1803480 us                measurement, whole qnn-net-run
        Backend (GRAPH_EXECUTE): 9 us     measurement, named by the backend
        conv1:OpId_7 (cycles): 5 cycles   operation (detailed profiling)

Versions differ in the order of sections and in what they list, and logs come embedded in pages, mangled by Markdown,
cut off, or reworded by hand. Before the first and after the last section anything may stand. Between them a line that
cannot be read is refused, because a reader that skips it would report a wrong log as a right one; a lenient reader
skips it and says so, and also reads reworded logs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from htpsim.errors import FormatError, unknown_name
from htpsim.formats.form import Format, Match
from htpsim.formats.qnn_viewer.log import Graph, Measurement, Section, ViewerLog
from htpsim.formats.qnn_viewer.report import facts, warnings
from htpsim.formats.qnn_viewer.reworded import read_reworded, reworded_lines
from htpsim.formats.source import Source, shown
from htpsim.formats.values import Report, ServiceQuery, ServiceTime, Value, time_ns

NAME: Final = "qnn-viewer"

SECTIONS: Final = (
    "Init",
    "Compose Graphs",
    "Finalize",
    "De-Init",
    "Lib-Load",
    "Execute (Overall)",
    "Execute (Average)",
    "Execute (Min)",
    "Execute (Max)",
)
"""Headings as printed, less the word "Stats"."""

STATISTICS: Final = {"average": "Execute (Average)", "min": "Execute (Min)", "max": "Execute (Max)"}
ACCELERATOR: Final = "Accelerator (execute) time"
PREFERRED: Final = (ACCELERATOR, "GRAPH_EXECUTE", "QNN (execute) time", "NetRun")
"""Which event is the service time of a graph, best first: the accelerator's own time where it is printed."""

_TITLE: Final = re.compile(r"Qnn Init/Prepare/Finalize\S* Statistics:")
_SECTION: Final = re.compile(r"(?P<name>[A-Z][\w /-]{1,40}?) Stats(?: \((?P<statistic>\w+)\))?:")
_GRAPH: Final = re.compile(r"Graph (?P<index>\d{1,6}) \((?P<name>.*)\):")
_MEASUREMENT: Final = re.compile(
    r"(?P<label>\S.*?):\s+(?P<number>\d{1,18}(?:\.\d{1,9})?)\s*(?P<unit>us|ms|ns|s|count|cycles|bytes|inf/sec)"
)
_BACKEND: Final = re.compile(r"Backend \((?P<event>.*)\)")
_OPERATION: Final = re.compile(r"(?P<name>.+) \(cycles\)")
_RESOURCES: Final = re.compile(r"Resources?:\s.*")
_VERSION: Final = re.compile(r"(?P<tool>[A-Za-z][\w-]*)\s+(?P<version>v\d[\w.]*)")
_DECORATION: Final = re.compile(r"[-=_~*]{3,}|`{3}\w*|Total Inference Time:|Generated using:")
_MARKUP: Final = re.compile(r"^(?:[>#*|`-]+(?:\s+|$))+")
_BROKEN: Final = re.compile(r"\s|NetRun(?: IPS[^:]*)?:|Backend \(|Graph \d+ \(|[A-Z][\w /-]{1,40} Stats\b")
_LINE_MAX: Final = 4096
_ASKED: Final = re.compile(r"--num_inferences[= ](\d{1,9})\b")


@dataclass(slots=True)
class _Draft:
    """A section while it is being read."""

    title: str
    line: int
    measurements: list[Measurement] = field(default_factory=list)
    graphs: list[_GraphDraft] = field(default_factory=list)


@dataclass(slots=True)
class _GraphDraft:
    index: int
    name: str
    line: int
    measurements: list[Measurement] = field(default_factory=list)
    operations: list[Measurement] = field(default_factory=list)


def sniff(source: Source) -> Match:
    """Say whether this is such a log, whole or embedded."""
    known = 0
    for line in source.lines if "Stat" in source.text else ():
        text = _clean(line)
        if _TITLE.fullmatch(text):
            return Match.YES
        found = _SECTION.fullmatch(text)
        known += found is not None and _heading(found) in SECTIONS
    if known:
        return Match.YES if known > 1 else Match.TRACES
    return Match.TRACES if reworded_lines(source) else Match.NO


def read(source: Source, lenient: bool = False) -> Report:
    """Read a log.

    Parameters
    ----------
    source
        The text.
    lenient
        Skip lines that cannot be read, with a note for each, and take reworded logs by their words.

    Raises
    ------
    FormatError
        Names the line that could not be read.

    Examples
    --------
    >>> from htpsim.formats.source import from_text
    >>> log = read(from_text("a.txt", "Init Stats:\\n----\\n    NetRun: 171679 us\\n")).data
    >>> log.init.event("NetRun"), log.average
    (Value(value=171679, unit='us', line=3), None)
    """
    log, notes = _parse(source, lenient)
    return Report(NAME, source.name, log, facts(log), source.notes + notes + warnings(log))


def service_time(source: Source, query: ServiceQuery) -> ServiceTime:
    """Find the service time of a graph: of the accelerator where it is printed, else of the backend.

    Raises
    ------
    FormatError
        When the log has no such graph, statistic or event; with the nearest that it has.
    """
    log, _ = _parse(source, lenient=False)
    extra = {"device": query.device, "runtime": query.runtime, "precision": query.precision}
    for name, given in extra.items():
        if given is not None:
            raise FormatError(f"{source.name}: got {name} '{given}', expected none: a log is of one device and runtime")
    if query.statistic not in STATISTICS:
        raise FormatError(unknown_name(f"{source.name}: statistic", query.statistic, STATISTICS))
    section = log.section(STATISTICS[query.statistic])
    if section is None:
        held = ", ".join(name for name, title in STATISTICS.items() if log.section(title)) or "none is there"
        raise FormatError(f"{source.name}: got no Execute Stats for '{query.statistic}', expected one of: {held}")
    label, measured, line = _choose_graph(source, section, query.graph)
    events = {item.event: item.value for item in measured}
    wanted = query.event or next((name for name in PREFERRED if name in events), "")
    if wanted not in events:
        where = f"{source.name}:{line}: event"
        raise FormatError(unknown_name(where, wanted, events) if events else f"{where}: got none, expected a time")
    value = events[wanted]
    source_text = f"{source.name}:{value.line} {wanted}{label}"
    return ServiceTime(time_ns(value, source.name), source_text, query.statistic)


def _choose_graph(source: Source, section: Section, name: str | None) -> tuple[str, tuple[Measurement, ...], int]:
    """Return a label, the measurements and the line of the graph asked for."""
    where = f"{source.name}:{section.line}: graph"
    graphs = {graph.name: graph for graph in section.graphs}
    if name is None and not graphs:
        return "", section.measurements, section.line
    if name is None and len(graphs) > 1:
        raise FormatError(f"{where}: got none, expected one of {', '.join(graphs)}")
    if name is not None and name not in graphs:
        raise FormatError(unknown_name(where, name, graphs) if graphs else f"{where}: got '{name}', but none is named")
    graph = graphs[name] if name is not None else section.graphs[0]
    return f" of {graph.name}", graph.measurements, graph.line


def _heading(found: re.Match[str]) -> str:
    statistic = f" ({found['statistic']})" if found["statistic"] else ""
    return f"{found['name']}{statistic}"


def _clean(line: str) -> str:
    """Strip indentation and the marks that Markdown leaves around a line."""
    text = line.strip()[:_LINE_MAX]
    return text if _DECORATION.fullmatch(text) else _MARKUP.sub("", text).rstrip("*`| ")


def _filled(source: Source) -> list[tuple[int, str]]:
    """Return the lines that hold something, cleaned, with their numbers."""
    cleaned = ((number, _clean(line)) for number, line in enumerate(source.lines, start=1))
    return [(number, text) for number, text in cleaned if text]


def _headings(filled: list[tuple[int, str]]) -> list[int]:
    """Return the lines that are headings: known ones, and unknown ones that stand where a heading would."""
    body = (_DECORATION, _GRAPH, _MEASUREMENT)
    found = []
    for index, (number, text) in enumerate(filled):
        heading = _SECTION.fullmatch(text)
        following = filled[index + 1][1] if index + 1 < len(filled) else ""
        if heading and (_heading(heading) in SECTIONS or any(pattern.fullmatch(following) for pattern in body)):
            found.append(number)
    return found


def _parse(source: Source, lenient: bool) -> tuple[ViewerLog, tuple[str, ...]]:
    filled = _filled(source)
    headings = _headings(filled)
    if not headings:
        return _without_sections(source, lenient)
    reader = _Reader(source, lenient, first=headings[0], last_heading=headings[-1])
    log = reader.read(filled)
    return log, tuple(reader.notes)


def _without_sections(source: Source, lenient: bool) -> tuple[ViewerLog, tuple[str, ...]]:
    numbers = reworded_lines(source)
    if numbers and lenient:
        return read_reworded(source)
    line = numbers[0] if numbers else 1
    got = shown(source.lines[line - 1]) if source.text.strip() else "an empty file"
    expected = "a section heading such as 'Execute Stats (Average):'"
    if numbers:
        expected += "; a log reworded by hand has none, and is read leniently only"
    raise source.error(line, f"{got} outside any section" if numbers else got, expected)


class _Reader:
    """One pass over the lines from the first heading on."""

    def __init__(self, source: Source, lenient: bool, first: int, last_heading: int) -> None:
        self.source = source
        self.lenient = lenient
        self.first = first
        self.last_heading = last_heading
        self.sections: dict[str, _Draft] = {}
        self.section: _Draft | None = None
        self.graph: _GraphDraft | None = None
        self.notes: list[str] = []
        self.cut = False

    def read(self, filled: list[tuple[int, str]]) -> ViewerLog:
        """Read until the log ends; what follows is a page around it."""
        last = self.first
        for number, text in filled:
            if number < self.first:
                continue
            if self._take(number, text):
                last = number
                continue
            line = self.source.lines[number - 1]
            broken = _BROKEN.match(line) is not None
            if broken and number == filled[-1][0]:
                self.cut = True
                self.notes.append(f"line {number}: {shown(line)} is cut off and not read")
                last = number
                break
            if not broken and number > self.last_heading:
                break
            expected = "a heading, a graph, or a measurement with a unit such as 'NetRun: 1803480 us'"
            self._complain(number, shown(line), expected)
        return self._finish(last)

    def _complain(self, number: int, got: str, expected: str) -> None:
        if not self.lenient:
            raise self.source.error(number, got, expected)
        self.notes.append(f"line {number}: got {got}, expected {expected}; skipped")

    def _take(self, number: int, text: str) -> bool:
        """Read one line; False when it is not of the log."""
        if _DECORATION.fullmatch(text) or _TITLE.fullmatch(text):
            return True
        if found := _SECTION.fullmatch(text):
            self._open_section(number, _heading(found))
            return True
        if self.section is None:
            return False
        if found := _GRAPH.fullmatch(text):
            self.graph = _GraphDraft(int(found["index"]), found["name"], number)
            self.section.graphs.append(self.graph)
            return True
        if found := _MEASUREMENT.fullmatch(text):
            self._measure(self.section, number, found)
            return True
        return bool(_RESOURCES.fullmatch(text) and self.graph and self.graph.operations)

    def _open_section(self, number: int, title: str) -> None:
        self.section = self.graph = None
        if title not in SECTIONS:
            problem = unknown_name(f"{self.source.name}:{number}: section", title, SECTIONS)
            if not self.lenient:
                raise FormatError(problem)
            self.notes.append(f"{problem}; skipped")
        elif title in self.sections:
            first = self.sections[title].line
            self._complain(number, f"a second section '{title}'", f"one log a file (the first is in line {first})")
        else:
            self.section = self.sections[title] = _Draft(title, number)

    def _measure(self, section: _Draft, number: int, found: re.Match[str]) -> None:
        label, digits = found["label"], found["number"]
        value = Value(float(digits) if "." in digits else int(digits), found["unit"], number)
        backend = _BACKEND.fullmatch(label)
        name = backend["event"] if backend else label
        if self.graph is not None and backend is None and _OPERATION.fullmatch(label):
            self.graph.operations.append(Measurement(label.removesuffix(" (cycles)"), value))
            return
        if self.graph is not None and self.graph.operations and backend is None and not label.startswith("NetRun"):
            return  # linting: waits and overlaps of the operation above, which overlap each other and add up to nothing
        target = self.graph.measurements if self.graph is not None else section.measurements
        known = next((item for item in target if item.event == name), None)
        if known is not None:
            self._complain(number, f"a second '{name}'", f"one of each (the first is in line {known.value.line})")
            return
        target.append(Measurement(name, value))

    def _finish(self, last: int) -> ViewerLog:
        preamble = list(enumerate(self.source.lines[: self.first], start=1))
        versions = {
            found["tool"]: Value(found["version"], "", number)
            for number, line in preamble
            if (found := _VERSION.fullmatch(line.strip()))
        }
        asked = [Value(int(found[1]), "count", number) for number, line in preamble if (found := _ASKED.search(line))]
        log = ViewerLog(
            first_line=self.first,
            last_line=last,
            truncated=self.cut,
            sections=tuple(_section(draft) for draft in self.sections.values()),
            versions=tuple(versions.items()),
            inferences_asked=asked[-1] if asked else None,
        )
        if not log.sections:
            got = shown(self.source.lines[self.first - 1])
            raise self.source.error(self.first, got, f"one of the sections {', '.join(SECTIONS)}")
        return log.checked()


def _section(draft: _Draft) -> Section:
    graphs = tuple(
        Graph(item.index, item.name, item.line, tuple(item.measurements), tuple(item.operations))
        for item in draft.graphs
    )
    return Section(draft.title, draft.line, tuple(draft.measurements), graphs)


FORMAT: Final = Format(
    NAME,
    "qnn-profile-viewer text",
    "what qnn-profile-viewer prints of a qnn-net-run: load, execute and inference times by graph, CPU or HTP",
    sniff,
    read,
    service_time,
)
