"""Parallel graph execution: who may share a core with whom, at what speed, and where it is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from htpsim.results import RunResult
from htpsim.scenario import problems, warnings
from htpsim.spec import Arrivals, Context, Device, Model, OtherClient, Run, Scenario
from tests.sim.build import PLAIN, executes, graphs, run, spans

PARALLEL = replace(PLAIN, pge=True, pge_rate=0.5, vtcm_bytes=8)
GB = 10**9


def client(name: str, time_ns: int, *, at_ns: int = 0, process: int = 0, **given: Any) -> OtherClient:
    """A client that runs one graph once, with VTCM of its own size."""
    level = given.pop("level", "NORMAL")
    about = {"vtcm_bytes": 4, **given}
    model = Model(name=f"{name} model", role="other", contexts=(Context(name="c"),), graphs=graphs(time_ns, **about))
    arrivals = Arrivals(kind="replay", times_ns=(at_ns,))
    return OtherClient(name=name, model=model, process=process, priority=level, arrivals=arrivals)


def ran(*clients: OtherClient, device: Device = PARALLEL) -> list[tuple[int, int, int]]:
    return sorted(spans(run(clients=clients, device=device)))


def test_two_graphs_share_a_core_each_at_half_speed() -> None:
    assert ran(client("a", 100), client("b", 100)) == [(0, 0, 200), (1, 0, 200)]
    # b comes after 50: a has 50 left, which take 100; b has had 50 of its work by then and goes on alone.
    assert ran(client("a", 100), client("b", 100, at_ns=50)) == [(0, 0, 150), (1, 50, 200)]


def test_off_by_default_they_take_turns() -> None:
    assert ran(client("a", 100), client("b", 100), device=replace(PARALLEL, pge=False)) == [(0, 0, 100), (1, 100, 200)]


def test_at_rate_one_they_do_not_slow_each_other() -> None:
    device = replace(PARALLEL, pge_rate=1.0)
    assert ran(client("a", 100), client("b", 70), device=device) == [(0, 0, 100), (1, 0, 70)]


@pytest.mark.parametrize(
    "apart",
    [{"vtcm_bytes": 5}, {"level": "LOW"}, {"process": 1}],
    ids=["no VTCM left", "another priority", "another process"],
)
def test_who_may_not_share_waits(apart: dict[str, Any]) -> None:
    assert ran(client("a", 100), client("b", 100, **apart)) == [(0, 0, 100), (1, 100, 200)]


def test_a_higher_priority_evicts_all_that_share_the_core() -> None:
    high = client("high", 10, at_ns=40, level="HIGH")
    log = run(clients=(client("a", 100), client("b", 100), high), device=PARALLEL)
    assert sorted(spans(log)) == [(0, 0, 210), (1, 0, 210), (2, 40, 50)]
    assert [row.evictions for row in executes(log)] == [1, 1, 0]


def test_another_client_coexists_with_both_and_slows_neither() -> None:
    app = client("app", 30, qnn=False, hmx=0, vtcm_bytes=0)
    assert ran(client("a", 100), client("b", 100), app) == [(0, 0, 200), (1, 0, 200), (2, 0, 30)]
    greedy = client("app", 30, qnn=False, hmx=1, vtcm_bytes=0)  # graphs take turns at HMX; it cannot
    assert ran(client("a", 100), client("b", 100), greedy) == [(0, 0, 200), (1, 0, 200), (2, 200, 230)]


def test_graphs_in_parallel_ask_for_the_less_bandwidth() -> None:
    device = replace(PARALLEL, dram_bandwidth=GB)
    pair = client("a", 100, dram_bytes=100), client("b", 100, dram_bytes=100)
    assert ran(*pair, device=device) == [(0, 0, 200), (1, 0, 200)]  # half of each demand is all there is
    assert ran(*pair, device=replace(device, pge_rate=1.0)) == [(0, 0, 200), (1, 0, 200)]
    assert ran(*pair, device=replace(device, dram_bandwidth=GB // 2)) == [(0, 0, 400), (1, 0, 400)]


def test_a_core_that_runs_two_is_used_once() -> None:
    log = run(200, clients=(client("a", 100), client("b", 100)), device=PARALLEL)
    assert RunResult(log).summary().cores["core 0"].utilisation.value == 1.0


@pytest.mark.parametrize("arch", ["v68", "v69"])
def test_an_architecture_without_it_is_refused(arch: str) -> None:
    scenario = Scenario(device=replace(PARALLEL, arch=arch), clients=(client("a", 100),), run=Run(duration_ns=100))
    assert problems(scenario) == [
        f"device.pge: got true on {arch}, expected false: nothing shares a core with a QNN graph before v73"
    ]


def test_graphs_of_several_cores_exclude_it() -> None:
    wide = client("a", 100)
    wide = replace(wide, model=replace(wide.model, built_for_cores=2))
    scenario = Scenario(device=replace(PARALLEL, cores=2), clients=(wide,), run=Run(duration_ns=100))
    assert problems(scenario) == [
        "device.pge: got true with graphs built for several cores (a model), expected false: they exclude it"
    ]


def test_it_is_told_where_no_two_graphs_fit() -> None:
    scenario = Scenario(device=PARALLEL, clients=(client("a", 100, vtcm_bytes=5),), run=Run(duration_ns=100))
    assert any("no two graphs fit into VTCM together" in warning for warning in warnings(scenario))
