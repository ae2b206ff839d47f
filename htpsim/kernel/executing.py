"""One graphExecute from the call to the return, and the row it leaves: the runtime above the device.

called -> (guard) -> granted -> (overhead, RPC) -> submitted -> (device) -> finished -> (RPC) -> returned
"""

from __future__ import annotations

from typing import Any

from htpsim.device.host import return_ns
from htpsim.device.rates import set_bandwidth
from htpsim.device.records import (
    ACQUIRING,
    DONE,
    EVICTING,
    NEVER,
    NOBODY,
    RESTORING,
    RUNNING,
    WORK_SCALE,
)
from htpsim.device.rules import dispatch as dispatch_core
from htpsim.device.rules import look as look_at
from htpsim.device.rules import next_due
from htpsim.device.rules import submit as submit_job
from htpsim.kernel.draws import drawn_entry
from htpsim.kernel.events import DEVICE, GAP, NO_TIME, RETURN, host_place, place, push
from htpsim.kernel.fields import ALTERNATES, RETURNED, SENT
from htpsim.kernel.guarding import call_guard, release_guard
from htpsim.kernel.tallying import tally_call

REQUEST_BITS = 24


def execute(w: Any, thread: Any, j: int, key: int, index: int) -> None:
    """Call graphExecute: job `j`, the time of which is draw `index` of the stream `key` of its step."""
    st, job = w.st, w.jobs[j]
    job.execute = thread.executes = st.executes
    st.executes += 1
    job.request = w.requests[thread.request].request
    job.stage = thread.stage
    job.step = thread.step
    job.token = thread.token if thread.k == thread.last else NEVER  # a step's last graph yields its token
    entry = drawn_entry(key, index + job.draw, job.value_count)
    job.solo_ns = w.values[job.first_value + entry]
    if w.dev.shares:
        job.demand = w.values[job.first_demand + entry]
    job.work = job.solo_ns << WORK_SCALE
    job.called_ns = st.now_ns
    job.granted_ns = NEVER
    job.submitted_ns = NEVER
    job.held = thread.holds
    job.switch_ns = thread.switch_ns
    job.charged_weight = job.weight
    job.charged_account = job.account
    job.in_flight = 1
    if job.lane == NOBODY:
        send(w, j, 0)
    elif job.held and thread.hold_call != NOBODY:
        job.charged_weight = w.jobs[thread.hold_call].weight
        job.charged_account = w.jobs[thread.hold_call].account
        send(w, j, 0)
    else:
        job.deadline_ns = thread.deadline_ns
        call_guard(w, j)


def send(w: Any, j: int, overhead_ns: int) -> None:
    """Spend the guard's overhead, a switch and the RPC to the DSP, then submit."""
    st, job = w.st, w.jobs[j]
    job.granted_ns = st.now_ns
    job.overhead_ns = overhead_ns
    if job.held and job.lane != NOBODY and w.threads[job.thread].hold_call == NOBODY:
        w.threads[job.thread].hold_call = j
    delay_ns = overhead_ns + st.rpc_call_ns + job.switch_ns
    if delay_ns == 0:
        submit(w, j)
    else:
        push(w, st.now_ns + delay_ns, host_place(job.user, GAP, job.execute), SENT, j)


def submit(w: Any, j: int) -> None:
    """Hand a graphExecute to the device."""
    st, dev = w.st, w.dev
    w.jobs[j].submitted_ns = st.now_ns
    submit_job(dev, w.cores, w.contexts, w.jobs, w.clients, j, st.now_ns)
    st.wanted |= dev.stale << st.guards


def look(w: Any) -> None:
    """Move on the graphExecute that is due; one that is done then returns, at once or after the RPC."""
    st, dev, j = w.st, w.dev, w.st.due
    job = w.jobs[j]
    now_ns = st.now_ns
    state = job.state
    since_ns = job.since_ns
    look_at(dev, w.cores, w.contexts, w.jobs, w.clients, w.holders, j, now_ns)
    if job.evictions and now_ns > since_ns and not job.yield_due:
        note_slice(w, job.execute, state, since_ns, now_ns)
    st.wanted |= dev.stale << st.guards
    if job.timer_ns == NEVER and not dev.tied:
        st.due_ns = NO_TIME  # in this instant, which has a dispatch to come
    else:
        set_due(w)
    if job.state == DONE:
        if st.late_returns:
            push(w, now_ns + return_ns(dev, job), host_place(job.user, RETURN, job.execute), RETURNED, j)
        else:
            w.returns[st.returning] = j
            st.returning += 1


def set_due(w: Any) -> None:
    """Find whose timer is due next."""
    st = w.st
    st.due = next_due(w.dev, w.jobs, w.holders)
    if st.due == NOBODY:
        st.due_ns = NO_TIME
    else:
        st.due_ns = w.jobs[st.due].timer_ns


