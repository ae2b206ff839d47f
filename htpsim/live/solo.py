"""What one instance alone shows: the times of its graphs, its host's gaps, and what each way through the testbed takes.

Nothing here has seen two instances at once. Every delay of the testbed that an engine has a parameter for is measured
and named:

==============  =======================================================  ==================================
delay           from, to                                                 parameter of the engines
==============  =======================================================  ==================================
``wake_core``   a core gets its graph, its thread begins; it had idled    ``device.power_up_warm``
``next_graph``  the same where it goes straight on from another graph     ``device.acquire``
``answer``      a graph finishes, its instance's thread has it back       ``device.rpc_return``
``hand_over``   the guard grants a waiting thread, that thread goes on    ``guard.overhead``
``submit``      the thread goes on, its graph is with the core            ``device.rpc_call``
``gap_step``    a token, the next call                                    ``instances.host_gap_step``
``gap_graph``   a graph, the next of its step                             ``instances.host_gap_graph``
``gap_stage``   the ViT or a chunk, what comes after it                   ``instances.host_gap_stage``
==============  =======================================================  ==================================

``next_graph`` and ``hand_over`` do not occur with one instance; they are measured with threads that do nothing else.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final

import numpy as np

from htpsim.live.cores import Job, LiveCore
from htpsim.live.guard import LiveGuard, Slot
from htpsim.live.machine import bind, seats, sharpen_timers
from htpsim.live.stopping import Stop, clock_from_now
from htpsim.live.work import TimedWork
from htpsim.results.columns import NEVER, Execute
from htpsim.results.log import RunLog
from htpsim.sched.policy import NO_DEADLINE
from htpsim.spec import Distribution, Graph, Guard, Instance, Model, Scenario
from htpsim.spec.distribution import exponential
from htpsim.spec.plan import AccountPlan, Plan
from htpsim.units import NS_PER_MS

SAMPLE_MAX: Final = 256
"""Values of a service time's distribution that a scenario keeps."""
THINK_NS: Final = 50 * NS_PER_MS
"""Mean pause between two requests of an instance alone."""
WARMUP_NS: Final = 500 * NS_PER_MS
"""How long an instance alone runs before it is looked at, at most."""
ROUNDS: Final = 300
PAUSE_NS: Final = 500_000
"""How long each round of an exercise takes."""
DELAYS: Final = ("wake_core", "next_graph", "answer", "hand_over", "submit", "gap_step", "gap_graph", "gap_stage")
EXERCISED: Final = ("next_graph", "hand_over")
"""Those that are measured with threads that do nothing else."""


@dataclass(slots=True)
class Solo:
    """What was seen of instances alone."""

    graphs: dict[str, list[int]] = field(default_factory=dict)
    """"model/graph" -> times on the core [ns]; those of a graph that is cut, summed over its segments"""
    delays: dict[str, list[int]] = field(default_factory=lambda: {name: [] for name in DELAYS})

    def add(self, other: Solo) -> None:
        """Take in what another saw."""
        for name, values in other.graphs.items():
            self.graphs.setdefault(name, []).extend(values)
        for name, values in other.delays.items():
            self.delays[name].extend(values)

    def delay_ns(self, name: str) -> int:
        """Return the mean of a delay without its largest hundredth, which is the machine's; 0 where none was seen.

        >>> Solo(delays={"answer": [10, 20, 30]}).delay_ns("answer")
        20
        """
        values = sorted(self.delays.get(name, []))
        kept = values[: max(1, round(0.99 * len(values)))]
        return round(sum(kept) / len(kept)) if kept else 0


def alone(scenario: Scenario, duration_ns: int) -> list[Scenario]:
    """Return a scenario for each kind of instance, with one instance that hardly pauses.

    >>> len(alone(Scenario(instances=(Instance(name="a"), Instance(name="b"))), 10**9))
    1
    """
    kinds: dict[tuple[Model | None, ...], Instance] = {}
    for instance in scenario.instances:
        kinds.setdefault((instance.vit, instance.llm), instance)
    run = replace(scenario.run, duration_ns=duration_ns, warmup_ns=min(WARMUP_NS, scenario.run.warmup_ns))
    return [
        replace(
            scenario,
            run=run,
            instances=(replace(one, arrivals=replace(one.arrivals, kind="closed", think=exponential(THINK_NS))),),
        )
        for one in kinds.values()
    ]


def seen_alone(log: RunLog) -> Solo:
    """Return what the log of one instance alone shows, after its warm-up."""
    solo = Solo()
    rows = [row for row in map(Execute._make, log.executes) if row.returned_ns != NEVER]
    rows = sorted((row for row in rows if row.called_ns >= log.start_ns), key=lambda row: row.called_ns)
    steps: dict[tuple[int, int, int, str], int] = {}
    for row in rows:
        name = log.graphs[row.graph].partition("#")[0]
        key = row.request, row.stage, row.step, name
        steps[key] = steps.get(key, 0) + row.run_ns
        solo.delays["wake_core"].append(row.acquire_ns)
        solo.delays["answer"].append(row.rpc_return_ns)
        solo.delays["submit"].append(row.rpc_ns)
    for (_, _, _, name), run_ns in steps.items():
        solo.graphs.setdefault(name, []).append(run_ns)
    for before, row in pairwise(rows):
        if before.request == row.request:
            solo.delays[_gap_between(before, row)].append(row.called_ns - before.returned_ns)
    return solo


