"""One run of a scenario on real threads: loading, warm-up, the measured time, an end that leaves nothing behind.

What it returns is the log that the engines return, by the same columns. The run is bounded: in threads by the scenario,
in time by the horizon and a limit for loading, and a watch looks whether anybody still gets on.
"""

from __future__ import annotations

import gc
import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

from htpsim.errors import HtpsimError, InvariantError
from htpsim.live.calls import Machine
from htpsim.live.cores import LiveCore
from htpsim.live.cutting import cut_requests, cut_rows
from htpsim.live.faults import Fault, FaultPlan
from htpsim.live.guard import LiveGuard, Weights
from htpsim.live.host import processors, resident_bytes
from htpsim.live.instance import LiveInstance
from htpsim.live.loader import LiveLoader
from htpsim.live.machine import Seats, bind, described, seats
from htpsim.live.stopping import Clock, Stop, clock_from_now
from htpsim.live.supports import refuse_unsupported
from htpsim.live.work import Bench
from htpsim.results.columns import NEVER
from htpsim.results.log import RECORDED, RunLog
from htpsim.sim.deadlock import guards_in_words
from htpsim.spec import Scenario
from htpsim.spec.plan import make_plan
from htpsim.units import NS_PER_S

LOAD_LIMIT_S: Final = 120.0
"""How long [s] loading may take."""
END_LIMIT_S: Final = 30.0
"""How long [s] all threads together may take to end."""
LOOK_S: Final = 0.02
"""How often [s] the watch looks."""
STILL_LOOKS: Final = 10
"""So many looks in a row at which nobody can get on are a deadlock."""


@dataclass(slots=True)
class LiveRun:
    """What a run on the testbed left behind."""

    log: RunLog
    resident_bytes: int
    """what loading added to the memory of the process that is resident; 0 where the system does not tell"""
    weights_bytes: int
    """weights of all sessions that were opened"""
    threads: int
    machine: str
    seats: Seats


def run_live(
    scenario: Scenario,
    bench: Bench,
    replication: int = 0,
    *,
    faults: Sequence[Fault] = (),
    check: bool = False,
    progress: Callable[[float], None] | None = None,
) -> LiveRun:
    """Run one replication of a scenario on real threads.

    Parameters
    ----------
    scenario : Scenario
        What to run; it must have passed its checks.
    bench : Bench
        What the graphs really do.
    replication : int
        Which of the independent repetitions: the same draws as in an engine.
    faults : sequence of Fault
        What is to go wrong.
    check : bool
        Validate the guards' records after every action.
    progress : callable, optional
        Told now and then which share of the time has passed.

    Returns
    -------
    LiveRun
        The log in the engines' columns, and what they could not know.

    Raises
    ------
    ScenarioError
        When the testbed cannot do what the scenario asks for.
    InvariantError
        When nobody can get on any more, with who waits and who holds what; or when a rule broke.

    Examples
    --------
    >>> from htpsim.live.work import TimedBench
    >>> from htpsim.spec import Run
    >>> run_live(Scenario(run=Run(duration_ns=10**6)), TimedBench()).log.executes
    []
    """
    refuse_unsupported(scenario)
    run = _Run(bench.prepare(scenario), bench, replication, FaultPlan(faults), check=check)
    with _undisturbed(run.seats.hosts):
        return run.go(progress)


@contextmanager
def _undisturbed(hosts: tuple[int, ...]) -> Iterator[None]:
    """Keep the collector of garbage from pausing every thread, and the calling thread off the cores' processors."""
    enabled, there = gc.isenabled(), processors()
    gc.collect()
    gc.disable()
    bind(hosts)
    try:
        yield
    finally:
        bind(there)
        if enabled:
            gc.enable()


