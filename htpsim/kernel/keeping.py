"""Copies that are unloaded and loaded again while a run goes on: the loop leaves, and a `Keeper` is asked for them.

That happens a few times a request, not once an event, so loading need not be compiled: one loader serves both engines.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from htpsim.kernel.events import GAP, host_place, push
from htpsim.kernel.fields import HOLD_LLM, HOLD_VIT, KEEPS, LEAVE_LLM, LEAVE_VIT
from htpsim.kernel.store import Store
from htpsim.results.columns import Copy, Load, MemoryEvent
from htpsim.results.loaded import Keeper, Kept, Loaded, Used
from htpsim.results.log import waited
from htpsim.spec.plan import Plan


@dataclass(slots=True)
class _Queue:
    """What of a world the queue of events is in."""

    heap: Any
    st: Any


class Keeping:
    """What the kernel asks a keeper for in one run, and what it must change when told."""

    def __init__(self, store: Store, plan: Plan, loaded: Loaded) -> None:
        self.store = store
        self.plan = plan
        self.loaded = loaded
        self.keeper: Keeper | None = loaded.keeper() if loaded.keeper else None
        self.uses = [list(uses) for uses in loaded.uses]
        self._waited: dict[tuple[int, str], int] = {}
        """how long each client waited for turns at copies, in ns"""

    def ask(self) -> None:
        """Ask for what the loop left for."""
        store, state, keeper = self.store, self.store.state, self.keeper
        assert keeper is not None
        asked, now_ns = int(state.asked), int(state.now_ns)
        if asked in (HOLD_VIT, HOLD_LLM, LEAVE_VIT, LEAVE_LLM):
            thread = store.records("threads")[int(state.asking)]
            place = host_place(int(thread.user), GAP, int(thread.second))
            role = "vit" if asked in (HOLD_VIT, LEAVE_VIT) else "llm"
            call = keeper.hold if asked in (HOLD_VIT, HOLD_LLM) else keeper.let_go
            kept = call(int(thread.user), role, int(state.asking), place, now_ns)
        else:
            kept = keeper.step(int(state.asking), now_ns)
        self._follow(kept)
        if not state.keeps:
            keeper.forget_rows()

    def _follow(self, kept: Kept) -> None:
        """Do what the keeper says."""
        store, state = self.store, self.store.state
        store.open_contexts(kept.contexts)
        contexts, turns = store.records("contexts"), store.records("turns")
        for number in kept.renewed:
            contexts[number].warm = 0
            if number in store.layout.copies:
                at = turns[store.layout.copies[number]]
                at.applied = at.graphs = at.settled = 0
        for at_ns, place, number in kept.steps:
            store.make_room()
            push(_Queue(store.records("heap"), state), at_ns, place, KEEPS, number)
        if kept.use is not None:
            self._bind(kept.goes_on, kept.use)
        state.goes_on = kept.goes_on
        store.make_room()

    def _bind(self, t: int, use: Used) -> None:
        """Let a thread's calls reach the copy that it uses from now on."""
        layout, thread = self.store.layout, self.store.records("threads")[t]
        client = self.plan.clients[int(thread.user)]
        self._note_waits(client.number)
        self.uses[client.number] = [use if old.plan is use.plan else old for old in self.uses[client.number]]
        if use.plan.on_host:
            return
        jobs = self.store.records("jobs")
        firsts = (thread.vit,) if use.plan is client.vit else (thread.prefill, thread.decode)
        groups = (use.plan.graphs,) if use.plan is client.vit else (use.plan.prefill, use.plan.decode)
        for first, graphs in zip(firsts, groups, strict=True):
            for j, graph in enumerate(graphs, start=int(first)):
                for field, value in layout.where(client, use, graph).items():
                    setattr(jobs[j], field, value)
        if use.plan is client.llm:
            known = len(layout.turns)
            for field, value in layout.turn_taker(use).items():
                setattr(thread, field, value)
            self.store.extend("turns", layout.turns[known:])

    def _note_waits(self, number: int) -> None:
        """Note for how long a client waited for turns at the copy that it answers on, and count anew."""
        user, plan = self.store.records("users")[number], self.plan.clients[number].llm
        if user.turns_waited:
            (copy,) = (use.copy for use in self.uses[number] if use.plan is plan)
            place = number, copy
            self._waited[place] = self._waited.get(place, 0) + int(user.turns_waited_ns)
            user.turns_waited = user.turns_waited_ns = 0

    def waits(self) -> Iterator[str]:
        """Tell who waited for turns at a copy, and for how long."""
        for client in self.plan.clients:
            self._note_waits(client.number)
            for (number, copy), waited_ns in self._waited.items():
                if number == client.number:
                    yield waited(client.name, copy, waited_ns)

    def rows(self) -> tuple[list[MemoryEvent], list[Load], list[Copy], dict[str, str]]:
        """Return what the log says of memory, loads and copies, and who did not start or not go on."""
        loaded, keeper = self.loaded, self.keeper
        if keeper is None:
            return loaded.memory, loaded.loads, loaded.copies, loaded.failed
        return keeper.memory, keeper.loads, keeper.copies(), keeper.failed
