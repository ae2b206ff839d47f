"""The corpus of ``strategies`` with the rarer rules on: power, heat, polling, tiers, threads, a ViT on the host."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from htpsim.scenario.checks_models import cores_taken, models_of
from htpsim.spec import Arrivals, Device, Graph, Instance, Model, Registry, Scenario
from tests.sim.strategies import BYTE_A_NS, random_scenario


def spiced(seed: int) -> Scenario:
    """Return scenario number `seed` of the corpus, with some of what is off by default."""
    rng = random.Random(seed)
    scenario = random_scenario(seed)
    return replace(
        scenario,
        device=_parallel(rng, scenario, _device(rng, scenario.device)),
        guard=replace(scenario.guard, covers=rng.choice(("execute", "switches"))),
        registry=_registry(scenario.registry, rng.choice(("keys", "turns")), together=seed % 3 > 0),
        instances=tuple(_instance(rng, scenario, i) for i in scenario.instances),
    )


def _registry(registry: Registry, adapters: Any, *, together: bool) -> Registry:
    """Let instances with different adapters take turns, or have a copy each; for the former let them meet at one."""
    if adapters == "turns" and together:
        registry = replace(registry, llm=True, llm_copies="per-process")
    return replace(registry, adapters=adapters)


def _device(rng: random.Random, device: Device) -> Device:
    given: dict[str, Any] = {
        **rng.choice(({"power_up_ns": 0}, {"power_up_ns": 6}, {"power_up_ns": 6, "power_up_warm_ns": 3})),
        "first_call_ns": rng.choice((0, 0, 9)),
        "throttle_rest_ns": rng.choice((0, 40)),
        "rpc_return_ns": rng.choice((0, 2)),
    }
    if rng.random() < 0.5:
        given |= {"throttle_after_ns": rng.choice((0, 90, 400)), "throttle_speed": rng.choice((0.4, 0.9))}
    if rng.random() < 0.5:
        given |= {"rpc_polling_ns": rng.choice((0, 15, 60)), "rpc_wake_ns": rng.choice((0, 7))}
    if rng.random() < 0.4:
        given |= {"dram_bandwidth": 2 * BYTE_A_NS, "background_bandwidth": BYTE_A_NS + BYTE_A_NS // 2}
        given |= {"background_on_ns": rng.choice((3, 25)), "background_off_ns": rng.choice((4, 25, 60))}
    return replace(device, **given)


def _parallel(rng: random.Random, scenario: Scenario, device: Device) -> Device:
    """Let graphs run in parallel where none spans cores."""
    if rng.random() < 0.5 or any(cores_taken(device, model) > 1 for model in models_of(scenario)):
        return device
    return replace(device, pge=True, pge_rate=rng.choice((0.4, 0.5, 0.7, 1.0)))


def _tiered(rng: random.Random, graphs: tuple[Graph, ...], most: int) -> tuple[Graph, ...]:
    """Return the same graphs for two context lengths."""
    lengths = (rng.randint(1, most - 1), most)
    return tuple(
        replace(graph, name=f"{graph.name} of {tokens}", tier_tokens=tokens) for tokens in lengths for graph in graphs
    )


def _llm(rng: random.Random, model: Model, scope: str) -> Model:
    most = model.context_tokens
    return replace(
        model,
        prefill=_tiered(rng, model.prefill, most) if rng.random() < 0.5 else model.prefill,
        decode=_tiered(rng, model.decode, most),
        lora_switch_ns=rng.choice((0, 11)),
        graph_switch_ns=rng.choice((0, 0, 5)) if scope == "graph" else 0,
    )


def _instance(rng: random.Random, scenario: Scenario, instance: Instance) -> Instance:
    given: dict[str, Any] = {"host_gap_stage_ns": rng.choice((0, 0, 3))}
    scope = scenario.guard.scope
    if instance.llm is not None:
        # One model may serve several instances: what it becomes may only depend on itself.
        given["llm"] = _llm(random.Random(f"{scenario.run.seed} {instance.llm.name}"), instance.llm, scope)
        if scope == "graph":
            given["adapter"] = rng.choice(("", "formal", "casual"))
    if instance.vit is not None and rng.random() < 0.3:
        given["vit_path"] = "host"
    both = instance.vit is not None and instance.llm is not None
    if both and scope == "graph" and rng.random() < 0.6:
        arrivals = instance.arrivals
        if arrivals.kind == "closed":
            arrivals = Arrivals(kind="periodic", period_ns=rng.randint(20, 90))
        given |= {"vit_thread": "own", "arrivals": arrivals}
    return replace(instance, **given)


def pressed(scenario: Scenario, seed: int) -> Scenario:
    """Return the scenario with little room, so that copies are unloaded and loaded again as it runs."""
    rng = random.Random(f"pressed {seed}")
    makes_room = rng.choice((True, True, False))
    return replace(
        scenario,
        device=replace(
            scenario.device,
            dram_budget_bytes=rng.randint(24, 40) if makes_room else rng.choice((None, 60)),
            load_bandwidth=rng.choice((BYTE_A_NS, BYTE_A_NS, None)),
            leak_bytes=rng.choice((0, 0, 0, 1)),
        ),
        runtime=replace(scenario.runtime, make_room="idle" if makes_room else "never"),
        instances=tuple(
            replace(i, vit_residency="request" if i.vit is not None and rng.random() < 0.5 else "stays")
            for i in scenario.instances
        ),
    )
