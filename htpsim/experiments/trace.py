"""From an engine's log to a trace: the same schema that a recorder on a device writes, with all that an engine knows.

The log's rows are instants and sums; a trace is events. Where several events fall on one instant they are put in the
order in which the engine's phases make them happen, as far as the log tells.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from htpsim.experiments.replay import replay_command
from htpsim.experiments.trace_facts import device_facts, guard_facts, memory_events, request_events, use_events
from htpsim.invariants.trace import (
    NOWHERE,
    Call,
    Event,
    Parts,
    Trace,
)
from htpsim.memory import gang_cores
from htpsim.results.columns import (
    NEVER,
    PARTS,
    PATH_GENIE,
    PATHS,
    SLICES,
    STAGE_DECODE,
    STAGE_PREFILL,
    STAGE_VIT,
    STAGES,
    Execute,
    Request,
)
from htpsim.results.log import RECORDED, RunLog
from htpsim.spec import Instance
from htpsim.spec.plan import ClientPlan, GraphPlan, make_plan

DEVICE, HOST, _, GRANT, DISPATCH = range(5)
"""Phases of an instant."""

_PHASES: Final = {"grant": GRANT, "start": DISPATCH, "resume": DISPATCH} | dict.fromkeys(
    ("call", "submit", "return", "release"), HOST
)
"""Phase of each event; those that are not named are of the device."""

STEPS_MAX: Final = 1 << 32
"""More steps than any graphExecute has."""

OF_THE_VIT: Final = -2
"""In place of the number of a thread: the one that an instance's ViT has of its own."""

Place = tuple[int, int, int, int, int, int, int]
"""(time, turn within the instant, phase, client, 0 for a return and 1 for a gap, graphExecute, step)"""


def trace_of(log: RunLog, replay: str = "") -> Trace:
    """Return the trace of a simulated run.

    Parameters
    ----------
    log : RunLog
        What either engine, or the testbed, left behind.
    replay : str
        The command that runs it again; by default one that finds the scenario by its name.

    Examples
    --------
    >>> from htpsim.sim import simulate
    >>> from htpsim.spec import Scenario
    >>> trace_of(simulate(Scenario())).replay
    'htpsim run scenario --seed 1 --for 60s --replication 0 --check'
    """
    scenario = log.scenario
    if not replay:
        replay = replay_command(scenario, scenario.name, replication=log.replication, check=True)
    converter = _Converter(log)
    device = device_facts(scenario.device)
    recorded = log.engine == RECORDED
    return Trace(
        source=f"htpsim, {'testbed' if recorded else f'{log.engine} engine'}, scenario '{scenario.name}'",
        engine="" if recorded else log.engine,
        replay="" if recorded else replay,
        end_ns=log.end_ns,
        guard=guard_facts(log, converter.plan),
        device=replace(device, acquire_ns=NOWHERE, rpc_return_ns=NOWHERE) if recorded else device,
        calls={row.execute: converter.call(row) for row in converter.rows},
        events=converter.events(),
        parts={
            row.execute: Parts(*(getattr(row, name) for name in PARTS))
            for row in converter.rows
            if row.returned_ns != NEVER
        },
        requests=request_events(log),
        memory=memory_events(log),
        uses=use_events(log),
    )


