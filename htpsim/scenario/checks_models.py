"""What must hold of the models, and of the device they are to run on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from htpsim.scenario.quantities import write
from htpsim.scenario.sourced import Path, Problem
from htpsim.scenario.wording import unknown_word
from htpsim.spec import Device, Distribution, Graph, Model, Scenario
from htpsim.spec.device import ARCHITECTURES, FIRST_WITH_SHARING
from htpsim.spec.tiers import tiers_of

_PLACEMENTS = ("by-instance", "least-loaded")


def models_of(scenario: Scenario) -> list[Model]:
    """Return the models in use, each once, in the order of their first user."""
    used = [model for instance in scenario.instances for model in (instance.vit, instance.llm) if model is not None]
    return list(dict.fromkeys([*used, *(client.model for client in scenario.clients)]))


def least(distribution: Distribution) -> int:
    """Return the smallest value that a distribution can give for certain: 0 where its tail has no bound."""
    if distribution.kind == "constant" or (distribution.kind == "lognormal" and distribution.cv == 0):
        return distribution.mean
    if distribution.kind == "sample":
        return min(distribution.sample)
    return distribution.low if distribution.kind == "uniform" else 0


def copy_core(scenario: Scenario, index: int, model: Model) -> int | None:
    """Return the core that instance number `index` finds its copy of a model on, or None where a run decides."""
    device, registry = scenario.device, scenario.registry
    if device.cores == 1 or cores_taken(device, model) == device.cores:
        return 0
    if model.placement.isdigit():
        return int(model.placement)
    shares = registry.llm if model.role == "llm" else registry.vit
    copies = registry.llm_copies if model.role == "llm" else registry.vit_copies
    beyond_core = copies == "per-process" or (copies == "per-device" and device.topology != "device-per-core")
    if model.placement != "by-instance" or (shares and beyond_core):
        return None
    return index % device.cores


def cores_taken(device: Device, model: Model) -> int:
    """Return how many cores a graph of the model takes at once."""
    return model.built_for_cores or (device.cores if device.topology == "gang" else 1)


def problems(scenario: Scenario) -> Iterator[Problem]:
    """Yield everything that is wrong with the models."""
    models = models_of(scenario)
    for name, count in Counter(model.name for model in models).items():
        if count > 1:
            yield (
                ("models", name),
                f"got {count} different models of this name, expected one",
            )
    for model in models:
        path = ("models", model.name)
        yield from _graphs(model, path)
        yield from _numbers(model, path)
        yield from _placement(scenario.device, model, path)
        yield from _resources(scenario.device, model, path)
        yield from _architecture(scenario, model, path)


def _lists(model: Model) -> Iterator[tuple[str, tuple[Graph, ...]]]:
    yield from (("graphs", model.graphs), ("prefill", model.prefill), ("decode", model.decode))


def _graphs(model: Model, path: Path) -> Iterator[Problem]:
    wanted = ("prefill", "decode") if model.role == "llm" else ("graphs",)
    for name, graphs in _lists(model):
        if name in wanted and not graphs:
            yield (*path, name), f"got no graphs, expected at least one for role '{model.role}'"
        if name not in wanted and graphs:
            yield (*path, name), f"got graphs, expected none for role '{model.role}', which has {' and '.join(wanted)}"
    contexts = [context.name for context in model.contexts]
    for kind, names in (("contexts", contexts), ("graphs", [graph.name for graph in model.all_graphs])):
        for name, count in Counter(names).items():
            if count > 1:
                yield path, f"got {count} {kind} called '{name}', expected a name of its own for each"
    for name, graphs in _lists(model):
        for graph in graphs:
            where = (*path, name, graph.name)
            if graph.context not in contexts:
                none = f"got '{graph.context}', expected a context of the model, which has none"
                text = unknown_word(graph.context, set(contexts)) if contexts else none
                yield (
                    (*where, "context"),
                    text,
                )
            if graph.service.kind in {"constant", "sample", "uniform"} and least(graph.service) == 0:
                yield (*where, "service"), "got 0, expected a time above 0: nothing runs in no time"
            elif graph.service.kind in {"exponential", "lognormal", "erlang"} and graph.service.mean == 0:
                yield (*where, "service"), "got a mean of 0, expected a time above 0: nothing runs in no time"


def _numbers(model: Model, path: Path) -> Iterator[Problem]:
    for key in ("ar", "context_tokens", "split"):
        if getattr(model, key) < 1:
            yield (*path, key), f"got {getattr(model, key)}, expected at least 1"
    if model.role == "llm":
        yield from _tiers(model, path)
    if model.split > 1 and model.role == "llm":
        yield (
            (*path, "split"),
            f"got {model.split} for an llm, expected 1: give it more prefill and decode graphs",
        )
    if model.role != "llm" and any(graph.tier_tokens for graph in model.graphs):
        yield (*path, "graphs"), "got a tier_tokens, expected none: only an llm has context lengths"
    if model.lm_head_split and model.role == "llm" and len(model.prefill) < 2 * len(tiers_of(model.prefill)):
        yield (
            (*path, "lm_head_split"),
            "got true with one prefill graph, expected the LM head after others",
        )


def _tiers(model: Model, path: Path) -> Iterator[Problem]:
    """Check graphs for several context lengths: as many for each, the longest as long as the model's."""
    for name, graphs in (("prefill", model.prefill), ("decode", model.decode)):
        sizes = Counter(graph.tier_tokens for graph in graphs)
        if set(sizes) <= {0}:
            continue
        where = (*path, name)
        if 0 in sizes:
            yield where, "got graphs with a tier_tokens and graphs without, expected all of them or none"
        elif len(set(sizes.values())) > 1:
            counts = ", ".join(f"{count} for {tier}" for tier, count in sorted(sizes.items()))
            yield where, f"got {counts}, expected as many graphs for each tier_tokens"
        elif max(sizes) < model.context_tokens:
            text = f"got tier_tokens up to {max(sizes)}, expected graphs for context_tokens, {model.context_tokens}"
            yield where, text


