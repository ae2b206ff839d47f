"""What is off by default, switched on in generated scenarios: heat, power, polling, tiers, switches, copies that go.

Not among it is background traffic in bursts: scenario files refuse bursts as short as these runs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from htpsim.spec import Arrivals, Device, Graph, Instance, Model, Registry, Runtime, Scenario
from htpsim.testing.choose import Chooser


def with_rarer(c: Chooser, scenario: Scenario) -> Scenario:
    """Return the scenario with some of what is off by default, or as it is."""
    if c.of(True, False):
        return scenario
    graph_wise = scenario.guard.scope == "graph"
    models = {model.name: _model(c, model, switched=graph_wise) for model in _models(scenario)}
    registry = _registry(c, scenario.registry) if graph_wise else scenario.registry
    instances = tuple(
        _instance(c, replace(i, vit=i.vit and models[i.vit.name], llm=i.llm and models[i.llm.name]), apart=graph_wise)
        for i in scenario.instances
    )
    if registry.adapters == "turns":
        llm = next((i.llm for i in instances if i.llm is not None), None)
        instances = tuple(i if i.llm is None else replace(i, llm=llm, adapter=c.of("a", "b", "")) for i in instances)
    pressed = bool(instances) and c.of(False, False, True)
    return replace(
        scenario,
        device=_device(c, scenario.device, pressed=pressed, wide=_is_wide(scenario)),
        guard=replace(scenario.guard, covers=c.of("execute", "switches")),
        registry=registry,
        runtime=_runtime(c, scenario.runtime, pressed=pressed),
        instances=instances,
    )


def _models(scenario: Scenario) -> list[Model]:
    used = [model for i in scenario.instances for model in (i.vit, i.llm) if model is not None]
    return list(dict.fromkeys(used))


def _is_wide(scenario: Scenario) -> bool:
    """Tell whether a graph may span cores."""
    models = [*_models(scenario), *(client.model for client in scenario.clients)]
    return scenario.device.topology == "gang" or any(model.built_for_cores > 1 for model in models)


def _device(c: Chooser, device: Device, *, pressed: bool, wide: bool) -> Device:
    cold_ns = c.of(device.power_up_ns, 6)
    given: dict[str, Any] = {
        "power_up_ns": cold_ns,
        "power_up_warm_ns": min(cold_ns, c.of(0, 2)),
        "first_call_ns": c.of(0, 5),
        "pd_rule": c.of("by-model", "any"),
        "contexts_per_process": c.of(None, None, 6),
        "leak_bytes": c.of(0, 0, 1),
    }
    if c.of(False, True):
        given |= {"throttle_after_ns": c.of(0, 40), "throttle_speed": c.of(0.5, 0.8), "throttle_rest_ns": c.of(0, 15)}
    if c.of(False, True):
        given |= {"rpc_polling_ns": c.of(0, 10), "rpc_wake_ns": c.of(0, 3)}
    if not wide and c.of(False, True):
        given |= {"pge": True, "pge_rate": c.of(0.5, 0.7, 1.0)}
    if pressed:
        given |= {"dram_budget_bytes": c.whole(14, 40)}
    return replace(device, **given)


def _registry(c: Chooser, registry: Registry) -> Registry:
    """Return a registry in which instances with different adapters may meet at one copy."""
    if c.of(True, False):
        return registry
    return replace(registry, adapters="turns", llm=True, llm_copies=c.of("per-process", "per-core"))


def _runtime(c: Chooser, runtime: Runtime, *, pressed: bool) -> Runtime:
    return replace(runtime, make_room=c.of("idle", "never") if pressed else "never")


def _model(c: Chooser, model: Model, *, switched: bool) -> Model:
    """Return a model as it is for all of its users."""
    given: dict[str, Any] = {"weight_sharing": c.of(True, True, False)}
    if model.load == "read":
        given |= {"file_kept": c.of(True, False), "read_budget_bytes": c.of(None, 2)}
    if model.role == "llm":
        if c.of(False, True):
            given |= {"prefill": _tiered(c, model.prefill, model.context_tokens)}
        if c.of(False, True):
            given |= {"decode": _tiered(c, model.decode, model.context_tokens)}
        given |= {"lora_switch_ns": c.of(0, 6), "graph_switch_ns": c.of(0, 0, 4) if switched else 0}
    return replace(model, **given)


def _tiered(c: Chooser, graphs: tuple[Graph, ...], most: int) -> tuple[Graph, ...]:
    """Return the same graphs for two context lengths."""
    lengths = (c.whole(1, most - 1), most)
    return tuple(
        replace(graph, name=f"{graph.name} of {tokens}", tier_tokens=tokens) for tokens in lengths for graph in graphs
    )


def _instance(c: Chooser, instance: Instance, *, apart: bool) -> Instance:
    """Return an instance with what is its own; `apart` where its ViT may have a thread beside the LLM's."""
    given: dict[str, Any] = {"host_gap_stage_ns": c.of(0, 0, 2)}
    if instance.vit is not None:
        given |= {"vit_path": c.of(instance.vit_path, instance.vit_path, "host")}
        given |= {"vit_residency": c.of("stays", "stays", "request")}
    if not apart:
        given |= {"adapter": ""}
    if apart and instance.vit is not None and instance.llm is not None and c.of(False, True):
        arrivals = instance.arrivals
        if arrivals.kind == "closed":
            arrivals = Arrivals(kind="periodic", period_ns=c.whole(10, 60))
        given |= {"vit_thread": "own", "arrivals": arrivals}
    return replace(instance, **given)
