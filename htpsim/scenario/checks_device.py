"""What must hold of the device, and what its architecture can and cannot do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from htpsim.scenario.checks_models import cores_taken, models_of
from htpsim.scenario.checks_work import draws
from htpsim.scenario.quantities import write
from htpsim.scenario.sourced import Problem
from htpsim.scenario.wording import unknown_word
from htpsim.spec import ARCHITECTURES, Scenario
from htpsim.spec.device import FIRST_WITH_POLLING, FIRST_WITH_SHARING, POLLING_MAX_NS

SHORTEST_BURST_NS: Final = 1_000
"""Shortest burst of background traffic, and shortest pause of it; shorter ones would cost time and change nothing."""


def problems(scenario: Scenario) -> Iterator[Problem]:
    """Yield everything that is wrong with the device."""
    device = scenario.device
    if device.arch not in ARCHITECTURES:
        yield ("device", "arch"), unknown_word(device.arch, ARCHITECTURES)
    least = {"cores": 1, "hvx": 1, "pd_count": 1, "contexts_per_process": 1}
    for key, minimum in least.items():
        value = getattr(device, key)
        if value is not None and value < minimum:
            yield ("device", key), f"got {value}, expected at least {minimum}"
    for key in ("dram_bandwidth", "core_dram_bandwidth", "load_bandwidth"):
        if getattr(device, key) == 0:
            yield ("device", key), "got 0, expected a rate, or 'none' where it is not modelled"
    if device.pd_bytes == 0:
        yield ("device", "pd"), "got 0, expected the usable size of a protection domain"
    if device.yield_rule == "grid" and device.yield_interval_ns == 0:
        yield ("device", "yield_interval"), "got 0, expected the spacing of yield points for yield_rule 'grid'"
    for check in (_speeds, _parallel, _polling, _background):
        yield from check(scenario)


def _speeds(scenario: Scenario) -> Iterator[Problem]:
    """Check shares of a speed, and what belongs to them."""
    device = scenario.device
    for key in ("gang_efficiency", "pge_rate", "throttle_speed"):
        if not 0 < getattr(device, key) <= 1:
            yield ("device", key), f"got {getattr(device, key)}, expected above 0, at most 1"
    if device.power_up_warm_ns > device.power_up_ns:
        warm, cold = write(device.power_up_warm_ns, "ns"), write(device.power_up_ns, "ns")
        yield ("device", "power_up_warm"), f"got {warm}, expected at most power_up, {cold}: a cold core takes no less"
    if device.throttle_speed < 1 and device.throttle_after_ns is None:
        yield ("device", "throttle_speed"), f"got {device.throttle_speed} without a throttle_after, expected both"


def _parallel(scenario: Scenario) -> Iterator[Problem]:
    """Refuse parallel graph execution where there is none."""
    device, where = scenario.device, ("device", "pge")
    if not device.pge:
        return
    if device.arch in ARCHITECTURES and not device.coexists:
        text = f"got true on {device.arch}, expected false: nothing shares a core with a QNN graph before "
        yield where, text + FIRST_WITH_SHARING
    wide = [model.name for model in models_of(scenario) if cores_taken(device, model) > 1]
    if wide:
        text = f"got true with graphs built for several cores ({', '.join(wide)}), expected false: they exclude it"
        yield where, text


def _polling(scenario: Scenario) -> Iterator[Problem]:
    """Check how the host waits for answers."""
    device = scenario.device
    polling_ns = device.rpc_polling_ns
    if polling_ns is None:
        if device.rpc_wake_ns:
            taken = write(device.rpc_wake_ns, "ns")
            yield ("device", "rpc_wake"), f"got {taken} without an rpc_polling, expected both: '0s' never polls"
        return
    if polling_ns > POLLING_MAX_NS:
        most = write(POLLING_MAX_NS, "ns")
        yield ("device", "rpc_polling"), f"got {write(polling_ns, 'ns')}, expected at most {most}"
    if polling_ns and device.arch in ARCHITECTURES and device.arch < FIRST_WITH_POLLING:
        text = f"got {write(polling_ns, 'ns')} on {device.arch}, expected '0s': hosts poll from {FIRST_WITH_POLLING} on"
        yield ("device", "rpc_polling"), text


def _background(scenario: Scenario) -> Iterator[Problem]:
    """Check what camera and GPU take of the bandwidth."""
    device = scenario.device
    bursts_ns = {"background_on": device.background_on_ns, "background_off": device.background_off_ns}
    if any(bursts_ns.values()):
        for key, burst_ns in bursts_ns.items():
            if burst_ns < SHORTEST_BURST_NS:
                least = write(SHORTEST_BURST_NS, "ns")
                yield ("device", key), f"got {write(burst_ns, 'ns')} for traffic in bursts, expected at least {least}"
        if not device.background_bandwidth:
            yield ("device", "background_bandwidth"), "got 0 for traffic in bursts, expected what comes in one"
    if device.background_bandwidth:
        taken = write(device.background_bandwidth, "bytes_per_s")
        if device.dram_bandwidth is None:
            yield (
                ("device", "background_bandwidth"),
                f"got {taken} without a dram_bandwidth, expected both",
            )
        elif device.background_bandwidth >= device.dram_bandwidth:
            whole = write(device.dram_bandwidth, "bytes_per_s")
            yield ("device", "background_bandwidth"), f"got {taken}, expected less than dram_bandwidth, {whole}"


def notes(scenario: Scenario) -> Iterator[str]:
    """Yield what a reader of the results should know about device and run."""
    device, run = scenario.device, scenario.run
    if run.replications < 3 and draws(scenario):
        yield f"run.replications: {run.replications}; a comparison rests on at least 3"
    if device.cores > 1 and device.topology != "gang" and device.dram_bandwidth is None:
        yield f"device.dram_bandwidth: not given, so the {device.cores} cores do not slow each other; on a chip they do"
    if device.pge:
        graphs = [graph for model in models_of(scenario) for graph in model.all_graphs if graph.qnn]
        if graphs and 2 * min(graph.vtcm_bytes for graph in graphs) > device.vtcm_bytes:
            yield "device.pge: no two graphs fit into VTCM together, so that none runs beside another; see their vtcm"
    if device.dram_bandwidth is None:
        return
    left = device.dram_bandwidth - device.background_bandwidth
    for model in models_of(scenario):
        for graph in model.all_graphs:
            lowest = min(graph.service.sample, default=graph.service.low or graph.service.mean)
            if lowest and graph.dram_bytes * 10**9 > left * lowest:
                wanted = write(graph.dram_bytes * 10**9 // lowest // 10**8 * 10**8, "bytes_per_s")
                yield (
                    f"models.{model.name}.{graph.name}: asks for {wanted} of DRAM, more than the device has "
                    f"({write(left, 'bytes_per_s')}), so even alone it takes longer than its service time"
                )
