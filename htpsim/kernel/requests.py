"""Requests on their way: their shape, the queue before a thread, how they arrive."""

from __future__ import annotations

from typing import Any

from htpsim.device.records import NEVER, NOBODY
from htpsim.kernel.draws import drawn
from htpsim.kernel.events import ARRIVAL, host_place, push
from htpsim.kernel.fields import ARRIVES, FAULT, POISSON, REPLAY
from htpsim.kernel.tallying import forget
from htpsim.results.columns import DONE, DROPPED, QUEUED


def new_request(w: Any, u: int, arrived_ns: int) -> int:
    """Take note of the client's next request; return its position."""
    st, user = w.st, w.users[u]
    r: int = st.free_request
    if r == NOBODY:
        r = st.requests
        st.requests += 1
    else:
        st.free_request = w.requests[r].next
    request = w.requests[r]
    number = user.requests
    user.requests += 1
    request.client = u
    request.request = number
    request.state = QUEUED
    request.arrived_ns = arrived_ns
    request.begun_ns = NEVER
    request.vit_done_ns = NEVER
    request.first_token_ns = NEVER
    request.done_ns = NEVER
    request.images = 0
    request.prompt_tokens = 0
    request.output_tokens = 0
    request.tokens = 0
    request.turn = 0
    request.next = NOBODY
    if user.has_vit:
        request.images = drawn(w, user.images_key, number, user.images_first, user.images_count)
    if user.has_llm:
        text = drawn(w, user.text_key, number, user.text_first, user.text_count)
        request.prompt_tokens = text + request.images * user.tokens_per_image
        request.output_tokens = drawn(w, user.output_key, number, user.output_first, user.output_count)
    return r


def enqueue(w: Any, user: Any, r: int) -> None:
    """Put a request behind those that wait."""
    if user.queue == NOBODY:
        user.queue = r
    else:
        w.requests[user.queue_end].next = r
    user.queue_end = r
    user.queue_count += 1


def dequeue(w: Any, user: Any) -> int:
    """Return the request that waited longest, taken out."""
    r: int = user.queue
    user.queue = w.requests[r].next
    user.queue_count -= 1
    return r


def drop(w: Any, user: Any, r: int) -> None:
    """Drop a request."""
    w.requests[r].state = DROPPED
    user.dropped += 1
    forget(w, r)


def finish(w: Any, u: int, request: Any) -> None:
    """Note that a request is done."""
    request.state = DONE
    request.done_ns = w.st.now_ns
    w.users[u].done += 1


def join_queue(w: Any, user: Any, r: int, taken_up: int) -> None:
    """Queue a request, or drop it or the oldest where the queue is full; one taken up at once does not wait."""
    if not taken_up and user.queue_limit != NOBODY and user.queue_count >= user.queue_limit:
        if user.drop_newest or user.queue_count == 0:
            drop(w, user, r)
            return
        drop(w, user, dequeue(w, user))
    enqueue(w, user, r)


def schedule_arrival(w: Any, u: int, number: int) -> None:
    """Let request `number` of an open arrival process come, if there is one."""
    user = w.users[u]
    if user.arrivals == REPLAY:
        if number >= user.times:
            return
        due_ns = user.offset_ns + w.values[user.first_time + number]
    elif user.arrivals == POISSON:
        user.clock_ns += drawn(w, user.between_key, number, user.between_first, user.between_count)
        due_ns = user.clock_ns
    else:
        jitter_ns = drawn(w, user.between_key, number, user.between_first, user.between_count)
        due_ns = user.offset_ns + number * user.period_ns + jitter_ns
    # Jitter beyond a period would let a frame overtake the one before; it then comes right after it.
    push(w, max(w.st.now_ns, due_ns), host_place(u, ARRIVAL, number), ARRIVES, u)


def keep_pace(w: Any, user: Any) -> None:
    """Stop where a closed loop never lets time pass: the reference engine has the words."""
    if user.pace_at_ns == w.st.now_ns:
        user.pace += 1
    else:
        user.pace = 1
    user.pace_at_ns = w.st.now_ns
    if user.pace > user.pace_limit:
        w.st.stop = FAULT
