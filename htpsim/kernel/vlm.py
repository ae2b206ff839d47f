"""One VLM's worker thread: for each request ViT, prefill, decode, one graphExecute at a time.

The thread is a state machine: what it does next stands in its record. ``begin`` starts a step of one or more graphs,
``graph_returned`` goes on to the next graph, and after the last of them ``end_step`` to the next step or request.
"""

from __future__ import annotations

from typing import Any

from htpsim.device.records import NEVER, NOBODY
from htpsim.kernel.draws import drawn
from htpsim.kernel.events import ARRIVAL, GAP, host_place, push
from htpsim.kernel.executing import release_hold
from htpsim.kernel.fields import (
    ASKS,
    CALLING,
    CLOSED,
    GOING,
    HANDING,
    HELD,
    HOLD_LLM,
    HOLD_VIT,
    HOSTING,
    IDLE,
    LEAVE_LLM,
    LEAVE_VIT,
    LEFT,
    LINED_UP,
    RESUMES,
    STEPPED,
    SWITCHING,
    TAKING,
    THINKING,
)
from htpsim.kernel.requests import dequeue, finish, join_queue, keep_pace, new_request
from htpsim.kernel.steps import begin, begin_chunk, begin_prefill, begin_token, call_next, note_token, take_turn_at_copy
from htpsim.kernel.switching import leave_copy, note_wait, settle_copy
from htpsim.kernel.tallying import VIT, forget, tally
from htpsim.results.columns import REFUSED, RUNNING, STAGE_PREFILL, STAGE_VIT
from htpsim.sched.policy import NO_DEADLINE

HANDED_OVER, TAKEN = 2, 3
"""Where in an instant the threads of one client hand over, after the ends of their gaps."""


def next_request(w: Any, t: int) -> None:
    """Wait for the next request: think in a closed loop, else until one is queued; one that takes no time is passed."""
    st, thread = w.st, w.threads[t]
    user = w.users[thread.user]
    going = True
    while going:
        going = False
        if user.arrivals == CLOSED:
            keep_pace(w, user)
            number = user.requests
            think_ns = drawn(w, user.think_key, number, user.think_first, user.think_count)
            if number == 0:
                think_ns += user.offset_ns
            thread.phase = THINKING
            push(w, st.now_ns + think_ns, host_place(thread.user, ARRIVAL, number), RESUMES, t)
        elif user.queue_count == 0:
            thread.idle = 1
            thread.phase = IDLE
        else:
            going = not serve(w, t, dequeue(w, user))


def vlm_resumes(w: Any, t: int) -> None:
    """Let a thread go on after it thought, idled, or spent a gap."""
    thread = w.threads[t]
    phase = thread.phase
    if phase == CALLING:
        call_next(w, thread)
    elif phase == HOSTING:
        if thread.k < thread.last:
            thread.k += 1
            call_next(w, thread)
        else:
            end_step(w, t)
    elif phase == STEPPED:
        if thread.holds and not w.st.whole_request:
            release_hold(w, thread)
        end_step(w, t)
    elif phase == THINKING:
        if not serve(w, t, new_request(w, thread.user, w.st.now_ns)):
            next_request(w, t)
    elif phase == IDLE:
        if not serve(w, t, dequeue(w, w.users[thread.user])):
            next_request(w, t)
    else:
        has_waited(w, t)


def has_waited(w: Any, t: int) -> None:
    """Let a thread go on that waited for the other of its client, for a copy, or for what is done to one."""
    thread = w.threads[t]
    phase = thread.phase
    if phase == HANDING:
        next_request(w, t)
    elif phase == TAKING:
        take_encoded(w, t)
    elif phase == LINED_UP:
        note_wait(w, thread)
        begin_prefill(w, thread)
    elif phase == SWITCHING:
        settle_copy(w, thread)
        call_next(w, thread)
    else:
        keeper_answers(w, t)


def serve(w: Any, t: int, r: int) -> bool:
    """Begin a request; tell whether it has anything to execute."""
    st, thread, request = w.st, w.threads[t], w.requests[r]
    user = w.users[thread.user]
    request.begun_ns = st.now_ns
    request.turn = thread.turn
    thread.vit_ns = st.now_ns
    thread.request = r
    if thread.turn == 0:
        thread.kv_tokens = 0
    thread.turn = (thread.turn + 1) % user.turns
    if thread.prefills:
        needed = thread.kv_tokens + request.prompt_tokens + request.output_tokens
        if needed > user.context_tokens:
            request.state = REFUSED
            request.done_ns = st.now_ns
            thread.turn = 0
            user.refused += 1
            forget(w, r)
            return False
        request.kv_tokens = thread.kv_tokens
        thread.kv_tokens = needed
    request.state = RUNNING
    set_deadline(user, thread, request)
    thread.holds = st.whole_request
    if thread.vits and request.images:
        thread.stage = STAGE_VIT
        if st.changes:
            ask_keeper(w, thread, HOLD_VIT, HELD)
        else:
            begin(w, thread, thread.vit, thread.vits, 0, NEVER, thread.graphs)
        return True
    return go_over(w, thread, request)


def ask_keeper(w: Any, thread: Any, asked: int, then: int) -> None:
    """Leave the loop, to ask for a copy or to let go of it; the thread goes on when that is done."""
    st = w.st
    thread.phase = then
    if st.stop == GOING:
        st.stop = ASKS
        st.asked = asked
        st.asking = thread.number


