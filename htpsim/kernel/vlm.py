"""One VLM's worker thread: for each request ViT, prefill, decode, one graphExecute at a time.

The thread is a state machine: what it does next stands in its record. ``begin`` starts a step of one or more graphs,
``graph_returned`` goes on to the next graph, and after the last of them ``end_step`` to the next step or request.
"""

from __future__ import annotations

from typing import Any

from htpsim.device.records import NEVER, NOBODY
from htpsim.kernel.draws import drawn, drawn_entry
from htpsim.kernel.events import ARRIVAL, GAP, host_place, push
from htpsim.kernel.executing import REQUEST_BITS, execute, release_hold
from htpsim.kernel.fields import (
    CALLING,
    CLOSED,
    HANDING,
    HOSTING,
    IDLE,
    LINED_UP,
    RESUMES,
    STEPPED,
    SWITCHING,
    TAKING,
    THINKING,
)
from htpsim.kernel.requests import dequeue, finish, join_queue, keep_pace, new_request
from htpsim.kernel.switching import ask_turn, leave_copy, make_ready, note_wait, settle_copy
from htpsim.kernel.tallying import ITL, TTFT, VIT, forget, tally
from htpsim.results.columns import REFUSED, RUNNING, STAGE_DECODE, STAGE_PREFILL, STAGE_VIT
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
    elif phase == HANDING:
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
        if phase == THINKING:
            r = new_request(w, thread.user, w.st.now_ns)
        else:
            r = dequeue(w, w.users[thread.user])
        if not serve(w, t, r):
            next_request(w, t)


def serve(w: Any, t: int, r: int) -> bool:
    """Begin a request; tell whether it has anything to execute."""
    st, thread, request = w.st, w.threads[t], w.requests[r]
    user = w.users[thread.user]
    request.begun_ns = st.now_ns
    request.turn = thread.turn
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
        begin(w, thread, thread.vit, thread.vits, 0, NEVER, thread.graphs)
        return True
    return go_over(w, thread, request)


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
    if thread.copy == NOBODY or ask_turn(w, thread):
        begin_prefill(w, thread)
    return True


def begin_prefill(w: Any, thread: Any) -> None:
    """Take the prompt in chunks of AR tokens."""
    ar = w.users[thread.user].ar
    thread.stage = STAGE_PREFILL
    thread.chunks = (w.requests[thread.request].prompt_tokens + ar - 1) // ar
    thread.graphs = NOBODY
    begin_chunk(w, thread, 0)


def begin_chunk(w: Any, thread: Any, chunk: int) -> None:
    """Begin a chunk: the last has the LM head, where that is a graph of its own, and yields the first token."""
    user, before = w.users[thread.user], w.requests[thread.request].kv_tokens
    first, tier = thread.prefill, 0
    if user.prefill_tiers > 1:
        tier = tier_of(w, user.prefill_tier, user.prefill_tiers, before + user.ar * (chunk + 1))
        first += thread.prefills * tier
    if chunk == thread.chunks - 1:
        begin(w, thread, first, thread.prefills, chunk, 0, tier)
    else:
        begin(w, thread, first, thread.prefills - user.lm_head_split, chunk, NEVER, tier)


def begin_token(w: Any, thread: Any, request: Any, step: int) -> None:
    """Begin the step of another token."""
    user = w.users[thread.user]
    if user.itl_ns != NEVER:
        thread.deadline_ns = thread.token_ns + user.itl_ns
    first, tier = thread.decode, 0
    if user.decode_tiers > 1:
        tokens = request.kv_tokens + request.prompt_tokens + step + 1
        tier = tier_of(w, user.decode_tier, user.decode_tiers, tokens)
        first += thread.decodes * tier
    thread.stage = STAGE_DECODE
    begin(w, thread, first, thread.decodes, step, step + 1, user.prefill_tiers + tier)


def tier_of(w: Any, first: int, count: int, tokens: int) -> int:
    """Return which of several context lengths is the least that holds so many tokens; the last takes whatever comes."""
    tier = 0
    while tier < count - 1 and w.values[first + tier] < tokens:
        tier += 1
    return tier


def begin(w: Any, thread: Any, first: int, count: int, step: int, token: int, graphs: int) -> None:
    """Begin a step of `count` graphs, which are of set number `graphs` where their copy is switched."""
    thread.first = first
    thread.last = count - 1
    thread.k = 0
    thread.step = step
    thread.token = token
    ready = True
    if thread.copy != NOBODY and thread.graphs != graphs:
        ready = make_ready(w, thread, graphs)
    if ready:
        call_next(w, thread)


def call_next(w: Any, thread: Any) -> None:
    """Call the next graph of a step; the last before a gap inside the guard keeps its slot."""
    user = w.users[thread.user]
    if (
        w.st.gap_inside
        and not w.st.whole_request
        and thread.k == thread.last
        and thread.token != NEVER
        and user.gap_step_ns
    ):
        thread.holds = 1
    first = w.requests[thread.request].request << REQUEST_BITS
    if thread.stage == STAGE_DECODE:
        execute(w, thread, thread.first + thread.k, user.decode_key, first + thread.step * user.decode_width)
    elif thread.stage == STAGE_PREFILL:
        execute(w, thread, thread.first + thread.k, user.prefill_key, first + thread.step * user.prefill_width)
    elif user.vit_on_host:
        job = w.jobs[thread.first + thread.k]
        entry = drawn_entry(user.vit_key, first + thread.step * user.vit_width + job.draw, job.value_count)
        thread.phase = HOSTING
        at_ns = w.st.now_ns + w.values[job.first_value + entry]
        push(w, at_ns, host_place(thread.user, GAP, thread.second), RESUMES, thread.number)
    else:
        execute(w, thread, thread.first + thread.k, user.vit_key, first + thread.step * user.vit_width)


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
        gap_ns = 0
        if thread.token != NEVER:
            note_token(w, thread)
            gap_ns = user.gap_step_ns
        if gap_ns == 0:
            end_step(w, t)
            return
        thread.phase = STEPPED
    push(w, w.st.now_ns + gap_ns, host_place(thread.user, GAP, thread.second), RESUMES, t)


def note_token(w: Any, thread: Any) -> None:
    """Count a token that has just come."""
    request, now_ns = w.requests[thread.request], w.st.now_ns
    if not w.st.keeps:
        if thread.token == 0:
            tally(w, thread.user, TTFT, now_ns - request.arrived_ns)
        else:
            tally(w, thread.user, ITL, now_ns - thread.token_ns)
    thread.token_ns = now_ns
    request.tokens = thread.token + 1
    if thread.token == 0:
        request.first_token_ns = now_ns
        thread.deadline_ns = NO_DEADLINE
    if request.tokens == request.output_tokens:
        finish(w, thread.user, request)


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
                tally(w, thread.user, VIT, w.st.now_ns - request.begun_ns)
            going = go_over(w, thread, request)
    elif thread.stage == STAGE_PREFILL and step < thread.chunks:
        begin_chunk(w, thread, step)
    elif thread.token + 1 < request.output_tokens:
        begin_token(w, thread, request, thread.token)
    else:
        if thread.copy != NOBODY:
            leave_copy(w, thread)
        end_request(w, thread, request)
        going = False
    if not going:
        if w.users[thread.user].own:
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
