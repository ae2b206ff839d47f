"""The loading of a run by itself, for an engine that has no loader of its own.

Loading does not depend on what executes meanwhile, so it can be simulated alone. What matters to a run is not only when
a client has loaded, but where in that instant it begins; so every step is kept with the steps that it brought about.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, cast

from simpy.events import Event

from htpsim.errors import CapacityError
from htpsim.results.columns import MemoryEvent
from htpsim.results.loaded import Loaded, LoadStep, Used, Where
from htpsim.sim.clock import Clock
from htpsim.sim.loader import Loader
from htpsim.sim.runtime import Runtime
from htpsim.sim.uses import Use
from htpsim.spec.plan import ClientPlan, Plan


class _Recorder(Clock):
    """A clock that keeps what was scheduled, by what."""

    def __init__(self, clients: int) -> None:
        super().__init__()
        self.steps = [LoadStep(0, 0) for _ in range(clients)]
        self.present = 0

    def happen(self, event: Event, delay_ns: int, where: int) -> None:
        """Let `event` happen after a delay, at its place in that instant, as a step."""
        number = len(self.steps)
        self.steps.append(LoadStep(self.now + delay_ns, where))
        self.steps[self.present].brings.append(number)
        assert event.callbacks is not None
        event.callbacks.insert(0, lambda _: self.begin(number))
        super().happen(event, delay_ns, where)

    def begin(self, number: int) -> None:
        """Note that a step is under way."""
        self.present = number


@dataclass(slots=True)
class _Device:
    """Counts the contexts, as the device does."""

    contexts: int = 0

    def add_context(self) -> int:
        """Return the position of a newly loaded context."""
        self.contexts += 1
        return self.contexts - 1


@dataclass(slots=True)
class _Runtime:
    """What the loader needs of a runtime."""

    plan: Plan
    machine: _Device = field(default_factory=_Device)

    def add_use(self, use: Use) -> None:
        """Do nothing: who executes fills in the calls."""


def load_alone(plan: Plan) -> Loaded:
    """Simulate the loading of a run and nothing else.

    Examples
    --------
    >>> from htpsim.spec import Scenario
    >>> from htpsim.spec.plan import make_plan
    >>> load_alone(make_plan(Scenario())).ready_ns
    0
    """
    env = _Recorder(len(plan.clients))
    runtime = _Runtime(plan)
    loader = Loader(env, cast("Runtime", runtime))
    uses: list[list[Used]] = [[] for _ in plan.clients]
    failed: dict[int, str] = {}

    def thread(client: ClientPlan) -> Generator[Event, Any, None]:
        env.begin(client.number)
        try:
            obtained = yield from loader.obtain_all(client)
            uses[client.number] = [_used(use) for use in obtained]
        except CapacityError as error:
            failed[client.number] = str(error)
        env.steps[env.present].ends = client.number

    for client in plan.clients:
        env.process(thread(client))
    env.run()
    return Loaded(
        ready_ns=max((step.at_ns for step in env.steps if step.ends >= 0), default=0),
        steps=env.steps,
        uses=uses,
        contexts=runtime.machine.contexts,
        memory=[MemoryEvent(*event) for event in loader.memory.events],
        loads=loader.log,
        copies=loader.copy_rows(),
        failed={plan.clients[number].name: failed[number] for number in sorted(failed)},
    )


def _used(use: Use) -> Used:
    contexts = tuple(Where(b.copy, b.core, b.mask, b.width, b.pd) for b in use.copy.bound)
    return Used(use.plan, contexts, use.account, use.weight, use.copy.name)
