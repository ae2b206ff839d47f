"""What the kernel once did not know, each feature where it is certain to matter, in either engine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from htpsim.kernel import tally
from htpsim.results import RunLog
from htpsim.sim.loads import load_alone
from htpsim.spec import Arrivals, Guard, Instance, Registry, Run, Runtime, Scenario, constant
from htpsim.spec.plan import make_plan
from tests.kernel.compare import differences, run_kernel
from tests.sim.build import PLAIN, executes, instance, llm, other, vit

SLOW = replace(PLAIN, load_bandwidth=10**9)


def at(*times_ns: int) -> Arrivals:
    return Arrivals(kind="replay", times_ns=times_ns)


def same(*instances: Instance, duration_ns: int = 2_000, **given: Any) -> RunLog:
    """Return the log of a scenario, the same in either engine."""
    scenario = Scenario(instances=instances, run=Run(duration_ns=duration_ns), **{"device": PLAIN, **given})
    log = run_kernel(scenario)

    assert differences(scenario) == []
    assert log is not None
    return log


def answering(name: str, adapter: str = "", **given: Any) -> Instance:
    model = llm((10,), (5,), weights=60, lora_switch_ns=100, **given)
    return instance(name, llm=model, adapter=adapter, output_tokens=constant(3), arrivals=at(0, 30))


def test_who_waits_for_a_turn_is_told_for_how_long() -> None:
    log = same(answering("a", "x"), answering("b", "y"), registry=Registry(adapters="turns"))

    assert [note.split(" in all")[0] for note in log.notes] == ["a waited 120 ns", "b waited 240 ns"]


def test_users_of_one_adapter_have_their_turns_together_once_it_is_applied() -> None:
    log = same(answering("a", "x"), answering("b", "x"), answering("c", "y"), registry=Registry(adapters="turns"))

    assert {row.called_ns for row in executes(log) if row.request == 0 and row.step == 0} >= {100}
    assert len(log.notes) == 3


@pytest.mark.parametrize("covers", ["execute", "switches"])
def test_a_switch_is_made_in_the_thread_or_in_the_call(covers: Any) -> None:
    log = same(
        answering("a", "x", graph_switch_ns=7), answering("b", "x", graph_switch_ns=7), guard=Guard(covers=covers),
        registry=Registry(adapters="turns"),
    )  # fmt: skip
    switched = sum(row.rpc_ns for row in executes(log))

    assert switched == (0 if covers == "execute" else 100 + 7 * 7)


def test_a_vit_on_a_thread_of_its_own_runs_beside_the_answer_before() -> None:
    given: dict[str, Any] = {"vit": vit(30), "llm": llm((10,), (5,)), "arrivals": at(0, 1, 2), "vit_thread": "own"}
    log = same(instance("a", **given, output_tokens=constant(20)), device=replace(PLAIN, cores=2))

    second = next(row for row in executes(log) if row.request == 1)
    assert second.called_ns < max(row.returned_ns for row in executes(log) if row.request == 0)


def test_copies_are_loaded_for_a_request_or_in_the_place_of_others() -> None:
    given: dict[str, Any] = {"vit": vit(30, weights=40), "llm": llm((10,), (5,), weights=60), "arrivals": at(200, 800)}
    passing = same(instance("a", **given, vit_residency="request"), device=SLOW)
    pressed = same(
        instance("a", **given), device=replace(SLOW, dram_budget_bytes=70), runtime=Runtime(make_room="idle")
    )

    assert [load.model for load in passing.loads if load.role == "owner"] == ["vit", "llm", "vit", "vit"]
    assert [load.model for load in pressed.loads if load.role == "owner"] == ["vit", "llm", "vit", "llm", "vit", "llm"]


def test_who_finds_no_room_as_it_runs_has_failed_from_then_on() -> None:
    device = replace(SLOW, dram_budget_bytes=60 + 40 + 35, leak_bytes=10)
    given: dict[str, Any] = {"vit": vit(30, weights=40), "llm": llm((10,), (5,), weights=60)}
    log = same(
        instance("a", **given, vit_residency="request", arrivals=at(*range(200, 3_000, 300))), device=device,
        duration_ns=4_000,
    )  # fmt: skip

    assert "dram_budget_bytes" in log.failed["a"]
    assert len({request[1] for request in log.requests if request[2] == 2}) == 3


def test_a_client_that_came_early_waits_for_the_loads_of_others_where_these_may_make_room() -> None:
    big = instance("a", vit=vit(30, weights=400), arrivals=at(0))
    log = same(big, device=SLOW, runtime=Runtime(make_room="idle"), clients=(other("b", 7, arrives=(0, 100)),))

    assert min(row.called_ns for row in executes(log)) == log.ready_ns == 400


def test_without_records_no_row_of_a_load_is_kept() -> None:
    scenario = Scenario(
        device=SLOW, run=Run(duration_ns=2_000),
        instances=(instance("a", vit=vit(30, weights=40), arrivals=at(200, 800), vit_residency="request"),),
    )  # fmt: skip
    plan = make_plan(scenario)
    loaded = load_alone(plan)
    assert loaded.keeper is not None
    keepers = [loaded.keeper()]
    told = tally(plan, replace(loaded, keeper=lambda: keepers[0]), compiled=False)

    assert told.clients["a"].done == 2
    assert keepers[0].loads == keepers[0].memory == []


def test_one_loader_serves_one_run() -> None:
    scenario = Scenario(
        device=SLOW, run=Run(duration_ns=2_000),
        instances=(instance("a", vit=vit(30, weights=40), arrivals=at(200), vit_residency="request"),),
    )  # fmt: skip
    plan = make_plan(scenario)
    loaded = load_alone(plan)
    first, again = (tally(plan, loaded, compiled=False) for _ in range(2))

    assert first.executes == again.executes == 1
    assert first.clients["a"].latencies["vit"].total_ns == again.clients["a"].latencies["vit"].total_ns == 30
