"""The reference engine: one run of a scenario, as a readable SimPy model."""

from __future__ import annotations

from collections.abc import Callable

import simpy
from simpy.events import Event

from htpsim.results.columns import MemoryEvent
from htpsim.results.log import RunLog
from htpsim.sim.clock import LAST, Clock, Instant
from htpsim.sim.deadlock import find_deadlock
from htpsim.sim.draws import Draws
from htpsim.sim.loader import Loader
from htpsim.sim.other import OtherThreads
from htpsim.sim.requests import RequestState
from htpsim.sim.runtime import Runtime
from htpsim.sim.vlm import VlmThread
from htpsim.spec import Instance, Scenario
from htpsim.spec.plan import make_plan

Progress = Callable[[float], None]
_STEPS = 100


class Simulation:
    """One replication of a scenario, ready to run; the SimPy environment is `env`.

    Add a SimPy process of your own to ``env`` before ``run`` to put something beside the instances.

    Examples
    --------
    >>> Simulation(Scenario()).run().executes
    []
    """

    def __init__(self, scenario: Scenario, replication: int = 0, *, check: bool = False) -> None:
        self.scenario = scenario
        self.replication = replication
        self.env = Clock()
        self.plan = make_plan(scenario)
        self.runtime = Runtime(self.env, self.plan, check=check)
        self.loader = Loader(self.env, self.runtime, check=check)
        self.threads: list[VlmThread | OtherThreads] = []
        for client in self.plan.clients:
            draws = Draws(scenario.run.seed, replication, client.name)
            kind = VlmThread if isinstance(client.spec, Instance) else OtherThreads
            self.threads.append(kind(self.env, self.runtime, self.loader, client, draws))

    def run(self, progress: Progress | None = None) -> RunLog:
        """Simulate loading, warm-up and the measured time, and return the log.

        `progress` is called now and then with the share of the measured time that has passed, 0 to 1.
        """
        env, run = self.env, self.scenario.run
        env.run(until=simpy.AllOf(env, [thread.ready for thread in self.threads]))
        ready_ns: int = env.now
        self.runtime.weigh([use for thread in self.threads for use in thread.uses])
        start_ns = ready_ns + run.warmup_ns
        end_ns = start_ns + run.duration_ns
        steps = _STEPS if progress else 1
        for step in range(1, steps + 1):
            stop = self._stop_at(ready_ns + (end_ns - ready_ns) * step // steps)
            env.run(until=stop)
            if progress:
                progress(step / steps)
        find_deadlock(self.runtime, run.duration_ns, nothing_left=env.nothing_left(stop))
        return self._log(ready_ns, start_ns, end_ns)

    def _stop_at(self, at_ns: int) -> Event:
        """Return an event after everything else that happens at `at_ns`."""
        event = Instant(self.env)
        self.env.happen(event, at_ns - self.env.now, LAST)
        return event

    def _log(self, ready_ns: int, start_ns: int, end_ns: int) -> RunLog:
        """Collect what the run leaves behind."""
        runtime, loader = self.runtime, self.loader
        runtime.machine.note_open_slices(end_ns)
        waits = [note for thread in self.threads if isinstance(thread, VlmThread) for note in thread.turns.notes()]
        requests: list[RequestState] = [r for thread in self.threads for r in thread.requests]
        return RunLog(
            scenario=self.scenario,
            replication=self.replication,
            engine="reference",
            ready_ns=ready_ns,
            start_ns=start_ns,
            end_ns=end_ns,
            clients=[c.name for c in self.plan.clients],
            graphs=self.plan.graphs,
            accounts=[a.name for a in self.plan.accounts],
            executes=runtime.rows + runtime.rows_in_flight(),
            requests=[r.row() for r in requests if r.arrived_ns <= end_ns],
            slices=sorted(runtime.machine.slices, key=lambda s: (s[0], s[2], s[3], s[1])),
            memory=[MemoryEvent(*event) for event in loader.memory.events],
            loads=loader.log,
            copies=loader.copy_rows(),
            failed={t.client.name: t.failure for t in self.threads if t.failure},
            notes=[*self.plan.notes, *waits],
        )


def simulate(
    scenario: Scenario, replication: int = 0, *, check: bool = False, progress: Progress | None = None
) -> RunLog:
    """Run one replication of a scenario in the reference engine.

    Parameters
    ----------
    scenario : Scenario
        What to simulate; it must have passed its checks.
    replication : int
        Which of the independent repetitions.
    check : bool
        Validate every state machine after every action.

    Returns
    -------
    RunLog
        Rows of every graphExecute and request, loads and memory.
    """
    return Simulation(scenario, replication, check=check).run(progress)
