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
"""

from __future__ import annotations

from collections import deque

from htpsim.errors import IllegalTransition, InvariantError


class Turns:
    """The turns at one copy.

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

    __slots__ = ("_adapter", "_loaded", "_settled", "_users", "_waiting", "switches_graphs")

    def __init__(self, *, switches_graphs: bool) -> None:
        self.switches_graphs = switches_graphs
        self._adapter = ""
        self._loaded = 0
        self._settled = False
        self._users: dict[str, str] = {}
        """who has a turn, with which adapter"""
        self._waiting: deque[tuple[str, str]] = deque()

    def ask(self, user: str, adapter: str) -> bool:
        """Ask for a turn; True when it is `user`'s at once, else `leave` or `settle` will name it.

        Raises
        ------
        IllegalTransition
            When it has a turn or waits for one.
        """
        if user in self._users or any(user == other for other, _ in self._waiting):
            raise IllegalTransition(f"turns: got 'ask' of '{user}', which has or awaits one, expected 'leave'")
        self._waiting.append((user, adapter))
        return user in self._serve()

    def needs(self, adapter: str, graphs: int) -> tuple[bool, bool]:
        """Tell whether the copy must switch to an adapter, and to a set of graphs; it counts as done from now on."""
        apply, load = adapter != self._adapter, self.switches_graphs and graphs != self._loaded
        self._adapter, self._loaded = adapter, graphs
        return apply, load

    def settle(self) -> tuple[str, ...]:
        """Report that the copy is as its user needs it, and return who may use it as well, in order."""
        self._settled = True
        return self._serve()

    def leave(self, user: str) -> tuple[str, ...]:
        """End a turn, and return whose turn it is now, in order.

        Raises
        ------
        IllegalTransition
            When `user` has none.
        """
        if user not in self._users:
            raise IllegalTransition(f"turns: got 'leave' of '{user}', which has no turn, expected 'ask'")
        del self._users[user]
        return self._serve()

    def validate(self) -> None:
        """Check that who has a turn may have it together.

        Raises
        ------
        InvariantError
            When they may not, or when somebody waits for nobody.
        """
        if len(set(self._users.values())) > 1 or (self.switches_graphs and len(self._users) > 1):
            raise InvariantError(f"turns: {self._users} have one at the same time")
        if self._waiting and not self._users:
            raise InvariantError(f"turns: {list(self._waiting)} wait, and nobody has one")

    def _serve(self) -> tuple[str, ...]:
        """Give a turn to as many of those who wait, in order, as may have one together."""
        served = []
        while self._waiting:
            user, adapter = self._waiting[0]
            if self._users and (self.switches_graphs or not self._settled or adapter not in self._users.values()):
                break
            if not self._users:
                self._settled = adapter == self._adapter
            self._waiting.popleft()
            self._users[user] = adapter
            served.append(user)
        return tuple(served)
