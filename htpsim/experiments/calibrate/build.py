"""From everything that files hold to one scenario: models, device, instances and what they are asked.

What several files time is taken from the best of them; what none states is left to the scenario's default, with a
warning where results would mislead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from htpsim.errors import HtpsimError
from htpsim.experiments.calibrate.evidence import Evidence, Role, Stated, Timing, plain_name
from htpsim.experiments.calibrate.leaf import Asked, Leaf, best, service_leaf, stated_leaf, tokens_leaf
from htpsim.experiments.calibrate.llm import llm_model
from htpsim.experiments.calibrate.memory import contexts_of, load_bandwidth
from htpsim.units import NS_PER_S

SLACK_NS: Final = NS_PER_S
"""How much longer than the recording a run that repeats it may take."""

LONG_ANSWER: Final = 500
"""Tokens of an answer that takes so long that a minute would hold too few of them."""

Tree = dict[str, Any]


def build(evidence: Evidence, asked: Asked) -> Tree:
    """Return the scenario that the evidence amounts to: tables whose leaves are plain values and :class:`Leaf`.

    Raises
    ------
    HtpsimError
        When no file times any graph, files are of different chips, or no recording is there that was asked for.
    """
    chip = _chip(evidence)
    timings = evidence.timings
    if not timings:
        text = "calibrate: got no time of any graph, expected a profile of the graphs among the files"
        raise HtpsimError("\n".join([text, *(f"! {warning}" for warning in evidence.warnings)]))
    by_role: dict[str, list[Timing]] = {role: [item for item in timings if item.role == role] for role in
                                        ("vit", "llm", "other")}  # fmt: skip
    if asked.as_recorded:
        # The log is of the LLM alone, and its prompt has the image's tokens in it already.
        by_role = {"llm": by_role["llm"]}
    models: Tree = {}
    for role, own in by_role.items():
        if own:
            models[role] = llm_model(own, evidence, asked) if role == "llm" else _flat(role, own, evidence, asked)
    if "llm" not in models and evidence.parts is not None:
        evidence.warn("a genie_config.json, but no time of any graph of its LLM: the LLM is left out")
    tree: Tree = {
        "title": f"{'As recorded in' if asked.as_recorded else 'Calibrated from'} {', '.join(evidence.files)}",
        "run": _run(evidence, asked),
    }
    for role, model in models.items():
        _add_contexts(role, model, evidence)
    if device := _device(evidence, chip):
        tree["device"] = device
    tree["models"] = {role: _ordered(model, chip) for role, model in models.items()}
    return tree | _users(models, evidence, asked)


def _chip(evidence: Evidence) -> str:
    """Return the chip that the files are of.

    A SoC number and a device's name are two ways to say it: only two of one kind can contradict one another.
    """
    for kind in (True, False):
        same = [(name, origin) for name, origin in evidence.chips if name.startswith("SoC ") is kind]
        others = [(name, origin) for name, origin in same if name != same[0][0]]
        if others:
            raise HtpsimError(
                f"calibrate: got figures of {same[0][0]} ({same[0][1]}) and of {others[0][0]} ({others[0][1]}), "
                "expected files of one chip: chips are not mixed"
            )
    return evidence.chips[0][0] if evidence.chips else ""


def _leaves(stated: Mapping[str, Stated]) -> dict[str, Leaf]:
    return {key: stated_leaf(value) for key, value in stated.items()}


def _device(evidence: Evidence, chip: str) -> Tree:
    bandwidth = load_bandwidth(evidence)
    more = {} if bandwidth is None else {"load_bandwidth": bandwidth}
    return ({"chip": chip} if chip else {}) | _leaves(evidence.device | more)


def _run(evidence: Evidence, asked: Asked) -> Tree:
    """Return how long to run: as long as the recording, else for a minute, or more where answers are long."""
    if not asked.as_recorded:
        tokens = max(evidence.output_tokens, default=0)
        return {"duration": "60s" if tokens < LONG_ANSWER else "300s"}
    if evidence.span_ns is None:
        text = "calibrate: got no file that records one prompt of an LLM graph by graph, expected a verbose log"
        raise HtpsimError(text)
    seconds = -(-(evidence.span_ns + SLACK_NS) // NS_PER_S)
    return {"duration": f"{seconds}s", "replications": 1}


def _flat(role: str, timings: Sequence[Timing], evidence: Evidence, asked: Asked) -> Tree:
    """Return a model whose graphs run one after another, in the order of the files."""
    graphs: dict[str, list[Timing]] = {}
    for item in timings:
        graphs.setdefault(item.graph, []).append(item)
    rows: list[Tree] = [
        {
            "name": plain_name(name, number),
            "graph": name,
            "part": number,
            "service": service_leaf(best(found, evidence), asked, evidence),
        }
        for number, (name, found) in enumerate(graphs.items())
    ]
    moved = [stated for owner, stated in evidence.dram if owner == role]
    if len(moved) == len(rows):
        rows = [row | {"dram": stated_leaf(stated)} for row, stated in zip(rows, moved, strict=True)]
    elif moved:
        evidence.warn(
            f"{role}: {len(moved)} graphs whose bytes over DRAM are counted, and {len(rows)} that are timed: the log "
            "does not name them, so they are left out"
        )
    model: Tree = {"role": role, "graphs": rows}
    if role == "vit" and asked.image_tokens is not None:
        model["tokens_per_image"] = asked.image_tokens
    elif role == "vit":
        evidence.warn(
            "tokens_per_image: no file states how many prompt tokens an image becomes; 256 is assumed (--image-tokens)"
        )
    return model


def _add_contexts(role: str, model: Tree, evidence: Evidence) -> None:
    """Give a model its contexts, and every graph the one that holds it."""
    rows = [row for key in ("graphs", "prefill", "decode") for row in model.get(key, ())]
    parts = 1 + max(row["part"] for row in model.get("decode", rows))
    found = contexts_of(role, parts, [row.get("graph") for row in rows], evidence)
    model["contexts"] = [{"name": context.name} | _leaves(context.terms) for context in found.contexts]
    for row in rows:
        usual = found.contexts[min(row.pop("part"), len(found.contexts) - 1)].name
        row["context"] = found.of_graph.get(row.pop("graph", None), usual)


def _ordered(model: Tree, chip: str) -> Tree:
    """Return a model's table, lists last, and in a graph the service time last."""
    lists = ("contexts", "graphs", "prefill", "decode")
    plain = {key: value for key, value in model.items() if key not in lists} | ({"chip": chip} if chip else {})
    rows = {key: model[key] for key in lists if key in model}
    keys = ("name", "context", "tier_tokens", "service", "dram")
    return plain | {
        name: [{key: row[key] for key in keys if key in row} | row for row in found] for name, found in rows.items()
    }


