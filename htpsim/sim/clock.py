"""The total order of instants, laid over SimPy's own queue.

The next action is always the one with the smallest (time, phase, index, number); SimPy keeps its events in order of
(time, priority), so the rest of the key becomes the priority, as one integer. Several things at one instant therefore
happen in an order that the model defines and not in the order in which somebody scheduled them.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Final

import simpy
from simpy.events import Event, EventPriority

DEVICE, HOST, TIMER, GRANT, DISPATCH = range(5)
"""Phases: ends on a core; what a thread does; a guard's timers; one grant; one core's new running set."""

RETURN, GAP, ARRIVAL = range(3)
"""What a thread does, in this order."""

_INDEX_BITS: Final = 16
_NUMBER_BITS: Final = 44
LAST: Final = EventPriority((DISPATCH + 1) << (_INDEX_BITS + _NUMBER_BITS))
"""Rank after everything else of its instant: the horizon, so that an event exactly at it still counts."""


class Instant(Event):
    """A SimPy event that happens at a given delay and rank."""

    def __init__(self, env: simpy.Environment) -> None:  # as Timeout does, without the call of Event.__init__
        self.env = env
        self.callbacks = []
        self._ok = True
        self._value = None


Action = Callable[[Event], None]


def rank(phase: int, index: int, number: int = 0) -> EventPriority:
    """Return the place within an instant, as a SimPy priority.

    >>> rank(DEVICE, 1, 7) < rank(HOST, 0) < host_rank(0, ARRIVAL, 0) < host_rank(1, RETURN, 0) < LAST
    True
    """
    return EventPriority(((phase << _INDEX_BITS) + index << _NUMBER_BITS) + number)


def host_rank(client: int, kind: int, number: int) -> EventPriority:
    """Return the place of what a client's threads do: returns, then ends of gaps, then arrivals, by number."""
    return EventPriority((((HOST << _INDEX_BITS) + client << 2) + kind << _NUMBER_BITS - 2) + number)


class Clock(simpy.Environment):
    """SimPy's environment, with whole nanoseconds and a place within an instant for everything that is scheduled.

    What must happen later in the *same* instant (a grant, a dispatch) needs no event: it waits on an agenda, in the
    same order, and `step` takes whichever is next, the agenda's first entry or SimPy's.
    """

    def __init__(self) -> None:
        super().__init__()
        self._agenda: list[tuple[int, Callable[[], None]]] = []

    @property
    def now(self) -> int:
        """The present instant, in ns."""
        return self._now  # type: ignore[return-value]

    def soon(self, place: int, action: Callable[[], None]) -> None:
        """Do `action` in this instant, at its place; no two waiting actions may have the same place."""
        heappush(self._agenda, (place, action))

    def step(self) -> None:
        """Do the next thing in the total order."""
        agenda = self._agenda
        if agenda:
            queue = self._queue
            if not queue or queue[0][0] > self._now or queue[0][1] > agenda[0][0]:
                heappop(agenda)[1]()
                return
        super().step()

    def nothing_left(self, stop: Event) -> bool:
        """Tell whether nothing is pending any more but `stop`."""
        return not self._agenda and all(entry[3] is stop for entry in self._queue)

    def at(self, delay_ns: int, place: EventPriority, action: Action) -> Instant:
        """Schedule `action` and return its event."""
        event = Instant(self)
        event.callbacks.append(action)
        self.schedule(event, place, delay_ns)
        return event

    def pause(self, delay_ns: int, place: EventPriority) -> Instant:
        """Return an event for a process to wait on."""
        event = Instant(self)
        self.schedule(event, place, delay_ns)
        return event
