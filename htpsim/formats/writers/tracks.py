"""Slices on tracks: which slice goes to which row of a viewer, so that slices of a row nest and never cross.

A viewer draws a slice inside another one of its row when it begins and ends within it, and draws wrongly when the two
cross. A *unit* is a slice with all that belongs inside it. Units of a rank nest in those of a lower rank and stand
beside those of their own; what would cross or nest wrongly goes to the next row of the track.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from htpsim.invariants.spans import Span, Stretch
from htpsim.invariants.trace import NOWHERE

ACQUIRE, RUN, EVICT, RESTORE = "acquire", "run", "evict", "restore"
GUARD_WAIT: Final = "guard wait"
GUARD_OVERHEAD: Final = "guard overhead"
RPC: Final = "RPC"
DEVICE_WAIT: Final = "device wait"
ON_DEVICE: Final = "on the device"
"""Where nobody saw the device: from the submit to the return, waiting included."""
RPC_RETURN: Final = "RPC return"

Args = Mapping[str, str | int]


class Slice(NamedTuple):
    """A stretch of time with a name, on one row."""

    begin_ns: int
    end_ns: int
    name: str
    args: Args
    leaves: tuple[int, ...] = ()
    """Flows that begin at it."""
    arrives: tuple[int, ...] = ()
    """Flows that end at it."""


class Unit(NamedTuple):
    """One slice with those inside it, made when they are asked for."""

    begin_ns: int
    end_ns: int
    rank: int
    name: str
    span: Span | None
    number: int
    """Of a request; of a stretch on a core, which of the span's it is; NOWHERE for a span on its thread."""

    @property
    def order(self) -> tuple[int, int, int]:
        """Outer ones first."""
        return self.begin_ns, -self.end_ns, self.rank


@dataclass(slots=True)
class Track:
    """One row."""

    group: int
    """Index of the group of rows that it belongs to."""
    name: str
    units: list[Unit] = field(default_factory=list)
    """In order; they nest."""


def rows(group: int, name: str, units: list[Unit]) -> list[Track]:
    """Spread units over as few rows as keep them from crossing; the first has the name, the others a number too.

    >>> one, other = Unit(0, 9, 0, "a", None, 0), Unit(5, 12, 0, "b", None, 1)
    >>> [(track.name, len(track.units)) for track in rows(0, "core 0", [one, other])]
    [('core 0', 1), ('core 0 (2)', 1)]
    """
    tracks = [Track(group, name)]
    opened: list[list[Unit]] = [[]]
    for unit in sorted(units, key=lambda unit: unit.order):
        if unit.end_ns <= unit.begin_ns:
            continue
        row = next((row for row, inside in enumerate(opened) if _fits(unit, inside)), len(tracks))
        if row == len(tracks):
            tracks.append(Track(group, f"{name} ({row + 1})"))
            opened.append([])
        tracks[row].units.append(unit)
        opened[row].append(unit)
    return tracks


def _fits(unit: Unit, inside: list[Unit]) -> bool:
    """Tell whether a unit may stand in a row, `inside` of what is open there; what has ended by then is taken off."""
    while inside and inside[-1].end_ns <= unit.begin_ns:
        inside.pop()
    return not inside or (inside[-1].rank < unit.rank and unit.end_ns <= inside[-1].end_ns)


def thread_parts(span: Span, end_ns: int, sees_device: bool) -> Iterator[Slice]:
    """Yield where the time of a graphExecute went, from its call to its return, without gaps.

    Parameters
    ----------
    span
        The graphExecute.
    end_ns
        Its return, or when the trace ends.
    sees_device
        Whether the recorder saw the device.
    """
    for name, begin_ns, over_ns in _thread_parts(span, sees_device):
        until_ns = end_ns if over_ns == NOWHERE else over_ns
        if begin_ns != NOWHERE and until_ns > begin_ns:
            yield Slice(begin_ns, until_ns, name, {})


def _thread_parts(span: Span, sees_device: bool) -> Iterator[tuple[str, int, int]]:
    """Yield (name, begin, end) of each part, an end of NOWHERE where it is still going on."""
    sent_ns = span.called_ns
    if span.call.path == "genie" and span.call.under is None:
        waits = span.granted_ns != NOWHERE or span.submitted_ns == NOWHERE
        if waits:
            yield GUARD_WAIT, span.called_ns, span.granted_ns
            sent_ns = span.granted_ns
    if span.parts is not None and sent_ns != NOWHERE:
        yield GUARD_OVERHEAD, sent_ns, sent_ns + span.parts.guard_overhead_ns
        sent_ns += span.parts.guard_overhead_ns
    yield RPC, sent_ns, span.submitted_ns
    if not sees_device:
        yield ON_DEVICE, span.submitted_ns, span.returned_ns
        return
    waiting_ns = span.submitted_ns
    for number, (begin_ns, until_ns) in enumerate(span.holds):
        yield DEVICE_WAIT, waiting_ns, begin_ns
        for name, stretch in core_parts(span, number):
            yield name, *stretch
        waiting_ns = until_ns
    if span.finished_ns != NOWHERE:
        yield RPC_RETURN, span.finished_ns, span.returned_ns
    elif waiting_ns != NOWHERE:
        yield DEVICE_WAIT, waiting_ns, NOWHERE


def core_parts(span: Span, number: int) -> Iterator[tuple[str, Stretch]]:
    """Yield what a graphExecute did in one of its stretches on its core; an end of NOWHERE is still going on."""
    first = span.acquires if number == 0 else span.restores[number - 1 :]
    yield (ACQUIRE if number == 0 else RESTORE), first[0]
    if number < len(span.runs):
        yield RUN, span.runs[number]
    if number < len(span.evicts):
        yield EVICT, span.evicts[number]
