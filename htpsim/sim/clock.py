"""The total order of instants, laid over SimPy's own queue.

The next action is always the one with the smallest (time, phase, index, number); SimPy keeps its events in order of
(time, priority), so the rest of the key becomes the priority, as one integer, here called a *place*. Several things at
one instant therefore happen in an order that the model defines and not in the order in which somebody scheduled them.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, Final

import simpy
from simpy.events import Event

DEVICE, HOST, TIMER, GRANT, DISPATCH = range(5)
"""Phases: ends on a core; what a thread does; a guard's timers; one grant; one core's new running set."""

RETURN, GAP, ARRIVAL = range(3)
"""What a thread does, in this order."""

_INDEX_BITS: Final = 16
_NUMBER_BITS: Final = 44
_GRANTS: Final = GRANT << (_INDEX_BITS + _NUMBER_BITS)
LAST: Final = (DISPATCH + 1) << (_INDEX_BITS + _NUMBER_BITS)
"""Place after everything else of its instant: the horizon, so that an event exactly at it still counts."""

NO_TIME: Final = 1 << 62
"""Later than any instant."""

Action = Callable[[Event], None]


class Instant(Event):
    """A SimPy event that succeeds: when it happens is all there is to know of it."""

    _ok = True
    _value = None

    def __init__(self, env: simpy.Environment) -> None:  # the rest of an Event's state is the same for all
        self.env = env
        self.callbacks = []


def place(phase: int, index: int, number: int = 0) -> int:
    """Return the place within an instant, as a SimPy priority.

    >>> place(DEVICE, 1, 7) < place(HOST, 0) < host_place(0, ARRIVAL, 0) < host_place(1, RETURN, 0) < LAST
    True
    """
    return ((phase << _INDEX_BITS) + index << _NUMBER_BITS) + number


def host_place(client: int, kind: int, number: int) -> int:
    """Return the place of what a client's threads do: returns, then ends of gaps, then arrivals, by number."""
    return (((HOST << _INDEX_BITS) + client << 2) + kind << _NUMBER_BITS - 2) + number


class Clock(simpy.Environment):
    """SimPy's environment, with whole nanoseconds and a place within an instant for everything.

    Three things that happen a million times need no event of SimPy's, because nobody else can wait for them. They stand
    beside its queue, and `step` takes whichever is next in the total order:

    - what the device does next: at ``due_ns``, at ``due_place`` in that instant, by ``due``;
    - ``returns``: graphExecutes that return in this very instant;
    - ``wanted``: grants and dispatches of this instant, a bit each in the order in which they are made.

    ``_now`` is read directly where it is read often; the property costs a call.
    """

    _now: int

    def __init__(self) -> None:
        super().__init__()
        self.due_ns = NO_TIME
        self.due_place = 0
        self.due: Callable[[], None] = _nothing
        self.returns: list[tuple[int, int]] = []
        """places, and what ``give_back`` is to give back"""
        self.give_back: Callable[[int], None] = _nobody
        self.wanted = 0
        self._actions: dict[int, Callable[[], None]] = {}
        self._next_bit = 1

    @property
    def now(self) -> int:
        """The present instant, in ns."""
        return self._now

    def bit(self, action: Callable[[], None]) -> int:
        """Return the bit of ``wanted`` that stands for an action; to be called in the order of their places."""
        bit = self._next_bit
        self._next_bit <<= 1
        self._actions[bit] = action
        return bit

    def step(self) -> None:
        """Do the next thing in the total order."""
        now = self._now
        if self.due_ns == now:
            first = self.due_place
        elif self.returns:
            first = self.returns[0][0]
        elif self.wanted:
            first = _GRANTS
        else:
            self._advance()
            return
        queue: list[Any] = self._queue
        if queue and queue[0][0] == now and queue[0][1] < first:
            super().step()
        elif self.due_ns == now:
            self.due()
        elif self.returns:
            self.give_back(heappop(self.returns)[1])
        else:
            wanted = self.wanted
            bit = wanted & -wanted
            self.wanted = wanted ^ bit
            self._actions[bit]()

    def _advance(self) -> None:
        """Go on with SimPy's queue, or to the next instant of the device."""
        due_ns, queue = self.due_ns, self._queue
        if due_ns == NO_TIME:
            super().step()
            return
        if queue:
            at_ns, first, _, _ = queue[0]
            if at_ns < due_ns or (at_ns == due_ns and first < self.due_place):
                super().step()
                return
        self._now = due_ns
        self.due()

    def return_now(self, where: int, j: int) -> None:
        """Give back `j` in this instant, at its place: at once if nothing else comes before it."""
        queue: list[Any] = self._queue
        if self.due_ns == self._now or self.returns or (queue and queue[0][0] == self._now and queue[0][1] < where):
            heappush(self.returns, (where, j))
        else:
            self.give_back(j)

    def peek(self) -> Any:
        """Return the time of the next thing to happen."""
        if self.returns or self.wanted:
            return self._now
        return min(super().peek(), self.due_ns) if self.due_ns != NO_TIME else super().peek()

    def nothing_left(self, stop: Event) -> bool:
        """Tell whether nothing is pending any more but `stop`."""
        beside = self.due_ns != NO_TIME or self.returns or self.wanted
        return not beside and all(entry[3] is stop for entry in self._queue)

    def happen(self, event: Event, delay_ns: int, where: int) -> None:
        """Let `event` happen after a delay, at its place in that instant."""
        heappush(self._queue, (self._now + delay_ns, where, next(self._eid), event))  # type: ignore[misc]

    def at(self, delay_ns: int, where: int, action: Action) -> Instant:
        """Schedule `action` and return its event."""
        event = Instant(self)
        event.callbacks.append(action)
        self.happen(event, delay_ns, where)
        return event

    def pause(self, delay_ns: int, where: int) -> Instant:
        """Return an event for a process to wait on."""
        event = Instant(self)
        self.happen(event, delay_ns, where)
        return event


def _nothing() -> None:
    """Do nothing: there is no device yet."""


def _nobody(j: int) -> None:
    """Give nothing back: there is no runtime yet."""
