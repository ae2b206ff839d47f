"""Scenarios of the corpus with everything taken away for which code is not specialised."""

from __future__ import annotations

from dataclasses import replace

from htpsim.spec import Device, Guard, Instance, Scenario
from tests.sim.strategies import BYTE_A_NS, random_scenario


def simple(seed: int, *, shared: bool) -> Scenario:
    """Return scenario number `seed`, its VLMs only, at one priority; with DRAM bandwidth or without."""
    scenario = random_scenario(seed)
    return replace(
        scenario,
        device=_device(scenario.device, (1 + seed % 3) * BYTE_A_NS // 2 if shared else None),
        guard=_guard(scenario.guard),
        instances=tuple(_instance(i) for i in scenario.instances),
        clients=(),
    )


def _device(given: Device, bandwidth: int | None) -> Device:
    return replace(
        given,
        topology="device-per-core" if given.topology == "gang" else given.topology,
        dram_bandwidth=bandwidth,
        background_bandwidth=min(given.background_bandwidth, BYTE_A_NS // 3) if bandwidth else 0,
        core_dram_bandwidth=None,
        power_up_ns=0,
        rpc_return_ns=0,
    )


def _guard(given: Guard) -> Guard:
    return replace(given, scope="graph", gap_inside=False)


def _instance(given: Instance) -> Instance:
    vit = given.vit and replace(given.vit, built_for_cores=0)
    llm = given.llm and replace(given.llm, built_for_cores=0)
    return replace(given, vit=vit, llm=llm, vit_priority="NORMAL", llm_priority="NORMAL")
