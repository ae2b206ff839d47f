"""A viewer's view of both formats, written apart from the writers: rows, slices that nest, arrows, curves.

It complains where a viewer would draw wrongly: slices of a row that cross or run backwards, arrows that end nowhere.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pytest

Row = tuple[str, str]
"""Name of its process, its own name."""


@dataclass(slots=True)
class Drawn:
    """One slice as it would be drawn."""

    begin_ns: int
    end_ns: int
    name: str
    args: dict[str, Any]
    inside: list[Drawn] = field(default_factory=list)

    def key(self) -> tuple[Any, ...]:
        """What two formats must agree on."""
        return self.begin_ns, self.end_ns, self.name, self.args, [inner.key() for inner in self.inside]


@dataclass(slots=True)
class Picture:
    rows: dict[Row, list[Drawn]]
    """The outermost slices of each row."""
    arrows: set[tuple[str, int, str, int]]
    """(row, begin of the slice, row, begin of the slice)"""
    curves: dict[Row, list[tuple[int, float]]]

    def all(self, row: Row) -> list[Drawn]:
        """Every slice of a row, outer ones first."""
        found = list(self.rows[row])
        for one in found:
            found += one.inside
        return found

    def keys(self) -> dict[Row, list[tuple[Any, ...]]]:
        return {row: [one.key() for one in slices] for row, slices in self.rows.items()}


def ns(us: float) -> int:
    """Return nanoseconds of microseconds that were rounded to the nearest float."""
    whole = Fraction(us) * 1000
    assert abs(whole - round(whole)) < Fraction(1, 1000)
    return round(whole)


class Nest:
    """The slices of one row, put inside each other as they come."""

    def __init__(self) -> None:
        self.outer: list[Drawn] = []
        self.opened: list[Drawn] = []
        self.last_ns = -1

    def add(self, one: Drawn) -> None:
        assert one.begin_ns >= self.last_ns, "a row goes forward"
        assert one.end_ns > one.begin_ns
        self.last_ns = one.begin_ns
        while self.opened and self.opened[-1].end_ns <= one.begin_ns:
            self.opened.pop()
        if self.opened:
            assert one.end_ns <= self.opened[-1].end_ns, f"{one.name} crosses {self.opened[-1].name}"
            self.opened[-1].inside.append(one)
        else:
            self.outer.append(one)
        self.opened.append(one)


def chrome_picture(document: dict[str, Any]) -> Picture:
    """Return what a viewer draws of Chrome trace JSON; the schema's instants are left out."""
    events = document["traceEvents"]
    processes = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert len({(processes[pid], name) for (pid, _), name in names.items()}) == len(names)
    rows: dict[tuple[int, int], Nest] = {place: Nest() for place in names}
    ends: dict[str, dict[int, tuple[Row, int]]] = {"s": {}, "f": {}}
    curves: dict[Row, list[tuple[int, float]]] = defaultdict(list)
    for event in events:
        place = event["pid"], event.get("tid", 0)
        if event["ph"] == "X":
            begin_ns = ns(event["ts"])
            end_ns = begin_ns + ns(event["dur"])
            rows[place].add(Drawn(begin_ns, end_ns, event["name"], event.get("args", {})))
        elif event["ph"] in ends:
            at_ns = ns(event["ts"])
            bound = [one for one in rows[place].opened if one.begin_ns <= at_ns < one.end_ns]
            assert bound, "an arrow lies within a slice of its row"
            ends[event["ph"]][event["id"]] = (processes[place[0]], names[place]), bound[0].begin_ns
        elif event["ph"] == "C":
            ((of, value),) = event["args"].items()
            curves[processes[event["pid"]], f"{event['name'].partition(' [')[0]}, {of}"].append(
                (ns(event["ts"]), value)
            )
    assert ends["s"].keys() == ends["f"].keys()
    return Picture(
        {
            (processes[pid], name): rows[pid, tid].outer
            for (pid, tid), name in names.items()
            if not processes[pid].startswith("events")
        },
        {(ends["s"][n][0][1], ends["s"][n][1], ends["f"][n][0][1], ends["f"][n][1]) for n in ends["s"]},
        dict(curves),
    )


def perfetto_picture(text: bytes) -> Picture:
    """Return what a viewer draws of Perfetto packets."""
    protos = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    trace = protos.Trace.FromString(text)
    assert [packet.sequence_flags for packet in trace.packet[:2]] == [1, 2][: len(trace.packet)]
    groups: dict[int, str] = {}
    names: dict[int, Row] = {}
    iids: dict[tuple[str, int], str] = {}
    begun: dict[int, list[Any]] = defaultdict(list)
    slices: dict[Row, list[Drawn]] = {}
    last_ns: dict[int, int] = {}
    leaves: dict[int, tuple[Row, int]] = {}
    arrives: dict[int, tuple[Row, int]] = {}
    curves: dict[Row, list[tuple[int, float]]] = {}
    for packet in trace.packet:
        for kind in ("event_names", "debug_annotation_names"):
            iids |= {(kind, entry.iid): entry.name for entry in getattr(packet.interned_data, kind)}
        told, event = packet.track_descriptor, packet.track_event
        if told.HasField("process"):
            groups[told.uuid] = told.process.process_name
        elif told.uuid:
            names[told.uuid] = groups[told.parent_uuid], told.name
            (curves if told.HasField("counter") else slices).setdefault(names[told.uuid], [])
        if not packet.HasField("track_event"):
            continue
        row = names[event.track_uuid]
        assert packet.timestamp >= last_ns.get(event.track_uuid, 0)
        last_ns[event.track_uuid] = packet.timestamp
        if event.type == protos.TrackEvent.TYPE_SLICE_BEGIN:
            args = {
                iids["debug_annotation_names", fact.name_iid]: (
                    fact.int_value if fact.HasField("int_value") else fact.string_value
                )
                for fact in event.debug_annotations
            }
            one = Drawn(packet.timestamp, -1, iids["event_names", event.name_iid], args)
            (begun[event.track_uuid][-1].inside if begun[event.track_uuid] else slices[row]).append(one)
            begun[event.track_uuid].append(one)
            leaves |= dict.fromkeys(event.flow_ids, (row, packet.timestamp))
            arrives |= dict.fromkeys(event.terminating_flow_ids, (row, packet.timestamp))
        elif event.type == protos.TrackEvent.TYPE_SLICE_END:
            begun[event.track_uuid].pop().end_ns = packet.timestamp
        else:
            parts = row[1].startswith("share")
            assert parts or event.HasField("counter_value"), "bytes and counts are whole"
            value = event.double_counter_value if event.HasField("double_counter_value") else event.counter_value
            curves[row].append((packet.timestamp, value))
    assert not any(begun.values()), "what begins ends"
    assert leaves.keys() == arrives.keys()
    return Picture(slices, {(leaves[n][0][1], leaves[n][1], arrives[n][0][1], arrives[n][1]) for n in leaves}, curves)
