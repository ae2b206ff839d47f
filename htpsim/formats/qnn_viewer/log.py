"""The data of a qnn-profile-viewer log: sections, graphs, measurements."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from htpsim.formats.values import Value

Number: TypeAlias = Value[int] | Value[float]

HVX_THREADS: Final = "Number of HVX threads used"


@dataclass(frozen=True, slots=True)
class Measurement:
    """One measured event, by the name that the tool prints (without the word Backend around it)."""

    event: str
    value: Number


def find(measurements: tuple[Measurement, ...], event: str) -> Number | None:
    """Return the value of an event, or ``None``.

    >>> find((Measurement("NetRun", Value(5, "us", 1)),), "NetRun")
    Value(value=5, unit='us', line=1)
    """
    return next((item.value for item in measurements if item.event == event), None)


@dataclass(frozen=True, slots=True)
class Graph:
    """One graph within one section."""

    index: int
    name: str
    line: int
    measurements: tuple[Measurement, ...] = ()
    operations: tuple[Measurement, ...] = ()
    """Cycles by operation, of detailed profiling only."""

    def event(self, name: str) -> Number | None:
        """Return the value of an event, or ``None``."""
        return find(self.measurements, name)


@dataclass(frozen=True, slots=True)
class Section:
    """One section: what is measured once, and what is measured a graph."""

    title: str
    line: int
    measurements: tuple[Measurement, ...] = ()
    graphs: tuple[Graph, ...] = ()

    def event(self, name: str, graph: str | None = None) -> Number | None:
        """Return the value of an event of a graph, or of the section where it stands outside any graph.

        Without `graph` the section itself is asked first, then its only graph; with several graphs a name is needed.
        """
        if graph is not None:
            return next((item.event(name) for item in self.graphs if item.name == graph), None)
        own = find(self.measurements, name)
        if own is None and len(self.graphs) == 1:
            return self.graphs[0].event(name)
        return own

    def events(self) -> frozenset[tuple[str, str]]:
        """Return which (graph, event) pairs this section measures."""
        own = {("", item.event) for item in self.measurements}
        return frozenset(own | {(graph.name, item.event) for graph in self.graphs for item in graph.measurements})


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewerLog:
    """One log. A section that it does not have is ``None``, and so is every value of it."""

    first_line: int
    last_line: int
    truncated: bool
    """Whether it ends in the middle: a line cut off, an empty last section, or a statistic that lists fewer events."""

    sections: tuple[Section, ...]
    """In the order of the file."""

    reworded: bool = False
    """Whether it was taken from sentences that a person wrote about a log."""

    versions: tuple[tuple[str, Value[str]], ...] = ()
    inferences_asked: Value[int] | None = None
    """``--num_inferences`` of a command quoted in the page around the log; the log itself never says it."""

    def section(self, title: str) -> Section | None:
        """Return a section by its heading, less the word "Stats"."""
        return next((item for item in self.sections if item.title == title), None)

    @property
    def init(self) -> Section | None:
        """Loading of the backend and, with a context binary, of the graphs."""
        return self.section("Init")

    @property
    def compose(self) -> Section | None:
        """Building of the graphs from a model library."""
        return self.section("Compose Graphs")

    @property
    def finalize(self) -> Section | None:
        """Preparation of the graphs for the backend."""
        return self.section("Finalize")

    @property
    def deinit(self) -> Section | None:
        """Freeing of everything."""
        return self.section("De-Init")

    @property
    def overall(self) -> Section | None:
        """Inferences a second over the whole run."""
        return self.section("Execute (Overall)")

    @property
    def average(self) -> Section | None:
        """Execution, average over the inferences."""
        return self.section("Execute (Average)")

    @property
    def minimum(self) -> Section | None:
        """Execution, shortest inference."""
        return self.section("Execute (Min)")

    @property
    def maximum(self) -> Section | None:
        """Execution, longest inference."""
        return self.section("Execute (Max)")

    @property
    def num_inferences(self) -> None:
        """The number of inferences: not in such a log, ever."""
        return None

    @property
    def graphs(self) -> tuple[str, ...]:
        """The names of all graphs, in the order of the file."""
        return tuple(dict.fromkeys(graph.name for section in self.sections for graph in section.graphs))

    @property
    def ips(self) -> Number | None:
        """Inferences a second [inf/sec], input and output included."""
        items = self.overall.measurements if self.overall else ()
        return next((item.value for item in items if item.event.startswith("NetRun IPS")), None)

    @property
    def tool_version(self) -> str | None:
        """The version of the viewer itself."""
        found = dict(self.versions).get("qnn-profile-viewer")
        return found.value if found else None

    @property
    def backend(self) -> str | None:
        """HTP or CPU, derived from the names of the events; ``None`` when they do not tell."""
        names = {event for section in self.sections for _, event in section.events()}
        if any("accelerator" in name.lower() or "HVX" in name for name in names):
            return "HTP"
        return "CPU" if names & {"GRAPH_EXECUTE", "GRAPH_FINALIZE"} else None

    @property
    def level(self) -> str | None:
        """The profiling level, derived: detailed lists operations; ``None`` when no backend event is there."""
        if any(graph.operations for section in self.sections for graph in section.graphs):
            return "detailed"
        return "basic" if self.backend else None

    @property
    def hvx_threads(self) -> Number | None:
        """How many HVX threads the backend used: on average, the most of any graph."""
        graphs = self.average.graphs if self.average else ()
        stated = [value for graph in graphs if (value := graph.event(HVX_THREADS)) is not None]
        own = self.average.event(HVX_THREADS) if self.average else None
        return max(stated, key=lambda value: value.value) if stated else own

    def checked(self) -> ViewerLog:
        """Mark the log as cut when its last section is empty, or lists less than the average does.

        An empty last section is dropped: its values are missing.
        """
        last = self.sections[-1]
        if not last.events() and len(self.sections) > 1:
            return replace(self, truncated=True, sections=self.sections[:-1])
        fewer = self.average is not None and last.events() < self.average.events()
        return replace(self, truncated=self.truncated or (fewer and last in (self.minimum, self.maximum)))
