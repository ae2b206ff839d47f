"""Any other client of the HTP: jobs that execute its graphs in order, several of them in flight if it may."""

from __future__ import annotations

from typing import Any

from htpsim.device.records import NEVER, NOBODY
from htpsim.kernel.draws import drawn
from htpsim.kernel.events import ARRIVAL, GAP, host_place, push
from htpsim.kernel.executing import REQUEST_BITS, execute, release_hold
from htpsim.kernel.fields import CLOSED, RESUMES, STEPPED, THINKING, THREADS
from htpsim.kernel.requests import dequeue, drop, enqueue, finish, keep_pace, new_request
from htpsim.kernel.tallying import JOB, forget, tally
from htpsim.results.columns import RUNNING, STAGE_JOB
from htpsim.sched.policy import NO_DEADLINE


def other_arrives(w: Any, u: int) -> None:
    """Start a job, let it wait, or drop it."""
    user = w.users[u]
    r = new_request(w, u, w.st.now_ns)
    if user.drops and user.limit and user.in_flight + user.queue_count >= user.limit:
        drop(w, user, r)
        return
    enqueue(w, user, r)
    start_waiting(w, u)


def start_waiting(w: Any, u: int) -> None:
    """Start as many waiting jobs as may be in flight; where threads run out the loop leaves, and comes back here."""
    st, user = w.st, w.users[u]
    while user.loaded and user.queue_count and (user.limit == 0 or user.in_flight < user.limit):
        t = user.free
        if t == NOBODY:
            st.stop = THREADS
            st.starved_user = u
            return
        user.free = w.threads[t].next_free
        user.in_flight += 1
        w.threads[t].request = dequeue(w, user)
        begin_soon(w, t)


def begin_soon(w: Any, t: int) -> None:
    """Let a thread begin before anything else happens, after those that were to begin already."""
    st = w.st
    w.threads[t].next_start = NOBODY
    if st.first_start == NOBODY:
        st.first_start = t
    else:
        w.threads[st.last_start].next_start = t
    st.last_start = t


def think(w: Any, t: int) -> None:
    """Let a closed loop wait for its next job."""
    thread, now_ns = w.threads[t], w.st.now_ns
    user = w.users[thread.user]
    number = user.requests
    keep_pace(w, user)
    think_ns = thread.offset_ns + drawn(w, user.think_key, number, user.think_first, user.think_count)
    thread.offset_ns = 0
    thread.request = new_request(w, thread.user, now_ns + think_ns)
    thread.phase = THINKING
    push(w, now_ns + think_ns, host_place(thread.user, ARRIVAL, number), RESUMES, t)


def begin_job(w: Any, t: int) -> None:
    """Begin the job of a thread."""
    thread = w.threads[t]
    request, user = w.requests[thread.request], w.users[thread.user]
    request.state = RUNNING
    request.begun_ns = w.st.now_ns
    thread.stage = STAGE_JOB
    thread.token = NEVER
    thread.step = 0
    thread.deadline_ns = NO_DEADLINE
    if user.ttft_ns != NEVER:
        thread.deadline_ns = request.arrived_ns + user.ttft_ns
    thread.holds = w.st.whole_request
    call_step(w, thread)


def call_step(w: Any, thread: Any) -> None:
    """Call the graph of the present step."""
    user = w.users[thread.user]
    if user.gap_graph_ns and w.st.gap_inside:
        thread.holds = 1
    number = w.requests[thread.request].request
    execute(w, thread, thread.first + thread.step, user.vit_key, number << REQUEST_BITS)


def step_returned(w: Any, t: int) -> None:
    """Note the end of a job with its last graph, and spend the gap that follows each."""
    thread, st = w.threads[t], w.st
    if thread.step == thread.last:
        request = w.requests[thread.request]
        finish(w, thread.user, request)
        if not st.keeps:
            tally(w, thread.user, JOB, st.now_ns - request.arrived_ns)
    gap_ns = w.users[thread.user].gap_graph_ns
    if gap_ns:
        thread.phase = STEPPED
        push(w, st.now_ns + gap_ns, host_place(thread.user, GAP, thread.executes), RESUMES, t)
    else:
        end_job_step(w, t)


def other_resumes(w: Any, t: int) -> None:
    """Let a thread go on after it thought or spent a gap."""
    thread = w.threads[t]
    if thread.phase == THINKING:
        begin_job(w, t)
    else:
        if thread.holds and not w.st.whole_request:
            release_hold(w, thread)
        end_job_step(w, t)


def end_job_step(w: Any, t: int) -> None:
    """Call the next graph of the job, or end it and go on with the next."""
    thread = w.threads[t]
    if thread.step < thread.last:
        thread.step += 1
        call_step(w, thread)
        return
    if w.st.whole_request:
        release_hold(w, thread)
    user = w.users[thread.user]
    forget(w, thread.request)
    if user.arrivals == CLOSED:
        think(w, t)
    else:
        user.in_flight -= 1
        thread.next_free = user.free
        user.free = t
        start_waiting(w, thread.user)
