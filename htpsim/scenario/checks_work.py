"""What must hold of those who ask for the HTP: instances, other clients, their arrivals, weights and priorities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from htpsim.scenario.checks_models import copy_core, least, models_of
from htpsim.scenario.quantities import write
from htpsim.scenario.sourced import Path, Problem
from htpsim.scenario.wording import unknown_word
from htpsim.spec import NORMAL, PRIORITIES, Arrivals, Distribution, Instance, OtherClient, Scenario
from htpsim.spec.plan import level_of

_PERIODIC = ("periodic", "poisson")


def problems(scenario: Scenario) -> Iterator[Problem]:
    """Yield everything that is wrong with instances and clients."""
    users: list[Instance | OtherClient] = [*scenario.instances, *scenario.clients]
    for name, count in Counter(user.name for user in users).items():
        if count > 1:
            where = "instances" if any(user.name == name for user in scenario.instances) else "clients"
            yield (where, name), f"got {count} instances or clients of this name, expected a name of its own for each"
    for instance in scenario.instances:
        path = ("instances", instance.name)
        yield from _instance(instance, path)
        yield from _prompt(instance, path)
        yield from _own_thread(scenario, instance, path)
        yield from _turns(scenario, instance, path)
        yield from _stale_handle(scenario, instance, path)
        yield from _arrivals(instance.arrivals, (*path, "arrivals"))
    for client in scenario.clients:
        path = ("clients", client.name)
        yield from _client(client, path)
        yield from _arrivals(client.arrivals, (*path, "arrivals"))


def _instance(instance: Instance, path: Path) -> Iterator[Problem]:
    if instance.vit is None and instance.llm is None:
        yield path, "got neither vit nor llm, expected at least one, the name of a model"
    for role in ("vit", "llm"):
        model = getattr(instance, role)
        if model is not None and model.role != role:
            yield (*path, role), f"got '{model.name}' of role '{model.role}', expected a model of role '{role}'"
        yield from _priority(getattr(instance, f"{role}_priority"), (*path, f"{role}_priority"))
    for key in ("weight", "dialog_turns"):
        if getattr(instance, key) < 1:
            yield (*path, key), f"got {getattr(instance, key)}, expected at least 1"


def _own_thread(scenario: Scenario, instance: Instance, path: Path) -> Iterator[Problem]:
    """Refuse a thread for the ViT alone where it has nothing to do beside the LLM."""
    if instance.vit_thread == "same":
        return
    where = (*path, "vit_thread")
    if instance.vit is None or instance.llm is None:
        yield where, "got 'own' without both vit and llm, expected 'same': there is nothing to do beside the other"
    if instance.arrivals.kind == "closed":
        text = "got 'own' in a closed loop, expected arrivals that do not wait: the next request follows the answer"
        yield where, text
    if scenario.guard.scope == "request":
        yield where, "got 'own' with guard.scope 'request', expected 'same': one slot would be held by two threads"


def _turns(scenario: Scenario, instance: Instance, path: Path) -> Iterator[Problem]:
    """Refuse an adapter of nothing, and a guard that is held while its thread waits for a turn at a copy."""
    if instance.adapter and instance.llm is None:
        yield (*path, "adapter"), f"got '{instance.adapter}' without an llm, expected none"
    if scenario.guard.scope != "request" or instance.llm is None:
        return
    others = {other.adapter for other in scenario.instances if other.llm == instance.llm}
    if instance.llm.graph_switch_ns or (len(others) > 1 and scenario.registry.adapters == "turns"):
        text = (
            f"got 'request' where '{instance.name}' waits for turns at its llm, expected 'graph': the one whose turn "
        )
        yield ("guard", "scope"), text + "it is would wait for the slot that the other holds"


def _priority(priority: str, path: Path) -> Iterator[Problem]:
    if priority not in PRIORITIES:
        yield path, unknown_word(priority, PRIORITIES)


def _prompt(instance: Instance, path: Path) -> Iterator[Problem]:
    llm = instance.llm
    if llm is None:
        return
    if instance.output_tokens.kind in {"constant", "sample", "uniform"} and least(instance.output_tokens) < 1:
        yield (*path, "output_tokens"), "got 0, expected at least 1: prefill yields the first token"
    # Without a ViT there are no images, whatever a request says.
    images = least(instance.images) * instance.vit.tokens_per_image if instance.vit else 0
    shortest = images + least(instance.text_tokens)
    parts = (instance.images, instance.text_tokens) if instance.vit else (instance.text_tokens,)
    if all(d.kind == "constant" and d.mean == 0 for d in parts):
        yield (*path, "text_tokens"), "got 0 with no images, expected a prompt of at least one token"
    needed = shortest + max(1, least(instance.output_tokens))
    if needed > llm.context_tokens:
        limit = f"{llm.context_tokens}, the context of '{llm.name}'"
        text = f"got requests of at least {needed} tokens, expected at most {limit}"
        yield path, text


def _stale_handle(scenario: Scenario, instance: Instance, path: Path) -> Iterator[Problem]:
    if instance.stale_handle_of is None:
        return
    others = {other.name: other for other in scenario.instances if other.name != instance.name}
    where = (*path, "stale_handle_of")
    if instance.stale_handle_of not in others:
        text = unknown_word(instance.stale_handle_of, others)
        yield (
            where,
            text if others else f"got '{instance.stale_handle_of}', expected another instance, and there is none",
        )
    elif others[instance.stale_handle_of].process != instance.process:
        yield where, f"got '{instance.stale_handle_of}' of another process, expected an instance of the same one"


def _client(client: OtherClient, path: Path) -> Iterator[Problem]:
    if client.model.role == "llm":
        yield (
            (*path, "model"),
            f"got '{client.model.name}' of role 'llm', expected a model with graphs, of role 'other'",
        )
    if client.weight < 1:
        yield (*path, "weight"), f"got {client.weight}, expected at least 1"
    yield from _priority(client.priority, (*path, "priority"))


def _arrivals(arrivals: Arrivals, path: Path) -> Iterator[Problem]:
    if arrivals.kind in _PERIODIC and arrivals.period_ns == 0:
        yield (*path, "period"), f"got nothing, expected a time for kind '{arrivals.kind}'"
    if arrivals.kind == "replay" and not arrivals.times_ns:
        yield (*path, "times"), "got none, expected at least one arrival time for kind 'replay'"
    if list(arrivals.times_ns) != sorted(arrivals.times_ns):
        yield (*path, "times"), "got times out of order, expected them ascending"


def notes(scenario: Scenario) -> Iterator[str]:
    """Yield what a reader of the results should know about the work."""
    users: list[tuple[str, Instance | OtherClient]] = [(f"instances.{user.name}", user) for user in scenario.instances]
    users += [(f"clients.{user.name}", user) for user in scenario.clients]
    locked = [place for place, user in users if _locks(user)]
    if len(locked) > 1:
        yield (
            f"{', '.join(locked)}: closed loops with a constant think time lock phase: a start offset alone can "
            "change the sign of a comparison; let it vary, such as think = { kind = 'exponential', mean = '1s' }"
        )
    for place, user in users:
        yield from (
            f"{place}.arrivals.{key}: not used by kind '{user.arrivals.kind}'" for key in _unused(user.arrivals)
        )
    yield from _weight_notes(scenario)
    yield from _priority_notes(scenario)
    if scenario.device.priority_clamp:
        clamped = [place for place, user in users if _above_normal(user)]
        if clamped:
            yield f"{', '.join(clamped)}: priority above NORMAL, which device.priority_clamp turns into NORMAL"
    wrapped = [user.name for user in scenario.instances if user.vit is not None and user.vit_path == "genie"]
    if wrapped and not scenario.runtime.embedding_raw_apis:
        outcome = {"fail": "these instances fail", "fallback": "their ViT falls back to path qnn"}
        yield (
            f"runtime.embedding_raw_apis: false, so the ViT-on-Genie wrapper of {', '.join(wrapped)} throws at "
            f"creation; {outcome[scenario.runtime.on_throw]}"
        )


def draws(scenario: Scenario) -> bool:
    """Tell whether anything is left to chance, so that replications differ."""
    users: list[Instance | OtherClient] = [*scenario.instances, *scenario.clients]
    drawn = [graph.service for model in models_of(scenario) for graph in model.all_graphs]
    for user in users:
        if user.arrivals.kind == "poisson" or (user.arrivals.kind == "periodic" and user.arrivals.jitter_ns):
            return True
        drawn += [user.arrivals.think] if user.arrivals.kind == "closed" else []
        drawn += [user.images, user.text_tokens, user.output_tokens] if isinstance(user, Instance) else []
    return not all(map(_is_constant, drawn))


def _is_constant(d: Distribution) -> bool:
    return d.kind == "constant" or (d.kind == "lognormal" and d.cv == 0) or len(set(d.sample)) == 1


def _locks(user: Instance | OtherClient) -> bool:
    """Tell whether requests come in lockstep with the answers; a client that never pauses has no phase to lock."""
    never_away = isinstance(user, OtherClient) and user.arrivals.think.mean == 0
    return user.arrivals.kind == "closed" and _is_constant(user.arrivals.think) and not never_away


def _unused(arrivals: Arrivals) -> Iterator[str]:
    if arrivals.period_ns and arrivals.kind not in _PERIODIC:
        yield f"period ({write(arrivals.period_ns, 'ns')})"
    if arrivals.jitter_ns and arrivals.kind != "periodic":
        yield f"jitter ({write(arrivals.jitter_ns, 'ns')})"
    if arrivals.times_ns and arrivals.kind != "replay":
        yield "times"


def _above_normal(user: Instance | OtherClient) -> bool:
    names = [user.vit_priority, user.llm_priority] if isinstance(user, Instance) else [user.priority]
    return any(name in PRIORITIES and PRIORITIES.index(name) > NORMAL for name in names)


def _weight_notes(scenario: Scenario) -> Iterator[str]:
    """Say where weights are given and cannot matter."""
    guard = scenario.guard
    guarded = [user for user in scenario.instances if _is_guarded(user)]
    others = [client for client in scenario.clients if client.path == "genie"]
    accounts = [(user.process, user.weight) for user in guarded] + [
        (client.process, client.weight) for client in others
    ]
    if len({weight for _, weight in accounts}) < 2:
        return
    if guard.policy in {"fifo", "priority"}:
        yield f"guard.policy: '{guard.policy}' does not look at weights, and they differ"
    slots = guard.slots or (scenario.device.cores if guard.slots_per == "process" else 0)
    for process, count in sorted(Counter(process for process, _ in accounts).items()):
        if guard.slots_per == "process" and count <= slots:
            who = f"the {count} guarded threads of process {process}"
            yield f"guard.slots: {slots} for {who}: nobody ever waits, so weights do nothing"


def _priority_notes(scenario: Scenario) -> Iterator[str]:
    """Say which copies are shared by users of different priorities; a device has one for the context."""
    for role, users in _sharing(scenario):
        given = {user.name: str(getattr(user, f"{role}_priority")) for user in users}
        if len({level_of(priority, scenario.device) for priority in given.values()}) > 1:
            yield (
                f"instances.{role}_priority: {', '.join(f'{who} {what}' for who, what in given.items())} on one copy "
                f"of '{getattr(users[0], role).name}'; each call is taken at its caller's, but on a device the "
                "priority belongs to the context, and so to all of them"
            )


def _sharing(scenario: Scenario) -> Iterator[tuple[str, list[Instance]]]:
    """Yield the role of each copy that the registry lets several instances share, and these."""
    registry = scenario.registry
    shared: dict[tuple[str, str, int, str, int], list[Instance]] = {}
    for index, user in enumerate(scenario.instances):
        vit, llm = registry.vit and user.vit_path != "host", registry.llm
        for role, goes_through, copies in (("vit", vit, registry.vit_copies), ("llm", llm, registry.llm_copies)):
            model = getattr(user, role)
            core = None if model is None else copy_core(scenario, index, model)
            if not goes_through or model is None or (core is None and copies == "per-core"):
                continue
            adapter = user.adapter if role == "llm" and registry.adapters == "keys" else ""
            key = role, model.name, user.process, adapter, -1 if core is None else core
            shared.setdefault(key, []).append(user)
    yield from ((role, users) for (role, *_), users in shared.items() if len(users) > 1)


def _is_guarded(user: Instance) -> bool:
    return (user.llm is not None and user.llm_path == "genie") or (user.vit is not None and user.vit_path == "genie")
