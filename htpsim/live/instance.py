"""The thread of one instance: load, then for each request ViT, prefill, decode, with the host's gaps in between.

What a request looks like, when it comes and how long somebody thinks before the next are the draws that the engines
make, so a simulated run of the same scenario and replication sees the same work.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

from htpsim.errors import CapacityError
from htpsim.live.calls import NO_TOKEN, Caller, LiveCall, Machine
from htpsim.live.faults import DESTROYED, GraphFailed, ThreadDied
from htpsim.live.machine import bind, sharpen_timers
from htpsim.live.stopping import Stopped
from htpsim.live.work import Stage, stages_of
from htpsim.results.columns import DONE, NEVER, STAGE_DECODE, STAGE_PREFILL, STAGE_VIT
from htpsim.sched.policy import NO_DEADLINE
from htpsim.sim.draws import Draws
from htpsim.sim.requests import Backlog, Dialog, Instants, RequestState, drawn_request
from htpsim.spec import Instance
from htpsim.spec.plan import NO_HANDLE, ClientPlan
from htpsim.units import NS_PER_S

_STAGES = {"vit": STAGE_VIT, "prefill": STAGE_PREFILL, "decode": STAGE_DECODE}


class LiveInstance(threading.Thread):
    """One VLM.

    Parameters
    ----------
    machine : Machine
        What all threads share.
    client : ClientPlan
        Whose thread it is.
    hosts : tuple of int
        The processors it may use.
    replication : int
        Which of the independent repetitions.
    """

    def __init__(self, machine: Machine, client: ClientPlan, hosts: tuple[int, ...], replication: int) -> None:
        super().__init__(name=client.name, daemon=True)
        assert isinstance(client.spec, Instance)
        self.machine = machine
        self.client = client
        self.spec = client.spec
        self.hosts = hosts
        self.draws = Draws(machine.plan.scenario.run.seed, replication, client.name)
        self.caller = Caller(machine, client)
        self.requests: list[RequestState] = []
        self.backlog = Backlog(self.spec.queue_limit, self.spec.drop)
        self.instants = Instants(self.spec.arrivals, self.draws)
        self.next_due_ns: int | None = None if self.spec.arrivals.kind == "closed" else self.instants.instant(0)
        self.calls: dict[Stage, list[LiveCall]] = {}
        self.loaded = threading.Event()
        """loading has ended, well or not"""
        self.go = threading.Event()
        """everybody has loaded"""
        self.failure = ""
        self.notes: list[str] = []
        self.fault: BaseException | None = None
        """what ended the thread that should not have"""
        self.dialog = Dialog(self.spec.dialog_turns)
        self.token_ns = NEVER

    def run(self) -> None:
        """Load, then serve until the run is stopped."""
        try:
            bind(self.hosts)
            sharpen_timers()
            self._load()
            self._serve()
        except Stopped:
            pass
        except (CapacityError, GraphFailed, ThreadDied) as error:
            self.failure = str(error)
        except BaseException as error:
            self.fault = error
            self.machine.stop.raise_()
        finally:
            self.loaded.set()

    def _load(self) -> None:
        """Obtain every model, and wait until everybody has."""
        loader = self.machine.loader
        copies = loader.obtain_all(self.client)
        if self.machine.faults.destroyed(self.client.name):
            loader.give_back(self.client, after_loading=True)
            raise CapacityError(DESTROYED)
        for plan, copy in zip(self.client.models, copies, strict=True):
            for stage, graphs in stages_of(plan):
                self.calls[stage] = [
                    LiveCall(self.machine, plan, copy, stage, position) for position in range(len(graphs))
                ]
        self.loaded.set()
        self.go.wait()
        self.machine.stop.check()

    def _serve(self) -> None:
        """Serve requests until the run ends, one after the other."""
        weights, guard = self.machine.weights, self.machine.plan.scenario.guard
        if guard.registration == "thread":
            weights.register(self.spec.name)
        else:
            weights.register(self.spec.stale_handle_of or NO_HANDLE)
        while True:
            request = self._next_request()
            if self._take_up(request):
                self._encode(request)
                with weights.during(self.spec.name):
                    self._answer(request)

    def _next_request(self) -> RequestState:
        """Wait for the next request: think in a closed loop, else until one has arrived."""
        stop, clock = self.machine.stop, self.machine.clock
        if self.spec.arrivals.kind == "closed":
            number = len(self.requests)
            think_ns = self.draws.value("think", number, self.spec.arrivals.think)
            stop.sleep(think_ns + (self.spec.arrivals.offset_ns if number == 0 else 0))
            return self._new_request(number, clock())
        self.arrive_until(clock())
        while not self.backlog.queue:
            if self.next_due_ns is None:
                stop.sleep(NS_PER_S)
                continue
            stop.sleep(self.next_due_ns - clock())
            self.arrive_until(max(clock(), self.next_due_ns), idle=True)
        return self.backlog.queue.popleft()

    def arrive_until(self, now_ns: int, *, idle: bool = False) -> None:
        """Take in what has arrived; the first of them is taken up at once where the thread waited for it."""
        while self.next_due_ns is not None and self.next_due_ns <= now_ns:
            number = len(self.requests)
            self.backlog.add(self._new_request(number, self.next_due_ns), taken_up=idle)
            idle = False
            following = self.instants.instant(number + 1)
            self.next_due_ns = None if following is None else max(following, self.next_due_ns)

    def _new_request(self, number: int, arrived_ns: int) -> RequestState:
        """Draw the shape of request `number`."""
        request = drawn_request(self.spec, self.draws, self.client.number, number, arrived_ns)
        self.requests.append(request)
        return request

    def _take_up(self, request: RequestState) -> bool:
        """Begin a request, or refuse one that the context has no room for."""
        context_tokens = self.spec.llm.context_tokens if self.spec.llm is not None else None
        return self.dialog.take_up(request, context_tokens, max(request.arrived_ns, self.machine.clock()))

    def _encode(self, request: RequestState) -> None:
        """Encode every image."""
        calls = self.calls.get("vit", [])
        if not calls or not request.images:
            return
        times = self._times("vit", calls, request, request.images)
        deadline_ns = self._ttft_deadline_ns(request)
        for image in range(request.images):
            request.vit_done_ns = self._step("vit", request, image, NO_TOKEN, times, deadline_ns)

    def _answer(self, request: RequestState) -> None:
        """Take the prompt in chunks of AR tokens, then yield token after token."""
        if not (self.spec.llm and request.output_tokens and request.prompt_tokens):
            request.state, request.done_ns = DONE, self.machine.clock()
            return
        chunks = -(-request.prompt_tokens // self.spec.llm.ar)
        times = self._times("prefill", self.calls["prefill"], request, chunks)
        deadline_ns = self._ttft_deadline_ns(request)
        for chunk in range(chunks):
            token = 0 if chunk == chunks - 1 else NO_TOKEN
            self._step("prefill", request, chunk, token, times, deadline_ns)
        times = self._times("decode", self.calls["decode"], request, request.output_tokens - 1)
        target_ns = self.spec.itl_deadline_ns
        for step in range(request.output_tokens - 1):
            if request.state == DONE:
                break
            deadline_ns = NO_DEADLINE if target_ns is None else self.token_ns + target_ns
            self._step("decode", request, step, step + 1, times, deadline_ns)

    def _ttft_deadline_ns(self, request: RequestState) -> int:
        target_ns = self.spec.ttft_deadline_ns
        return NO_DEADLINE if target_ns is None else request.arrived_ns + target_ns

    def _times(self, stage: Stage, calls: list[LiveCall], request: RequestState, steps: int) -> Iterator[int]:
        """Return what was drawn for each graph of a stage of a request."""
        graphs = [call.graph for call in calls]
        return (solo_ns for solo_ns, _ in self.draws.service(stage, request.number, steps, graphs))

    def _step(
        self, stage: Stage, request: RequestState, step: int, token: int, times: Iterator[int], deadline_ns: int
    ) -> int:
        """Execute the graphs of one step in order, with the host's gaps; note the token it yields."""
        execute, gap_ns, calls = self.caller.execute, self.spec.host_gap_graph_ns, self.calls[stage]
        pause = self.machine.stop.pause
        returned_ns, last = NEVER, len(calls) - 1
        for position, call in enumerate(calls):
            yields = token if position == last else NO_TOKEN
            returned_ns = execute(call, (request.number, _STAGES[stage], step, yields), next(times), deadline_ns)
            if gap_ns and position < last:
                pause(gap_ns)
        if token != NO_TOKEN:
            self._note_token(request, stage, step, token, returned_ns)
            if self.spec.host_gap_step_ns:
                pause(self.spec.host_gap_step_ns)
        return returned_ns

    def _note_token(self, request: RequestState, stage: Stage, step: int, token: int, at_ns: int) -> None:
        """Count a token that has just come; the request ends with its last, or where it is cancelled."""
        self.token_ns = at_ns
        request.tokens = token + 1
        if token == 0:
            request.first_token_ns = at_ns
        if self.machine.faults.strikes("cancel", self.spec.name, (request.number, _STAGES[stage], step)):
            self.notes.append(
                f"{self.spec.name}: request {request.number} was cancelled after {request.tokens} of "
                f"{request.output_tokens} tokens"
            )
            self.dialog.kv_tokens -= request.output_tokens - request.tokens
            request.output_tokens = request.tokens
        if request.tokens == request.output_tokens:
            request.state, request.done_ns = DONE, at_ns
