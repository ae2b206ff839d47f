"""One VLM's worker thread: load, then for each request ViT, prefill, decode, one graphExecute at a time."""

from __future__ import annotations

from collections.abc import Generator, Iterator

from simpy.events import Event

from htpsim.errors import CapacityError
from htpsim.results.columns import DONE, NEVER, REFUSED, RUNNING, STAGE_DECODE, STAGE_PREFILL, STAGE_VIT
from htpsim.sched.policy import NO_DEADLINE
from htpsim.sim.clock import ARRIVAL, GAP, Clock, Instant, host_place
from htpsim.sim.draws import Draws
from htpsim.sim.loader import Loader
from htpsim.sim.requests import Backlog, Pace, RequestState, Source
from htpsim.sim.runtime import NO_TOKEN, Place, Runtime
from htpsim.sim.uses import Call, Hold, Use
from htpsim.spec import Instance
from htpsim.spec.plan import ClientPlan

Thread = Generator[Event, None, None]


class VlmThread:
    """The thread of one instance, with its queue and its KV cache."""

    def __init__(self, env: Clock, runtime: Runtime, loader: Loader, client: ClientPlan, draws: Draws) -> None:
        assert isinstance(client.spec, Instance)
        self.env = env
        self.runtime = runtime
        self.loader = loader
        self.client = client
        self.spec = client.spec
        self.draws = draws
        self.requests: list[RequestState] = []
        self.backlog = Backlog(client.spec.queue_limit, client.spec.drop)
        self.idle: Instant | None = None
        self.gap_place = host_place(client.number, GAP, 0)
        self.uses: list[Use] = []
        """what was loaded"""
        self.vit: Use | None = None
        self.llm: Use | None = None
        self.pace = Pace(f"instances.{client.name}")
        self.kv_tokens = 0
        self.turn = 0
        self.token_ns = NEVER
        """when its latest token came"""
        self.deadline_ns = NO_DEADLINE
        """by when it wants the graph it calls next"""
        self.ready = Instant(env)
        """happens when loading has ended, well or not"""
        self.failure = ""
        if self.spec.arrivals.kind != "closed":
            Source(env, client.number, self.spec.arrivals, draws, self._arrive)
        self.process = env.process(self._run())

    def _arrive(self, number: int) -> None:
        """Take in a request of an open arrival process."""
        request = self._new_request(number)
        self.backlog.add(request, taken_up=self.idle is not None)
        if self.idle is not None:
            idle, self.idle = self.idle, None
            self.env.happen(idle, 0, host_place(self.client.number, ARRIVAL, number))

    def _new_request(self, number: int) -> RequestState:
        """Draw the shape of request `number`."""
        draws, spec = self.draws, self.spec
        request = RequestState(self.client.number, number, self.env.now)
        request.images = draws.value("images", number, spec.images) if spec.vit else 0
        if spec.llm is not None:
            per_image = spec.vit.tokens_per_image if spec.vit else 0
            text = draws.value("text_tokens", number, spec.text_tokens)
            request.prompt_tokens = text + request.images * per_image
            request.output_tokens = draws.value("output_tokens", number, spec.output_tokens)
        self.requests.append(request)
        return request

    def _run(self) -> Thread:
        """Load, then serve for ever."""
        try:
            self.uses = yield from self.loader.obtain_all(self.client)
        except CapacityError as error:
            self.failure = str(error)
        self.env.happen(self.ready, 0, host_place(self.client.number, GAP, 0))
        if self.failure:
            return
        by_plan = {id(use.plan): use for use in self.uses}
        self.vit = by_plan.get(id(self.client.vit))
        self.llm = by_plan.get(id(self.client.llm))
        while True:
            request = yield from self._next_request()
            yield from self._serve(request)

    def _gap(self, delay_ns: int) -> Instant:
        return self.env.pause(delay_ns, self.gap_place)

    def _next_request(self) -> Generator[Event, None, RequestState]:
        """Wait for the next request: think in a closed loop, else until one is queued."""
        if self.spec.arrivals.kind == "closed":
            number = len(self.requests)
            self.pace.step(self.env.now)
            think_ns = self.draws.value("think", number, self.spec.arrivals.think)
            first_ns = self.spec.arrivals.offset_ns if number == 0 else 0
            yield self.env.pause(first_ns + think_ns, host_place(self.client.number, ARRIVAL, number))
            return self._new_request(number)
        if not self.backlog.queue:
            self.idle = Instant(self.env)
            yield self.idle
        return self.backlog.queue.popleft()

    def _serve(self, request: RequestState) -> Thread:
        """Run one request from its first ViT graph to its last token."""
        request.begun_ns = self.env.now
        request.turn = self.turn
        if self.turn == 0:
            self.kv_tokens = 0
        self.turn = (self.turn + 1) % self.spec.dialog_turns
        if self.llm is not None:
            needed = self.kv_tokens + request.prompt_tokens + request.output_tokens
            if needed > self.llm.plan.model.context_tokens:
                request.state = REFUSED
                request.done_ns = self.env.now
                self.turn = 0
                return
            self.kv_tokens = needed
        request.state = RUNNING
        target_ns = self.spec.ttft_deadline_ns
        self.deadline_ns = NO_DEADLINE if target_ns is None else request.arrived_ns + target_ns
        hold = Hold() if self.runtime.whole_request else None
        if self.vit is not None and request.images:
            yield from self._vit(request, self.vit, hold)
        if self.llm is not None and request.output_tokens and request.prompt_tokens:
            yield from self._prefill(request, self.llm, hold)
            yield from self._decode(request, self.llm, hold)
        if hold is not None:
            self.runtime.release(hold)
        if request.state == RUNNING:
            request.state = DONE
            request.done_ns = self.env.now

    def _vit(self, request: RequestState, use: Use, hold: Hold | None) -> Thread:
        """Encode every image."""
        times = iter(self.draws.service("vit", request.number, request.images, use.plan.graphs))
        for image in range(request.images):
            yield from self._step(use.graphs, (request.number, STAGE_VIT, image, NO_TOKEN), times, hold)
        request.vit_done_ns = self.env.now

    def _prefill(self, request: RequestState, use: Use, hold: Hold | None) -> Thread:
        """Take the prompt in chunks of AR tokens; the last yields the first token."""
        model = use.plan.model
        last = -(-request.prompt_tokens // model.ar) - 1
        times = iter(self.draws.service("prefill", request.number, last + 1, use.plan.prefill))
        body = use.prefill[:-1] if model.lm_head_split else use.prefill
        for chunk in range(last):
            yield from self._step(body, (request.number, STAGE_PREFILL, chunk, NO_TOKEN), times, hold)
            if model.lm_head_split:
                next(times)  # what would have been the LM head's
        yield from self._step(use.prefill, (request.number, STAGE_PREFILL, last, 0), times, hold)

    def _decode(self, request: RequestState, use: Use, hold: Hold | None) -> Thread:
        """Yield the other tokens, one step each."""
        target_ns = self.spec.itl_deadline_ns
        times = iter(self.draws.service("decode", request.number, request.output_tokens - 1, use.plan.decode))
        for token in range(1, request.output_tokens):
            if target_ns is not None:
                self.deadline_ns = self.token_ns + target_ns
            yield from self._step(use.decode, (request.number, STAGE_DECODE, token - 1, token), times, hold)

    def _step(self, calls: list[Call], place: Place, times: Iterator[tuple[int, int]], hold: Hold | None) -> Thread:
        """Execute the graphs of one step in order, with the host's gaps; note the token it yields."""
        execute, gap_ns, deadline_ns = self.runtime.execute, self.spec.host_gap_graph_ns, self.deadline_ns
        request, stage, step, token = place
        silent = place if token == NO_TOKEN else (request, stage, step, NO_TOKEN)
        for call in calls[:-1]:
            yield execute(call, silent, next(times), hold, deadline_ns)
            if gap_ns:
                yield self._gap(gap_ns)
        across_gap = None
        if token != NO_TOKEN and self.spec.host_gap_step_ns and self.runtime.gap_inside and hold is None:
            across_gap = Hold()
        yield execute(calls[-1], place, next(times), hold or across_gap, deadline_ns)
        if token == NO_TOKEN:
            return
        self._note_token(self.requests[request], token)
        if self.spec.host_gap_step_ns:
            yield self._gap(self.spec.host_gap_step_ns)
            if across_gap is not None:
                self.runtime.release(across_gap)

    def _note_token(self, request: RequestState, token: int) -> None:
        """Count a token that has just come."""
        self.token_ns = self.env.now
        request.tokens = token + 1
        if token == 0:
            request.first_token_ns = self.token_ns
            self.deadline_ns = NO_DEADLINE
        if request.tokens == request.output_tokens:
            request.state = DONE
            request.done_ns = self.token_ns
