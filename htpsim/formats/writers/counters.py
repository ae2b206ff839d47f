"""Numbers over time beside the slices: memory, the guards' lines, shares of device time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from htpsim.invariants.spans import History
from htpsim.invariants.trace import NOWHERE
from htpsim.units import format_time

SHARE_POINTS: Final = 500
"""About how many windows the shares are taken over, at most."""

_PIECES: Final = re.compile(r"(\D*)(\d{0,18})", re.ASCII)

Point = tuple[int, int | float]
"""(time [ns], value from then on)"""


@dataclass(frozen=True, slots=True)
class Counter:
    """One curve; it keeps its value until its next point."""

    group: int
    """Index of the group of rows that it belongs to; 0 is the device."""
    name: str
    """What is counted; curves that belong together share it."""
    of: str
    """Whose it is."""
    unit: Literal["bytes", "count", "%"]
    points: list[Point]


def counters(history: History, processes: dict[int, int]) -> list[Counter]:
    """Return every counter of a trace.

    Parameters
    ----------
    history
        The trace made ready.
    processes
        Group of rows of each process.
    """
    return [*_memory(history), *_guards(history, processes), *_shares(history)]


def natural(name: str) -> tuple[tuple[str, int], ...]:
    """Return a key that sorts names with numbers by the numbers.

    >>> sorted(["vlm10", "vlm9"], key=natural)
    ['vlm9', 'vlm10']
    """
    return tuple((text, int(digits or 0)) for text, digits in _PIECES.findall(name))


def curve(changes: Iterable[tuple[int, int]]) -> list[Point]:
    """Add changes up; of several at one instant only the outcome is kept.

    >>> curve([(0, 1), (5, 1), (5, -1), (7, -1)])
    [(0, 1), (7, 0)]
    """
    points: list[Point] = []
    value = 0
    for time_ns, change in changes:
        value += change
        if points and points[-1][0] == time_ns:
            points.pop()
        if not points or points[-1][1] != value:
            points.append((time_ns, value))
    return points


def _memory(history: History) -> Iterator[Counter]:
    """Yield what each place of each ledger holds."""
    changes: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for event in history.trace.memory:
        changes.setdefault((event.ledger, event.place), []).append((event.time_ns, event.delta_bytes))
    for (ledger, place), made in sorted(changes.items()):
        yield Counter(0, f"memory: {ledger}", place, "bytes", curve(made))


def _guards(history: History, processes: dict[int, int]) -> Iterator[Counter]:
    """Yield how many calls are in line at each set of slots, and how many of its slots are held."""
    line, slots = {"call": 1, "grant": -1, "release": 0}, {"call": 0, "grant": 1, "release": -1}
    for (process, core), seen in sorted(history.guard_events.items()):
        of = "all cores" if core == NOWHERE else f"core {core}"
        for name, change in (("guard: calls in line", line), ("guard: slots held", slots)):
            points = curve((time_ns, change[kind]) for time_ns, kind, _ in seen)
            yield Counter(processes[process], name, of, "count", points)


def share_window_ns(length_ns: int) -> int:
    """Return a round length of window for shares, 1, 2 or 5 times a power of ten [ns].

    >>> share_window_ns(60_000_000_000), share_window_ns(7)
    (200000000, 1)
    """
    scale = 1
    while True:
        for step in (1, 2, 5):
            if step * scale * SHARE_POINTS >= length_ns:
                return step * scale
        scale *= 10


def shown_until_ns(history: History) -> int:
    """Return when a picture of a trace ends: with its last event, even where its header says that it ended before."""
    return max(history.last_ns, history.trace.events[-1].time_ns if history.trace.events else 0)


def _shares(history: History) -> Iterator[Counter]:
    """Yield for each client its part of the time that cores were held, window by window; a gang counts each core."""
    last_ns = shown_until_ns(history)
    width_ns = share_window_ns(last_ns)
    held: dict[str, dict[int, int]] = {}
    for span in history.sound:
        windows = held.setdefault(span.call.client or span.call.thread, {})
        for begin_ns, end_ns in span.holds:
            until_ns = last_ns if end_ns == NOWHERE else end_ns
            for window in range(begin_ns // width_ns, -(-until_ns // width_ns)):
                within_ns = min(until_ns, (window + 1) * width_ns) - max(begin_ns, window * width_ns)
                windows[window] = windows.get(window, 0) + within_ns * max(1, len(span.call.cores))
    whole: dict[int, int] = {}
    for windows in held.values():
        for window, time_ns in windows.items():
            whole[window] = whole.get(window, 0) + time_ns
    for client, windows in sorted(held.items(), key=lambda entry: natural(entry[0])):
        points: list[Point] = []
        for window in range(last_ns // width_ns + 1) if whole else ():
            share = round(100 * windows.get(window, 0) / whole[window], 2) if whole.get(window) else 0
            if not points or points[-1][1] != share:
                points.append((window * width_ns, share))
        if points:
            yield Counter(0, f"share of device time ({format_time(width_ns)})", client, "%", points)
