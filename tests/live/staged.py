"""The faults of the testbed, staged in the reference engine with its own means: a thread that runs into them."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any

import pytest
from simpy.events import Event

from htpsim.errors import CapacityError
from htpsim.live import Fault
from htpsim.live.faults import DESTROYED, DIED, STAGED, FaultPlan
from htpsim.results.columns import DONE
from htpsim.results.log import RunLog
from htpsim.sim import engine, simulate
from htpsim.sim.loader import Loader
from htpsim.sim.requests import RequestState
from htpsim.sim.uses import Call, Hold
from htpsim.sim.vlm import VlmThread
from htpsim.spec import Scenario


def simulate_staged(scenario: Scenario, faults: Sequence[Fault]) -> RunLog:
    """Simulate with faults."""
    plan = FaultPlan(faults)

    class StagedThread(VlmThread):
        """A thread to which faults happen."""

        def _step(
            self, calls: list[Call], place: Any, times: Iterator[tuple[int, int]], hold: Hold | None, *rest: Any
        ) -> Generator[Event, None, None]:
            name, where = self.spec.name, place[:3]
            failed = plan.strikes("graph", name, where)
            for kind in ("graph", "dies", "dies-holding"):
                if plan.strikes(kind, name, where):
                    kept = Hold() if kind == "dies-holding" else hold
                    yield self.runtime.execute(calls[0], (*where, -1), next(times), kept)
                    raise CapacityError(f"graph {calls[0].graph.name} failed: {STAGED}" if failed else DIED)
            if self.requests[place[0]].state != DONE:
                yield from super()._step(calls, place, times, hold, *rest)
                if plan.strikes("cancel", name, where):
                    self._cancel(self.requests[place[0]])

        def _cancel(self, request: RequestState) -> None:
            request.output_tokens = request.tokens
            request.state, request.done_ns = DONE, self.token_ns

    honest_load, honest_obtain = Loader._load, Loader.obtain_all

    def load(self: Loader, client: Any, model: Any, *rest: Any) -> Any:
        try:
            plan.load(client.name, model.model.name)
        except OSError as error:
            told = f"model '{model.model.name}' of '{client.name}' cannot be loaded: {error}"
            raise CapacityError(told) from error
        return (yield from honest_load(self, client, model, *rest))

    def obtain_all(self: Loader, client: Any) -> Any:
        uses = yield from honest_obtain(self, client)
        if plan.destroyed(client.name):
            self.give_back(client)
            raise CapacityError(DESTROYED)
        return uses

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "VlmThread", StagedThread)
        patch.setattr(Loader, "_load", load)
        patch.setattr(Loader, "obtain_all", obtain_all)
        return simulate(scenario)
