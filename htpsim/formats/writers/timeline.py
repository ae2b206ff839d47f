"""A trace as a viewer shows it: a row a core and a thread, slices on them, arrows between them, counters beneath.

Both viewers' formats are written from this, so they show the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from htpsim.formats.writers.counters import Counter, counters, natural, shown_until_ns
from htpsim.formats.writers.tracks import Args, Slice, Track, Unit, core_parts, rows, thread_parts
from htpsim.invariants.spans import History, Span
from htpsim.invariants.trace import NOWHERE, Trace

DEVICE: Final = 0
"""Group of the device's rows; a group of a host process is one more than its number's place."""

REQUEST, EXECUTE = range(2)
"""Ranks on a thread: a request holds its graphExecutes."""

IDLE_CORES_MAX: Final = 64
"""How many cores have a row although nothing ran on them."""

ARROWS: Final = (("vit", "prefill"), ("prefill", "decode"))
"""Stages between which an arrow is drawn: from the last graphExecute of the one to the first of the other."""


class Flow(NamedTuple):
    """An arrow from one graphExecute to another."""

    name: str
    source: int
    """Number of the graphExecute."""
    target: int


class Timeline:
    """Rows, slices, arrows and counters of one trace.

    Parameters
    ----------
    trace : Trace
        Simulated or recorded. A graphExecute whose events do not follow each other is left out.

    Examples
    --------
    >>> from htpsim.invariants.trace import Call, Event
    >>> call = Call(execute=0, thread="vlm0", graph="vit", path="qnn")
    >>> events = [Event(2, "call", 0), Event(3, "submit", 0), Event(9, "return", 0)]
    >>> shown = Timeline(Trace(calls={0: call}, events=events))
    >>> [(s.name, s.begin_ns, s.end_ns) for track in shown.tracks for s in shown.slices(track)]
    [('vit', 2, 9), ('RPC', 2, 3), ('on the device', 3, 9)]
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.history = History(trace)
        self.last_ns = shown_until_ns(self.history)
        self.sees_device = self.history.has_device_events
        processes = sorted({call.process for call in trace.calls.values()})
        self.processes = {process: number for number, process in enumerate(processes, start=DEVICE + 1)}
        self.groups = ["HTP device", *(f"process {process}" for process in processes)]
        self.tracks = [*self._core_tracks(), *self._thread_tracks()]
        self.flows = self._flows()
        self._leaves: dict[int, int] = {flow.source: number for number, flow in enumerate(self.flows, start=1)}
        self._arrives: dict[int, int] = {flow.target: number for number, flow in enumerate(self.flows, start=1)}

    def _core_tracks(self) -> list[Track]:
        """Return the rows of every core; what runs there at the same time stands in rows beside each other."""
        stated = self.trace.device.cores if self.trace.device else 0
        units: dict[int, list[Unit]] = {core: [] for core in range(min(stated, IDLE_CORES_MAX))}
        for span in self.history.sound:
            call = span.call
            name = " ".join(word for word in (call.client or call.thread, call.graph) if word)
            for number, (begin_ns, end_ns) in enumerate(span.holds):
                until_ns = self.last_ns if end_ns == NOWHERE else end_ns
                for core in call.cores:
                    units.setdefault(core, []).append(Unit(begin_ns, until_ns, 0, name, span, number))
        return [track for core, held in sorted(units.items()) for track in rows(DEVICE, f"core {core}", held)]

    def _thread_tracks(self) -> list[Track]:
        """Return the rows of every thread; of a client with several calls at once, as many as it needs."""
        units: dict[tuple[int, str], list[Unit]] = {}
        homes: dict[str, tuple[int, str]] = {}
        for span in self.history.sound:
            call = span.call
            place = self.processes[call.process], call.client or call.thread
            homes.setdefault(call.client, place)
            name = call.graph or "graphExecute"
            units.setdefault(place, []).append(Unit(span.called_ns, self._end_ns(span), EXECUTE, name, span, NOWHERE))
        for begin_ns, end_ns, client, request in self._requests():
            if client in homes:
                units[homes[client]].append(Unit(begin_ns, end_ns, REQUEST, f"request {request}", None, request))
        return [
            track for (group, name), held in sorted(units.items(), key=_in_order) for track in rows(group, name, held)
        ]

    def _requests(self) -> Iterator[tuple[int, int, str, int]]:
        """Yield (taken up, done, client, number) of every request that a thread took up."""
        begun: dict[tuple[str, int], int] = {}
        for event in self.trace.requests:
            key = event.client, event.request
            if event.kind == "begin":
                begun[key] = event.time_ns
            elif event.kind in ("done", "refuse") and key in begun:
                yield begun.pop(key), event.time_ns, *key
        for (client, request), begin_ns in begun.items():
            yield begin_ns, self.last_ns, client, request

    def _end_ns(self, span: Span) -> int:
        return self.last_ns if span.returned_ns == NOWHERE else span.returned_ns

    def _flows(self) -> list[Flow]:
        """Return the arrows of every request whose two ends are both shown."""
        first: dict[tuple[str, int, str], int] = {}
        last: dict[tuple[str, int, str], int] = {}
        for span in self.history.sound:
            call = span.call
            if call.client and call.request != NOWHERE:
                key = call.client, call.request, call.stage
                held = span.holds if self.sees_device else [(span.called_ns, span.returned_ns)]
                seen = [begin_ns < (self.last_ns if end_ns == NOWHERE else end_ns) for begin_ns, end_ns in held]
                if seen and seen[0]:
                    first.setdefault(key, span.execute)
                if seen and seen[-1]:
                    last[key] = span.execute
        made = []
        for (client, request, stage), source in last.items():
            for begin, end in ARROWS:
                target = first.get((client, request, end))
                if stage == begin and target is not None:
                    made.append(Flow(f"{begin} to {end}", source, target))
        return made

    def slices(self, track: Track) -> Iterator[Slice]:
        """Yield the slices of a row: by begin, outer ones before what they hold."""
        for unit in track.units:
            if unit.span is None:
                yield Slice(unit.begin_ns, unit.end_ns, unit.name, {"request": unit.number})
            elif unit.number == NOWHERE:
                yield self._execute(unit, unit.span)
                yield from thread_parts(unit.span, unit.end_ns, self.sees_device)
            else:
                yield self._hold(unit, unit.span, track)
                for name, (begin_ns, end_ns) in core_parts(unit.span, unit.number):
                    until_ns = self.last_ns if end_ns == NOWHERE else end_ns
                    if until_ns > begin_ns:
                        yield Slice(begin_ns, until_ns, name, {})

    def _execute(self, unit: Unit, span: Span) -> Slice:
        """Return the slice of a graphExecute on its thread; arrows are drawn here where no core was seen."""
        ends = ((), ()) if self.sees_device else self._arrows(span, span)
        return Slice(unit.begin_ns, unit.end_ns, unit.name, facts(span), *ends)

    def _hold(self, unit: Unit, span: Span, track: Track) -> Slice:
        """Return a stretch on a core; of a gang only the first core has the arrows."""
        first = track.name.partition(" (")[0] == f"core {span.call.cores[0]}"
        source = span if first and unit.number == len(span.holds) - 1 else None
        target = span if first and unit.number == 0 else None
        return Slice(unit.begin_ns, unit.end_ns, unit.name, facts(span), *self._arrows(source, target))

    def _arrows(self, source: Span | None, target: Span | None) -> tuple[tuple[int, ...], tuple[int, ...]]:
        leaves = self._leaves.get(source.execute) if source else None
        arrives = self._arrives.get(target.execute) if target else None
        return (leaves,) if leaves else (), (arrives,) if arrives else ()

    def counters(self) -> list[Counter]:
        """Return memory, the guards' lines and slots, and what part of the device time each client has."""
        return counters(self.history, self.processes)


def _in_order(entry: tuple[tuple[int, str], list[Unit]]) -> tuple[int, tuple[tuple[str, int], ...]]:
    """Sort rows by their group, then by name."""
    group, name = entry[0]
    return group, natural(name)


def facts(span: Span) -> Args:
    """Return what is known of a graphExecute, for whoever clicks on it.

    >>> from htpsim.invariants.trace import Call
    >>> facts(Span(Call(execute=3, thread="a", weight=4)))
    {'graphExecute': 3, 'path': 'genie', 'weight': 4}
    """
    call = span.call
    told: dict[str, str | int] = {"graphExecute": span.execute}
    told |= {name: value for name, value in (("client", call.client), ("stage", call.stage)) if value}
    told |= {name: value for name, value in (("request", call.request), ("token", call.token)) if value != NOWHERE}
    told["path"] = call.path
    if call.weight is not None:
        told["weight"] = call.weight
    if call.level != NOWHERE:
        told["QNN priority"] = call.level
    if call.context:
        told["context"] = call.context
    if span.evicts:
        told["evictions"] = len(span.evicts)
    return told