class _Run:
    def __init__(self, scenario: Scenario, bench: Bench, replication: int, faults: FaultPlan, *, check: bool) -> None:
        self.scenario = scenario
        self.replication = replication
        self.plan = make_plan(scenario)
        self.seats = seats(scenario.device.cores)
        self.described = described()  # now: while it runs, this thread is bound to some of the processors only
        self.stop = Stop()
        self.clock: Clock = clock_from_now()
        plan, clock, stop = self.plan, self.clock, self.stop
        guards = {p: LiveGuard(plan, p, clock, stop, check=check) for p in sorted({a.process for a in plan.accounts})}
        cores = [LiveCore(n, processor, clock, stop) for n, processor in enumerate(self.seats.cores)]
        loader = LiveLoader(plan, bench, clock, stop, faults)
        self.machine = Machine(plan, clock, stop, guards, cores, Weights(plan), loader, faults, itertools.count())
        self.threads = [LiveInstance(self.machine, c, self.seats.hosts, replication) for c in plan.clients]
        self.resident_bytes = 0

    def go(self, progress: Callable[[float], None] | None) -> LiveRun:
        """Run, and end every thread whatever happens."""
        before_bytes = resident_bytes() or 0
        try:
            for thread in [*self.machine.cores, *self.threads]:
                thread.start()
            self._load()
            self.resident_bytes = (resident_bytes() or 0) - before_bytes
            ready_ns = self._weigh()
            start_ns = ready_ns + self.scenario.run.warmup_ns
            end_ns = start_ns + self.scenario.run.duration_ns
            for thread in self.threads:
                thread.go.set()
            self._watch(ready_ns, end_ns, progress)
        finally:
            self._end()
        self._raise_faults()
        return self._result(ready_ns, start_ns, end_ns)

    def _load(self) -> None:
        """Wait until every instance has loaded, well or not."""
        until_ns = self.clock() + round(LOAD_LIMIT_S * NS_PER_S)
        for thread in self.threads:
            if not thread.loaded.wait(max(0.0, (until_ns - self.clock()) / NS_PER_S)):
                raise HtpsimError(f"live: {thread.name} has not loaded within {LOAD_LIMIT_S:.0f} s")

    def _weigh(self) -> int:
        """Let only those count in a sum of weights who have started; return the instant, at which work begins."""
        per_core = self.scenario.guard.slots_per == "core"
        ready_ns = self.clock()
        for process, guard in self.machine.guards.items():
            able: list[dict[int, int]] = [{} for _ in guard.lanes]
            for thread in self.threads:
                for calls in thread.calls.values() if not thread.failure else ():
                    model, lane = calls[0].model, calls[0].core if per_core else 0
                    if model.guarded and thread.client.process == process:
                        able[lane][model.account] = self.plan.accounts[model.account].weight
            ready_ns = guard.weigh([sum(weights.values()) or None for weights in able], ready_ns)
        return ready_ns

    def _watch(self, ready_ns: int, end_ns: int, progress: Callable[[float], None] | None) -> None:
        """Let time pass until the end; break off where nobody can get on."""
        still = 0
        while (left_ns := end_ns - self.clock()) > 0 and not self.stop.wait(min(LOOK_S, left_ns / NS_PER_S)):
            still = still + 1 if self._stands_still() else 0
            if still >= STILL_LOOKS:
                raise InvariantError(self._deadlock())
            if progress:
                progress(min(1.0, (self.clock() - ready_ns) / max(1, end_ns - ready_ns)))

    def _stands_still(self) -> bool:
        """Tell whether every thread that lives waits for a grant, and no core has anything to do."""
        alive = sum(thread.is_alive() for thread in self.threads)
        waiting = sum(guard.settled()[0] for guard in self.machine.guards.values())
        timed = any(
            lane.timer_due_ns != NEVER and lane.grants > 0
            for guard in self.machine.guards.values()
            for lane in guard.lanes
        )
        return 0 < alive == waiting and not timed and all(core.idle() for core in self.machine.cores)

    def _deadlock(self) -> str:
        told = list(guards_in_words(self.machine.guards, self.plan.accounts))
        told += [f"{t.name} has ended: {t.failure}" for t in self.threads if t.failure]
        return f"deadlock at {self.clock()} ns: nothing is left to happen: {'; '.join(told)}"

    def _end(self) -> None:
        """Stop every thread and wait for it."""
        self.stop.raise_()
        until_s = time.monotonic() + END_LIMIT_S  # one limit for all of them, however many they are
        for thread in self.threads:
            thread.go.set()
            if thread.ident is not None:
                thread.join(max(0.0, until_s - time.monotonic()))
        for core in self.machine.cores:
            core.end(max(0.0, until_s - time.monotonic()))
        self.machine.loader.close()

    def _raise_faults(self) -> None:
        """Raise what ended a thread that should not have ended."""
        everybody: list[LiveCore | LiveInstance] = [*self.machine.cores, *self.threads]
        for thread in everybody:
            if thread.fault is not None:
                raise thread.fault
        stuck = [thread.name for thread in everybody if thread.is_alive()]
        if stuck:
            raise HtpsimError(f"live: {', '.join(stuck)} did not end within {END_LIMIT_S:.0f} s")

    def _result(self, ready_ns: int, start_ns: int, end_ns: int) -> LiveRun:
        """Collect what the run leaves behind, as it was at its end."""
        loader, plan = self.machine.loader, self.plan
        if self.scenario.registry.waits_for_load:
            loader.validate()
        rows = [row for thread in self.threads for row in thread.caller.rows]
        rows += [row for thread in self.threads if (row := thread.caller.row_in_flight()) is not None]
        for thread in self.threads:
            if thread.spec.arrivals.kind != "closed" and not thread.failure:
                thread.arrive_until(end_ns)
        executes = cut_rows(rows, end_ns)
        requests = [request for thread in self.threads for request in thread.requests]
        log = RunLog(
            scenario=replace(self.scenario),
            replication=self.replication,
            engine=RECORDED,
            ready_ns=ready_ns,
            start_ns=start_ns,
            end_ns=end_ns,
            clients=[c.name for c in plan.clients],
            graphs=plan.graphs,
            accounts=[a.name for a in plan.accounts],
            executes=executes,
            requests=cut_requests(requests, executes, end_ns),
            memory=loader.memory_events(),
            loads=loader.log,
            copies=loader.copy_rows(),
            failed={t.name: t.failure for t in self.threads if t.failure},
            notes=[*plan.notes, *(note for t in self.threads for note in t.notes), *self._notes()],
        )
        return LiveRun(
            log, self.resident_bytes, loader.opened_bytes, len(self.threads) + len(self.machine.cores), self.described,
            self.seats,
        )  # fmt: skip

    def _notes(self) -> list[str]:
        notes = [f"measured on the testbed: {self.described}; sessions do not evict each other"]
        if self.seats.shared:
            notes.append("the threads of the instances share processors with the cores: there are no others")
        return notes


def threads_alive() -> list[str]:
    """Return the names of the threads of this process but for the main one.

    >>> isinstance(threads_alive(), list)
    True
    """
    return [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
