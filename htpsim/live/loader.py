"""Loading for real: each instance obtains its models on its own thread, through the registry or for itself.

Memory and registry are the state machines of ``memory`` under one lock; what a copy holds is a piece of work, such as a
session, for every graph. Sessions are opened outside the lock, so that others can find, or wait for, what is loading.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from htpsim.errors import CapacityError
from htpsim.live.faults import FaultPlan
from htpsim.live.stopping import Clock, Stop
from htpsim.live.work import Bench, Stage, Work, stages_of
from htpsim.memory import Memory, Outcome, Registry, Role, copy_name, copy_name_of_own, registry_key
from htpsim.memory import place as place_on_core
from htpsim.memory.placement import Key
from htpsim.results.columns import Copy, Load, MemoryEvent
from htpsim.spec.plan import ClientPlan, ModelPlan, Plan

NO_CORE = -1


@dataclass(slots=True)
class LiveCopy:
    """A loaded copy of a model."""

    name: str
    key: Key | None
    """what the registry files it under; None for one that is its loader's own"""
    core: int
    process: int
    plan: ModelPlan
    contexts: list[int] = field(default_factory=list)
    """numbers of its contexts: the log's"""
    works: dict[tuple[Stage, int], Work] = field(default_factory=dict)
    """what its graphs really do, by stage and position in it"""
    users: list[str] = field(default_factory=list)


