"""Stable, backlogged or overloaded: held to queues whose load is known."""

from __future__ import annotations

import pytest

from htpsim.results import RunResult
from htpsim.sim import simulate
from htpsim.spec import (
    Arrivals,
    Context,
    Device,
    Graph,
    Instance,
    Model,
    OtherClient,
    Run,
    Scenario,
    constant,
    exponential,
)

MS = 1_000_000


def queue(
    load: float, *, seed: int = 1, outstanding: int = 1, when_full: str = "block", kind: str = "poisson"
) -> Scenario:
    """An M/M/1 queue of some 1,000 jobs."""
    model = Model(name="m", role="other", contexts=(Context(name="c", weights_bytes=1),),
                  graphs=(Graph(name="g", context="c", service=exponential(int(load * MS))),))  # fmt: skip
    client = OtherClient(name="q", model=model, outstanding=outstanding, when_full=when_full,
                         arrivals=Arrivals(kind=kind, period_ns=MS))  # fmt: skip
    return Scenario(device=Device(cores=1), run=Run(duration_ns=1000 * MS, warmup_ns=50 * MS, seed=seed),
                    clients=(client,))  # fmt: skip


def verdict(scenario: Scenario) -> str:
    return RunResult(simulate(scenario)).summary().clients["q"].saturation


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("load", [0.3, 0.7, 0.8])
def test_a_queue_below_capacity_is_stable(load: float, seed: int) -> None:
    assert verdict(queue(load, seed=seed)) == "stable"


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("load", [1.2, 2.0, 10.0])
def test_a_queue_above_capacity_is_overloaded(load: float, seed: int) -> None:
    said = verdict(queue(load, seed=seed))
    assert said.startswith("overloaded: its line grew from ")
    result = RunResult(simulate(queue(load, seed=seed)))
    assert any(note.startswith("q is overloaded") and "length of the run" in note for note in result.summary().notes)


def test_a_queue_that_drops_is_overloaded() -> None:
    assert "requests were dropped from its full queue" in verdict(queue(2.0, when_full="drop"))


def test_a_camera_faster_than_its_vit_drops() -> None:
    vit = Model(name="vit", role="vit", contexts=(Context(name="c", weights_bytes=1),),
                graphs=(Graph(name="g", context="c", service=constant(50 * MS)),))  # fmt: skip
    camera = Instance(name="q", vit=vit, queue_limit=1, arrivals=Arrivals(kind="periodic", period_ns=33 * MS))
    said = verdict(Scenario(device=Device(cores=1), run=Run(duration_ns=3000 * MS), instances=(camera,)))
    assert said.startswith("overloaded: ")


def test_a_line_that_never_ends_and_never_grows_is_a_backlog() -> None:
    """Jobs of 0.999 ms every ms, thirty of them waiting from the first instant on."""
    times = tuple([0] * 30 + [k * MS for k in range(1, 1100)])
    model = Model(name="m", role="other", contexts=(Context(name="c", weights_bytes=1),),
                  graphs=(Graph(name="g", context="c", service=constant(MS)),))  # fmt: skip
    client = OtherClient(name="q", model=model, arrivals=Arrivals(kind="replay", times_ns=times))
    scenario = Scenario(device=Device(cores=1), run=Run(duration_ns=1000 * MS, warmup_ns=50 * MS), clients=(client,))
    assert verdict(scenario) == "backlogged: somebody was in line for 100 % of the time"


def test_a_closed_loop_is_stable_whatever_it_does() -> None:
    assert verdict(queue(50.0, kind="closed")) == "stable"
