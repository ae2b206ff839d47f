"""Every rule of the device and of the threads on generated scenarios, with all that is off by default switched on."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htpsim.experiments.trace import trace_of
from htpsim.invariants import check_trace
from htpsim.scenario import problems
from htpsim.sim import simulate
from htpsim.spec import Model
from tests.sim.digest import digest
from tests.sim.spice import spiced
from tests.sim.strategies import random_scenario

BEYOND = "device.background_o"
"""Bursts as short as a corpus needs them, where everything takes nanoseconds, are refused in a scenario file."""


@pytest.mark.slow
@given(st.integers(0, 2**32))
def test_no_rule_is_broken(seed: int) -> None:
    scenario = spiced(seed)

    log = simulate(scenario, check=True)

    assert not [line for line in problems(scenario) if not line.startswith((BEYOND, "guard.scope"))]
    report = check_trace(trace_of(log))
    assert report.ok, report
    assert "answers" in report.checked or not log.executes


@pytest.mark.slow
@given(st.integers(0, 2**32))
def test_rules_with_nothing_to_do_change_nothing(seed: int) -> None:
    scenario = random_scenario(seed)

    def one_tier(model: Model | None) -> Model | None:
        if model is None or model.role != "llm":
            return model
        graphs = {
            name: tuple(replace(graph, tier_tokens=model.context_tokens) for graph in getattr(model, name))
            for name in ("prefill", "decode")
        }
        return replace(model, **graphs)

    neutral = replace(
        scenario,
        device=replace(
            scenario.device, throttle_after_ns=0, throttle_speed=1.0, throttle_rest_ns=5, rpc_polling_ns=0,
        ),
        instances=tuple(replace(i, llm=one_tier(i.llm)) for i in scenario.instances),
    )  # fmt: skip
    assert digest(simulate(scenario)) == digest(simulate(neutral))
