"""Any other client of the HTP: jobs that execute its graphs in order, several of them in flight if it may."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator

from simpy.events import Event

from htpsim.errors import CapacityError
from htpsim.results.columns import DONE, DROPPED, RUNNING, STAGE_JOB
from htpsim.sched.policy import NO_DEADLINE
from htpsim.sim.clock import ARRIVAL, GAP, Clock, Instant, host_place
from htpsim.sim.draws import Draws
from htpsim.sim.loader import Loader
from htpsim.sim.requests import Pace, RequestState, Source
from htpsim.sim.runtime import NO_TOKEN, Runtime
from htpsim.sim.uses import Hold, Use
from htpsim.spec import OtherClient
from htpsim.spec.plan import ClientPlan

Thread = Generator[Event, None, None]


class OtherThreads:
    """The threads of one other client."""

    def __init__(self, env: Clock, runtime: Runtime, loader: Loader, client: ClientPlan, draws: Draws) -> None:
        assert isinstance(client.spec, OtherClient)
        self.env = env
        self.runtime = runtime
        self.loader = loader
        self.client = client
        self.spec = client.spec
        self.draws = draws
        self.requests: list[RequestState] = []
        self.waiting: deque[RequestState] = deque()
        self.in_flight = 0
        self.pace = Pace(f"clients.{client.name}", client.spec.outstanding)
        self.uses: list[Use] = []
        """what was loaded"""
        self.begun = False
        """it may begin jobs: it has loaded, and so have those for whom it must wait"""
        self.ready = Instant(env)
        self.failure = ""
        if self.spec.arrivals.kind != "closed":
            Source(env, client.number, self.spec.arrivals, draws, self._arrive)
        self.process = env.process(self._load())

    def _load(self) -> Thread:
        """Load, then start what has arrived meanwhile, or the closed loops."""
        try:
            self.uses = yield from self.loader.obtain_all(self.client)
        except CapacityError as error:
            self.failure = str(error)
        self.env.happen(self.ready, 0, host_place(self.client.number, GAP, 0))
        yield from self.loader.residency.all_loaded(host_place(self.client.number, GAP, 0))
        if self.failure:
            return
        self.begun = True
        if self.spec.arrivals.kind == "closed":
            for _ in range(self.spec.outstanding):
                self.env.process(self._loop())
        else:
            self._start_waiting()

    def _arrive(self, number: int) -> None:
        """Start a job, let it wait, or drop it."""
        job = RequestState(self.client.number, number, self.env.now)
        self.requests.append(job)
        limit = self.spec.outstanding
        if self.spec.when_full == "drop" and limit and self.in_flight + len(self.waiting) >= limit:
            job.state = DROPPED
            return
        self.waiting.append(job)
        self._start_waiting()

    def _start_waiting(self) -> None:
        """Start as many waiting jobs as may be in flight."""
        limit = self.spec.outstanding
        while self.begun and self.waiting and (not limit or self.in_flight < limit):
            self.in_flight += 1
            self.env.process(self._one(self.waiting.popleft()))

    def _one(self, job: RequestState) -> Thread:
        """Run one job of an open arrival process."""
        yield from self._serve(job)
        self.in_flight -= 1
        self._start_waiting()

    def _loop(self) -> Thread:
        """Think, run a job, and again."""
        first_ns = self.spec.arrivals.offset_ns
        while True:
            number = len(self.requests)
            self.pace.step(self.env.now)
            think_ns = first_ns + self.draws.value("think", number, self.spec.arrivals.think)
            first_ns = 0
            job = RequestState(self.client.number, number, self.env.now + think_ns)
            self.requests.append(job)
            yield self.env.pause(think_ns, host_place(self.client.number, ARRIVAL, number))
            yield from self._serve(job)

    def _serve(self, job: RequestState) -> Thread:
        """Execute the graphs of one job in order."""
        (use,) = self.uses
        job.state = RUNNING
        job.begun_ns = self.env.now
        target_ns = self.spec.deadline_ns
        deadline_ns = NO_DEADLINE if target_ns is None else job.arrived_ns + target_ns
        times = self.draws.service("job", job.number, 1, use.plan.graphs)
        gap_ns = self.spec.host_gap_ns
        whole = Hold() if self.runtime.whole_request else None
        for step, (call, time) in enumerate(zip(use.graphs, times, strict=True)):
            hold = whole
            if hold is None and gap_ns and self.runtime.gap_inside:
                hold = Hold()
            execute = self.runtime.executes
            place = (job.number, STAGE_JOB, step, NO_TOKEN)
            yield self.runtime.execute(call, place, time, hold, deadline_ns)
            if step == len(times) - 1:
                job.state = DONE
                job.done_ns = self.env.now
            if gap_ns:
                yield self.env.pause(gap_ns, host_place(self.client.number, GAP, execute))
            if hold is not None and hold is not whole:
                self.runtime.release(hold)
        if whole is not None:
            self.runtime.release(whole)
