"""One VLM's worker thread: load, then for each request ViT, prefill, decode, one graphExecute at a time."""

from __future__ import annotations

from collections.abc import Generator

from simpy.events import Event

from htpsim.errors import CapacityError
from htpsim.results.columns import DONE, NEVER, REFUSED, RUNNING, STAGE_DECODE, STAGE_PREFILL, STAGE_VIT
from htpsim.sched.policy import NO_DEADLINE
from htpsim.sim.clock import ARRIVAL, GAP, Clock, Instant, host_rank
from htpsim.sim.draws import Draws
from htpsim.sim.loader import Loader
from htpsim.sim.requests import Backlog, Pace, RequestState, Source
from htpsim.sim.runtime import NO_TOKEN, Place, Runtime
from htpsim.sim.uses import Hold, Use
from htpsim.spec import Instance
from htpsim.spec.plan import ClientPlan, GraphPlan

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
        self.gap_rank = host_rank(client.number, GAP, 0)
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
            self.env.schedule(idle, host_rank(self.client.number, ARRIVAL, number))

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
        self.env.schedule(self.ready, host_rank(self.client.number, GAP, 0))
        if self.failure:
            return
        by_plan = {id(use.plan): use for use in self.uses}
        self.vit = by_plan.get(id(self.client.vit))
        self.llm = by_plan.get(id(self.client.llm))
        while True:
            request = yield from self._next_request()
            yield from self._serve(request)

    def _gap(self, delay_ns: int) -> Instant:
        return self.env.pause(delay_ns, self.gap_rank)

    def _next_request(self) -> Generator[Event, None, RequestState]:
        """Wait for the next request: think in a closed loop, else until one is queued."""
        if self.spec.arrivals.kind == "closed":
            number = len(self.requests)
            self.pace.step(self.env.now)
            think_ns = self.draws.value("think", number, self.spec.arrivals.think)
            first_ns = self.spec.arrivals.offset_ns if number == 0 else 0
            yield self.env.pause(first_ns + think_ns, host_rank(self.client.number, ARRIVAL, number))
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
        graphs = use.plan.graphs
        width = graphs[-1].draw + 1
        uniforms = self.draws.service("vit", request.number, request.images, graphs)
        for image in range(request.images):
            place = (request.number, STAGE_VIT, image, NO_TOKEN)
            yield from self._step(use, graphs, place, uniforms[image * width : (image + 1) * width], hold)
        request.vit_done_ns = self.env.now

    def _prefill(self, request: RequestState, use: Use, hold: Hold | None) -> Thread:
        """Take the prompt in chunks of AR tokens; the last yields the first token."""
        model, graphs = use.plan.model, use.plan.prefill
        width = graphs[-1].draw + 1
        chunks = -(-request.prompt_tokens // model.ar)
        uniforms = self.draws.service("prefill", request.number, chunks, graphs)
        body = graphs[:-1] if model.lm_head_split else graphs
        for chunk in range(chunks - 1):
            place = (request.number, STAGE_PREFILL, chunk, NO_TOKEN)
            yield from self._step(use, body, place, uniforms[chunk * width : (chunk + 1) * width], hold)
        yield from self._step(
            use, graphs, (request.number, STAGE_PREFILL, chunks - 1, 0), uniforms[(chunks - 1) * width :], hold
        )

    def _decode(self, request: RequestState, use: Use, hold: Hold | None) -> Thread:
        """Yield the other tokens, one step each."""
        graphs, deadline_ns = use.plan.decode, self.spec.itl_deadline_ns
        width = graphs[-1].draw + 1
        uniforms = self.draws.service("decode", request.number, request.output_tokens - 1, graphs)
        for step in range(request.output_tokens - 1):
            if deadline_ns is not None:
                self.deadline_ns = self.token_ns + deadline_ns
            place = (request.number, STAGE_DECODE, step, step + 1)
            yield from self._step(use, graphs, place, uniforms[step * width : (step + 1) * width], hold)

    def _step(self, use: Use, graphs: list[GraphPlan], place: Place, uniforms: list[int], hold: Hold | None) -> Thread:
        """Execute the graphs of one step in order, with the host's gaps; note the token it yields."""
        execute, gap_ns, deadline_ns = self.runtime.execute, self.spec.host_gap_graph_ns, self.deadline_ns
        request, stage, step, token = place
        silent = (request, stage, step, NO_TOKEN)
        for graph in graphs[:-1]:
            yield execute(use, graph, silent, uniforms[graph.draw], hold, deadline_ns)
            if gap_ns:
                yield self._gap(gap_ns)
        last = graphs[-1]
        across_gap = None
        if token != NO_TOKEN and self.spec.host_gap_step_ns and self.runtime.gap_inside and hold is None:
            across_gap = Hold()
        yield execute(use, last, place, uniforms[last.draw], hold or across_gap, deadline_ns)
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