def _gap_between(before: Execute, row: Execute) -> str:
    """Name the pause of the host between two graphExecutes of one request."""
    if before.token != NEVER:
        return "gap_step"
    return "gap_graph" if (before.stage, before.step) == (row.stage, row.step) else "gap_stage"


def exercise() -> Solo:
    """Measure what takes two threads but no work: a core that goes straight on, and a guard that wakes who waits."""
    solo = Solo()
    solo.delays["next_graph"] = _straight_on()
    solo.delays["hand_over"] = _handed_over()
    return solo


def _straight_on() -> list[int]:
    """Return how long a core takes to begin a graph that waited while another ran [ns]."""
    clock, stop = clock_from_now(), Stop()
    core = LiveCore(0, seats(1).cores[0], clock, stop)
    core.start()
    first, second, found = Job(), Job(), []
    for job, context in ((first, 0), (second, 1)):
        job.context = context
    first.work, first.wanted_ns = TimedWork().run, PAUSE_NS
    try:
        for number in range(ROUNDS):
            for job in (first, second):
                job.clear(2 * number + (job is second))
                core.submit(job)
            for job in (first, second):
                core.wait(job)
            found.append(second.began_ns - second.started_ns)
    finally:
        stop.raise_()
        core.end()
    return found


def _handed_over() -> list[int]:
    """Return how long a thread that waits for the guard takes to go on once it is granted [ns]."""
    clock, stop = clock_from_now(), Stop()
    scenario = Scenario(guard=Guard(policy="fifo", slots=1))
    accounts = [
        AccountPlan(name=f"process 0/{name}", process=0, index=index, weight=1, priority=0)
        for index, name in enumerate("ab")
    ]
    guard = LiveGuard(
        Plan(scenario=scenario, clients=[], graphs=[], accounts=accounts, notes=[]), 0, clock, stop
    )  # fmt: skip
    found: list[int] = []
    hosts = seats(1).hosts

    def turns(index: int, caller: int) -> None:
        bind(hosts)
        sharpen_timers()
        for _ in range(ROUNDS):
            with Slot(guard, 0, index, caller, NO_DEADLINE) as slot:
                if slot.granted_ns > slot.called_ns:
                    found.append(clock() - slot.granted_ns)
                TimedWork().run(PAUSE_NS)

    threads = [threading.Thread(target=turns, args=(index, guard.join()), daemon=True) for index in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def calibrated(scenario: Scenario, solo: Solo) -> Scenario:
    """Return a scenario with the times that were measured alone, for the engines to predict contention from.

    Parameters
    ----------
    scenario : Scenario
        As the testbed prepared it.
    solo : Solo
        What was seen of its instances alone.
    """
    acquire_ns = solo.delay_ns("next_graph")
    wake_ns = max(0, solo.delay_ns("wake_core") - acquire_ns)
    device = replace(
        scenario.device,
        acquire_ns=acquire_ns,
        power_up_ns=wake_ns,
        power_up_warm_ns=wake_ns,
        rpc_call_ns=solo.delay_ns("submit"),
        rpc_return_ns=solo.delay_ns("answer"),
    )
    waits = len(scenario.instances) > 1
    guard = replace(scenario.guard, overhead_ns=solo.delay_ns("hand_over") if waits else 0)
    instances = tuple(
        replace(
            one,
            vit=one.vit and _timed(one.vit, solo.graphs),
            llm=one.llm and _timed(one.llm, solo.graphs),
            host_gap_step_ns=solo.delay_ns("gap_step") or one.host_gap_step_ns,
            host_gap_stage_ns=solo.delay_ns("gap_stage"),
            host_gap_graph_ns=solo.delay_ns("gap_graph") or one.host_gap_graph_ns,
        )
        for one in scenario.instances
    )
    return replace(scenario, device=device, guard=guard, instances=instances)


def _timed(model: Model, seen: Mapping[str, Sequence[int]]) -> Model:
    def timed(graphs: Iterable[Graph]) -> tuple[Graph, ...]:
        return tuple(
            replace(graph, service=sample_of(seen[f"{model.name}/{graph.name}"]))
            if f"{model.name}/{graph.name}" in seen
            else graph
            for graph in graphs
        )

    return replace(
        model, graphs=timed(model.graphs), prefill=timed(model.prefill), decode=timed(model.decode)
    )  # fmt: skip


def sample_of(values: Sequence[int], most: int = SAMPLE_MAX) -> Distribution:
    """Return the distribution of measured values: themselves, or where there are many, means of equal parts of them.

    The mean stays as it is, to a nanosecond.

    >>> sample_of([4, 2]).sample, sample_of(range(1000), 4).sample
    ((2, 4), (124, 374, 624, 874))
    """
    ordered = np.sort(np.asarray(list(values), dtype=np.int64))
    if len(ordered) > most:
        ordered = np.array([part.mean() for part in np.array_split(ordered, most)]).round().astype(np.int64)
    return Distribution(kind="sample", sample=tuple(ordered.tolist()))
