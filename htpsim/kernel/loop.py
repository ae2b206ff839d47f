"""The loop: always the pending action with the smallest (time, phase, index, number), until the horizon."""

from __future__ import annotations

from typing import Any

from htpsim.device.records import NOBODY
from htpsim.kernel.events import AFTER_READY, DEVICE, GAP, GRANTS, NO_TIME, RETURN, drop_first, host_place, place, push
from htpsim.kernel.executing import (
    alternate,
    dispatch,
    give_back,
    let_alternate,
    look,
    note_open_slices,
    send,
    submit,
    write_row,
)
from htpsim.kernel.fields import (
    ALTERNATES,
    ARRIVES,
    ASKS,
    BEGINS,
    CLOSED,
    ENDED,
    GOING,
    KEEPS,
    LOADS,
    READY,
    RESUMES,
    RETURNED,
    RINGS,
    ROOM,
    SENT,
    STEP,
    WEIGHS,
)
from htpsim.kernel.guarding import make_grant, ring, set_timer, weigh
from htpsim.kernel.other import (
    begin_job,
    begin_soon,
    other_arrives,
    other_resumes,
    start_waiting,
    step_returned,
    think,
)
from htpsim.kernel.requests import schedule_arrival
from htpsim.kernel.vlm import graph_returned, next_request, take_encoded, vlm_arrives, vlm_resumes


def open_run(w: Any) -> None:
    """Let the first arrivals, the policies' timers and the loading come."""
    for g in range(w.st.guards):
        for lane in range(w.guards[g].lane, w.guards[g].lane + w.guards[g].lanes):
            set_timer(w, lane, 0)
    if w.st.alternates:
        let_alternate(w)
    for u in range(w.st.loading):
        if w.users[u].arrivals != CLOSED:
            schedule_arrival(w, u, 0)
        push(w, 0, 0, LOADS, u)


def advance(w: Any) -> int:
    """Go on until the horizon, or until the loop needs something; return why it left."""
    st = w.st
    st.stop = GOING
    if st.starved_user != NOBODY:
        u = st.starved_user
        st.starved_user = NOBODY
        start_waiting(w, u)
    if st.goes_on != NOBODY:
        t = st.goes_on
        st.goes_on = NOBODY
        vlm_resumes(w, t)
    while st.stop == GOING:
        if (
            st.queued >= st.heap_room
            or st.rows >= st.row_room
            or st.requests >= st.request_room
            or st.slices >= st.slice_room
        ):
            st.stop = ROOM
        elif st.first_start != NOBODY and not (st.due_ns == st.now_ns and due_place(w) == 0):
            start_first(w)
        else:
            act(w)
    return int(st.stop)


def start_first(w: Any) -> None:
    """Begin the thread whose turn it is."""
    st = w.st
    t = st.first_start
    st.first_start = w.threads[t].next_start
    user = w.users[w.threads[t].user]
    if user.instance:
        next_request(w, t)
    elif user.arrivals == CLOSED:
        think(w, t)
    else:
        begin_job(w, t)


def act(w: Any) -> None:
    """Do what is next in the total order."""
    st = w.st
    first = w.heap[0]
    at_ns = first.at_ns if st.queued else NO_TIME
    if not (st.wanted or st.returning):
        if min(st.due_ns, at_ns) > st.end_ns:
            st.stop = ENDED
            return
        st.now_ns = min(st.due_ns, at_ns)
    queued = at_ns == st.now_ns
    if st.due_ns == st.now_ns:
        if queued and first.place < due_place(w):
            happen(w)
        else:
            look(w)
    elif st.returning:
        k = first_return(w)
        j = w.returns[k]
        if queued and first.place < host_place(w.jobs[j].user, RETURN, w.jobs[j].execute):
            happen(w)
        else:
            st.returning -= 1
            w.returns[k] = w.returns[st.returning]
            come_back(w, j)
    elif st.wanted and not (queued and first.place < GRANTS):
        take_turn(w)
    else:
        happen(w)


def due_place(w: Any) -> int:
    """Return the place of what the device does next."""
    job = w.jobs[w.st.due]
    return place(DEVICE, job.core, job.execute)


