"""The work that is timed: four VLMs on two cores that share DRAM, in the proportions of a car chip."""

from __future__ import annotations

from typing import Final, Literal

from htpsim.spec import (
    Context,
    Device,
    Distribution,
    Graph,
    Guard,
    Instance,
    Model,
    Registry,
    Run,
    Scenario,
    constant,
)
from htpsim.units import NS_PER_MS, NS_PER_S

SPLITS: Final = 3
VIT_NS: Final = 370 * NS_PER_MS
PREFILL_NS: Final = 110 * NS_PER_MS
DECODE_NS: Final = 57 * NS_PER_MS
WEIGHTS_BYTES: Final = 1_800_000_000
VIT_BYTES: Final = 425_721_856
BANDWIDTH: Final = WEIGHTS_BYTES * NS_PER_S // DECODE_NS * 128 // 100
"""One decode alone takes 1 / 1.28 of it."""

Times = Literal["constant", "lognormal"]


def service(mean_ns: int, times: Times) -> Distribution:
    return constant(mean_ns) if times == "constant" else Distribution(kind="lognormal", mean=mean_ns, cv=0.1)


def models(times: Times, splits: int = SPLITS) -> tuple[Model, Model]:
    """Return the ViT and the LLM."""
    vit = Model(
        name="vit", role="vit", contexts=(Context(name="veg", weights_bytes=VIT_BYTES),),
        graphs=(Graph(name="v", context="veg", service=service(VIT_NS, times), dram_bytes=VIT_BYTES),),
    )  # fmt: skip
    part = WEIGHTS_BYTES // splits
    llm = Model(
        name="llm", role="llm", contexts=tuple(Context(name=f"s{n}", weights_bytes=part) for n in range(splits)),
        prefill=tuple(
            Graph(name=f"p{n}", context=f"s{n}", service=service(PREFILL_NS // splits, times), dram_bytes=part)
            for n in range(splits)
        ),
        decode=tuple(
            Graph(name=f"d{n}", context=f"s{n}", service=service(DECODE_NS // splits, times), dram_bytes=part)
            for n in range(splits)
        ),
        kv_bytes=224 << 20,
    )  # fmt: skip
    return vit, llm


def scenario(
    times: Times, *, bandwidth: bool, genie: bool, seconds: int, instances: int = 4, splits: int = SPLITS
) -> Scenario:
    """Return the workload for `seconds` of simulated time, ViT on Genie with the registry or on the legacy path."""
    vit, llm = models(times, splits)
    return Scenario(
        name="benchmark",
        device=Device(
            cores=2, topology="device-per-core", dram_bandwidth=BANDWIDTH if bandwidth else None, pd_bytes=1 << 34
        ),
        guard=Guard(policy="sfq"),
        registry=Registry(vit=genie),
        instances=tuple(
            Instance(name=f"vlm{n}", vit=vit, llm=llm, vit_path="genie" if genie else "qnn", weight=(4, 2, 1, 1)[n % 4])
            for n in range(instances)
        ),
        run=Run(duration_ns=seconds * NS_PER_S),
    )