def let_alternate(w: Any) -> None:
    """Let what shares DRAM with the cores come or go after its time, and so on for ever."""
    st = w.st
    push(w, st.now_ns + st.next_ns, place(DEVICE, w.dev.cores + 1, 0), ALTERNATES, 0)


def alternate(w: Any) -> None:
    """Let what shares DRAM with the cores come or go."""
    st = w.st
    bandwidth, waited_ns = st.next_bandwidth, st.next_ns
    st.next_bandwidth = w.dev.bandwidth
    st.next_ns = st.after_next_ns
    st.after_next_ns = waited_ns
    let_alternate(w)
    set_bandwidth(w.dev, w.jobs, w.holders, bandwidth, st.now_ns)
    set_due(w)


def dispatch(w: Any, core: int) -> None:
    """Bring a core's running set up to date."""
    st, dev = w.st, w.dev
    if not dev.stale >> core & 1:
        return
    dispatch_core(dev, w.cores, w.jobs, w.clients, w.holders, w.evicted, core, st.now_ns)
    for k in range(dev.evicted):
        job = w.jobs[w.evicted[k]]
        run_from_ns = job.started_ns + job.acquired_ns
        if job.acquired_ns and job.ran_from_ns == run_from_ns:
            note_slice(w, job.execute, ACQUIRING, job.started_ns, run_from_ns)
        note_slice(w, job.execute, RUNNING, job.ran_from_ns, st.now_ns)
    dev.evicted = 0
    set_due(w)


def note_slice(w: Any, execute: int, state: int, start_ns: int, end_ns: int) -> None:
    """Record a stretch on a core."""
    st = w.st
    if st.keeps:
        stretch = w.slices[st.slices]
        st.slices += 1
        stretch.execute = execute
        stretch.kind = 3 if state == RESTORING else state - ACQUIRING
        stretch.start_ns = start_ns
        stretch.end_ns = end_ns


def note_open_slices(w: Any) -> None:
    """Record, at the end of the run, the stretches still open."""
    for k in range(w.dev.holders):
        job = w.jobs[w.holders[k]]
        if (job.evictions or job.state == EVICTING) and w.st.end_ns > job.since_ns:
            note_slice(w, job.execute, job.state, job.since_ns, w.st.end_ns)


def give_back(w: Any, j: int) -> None:
    """Write the row and release the guard of a graphExecute that returns."""
    st, job = w.st, w.jobs[j]
    job.in_flight = 0
    released_ns = st.now_ns
    if job.lane != NOBODY:
        cost_ns = job.acquired_ns + job.run_ns + job.evict_ns + job.restore_ns
        if job.held:
            w.threads[job.thread].hold_cost_ns += cost_ns
            released_ns = NEVER
        else:
            release_guard(w, job.lane, job.slot, cost_ns)
    if st.keeps:
        write_row(w, job, st.now_ns, released_ns)
        if released_ns == NEVER:
            w.rows[st.rows].held_before = w.threads[job.thread].hold_row
            w.threads[job.thread].hold_row = st.rows
        st.rows += 1
    else:
        tally_call(w, job)


def release_hold(w: Any, thread: Any) -> None:
    """Release a slot that was held across returns, and note when in the rows concerned."""
    thread.holds = 0
    if thread.hold_call != NOBODY:
        job = w.jobs[thread.hold_call]
        thread.hold_call = NOBODY
        release_guard(w, job.lane, job.slot, thread.hold_cost_ns)
        thread.hold_cost_ns = 0
        n = thread.hold_row
        while n != NOBODY:
            w.rows[n].released_ns = w.st.now_ns
            n = w.rows[n].held_before
        thread.hold_row = NOBODY


def write_row(w: Any, job: Any, returned_ns: int, released_ns: int) -> None:
    """Write the next row, in the order of ``Execute``; it counts when ``rows`` is advanced."""
    row = w.rows[w.st.rows]
    row.execute = job.execute
    row.client = job.user
    row.request = job.request
    row.stage = job.stage
    row.step = job.step
    row.graph = job.graph
    row.copy = job.context
    row.core = job.core
    row.path = job.path
    row.level = job.level
    row.weight = job.charged_weight
    row.account = job.charged_account
    row.token = job.token
    row.called_ns = job.called_ns
    row.granted_ns = job.granted_ns
    row.submitted_ns = job.submitted_ns
    row.started_ns = job.started_ns
    row.finished_ns = job.finished_ns
    row.returned_ns = returned_ns
    row.released_ns = released_ns
    row.guard_wait_ns = job.granted_ns - job.called_ns
    row.guard_overhead_ns = job.overhead_ns
    row.rpc_ns = job.submitted_ns - job.granted_ns - job.overhead_ns
    row.device_wait_ns = job.wait_ns
    row.acquire_ns = job.acquired_ns
    row.run_ns = job.run_ns
    row.evict_ns = job.evict_ns
    row.restore_ns = job.restore_ns
    row.rpc_return_ns = returned_ns - job.finished_ns
    row.evictions = job.evictions
    row.solo_ns = job.solo_ns
