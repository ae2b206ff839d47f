"""What must hold of a scenario as a whole, whoever made it: a file, or a user's Python code. All problems at once.

A check is a function from the scenario to (path, text) pairs; `_CHECKS` lists them. Paths use the keys of scenario
files: ``device.evict`` for ``Device.evict_ns``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from htpsim.errors import ScenarioError
from htpsim.scenario import checks_models, checks_work
from htpsim.scenario.checks_models import copy_core, models_of
from htpsim.scenario.checks_values import value_problems
from htpsim.scenario.quantities import write
from htpsim.scenario.sourced import Problem
from htpsim.scenario.wording import unknown_key, unknown_word
from htpsim.spec import ARCHITECTURES, Scenario
from htpsim.spec.device import FIRST_WITH_POLLING, POLLING_MAX_NS

VIRTUAL_TIME_MAX_NS: Final = 2**46
"""Slots x horizon below which virtual times, scaled by 2^16, stay within 62 bits."""

SHORTEST_BURST_NS: Final = 1_000
"""Shortest burst of background traffic, and shortest pause of it; shorter ones would cost time and change nothing."""


def findings(scenario: Scenario) -> list[Problem]:
    """Return everything that is wrong with a scenario as (path, text); empty when it can be simulated."""
    found = list(value_problems(scenario))
    if not found:  # the rules below may rely on sound values
        found = [problem for check in _CHECKS for problem in check(scenario)]
    return list(dict.fromkeys(found))


def problems(scenario: Scenario) -> list[str]:
    """Return everything that is wrong with a scenario, one line each; empty when it can be simulated.

    >>> problems(Scenario())
    ['instances: got none, expected at least one instance or client']
    """
    return [f"{'.'.join(path)}: {text}" for path, text in findings(scenario)]


def warnings(scenario: Scenario) -> list[str]:
    """Return what a reader of the results should know beforehand, one sentence each."""
    return [note for warn in (_device_notes, checks_work.notes) for note in warn(scenario)]


def _run(scenario: Scenario) -> Iterator[Problem]:
    run = scenario.run
    if run.duration_ns == 0:
        yield ("run", "duration"), "got 0, expected a time to measure"
    if run.replications < 1:
        yield ("run", "replications"), f"got {run.replications}, expected at least 1"
    slots = max(scenario.guard.slots, scenario.device.cores)
    if (run.duration_ns + run.warmup_ns) * slots >= VIRTUAL_TIME_MAX_NS:
        longest = write(VIRTUAL_TIME_MAX_NS // slots // 10**9 * 10**9, "ns")
        yield (
            ("run", "duration"),
            f"got {write(run.duration_ns, 'ns')} with warm-up, expected less than {longest}",
        )
    if not scenario.instances and not scenario.clients:
        yield ("instances",), "got none, expected at least one instance or client"


def _device(scenario: Scenario) -> Iterator[Problem]:
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
    if not 0 < device.gang_efficiency <= 1:
        yield ("device", "gang_efficiency"), f"got {device.gang_efficiency}, expected above 0, at most 1"
    if not 0 < device.throttle_speed <= 1:
        yield ("device", "throttle_speed"), f"got {device.throttle_speed}, expected above 0, at most 1"
    if device.power_up_warm_ns > device.power_up_ns:
        warm, cold = write(device.power_up_warm_ns, "ns"), write(device.power_up_ns, "ns")
        yield ("device", "power_up_warm"), f"got {warm}, expected at most power_up, {cold}: a cold core takes no less"
    if device.throttle_speed < 1 and device.throttle_after_ns is None:
        yield ("device", "throttle_speed"), f"got {device.throttle_speed} without a throttle_after, expected both"


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


def _guard(scenario: Scenario) -> Iterator[Problem]:
    from htpsim.sched import policy_class

    guard = scenario.guard
    if guard.default_weight < 1:
        yield ("guard", "default_weight"), f"got {guard.default_weight}, expected at least 1"
    try:
        policy = policy_class(guard.policy)
    except ScenarioError as error:
        yield from ((("guard", "policy"), text.removeprefix("guard.policy: ")) for text in error.problems)
        return
    limits: dict[str, tuple[int, int]] = getattr(policy, "limits", {})
    for name, value in guard.params:
        key, unit = name.removesuffix("_ns"), "ns" if name.endswith("_ns") else ""
        least, greatest = limits.get(name, (value, value))
        if name not in policy.params:
            keys = [other.removesuffix("_ns") for other in policy.params]
            yield ("guard", "params", key), f"{unknown_key(key, keys)} (policy {guard.policy})"
        elif not least <= value <= greatest:
            wanted = f"{write(least, unit)} to {write(greatest, unit)}"
            yield ("guard", "params", key), f"got {write(value, unit)}, expected {wanted} (policy {guard.policy})"


def _request_scope(scenario: Scenario) -> Iterator[Problem]:
    """Refuse a guard held over a whole request where slots are a core's and the request may change cores."""
    guard = scenario.guard
    if guard.scope != "request" or guard.slots_per != "core":
        return
    for index, instance in enumerate(scenario.instances):
        if instance.vit is None or instance.llm is None or instance.vit_path != "genie" or instance.llm_path != "genie":
            continue
        cores = {copy_core(scenario, index, instance.vit), copy_core(scenario, index, instance.llm)}
        if len(cores) > 1 or None in cores:
            why = f"ViT and LLM of '{instance.name}' may be on two cores"
            yield ("guard", "scope"), f"got 'request' with slots_per 'core', expected 'graph': {why}"
            return


def _device_notes(scenario: Scenario) -> Iterator[str]:
    device, run = scenario.device, scenario.run
    if run.replications < 3 and checks_work.draws(scenario):
        yield f"run.replications: {run.replications}; a comparison rests on at least 3"
    if device.cores > 1 and device.topology != "gang" and device.dram_bandwidth is None:
        yield f"device.dram_bandwidth: not given, so the {device.cores} cores do not slow each other; on a chip they do"
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


_CHECKS: Final[tuple[Callable[[Scenario], Iterator[Problem]], ...]] = (
    _run,
    _device,
    _polling,
    _background,
    _guard,
    _request_scope,
    checks_models.problems,
    checks_work.problems,
)
