"""The compiled engine: one run of a scenario over tables of records, with the same log as the reference engine."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import numpy as np

from htpsim.device.records import DONE as JOB_DONE
from htpsim.device.records import NEVER
from htpsim.kernel.code import Stopped
from htpsim.kernel.entries import ADVANCE, OPEN
from htpsim.kernel.events import NO_TIME
from htpsim.kernel.fields import ASKS, ENDED, FAULT, ROOM, TALLY_FIELDS, THREADS
from htpsim.kernel.keeping import Keeping
from htpsim.kernel.layout import Layout
from htpsim.kernel.store import Store, matrix
from htpsim.results.columns import Execute, Request
from htpsim.results.loaded import Loaded
from htpsim.results.log import Rows, RunLog
from htpsim.results.tally import BINS, TALLIED, ClientTally, Latency, Tally
from htpsim.sched import POLICIES, policy_class
from htpsim.spec.plan import ClientPlan, Plan


class NeedsReference(Exception):
    """A run is left to the reference engine: something went wrong in it, or a policy cannot be compiled.

    Its text is what a reader should be told of it: nothing, where the reference engine will say it better.
    """


def simulate(plan: Plan, loaded: Loaded, replication: int = 0, *, compiled: bool | None = None) -> RunLog:
    """Run one replication of a scenario.

    Parameters
    ----------
    plan : Plan
        The scenario, numbered.
    loaded : Loaded
        Its loading.
    replication : int
        Which of the independent repetitions.
    compiled : bool, optional
        Whether to compile; by default where Numba is there and may.

    Raises
    ------
    NeedsReference
        When the run cannot be told as a log: it stands still, or a policy is at fault.
    """
    layout = Layout(plan, loaded, replication, policy_class(plan.scenario.guard.policy))
    store = _store(layout, compiled)
    keeping = Keeping(store, plan, loaded)
    run(store, keeping)
    find_fault(store, plan.scenario.run.duration_ns)
    return log_of(store, keeping, replication)


def prepare(plan: Plan, loaded: Loaded) -> Layout:
    """Return what runs without records have in common, for many replications of a scenario."""
    layout = Layout(plan, loaded, 0, policy_class(plan.scenario.guard.policy), keeps=False)
    layout.make()  # filled in here, before several threads share it
    return layout


def tally(
    plan: Plan,
    loaded: Loaded,
    replication: int = 0,
    *,
    compiled: bool | None = None,
    prepared: Layout | None = None,
) -> Tally:
    """Run one replication without keeping any record: its memory does not grow with the time that is simulated.

    Parameters
    ----------
    plan, loaded, replication, compiled
        As for `simulate`.
    prepared : Layout, optional
        What `prepare` returned for the same plan and loading; without it, tables are filled anew.

    Raises
    ------
    NeedsReference
        As `simulate` does.
    """
    store = _store((prepared or prepare(plan, loaded)).again(replication), compiled)
    run(store, Keeping(store, plan, loaded))
    find_fault(store, plan.scenario.run.duration_ns)
    state = store.state
    return Tally(
        replication=replication,
        start_ns=int(state.start_ns),
        end_ns=int(state.end_ns),
        executes=int(state.executes),
        clients={client.name: _client_tally(store, client) for client in plan.clients},
    )


def _client_tally(store: Store, client: ClientPlan) -> ClientTally:
    """Return the figures of one client."""
    user, bins = store.records("users")[client.number], store.records("bins")
    tallies = matrix(store.table("tallies", (client.number + 1) * len(TALLIED))).tolist()
    latencies = {}
    for place, measure in enumerate(TALLIED, start=client.number * len(TALLIED)):
        kept = dict(zip(TALLY_FIELDS, tallies[place], strict=True))
        counted = np.array(bins[place * BINS : (place + 1) * BINS], dtype=np.int64)
        latencies[measure] = Latency(**kept, bins=counted)
    return ClientTally(
        name=client.name,
        arrived=int(user.requests),
        done=int(user.done),
        dropped=int(user.dropped),
        refused=int(user.refused),
        calls=int(user.calls),
        device_ns=int(user.device_ns),
        guard_wait_ns=int(user.guard_wait_ns),
        device_wait_ns=int(user.device_wait_ns),
        tokens=latencies["ttft"].count + latencies["itl"].count,
        latencies=latencies,
    )


def _store(layout: Layout, compiled: bool | None) -> Store:
    """Return the tables of a run with what works on them."""
    from htpsim.kernel.compiled import CannotCompile, CompiledStore, can_compile

    if not layout.plan.clients or not (can_compile() if compiled is None else compiled):
        return Store(layout)
    try:
        return CompiledStore(layout)
    except CannotCompile as error:
        if layout.policy in POLICIES.values():
            if compiled is None and not layout.keeps:
                return Store(layout)  # as without Numba: only this engine tallies
            numba = f"Numba {version('numba')}"
            raise NeedsReference(f"{numba} does not compile the engine, which is slower therefore: {error}") from error
        raise NeedsReference(f"policy {layout.policy.name} cannot be compiled: {error}") from error


def run(store: Store, keeping: Keeping) -> None:
    """Go through the whole run, making room when the loop asks for it, and asking for copies that it needs."""
    store.call(OPEN)
    while True:
        try:
            stop = store.call(ADVANCE)
        except (Stopped, IndexError, ZeroDivisionError) as error:  # a user's policy; nothing else can
            raise NeedsReference("") from error
        if stop == ROOM:
            store.make_room()
        elif stop == THREADS:
            store.add_threads()
        elif stop == ASKS:
            keeping.ask()
        elif stop == FAULT:
            raise NeedsReference("")
        else:
            assert stop == ENDED
            return


def find_fault(store: Store, measured_ns: int) -> None:
    """Raise NeedsReference where the reference engine would find a deadlock, or may: it decides.

    Nothing is left to happen although a graphExecute is under way; or a guard grants nobody, although every slot of it
    is free, somebody has waited for half the measured time, and its policy waits for nothing or has never granted.
    """
    state = store.state
    in_flight = store.in_flight()
    if in_flight and state.due_ns == NO_TIME and not (state.queued or state.returning or state.wanted):
        raise NeedsReference("")
    lanes, shells = store.records("lanes"), store.records("shells")
    for number, accounts in enumerate(store.accounts()):
        lane = lanes[number]
        if lane.waiting and not lane.holders and (shells[number].timer_ns == NEVER or not shells[number].grants):
            oldest_ns = min(int(a.called_ns) for a in accounts if a.waiting)
            if state.end_ns - oldest_ns > measured_ns // 2:
                raise NeedsReference("")


def log_of(store: Store, keeping: Keeping, replication: int) -> RunLog:
    """Collect what the run leaves behind."""
    plan, loaded = keeping.plan, keeping.loaded
    state, scenario = store.state, plan.scenario
    memory, loads, copies, failed = keeping.rows()
    rows, open_rows = store.rows()
    executes = matrix(rows)[:, : len(Execute._fields)]
    cut_short(executes[len(executes) - open_rows :], store)
    requests = store.table("requests", int(state.requests))
    requests = requests[requests["arrived_ns"] <= state.end_ns]
    requests = requests[np.lexsort((requests["request"], requests["client"]))]
    slices = store.table("slices", int(state.slices))
    slices = slices[np.lexsort(tuple(slices[field] for field in ("kind", "end_ns", "start_ns", "execute")))]
    return RunLog(
        scenario=scenario,
        replication=replication,
        engine="kernel",
        ready_ns=loaded.ready_ns,
        start_ns=loaded.ready_ns + scenario.run.warmup_ns,
        end_ns=int(state.end_ns),
        clients=[c.name for c in plan.clients],
        graphs=plan.graphs,
        accounts=[a.name for a in plan.accounts],
        executes=Rows(executes),
        requests=Rows(matrix(requests)[:, : len(Request._fields)]),
        slices=Rows(matrix(slices)),
        memory=memory,
        loads=loads,
        copies=copies,
        failed=failed,
        notes=[*plan.notes, *keeping.waits()],
    )


def cut_short(rows: Any, store: Store) -> None:
    """Keep, of graphExecutes that the end of the run cut short, only the parts that have ended."""
    columns = {name: n for n, name in enumerate(Execute._fields)}
    parts = ("guard_overhead_ns", "rpc_ns", "device_wait_ns", "acquire_ns", "run_ns", "evict_ns", "restore_ns")
    jobs = store.records("jobs")
    for row, j in zip(rows, store.in_flight(), strict=True):
        row[columns["returned_ns"]] = row[columns["released_ns"]] = NEVER
        row[columns["rpc_return_ns"]] = 0
        if jobs[j].granted_ns == NEVER:
            row[columns["guard_wait_ns"]] = 0
        if jobs[j].submitted_ns == NEVER:
            row[columns["started_ns"]] = NEVER
            for part in (*parts, "evictions"):
                row[columns[part]] = 0
        if jobs[j].submitted_ns == NEVER or jobs[j].state != JOB_DONE:
            row[columns["finished_ns"]] = NEVER