class _Converter:
    """The graphExecutes of one log."""

    def __init__(self, log: RunLog) -> None:
        self.log = log
        self.plan = make_plan(log.scenario)
        self.rows = sorted((Execute(*row) for row in log.executes), key=lambda row: row.execute)
        self.requests = {(row[0], row[1]): Request(*row) for row in log.requests}
        self.graphs = {client.number: graphs_of(client) for client in self.plan.clients}
        self.handles = [account.name.split("/", 1)[1] for account in self.plan.accounts]
        self.pds: dict[str, list[tuple[int, str]]] = {}
        """(time, PD) of each load of a context"""
        for event in log.memory:
            if event.ledger == "pd" and event.delta_bytes > 0:
                self.pds.setdefault(event.item, []).append((event.time_ns, event.place))
        self.demands: dict[int, dict[int, int]] = {}
        self.slices: dict[int, list[tuple[int, int, int]]] = {}
        """(begin, kind, end) of the stretches of each graphExecute that was evicted"""
        for execute, kind, start_ns, end_ns in log.slices:
            self.slices.setdefault(execute, []).append((start_ns, kind, end_ns))
        self.owners = dict(self.slots_shared())
        self.tokens = self.last_tokens()

    def slots_shared(self) -> Iterator[tuple[int, int]]:
        """Yield (graphExecute, the one whose slot it ran under) where slots are held for a whole request."""
        if self.log.scenario.guard.scope != "request":
            return
        owners: dict[tuple[int, int], int] = {}
        for row in self.rows:
            if row.path == PATH_GENIE:
                owner = owners.setdefault((row.client, row.request), row.execute)
                if owner != row.execute:
                    yield row.execute, owner

    def last_tokens(self) -> dict[int, int]:
        """Return for each decode graphExecute when the token before it came [ns]."""
        before: dict[tuple[int, int], int] = {}
        last: dict[int, int] = {}
        for row in self.rows:
            if row.stage == STAGE_DECODE:
                last[row.execute] = before.get((row.client, row.request), NOWHERE)
            if row.token != NOWHERE and row.returned_ns != NEVER:
                before[row.client, row.request] = row.returned_ns
        return last

    def call(self, row: Execute) -> Call:
        """Return the facts of a graphExecute."""
        client = self.plan.clients[row.client]
        graph = self.graphs[row.client][row.graph]
        copy = self.log.copies[row.copy]
        level = self.plan.accounts[row.account].priority if row.account >= 0 else 0
        return Call(
            execute=row.execute,
            thread=self.thread(row),
            handle=self.handles[row.account] if row.account >= 0 else None,
            weight=row.weight if row.path == PATH_GENIE else None,
            process=client.process,
            context=copy.name,
            graph=self.log.graphs[row.graph],
            path=PATHS[row.path],
            under=self.owners.get(row.execute),
            rank=level,
            client=client.name,
            request=row.request,
            stage=STAGES[row.stage],
            token=row.token,
            adapter=client.llm.adapter if client.llm and row.stage in (STAGE_PREFILL, STAGE_DECODE) else "",
            deadline_ns=self.deadline_ns(row, client),
            cores=gang_cores(row.core, graph.width, self.log.scenario.device),
            level=row.level,
            pd=self.domain(copy.name, copy.model, client.process, row.called_ns),
            qnn=graph.qnn,
            vtcm_bytes=graph.vtcm_bytes,
            hvx=graph.hvx,
            hmx=graph.hmx,
            solo_ns=row.solo_ns,
            demand=self.demand(graph, row.solo_ns),
        )

    def thread(self, row: Execute) -> str:
        """Name the thread of a graphExecute: an instance's one, its ViT's own, or one of a client with several."""
        name = self.plan.clients[row.client].name
        number = self.thread_number(row)
        return name if number == NOWHERE else f"{name} vit" if number == OF_THE_VIT else f"{name} job {number}"

    def thread_number(self, row: Execute) -> int:
        """Tell the threads of a client apart: by job where it has several, NOWHERE for an instance's one."""
        client = self.plan.clients[row.client]
        if not isinstance(client.spec, Instance):
            return row.request if client.spec.outstanding != 1 else NOWHERE
        own = client.spec.vit_thread == "own" and client.llm is not None
        return OF_THE_VIT if own and row.stage == STAGE_VIT else NOWHERE

    def demand(self, graph: GraphPlan, solo_ns: int) -> int:
        """Return the DRAM bytes a second that a graph asks for when it takes `solo_ns` alone."""
        if not graph.demand[0]:
            return 0
        if graph.number not in self.demands:
            self.demands[graph.number] = dict(zip(map(int, graph.solo_ns), map(int, graph.demand), strict=True))
        return self.demands[graph.number][solo_ns]

    def domain(self, context: str, model: str, process: int, at_ns: int) -> str:
        """Name the protection domain of a context as last loaded: that on its first core, as the engines do."""
        places = [place for place in self.pds.get(context, []) if place[0] <= at_ns]
        place = next((pd for time_ns, pd in places if time_ns == places[-1][0]), "")
        if not place:
            whose = f" of {model}" if self.log.scenario.device.pd_rule == "by-model" else " 0"
            return f"process {process} pd{whose}"
        return f"process {process} {place[place.rindex('pd ') :]}"

    def deadline_ns(self, row: Execute, client: ClientPlan) -> int:
        """Return by when the thread wanted it back, as the engine tells policies that look at deadlines."""
        arrived_ns = self.requests[row.client, row.request].arrived_ns
        if not isinstance(client.spec, Instance):
            target_ns = client.spec.deadline_ns
        elif row.stage == STAGE_DECODE:
            arrived_ns, target_ns = self.tokens[row.execute], client.spec.itl_deadline_ns
        else:
            target_ns = client.spec.ttft_deadline_ns
        return NOWHERE if target_ns is None else arrived_ns + target_ns

    def events(self) -> list[Event]:
        """Return every event, in the order of the engine's instants."""
        placed: list[tuple[Place, Event]] = []
        returned: dict[tuple[int, int], tuple[int, int, int]] = {}
        lasts: dict[tuple[int, int], Execute] = {}
        returns: dict[tuple[int, int, int], Place] = {}
        held: list[tuple[tuple[int, int, int], Place, Event]] = []
        before: Place = (NOWHERE, 0, 0, 0, 0, 0, 0)
        ended: dict[tuple[str, int], Place] = {}
        for row in self.rows:
            thread = row.client, self.thread_number(row)
            history = list(self.history(row, self.slices.get(row.execute, [])))
            if self.waited_for_turn(row, lasts.get(thread)):
                before = max(before, ended.get((self.log.copies[row.copy].whole, row.called_ns), before))
            for place, kind in placed_in(row, history, returned.get(thread, (NOWHERE, 0, 0)), before):
                before = place if kind == "call" else before
                event = Event(place[0], kind, row.execute)
                if kind == "release" and row.released_ns != row.returned_ns:
                    held.append(((*thread, place[0]), place, event))
                    ended[self.log.copies[row.copy].whole, place[0]] = (*place[:-1], STEPS_MAX)
                    continue
                placed.append((place, event))
                if kind == "return":
                    returned[thread], lasts[thread] = (place[0], place[1], row.execute), row
                    returns[(*thread, place[0])] = place
                    ended[self.log.copies[row.copy].whole, place[0]] = (*place[:-1], STEPS_MAX)
        for instant, place, event in held:
            # A slot held over several returns is given back right after the last, before what its thread does next.
            after = returns.get(instant)
            placed.append((place if after is None else (*after[:-1], STEPS_MAX - 1), event))
        placed.sort(key=lambda entry: entry[0])
        return [event for _, event in placed]

    def waited_for_turn(self, row: Execute, last: Execute | None) -> bool:
        """Tell whether a thread, which got `last` back before, waited for others until it could make a call."""
        request = self.requests[row.client, row.request]
        if row.stage != STAGE_PREFILL or row.step:
            return False
        if last is None:
            return max(request.begun_ns, request.vit_done_ns) < row.called_ns
        first = (last.request, last.stage) != (row.request, STAGE_PREFILL)
        return first and max(request.begun_ns, request.vit_done_ns, last.returned_ns) < row.called_ns

    def history(self, row: Execute, slices: list[tuple[int, int, int]]) -> Iterator[tuple[int, str]]:
        """Yield (time, kind) of the events of one graphExecute, in order."""
        yield row.called_ns, "call"
        if row.path == PATH_GENIE and row.execute not in self.owners and row.granted_ns != NEVER:
            yield row.granted_ns, "grant"
        if row.submitted_ns == NEVER:
            return
        yield row.submitted_ns, "submit"
        if row.started_ns != NEVER:
            yield from self.sliced(row, slices) if slices else self.unbroken(row)
        if row.finished_ns != NEVER:
            yield row.finished_ns, "finish"
        if row.returned_ns == NEVER:
            return
        yield row.returned_ns, "return"
        if row.path == PATH_GENIE and row.execute not in self.owners and row.released_ns != NEVER:
            yield row.released_ns, "release"

    def unbroken(self, row: Execute) -> Iterator[tuple[int, str]]:
        """Yield the events of one that was not evicted, up to its end."""
        yield row.started_ns, "start"
        if row.finished_ns != NEVER or row.acquire_ns or not self.acquiring(row):
            yield row.started_ns + row.acquire_ns, "run"

    def acquiring(self, row: Execute) -> bool:
        """Tell whether one that the end of the run cut short, with no acquire counted, was still acquiring its core."""
        device = self.log.scenario.device
        if device.acquire_ns or not (device.power_up_ns or device.power_up_warm_ns or device.first_call_ns):
            return bool(device.acquire_ns)
        others = [other for other in self.rows if other.execute != row.execute]
        loaded_ns = self.loaded_ns(row)
        if device.first_call_ns and not any(
            other.copy == row.copy and loaded_ns < other.finished_ns <= row.started_ns for other in others
        ):
            return True
        earlier = [other for other in others if NEVER < other.started_ns <= row.started_ns]
        for core in self.call(row).cores:
            there = [other for other in earlier if core in self.call(other).cores]
            idle_ns = row.started_ns - max(map(self.left_ns, there), default=NEVER - row.started_ns)
            cold = not there or idle_ns > device.idle_timeout_ns
            if (device.power_up_ns if cold else device.power_up_warm_ns * (idle_ns > 0)) > 0:
                return True
        return False

    def loaded_ns(self, row: Execute) -> int:
        """Return when the copy that a graphExecute ran on was last loaded before it."""
        copy = self.log.copies[row.copy].whole
        loads = (load.end_ns for load in self.log.loads if load.copy == copy and load.role == "owner")
        return max((end_ns for end_ns in loads if end_ns <= row.started_ns), default=NEVER)

    def left_ns(self, row: Execute) -> int:
        """Return when a graphExecute last left its core; the end of the run for one that is there still."""
        if row.finished_ns != NEVER:
            return row.finished_ns
        return max((end_ns for _, _, end_ns in self.slices.get(row.execute, [])), default=self.log.end_ns)

    def sliced(self, row: Execute, slices: list[tuple[int, int, int]]) -> Iterator[tuple[int, str]]:
        """Yield the events of one that was evicted, from its slices; one that the end of the run cut stays open.

        Stretches of no length have no slice, so a resume without restore is the begin of its run, and so on.
        """
        runs, evicts, restores = (
            sorted((begin, end) for begin, which, end in slices if SLICES[which] == kind)
            for kind in ("run", "evict", "restore")
        )
        cut = {
            "run": sum(end - begin for begin, end in runs) > row.run_ns,
            "evict": sum(end - begin for begin, end in evicts) > row.evict_ns,
            "restore": sum(end - begin for begin, end in restores) > row.restore_ns,
        }
        restored, evicted = {end: begin for begin, end in restores}, dict(evicts)
        yield row.started_ns, "start"
        for number, (begin_ns, end_ns) in enumerate(runs):
            last = number == len(runs) - 1
            if number:
                yield restored.pop(begin_ns, begin_ns), "resume"
            yield begin_ns, "run"
            if last and (row.finished_ns != NEVER or cut["run"]):
                return
            yield end_ns, "yield"
            if end_ns not in evicted:
                if not self.log.scenario.device.evict_ns:
                    yield end_ns, "freed"
            elif not (last and cut["evict"]):
                yield evicted[end_ns], "freed"
        for end_ns, begin_ns in restored.items():
            yield begin_ns, "resume"
            if not cut["restore"]:
                yield end_ns, "run"


