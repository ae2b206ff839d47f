"""Which copies are in memory while a run goes on: loaded again for those who need them, unloaded to make room.

A thread *holds* a copy from the first graphExecute that needs it to the last: a ViT for the images of a request, an LLM
from prefill to the last token, and on to the end of its dialog, whose KV cache would be lost. What is held is never
unloaded, nor is what other clients than instances have loaded. Copies that nobody holds may be, least recently used
first, where a load finds no room and ``runtime.make_room`` allows it; their users load them again, and pay the time,
when they next need them. A thread that finds no room even so waits until another lets go of a copy; meanwhile it holds
nothing but the LLM of its dialog. Nobody begins to serve before all have loaded once.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

from simpy.events import Event

from htpsim.errors import CapacityError
from htpsim.memory import Memory, gang_cores
from htpsim.sim.clock import Instant
from htpsim.sim.uses import LoadedCopy, Use
from htpsim.spec import Instance
from htpsim.spec.plan import ClientPlan, ModelPlan, width_of

if TYPE_CHECKING:
    from htpsim.sim.loader import Loader

UNLOADED = "unloaded"
"""Role of the row that tells when a user lost its copy."""

Obtained = Generator[Event, None, tuple[LoadedCopy, str]]


class Residency:
    """Who holds which copy, and who waits for room."""

    def __init__(self, loader: Loader) -> None:
        scenario = loader.scenario
        self.loader = loader
        self.env = loader.env
        self.makes_room = scenario.runtime.make_room == "idle"
        self.changes = self.makes_room or any(i.vit_residency == "request" for i in scenario.instances)
        """whether anything is ever unloaded"""
        self.clients = {client.name: client for client in loader.runtime.plan.clients}
        self.waiting: list[tuple[Instant, int]] = []
        self.to_load = len(self.clients)
        """clients that have not loaded yet"""
        self.loaded: list[tuple[Instant, int]] = []
        """threads that wait for them"""

    def all_loaded(self, place: int) -> Generator[Event, None, None]:
        """Wait until every client has loaded, or failed to."""
        self.to_load -= 1
        if not self.changes:
            return
        if self.to_load == 0:
            for event, where in self.loaded:
                self.env.happen(event, 0, where)
            return
        event = Instant(self.env)
        self.loaded.append((event, place))
        yield event

    def obtain(self, client: ClientPlan, plan: ModelPlan, place: int) -> Obtained:
        """Find or load a model and become its user; make or await room where that is allowed.

        Raises
        ------
        CapacityError
            When there is no room, and nobody whose leaving could give any.
        """
        while True:
            try:
                copy, role = yield from self.loader.find_or_load(client, plan)
                self.loader.attach(client, copy, plan.model.kv_bytes if plan is client.llm else 0)
            except CapacityError:
                if not self.changes or not self._fits_alone(plan, client):
                    raise
                if not (self.makes_room and self._unload_one()):
                    if not self._somebody_is_busy(place):
                        raise
                    event = Instant(self.env)
                    self.waiting.append((event, place))
                    yield event
            else:
                return copy, role

    def hold(self, client: ClientPlan, use: Use, place: int) -> Generator[Event, None, None]:
        """Keep the copy in memory until `let_go`; load it first where it is not."""
        if not self.changes:
            return
        if client.name not in use.copy.users:
            begun_ns = self.env.now
            try:
                copy, role = yield from self.obtain(client, use.plan, place)
            except CapacityError as error:
                self.loader.note(client, use.plan, "failed", None, begun_ns, str(error))
                raise
            self.loader.note(client, use.plan, role, copy, begun_ns)
            use.copy = copy
            self.loader.runtime.add_use(use)
        use.copy.holders.append(place)

    def let_go(self, client: ClientPlan, use: Use, place: int) -> None:
        """Let the copy be unloaded; the ViT of an instance that keeps none between requests is, at once."""
        if not self.changes:
            return
        copy = use.copy
        copy.holders.remove(place)
        copy.used_ns = self.env.now
        if self.is_passing(client, use.plan):
            self.drop(client, copy)
        self.wake()

    def forget(self, place: int) -> None:
        """Let a thread that has failed hold nothing any more."""
        for copy in self.loader.copies:
            copy.holders = [holder for holder in copy.holders if holder != place]
        self.wake()

    def is_passing(self, client: ClientPlan, plan: ModelPlan) -> bool:
        """Tell whether a client keeps a model for the length of a request only."""
        return isinstance(client.spec, Instance) and client.spec.vit_residency == "request" and plan is client.vit

    def drop(self, client: ClientPlan, copy: LoadedCopy) -> None:
        """Let a user go; with the last one the copy is unloaded."""
        plan = next(plan for plan in client.models if plan.model.name == copy.plan.model.name)
        self.loader.detach(client, copy)
        self.loader.note(client, plan, UNLOADED, copy, self.env.now)

    def wake(self) -> None:
        """Let those who wait for room try again: something was let go, or was loaded and may be unloaded."""
        for event, place in self.waiting:
            self.env.happen(event, 0, place)
        self.waiting = []

    def _somebody_is_busy(self, place: int) -> bool:
        """Tell whether a thread that does not wait for room itself, as this one does, uses a copy or loads one."""
        stuck = {place, *(waiting for _, waiting in self.waiting)}
        copies = self.loader.copies
        return bool(self.loader.reading) or any(set(copy.holders) - stuck or self._is_awaited(copy) for copy in copies)

    def _is_awaited(self, copy: LoadedCopy) -> bool:
        """Tell whether somebody whose load this was is about to find it, in this instant."""
        key, registry = copy.key, self.loader.registry
        if key is None or not copy.users:
            return False
        users = [user for user in registry.users(key) if user not in copy.users]
        return any(self.loader.found.get((key, registry.copy_number(key, user))) is copy for user in users)

    def _unload_one(self) -> bool:
        """Unload the copy that has been out of use for longest; False when all are in use."""
        unused = (copy for copy in self.loader.copies if copy.users and not copy.holders)
        idle = [copy for copy in unused if copy.plan.model.role != "other" and not self._is_awaited(copy)]
        if not idle:
            return False
        copy = min(idle, key=lambda copy: (copy.used_ns, self.loader.copies.index(copy)))
        for user in list(copy.users):
            self.drop(self.clients[user], copy)
        return True

    def _fits_alone(self, plan: ModelPlan, client: ClientPlan) -> bool:
        """Tell whether a model would fit if nothing else were loaded; else no unloading helps."""
        device = self.loader.device
        cores = () if plan.on_host else gang_cores(0, width_of(plan.model, device), device)
        try:
            Memory(device).load("alone", plan.model, client.process, cores, 0)
        except CapacityError:
            return False
        return True
