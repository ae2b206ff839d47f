"""The runtime above the device: carries each graphExecute from the call to the return and writes its row.

called -> (guard) -> granted -> (overhead, RPC) -> submitted -> (device) -> finished -> (RPC) -> returned
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simpy.events import Event

from htpsim.device.records import DONE, NEVER, WORK_SCALE
from htpsim.errors import InvariantError
from htpsim.results.columns import PARTS, PATH_BYPASS, PATH_GENIE, PATH_QNN, Execute
from htpsim.results.log import Row
from htpsim.sched import POLICIES, policy_class, policy_params, watched
from htpsim.sched.policy import NO_DEADLINE
from htpsim.sim.clock import GAP, RETURN, Clock, Instant, host_rank
from htpsim.sim.guards import GuardShell, Lane
from htpsim.sim.machine import Machine
from htpsim.sim.records import JobPool
from htpsim.sim.uses import Hold, Use
from htpsim.spec.plan import NO_ACCOUNT, AccountPlan, GraphPlan, Plan

Place = tuple[int, int, int, int]
NO_TOKEN = -1
_RELEASED = Execute._fields.index("released_ns")


class Runtime:
    """Guards, device and log of one run."""

    def __init__(self, env: Clock, plan: Plan, *, check: bool) -> None:
        self.env = env
        self.plan = plan
        self.pool = JobPool()
        self.jobs = self.pool.jobs
        scenario = plan.scenario
        gangs = any(g.width > 1 for c in plan.clients for m in c.models for g in m.graphs + m.prefill + m.decode)
        self.machine = Machine(env, scenario.device, self.pool, self._finished, gangs=gangs, check=check)
        self.rpc_call_ns = scenario.device.rpc_call_ns
        self.rpc_return_ns = scenario.device.rpc_return_ns
        self.overhead_ns = scenario.guard.overhead_ns
        self.per_core = scenario.guard.slots_per == "core"
        self.whole_request = scenario.guard.scope == "request"
        self.gap_inside = scenario.guard.gap_inside
        self.guards = self._make_guards(check)
        self.rows: list[Row] = []
        self.executes = 0
        self.check = check
        self.begins: Callable[[Use], None] | None = None
        """told of every call, and ``ends`` of every return, where somebody checks that nothing is freed between"""
        self.ends: Callable[[Use], None] | None = None

    def _make_guards(self, check: bool) -> dict[int, GuardShell]:
        """One guard a process that has accounts."""
        guard, device = self.plan.scenario.guard, self.plan.scenario.device
        policy = policy_class(guard.policy)
        if guard.policy not in POLICIES:
            policy = watched(policy)
        params = policy_params(policy, guard.params)
        accounts: dict[int, list[AccountPlan]] = {}
        for account in self.plan.accounts:
            accounts.setdefault(account.process, []).append(account)
        shells = {}
        for process, opened in accounts.items():
            count = device.cores if self.per_core else 1
            lanes = [Lane(policy, params, self.plan.slots(), opened) for _ in range(count)]
            shells[process] = GuardShell(self.env, process, policy, lanes, self.pool, self._granted, check=check)
        return shells

    def execute(
        self,
        use: Use,
        graph: GraphPlan,
        place: Place,
        uniform: int,
        hold: Hold | None = None,
        deadline_ns: int = NO_DEADLINE,
    ) -> Event:
        """Call graphExecute; the event returned happens when the thread gets it back.

        Parameters
        ----------
        use, graph
            What executes, for whom.
        place : tuple
            Where in the work: (request, stage, step, token); the token that its return yields, or NO_TOKEN.
        uniform : int
            The 32-bit draw of its service time.
        hold : Hold, optional
            The guard slot is not given back at the return, but when the thread releases this.
        deadline_ns : int
            By when the thread wants it back; for policies that look at deadlines.
        """
        now: int = self.env.now
        j = self.pool.take()
        job = self.jobs[j]
        bound = use.copy.bound[graph.context]
        entry = uniform * len(graph.solo_ns) >> 32
        job.execute = self.executes
        self.executes += 1
        job.client = use.client
        job.request, job.stage, job.step, job.token = place
        job.graph = graph.number
        job.copy = job.context = bound.copy
        job.core, job.cores, job.width, job.pd = bound.core, bound.mask, bound.width, bound.pd
        job.level = use.plan.level
        job.qnn = 1 if graph.qnn else 0
        job.vtcm_bytes, job.hvx, job.hmx = graph.vtcm_bytes, graph.hvx, graph.hmx
        job.solo_ns = graph.solo_ns[entry]
        job.work = job.solo_ns << WORK_SCALE
        job.demand = graph.demand[entry]
        job.called_ns = now
        job.granted_ns = job.submitted_ns = job.finished_ns = NEVER
        job.started_ns = job.timer_ns = job.scheduled_ns = NEVER
        job.deadline_ns = deadline_ns
        job.hold = hold
        job.lane = None
        job.use = use
        if self.begins is not None:
            self.begins(use)
        event = Instant(self.env)
        event.job = j  # type: ignore[attr-defined]
        event.callbacks.append(self._returned)
        job.returned = event
        self._enter(use, job, j, hold)
        return event

    def _enter(self, use: Use, job: Any, j: int, hold: Hold | None) -> None:
        """Take the call to the guard, or past it."""
        if not use.plan.guarded:
            job.path = PATH_BYPASS if use.plan.bypass else PATH_QNN
            job.weight, job.account = 0, NO_ACCOUNT
            self._start_rpc(j, 0)
            return
        job.path = PATH_GENIE
        if hold is not None and hold.lane is not None:
            use = hold.use or use
            job.weight, job.account = use.weight, use.plan.account
            self._start_rpc(j, 0)
            return
        job.weight, job.account = use.weight, use.plan.account
        guard = self.guards[use.process]
        lane = guard.lanes[job.core if self.per_core else 0]
        job.lane = lane
        guard.call(lane, use.account, j)

    def _granted(self, j: int) -> None:
        """Go on with a call that holds its slot."""
        job = self.jobs[j]
        if job.hold is not None:
            job.hold.lane, job.hold.use = job.lane, job.use
        self._start_rpc(j, self.overhead_ns)

    def _start_rpc(self, j: int, overhead_ns: int) -> None:
        """Spend the guard's overhead and the RPC to the DSP, then submit."""
        job = self.jobs[j]
        job.granted_ns = self.env.now
        job.overhead_ns = overhead_ns
        delay_ns = overhead_ns + self.rpc_call_ns
        if delay_ns == 0:
            self._submit(j)
            return
        event = self.env.at(delay_ns, host_rank(job.client, GAP, job.execute), self._rpc_done)
        event.job = j  # type: ignore[attr-defined]

    def _rpc_done(self, event: Event) -> None:
        self._submit(event.job)  # type: ignore[attr-defined]

    def _submit(self, j: int) -> None:
        self.jobs[j].submitted_ns = self.env.now
        self.machine.submit(j)

    def _finished(self, j: int) -> None:
        """Send the return on its way to the thread."""
        job = self.jobs[j]
        job.finished_ns = self.env.now
        self.env.schedule(job.returned, host_rank(job.client, RETURN, job.execute), self.rpc_return_ns)

    def _returned(self, event: Event) -> None:
        """Write the row and release the guard; the waiting thread goes on right after."""
        j: int = event.job  # type: ignore[attr-defined]
        job = self.jobs[j]
        hold = job.hold
        cost_ns = job.acquired_ns + job.run_ns + job.evict_ns + job.restore_ns
        row = self.row(job, self.env.now)
        if hold is not None and job.path == PATH_GENIE:
            hold.cost_ns += cost_ns
            hold.rows.append(len(self.rows))
            row = (*row[:_RELEASED], NEVER, *row[_RELEASED + 1 :])
        elif job.lane is not None:
            self.guards[job.use.process].release(job.lane, job.use.account, cost_ns)
        self.rows.append(row)
        if self.check:
            self._validate(row)
        if self.ends is not None:
            self.ends(job.use)
        self.pool.give_back(j)

    def _validate(self, row: Row) -> None:
        """Raise InvariantError unless the parts of a graphExecute sum to the whole, each of them not negative."""
        named = Execute(*row)
        parts = {name: getattr(named, name) for name in PARTS}
        if sum(parts.values()) != named.returned_ns - named.called_ns or min(parts.values()) < 0:
            raise InvariantError(
                f"graphExecute {named.execute}: took {named.returned_ns - named.called_ns} ns, its parts are {parts}"
            )

    def weigh(self, uses: list[Use]) -> None:
        """Let only those count in a lane's sum of weights who can call in it: all loads have ended."""
        for process, guard in self.guards.items():
            for number, lane in enumerate(guard.lanes):
                weights = {
                    use.account: use.weight
                    for use in uses
                    if use.plan.guarded and use.process == process and (not self.per_core or use.core == number)
                }
                if weights:
                    lane.record.weight_sum = sum(weights.values())

    def release(self, hold: Hold) -> None:
        """Release a slot that was held across returns, and note when in the rows concerned."""
        if hold.lane is None or hold.use is None:
            return
        now: int = self.env.now
        self.guards[hold.use.process].release(hold.lane, hold.use.account, hold.cost_ns)
        for number in hold.rows:
            row = self.rows[number]
            self.rows[number] = (*row[:_RELEASED], now, *row[_RELEASED + 1 :])
        hold.lane = None

    def row(self, job: Any, returned_ns: int) -> Row:
        """Return the row of a graphExecute, in the order of ``Execute``; NEVER where it has not come."""
        done = job.state == DONE
        return (
            job.execute, job.client, job.request, job.stage, job.step, job.graph, job.copy, job.core, job.path,
            job.level, job.weight, job.account, job.token,
            job.called_ns, job.granted_ns, job.submitted_ns, job.started_ns, job.finished_ns, returned_ns, returned_ns,
            job.granted_ns - job.called_ns, job.overhead_ns, job.submitted_ns - job.granted_ns - job.overhead_ns,
            job.wait_ns, job.acquired_ns, job.run_ns, job.evict_ns, job.restore_ns,
            returned_ns - job.finished_ns if done else 0, job.evictions, job.solo_ns,
        )  # fmt: skip

    def in_flight(self) -> list[Any]:
        """Return the records of graphExecutes that have not returned, in order of call."""
        free = set(self.pool.free)
        return sorted((job for j, job in enumerate(self.jobs) if j not in free), key=lambda job: int(job.execute))

    def rows_in_flight(self) -> list[Row]:
        """Return rows of the graphExecutes that the end of the run cut short, in order of call."""
        return [self._open_row(job) for job in self.in_flight()]

    def _open_row(self, job: Any) -> Row:
        """Return such a row with only the parts that have ended."""
        granted, submitted = job.granted_ns != NEVER, job.submitted_ns != NEVER
        if not submitted:
            for name in ("wait_ns", "acquired_ns", "run_ns", "evict_ns", "restore_ns", "evictions"):
                setattr(job, name, 0)
            job.state = NEVER
        if not granted:
            job.overhead_ns = 0
        row = Execute(*self.row(job, NEVER))
        return tuple(
            row._replace(
                guard_wait_ns=row.guard_wait_ns if granted else 0,
                guard_overhead_ns=row.guard_overhead_ns if submitted else 0,
                rpc_ns=row.rpc_ns if submitted else 0,
                rpc_return_ns=0,
            )
        )
