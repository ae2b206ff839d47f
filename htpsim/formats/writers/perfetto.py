"""Traces in Perfetto's own format: a stream of protobuf packets, opened by ui.perfetto.dev and its trace processor.

Each row of the timeline is a track of its own beneath the track of its process. Names come once and are then numbers.
Times are nanoseconds. Needs the package ``perfetto``, which brings the definition of the format.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any, Final

from htpsim.formats.writers.extra import needed
from htpsim.formats.writers.timeline import Timeline
from htpsim.formats.writers.tracks import Slice, Track
from htpsim.invariants.trace import Trace

PROTOS: Final = "perfetto.protos.perfetto.trace.perfetto_trace_pb2"
"""Module that has the messages of the format."""

SEQUENCE: Final = 1
"""One writer wrote all."""

CLEARED, NEEDS_STATE = 1, 2
"""Flags of a packet: names start anew; names that came before are used."""

GROUP_ID: Final = 1 << 40
TRACK_ID: Final = 2 << 40
COUNTER_ID: Final = 3 << 40
"""First numbers of the three kinds of tracks."""


def write_perfetto(trace: Trace, file: IO[bytes]) -> None:
    """Write a trace, packet by packet.

    Parameters
    ----------
    trace : Trace
        Simulated or recorded.
    file : binary file
        Where to.

    Raises
    ------
    HtpsimError
        When the package is not installed.
    """
    protos = needed(PROTOS, "perfetto")
    for packet in _Packets(Timeline(trace), protos).all():
        file.write(protos.Trace(packet=[packet]).SerializeToString())


class _Packets:
    """Makes the packets of one timeline."""

    def __init__(self, timeline: Timeline, protos: Any) -> None:
        self.timeline = timeline
        self.protos = protos
        self.names: dict[str, dict[str, int]] = {"event_names": {}, "debug_annotation_names": {}}

    def all(self) -> Iterator[Any]:
        """Yield every packet."""
        first = self.packet()
        first.sequence_flags = CLEARED
        yield first
        for group, name in enumerate(self.timeline.groups):
            yield self.group(group, name)
        for number, track in enumerate(self.timeline.tracks):
            packet = self.packet()
            packet.track_descriptor.uuid = TRACK_ID + number
            packet.track_descriptor.parent_uuid = GROUP_ID + track.group
            packet.track_descriptor.name = track.name
            packet.track_descriptor.sibling_order_rank = number
            yield packet
        for number, track in enumerate(self.timeline.tracks):
            yield from self.slices(track, TRACK_ID + number)
        yield from self.counters()

    def packet(self) -> Any:
        """Return an empty packet."""
        packet = self.protos.TracePacket()
        packet.trusted_packet_sequence_id = SEQUENCE
        packet.sequence_flags = NEEDS_STATE
        return packet

    def group(self, group: int, name: str) -> Any:
        """Return the description of a process, its rows in the order of their rank."""
        packet = self.packet()
        told = packet.track_descriptor
        told.uuid = GROUP_ID + group
        told.process.pid = group + 1
        told.process.process_name = name
        told.child_ordering = told.EXPLICIT
        return packet

    def slices(self, track: Track, number: int) -> Iterator[Any]:
        """Yield begin and end of each slice of a row, in order: what is open ends before the next one begins."""
        opened: list[int] = []
        for one in self.timeline.slices(track):
            while opened and opened[-1] <= one.begin_ns:
                yield self.event(opened.pop(), number, self.protos.TrackEvent.TYPE_SLICE_END)
            yield self.begin(one, number)
            opened.append(one.end_ns)
        while opened:
            yield self.event(opened.pop(), number, self.protos.TrackEvent.TYPE_SLICE_END)

    def event(self, time_ns: int, number: int, kind: int) -> Any:
        """Return an event of a track."""
        packet = self.packet()
        packet.timestamp = time_ns
        packet.track_event.track_uuid = number
        packet.track_event.type = kind
        return packet

    def begin(self, one: Slice, number: int) -> Any:
        """Return the begin of a slice, with its facts and the arrows at it."""
        packet = self.event(one.begin_ns, number, self.protos.TrackEvent.TYPE_SLICE_BEGIN)
        event = packet.track_event
        event.name_iid = self.named(packet, "event_names", one.name)
        event.flow_ids.extend(one.leaves)
        event.terminating_flow_ids.extend(one.arrives)
        for name, value in one.args.items():
            fact = event.debug_annotations.add()
            fact.name_iid = self.named(packet, "debug_annotation_names", name)
            if isinstance(value, int):
                fact.int_value = value
            else:
                fact.string_value = value
        return packet

    def named(self, packet: Any, kind: str, name: str) -> int:
        """Return the number of a name; a packet that uses it first says what it means."""
        known = self.names[kind]
        if name not in known:
            known[name] = len(known) + 1
            entry = getattr(packet.interned_data, kind).add()
            entry.iid = known[name]
            entry.name = name
        return known[name]

    def counters(self) -> Iterator[Any]:
        """Yield the description of each counter, and its points."""
        units = self.protos.CounterDescriptor
        for number, counter in enumerate(self.timeline.counters(), start=COUNTER_ID):
            packet = self.packet()
            told = packet.track_descriptor
            told.uuid = number
            told.parent_uuid = GROUP_ID + counter.group
            told.name = f"{counter.name}, {counter.of}"
            told.sibling_order_rank = len(self.timeline.tracks) + number - COUNTER_ID
            if counter.unit == "%":
                told.counter.unit_name = "%"
            else:
                told.counter.unit = units.UNIT_SIZE_BYTES if counter.unit == "bytes" else units.UNIT_COUNT
            yield packet
            for time_ns, value in counter.points:
                point = self.event(time_ns, number, self.protos.TrackEvent.TYPE_COUNTER)
                if isinstance(value, int):
                    point.track_event.counter_value = value
                else:
                    point.track_event.double_counter_value = value
                yield point
