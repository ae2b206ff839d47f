"""Loading in SimPy: each client obtains its models on its own thread, through the registry or for itself."""

from __future__ import annotations

from collections.abc import Generator

from simpy.events import Event

from htpsim.errors import CapacityError
from htpsim.memory import (
    LoadedContext,
    Loading,
    Memory,
    Outcome,
    Registry,
    Turns,
    copy_name,
    copy_name_of_own,
    gang_cores,
    registry_key,
)  # fmt: skip
from htpsim.memory import place as place_on_core
from htpsim.memory.placement import Key
from htpsim.results.columns import Copy, Load
from htpsim.sim.clock import DEVICE, GAP, Clock, Instant, host_place, place
from htpsim.sim.residency import Residency
from htpsim.sim.runtime import Runtime
from htpsim.sim.uses import Bound, LoadedCopy, Use
from htpsim.spec.plan import NO_ACCOUNT, ClientPlan, ModelPlan, width_of

NO_CORE = -1


class Loader:
    """Memory, registry and load bandwidth of one run."""

    def __init__(self, env: Clock, runtime: Runtime, *, check: bool = False) -> None:
        self.env = env
        self.runtime = runtime
        self.check = check
        if check:
            runtime.begins, runtime.ends = self.begins, self.ends
        scenario = self.scenario = runtime.plan.scenario
        self.device = scenario.device
        self.memory = Memory(scenario.device)
        self.registry = Registry(scenario.registry.waits_for_load)
        self.loading = Loading(scenario.device.load_bandwidth)
        self.copies: list[LoadedCopy] = []
        self.found: dict[tuple[Key, int], LoadedCopy] = {}
        """copies in the registry, by key and the registry's number"""
        self.held: dict[str, list[LoadedCopy]] = {}
        self.log: list[Load] = []
        self.waiting: dict[tuple[Key, str], Instant] = {}
        self.reading: dict[int, Instant] = {}
        self.pds: dict[tuple[int, int], int] = {}
        self._due_ns: int | None = None
        self.residency = Residency(self)

    def obtain_all(self, client: ClientPlan) -> Generator[Event, None, list[Use]]:
        """Obtain every model of `client`, in order; what it held is freed when one does not fit.

        Raises
        ------
        CapacityError
            When a model does not fit; the message names the limit.
        """
        if client.failure:
            raise CapacityError(client.failure)
        uses = []
        self.held[client.name] = []
        for plan in client.models:
            begun_ns: int = self.env.now
            try:
                copy, role = yield from self.residency.obtain(client, plan, host_place(client.number, GAP, 0))
            except CapacityError as error:
                self.note(client, plan, "failed", None, begun_ns, str(error))
                self.give_back(client)
                raise
            self.note(client, plan, role, copy, begun_ns)
            uses.append(self._use(client, plan, copy))
            if self.residency.is_passing(client, plan):
                self.residency.drop(client, copy)
                self.residency.wake()
        return uses

    def note(
        self, client: ClientPlan, plan: ModelPlan, role: str, copy: LoadedCopy | None, begun_ns: int, message: str = ""
    ) -> None:
        """Write the row of a load."""
        name, core = (copy.name, copy.core) if copy else ("", NO_CORE)
        self.log.append(Load(client.number, plan.model.name, role, name, core, begun_ns, self.env.now, message))
        self._validate()

    def find_or_load(self, client: ClientPlan, plan: ModelPlan) -> Generator[Event, None, tuple[LoadedCopy, str]]:
        """Find or load one model."""
        core = NO_CORE
        if not plan.on_host:
            core = place_on_core(plan.model.placement, client.number, self.device, self.memory.core_reserved_bytes())
        if not plan.via_registry:
            copy = yield from self._load(client, plan, copy_name_of_own(plan.model, client.name), None, core)
            return copy, "owner"
        adapter = plan.adapter if self.scenario.registry.adapters == "keys" else ""
        key = registry_key(plan.model, client.process, core, plan.copies, self.device, adapter)
        outcome = self.registry.get_or_create(key, client.name)
        number = self.registry.copy_number(key, client.name)
        if outcome is Outcome.LOAD:
            try:
                copy = yield from self._load(client, plan, copy_name(key, number), key, core)
            except CapacityError as error:
                self._wake(key, self.registry.failed(key, str(error), client.name))
                raise
            self.found[key, number] = copy
            self._wake(key, self.registry.loaded(key, client.name))
            return copy, "owner"
        if outcome is Outcome.WAIT:
            self.waiting[key, client.name] = Instant(self.env)
            yield self.waiting[key, client.name]
            failure = self.registry.failure(key, client.name)
            if failure is not None:
                raise CapacityError(failure)
        return self.found[key, number], "borrower"

    def _wake(self, key: Key, users: tuple[str, ...]) -> None:
        """Let the threads that waited for a load go on."""
        numbers = {c.name: c.number for c in self.runtime.plan.clients}
        for user in users:
            self.env.happen(self.waiting.pop((key, user)), 0, host_place(numbers[user], GAP, 0))

    def _load(
        self, client: ClientPlan, plan: ModelPlan, name: str, key: Key | None, core: int
    ) -> Generator[Event, None, LoadedCopy]:
        """Reserve what a copy takes and read its binaries."""
        copy = next((known for known in self.copies if known.name == name), None)
        core = copy.core if copy else core  # one that is loaded again goes back to where it was
        width = width_of(plan.model, self.device)
        cores = () if core == NO_CORE else gang_cores(core, width, self.device)
        contexts = self.memory.load(name, plan.model, client.process, cores, self.env.now)
        nbytes = sum(c.binary_bytes for c in plan.model.contexts)
        load = 2 * client.number + (plan is client.llm)  # two threads of an instance may load at once
        ended = self.reading[load] = Instant(self.env)
        self.loading.start(load, nbytes, self.env.now)
        self._set_timer()
        self._validate()
        yield ended
        self.memory.loaded(name, self.env.now)
        if copy is None:
            copy = LoadedCopy(name, key, core, client.process, plan, [])
            self.copies.append(copy)
        if plan.switches:
            copy.turns = Turns(switches_graphs=plan.model.graph_switch_ns > 0)
        copy.used_ns = self.env.now
        self._bind(copy, contexts, cores, width)
        self.residency.wake()
        return copy

    def _bind(self, copy: LoadedCopy, contexts: tuple[LoadedContext, ...], cores: tuple[int, ...], width: int) -> None:
        """Give the contexts of a copy their FIFOs on the device: new ones, or those they had before an unload."""
        machine, before = self.runtime.machine, copy.bound
        copy.bound = []
        mask = sum(1 << c for c in cores)
        for n, loaded in enumerate(contexts if cores else ()):
            pd = self.pds.setdefault((loaded.process, loaded.pds[0]), len(self.pds))
            number = machine.renew_context(before[n].copy) if before else machine.add_context()
            copy.bound.append(Bound(number, cores[0], mask, width, pd))

    def _set_timer(self) -> None:
        """Wake up when the next load ends."""
        due_ns = self.loading.next_end_ns(self.env.now)
        if due_ns is not None and due_ns != self._due_ns:
            self._due_ns = due_ns
            self.env.at(due_ns - self.env.now, place(DEVICE, self.device.cores), self._loads_ended)

    def _loads_ended(self, event: Event) -> None:
        """Let the threads whose loads have ended go on."""
        if self._due_ns != self.env.now:
            return
        self._due_ns = None
        for number in self.loading.finish(self.env.now):
            self.env.happen(self.reading.pop(number), 0, host_place(number // 2, GAP, number % 2))
        self._set_timer()

    def attach(self, client: ClientPlan, copy: LoadedCopy, kv_bytes: int) -> None:
        """Make the client a user of the copy, with its own I/O and KV; a copy nobody uses is unloaded."""
        try:
            self.memory.attach(client.name, copy.name, kv_bytes, self.env.now)
        except CapacityError:
            self._leave(client, copy)
            raise
        copy.users.append(client.name)
        self.held[client.name].append(copy)
        self.residency.wake()

    def _leave(self, client: ClientPlan, copy: LoadedCopy) -> None:
        """Let the copy go; the last to leave unloads it."""
        if copy.key is None or self.registry.release(copy.key, client.name):
            self.memory.unload(copy.name, self.env.now)

    def detach(self, client: ClientPlan, copy: LoadedCopy) -> None:
        """Make the client a user no more, and give back its own I/O and KV."""
        self.held[client.name].remove(copy)
        self.memory.detach(client.name, copy.name, self.env.now)
        copy.users.remove(client.name)
        self._leave(client, copy)

    def give_back(self, client: ClientPlan) -> None:
        """Free what a client that will not start, or not go on, had obtained."""
        for copy in reversed(self.held[client.name]):
            self.detach(client, copy)
        self.residency.wake()
        self._validate()

    def begins(self, use: Use) -> None:
        """Let memory and registry know that a graph executes, so that they refuse to free what it needs."""
        self.memory.begin_execute(use.copy.name, use.name)
        if use.copy.key is not None:
            self.registry.begin_execute(use.copy.key, use.name)

    def ends(self, use: Use) -> None:
        """Let them know that it returned."""
        self.memory.end_execute(use.copy.name, use.name)
        if use.copy.key is not None:
            self.registry.end_execute(use.copy.key, use.name)

    def _validate(self) -> None:
        if self.check:
            self.memory.validate()
            self.registry.validate()
            self.loading.validate()

    def _use(self, client: ClientPlan, plan: ModelPlan, copy: LoadedCopy) -> Use:
        """Return how the client's calls reach the copy."""
        index, weight = NO_ACCOUNT, 0
        if plan.account != NO_ACCOUNT:
            account = self.runtime.plan.accounts[plan.account]
            index, weight = account.index, account.weight
        use = Use(client.number, client.name, client.process, plan, copy, index, weight)
        self.runtime.add_use(use)
        return use

    def copy_rows(self) -> list[Copy]:
        """Return a row for every context ever loaded on the device, in the order of its contexts."""
        rows: dict[int, Copy] = {}
        for copy in self.copies:
            for context, bound in zip(copy.plan.model.contexts, copy.bound, strict=not copy.plan.on_host):
                users = len(copy.users)
                reserved = context.reserved_bytes_of(users)
                rows[bound.copy] = Copy(
                    f"{copy.name}/{context.name}", copy.plan.model.name, context.name, copy.plan.model.role,
                    copy.process, copy.core, reserved, users,
                )  # fmt: skip
        return [rows[n] for n in sorted(rows)]