def placed_in(
    row: Execute, history: list[tuple[int, str]], returned: tuple[int, int, int], before: Place
) -> Iterator[tuple[Place, str]]:
    """Yield (place in the total order, kind) of the events of one graphExecute.

    `returned` is (time, turn, graphExecute) of what its thread got back last: a call at that instant follows it, before
    the return of any other thread. `before` is where the call before was: they are numbered as they were made, so one
    that a thread makes when another lets go of a copy comes after what that other did. Where a phase comes again within
    an instant, a new turn of it has begun.
    """
    at_ns, turn, phase, host, later = NOWHERE, 0, 0, (0, 0, 0), 0
    for step, (time_ns, kind) in enumerate(history):
        now = _PHASES.get(kind, DEVICE)
        if kind in ("run", "submit") and time_ns == at_ns:
            now = phase
        elif kind == "call" and time_ns == returned[0]:
            # A call that a return has caused comes right after it, as a step of that graphExecute.
            turn, host, later = returned[1], (row.client, 0, returned[2]), STEPS_MAX
        elif now == HOST:
            host, later = (row.client, int(kind == "call" or (kind == "release" and time_ns != at_ns)), row.execute), 0
        if time_ns != at_ns and kind != "call":
            turn = 0
        elif time_ns == at_ns:
            turn += now < phase
        if kind == "call" and time_ns == before[0] and (time_ns, turn, now, *host, later) <= before:
            turn, host, later = before[1], before[3:6], before[6] + 1
        yield (time_ns, turn, now, *(host if now == HOST else (0, 0, row.execute)), step + later), kind
        at_ns, phase = time_ns, now


def graphs_of(client: ClientPlan) -> dict[int, GraphPlan]:
    """Return the graphs of a client by number."""
    return {graph.number: graph for model in client.models for graph in model.graphs + model.prefill + model.decode}
