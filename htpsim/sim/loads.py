"""The loading of a run by itself, for an engine that has no loader of its own.

Loading does not depend on what executes meanwhile, so it can be simulated alone. What matters to a run is not only when
a client has loaded, but where in that instant it begins; so every step is kept with the steps that it brought about.
What is loaded and unloaded after that does depend on what executes: for that there is a `Keeper`, the same loader whose
steps are done when the engine says that they are due.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

from simpy.events import Event

from htpsim.errors import CapacityError
from htpsim.results.columns import Copy, Load, MemoryEvent
from htpsim.results.loaded import Kept, Loaded, LoadStep, Used, Where
from htpsim.sim.clock import Clock
from htpsim.sim.loader import Loader
from htpsim.sim.runtime import Runtime
from htpsim.sim.uses import Use
from htpsim.spec.plan import ClientPlan, Plan


class _Recorder(Clock):
    """A clock that keeps what was scheduled, by what; once the loading is over, for somebody else to let it happen."""

    def __init__(self, clients: int) -> None:
        super().__init__()
        self.steps = [LoadStep(0, 0) for _ in range(clients)]
        self.present = 0
        self.kept: Kept | None = None
        """where steps are noted from then on"""
        self.pending: dict[int, Event] = {}
        self._number = 0

    def happen(self, event: Event, delay_ns: int, where: int) -> None:
        """Let `event` happen after a delay, at its place in that instant, as a step."""
        if self.kept is not None:
            self._number += 1
            self.pending[self._number] = event
            self.kept.steps.append((self.now + delay_ns, where, self._number))
            return
        number = len(self.steps)
        self.steps.append(LoadStep(self.now + delay_ns, where))
        self.steps[self.present].brings.append(number)
        assert event.callbacks is not None
        event.callbacks.insert(0, lambda _: self.begin(number))
        super().happen(event, delay_ns, where)

    def begin(self, number: int) -> None:
        """Note that a step is under way."""
        self.present = number

    def turn_to(self, now_ns: int) -> Kept:
        """Go to an instant; return where its steps are noted."""
        self._now = now_ns
        self.kept = Kept()
        return self.kept

    def let_happen(self, number: int) -> None:
        """Let what was scheduled happen now."""
        event = self.pending.pop(number)
        callbacks, event.callbacks = event.callbacks, None  # type: ignore[assignment]
        for callback in callbacks or ():
            callback(event)


@dataclass(slots=True)
class _Device:
    """Counts the contexts, as the device does."""

    contexts: int = 0
    renewed: list[int] = field(default_factory=list)

    def add_context(self) -> int:
        """Return the position of a newly loaded context."""
        self.contexts += 1
        return self.contexts - 1

    def renew_context(self, number: int) -> int:
        """Return the position of a context that is loaded again."""
        self.renewed.append(number)
        return number


@dataclass(slots=True)
class _Runtime:
    """What the loader needs of a runtime."""

    plan: Plan
    machine: _Device = field(default_factory=_Device)
    latest: Use | None = None

    def add_use(self, use: Use) -> None:
        """Note it: who executes fills in the calls."""
        self.latest = use


class _Alone:
    """A loader by itself, and what it came to."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.env = _Recorder(len(plan.clients))
        self.runtime = _Runtime(plan)
        self.loader = Loader(self.env, cast("Runtime", self.runtime))
        self.uses: list[list[Use]] = [[] for _ in plan.clients]
        self.used: list[list[Used]] = [[] for _ in plan.clients]
        self.failures: dict[int, str] = {}
        for client in plan.clients:
            self.env.process(self._load(client))
        self.env.run()
        self.runtime.latest = None
        self.runtime.machine.renewed = []

    def _load(self, client: ClientPlan) -> Generator[Event, Any, None]:
        env = self.env
        env.begin(client.number)
        try:
            self.uses[client.number] = yield from self.loader.obtain_all(client)
            self.used[client.number] = [_used(use) for use in self.uses[client.number]]
        except CapacityError as error:
            self.failures[client.number] = str(error)
        env.steps[env.present].ends = client.number

    @property
    def failed(self) -> dict[str, str]:
        """Clients that did not start, or not go on, with the reason."""
        return {self.plan.clients[number].name: self.failures[number] for number in sorted(self.failures)}

    @property
    def memory(self) -> list[MemoryEvent]:
        """Every change of what is held."""
        return [MemoryEvent(*event) for event in self.loader.memory.events]

    @property
    def loads(self) -> list[Load]:
        """The rows of the loads."""
        return self.loader.log


