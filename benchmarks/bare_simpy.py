"""The yardstick: the same graphExecutes as a bare SimPy model would do them, and nothing else.

One process a client, a ``Resource`` a core, and a plain start-time fair guard made of events. Same draws, same guard
slots, same placement, same think times. It knows no eviction, no priorities, no bandwidth, no registry, no loading, no
total order of instants, and of each graphExecute it keeps one tuple of seven numbers (htpsim keeps thirty-one).
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import simpy

from htpsim.sim.draws import Draws
from htpsim.spec import Scenario
from htpsim.spec.plan import ClientPlan, make_plan


class Account:
    def __init__(self, weight: int, index: int) -> None:
        self.weight = weight
        self.index = index
        self.start = 0.0
        self.finish = 0.0


class Guard:
    def __init__(self, env: simpy.Environment, slots: int) -> None:
        self.env = env
        self.free = slots
        self.clock = 0.0
        self.waiting: list[tuple[Account, simpy.Event]] = []

    def acquire(self, account: Account) -> simpy.Event:
        account.start = max(self.clock, account.finish)
        event = self.env.event()
        self.waiting.append((account, event))
        self.grant()
        return event

    def release(self, account: Account, cost: int) -> None:
        account.finish = account.start + cost / account.weight
        self.free += 1
        self.grant()

    def grant(self) -> None:
        while self.free and self.waiting:
            entry = min(self.waiting, key=lambda w: (w[0].start, w[0].index))
            self.waiting.remove(entry)
            self.free -= 1
            self.clock = entry[0].start
            entry[1].succeed()


class Bare:
    """The model, ready to run; `records` has a row for each graphExecute that finished."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        plan = make_plan(scenario)
        self.env = simpy.Environment()
        self.guard = Guard(self.env, plan.slots())
        self.cores = [simpy.Resource(self.env, capacity=1) for _ in range(scenario.device.cores)]
        self.records: list[tuple[int, ...]] = []
        for client in plan.clients:
            self.env.process(self.thread(client))

    def run(self) -> int:
        self.env.run(until=self.scenario.run.duration_ns + 1)
        return len(self.records)

    def execute(
        self, number: int, core: int, account: Account | None, at: tuple[int, int], solo_ns: int
    ) -> Generator[simpy.Event, Any, None]:
        env = self.env
        called = env.now
        if account is not None:
            yield self.guard.acquire(account)
        granted = env.now
        with self.cores[core].request() as request:
            yield request
            started = env.now
            yield env.timeout(solo_ns)
        if account is not None:
            self.guard.release(account, solo_ns)
        self.records.append((number, *at, called, granted, started, env.now))  # type: ignore[arg-type]

    def thread(self, client: ClientPlan) -> Generator[simpy.Event, Any, None]:
        spec: Any = client.spec
        draws = Draws(self.scenario.run.seed, 0, client.name)
        number, core = client.number, client.number % len(self.cores)
        account = Account(spec.weight, number)
        assert client.vit is not None
        assert client.llm is not None
        guarded = account if client.vit.guarded else None
        chunks = -(-(spec.text_tokens.mean + client.vit.model.tokens_per_image) // client.llm.model.ar)
        steps = spec.output_tokens.mean - 1
        request = 0
        while True:
            yield self.env.timeout(draws.value("think", request, spec.arrivals.think))
            stages = (
                ("vit", client.vit.graphs, 1, guarded),
                ("prefill", client.llm.prefill, chunks, account),
                ("decode", client.llm.decode, steps, account),
            )
            for stage, (name, graphs, count, who) in enumerate(stages):
                for solo_ns, _ in draws.service(name, request, count, graphs):
                    yield from self.execute(number, core, who, (request, stage), solo_ns)
            request += 1
