"""Features beside those that the generated scenarios of other tests have: what takes its time on a device."""

from __future__ import annotations

import random
from dataclasses import replace

from htpsim.spec import Graph, Instance, Model, Scenario


def spiced(scenario: Scenario, seed: int) -> Scenario:
    """Return the scenario with more of the device's and the models' parameters set."""
    chance = random.Random(seed)
    of = chance.choice
    device = replace(
        scenario.device,
        power_up_ns=of((0, 6)),
        power_up_warm_ns=of((0, 2)),
        first_call_ns=of((0, 5)),
        throttle_after_ns=of((None, 60)),
        throttle_speed=of((0.5, 0.8)),
        throttle_rest_ns=of((0, 25)),
        rpc_polling_ns=of((None, 20)),
        rpc_wake_ns=of((0, 3)),
        pge=of((False, True)) and scenario.device.topology != "gang",
        pge_rate=of((0.5, 0.7)),
    )
    if device.background_bandwidth:
        device = replace(device, background_on_ns=of((0, 30)), background_off_ns=of((0, 20)))
    instances = tuple(spiced_instance(each, chance) for each in scenario.instances)
    return replace(scenario, device=device, instances=instances)


def spiced_instance(instance: Instance, chance: random.Random) -> Instance:
    if instance.vit is not None and chance.random() < 0.2:
        instance = replace(instance, vit_path="host")
    if instance.llm is not None and chance.random() < 0.5:
        instance = replace(instance, llm=tiered(instance.llm, chance))
    return instance


def tiered(llm: Model, chance: random.Random) -> Model:
    """Return a model with a set of graphs for each of two context lengths."""
    return replace(llm, name=f"{llm.name} by tiers", prefill=sets(llm.prefill, chance), decode=sets(llm.decode, chance))


def sets(graphs: tuple[Graph, ...], chance: random.Random) -> tuple[Graph, ...]:
    lengths = sorted(chance.sample(range(4, 40), 2))
    return tuple(replace(g, name=f"{g.name} {length}", tier_tokens=length) for length in lengths for g in graphs)
