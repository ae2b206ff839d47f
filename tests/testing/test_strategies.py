"""What htpsim.testing generates: valid, varied, repeatable, and with the premises it promises."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import HealthCheck, find, given, settings

from htpsim.invariants import check_trace
from htpsim.invariants.shares import backlogs
from htpsim.invariants.spans import History
from htpsim.scenario import problems
from htpsim.sched import POLICIES
from htpsim.sim import simulate
from htpsim.spec import Device, Instance, Scenario
from htpsim.testing import (
    backlogged_scenarios,
    devices,
    instances,
    random_backlogged,
    random_scenario,
    scenarios,
    trace_scenario,
)

ROOT = Path(__file__).resolve().parents[2]
SEEDS = range(150)


@given(scenarios())
def test_scenarios_pass_the_checks_of_scenario_files(scenario: Scenario) -> None:
    assert problems(scenario) == []


@given(backlogged_scenarios("drr", slots=None))
def test_backlogged_scenarios_do_too(scenario: Scenario) -> None:
    assert problems(scenario) == []
    assert scenario.guard.policy == "drr"


def test_and_those_from_seeds() -> None:
    for seed in SEEDS:
        assert problems(random_scenario(seed)) == []
        assert problems(random_backlogged(seed)) == []


@given(devices(cores=2), instances(name="mine"))
def test_parts_may_be_used_by_themselves(device: Device, instance: Instance) -> None:
    assert device.cores == 2
    assert instance.name == "mine"


def test_a_seed_is_a_scenario() -> None:
    assert random_scenario(3) == random_scenario(3)
    assert len({random_scenario(seed) for seed in SEEDS}) == len(SEEDS)


@pytest.mark.parametrize("policy", POLICIES)
def test_the_policy_may_be_chosen_and_its_parameters(policy: str) -> None:
    assert random_scenario(1, policy).guard.policy == policy
    assert random_backlogged(1, policy, slots=2).guard.slots == 2
    params = {"quantum_ns": 5} if policy == "drr" else {}
    assert random_scenario(1, policy, params).guard.params == tuple(params.items())


def test_every_account_of_a_backlogged_run_is_backlogged_to_the_end() -> None:
    for seed in range(25):
        trace = trace_scenario(random_backlogged(seed, "sfq"))
        history = History(trace)
        for lane in history.guard_events:
            for backlog in backlogs(history, lane).values():
                assert len(backlog.stretches) == 1
                assert backlog.stretches[0][1] == trace.last_ns


def test_the_scenarios_are_varied() -> None:
    """What happens in a few hundred runs: without this, a rule might never have been put to the test."""
    seen = dict.fromkeys(
        ("evicted", "gang", "app beside a graph", "slowed by bandwidth", "failed load", "shared copy", "dropped",
         "refused", "waited at the guard", "slot for a request", "two processes", "in flight at the end", "tie",
         "loaded again", "waited for a turn", "switched", "its own thread", "throttled",
         "several lengths"), 0,
    )  # fmt: skip
    for seed in range(250):
        log = simulate(random_scenario(seed))
        trace = trace_scenario(random_scenario(seed))
        kinds = {event.kind for event in trace.events}
        states = {event.kind for event in trace.requests}
        calls = trace.calls.values()
        seen["evicted"] += "yield" in kinds
        seen["gang"] += any(len(call.cores) > 1 for call in calls)
        seen["app beside a graph"] += len({call.qnn for call in calls}) == 2
        seen["slowed by bandwidth"] += any(trace.parts[n].run_ns > trace.calls[n].solo_ns for n in trace.parts)
        seen["failed load"] += bool(log.failed)
        seen["shared copy"] += any(copy.users > 1 for copy in log.copies)
        seen["dropped"] += "drop" in states
        seen["refused"] += "refuse" in states
        seen["waited at the guard"] += any(parts.guard_wait_ns for parts in trace.parts.values())
        seen["slot for a request"] += any(call.under is not None for call in calls)
        seen["two processes"] += len({call.process for call in calls}) == 2
        seen["in flight at the end"] += len(trace.parts) < len(trace.calls)
        later = {load.role for load in log.loads if load.start_ns > log.ready_ns}
        models = [i.llm for i in log.scenario.instances if i.llm is not None]
        seen["loaded again"] += "owner" in later
        seen["waited for a turn"] += any("for its turn" in note for note in log.notes)
        seen["switched"] += any(model.graph_switch_ns or model.lora_switch_ns for model in models)
        seen["its own thread"] += any(i.vit_thread == "own" for i in log.scenario.instances)
        seen["throttled"] += log.scenario.device.throttle_after_ns is not None
        seen["several lengths"] += any(graph.tier_tokens for model in models for graph in model.all_graphs)
        submitted = [event.time_ns for event in trace.events if event.kind == "submit"]
        seen["tie"] += len(set(submitted)) < len(submitted)

    assert min(seen.values()) >= 3, seen


@pytest.mark.verify
def test_a_small_scenario_is_found_for_a_property() -> None:
    """Strategies shrink: the smallest run with an eviction has few clients and few graphExecutes."""

    def evicts(scenario: Scenario) -> bool:
        return any(event.kind == "yield" for event in trace_scenario(scenario).events)

    small = find(
        scenarios("fifo"), evicts,
        settings=settings(suppress_health_check=list(HealthCheck), derandomize=True, max_examples=3_000, database=None),
    )  # fmt: skip

    assert len(small.instances) + len(small.clients) <= 3
    assert check_trace(trace_scenario(small)).ok


def test_only_the_testing_package_knows_hypothesis() -> None:
    users = set()
    for path in sorted((ROOT / "htpsim").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if any(name.split(".")[0] == "hypothesis" for name in names):
                users.add(path.relative_to(ROOT / "htpsim").parts[0])

    assert users == {"testing"}
