"""Which engine runs a scenario: the reference engine, or the compiled one, which is faster and leaves the same log.

``auto`` takes the compiled engine where it knows everything in the scenario and the run is long enough: a third of a
second of the reference engine, if its code for the guard's policy and the features in use was compiled before, half a
minute, if it must be compiled now.
Whatever that engine cannot tell in words, a deadlock or a fault of a policy, it leaves to the reference engine.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Literal

import numpy as np

from htpsim.errors import ScenarioError
from htpsim.kernel import NeedsReference, prepare, unsupported
from htpsim.kernel import simulate as simulate_kernel
from htpsim.kernel import tally as tally_kernel
from htpsim.kernel.compiled import can_compile, is_compiled
from htpsim.kernel.shapes import shape_of
from htpsim.results.log import RunLog
from htpsim.results.tally import Tally
from htpsim.sched import POLICIES, policy_class
from htpsim.sim import simulate as simulate_reference
from htpsim.sim.loads import load_alone
from htpsim.spec import Scenario
from htpsim.spec.plan import Plan, make_plan

Engine = Literal["auto", "reference", "kernel"]
ENGINES: Final = ("auto", "reference", "kernel")

WORTH_COMPILING: Final = 1_000_000
"""GraphExecutes that the reference engine takes as long for as compiling takes, and more."""
WORTH_LOADING: Final = 10_000
"""GraphExecutes that it takes as long for as loading what was compiled takes."""


def simulate(
    scenario: Scenario,
    replication: int = 0,
    *,
    engine: Engine | None = None,
    check: bool = False,
    alike: int = 1,
    progress: Callable[[float], None] | None = None,
) -> RunLog:
    """Run one replication of a scenario in the engine that is asked for.

    Parameters
    ----------
    scenario : Scenario
        What to simulate; it must have passed its checks.
    replication : int
        Which of the independent repetitions.
    engine : str, optional
        "auto", "reference" or "kernel"; by default what the scenario says.
    check : bool
        Validate every state machine after every action; only the reference engine does.
    alike : int
        How many runs of about this kind the process will make, which share what loading compiled code costs.
    progress : callable, optional
        Told now and then, by the reference engine, which share of the time has passed.

    Returns
    -------
    RunLog
        The same from either engine; its `engine` and `engine_why` say which it was.

    Raises
    ------
    ScenarioError
        When "kernel" is asked for what that engine does not know.

    Examples
    --------
    >>> simulate(Scenario(), engine="reference").engine
    'reference'
    """
    chosen, why = choose_engine(scenario, engine, check=check, alike=alike)
    if chosen == "kernel":
        try:
            plan = make_plan(scenario)
            log = simulate_kernel(plan, load_alone(plan), replication)
        except NeedsReference as reason:
            why = str(reason)
        else:
            if progress:
                progress(1.0)
            return log
    log = simulate_reference(scenario, replication, check=check, progress=progress)
    log.engine_why = why
    return log


def tally(scenario: Scenario, replications: int | None = None, workers: int | None = None) -> list[Tally]:
    """Run replications without keeping a record of any, on threads: counts, sums, and latencies in bins.

    Compiled code holds no lock of the interpreter, so two threads are nearly twice as fast as one. Memory does not grow
    with the time that is simulated.

    Parameters
    ----------
    scenario : Scenario
        What to simulate; it must have passed its checks.
    replications : int, optional
        How many independent repetitions; by default as many as the scenario says.
    workers : int, optional
        Threads; by default one a core. The results do not depend on it.

    Raises
    ------
    ScenarioError
        When the kernel does not know something in the scenario.
    InvariantError
        When a run comes to a deadlock, or a policy is at fault.

    Examples
    --------
    >>> [t.executes for t in tally(Scenario(), replications=2)]
    [0, 0]
    """
    unknown = unsupported(scenario)
    if unknown:
        raise ScenarioError(f"tally: got {unknown}, which the compiled engine does not know; simulate keeps records")
    plan = make_plan(scenario)
    loaded = load_alone(plan)
    prepared = prepare(plan, loaded)
    count = scenario.run.replications if replications is None else replications

    def one(replication: int) -> Tally:
        try:
            return tally_kernel(plan, loaded, replication, prepared=prepared)
        except NeedsReference as reason:
            simulate_reference(scenario, replication)  # tells what is wrong, in words
            raise ScenarioError(f"guard.policy: {str(reason) or 'got a policy that does not run compiled'}") from reason

    alone = 0 if is_compiled(prepared.policy, prepared.shape) else 1  # whatever must be compiled is compiled once
    first = [one(replication) for replication in range(min(alone, count))]
    with ThreadPoolExecutor(workers or os.cpu_count()) as pool:
        return first + list(pool.map(one, range(len(first), count)))


def choose_engine(
    scenario: Scenario, engine: Engine | None = None, *, check: bool = False, alike: int = 1
) -> tuple[str, str]:
    """Return which engine is taken, and why it is not the compiled one where a reader may want to know.

    Raises
    ------
    ScenarioError
        When "kernel" is asked for what that engine does not know, or a name that is none is given.

    Examples
    --------
    >>> choose_engine(Scenario(), "kernel")
    ('kernel', '')
    """
    asked = engine or scenario.run.engine
    if asked not in ENGINES:
        raise ScenarioError(f"run.engine: got '{asked}', expected {', '.join(ENGINES)}")
    if asked == "reference":
        return "reference", ""
    unknown = unsupported(scenario)
    if check:
        unknown = "checks after every action"
    if asked == "kernel":
        if unknown:
            raise ScenarioError(f"run.engine: got 'kernel', which does not know {unknown}; expected auto or reference")
        return "kernel", ""
    if unknown:
        return "reference", "" if check else f"the compiled engine does not know {unknown}"
    if not can_compile():
        return "reference", ""
    plan = make_plan(scenario)
    executes = estimated_executes(plan)
    own = scenario.guard.policy in POLICIES  # a user's policy is compiled when that is asked for
    if own and executes * scenario.run.replications > WORTH_COMPILING:
        return "kernel", ""
    return ("kernel" if executes * alike > WORTH_LOADING and at_hand(scenario, plan) else "reference"), ""


def at_hand(scenario: Scenario, plan: Plan | None = None) -> bool:
    """Tell whether the compiled engine knows a scenario and was compiled for its policy and its features before."""
    if unsupported(scenario):
        return False
    return is_compiled(policy_class(scenario.guard.policy), shape_of(plan or make_plan(scenario), keeps=True))


def estimated_executes(plan: Plan) -> float:
    """Return about how many graphExecutes a replication has, if no core ever idles."""
    graphs = [graph for client in plan.clients for model in client.models for graph in model.all_graphs]
    if not graphs:
        return 0.0
    mean_ns = float(np.mean([max(1.0, float(np.mean(graph.solo_ns))) for graph in graphs]))
    run = plan.scenario.run
    return plan.scenario.device.cores * (run.warmup_ns + run.duration_ns) / mean_ns
