"""Requests on their way: what is known of each, the queue before a thread, and how they arrive."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from simpy.events import Event

from htpsim.errors import ScenarioError
from htpsim.results.columns import DROPPED, NEVER, QUEUED, REFUSED, RUNNING
from htpsim.results.log import Row
from htpsim.sim.clock import ARRIVAL, Clock, host_place
from htpsim.sim.draws import Draws
from htpsim.spec import Arrivals, Distribution, Instance, exponential


@dataclass(slots=True)
class RequestState:
    """One request or job; becomes a row of ``Request``."""

    client: int
    number: int
    arrived_ns: int
    state: int = QUEUED
    begun_ns: int = NEVER
    vit_done_ns: int = NEVER
    first_token_ns: int = NEVER
    done_ns: int = NEVER
    images: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0
    tokens: int = 0
    turn: int = 0
    kv_tokens: int = 0
    """tokens of its dialog in the KV cache when it was taken up"""

    def row(self) -> Row:
        """Return it in the order of ``Request``."""
        return (
            self.client, self.number, self.state, self.arrived_ns, self.begun_ns, self.vit_done_ns, self.first_token_ns,
            self.done_ns, self.images, self.prompt_tokens, self.output_tokens, self.tokens, self.turn,
        )  # fmt: skip


def drawn_request(spec: Instance, draws: Draws, client: int, number: int, arrived_ns: int) -> RequestState:
    """Return request `number` of an instance in the shape that is drawn for it."""
    request = RequestState(client, number, arrived_ns)
    request.images = draws.value("images", number, spec.images) if spec.vit else 0
    if spec.llm is not None:
        per_image = spec.vit.tokens_per_image if spec.vit else 0
        request.prompt_tokens = draws.value("text_tokens", number, spec.text_tokens) + request.images * per_image
        request.output_tokens = draws.value("output_tokens", number, spec.output_tokens)
    return request


class Dialog:
    """What an instance keeps from one request to the next: the KV cache of a dialog, for as many turns as it has."""

    def __init__(self, turns: int) -> None:
        self.turns = turns
        self.turn = 0
        self.kv_tokens = 0

    def take_up(self, request: RequestState, context_tokens: int | None, now_ns: int) -> bool:
        """Begin a request, or refuse one that the context has no room for; None is for an instance without LLM."""
        request.begun_ns = now_ns
        request.turn = self.turn
        if self.turn == 0:
            self.kv_tokens = 0
        self.turn = (self.turn + 1) % self.turns
        if context_tokens is not None:
            needed = self.kv_tokens + request.prompt_tokens + request.output_tokens
            if needed > context_tokens:
                request.state, request.done_ns, self.turn = REFUSED, now_ns, 0
                return False
            request.kv_tokens, self.kv_tokens = self.kv_tokens, needed
        request.state = RUNNING
        return True


class Pace:
    """Refuses a closed loop that never lets time pass: it would go round for ever within one instant."""

    LIMIT = 10_000

    def __init__(self, client: str, threads: int = 1) -> None:
        self.client = client
        self.limit = self.LIMIT + threads
        self._at_ns = NEVER
        self._count = 0

    def step(self, now_ns: int) -> None:
        """Count a request that begins now.

        Raises
        ------
        ScenarioError
            When too many have begun in this instant.
        """
        self._count = self._count + 1 if now_ns == self._at_ns else 1
        self._at_ns = now_ns
        if self._count > self.limit:
            raise ScenarioError(
                f"{self.client}: got {self._count} requests of a closed loop that took no time, at {now_ns} ns, "
                "expected a think time or work that lets time pass"
            )


class Backlog:
    """Requests that wait for a thread, and what a full queue drops."""

    def __init__(self, limit: int | None, drop: str) -> None:
        self.limit = limit
        self.drop = drop
        self.queue: deque[RequestState] = deque()

    def add(self, request: RequestState, *, taken_up: bool) -> None:
        """Queue a request, or drop it or the oldest where the queue is full; one taken up at once does not wait."""
        if not taken_up and self.limit is not None and len(self.queue) >= self.limit:
            if self.drop == "newest" or not self.queue:
                request.state = DROPPED
                return
            self.queue.popleft().state = DROPPED
        self.queue.append(request)


class Instants:
    """When the requests of an open arrival process arrive; to be asked for one after the other."""

    def __init__(self, arrivals: Arrivals, draws: Draws) -> None:
        self.arrivals = arrivals
        self.draws = draws
        self._clock_ns = arrivals.offset_ns
        self._between = exponential(arrivals.period_ns)
        self._jitter = Distribution(kind="uniform", high=arrivals.jitter_ns)

    def instant(self, number: int) -> int | None:
        """Return when request `number` arrives, or None after the last of a replay."""
        kind = self.arrivals
        if kind.kind == "replay":
            return kind.offset_ns + kind.times_ns[number] if number < len(kind.times_ns) else None
        if kind.kind == "poisson":
            self._clock_ns += self.draws.value("arrival", number, self._between)
            return self._clock_ns
        jitter_ns = self.draws.value("jitter", number, self._jitter)
        return kind.offset_ns + number * kind.period_ns + jitter_ns


class Source:
    """An open arrival process: calls `arrive` with the number of each request, in order."""

    def __init__(
        self, env: Clock, client: int, arrivals: Arrivals, draws: Draws, arrive: Callable[[int], None]
    ) -> None:
        self.env = env
        self.client = client
        self.instants = Instants(arrivals, draws)
        self.arrive = arrive
        self._schedule(0)

    def _schedule(self, number: int) -> None:
        due_ns = self.instants.instant(number)
        if due_ns is None:
            return
        # Jitter beyond a period would let a frame overtake the one before; it then comes right after it.
        delay_ns = max(0, due_ns - self.env.now)
        event = self.env.at(delay_ns, host_place(self.client, ARRIVAL, number), self._arrived)
        event.number = number  # type: ignore[attr-defined]

    def _arrived(self, event: Event) -> None:
        number: int = event.number  # type: ignore[attr-defined]
        self.arrive(number)
        self._schedule(number + 1)