class LiveLoader:
    """Memory, registry and sessions of one run."""

    def __init__(self, plan: Plan, bench: Bench, clock: Clock, stop: Stop, faults: FaultPlan) -> None:
        self.plan = plan
        self.bench = bench
        self.clock = clock
        self.stop = stop
        self.faults = faults
        self.device = plan.scenario.device
        self.memory = Memory(self.device)
        self.registry = Registry(plan.scenario.registry.waits_for_load)
        self.lock = threading.Lock()
        self.changed = threading.Condition(self.lock)
        """a load has ended"""
        self.copies: list[LiveCopy] = []
        self.found: dict[Key, LiveCopy] = {}
        self.held: dict[str, list[LiveCopy]] = {}
        self.log: list[Load] = []
        self.opened_bytes = 0
        """weights of all sessions opened"""
        self._contexts = 0
        stop.on_raise(self._wake)

    def obtain_all(self, client: ClientPlan) -> list[LiveCopy]:
        """Obtain every model of a client, in order; what it held is freed when one fails.

        Raises
        ------
        CapacityError
            When a model does not fit or cannot be loaded.
        """
        if client.failure:
            raise CapacityError(client.failure)
        copies = []
        with self.lock:
            self.held[client.name] = []
        for plan in client.models:
            begun_ns = self.clock()
            try:
                copy, role = self._obtain(client, plan)
            except CapacityError as error:
                with self.lock:
                    self._note(client, plan, "failed", None, begun_ns, str(error))
                self.give_back(client)
                raise
            with self.lock:
                self._note(client, plan, role, copy, begun_ns)
            copies.append(copy)
        return copies

    def _note(
        self, client: ClientPlan, plan: ModelPlan, role: str, copy: LiveCopy | None, begun_ns: int, message: str = ""
    ) -> None:
        name, core = (copy.name, copy.core) if copy else ("", NO_CORE)
        self.log.append(Load(client.number, plan.model.name, role, name, core, begun_ns, self.clock(), message))

    def _obtain(self, client: ClientPlan, plan: ModelPlan) -> tuple[LiveCopy, str]:
        """Find or load one model, and become a user of it."""
        copy, role = self._find_or_load(client, plan)
        with self.lock:
            try:
                self.memory.attach(client.name, copy.name, plan.model.kv_bytes, self.clock())
            except CapacityError:
                self._leave(client, copy)
                raise
            copy.users.append(client.name)
            self.held[client.name].append(copy)
        return copy, role

    def _find_or_load(self, client: ClientPlan, plan: ModelPlan) -> tuple[LiveCopy, str]:
        with self.lock:
            core = place_on_core(plan.model.placement, client.number, self.device, self.memory.core_reserved_bytes())
            if not plan.via_registry:
                copy = self._reserve(client, plan, copy_name_of_own(plan.model, client.name), None, core)
                outcome, key = Outcome.LOAD, None
            else:
                key = registry_key(plan.model, client.process, core, plan.copies, self.device)
                outcome = self.registry.get_or_create(key, client.name)
                if outcome is Outcome.LOAD:
                    copy = self._reserve_or_tell(client, plan, key, core)
        if outcome is Outcome.LOAD:
            self._open(client, copy)
            return copy, "owner"
        assert key is not None
        with self.lock:
            while outcome is Outcome.WAIT and self.registry.role(key, client.name) is Role.WAITER:
                self.stop.check()
                self.changed.wait()
            failure = self.registry.failure(key, client.name)
            if failure is not None:
                raise CapacityError(failure)
            return self.found[key], "borrower"

    def _reserve(self, client: ClientPlan, plan: ModelPlan, name: str, key: Key | None, core: int) -> LiveCopy:
        """Take the bytes of a copy."""
        self.memory.load(name, plan.model, client.process, (core,), self.clock())
        return LiveCopy(name, key, core, client.process, plan)

    def _reserve_or_tell(self, client: ClientPlan, plan: ModelPlan, key: Key, core: int) -> LiveCopy:
        try:
            return self._reserve(client, plan, copy_name(key), key, core)
        except CapacityError as error:
            self.registry.failed(key, str(error), client.name)
            self.changed.notify_all()
            raise

    def _open(self, client: ClientPlan, copy: LiveCopy) -> None:
        """Open the sessions of a copy; those who wait for it share it then, or are told why it failed."""
        try:
            self.faults.load(client.name, copy.plan.model.name)
            for stage, graphs in stages_of(copy.plan):
                for position, graph in enumerate(graphs):
                    copy.works[stage, position] = self.bench.open(copy.plan.model, graph, stage)
        except Exception as error:  # whatever a session's loader raises; the instance has failed, the others go on
            message = f"model '{copy.plan.model.name}' of '{client.name}' cannot be loaded: {error}"
            with self.lock:
                self._close(copy)
                self.memory.unload(copy.name, self.clock())
                if copy.key is not None:
                    self.registry.failed(copy.key, message, client.name)
                self.changed.notify_all()
            raise CapacityError(message) from error
        with self.lock:
            self.opened_bytes += sum(work.weights_bytes for work in copy.works.values())
            self.memory.loaded(copy.name, self.clock())
            self._number(copy)
            if copy.key is not None:
                self.found[copy.key] = copy
                self.registry.loaded(copy.key, client.name)
            self.changed.notify_all()

    def _number(self, copy: LiveCopy) -> None:
        """Give numbers to the contexts of a copy; one that is loaded again takes the place that it had."""
        before = next((n for n, known in enumerate(self.copies) if known.name == copy.name), None)
        if before is not None:
            copy.contexts = self.copies[before].contexts
            self.copies[before] = copy
            return
        copy.contexts = [self._contexts + n for n in range(len(copy.plan.model.contexts))]
        self._contexts += len(copy.contexts)
        self.copies.append(copy)

    def give_back(self, client: ClientPlan, *, after_loading: bool = False) -> None:
        """Free what a client had obtained; a copy that nobody uses any more is unloaded.

        A client that had loaded everything is noted to have let go of it; one that had not has failed.
        """
        with self.lock:
            held = self.held.get(client.name, [])
            while held:
                copy = held[-1]
                self.memory.detach(client.name, copy.name, self.clock())
                held.pop()
                copy.users.remove(client.name)
                self._leave(client, copy)
                if after_loading:
                    self._note(client, copy.plan, "unloaded", copy, self.clock())

    def _leave(self, client: ClientPlan, copy: LiveCopy) -> None:
        if copy.key is None or self.registry.release(copy.key, client.name):
            self.memory.unload(copy.name, self.clock())
            self._close(copy)

    @staticmethod
    def _close(copy: LiveCopy) -> None:
        for work in copy.works.values():
            work.close()
        copy.works.clear()

    def close(self) -> None:
        """Close every session: the run is over."""
        with self.lock:
            for copy in self.copies:
                self._close(copy)

    def begins(self, client: str, copy: LiveCopy) -> None:
        """Let memory and registry know that a graph executes, so that they refuse to free what it needs."""
        with self.lock:
            self.memory.begin_execute(copy.name, client)
            if copy.key is not None:
                self.registry.begin_execute(copy.key, client)

    def ends(self, client: str, copy: LiveCopy) -> None:
        """Let them know that it returned."""
        with self.lock:
            self.memory.end_execute(copy.name, client)
            if copy.key is not None:
                self.registry.end_execute(copy.key, client)

    def validate(self) -> None:
        """Raise InvariantError unless memory and registry agree with themselves."""
        with self.lock:
            self.memory.validate()
            self.registry.validate()

    def memory_events(self) -> list[MemoryEvent]:
        """Return every change of memory so far."""
        with self.lock:
            return [MemoryEvent(*event) for event in self.memory.events]

    def copy_rows(self) -> list[Copy]:
        """Return a row for every context that was loaded, in the order of their numbers."""
        rows = {}
        for copy in self.copies:
            for context, number in zip(copy.plan.model.contexts, copy.contexts, strict=True):
                users = len(copy.users)
                reserved = context.reserved_bytes_of(users)
                rows[number] = Copy(
                    f"{copy.name}/{context.name}", copy.plan.model.name, context.name, copy.plan.model.role,
                    copy.process, copy.core, reserved, users,
                )  # fmt: skip
        return [rows[number] for number in sorted(rows)]

    def _wake(self) -> None:
        with self.lock:
            self.changed.notify_all()