def keeper_answers(w: Any, t: int) -> None:
    """Go on with a copy that is held now, or without one that is not any more."""
    thread = w.threads[t]
    request = w.requests[thread.request]
    if thread.phase == HELD:
        if thread.stage == STAGE_VIT:
            if not w.users[thread.user].vit_on_host:
                thread.vit_ns = w.st.now_ns
            begin(w, thread, thread.vit, thread.vits, 0, NEVER, thread.graphs)
        else:
            take_turn_at_copy(w, thread)
    elif thread.stage == STAGE_VIT:
        if not go_over(w, thread, request):
            next_request(w, t)
    else:
        end_request(w, thread, request)
        begin_next(w, t)


def set_deadline(user: Any, thread: Any, request: Any) -> None:
    """Let what is called from now on be wanted in time for the first token."""
    thread.deadline_ns = NO_DEADLINE
    if user.ttft_ns != NEVER:
        thread.deadline_ns = request.arrived_ns + user.ttft_ns


def go_over(w: Any, thread: Any, request: Any) -> bool:
    """Answer an encoded request, or hand it over to the thread that does; tell whether anything is left to do."""
    if w.users[thread.user].own:
        hand_over(w, thread)
        return True
    return answer(w, thread, request)


def hand_over(w: Any, thread: Any) -> None:
    """Let the LLM's thread have an encoded request, and wait until it took it."""
    user = w.users[thread.user]
    user.encoded = thread.request
    thread.phase = HANDING
    if user.taker:
        user.taker = 0
        push(w, w.st.now_ns, host_place(thread.user, GAP, HANDED_OVER), RESUMES, user.answers)


def take_encoded(w: Any, t: int) -> None:
    """Answer what the ViT's thread has encoded, or wait for it; let that thread go on."""
    thread = w.threads[t]
    user = w.users[thread.user]
    going = True
    while going:
        going = False
        if user.encoded == NOBODY:
            user.taker = 1
            thread.phase = TAKING
        else:
            thread.request = user.encoded
            user.encoded = NOBODY
            push(w, w.st.now_ns, host_place(thread.user, GAP, TAKEN), RESUMES, user.thread)
            request = w.requests[thread.request]
            set_deadline(user, thread, request)
            going = not answer(w, thread, request)


def answer(w: Any, thread: Any, request: Any) -> bool:
    """Run a request that is encoded, once it is the thread's turn; tell whether there is anything to execute."""
    if not (thread.prefills and request.output_tokens and request.prompt_tokens):
        end_request(w, thread, request)
        return False
    thread.stage = STAGE_PREFILL
    if w.st.changes and not thread.in_dialog:
        ask_keeper(w, thread, HOLD_LLM, HELD)
    else:
        take_turn_at_copy(w, thread)
    return True


def graph_returned(w: Any, t: int) -> None:
    """Go on with the next graph of the step, after a gap if there is one, or end the step."""
    thread = w.threads[t]
    user = w.users[thread.user]
    if thread.switch_ns:
        settle_copy(w, thread)
    gap_ns = user.gap_graph_ns
    if thread.k < thread.last:
        thread.k += 1
        if gap_ns == 0:
            call_next(w, thread)
            return
        thread.phase = CALLING
    else:
        gap_ns = user.gap_stage_ns
        if thread.token != NEVER:
            note_token(w, thread)
            gap_ns = user.gap_step_ns
        if gap_ns == 0:
            end_step(w, t)
            return
        thread.phase = STEPPED
    push(w, w.st.now_ns + gap_ns, host_place(thread.user, GAP, thread.second), RESUMES, t)


def end_step(w: Any, t: int) -> None:
    """Begin the next step of the request, or the next request."""
    thread = w.threads[t]
    request = w.requests[thread.request]
    step = thread.step + 1
    going = True
    if thread.stage == STAGE_VIT:
        if step < request.images:
            begin(w, thread, thread.vit, thread.vits, step, NEVER, thread.graphs)
        else:
            request.vit_done_ns = w.st.now_ns
            if not w.st.keeps:
                tally(w, thread.user, VIT, w.st.now_ns - thread.vit_ns)
            if w.st.changes:
                ask_keeper(w, thread, LEAVE_VIT, LEFT)
            else:
                going = go_over(w, thread, request)
    elif thread.stage == STAGE_PREFILL and step < thread.chunks:
        begin_chunk(w, thread, step)
    elif thread.token + 1 < request.output_tokens:
        begin_token(w, thread, request, thread.token)
    else:
        if thread.copy != NOBODY:
            leave_copy(w, thread)
        going = w.st.changes and keeps_dialog(w, thread, request)
        if not going:
            end_request(w, thread, request)
    if not going:
        begin_next(w, t)


def keeps_dialog(w: Any, thread: Any, request: Any) -> bool:
    """Let go of the LLM unless its dialog goes on; tell whether that is under way."""
    thread.in_dialog = int((request.turn + 1) % w.users[thread.user].turns > 0)
    if not thread.in_dialog:
        ask_keeper(w, thread, LEAVE_LLM, LEFT)
    return not thread.in_dialog


def begin_next(w: Any, t: int) -> None:
    """Go on with the next request."""
    if w.users[w.threads[t].user].own:
        take_encoded(w, t)
    else:
        next_request(w, t)


def end_request(w: Any, thread: Any, request: Any) -> None:
    """Give back what was held for the whole request, and note its end unless its last token did."""
    if w.st.whole_request:
        release_hold(w, thread)
    if request.state == RUNNING:
        finish(w, thread.user, request)
    forget(w, thread.request)


def vlm_arrives(w: Any, u: int) -> None:
    """Take in a request of an open arrival process, and wake the thread where it idles."""
    user = w.users[u]
    thread = w.threads[user.thread]
    number = user.requests
    join_queue(w, user, new_request(w, u, w.st.now_ns), thread.idle)
    if thread.idle:
        thread.idle = 0
        push(w, w.st.now_ns, host_place(u, ARRIVAL, number), RESUMES, user.thread)
