"""One graphExecute on the testbed, from the call to the return, and the row that it leaves.

called -> (guard) -> granted -> woken -> submitted -> (queue of its core) -> started -> began -> finished -> returned
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from htpsim.live.cores import Job, LiveCore
from htpsim.live.faults import DIED, STAGED, FaultPlan, GraphFailed, ThreadDied
from htpsim.live.guard import LiveGuard, Slot, Weights
from htpsim.live.loader import LiveCopy, LiveLoader
from htpsim.live.stopping import Clock, Stop, Stopped
from htpsim.live.work import Stage, stages_of
from htpsim.results.columns import NEVER, PATH_BYPASS, PATH_GENIE, PATH_QNN
from htpsim.results.log import Row
from htpsim.spec.plan import NO_ACCOUNT, ClientPlan, GraphPlan, ModelPlan, Plan

NO_TOKEN: Final = -1
Place = tuple[int, int, int, int]
"""Where in the work: (request, stage, step, token)."""


@dataclass(slots=True)
class Machine:
    """What all threads of a run share."""

    plan: Plan
    clock: Clock
    stop: Stop
    guards: dict[int, LiveGuard]
    cores: list[LiveCore]
    weights: Weights
    loader: LiveLoader
    faults: FaultPlan
    numbers: itertools.count[int]
    """of graphExecutes, in order of call"""


@dataclass(slots=True)
class Out:
    """A graphExecute that is out, with the instants that its thread notes."""

    call: LiveCall
    place: Place
    path: int
    account: int
    called_ns: int = NEVER
    granted_ns: int = NEVER
    woken_ns: int = NEVER
    """its thread went on after the grant"""
    returned_ns: int = NEVER
    released_ns: int = NEVER


class LiveCall:
    """A graph as one instance calls it."""

    __slots__ = ("context", "copy", "core", "graph", "lane", "model", "stage", "work")

    def __init__(self, machine: Machine, model: ModelPlan, copy: LiveCopy, stage: Stage, position: int) -> None:
        self.model = model
        """how this instance reaches the copy, which another may have loaded"""
        self.graph: GraphPlan = dict(stages_of(model))[stage][position]
        self.copy = copy
        self.stage = stage
        self.core = copy.core
        self.context = copy.contexts[self.graph.context]
        self.work = copy.works[stage, position]
        self.lane = copy.core if machine.plan.scenario.guard.slots_per == "core" else 0


class Caller:
    """Makes the graphExecutes of one thread; it has one out at a time."""

    def __init__(self, machine: Machine, client: ClientPlan) -> None:
        self.machine = machine
        self.client = client
        self.guard = machine.guards.get(client.process)
        self.number = self.guard.join() if self.guard is not None else NEVER
        self.job = Job()
        self.rows: list[Row] = []
        self.open: Out | None = None

    def execute(self, call: LiveCall, place: Place, wanted_ns: int, deadline_ns: int) -> int:
        """Execute a graph and return when it returned.

        Raises
        ------
        GraphFailed, ThreadDied
            As staged, or because the work itself raised.
        Stopped
            When the run is over.
        """
        machine, job = self.machine, self.job
        machine.stop.check()
        job.clear(next(machine.numbers))
        path, account = self._route(call)
        self.open = Out(call, place, path, account)
        if path == PATH_GENIE:
            self._guarded(self.open, wanted_ns, deadline_ns)
        else:
            self.open.called_ns = self.open.granted_ns = self.open.woken_ns = machine.clock()
            machine.loader.begins(self.client.name, call.copy)
            self._run(call, wanted_ns, place)
            machine.loader.ends(self.client.name, call.copy)
            self.open.returned_ns = self.open.released_ns = machine.clock()
        return self._close()

    def _guarded(self, out: Out, wanted_ns: int, deadline_ns: int) -> None:
        """Execute a graph within a slot."""
        machine, call, name = self.machine, out.call, self.client.name
        assert self.guard is not None
        index = machine.plan.accounts[out.account].index
        slot = Slot(self.guard, call.lane, index, self.number, deadline_ns)
        slot.__enter__()
        given_back = True
        try:
            out.called_ns, out.granted_ns, out.woken_ns = slot.called_ns, slot.granted_ns, machine.clock()
            machine.loader.begins(name, call.copy)
            self._run(call, wanted_ns, out.place)
            machine.loader.ends(name, call.copy)
            slot.cost_ns = self.job.finished_ns - self.job.started_ns
            given_back = not machine.faults.strikes("dies-holding", name, out.place[:3])
        finally:
            if given_back:
                slot.__exit__()
            out.released_ns = slot.released_ns
            out.returned_ns = slot.released_ns if given_back else machine.clock()

    def _route(self, call: LiveCall) -> tuple[int, int]:
        """Return path and account, by what the thread carries."""
        if not (call.model.guarded or call.model.bypass):
            return PATH_QNN, NO_ACCOUNT
        account = self.machine.weights.account(self.client.process, self.client.name)
        return (PATH_BYPASS, NO_ACCOUNT) if account == NO_ACCOUNT else (PATH_GENIE, account)

    def _run(self, call: LiveCall, wanted_ns: int, place: Place) -> None:
        """Hand the graph to its core and wait for it."""
        machine, job = self.machine, self.job
        core = machine.cores[call.core]
        job.context = call.context
        job.level = call.model.level
        job.wanted_ns = wanted_ns
        job.work = call.work.run
        if machine.faults.strikes("graph", self.client.name, place[:3]):
            job.work = _fail
        core.submit(job)
        core.wait(job)
        if isinstance(job.error, Stopped):
            raise Stopped

    def _close(self) -> int:
        """Write the row of the graphExecute that was out, and raise what went wrong with it."""
        out, error, faults = self.open, self.job.error, self.machine.faults
        assert out is not None
        died = any(faults.strikes(kind, self.client.name, out.place[:3]) for kind in ("dies", "dies-holding"))
        if error is not None or died:
            out.place = (*out.place[:3], NO_TOKEN)  # what it would have yielded never came
        self.rows.append(row_of(out, self.job, self.client.number, self.machine.plan))
        self.open = None
        if error is not None:
            raise GraphFailed(f"graph {out.call.graph.name} failed: {error}")
        if died:
            raise ThreadDied(DIED)
        return out.returned_ns

    def row_in_flight(self) -> Row | None:
        """Return the row of the graphExecute that the end of the run cut short, if there is one."""
        out = self.open
        if out is None:
            return None
        if out.called_ns == NEVER and self.guard is not None:
            out.called_ns = int(self.guard.callers[self.number].call_ns)
        return row_of(out, self.job, self.client.number, self.machine.plan)


def row_of(out: Out, job: Job, client: int, plan: Plan) -> Row:
    """Return the row of a graphExecute; of parts that have not ended, nothing is counted."""
    call = out.call
    request, stage, step, token = out.place
    weight = plan.accounts[out.account].weight if out.account != NO_ACCOUNT else 0
    instants = (
        out.called_ns, out.granted_ns, out.woken_ns, job.submitted_ns, job.started_ns, job.began_ns, job.finished_ns,
        out.returned_ns,
    )  # fmt: skip
    guard, overhead, rpc, wait, acquire, run, answer = (
        end - begin if end != NEVER else 0 for begin, end in pairwise(instants)
    )
    return (
        job.number, client, request, stage, step, call.graph.number, call.context, call.core, out.path,
        call.model.level, weight, out.account, token,
        out.called_ns, out.granted_ns, job.submitted_ns, job.started_ns, job.finished_ns, out.returned_ns,
        out.released_ns, guard, overhead, rpc, wait, acquire, run, 0, 0, answer, 0, run,
    )  # fmt: skip


def _fail(wanted_ns: int) -> None:
    raise RuntimeError(STAGED)
