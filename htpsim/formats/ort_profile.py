"""ONNX Runtime's own profile (``enable_profiling``): a list of events, one a line, times in microseconds.

Events of category Session are the loading, the initialisation and each ``model_run``; events of category Node are
single operators, named after their node, ``<node>_kernel_time``. Which run a node belongs to is told by time alone.
Such files are often shared without their first or last bracket, or with lines that a page cut; the former are read as
they are, the latter leniently, each cut line by what still stands in it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from htpsim.errors import FormatError
from htpsim.formats.form import Format, Match
from htpsim.formats.jsonevents import Cursor, Event
from htpsim.formats.samples import choose, refuse_selectors, statistic_ns
from htpsim.formats.skipped import Skipped
from htpsim.formats.source import Source, shown
from htpsim.formats.values import Fact, Report, ServiceQuery, ServiceTime, Value, row
from htpsim.units import NS_PER_US

NAME: Final = "ort-profile"
RUN: Final = "model_run"
EXECUTE: Final = "SequentialExecutor::Execute"
LOADS: Final = ("model_loading_uri", "model_loading_array", "model_loading_from_saved_proto", "model_loading_proto")
INIT: Final = "session_initialization"
KERNEL: Final = "kernel"

_ENDS: Final = {"_kernel_time": KERNEL, "_fence_before": "fence before", "_fence_after": "fence after"}
_EXPECTED: Final = "a profile of ONNX Runtime: a list of events with 'cat', 'dur' and 'name'"
_FIRST: Final = re.compile(r'\s*+\[?\s*+\{[^{}]{0,400}"cat"\s*:\s*"(?:Session|Node|Kernel|Api)"')
# What a cut line still says; each is looked for in the beginning of the line only.
_CAT: Final = re.compile(r'\s*+[\[,]?\s*+\{\s*+"cat"\s*:\s*"(\w+)"')
_TIMES: Final = re.compile(r'"dur"\s*:\s*(\d{1,18})\s*,\s*"ts"\s*:\s*(\d{1,18})\s*,')
_NAME: Final = re.compile(r'"name"\s*:\s*"([^"\\]{0,500})"')
_PROVIDER: Final = re.compile(r'"provider"\s*:\s*"(\w{1,80})"')
_OP: Final = re.compile(r'"op_name"\s*:\s*"([\w.:]{1,80})"')
_HEAD_MAX: Final = 2000
_LISTED_MAX: Final = 40


@dataclass(frozen=True, slots=True)
class OrtSession:
    """One event of the session: loading, initialisation, a run."""

    name: str
    duration: Value[int]
    start_us: int


@dataclass(frozen=True, slots=True)
class OrtNode:
    """One operator, once."""

    name: str | None
    """As in the model; ``None`` where the model gives its node no name."""

    kind: str
    """``kernel``, or a fence before or after it."""

    op: str | None
    provider: str | None
    duration: Value[int]
    start_us: int
    run: int | None
    """Which of the runs it lies in, from 0; ``None`` where the file does not hold the run whole."""

    cut: bool = False

    @property
    def label(self) -> str:
        """The node's name, else its operator."""
        return self.name or self.op or "without name"


@dataclass(frozen=True, slots=True, kw_only=True)
class OrtProfile:
    """One profile."""

    session: tuple[OrtSession, ...]
    nodes: tuple[OrtNode, ...]
    truncated: bool

    def named(self, name: str) -> tuple[OrtSession, ...]:
        """Return the session's events of a name, in the order of the file."""
        return tuple(item for item in self.session if item.name == name)

    @property
    def load(self) -> Value[int] | None:
        """How long the model took to load."""
        return next((item.duration for item in self.session if item.name in LOADS), None)

    @property
    def init(self) -> Value[int] | None:
        """How long the session took to initialise."""
        return next((item.duration for item in self.named(INIT)), None)

    @property
    def runs(self) -> tuple[OrtSession, ...]:
        """The runs that the file holds whole."""
        return self.named(RUN)

    @property
    def providers(self) -> tuple[str, ...]:
        """The execution providers that ran an operator, in the order of the file."""
        return tuple(dict.fromkeys(node.provider for node in self.nodes if node.provider))

    def kernels(self) -> dict[str, list[OrtNode]]:
        """Return the operators' own executions by node, in the order of the file."""
        found: dict[str, list[OrtNode]] = {}
        for node in self.nodes:
            if node.kind == KERNEL:
                found.setdefault(node.label, []).append(node)
        return found


def sniff(source: Source) -> Match:
    """Say whether the first event is one of ONNX Runtime's."""
    return Match.YES if _FIRST.match(source.text) else Match.NO


