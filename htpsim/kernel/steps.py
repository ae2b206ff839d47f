"""The steps of a request: an image, a chunk of the prompt, a token; each is one or more graphExecutes in order."""

from __future__ import annotations

from typing import Any

from htpsim.device.records import NEVER, NOBODY
from htpsim.kernel.draws import drawn_entry, expect
from htpsim.kernel.events import GAP, host_place, push
from htpsim.kernel.executing import REQUEST_BITS, execute
from htpsim.kernel.fields import HOSTING, RESUMES
from htpsim.kernel.requests import finish
from htpsim.kernel.switching import ask_turn, make_ready
from htpsim.kernel.tallying import ITL, TTFT, tally
from htpsim.results.columns import STAGE_DECODE, STAGE_PREFILL, STAGE_VIT
from htpsim.sched.policy import NO_DEADLINE


def take_turn_at_copy(w: Any, thread: Any) -> None:
    """Begin with the prompt, once it is the thread's turn."""
    if thread.copy == NOBODY or ask_turn(w, thread):
        begin_prefill(w, thread)


def begin_prefill(w: Any, thread: Any) -> None:
    """Take the prompt in chunks of AR tokens."""
    ar = w.users[thread.user].ar
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
    j = thread.first + thread.k
    index = w.requests[thread.request].request << REQUEST_BITS
    if thread.stage == STAGE_DECODE:
        key, width = user.decode_key, user.decode_width
    elif thread.stage == STAGE_PREFILL:
        key, width = user.prefill_key, user.prefill_width
    else:
        key, width = user.vit_key, user.vit_width
    index += thread.step * width
    if user.vit_on_host and thread.stage == STAGE_VIT:
        run_on_host(w, thread, w.jobs[j], key, index)
        return
    execute(w, thread, j, key, index)
    if thread.k < thread.last:
        expect(w, j + 1, key, index)
    else:
        expect(w, thread.first, key, index + width)


def run_on_host(w: Any, thread: Any, job: Any, key: int, index: int) -> None:
    """Let a graph run on the host."""
    entry = drawn_entry(key, index + job.draw, job.value_count)
    thread.phase = HOSTING
    at_ns = w.st.now_ns + w.values[job.first_value + entry]
    push(w, at_ns, host_place(thread.user, GAP, thread.second), RESUMES, thread.number)


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
