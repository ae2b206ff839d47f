"""A thread and the state of the copy it answers on: it waits for its turn, and lets adapter and graphs be switched."""

from __future__ import annotations

from collections.abc import Generator

from simpy.events import Event

from htpsim.results.log import waited
from htpsim.sim.clock import Clock, Instant
from htpsim.sim.uses import Use

Steps = Generator[Event, None, None]


class TurnTaker:
    """What one thread does about the turns at the copies it uses; nothing, where a copy has none.

    Switches happen before the first graphExecute that needs them: in the thread, or, where the guard covers them, in
    the call, once it is granted. In that case the copy counts as ready for others when that graphExecute has returned.
    """

    def __init__(self, env: Clock, user: str, place: int, *, inside: bool) -> None:
        self.env = env
        self.user = user
        self.place = place
        self.inside = inside
        self.pending_ns = 0
        """a switch that the next graphExecute is to make"""
        self.waited: dict[str, int] = {}
        """time spent waiting for a turn, by copy [ns]"""

    def take(self, use: Use) -> Steps:
        """Wait for a turn."""
        copy = use.copy
        if copy.turns is None or copy.turns.ask(self.user, use.plan.adapter):
            return
        begun_ns = self.env.now
        event = Instant(self.env)
        copy.in_line[self.user] = event, self.place
        yield event
        self.waited[copy.name] = self.waited.get(copy.name, 0) + self.env.now - begun_ns

    def switch(self, use: Use, graphs: int) -> Steps:
        """Switch to the thread's adapter, and to a set of graphs, where the copy is not as it should be."""
        turns = use.copy.turns
        if turns is None:
            return
        model = use.plan.model
        apply, load = turns.needs(use.plan.adapter, graphs)
        switch_ns = apply * model.lora_switch_ns + load * model.graph_switch_ns
        if self.inside and switch_ns:
            self.pending_ns = switch_ns
            return
        if switch_ns:
            yield self.env.pause(switch_ns, self.place)
        self.settle(use)

    def settle(self, use: Use) -> None:
        """Let others know that the copy is as this thread needs it."""
        self.pending_ns = 0
        if use.copy.turns is not None:
            self._wake(use, use.copy.turns.settle())

    def leave(self, use: Use) -> None:
        """Give the turn to those whose it is now."""
        if use.copy.turns is not None:
            self._wake(use, use.copy.turns.leave(self.user))

    def notes(self) -> list[str]:
        """Tell how long the thread waited for its turns."""
        return [waited(self.user, copy, waited_ns) for copy, waited_ns in self.waited.items()]

    def _wake(self, use: Use, users: tuple[str, ...]) -> None:
        for user in users:
            if user in use.copy.in_line:
                event, place = use.copy.in_line.pop(user)
                self.env.happen(event, 0, place)
