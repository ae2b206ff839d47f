"""The engines on one scenario, as things that can take turns."""

from __future__ import annotations

from benchmarks.bare_simpy import Bare
from benchmarks.c_loop import CLoop
from benchmarks.timing import Count, Prepare
from htpsim.kernel import simulate, tally
from htpsim.kernel.compiled import function_for
from htpsim.kernel.shapes import shape_of
from htpsim.results.columns import Execute
from htpsim.sched import policy_class
from htpsim.sim import Simulation
from htpsim.sim.loads import load_alone
from htpsim.spec import Scenario
from htpsim.spec.plan import make_plan


def bare(scenario: Scenario) -> Prepare:
    """The bare SimPy loop."""
    return lambda: Bare(scenario).run


def in_c(scenario: Scenario) -> Prepare:
    """The same in C."""
    loop = CLoop(scenario)
    return lambda: loop.run


def reference(scenario: Scenario) -> Prepare:
    """The reference engine, records on."""

    def prepare() -> Count:
        simulation = Simulation(scenario)

        def count() -> int:
            log = simulation.run()
            assert not log.executes or len(log.executes[0]) == len(Execute._fields)
            return len(log.executes)

        return count

    return prepare


def kernel(scenario: Scenario, *, records: bool = True, compiled: bool = True) -> Prepare:
    """The kernel: what is timed begins with the filling of its tables and ends with the log, or with the tally.

    It is compiled here, before anything is timed.
    """
    plan = make_plan(scenario)
    loaded = load_alone(plan)
    if compiled:
        function_for(policy_class(scenario.guard.policy), shape_of(plan, keeps=records))

    def count() -> int:
        if records:
            return len(simulate(plan, loaded, compiled=compiled).executes)
        return tally(plan, loaded, compiled=compiled).executes

    return lambda: count