def read(source: Source, lenient: bool = False) -> Report:
    """Read a profile.

    Parameters
    ----------
    source
        The text; its outer brackets may be missing.
    lenient
        Take of a line that was cut what still stands in it, with a note.

    Raises
    ------
    FormatError
        Names the line of what is no JSON, or of an event that cannot be read.

    Examples
    --------
    >>> from htpsim.formats.source import from_text
    >>> text = (
    ...     '[{"cat": "Session", "pid": 1, "tid": 1, "dur": 900, "ts": 5, "ph": "X", "name": "model_run", "args": {}}]'
    ... )
    >>> read(from_text("a.json", text)).data.runs[0].duration
    Value(value=900, unit='us', line=1)
    """
    profile, notes = _parse(source, lenient)
    return Report(NAME, source.name, profile, _facts(profile), source.notes + notes + _warnings(profile))


def service_time(source: Source, query: ServiceQuery) -> ServiceTime:
    """Find the time of whole runs, or of one node where its name is given as the graph."""
    values, label, line = _samples(source, query)
    where = f"{source.name}:{line}"
    return ServiceTime(statistic_ns(values, query.statistic, where), f"{where} {label}", query.statistic)


def samples(source: Source, query: ServiceQuery) -> tuple[int, ...]:
    """Return each run [ns], or each execution of a node, in the order of the file."""
    return _samples(source, query)[0]


def _samples(source: Source, query: ServiceQuery) -> tuple[tuple[int, ...], str, int]:
    refuse_selectors(source.name, query)
    profile, _ = _parse(source, lenient=False)
    if query.graph is not None:
        kernels = profile.kernels()
        node = choose(f"{source.name}:1", "graph", query.graph, list(kernels))
        choose(f"{source.name}:1", "event", query.event or "kernel_time", ["kernel_time"])
        found, label = [item.duration for item in kernels[node]], f"kernel_time of {node}"
    else:
        names = [name for name in (RUN, EXECUTE) if profile.named(name)]
        event = choose(f"{source.name}:1", "event", query.event or (names[0] if names else None), names)
        found, label = [item.duration for item in profile.named(event)], event
    return tuple(value.value * NS_PER_US for value in found), label, found[0].line


def _parse(source: Source, lenient: bool) -> tuple[OrtProfile, tuple[str, ...]]:
    try:
        whole = _whole(source)
    except FormatError:
        found = _by_line(source) if lenient else None
        if found is None:
            raise
        return found
    if lenient and whole[0].truncated:
        found = _by_line(source)
        if found is not None and len(found[0].nodes) > len(whole[0].nodes):
            return found
    return whole


def _whole(source: Source) -> tuple[OrtProfile, tuple[str, ...]]:
    """Read events one after another; a list that ends in the middle gives what came before."""
    text = source.text
    opened = text.lstrip().startswith("{")
    cursor = Cursor(replace(source, text="[" + text) if opened else source, _EXPECTED)
    session: list[OrtSession] = []
    nodes: list[OrtNode] = []
    for event in cursor.events("event"):
        name = event.text("name")
        if name is None or event.text("cat") is None:
            event.refuse("cat" if name is not None else "name", "text, as every event of a profile has")
        found = _event(event, name)
        if isinstance(found, OrtSession):
            session.append(found)
        elif found is not None:
            nodes.append(found)
    cursor.finish()
    cut = opened and not text.rstrip().endswith(("},", "}", "]"))
    truncated = cut if opened else cursor.truncated
    notes = ("the file does not begin with '[': an excerpt",) if opened else ()
    return OrtProfile(session=tuple(session), nodes=_placed(session, nodes), truncated=truncated), notes


def _event(event: Event, name: str) -> OrtSession | OrtNode | None:
    if event.text("ph") not in (None, "X"):
        return None
    duration = Value(event.needed("dur"), "us", event.line)
    start = event.needed("ts")
    if event.text("cat") == "Session":
        return OrtSession(name, duration, start)
    arguments = event.inner("args")
    title, kind = _titled(name)
    return OrtNode(title, kind, arguments.text("op_name"), arguments.text("provider"), duration, start, None)


def _titled(name: str) -> tuple[str | None, str]:
    """Split the name of an event into that of the node and what was measured."""
    for end, kind in _ENDS.items():
        if name.endswith(end):
            return name.removesuffix(end) or None, kind
    return name or None, "other"


def _placed(session: list[OrtSession], nodes: list[OrtNode]) -> tuple[OrtNode, ...]:
    """Tell for each node which run it lies in."""
    runs = sorted(
        (item.start_us, item.start_us + item.duration.value, number)
        for number, item in enumerate(item for item in session if item.name == RUN)
    )
    starts = [run[0] for run in runs]
    placed = []
    for node in nodes:
        before = bisect_right(starts, node.start_us)
        inside = before and node.start_us <= runs[before - 1][1]
        placed.append(replace(node, run=runs[before - 1][2] if inside else None))
    return tuple(placed)


