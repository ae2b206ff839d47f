"""Scenarios that show a planted bug: crafted ones by name, generated ones by kind and policy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from htpsim.spec import (
    Arrivals,
    Context,
    Device,
    Graph,
    Guard,
    Instance,
    Model,
    OtherClient,
    Registry,
    Run,
    Scenario,
    constant,
)
from htpsim.testing import random_backlogged, random_scenario

SEEDS = 60
"""Generated scenarios that are tried for one bug."""

DEVICE = Device(
    cores=1, vtcm_bytes=8, hvx=4, yield_latency_ns=3, evict_ns=2, restore_ns=2, pd_rule="any", pd_bytes=1 << 40
)


def client(name: str, *times_ns: int, level: str = "NORMAL", every_ns: int = 0, **given: Any) -> OtherClient:
    """A client that loops without a pause, or asks every so often."""
    about = {key: given.pop(key) for key in ("qnn", "vtcm_bytes", "hvx", "hmx", "dram_bytes") if key in given}
    model = {key: given.pop(key) for key in ("placement",) if key in given}
    context = Context(name="c", weights_bytes=given.pop("weights", 4), io_bytes=1)
    graphs = tuple(
        Graph(name=f"g{n}", context="c", service=constant(ns), **{"vtcm_bytes": 8, **about})
        for n, ns in enumerate(times_ns)
    )
    arrivals = Arrivals(kind="closed", think=constant(0))
    if every_ns:
        arrivals = Arrivals(kind="periodic", period_ns=every_ns, offset_ns=given.pop("offset_ns", 0))
    defaults: dict[str, Any] = {"arrivals": arrivals, "priority": level}
    return OtherClient(
        name=name, model=Model(name=f"{name} model", role="other", contexts=(context,), graphs=graphs, **model),
        **defaults | given,
    )  # fmt: skip


def of(*clients: OtherClient, device: Device = DEVICE, duration_ns: int = 400, **given: Any) -> Scenario:
    return Scenario(device=device, clients=clients, run=Run(duration_ns=duration_ns), **given)


def vlm(name: str, vit: Model, **given: Any) -> Instance:
    defaults: dict[str, Any] = {"images": constant(1), "vit_path": "qnn", "vit": vit}
    return Instance(name=name, **defaults | given)


def vit(*times_ns: int, weights: int = 4) -> Model:
    graphs = tuple(
        Graph(name=f"v{n}", context="c", service=constant(ns), vtcm_bytes=8) for n, ns in enumerate(times_ns)
    )
    return Model(
        name="vit",
        role="vit",
        graphs=graphs,
        contexts=(Context(name="c", weights_bytes=weights, io_bytes=1),),
        tokens_per_image=0,
    )


def pairs(policy: str = "fifo") -> Scenario:
    """Accounts with two calls out at once."""
    clients = [client(f"c{n}", 5 + 3 * n, path="genie", outstanding=3, weight=1 + n) for n in range(3)]
    return of(*clients, guard=Guard(policy=policy, slots=2))


def levels() -> Scenario:
    """Three QNN priorities on one core, and two clients of the same."""
    return of(
        client("low", 40, level="LOW"),
        client("one", 17, every_ns=60),
        client("two", 13, every_ns=55, offset_ns=3),
        client("high", 5, level="HIGH", every_ns=37, offset_ns=10),
        duration_ns=800,
    )


def apps() -> Scenario:
    """Clients that are no QNN graphs, in one protection domain and in another, beside some that are."""
    loop = {"qnn": False, "every_ns": 30}
    return of(
        client("graph", 11, every_ns=40, vtcm_bytes=5, hvx=2),
        client("other graph", 7, every_ns=33, vtcm_bytes=4, hvx=1),
        client("app", 23, hmx=0, hvx=2, vtcm_bytes=2, **loop),
        client("big app", 19, hmx=0, hvx=3, vtcm_bytes=5, **loop, offset_ns=4),
        client("matrix app", 9, hmx=1, hvx=1, vtcm_bytes=1, **loop, offset_ns=7),
        client("stranger", 8, hmx=0, hvx=0, vtcm_bytes=0, **loop, process=1),
        duration_ns=900,
    )


def bandwidth() -> Scenario:
    """Two cores that share less bandwidth than they ask for."""
    device = replace(DEVICE, cores=2, dram_bandwidth=3 * 10**9)
    return of(
        client("a", 20, dram_bytes=60, placement="0"),
        client("b", 30, dram_bytes=40, placement="1", every_ns=71),
        device=device,
    )


def shared() -> Scenario:
    """Three instances that share one copy of a ViT."""
    model = vit(7, 11)
    vlms = tuple(vlm(f"vlm{n}", model, arrivals=Arrivals(kind="periodic", period_ns=30)) for n in range(4))
    return Scenario(device=DEVICE, instances=vlms, registry=Registry(vit=True), run=Run(duration_ns=400))


def cold() -> Scenario:
    """A core that powers down between two graphs."""
    return of(client("rare", 10, every_ns=100), device=replace(DEVICE, power_up_ns=6, idle_timeout_ns=20))


def drops() -> Scenario:
    """A camera that brings more than is served."""
    camera = Arrivals(kind="periodic", period_ns=5)
    return Scenario(
        device=DEVICE, run=Run(duration_ns=300),
        instances=(vlm("vlm0", vit(20), arrivals=camera, queue_limit=1),),
    )  # fmt: skip


def full(count: int = 3, budget_bytes: int = 77) -> Scenario:
    """Instances of which one does not fit, because its second model does not."""
    small, big = vit(5, weights=9), Model(
        name="llm", role="llm", ar=4, context_tokens=64, kv_bytes=3,
        contexts=(Context(name="c", weights_bytes=20, io_bytes=1),),
        prefill=(Graph(name="p", context="c", service=constant(4), vtcm_bytes=8),),
        decode=(Graph(name="d", context="c", service=constant(2), vtcm_bytes=8),),
    )  # fmt: skip
    vlms = tuple(
        vlm(f"vlm{n}", small, llm=big, text_tokens=constant(3), output_tokens=constant(2)) for n in range(count)
    )
    device = replace(DEVICE, dram_budget_bytes=budget_bytes, load_bandwidth=10**9)
    return Scenario(device=device, instances=vlms, registry=Registry(llm=False), run=Run(duration_ns=200))


def tight() -> Scenario:
    """Two instances, and one byte less than both need."""
    return full(2, 67)


def domains() -> Scenario:
    """More models than protection domains."""
    device = replace(DEVICE, pd_count=2, pd_rule="by-model")
    return of(*(client(f"c{n}", 5) for n in range(4)), device=device)


CRAFTED = {
    "apps": apps, "bandwidth": bandwidth, "cold": cold, "domains": domains, "drops": drops, "full": full,
    "levels": levels, "pairs": pairs, "shared": shared, "tight": tight,
}  # fmt: skip


def scenarios(kind: str) -> Iterator[Scenario]:
    """Yield the scenarios of a kind, such as "levels", "pairs:sfq" or "backlogged:fifo"."""
    name, _, policy = kind.partition(":")
    if name in CRAFTED:
        yield CRAFTED[name](policy) if policy else CRAFTED[name]()  # type: ignore[operator]
        return
    for seed in range(SEEDS):
        if name == "backlogged":
            yield random_backlogged(seed, policy)
        else:
            yield random_scenario(seed, policy)
