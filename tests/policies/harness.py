"""A guard with abstract servers: the rules of ``sched.guard`` and a policy, without device, SimPy or scenario.

Every grant is served at once for the cost its client draws, so a trace here is what a policy does and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any

from htpsim.sched import guard as rules
from htpsim.sched import policy_class, policy_params
from htpsim.sched.policy import ACCOUNT_FIELDS, CALL_FIELDS, LANE_FIELDS, NO_DEADLINE, VIRTUAL_SCALE
from htpsim.spec.records import record_class

RELEASE, CALL, TIMER = range(3)


@dataclass(frozen=True)
class Client:
    """Who calls: costs in order, repeated; closed loop unless `arrivals_ns` says when each call comes."""

    costs_ns: tuple[int, ...]
    weight: int = 1
    rank: int = 0
    outstanding: int = 1
    think_ns: int = 0
    arrivals_ns: tuple[int, ...] | None = None
    deadline_ns: int | None = None
    offset_ns: int = 0


@dataclass
class Served:
    """One call that was granted."""

    client: int
    called_ns: int
    granted_ns: int
    cost_ns: int

    @property
    def wait_ns(self) -> int:
        return self.granted_ns - self.called_ns

    @property
    def released_ns(self) -> int:
        return self.granted_ns + self.cost_ns


@dataclass
class Trace:
    """What a policy did."""

    clients: Sequence[Client]
    served: list[Served] = field(default_factory=list)
    lags: list[list[float]] = field(default_factory=list)

    def of(self, client: int) -> list[Served]:
        return [s for s in self.served if s.client == client]

    def work_ns(self, client: int, first: int = 0, last: int | None = None) -> int:
        return sum(s.cost_ns for s in self.served[first:last] if s.client == client)


@dataclass
class Bench:
    """The state of one run of the harness."""

    policy: Any
    clients: Sequence[Client]
    slots: int
    params: dict[str, int]

    def __post_init__(self) -> None:
        lane_type = record_class("Lane", (*LANE_FIELDS, *self.policy.lane_fields, *self.policy.params))
        account_type = record_class("Account", (*ACCOUNT_FIELDS, *self.policy.account_fields))
        self.call_type = record_class("Call", CALL_FIELDS)
        self.lane = lane_type()
        self.lane.slots, self.lane.accounts = self.slots, len(self.clients)
        self.lane.weight_sum = sum(c.weight for c in self.clients)
        for name, value in self.params.items():
            setattr(self.lane, name, value)
        self.accounts = [account_type() for _ in self.clients]
        for i, c in enumerate(self.clients):
            rules.open_account(self.accounts, i, c.weight, c.rank)
        self.calls: list[Any] = []
        self.account_of: list[int] = []
        self.trace = Trace(self.clients)
        self.agenda: list[tuple[int, int, int, int]] = []
        self.count = [0] * len(self.clients)

    def start(self) -> None:
        for i, c in enumerate(self.clients):
            for n, at in enumerate([c.offset_ns] * c.outstanding if c.arrivals_ns is None else c.arrivals_ns):
                heappush(self.agenda, (at, CALL, i, n))
        heappush(self.agenda, (0, TIMER, 0, 0))

    def act(self, now_ns: int, kind: int, i: int, number: int) -> None:
        client = self.clients[i]
        if kind == RELEASE:
            cost_ns = self.trace.served[number].cost_ns
            rules.release(self.lane, self.accounts, i, cost_ns, now_ns, self.policy.charge)
            if client.arrivals_ns is None:
                heappush(self.agenda, (now_ns + client.think_ns, CALL, i, len(self.calls)))
        elif kind == CALL:
            call = self.call_type()
            call.deadline_ns = NO_DEADLINE if client.deadline_ns is None else now_ns + client.deadline_ns
            self.calls.append(call)
            self.account_of.append(i)
            rules.call(self.lane, self.accounts, self.calls, i, len(self.calls) - 1, now_ns, self.policy.wake)
        else:
            following = self.policy.timer(self.lane, self.accounts, now_ns)
            if following >= 0:
                heappush(self.agenda, (following, TIMER, 0, 0))

    def grant(self, now_ns: int) -> None:
        while rules.can_grant(self.lane):
            j = rules.grant(self.lane, self.accounts, self.calls, now_ns, self.policy.pick, self.policy.wake)
            assert j != rules.NOT_WAITING
            if j == rules.NOBODY:
                return
            i = self.account_of[j]
            costs = self.clients[i].costs_ns
            cost_ns = costs[self.count[i] % len(costs)]
            self.count[i] += 1
            heappush(self.agenda, (now_ns + cost_ns, RELEASE, i, len(self.trace.served)))
            self.trace.served.append(Served(i, self.calls[j].call_ns, now_ns, cost_ns))

    def run(self, grants: int, each_instant: Callable[[Bench], None] | None = None) -> Trace:
        self.start()
        while self.agenda and len(self.trace.served) < grants:
            now_ns = self.agenda[0][0]
            while self.agenda and self.agenda[0][0] == now_ns:
                _, kind, i, number = heappop(self.agenda)
                self.act(now_ns, kind, i, number)
            rules.validate(self.lane, self.accounts, self.calls, self.policy.name)
            if each_instant is not None:
                each_instant(self)
            self.grant(now_ns)
            only_timers = all(kind == TIMER for _, kind, _, _ in self.agenda)
            if only_timers and not self.lane.waiting and not self.lane.holders:
                break
        return self.trace


def drive(
    policy: str,
    clients: Sequence[Client],
    *,
    slots: int = 1,
    grants: int = 200,
    each_instant: Callable[[Bench], None] | None = None,
    **params: int,
) -> Trace:
    """Run a policy until `grants` grants were made, or nobody calls any more."""
    found = policy_class(policy)
    bench = Bench(found, clients, slots, policy_params(found, list(params.items())))
    return bench.run(grants, each_instant)


def widest_gap(trace: Trace, f: int, m: int) -> float:
    """Return the largest |W_f/w_f - W_m/w_m| over all intervals between releases: the range of the difference."""
    difference = low = high = 0.0
    for s in trace.served[:-1]:
        if s.client == f:
            difference += s.cost_ns / trace.clients[f].weight
        elif s.client == m:
            difference -= s.cost_ns / trace.clients[m].weight
        low, high = min(low, difference), max(high, difference)
    return high - low


def widest_from_start(trace: Trace, f: int, m: int) -> float:
    """Return the largest |W_f/w_f - W_m/w_m| since the start."""
    difference = widest = 0.0
    for s in trace.served[:-1]:
        if s.client == f:
            difference += s.cost_ns / trace.clients[f].weight
        elif s.client == m:
            difference -= s.cost_ns / trace.clients[m].weight
        widest = max(widest, abs(difference))
    return widest


def longest(client: Client) -> int:
    return max(client.costs_ns)


def tags(bench: Bench, name: str) -> list[float]:
    """Return a virtual-time field of every account, in ns."""
    return [getattr(a, name) / (1 << VIRTUAL_SCALE) for a in bench.accounts]
