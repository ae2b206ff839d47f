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
from simpy.core import SimTime
from simpy.events import NORMAL, Event, EventPriority

from htpsim.errors import InvariantError

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

    - what the device does next: at ``due_ns``, by ``due``, at ``due_place()`` in that instant;
    - ``returns``: graphExecutes that return in the instant in which they finish, as ``due`` then tells;
    - ``wanted``: grants and dispatches of this instant, a bit each in the order in which they are made.

    ``_now`` is read directly where it is read often; the property costs a call.
    """

    _now: int

    def __init__(self) -> None:
        super().__init__()
        self._busy = True
        """whether SimPy's queue may have something left in this instant"""
        self.due_ns = NO_TIME
        self.due: Callable[[], int] = _nowhere
        self.due_place: Callable[[], int] = _nowhere
        self.returns: list[tuple[int, int]] = []
        """heap of places, and of what ``give_back`` is to give back"""
        self.give_back: Callable[[int], None] = _nobody
        self.return_place: Callable[[int], int] = _somewhere
        self.wanted = 0
        self._actions: list[Callable[[], None]] = []
        self._firsts: dict[int, tuple[Callable[[], None], int]] = {}
        """for each value that ``wanted`` had so far: its first action, and what is wanted besides"""

    @property
    def now(self) -> int:
        """The present instant, in ns."""
        return self._now

    def bit(self, action: Callable[[], None]) -> int:
        """Return the bit of ``wanted`` that stands for an action; to be called in the order of their places."""
        self._actions.append(action)
        return 1 << len(self._actions) - 1

    def _first(self, wanted: int) -> tuple[Callable[[], None], int]:
        bit = wanted & -wanted
        self._firsts[wanted] = self._actions[bit.bit_length() - 1], wanted ^ bit
        return self._firsts[wanted]

    def step(self) -> None:
        """Do the next thing in the total order, and what follows in this instant until SimPy's queue has its turn."""
        queue: list[Any] = self._queue
        firsts, returns = self._firsts, self.returns
        if self.wanted or returns:
            now = self._now
        else:
            now = self.due_ns
            at_ns = queue[0][0] if queue else NO_TIME
            if at_ns < now or now == NO_TIME:
                self._busy = True  # for all that is known
                super().step()
                return
            self._now = now
            self._busy = at_ns == now
        while not self._busy or not self._queue_is_first():
            if self.due_ns == now:
                j = self.due()
                if j >= 0:
                    if self._busy or returns or self.due_ns == now:
                        heappush(returns, (self.return_place(j), j))
                    else:
                        self.give_back(j)
            elif returns:
                self.give_back(heappop(returns)[1])
            elif self.wanted:
                action, self.wanted = firsts.get(self.wanted) or self._first(self.wanted)
                action()
            else:
                return
        super().step()

    def _queue_is_first(self) -> bool:
        """Tell whether what comes next in this instant is in SimPy's queue; note when nothing of it is left there."""
        queue: list[Any] = self._queue
        if not queue or queue[0][0] != self._now:
            self._busy = False
            return False
        if self.due_ns == self._now:
            return bool(queue[0][1] < self.due_place())
        if self.returns:
            return bool(queue[0][1] < self.returns[0][0])
        return not self.wanted or bool(queue[0][1] < _GRANTS)

    def schedule(self, event: Event, priority: EventPriority = NORMAL, delay: SimTime = 0) -> None:
        """Schedule an event as SimPy does, and take note of one in this instant."""
        if delay <= 0:
            self._busy = True
            _forward(delay, self._now)
        super().schedule(event, priority, delay)

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
        """Let `event` happen after a delay, at its place in that instant.

        Raises
        ------
        InvariantError
            When the delay is negative: time does not go back.
        """
        if delay_ns <= 0:
            self._busy = True
            _forward(delay_ns, self._now)
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


def _forward(delay_ns: SimTime, now_ns: int) -> None:
    """Raise InvariantError where something is to happen in the past."""
    if delay_ns < 0:
        raise InvariantError(f"clock: got a delay of {delay_ns} ns at {now_ns} ns, expected at least 0")


def _nowhere() -> int:
    """Return no place in particular, and nobody who returns: there is no device yet."""
    return -1


def _somewhere(j: int) -> int:
    """Return no place in particular."""
    return -1


def _nobody(j: int) -> None:
    """Give nothing back: there is no runtime yet."""