def _by_line(source: Source) -> tuple[OrtProfile, tuple[str, ...]] | None:
    """Read each line by itself, of a cut one what still stands in it; ``None`` when no line holds an event."""
    session: list[OrtSession] = []
    nodes: list[OrtNode] = []
    skipped = Skipped()
    cut = 0
    for number, line in enumerate(source.lines, start=1):
        if not line.strip(" \t,[]"):
            continue
        found = _line(number, line[:_HEAD_MAX])
        if isinstance(found, OrtSession):
            session.append(found)
        elif found is not None:
            whole = line.rstrip().rstrip(",]").endswith("}")
            cut += not whole
            nodes.append(replace(found, cut=not whole))
        else:
            skipped.add(number, f"got {shown(line)}, expected an event")
    if not session and not nodes:
        return None
    notes = (f"{cut} lines are cut off; their times are read, the rest of them is not",) if cut else ()
    profile = OrtProfile(session=tuple(session), nodes=_placed(session, nodes), truncated=True)
    return profile, (*notes, *skipped.notes)


def _line(number: int, head: str) -> OrtSession | OrtNode | None:
    category, times, name = _CAT.match(head), _TIMES.search(head), _NAME.search(head)
    if category is None or times is None or name is None:
        return None
    duration, start = Value(int(times[1]), "us", number), int(times[2])
    if category[1] == "Session":
        return OrtSession(name[1], duration, start)
    op, provider = _OP.search(head), _PROVIDER.search(head)
    title, kind = _titled(name[1])
    return OrtNode(title, kind, op[1] if op else None, provider[1] if provider else None, duration, start, None)


def _facts(profile: OrtProfile) -> tuple[Fact, ...]:
    rows = [
        row("session", "model loading", profile.load),
        row("session", "initialisation", profile.init),
        Fact("session", "whole runs", len(profile.runs), "count", note="" if profile.runs else "none in the file"),
    ]
    rows += _spread("session", "run", [item.duration for item in profile.runs])
    rows += _spread("session", "executor of a run", [item.duration for item in profile.named(EXECUTE)])
    ran = {node.provider: node.duration.line for node in reversed(profile.nodes)}
    rows += [Fact("session", "execution provider", name, line=ran[name]) for name in profile.providers]
    kernels = profile.kernels()
    longest = sorted(kernels, key=lambda name: -sum(item.duration.value for item in kernels[name]))
    for name in longest[:_LISTED_MAX]:
        items = kernels[name]
        rows += _spread("nodes", f"{name} [{items[0].op}]" if items[0].op else name, [item.duration for item in items])
    if len(longest) > _LISTED_MAX:
        rows.append(Fact("nodes", "nodes not listed", len(longest) - _LISTED_MAX, "count"))
    return tuple(rows)


def _spread(section: str, name: str, values: list[Value[int]]) -> Iterator[Fact]:
    if len(values) < 2:
        yield from (row(section, name, value) for value in values)
        return
    yield row(section, name, values[0], "the first")
    yield row(section, name, min(values, key=lambda item: item.value), f"least of {len(values)}")
    yield row(section, name, max(values, key=lambda item: item.value), f"most of {len(values)}")


def _warnings(profile: OrtProfile) -> tuple[str, ...]:
    notes = []
    if not profile.session and not profile.nodes:
        notes.append("no event in the file: nothing was measured, which is not zero")
    if profile.truncated:
        notes.append("the file is cut off: what comes after is missing")
    if profile.nodes and not profile.runs:
        notes.append("no run is whole: there are nodes, but no time of a run")
    unplaced = sum(node.run is None for node in profile.nodes)
    if profile.runs and unplaced:
        notes.append(f"{unplaced} nodes lie in no run that the file holds whole")
    nameless = sum(node.name is None for node in profile.nodes)
    if nameless:
        notes.append(f"{nameless} nodes have no name; they are listed by their operator, equal ones together")
    for name, items in profile.kernels().items():
        first, later = items[0].duration, [item.duration.value for item in items[1:]]
        if later and first.value > 10 * max(later) and first.value > 1000:
            notes.append(
                f"line {first.line}: the first execution of {name} took {first.value} us, later ones at most "
                f"{max(later)} us"
            )
    return tuple(notes[:100])


FORMAT: Final = Format(
    NAME,
    "ONNX Runtime profile",
    "events of a session: loading, initialisation, runs, and each operator with its execution provider",
    sniff,
    read,
    service_time,
    samples,
)
