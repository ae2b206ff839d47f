"""Small scenes to stage a fault in. The engine does not check itself in them: it is for the assertions to notice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest

from htpsim.device import rules
from htpsim.errors import HtpsimError
from htpsim.results import Metric, RunLog, RunResult, Summary
from htpsim.results.columns import SLICES, Execute, Slice
from htpsim.sim import Simulation
from htpsim.spec import OtherClient, Run, Scenario
from tests.sim.build import PLAIN, executes, other

S = 10**9
"""A second, in ns; a byte a nanosecond, in bytes a second."""


def scene(duration_ns: int = 1_000, **given: Any) -> Scenario:
    """Make a scenario of parts; on one core where nothing costs anything, unless a device is given."""
    about = {key: given.pop(key) for key in ("warmup_ns", "seed") if key in given}
    return Scenario(run=Run(duration_ns=duration_ns, **about), **{"device": PLAIN, **given})


def play(duration_ns: int = 1_000, **given: Any) -> RunLog:
    """Simulate such a scenario, without the engine's own checks."""
    return Simulation(scene(duration_ns, **given)).run()


def play_watched(simulation: Simulation, most: int = 5_000) -> RunLog:
    """Run, and hold the clock to never going back, and the device to no more than `most` things that happen to it."""
    seen = {"now_ns": 0, "count": 0}

    def look_at(now_ns: int) -> None:
        assert now_ns >= seen["now_ns"], "time went back"
        assert seen["count"] < most, "the simulation goes round in circles"
        seen.update(now_ns=now_ns, count=seen["count"] + 1)

    def watched(honest: Callable[..., Any], now_ns: Callable[..., int]) -> Callable[..., Any]:
        def watching(*given: Any) -> Any:
            look_at(now_ns(*given))
            return honest(*given)

        return watching

    with pytest.MonkeyPatch.context() as patch:
        for name in ("submit", "look", "dispatch"):
            patch.setattr(rules, name, watched(getattr(rules, name), lambda *given: given[-1]))
        step = simulation.env.step
        patch.setattr(simulation.env, "step", watched(step, lambda: simulation.env.now))
        return simulation.run()


def told(log: RunLog) -> Summary:
    """Return the summary of a run."""
    return RunResult(log).summary()


def units(name: str, time_ns: int, hvx: int, **given: Any) -> OtherClient:
    """Make a client that is no QNN graph and takes some of its core's HVX units, so that several run at once."""
    client = other(name, time_ns, **given)
    graphs = tuple(replace(graph, qnn=False, hvx=hvx, hmx=0, vtcm_bytes=0) for graph in client.model.graphs)
    return replace(client, model=replace(client.model, graphs=graphs))


def calls(log: RunLog, name: str) -> list[Execute]:
    """Return one client's graphExecutes, in order of call."""
    return [e for e in executes(log) if log.clients[e.client] == name]


def one(log: RunLog, name: str) -> Execute:
    """Return the only graphExecute of a client."""
    found = calls(log, name)
    assert len(found) == 1
    return found[0]


def runs(log: RunLog, execute: Execute) -> list[tuple[int, int]]:
    """Return the stretches in which an evicted graphExecute worked, in order."""
    mine = [s for s in map(Slice._make, log.slices) if s.execute == execute.execute and SLICES[s.kind] == "run"]
    return sorted((s.start_ns, s.end_ns) for s in mine)


def metrics(node: object, path: str = "") -> dict[str, Metric]:
    """Return every metric in a summary by its path."""
    if isinstance(node, Metric):
        return {path: node}
    below: dict[str, object] = {}
    if isinstance(node, dict):
        below = node
    elif is_dataclass(node):
        below = {f.name: getattr(node, f.name) for f in fields(node)}
    return {name: m for key, value in below.items() for name, m in metrics(value, f"{path}.{key}").items()}


def refusal(action: Callable[[], object]) -> str:
    """Return what htpsim says when it refuses, or "" when it does not."""
    try:
        action()
    except HtpsimError as error:
        return str(error)
    return ""


def tied() -> Scenario:
    """Make a scenario in which only the order of the clients decides."""
    names = ("camera", "lidar", "speech", "planner", "sign", "lane", "driver")
    clients = [other(name, 10 + n, path="genie", arrives=(0, 40, 80)) for n, name in enumerate(names)]
    return scene(1_000, clients=tuple(clients))
