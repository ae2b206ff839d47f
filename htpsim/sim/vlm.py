"""One VLM's worker thread: load, then for each request ViT, prefill, decode, one graphExecute at a time.

An instance whose ViT has a thread of its own takes requests up on that thread, and hands each over, encoded, to the
thread of the LLM. It is one request ahead at most: the next is not begun before the LLM has taken the one before.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

from simpy.events import Event

from htpsim.errors import CapacityError
from htpsim.results.columns import DONE, NEVER, RUNNING, STAGE_DECODE, STAGE_PREFILL, STAGE_VIT
from htpsim.sched.policy import NO_DEADLINE
from htpsim.sim.clock import ARRIVAL, GAP, Clock, Instant, host_place
from htpsim.sim.draws import Draws
from htpsim.sim.loader import Loader
from htpsim.sim.requests import Backlog, Dialog, Pace, RequestState, Source, drawn_request
from htpsim.sim.runtime import NO_TOKEN, Place, Runtime
from htpsim.sim.turns import TurnTaker
from htpsim.sim.uses import Call, Hold, Use
from htpsim.spec import Instance
from htpsim.spec.plan import ClientPlan
from htpsim.spec.tiers import tier_runs

Thread = Generator[Event, None, None]

LLM_THREAD, VIT_THREAD, HANDED_OVER, TAKEN = range(4)
"""Where in an instant a client's gaps end and its threads hand over, in this order."""
THREADS = 4


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
        self.places = [host_place(client.number, GAP, thread) for thread in range(THREADS)]
        """of the ends of gaps on each thread, and of what one does for the other"""
        self.uses: list[Use] = []
        """what was loaded"""
        self.vit: Use | None = None
        self.llm: Use | None = None
        self.pace = Pace(f"instances.{client.name}")
        self.dialog = Dialog(self.spec.dialog_turns)
        self.in_dialog = False
        """its LLM holds the KV cache of a dialog that goes on"""
        self.token_ns = NEVER
        """when its latest token came"""
        inside = runtime.plan.scenario.guard.covers == "switches"
        self.turns = TurnTaker(env, client.name, self.places[LLM_THREAD], inside=inside)
        self.encoded: RequestState | None = None
        """the request that waits for the LLM, where the ViT has a thread of its own"""
        self.taker: Instant | None = None
        """the thread of the LLM, where it waits for a request"""
        self.giver: Instant | None = None
        """the thread of the ViT, since it handed one over"""
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
        request = drawn_request(self.spec, self.draws, self.client.number, number, self.env.now)
        self.requests.append(request)
        return request

    def _run(self) -> Thread:
        """Load, then serve for ever."""
        try:
            self.uses = yield from self.loader.obtain_all(self.client)
        except CapacityError as error:
            self.failure = str(error)
        self.env.happen(self.ready, 0, host_place(self.client.number, GAP, 0))
        yield from self.loader.residency.all_loaded(self.places[LLM_THREAD])
        if self.failure:
            return
        by_plan = {id(use.plan): use for use in self.uses}
        self.vit = by_plan.get(id(self.client.vit))
        self.llm = by_plan.get(id(self.client.llm))
        if self.spec.vit_thread == "own" and self.vit is not None and self.llm is not None:
            self.env.process(self._until_no_room(self._encode_ahead(), VIT_THREAD))
            yield from self._until_no_room(self._answer_encoded(), LLM_THREAD)
        else:
            yield from self._until_no_room(self._serve(), LLM_THREAD)

    def _until_no_room(self, work: Thread, thread: int) -> Thread:
        """Work until a model that was unloaded finds no room again; then the instance has failed."""
        try:
            yield from work
        except CapacityError as error:
            self.failure = self.failure or str(error)
            self.loader.residency.forget(self.places[thread])

    def _serve(self) -> Thread:
        """Serve requests for ever, one after the other."""
        while True:
            request = yield from self._next_request()
            if self._take_up(request):
                hold = Hold() if self.runtime.whole_request else None
                yield from self._encode(request, hold, LLM_THREAD)
                yield from self._answer(request, hold)

    def _answer_encoded(self) -> Thread:
        """Answer what the ViT's thread has encoded."""
        while True:
            request = yield from self._take_encoded()
            yield from self._answer(request, None)

    def _encode_ahead(self) -> Thread:
        """Take requests up and encode them on a thread of the ViT's own."""
        while True:
            request = yield from self._next_request()
            if not self._take_up(request):
                continue
            yield from self._encode(request, None, VIT_THREAD)
            self.encoded = request
            if self.taker is not None:
                taker, self.taker = self.taker, None
                self.env.happen(taker, 0, self.places[HANDED_OVER])
            self.giver = Instant(self.env)
            yield self.giver

    def _take_encoded(self) -> Generator[Event, None, RequestState]:
        """Wait for an encoded request, and let the ViT's thread go on."""
        if self.encoded is None:
            self.taker = Instant(self.env)
            yield self.taker
        request, self.encoded = self.encoded, None
        assert request is not None
        assert self.giver is not None
        self.env.happen(self.giver, 0, self.places[TAKEN])
        return request

    def _gap(self, delay_ns: int, thread: int) -> Instant:
        return self.env.pause(delay_ns, self.places[thread])

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

    def _take_up(self, request: RequestState) -> bool:
        """Begin a request, or refuse one that the context has no room for."""
        context_tokens = self.llm.plan.model.context_tokens if self.llm is not None else None
        return self.dialog.take_up(request, context_tokens, self.env.now)

    def _answer(self, request: RequestState, hold: Hold | None) -> Thread:
        """Run a request that is encoded, to its last token."""
        if self.llm is not None and request.output_tokens and request.prompt_tokens:
            if not self.in_dialog:
                yield from self.loader.residency.hold(self.client, self.llm, self.places[LLM_THREAD])
            yield from self.turns.take(self.llm)
            yield from self._prefill(request, self.llm, hold)
            yield from self._decode(request, self.llm, hold)
            self.turns.leave(self.llm)
            self.in_dialog = (request.turn + 1) % self.spec.dialog_turns > 0
            if not self.in_dialog:
                self.loader.residency.let_go(self.client, self.llm, self.places[LLM_THREAD])
        if hold is not None:
            self.runtime.release(hold)
        if request.state == RUNNING:
            request.state = DONE
            request.done_ns = self.env.now

    def _ttft_deadline_ns(self, request: RequestState) -> int:
        target_ns = self.spec.ttft_deadline_ns
        return NO_DEADLINE if target_ns is None else request.arrived_ns + target_ns

    def _encode(self, request: RequestState, hold: Hold | None, thread: int) -> Thread:
        """Encode every image."""
        if self.vit is None or not request.images:
            return
        use, deadline_ns = self.vit, self._ttft_deadline_ns(request)
        yield from self.loader.residency.hold(self.client, use, self.places[thread])
        times = iter(self.draws.service("vit", request.number, request.images, use.plan.graphs))
        for image in range(request.images):
            if use.plan.on_host:
                for _ in use.plan.graphs:
                    yield self._gap(next(times)[0], thread)
            else:
                place = (request.number, STAGE_VIT, image, NO_TOKEN)
                yield from self._step(use.graphs, place, times, hold, deadline_ns, thread)
        request.vit_done_ns = self.env.now
        self.loader.residency.let_go(self.client, use, self.places[thread])

    def _prefill(self, request: RequestState, use: Use, hold: Hold | None) -> Thread:
        """Take the prompt in chunks of AR tokens; the last yields the first token."""
        plan, deadline_ns = use.plan, self._ttft_deadline_ns(request)
        split, width = plan.model.lm_head_split, plan.model.ar
        last = -(-request.prompt_tokens // width) - 1
        runs = tier_runs(plan.prefill_tiers, request.kv_tokens, width, last + 1)
        for tier, first, steps in runs:
            calls, graphs = use.prefill_sets[tier], [call.graph for call in use.prefill_sets[tier]]
            times = iter(self.draws.service("prefill", request.number, steps, graphs, first))
            yield from self.turns.switch(use, tier)
            for chunk in range(first, first + steps):
                place = (request.number, STAGE_PREFILL, chunk, 0 if chunk == last else NO_TOKEN)
                whole = chunk == last or not split
                yield from self._step(calls if whole else calls[:-1], place, times, hold, deadline_ns)
                if not whole:
                    next(times)  # what would have been the LM head's

    def _decode(self, request: RequestState, use: Use, hold: Hold | None) -> Thread:
        """Yield the other tokens, one step each."""
        target_ns, deadline_ns = self.spec.itl_deadline_ns, NO_DEADLINE
        tokens = request.kv_tokens + request.prompt_tokens
        for tier, first, steps in tier_runs(use.plan.decode_tiers, tokens, 1, request.output_tokens - 1):
            calls, graphs = use.decode_sets[tier], [call.graph for call in use.decode_sets[tier]]
            times = iter(self.draws.service("decode", request.number, steps, graphs, first))
            yield from self.turns.switch(use, len(use.prefill_sets) + tier)
            for step in range(first, first + steps):
                if target_ns is not None:
                    deadline_ns = self.token_ns + target_ns
                place = (request.number, STAGE_DECODE, step, step + 1)
                yield from self._step(calls, place, times, hold, deadline_ns)

    def _step(
        self,
        calls: list[Call],
        place: Place,
        times: Iterator[tuple[int, int]],
        hold: Hold | None,
        deadline_ns: int,
        thread: int = LLM_THREAD,
    ) -> Thread:
        """Execute the graphs of one step in order, with the host's gaps; note the token it yields."""
        execute, gap_ns = self.runtime.execute, self.spec.host_gap_graph_ns
        request, stage, step, token = place
        switch_ns = self.turns.pending_ns if thread == LLM_THREAD else 0
        silent = place if token == NO_TOKEN else (request, stage, step, NO_TOKEN)
        for call in calls[:-1]:
            yield execute(call, silent, next(times), hold, deadline_ns, switch_ns)
            if switch_ns:
                switch_ns = 0
                self.turns.settle(call.use)
            if gap_ns:
                yield self._gap(gap_ns, thread)
        across_gap = None
        if token != NO_TOKEN and self.spec.host_gap_step_ns and self.runtime.gap_inside and hold is None:
            across_gap = Hold()
        yield execute(calls[-1], place, next(times), hold or across_gap, deadline_ns, switch_ns)
        if switch_ns:
            self.turns.settle(calls[-1].use)
        if token == NO_TOKEN:
            if self.spec.host_gap_stage_ns:
                yield self._gap(self.spec.host_gap_stage_ns, thread)
            return
        self._note_token(self.requests[request], token)
        if self.spec.host_gap_step_ns:
            yield self._gap(self.spec.host_gap_step_ns, thread)
            if across_gap is not None:
                self.runtime.release(across_gap)

    def _note_token(self, request: RequestState, token: int) -> None:
        """Count a token that has just come."""
        self.token_ns = self.env.now
        request.tokens = token + 1
        if token == 0:
            request.first_token_ns = self.token_ns
        if request.tokens == request.output_tokens:
            request.state = DONE
            request.done_ns = self.token_ns
