"""What must hold of a scenario as a whole, whoever made it: a file, or a user's Python code. All problems at once.

A check is a function from the scenario to (path, text) pairs; `_CHECKS` lists them. Paths use the keys of scenario
files: ``device.evict`` for ``Device.evict_ns``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from htpsim.errors import ScenarioError
from htpsim.scenario import checks_device, checks_models, checks_work
from htpsim.scenario.checks_models import copy_core
from htpsim.scenario.checks_values import value_problems
from htpsim.scenario.quantities import write
from htpsim.scenario.sourced import Problem
from htpsim.scenario.wording import unknown_key
from htpsim.spec import Scenario
from htpsim.spec.limits import longest_horizon_ns


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
    return [note for warn in (checks_device.notes, checks_work.notes) for note in warn(scenario)]


def _run(scenario: Scenario) -> Iterator[Problem]:
    run = scenario.run
    if run.duration_ns == 0:
        yield ("run", "duration"), "got 0, expected a time to measure"
    if run.replications < 1:
        yield ("run", "replications"), f"got {run.replications}, expected at least 1"
    most_ns = longest_horizon_ns(scenario.guard.policy, max(scenario.guard.slots, scenario.device.cores))
    if run.duration_ns + run.warmup_ns >= most_ns:
        longest = write(most_ns // 10**9 * 10**9, "ns")
        yield (
            ("run", "duration"),
            f"got {write(run.duration_ns, 'ns')} with warm-up, expected less than {longest}",
        )
    if not scenario.instances and not scenario.clients:
        yield ("instances",), "got none, expected at least one instance or client"


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


_CHECKS: Final[tuple[Callable[[Scenario], Iterator[Problem]], ...]] = (
    _run,
    checks_device.problems,
    _guard,
    _request_scope,
    checks_models.problems,
    checks_work.problems,
)