def first_return(w: Any) -> int:
    """Return which of the graphExecutes that return now is first, by client and number."""
    best = 0
    for k in range(1, w.st.returning):
        job, other = w.jobs[w.returns[k]], w.jobs[w.returns[best]]
        if job.user < other.user or (job.user == other.user and job.execute < other.execute):
            best = k
    return best


def take_turn(w: Any) -> None:
    """Let the first guard that may grant do so, or dispatch the first core that must be."""
    st = w.st
    turn = 0
    while not st.wanted >> turn & 1:
        turn += 1
    st.wanted &= ~(1 << turn)
    if turn < st.guards:
        j = make_grant(w, turn)
        if j != NOBODY:
            send(w, j, st.overhead_ns)
    else:
        dispatch(w, turn - st.guards)


def come_back(w: Any, j: int) -> None:
    """Give graphExecute `j` back to its thread, which goes on."""
    give_back(w, j)
    job = w.jobs[j]
    if job.instance:
        graph_returned(w, job.thread)
    else:
        step_returned(w, job.thread)


def happen(w: Any) -> None:
    """Let the first event of the heap happen."""
    kind, what = w.heap[0].kind, w.heap[0].what
    drop_first(w)
    if kind == RESUMES:
        if w.users[w.threads[what].user].instance:
            vlm_resumes(w, what)
        else:
            other_resumes(w, what)
    elif kind == ARRIVES:
        arrive(w, what)
    elif kind == SENT:
        submit(w, what)
    elif kind == RETURNED:
        come_back(w, what)
    elif kind == RINGS:
        ring(w, what)
    elif kind == ALTERNATES:
        alternate(w)
    else:
        prepare(w, kind, what)


def arrive(w: Any, u: int) -> None:
    """Take in a request, and let the next one come."""
    if w.users[u].instance:
        vlm_arrives(w, u)
    else:
        other_arrives(w, u)
    schedule_arrival(w, u, w.users[u].requests)


def prepare(w: Any, kind: int, what: int) -> None:
    """Do a step of loading, or what follows when everybody has loaded."""
    st = w.st
    if kind == LOADS:
        step = w.loads[what]
        for k in range(step.first, step.first + step.count):
            child = w.children[k]
            push(w, w.loads[child].at_ns, w.loads[child].place, LOADS, child)
        if step.user != NOBODY:
            push(w, st.now_ns, host_place(step.user, GAP, 0), READY, step.user)
            if st.changes:
                wait_for_others(w, step.user, step.failed)
            elif not step.failed:
                begin_work(w, step.user)
    elif kind == READY:
        st.loading -= 1
        if st.loading == 0:
            push(w, st.now_ns, AFTER_READY, WEIGHS, 0)
    elif kind == BEGINS:
        begin_work(w, what)
    elif kind == KEEPS:
        st.stop = ASKS
        st.asked = STEP
        st.asking = what
    else:
        weigh(w)


def wait_for_others(w: Any, u: int, failed: int) -> None:
    """Let a client that has loaded wait until all have, or failed to; the last lets all begin."""
    st = w.st
    st.to_load -= 1
    w.users[u].waits = 1 - failed
    if st.to_load == 0:
        for other in range(st.clients):
            if w.users[other].waits and other != u:
                push(w, st.now_ns, host_place(other, GAP, 0), BEGINS, other)
        if not failed:
            begin_work(w, u)


def begin_work(w: Any, u: int) -> None:
    """Let a client that has loaded begin: its requests, its closed loops, or what has arrived meanwhile."""
    user = w.users[u]
    user.loaded = 1
    if user.own:
        begin_soon(w, user.thread)
        take_encoded(w, user.answers)
    elif user.instance:
        next_request(w, user.thread)
    elif user.arrivals == CLOSED:
        for k in range(user.threads):
            begin_soon(w, user.thread + k)
    else:
        start_waiting(w, u)


def close_run(w: Any) -> None:
    """Write, at the end of a run, the stretches on a core that are still open."""
    note_open_slices(w)


def note_in_flight(w: Any, j: int) -> None:
    """Write the row of a graphExecute that the end of the run cuts short, as far as its record tells."""
    write_row(w, w.jobs[j], w.st.end_ns, w.st.end_ns)
    w.st.rows += 1
