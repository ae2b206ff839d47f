"""Turns at a copy: who may use it now, where not all of its users can at once.

A LoRA adapter changes the weights of a copy, so instances with different adapters cannot answer on it at one time; and
a copy whose graphs are switched holds one set of them at a time, so that nobody else can use it meanwhile. A turn is a
request's, from its first prefill graph to its last token. Those who ask are served in order. Of one adapter several may
have a turn together, once it is applied, but not past somebody who waits. With graph switching a turn is one user's.

A user of a copy::

    away    --ask-->   at it      nobody is, or all who are use the same adapter, which is applied, and nobody waits
    away    --ask-->   waiting    else
    waiting --leave--> at it      of another, when it is the first in line and may
    waiting --settle-> at it      the adapter is applied that it asked for, and nobody is before it
    at it   --leave--> away

The rules are functions over records: `turns` of TURNS_FIELDS, one a copy, and `takers` of TAKER_FIELDS, in which `t` is
the position of one. After each of `line_up`, `settle` and `leave`, `serve` is called until it names nobody more.
"""

from __future__ import annotations

from typing import Any, Final

from htpsim.errors import IllegalTransition, InvariantError
from htpsim.spec.records import record_class

NOBODY: Final = -1

TURNS_FIELDS: Final = (
    "switches_graphs",  # 1: the copy holds one set of graphs at a time
    "applied",  # the adapter that it has, or will when the present switch is done; 0: none
    "graphs",  # and the set of graphs
    "settled",  # 1: that adapter is there
    "users",  # how many have a turn
    "used_with",  # the adapter of all of them
    "first",  # who is the first in line, and the last; NOBODY
    "last",
)
TAKER_FIELDS: Final = (
    "adapter",
    "standing",
    "next_in_line",
)

(AWAY, IN_LINE, AT_IT) = range(3)
"""What a taker is to a copy."""

_Turns: type[Any] = record_class("Turns", TURNS_FIELDS)
_Taker: type[Any] = record_class("Taker", TAKER_FIELDS)


def line_up(turns: Any, takers: Any, t: int) -> None:
    """Let taker `t` be the last in line."""
    takers[t].standing = IN_LINE
    takers[t].next_in_line = NOBODY
    if turns.first == NOBODY:
        turns.first = t
    else:
        takers[turns.last].next_in_line = t
    turns.last = t


def may_begin(turns: Any, adapter: int) -> bool:
    """Tell whether the first in line, with that adapter, may have a turn beside those who have one."""
    if turns.users == 0:
        return True
    return bool(turns.switches_graphs == 0 and turns.settled and adapter == turns.used_with)


def serve(turns: Any, takers: Any) -> int:
    """Give a turn to the first in line, if it may have one; return who that was, or NOBODY."""
    t: int = turns.first
    if t == NOBODY or not may_begin(turns, takers[t].adapter):
        return NOBODY
    taker = takers[t]
    if turns.users == 0:
        turns.settled = int(taker.adapter == turns.applied)
    turns.first = taker.next_in_line
    taker.standing = AT_IT
    turns.users += 1
    turns.used_with = taker.adapter
    return t


def needs_adapter(turns: Any, adapter: int) -> int:
    """Tell (1, 0) whether the copy must switch to an adapter; it counts as done from now on."""
    if turns.applied == adapter:
        return 0
    turns.applied = adapter
    return 1


def needs_graphs(turns: Any, graphs: int) -> int:
    """Tell (1, 0) whether the copy must switch to a set of graphs; it counts as done from now on."""
    if turns.graphs == graphs:
        return 0
    turns.graphs = graphs
    return int(turns.switches_graphs)


def settle(turns: Any) -> None:
    """Note that the copy is as its user needs it."""
    turns.settled = 1


def leave(turns: Any, takers: Any, t: int) -> None:
    """End the turn of taker `t`."""
    takers[t].standing = AWAY
    turns.users -= 1


class Turns:
    """The turns at one copy, of users and adapters by their names.

    Parameters
    ----------
    switches_graphs : bool
        Whether the copy holds one set of graphs at a time.

    Examples
    --------
    >>> turns = Turns(switches_graphs=False)
    >>> turns.ask("vlm0", "formal"), turns.ask("vlm1", "casual"), turns.ask("vlm2", "formal")
    (True, False, False)
    >>> turns.needs("formal", 0), turns.settle(), turns.needs("formal", 1)
    ((True, False), (), (False, False))
    >>> turns.leave("vlm0"), turns.leave("vlm1")
    (('vlm1',), ('vlm2',))
    """

    __slots__ = ("_adapters", "_numbers", "_record", "_takers")

    def __init__(self, *, switches_graphs: bool) -> None:
        self._record = _Turns()
        self._record.switches_graphs = int(switches_graphs)
        self._record.first = self._record.last = NOBODY
        self._takers: list[Any] = []
        self._numbers: dict[str, int] = {}
        """of the takers, by name"""
        self._adapters = {"": 0}

    def ask(self, user: str, adapter: str) -> bool:
        """Ask for a turn; True when it is `user`'s at once, else `leave` or `settle` will name it.

        Raises
        ------
        IllegalTransition
            When it has a turn or waits for one.
        """
        t = self._numbers.setdefault(user, len(self._takers))
        if t == len(self._takers):
            self._takers.append(_Taker())
        if self._takers[t].standing != AWAY:
            raise IllegalTransition(f"turns: got 'ask' of '{user}', which has or awaits one, expected 'leave'")
        self._takers[t].adapter = self._adapters.setdefault(adapter, len(self._adapters))
        line_up(self._record, self._takers, t)
        return user in self._served()

    def needs(self, adapter: str, graphs: int) -> tuple[bool, bool]:
        """Tell whether the copy must switch to an adapter, and to a set of graphs; it counts as done from now on."""
        number = self._adapters.setdefault(adapter, len(self._adapters))
        return bool(needs_adapter(self._record, number)), bool(needs_graphs(self._record, graphs))

    def settle(self) -> tuple[str, ...]:
        """Report that the copy is as its user needs it, and return who may use it as well, in order."""
        settle(self._record)
        return self._served()

    def leave(self, user: str) -> tuple[str, ...]:
        """End a turn, and return whose turn it is now, in order.

        Raises
        ------
        IllegalTransition
            When `user` has none.
        """
        t = self._numbers.get(user, NOBODY)
        if t == NOBODY or self._takers[t].standing != AT_IT:
            raise IllegalTransition(f"turns: got 'leave' of '{user}', which has no turn, expected 'ask'")
        leave(self._record, self._takers, t)
        return self._served()

    def validate(self) -> None:
        """Check that who has a turn may have it together.

        Raises
        ------
        InvariantError
            When they may not, or when somebody waits for nobody.
        """
        users, waiting = self._standing(AT_IT), self._standing(IN_LINE)
        if len(set(users.values())) > 1 or (self._record.switches_graphs and len(users) > 1):
            raise InvariantError(f"turns: {users} have one at the same time")
        if waiting and not users:
            raise InvariantError(f"turns: {list(waiting.items())} wait, and nobody has one")

    def _standing(self, standing: int) -> dict[str, str]:
        """Return the users of a standing, each with its adapter."""
        names = {number: name for name, number in self._adapters.items()}
        return {
            user: names[self._takers[t].adapter]
            for user, t in self._numbers.items()
            if self._takers[t].standing == standing
        }

    def _served(self) -> tuple[str, ...]:
        """Give a turn to as many of those who wait, in order, as may have one together."""
        names = list(self._numbers)
        served = []
        while (t := serve(self._record, self._takers)) != NOBODY:
            served.append(names[t])
        return tuple(served)
