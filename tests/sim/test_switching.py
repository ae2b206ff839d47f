"""LoRA adapters and graph switching: what they cost, where that is spent, and what they do to a shared copy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from htpsim.results import RunLog
from htpsim.results.columns import STAGE_DECODE, STAGE_PREFILL
from htpsim.scenario import problems
from htpsim.spec import Arrivals, Guard, Instance, Registry, Run, Scenario, constant
from tests.sim.build import PLAIN, executes, instance, llm, requests, run

LORA = llm((10,), (5,), weights=40, lora_switch_ns=100)
TURNS = Registry(adapters="turns")


def vlm(name: str, adapter: str = "", model: Any = LORA, **given: Any) -> Instance:
    return instance(name, llm=model, adapter=adapter, output_tokens=constant(3), **given)


def ran(*instances: Instance, **given: Any) -> list[tuple[int, int, int]]:
    log = run(instances=instances, **given)
    return [(row.client, row.called_ns, row.returned_ns) for row in executes(log)]


def device_bytes(log: RunLog) -> int:
    return sum(event.delta_bytes for event in log.memory if event.ledger == "device")


def test_an_adapter_is_applied_once_and_stays() -> None:
    twice = Arrivals(kind="replay", times_ns=(0, 1))
    calls = ran(vlm("a", "x", arrivals=twice))
    assert calls == [(0, 100, 110), (0, 110, 115), (0, 115, 120), (0, 120, 130), (0, 130, 135), (0, 135, 140)]


def test_without_an_adapter_nothing_is_applied() -> None:
    assert ran(vlm("a"))[0] == (0, 0, 10)


def test_by_default_another_adapter_is_another_key_and_copy() -> None:
    log = run(instances=(vlm("a", "x"), vlm("b", "y"), vlm("c", "y")))
    assert [load.role for load in log.loads] == ["owner", "owner", "borrower"]
    assert sorted({load.copy for load in log.loads}) == ["llm x of process 0 core 0", "llm y of process 0 core 0"]
    assert device_bytes(log) == 80
    assert min(row.called_ns for row in executes(log) if row.client == 1) == 100  # each applies its own


def test_taking_turns_needs_one_copy_and_a_request_waits_for_the_other() -> None:
    log = run(instances=(vlm("a", "x"), vlm("b", "y")), registry=TURNS)
    assert [load.role for load in log.loads] == ["owner", "borrower"]
    assert device_bytes(log) == 40
    assert [(row.client, row.called_ns) for row in executes(log)][::3] == [(0, 100), (1, 220)]
    assert [request.first_token_ns for request in requests(log)] == [110, 230]
    assert log.notes == [
        "b waited 120 ns in all for its turn at llm of process 0 core 0, which others used with another adapter, or "
        "with its graphs switched"
    ]


def test_instances_with_the_same_adapter_answer_side_by_side_once_it_is_applied() -> None:
    calls = ran(vlm("a", "x"), vlm("b", "x"), registry=TURNS, guard=Guard(slots=1))
    assert [call[0] for call in calls] == [0, 1, 0, 1, 0, 1]
    assert calls[0][1] == calls[1][1] == 100  # b does not answer before x is applied, and does not apply it again


def test_a_guard_that_covers_switches_holds_its_slot_meanwhile() -> None:
    late = Arrivals(kind="replay", times_ns=(1,))
    for covers, slot_free_ns in (("execute", 11), ("switches", 120)):
        guard = Guard(slots=1, covers=covers)
        other = vlm("b", model=replace(LORA, name="other"), arrivals=late)
        log = run(instances=(vlm("a", "x"), other), guard=guard)
        first = {row.client: row for row in reversed(executes(log)) if row.stage == STAGE_PREFILL}
        assert first[1].returned_ns == slot_free_ns
        assert first[0].rpc_ns == (100 if covers == "switches" else 0)
        assert first[0].returned_ns == 110


def test_graphs_are_switched_between_prefill_and_decode() -> None:
    model = llm((10,), (5,), graph_switch_ns=30)
    twice = Arrivals(kind="replay", times_ns=(0, 1))
    calls = ran(vlm("a", model=model, arrivals=twice))
    # The first set is loaded; decode is switched to, and prefill again for the second request.
    assert calls == [(0, 0, 10), (0, 40, 45), (0, 45, 50), (0, 80, 90), (0, 120, 125), (0, 125, 130)]


def test_a_copy_whose_graphs_are_switched_serves_one_request_at_a_time() -> None:
    model = llm((10,), (5,), graph_switch_ns=30)
    calls = ran(vlm("a", model=model), vlm("b", model=model), guard=Guard(slots=1))
    assert [call[0] for call in calls] == [0, 0, 0, 1, 1, 1]
    assert calls[3][1] == 80  # a's last token came at 50; b switches back to prefill
    alone = ran(vlm("a", model=model), vlm("b", model=model), registry=Registry(llm=False), guard=Guard(slots=1))
    assert [call[0] for call in alone] != [0, 0, 0, 1, 1, 1]  # a copy each needs no turns


def test_tiers_are_sets_of_graphs_too() -> None:
    from tests.sim.test_where_time_goes import tiered

    model = replace(tiered((8, 20), (64, 40)), graph_switch_ns=7)
    log = run(instances=(vlm("a", model=model, text_tokens=constant(6)),))
    waits = [row.called_ns for row in executes(log) if row.stage == STAGE_DECODE]
    assert waits == [20 + 7, 20 + 7 + 20]
    log = run(instances=(replace(vlm("a", model=model, text_tokens=constant(7))),))
    waits = [row.called_ns for row in executes(log) if row.stage == STAGE_DECODE]
    assert waits == [27, 27 + 20 + 7]


@pytest.mark.parametrize("model", [LORA, replace(LORA, graph_switch_ns=5)])
def test_a_guard_held_for_a_request_cannot_wait_for_turns(model: Any) -> None:
    scenario = Scenario(
        device=PLAIN, guard=Guard(scope="request"), registry=TURNS, run=Run(duration_ns=100),
        instances=(vlm("a", "x", model), vlm("b", "y", model)),
    )  # fmt: skip
    problem, _ = problems(scenario)
    assert problem.startswith("guard.scope: got 'request' where 'a' waits for turns at its llm, expected 'graph'")


def test_an_adapter_of_nothing_is_refused() -> None:
    from tests.sim.build import vit

    scenario = Scenario(device=PLAIN, run=Run(duration_ns=100), instances=(instance("v", vit=vit(5), adapter="x"),))
    assert problems(scenario) == ["instances.v.adapter: got 'x' without an llm, expected none"]
