"""What the tests of scenario files share: a small valid scenario as text and as a spec, and a writer of TOML."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from htpsim.spec import Context, Device, Graph, Instance, Model, Scenario, constant

SMALL = """
title = "Small"
question = "Does it load?"

[device]
cores = 2
dram_bandwidth = "40GB/s"

[models.vit]
role = "vit"
contexts = [{ name = "vit", weights = "400MB" }]
graphs = [{ name = "vit", context = "vit", service = "161ms" }]

[models.llm]
role = "llm"
contexts = [{ name = "part", count = 2, weights = "1GB" }]
prefill = [{ name = "prefill", count = 2, context = ["part0", "part1"], service = "40ms" }]
decode = [{ name = "decode", count = 2, context = ["part0", "part1"], service = "20ms", dram = "600MB" }]

[[instances]]
count = 4
vit = "vit"
llm = "llm"
"""

OVERLAYS = """
[variants.genie]
title = "ViT on Genie"
text = "guarded"
instances = { vit_path = "genie" }

[variants.split.models.vit]
split = 4

[cases.weighted.instances]
weight = [4, 2, 1, 1]

[cases.one.instances.vlm2]
weight = 7

[assumptions.slots]
title = "Slots"

[assumptions.slots.core.guard]
slots_per = "core"

[assumptions.slots.two]
title = "two a process"
guard = { slots = 2 }
"""


def written(folder: Path, text: str, name: str = "scenario.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def toml(value: Any) -> str:
    """Write a tree of plain values as TOML, tables inline."""
    return "\n".join(f"{key_text(key)} = {inline(inner)}" for key, inner in value.items()) + "\n"


def key_text(key: str) -> str:
    return json.dumps(key, ensure_ascii=False)


def inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key_text(key)} = {inline(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(inline(inner) for inner in value) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return repr(value)


def vit(**changes: Any) -> Model:
    graph = Graph(name="vit", context="vit", service=constant(161_000_000))
    model = Model(name="vit", role="vit", contexts=(Context(name="vit", weights_bytes=400_000_000),), graphs=(graph,))
    return dataclasses.replace(model, **changes)


def llm(**changes: Any) -> Model:
    prefill = Graph(name="prefill", context="part", service=constant(110_000_000))
    decode = Graph(name="decode", context="part", service=constant(57_000_000))
    model = Model(
        name="llm",
        role="llm",
        contexts=(Context(name="part", weights_bytes=2_000_000_000),),
        prefill=(prefill,),
        decode=(decode,),
    )
    return dataclasses.replace(model, **changes)


def scenario(device: Device | None = None, instances: tuple[Instance, ...] | None = None, **parts: Any) -> Scenario:
    """A valid scenario of two instances on two cores, with whatever is given in place of its parts."""
    if instances is None:
        instances = tuple(Instance(name=f"vlm{i}", vit=vit(), llm=llm()) for i in range(2))
    device = device or Device(cores=2, dram_bandwidth=40_000_000_000)
    return Scenario(device=device, instances=instances, **parts)
