"""The runtime above the device: carries each graphExecute from the call to the return and writes its row.

called -> (guard) -> granted -> (overhead, RPC) -> submitted -> (device) -> finished -> (RPC) -> returned
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simpy.events import Event

from htpsim.device.host import return_ns
from htpsim.device.records import NEVER, WORK_SCALE
from htpsim.errors import InvariantError
from htpsim.results.columns import PARTS, PATH_BYPASS, PATH_GENIE, PATH_QNN, Execute
from htpsim.results.log import Row
from htpsim.sched import POLICIES, policy_class, policy_params, watched
from htpsim.sched.policy import NO_DEADLINE
from htpsim.sim.clock import GAP, RETURN, Clock, Instant, host_place
from htpsim.sim.guards import GuardShell
from htpsim.sim.machine import Machine
from htpsim.sim.records import new_job
from htpsim.sim.rows import open_row, row
from htpsim.sim.uses import Call, Hold, Use
from htpsim.spec.plan import NO_ACCOUNT, AccountPlan, GraphPlan, Plan

Place = tuple[int, int, int, int]
"""Where in the work: (request, stage, step, token)."""
NO_TOKEN = -1
_new = object.__new__
_RELEASED = Execute._fields.index("released_ns")


class Runtime:
    """Guards, device and log of one run."""

    def __init__(self, env: Clock, plan: Plan, *, check: bool) -> None:
        self.env = env
        self.plan = plan
        self.check = check
        self.jobs: list[Any] = []
        scenario = plan.scenario
        self.rpc_call_ns = scenario.device.rpc_call_ns
        self.per_core = scenario.guard.slots_per == "core"
        self.whole_request = scenario.guard.scope == "request"
        self.gap_inside = scenario.guard.gap_inside
        self.guards = self._make_guards()  # before the machine: grants come before dispatches
        gangs = any(g.width > 1 for c in plan.clients for m in c.models for g in m.all_graphs)
        sleeps = scenario.device.rpc_polling_ns is not None and scenario.device.rpc_wake_ns > 0
        finished = self._finished if scenario.device.rpc_return_ns or sleeps else None
        self.machine = Machine(env, scenario.device, self.jobs, finished, gangs=gangs, check=check)
        env.give_back, env.return_place = self._give_back, self._return_place
        self.rows: list[Row] = []
        self.executes = 0
        self.begins: Callable[[Use], None] | None = None
        """told of every call, and ``ends`` of every return, where somebody checks that nothing is freed between"""
        self.ends: Callable[[Use], None] | None = None

    def _make_guards(self) -> dict[int, GuardShell]:
        """One guard a process that has accounts, in the order of the processes."""
        guard, device = self.plan.scenario.guard, self.plan.scenario.device
        policy = policy_class(guard.policy)
        if guard.policy not in POLICIES:
            policy = watched(policy)
        params = policy_params(policy, guard.params)
        accounts: dict[int, list[AccountPlan]] = {}
        for account in self.plan.accounts:
            accounts.setdefault(account.process, []).append(account)
        shells = {}
        for process, opened in sorted(accounts.items()):
            count = device.cores if self.per_core else 1
            shell = GuardShell(self.env, process, policy, self.jobs, self._send, guard.overhead_ns, check=self.check)
            for _ in range(count):
                shell.add_lane(params, self.plan.slots(), opened)
            shells[process] = shell
        return shells

    def add_use(self, use: Use) -> None:
        """Fill in the calls of a client's use of a model that is loaded now."""
        plan = use.plan
        if plan.on_host:
            return
        use.graphs = [self._call(use, graph) for graph in plan.graphs]
        use.prefill_sets = self._sets(use, plan.prefill, len(plan.prefill_tiers))
        use.decode_sets = self._sets(use, plan.decode, len(plan.decode_tiers))

    def _sets(self, use: Use, graphs: list[GraphPlan], count: int) -> list[list[Call]]:
        """Return the calls of graphs in `count` sets of one size."""
        calls = [self._call(use, graph) for graph in graphs]
        size = len(calls) // count
        return [calls[n * size : (n + 1) * size] for n in range(count)]

    def _call(self, use: Use, graph: GraphPlan) -> Call:
        plan, bound = use.plan, use.copy.bound[graph.context]
        lane, path = None, PATH_BYPASS if plan.bypass else PATH_QNN
        if plan.guarded:
            path = PATH_GENIE
            lane = self.guards[use.process].lanes[bound.core if self.per_core else 0]
        weight, account = (use.weight, plan.account) if plan.guarded else (0, NO_ACCOUNT)
        about = (graph.number, bound.copy, bound.core, path, plan.level, weight, account)
        return Call(use, graph, bound, lane, use.account, about)

    def execute(
        self,
        call: Call,
        place: Place,
        time: tuple[int, int],
        hold: Hold | None = None,
        deadline_ns: int = NO_DEADLINE,
        switch_ns: int = 0,
    ) -> Event:
        """Call graphExecute; the event returned happens when the thread gets it back.

        Parameters
        ----------
        call : Call
            Whose graph.
        place : tuple
            Where in the work: (request, stage, step, token); the token that its return yields, or NO_TOKEN.
        time : tuple
            What was drawn for it: its time alone, in ns, and the DRAM bytes a second it asks for.
        hold : Hold, optional
            The guard slot is not given back at the return, but when the thread releases this.
        deadline_ns : int
            By when the thread wants it back; for policies that look at deadlines.
        switch_ns : int
            How long graphs or adapter take to be switched within the call, once it is granted; counts as RPC.
        """
        env, free = self.env, call.free
        if free:
            j = free.pop()
        else:
            j = len(self.jobs)
            self.jobs.append(new_job(call))
        job = self.jobs[j]
        job.execute = self.executes
        self.executes += 1
        job.place = place
        job.solo_ns, job.demand = time
        job.work = time[0] << WORK_SCALE
        job.called_ns = env._now
        job.granted_ns = job.submitted_ns = NEVER
        job.hold = hold
        job.switch_ns = switch_ns
        job.about = call.about
        event = job.returned = _new(Instant)  # as Instant(env), without the call of its __init__
        event.env = env
        event.callbacks = []
        if self.begins is not None:
            self.begins(call.use)
        if call.lane is None:
            self._send(j, 0)
        elif hold is not None and hold.call is not None:
            job.about = call.about[:5] + hold.call.about[5:]
            self._send(j, 0)
        else:
            job.deadline_ns = deadline_ns
            call.lane.call(call.account, j)
        return event

    def _send(self, j: int, overhead_ns: int) -> None:
        """Spend the guard's overhead, a switch and the RPC to the DSP, then submit; what was granted holds its slot."""
        env, job = self.env, self.jobs[j]
        job.granted_ns = env._now
        job.overhead_ns = overhead_ns
        if job.hold is not None and job.hold.call is None and job.call.lane is not None:
            job.hold.call = job.call
        delay_ns = overhead_ns + self.rpc_call_ns + job.switch_ns
        if delay_ns == 0:
            job.submitted_ns = env._now
            self.machine.submit(j)
        else:
            event = env.at(delay_ns, host_place(job.client, GAP, job.execute), self._sent)
            event.job = j  # type: ignore[attr-defined]

    def _sent(self, event: Event) -> None:
        j: int = event.job  # type: ignore[attr-defined]
        self.jobs[j].submitted_ns = self.env._now
        self.machine.submit(j)

    def _return_place(self, j: int) -> int:
        job = self.jobs[j]
        return host_place(job.client, RETURN, job.execute)

    def _finished(self, j: int) -> None:
        """Send the return on its way to the thread."""
        event = self.env.at(return_ns(self.machine.dev, self.jobs[j]), self._return_place(j), self._returned)
        event.job = j  # type: ignore[attr-defined]

    def _returned(self, event: Event) -> None:
        self._give_back(event.job)  # type: ignore[attr-defined]

    def _give_back(self, j: int) -> None:
        """Write the row, release the guard, and let the thread go on."""
        job = self.jobs[j]
        call, hold, event = job.call, job.hold, job.returned
        done = row(job, self.env._now)
        if call.lane is not None:
            cost_ns = job.acquired_ns + job.run_ns + job.evict_ns + job.restore_ns
            if hold is None:
                call.lane.release(call.account, cost_ns)
            else:
                hold.cost_ns += cost_ns
                hold.rows.append(len(self.rows))
                done = (*done[:_RELEASED], NEVER, *done[_RELEASED + 1 :])
        self.rows.append(done)
        if self.check:
            _validate(done)
        if self.ends is not None:
            self.ends(call.use)
        job.returned = None
        call.free.append(j)
        callbacks, event.callbacks = event.callbacks, None
        for callback in callbacks:
            callback(event)

    def weigh(self, uses: list[Use]) -> None:
        """Let only those count in a lane's sum of weights who can call in it: all loads have ended."""
        for process, guard in self.guards.items():
            for number, lane in enumerate(guard.lanes):
                weights = {
                    use.account: use.weight
                    for use in uses
                    if use.plan.guarded and use.process == process and (not self.per_core or use.copy.core == number)
                }
                if weights:
                    lane.record.weight_sum = sum(weights.values())

    def release(self, hold: Hold) -> None:
        """Release a slot that was held across returns, and note when in the rows concerned."""
        call, now = hold.call, self.env._now
        if call is None or call.lane is None:
            return
        call.lane.release(call.account, hold.cost_ns)
        for number in hold.rows:
            held = self.rows[number]
            self.rows[number] = (*held[:_RELEASED], now, *held[_RELEASED + 1 :])
        hold.call = None

    def in_flight(self) -> list[Any]:
        """Return the records of graphExecutes that have not returned, in order of call."""
        return sorted((job for job in self.jobs if job.returned is not None), key=lambda job: int(job.execute))

    def rows_in_flight(self) -> list[Row]:
        """Return rows of the graphExecutes that the end of the run cut short, in order of call."""
        return [open_row(job) for job in self.in_flight()]


def _validate(done: Row) -> None:
    """Raise InvariantError unless the parts of a graphExecute sum to the whole, each of them not negative."""
    named = Execute(*done)
    parts = {name: getattr(named, name) for name in PARTS}
    if sum(parts.values()) != named.returned_ns - named.called_ns or min(parts.values()) < 0:
        raise InvariantError(
            f"graphExecute {named.execute}: took {named.returned_ns - named.called_ns} ns, its parts are {parts}"
        )