def _users(models: Tree, evidence: Evidence, asked: Asked) -> Tree:
    """Return the instances, and the other client where there are graphs of neither ViT nor LLM."""
    found: Tree = {}
    roles: list[Role] = [role for role in ("vit", "llm") if role in models]
    if roles:
        table: Tree = {"name": "vlm", "count": 1 if asked.as_recorded else asked.instances}
        table |= {role: role for role in roles}
        if asked.as_recorded:
            table["arrivals"] = {"kind": "replay", "times": [0]}
        if "llm" in models:
            table |= _leaves(evidence.gaps)
            table |= _workload(evidence, (asked.image_tokens or 0) if "vit" in models else 0)
        found["instances"] = [table]
    if "other" in models:
        found["clients"] = [{"name": "client", "model": "other", "arrivals": {"kind": "closed", "think": 0}}]
    return found


def _workload(evidence: Evidence, image_tokens: int) -> Tree:
    """Return the tokens of a request as the files show them; what an image becomes is part of the prompt."""
    text = [max(1, tokens - image_tokens) for tokens in evidence.text_tokens]
    less = f"; less {image_tokens} of the image" if image_tokens else ""
    found = {}
    for key, values, remark in (("text_tokens", text, less), ("output_tokens", evidence.output_tokens, "")):
        if values:
            found[key] = tokens_leaf(values, f"{evidence.workload[key]}{remark}")
    return found