class AloneKeeper(_Alone):
    """The loader of a run whose copies come and go; see `htpsim.results.loaded.Keeper`."""

    def hold(self, client: int, role: str, thread: int, place: int, now_ns: int) -> Kept:
        """Keep the copy of a client's model in memory, loaded again if it is not there, until it is let go of."""
        kept = self.env.turn_to(now_ns)
        plan = self.plan.clients[client]
        residency = self.loader.residency
        self._go_on(residency.hold(plan, self._use(client, role), place), client, thread, place)
        return self._told(kept)

    def let_go(self, client: int, role: str, thread: int, place: int, now_ns: int) -> Kept:
        """Let a copy be unloaded."""
        kept = self.env.turn_to(now_ns)
        self.loader.residency.let_go(self.plan.clients[client], self._use(client, role), place)
        kept.goes_on = thread
        return self._told(kept)

    def step(self, number: int, now_ns: int) -> Kept:
        """Do a step of its own that is due."""
        kept = self.env.turn_to(now_ns)
        self.env.let_happen(number)
        return self._told(kept)

    def copies(self) -> list[Copy]:
        """Return a row for every context ever loaded."""
        return self.loader.copy_rows()

    def forget_rows(self) -> None:
        """Forget the rows so far, where nobody will want them."""
        self.loader.log.clear()
        self.loader.memory.events.clear()

    def _use(self, client: int, role: str) -> Use:
        plan = self.plan.clients[client]
        wanted = plan.vit if role == "vit" else plan.llm
        return next(use for use in self.uses[client] if use.plan is wanted)

    def _go_on(self, steps: Generator[Event, None, None], client: int, thread: int, place: int) -> None:
        """Go on with a thread that is to hold something, until it waits again, holds it, or finds no room."""
        assert self.env.kept is not None
        try:
            event = next(steps)
        except StopIteration:
            self.env.kept.goes_on = thread
        except CapacityError as error:
            self.failures.setdefault(client, str(error))
            self.loader.residency.forget(place)
        else:
            assert event.callbacks is not None
            event.callbacks.append(lambda _: self._go_on(steps, client, thread, place))

    def _told(self, kept: Kept) -> Kept:
        device, latest = self.runtime.machine, self.runtime.latest
        kept.contexts, kept.renewed = device.contexts, device.renewed
        device.renewed, self.runtime.latest = [], None
        kept.use = None if latest is None else _used(latest)
        return kept


def load_alone(plan: Plan) -> Loaded:
    """Simulate the loading of a run and nothing else.

    Examples
    --------
    >>> from htpsim.spec import Scenario
    >>> from htpsim.spec.plan import make_plan
    >>> load_alone(make_plan(Scenario())).ready_ns
    0
    """
    alone = _Alone(plan)
    return Loaded(
        ready_ns=max((step.at_ns for step in alone.env.steps if step.ends >= 0), default=0),
        steps=alone.env.steps,
        uses=alone.used,
        contexts=alone.runtime.machine.contexts,
        memory=alone.memory,
        loads=alone.loads,
        copies=alone.loader.copy_rows(),
        failed=alone.failed,
        keeper=partial(AloneKeeper, plan) if alone.loader.residency.changes else None,
    )


def _used(use: Use) -> Used:
    contexts = tuple(Where(b.copy, b.core, b.mask, b.width, b.pd) for b in use.copy.bound)
    return Used(use.plan, contexts, use.account, use.weight, use.copy.name)
