"""What a viewer of Chrome trace JSON draws: metadata, slices, arrows and counters, one event at a time.

Times are microseconds there, with up to three decimals: exact for the first hundred days of a clock. ``s`` and ``f``
events are the two ends of an arrow; a viewer ties each to the slice of its row in which it falls, so both lie within
theirs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from htpsim.formats.writers.timeline import Timeline
from htpsim.formats.writers.tracks import Slice

VIEW: Final = "view"
"""Category of what is there for the eye only."""

US: Final = 1000

ChromeEvent = dict[str, Any]


def process_id(group: int) -> int:
    """Return the number that stands for a group of rows; 0 means something else to viewers."""
    return group + 1


def view_events(timeline: Timeline) -> Iterator[ChromeEvent]:
    """Yield the events of a timeline: names first, then row by row the slices in order of time, then the counters.

    >>> from htpsim.invariants.trace import Trace
    >>> [event["args"]["name"] for event in view_events(Timeline(Trace())) if event["name"] == "process_name"]
    ['HTP device']
    """
    for group, name in enumerate(timeline.groups):
        yield from named("process", process_id(group), 0, name, group)
    for number, track in enumerate(timeline.tracks, start=1):
        yield from named("thread", process_id(track.group), number, track.name, number)
    flows = dict(enumerate(timeline.flows, start=1))
    for number, track in enumerate(timeline.tracks, start=1):
        place = {"pid": process_id(track.group), "tid": number}
        for one in timeline.slices(track):
            yield slice_event(one) | place
            for flow in one.arrives:
                yield (
                    {"name": flows[flow].name, "cat": VIEW, "ph": "f", "bp": "e", "id": flow}
                    | place
                    | {"ts": one.begin_ns / US}
                )
            for flow in one.leaves:
                yield (
                    {"name": flows[flow].name, "cat": VIEW, "ph": "s", "id": flow}
                    | place
                    | {"ts": (one.end_ns - 1) / US}
                )
    yield from counter_events(timeline)


def named(what: str, pid: int, tid: int, name: str, order: int) -> Iterator[ChromeEvent]:
    """Yield the name of a process or thread and its place among them."""
    place = {"ph": "M", "pid": pid, "tid": tid}
    yield {"name": f"{what}_name", **place, "args": {"name": name}}
    yield {"name": f"{what}_sort_index", **place, "args": {"sort_index": order}}


def slice_event(one: Slice) -> ChromeEvent:
    """Return a slice without its place.

    >>> slice_event(Slice(2_500, 9_000, "run", {}))
    {'name': 'run', 'cat': 'view', 'ph': 'X', 'ts': 2.5, 'dur': 6.5}
    """
    event: ChromeEvent = {
        "name": one.name, "cat": VIEW, "ph": "X", "ts": one.begin_ns / US, "dur": (one.end_ns - one.begin_ns) / US,
    }  # fmt: skip
    return event | {"args": one.args} if one.args else event


def counter_events(timeline: Timeline) -> Iterator[ChromeEvent]:
    """Yield the points of every counter."""
    for counter in timeline.counters():
        pid = process_id(counter.group)
        name = f"{counter.name} [{counter.unit}]" if counter.unit != "count" else counter.name
        for time_ns, value in counter.points:
            yield {
                "name": name, "cat": VIEW, "ph": "C", "pid": pid, "tid": 0, "ts": time_ns / US,
                "args": {counter.of: value},
            }  # fmt: skip