def _placement(device: Device, model: Model, path: Path) -> Iterator[Problem]:
    taken = cores_taken(device, model)
    if model.built_for_cores > device.cores:
        yield (
            (*path, "built_for_cores"),
            f"got {model.built_for_cores}, expected at most {device.cores}, the device's cores",
        )
        return
    if model.built_for_cores > 1 and device.topology == "device-per-core":
        text = f"got {model.built_for_cores} with topology 'device-per-core', expected 1: a graph does not span devices"
        yield (*path, "built_for_cores"), text
    if model.placement.isdigit():
        last = device.cores - taken
        if int(model.placement) > last:
            yield (*path, "placement"), f"got core {model.placement}, expected a core from 0 to {last}"
    elif model.placement not in _PLACEMENTS:
        expected = unknown_word(model.placement, [*_PLACEMENTS, "0"])
        yield (*path, "placement"), expected.replace("one of 0,", "a core such as '0', or one of")


def _resources(device: Device, model: Model, path: Path) -> Iterator[Problem]:
    for name, graphs in _lists(model):
        for graph in graphs:
            where = (*path, name, graph.name)
            if graph.vtcm_bytes > device.vtcm_bytes:
                held, given = write(graph.vtcm_bytes, "bytes"), write(device.vtcm_bytes, "bytes")
                yield (*where, "vtcm"), f"got {held}, expected at most {given}, the VTCM of a core"
            for unit in ("hvx", "hmx"):
                if getattr(graph, unit) > getattr(device, unit):
                    yield (
                        (*where, unit),
                        f"got {getattr(graph, unit)}, expected at most {getattr(device, unit)}, what a core has",
                    )


def _architecture(scenario: Scenario, model: Model, path: Path) -> Iterator[Problem]:
    """Refuse what hardware before v73 cannot do."""
    arch = scenario.device.arch
    if arch not in ARCHITECTURES or scenario.device.coexists:
        return
    shared = {graph.context for graph in model.prefill} & {graph.context for graph in model.decode}
    for context in sorted(shared) if model.weight_sharing else ():
        text = (
            f"got prefill and decode graphs in one context on {arch}, expected contexts of their own, "
            f"or weight_sharing false: graphs share weights within a binary from {FIRST_WITH_SHARING} on"
        )
        yield (*path, "contexts", context), text
    qnn_elsewhere = any(graph.qnn for other in models_of(scenario) for graph in other.all_graphs)
    for name, graphs in _lists(model):
        for graph in graphs:
            if not graph.qnn and qnn_elsewhere:
                text = (
                    f"got false beside QNN graphs on {arch}, expected true: "
                    f"another client shares a core with a QNN graph from {FIRST_WITH_SHARING} on"
                )
                yield (*path, name, graph.name, "qnn"), text
