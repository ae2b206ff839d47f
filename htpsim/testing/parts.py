"""Parts of generated scenarios: devices, models, who uses them. Small numbers on purpose.

Times are a few nanoseconds, so that instants coincide and every tie is met; bytes are a few units, so that limits bind.
What is generated passes the checks of scenario files.
"""

from __future__ import annotations

from typing import Any, Final

from htpsim.spec import (
    PRIORITIES,
    Arrivals,
    Context,
    Device,
    Distribution,
    Graph,
    Instance,
    Model,
    OtherClient,
    constant,
    exponential,
)
from htpsim.testing.choose import Chooser

BYTE_A_NS: Final = 10**9
"""One byte a nanosecond, in bytes a second."""

VTCM: Final = 8


def service_of(c: Chooser, least_ns: int = 1, most_ns: int = 20) -> Distribution:
    """Return a service time: constant as often as not, because equal times make ties."""
    if c.of(True, True, False):
        return constant(c.whole(least_ns, most_ns))
    return Distribution(kind="sample", sample=tuple(c.whole(least_ns, most_ns) for _ in range(3)))


def device_of(c: Chooser, cores: int | None = None) -> Device:
    """Return a device of one to three cores; `cores` fixes how many."""
    count = cores or c.of(1, 1, 2, 3)
    bandwidth = c.of(None, None, BYTE_A_NS, 3 * BYTE_A_NS)
    return Device(
        arch=c.of("v73", "v73", "v79"),
        cores=count,
        topology=c.of("one-device", "device-per-core", "gang") if count > 1 else "one-device",
        vtcm_bytes=VTCM,
        hvx=4,
        dram_bandwidth=bandwidth,
        core_dram_bandwidth=c.of(None, 2 * BYTE_A_NS),
        background_bandwidth=c.of(0, BYTE_A_NS // 2) if bandwidth else 0,
        load_bandwidth=c.of(None, BYTE_A_NS),
        yield_rule=c.of("latency", "latency", "grid"),
        yield_latency_ns=c.of(0, 2, 7),
        yield_interval_ns=c.of(1, 4),
        evict_ns=c.of(0, 3),
        restore_ns=c.of(0, 2),
        priority_clamp=c.of(False, False, True),
        acquire_ns=c.of(0, 0, 1),
        power_up_ns=c.of(0, 0, 4),
        idle_timeout_ns=c.of(0, 20),
        rpc_call_ns=c.of(0, 0, 1),
        rpc_return_ns=c.of(0, 0, 1),
        dram_budget_bytes=c.of(None, None, None, 40),
        pd_bytes=c.of(1000, 1000, 1000, 20),
        pd_count=c.of(4, 2),
    )  # fmt: skip


def contexts_of(c: Chooser) -> tuple[Context, ...]:
    """Return one or two contexts."""
    return tuple(
        Context(name=f"c{n}", weights_bytes=c.whole(1, 9), io_bytes=c.of(0, 2), spill_fill_bytes=c.of(0, 1))
        for n in range(c.of(1, 1, 2))
    )


def graphs_of(
    c: Chooser, stem: str, contexts: tuple[Context, ...], *, qnn: bool = True, least_ns: int = 1
) -> tuple[Graph, ...]:
    """Return one or two graphs of these contexts."""
    return tuple(
        Graph(
            name=f"{stem}{n}",
            context=c.of(*contexts).name,
            service=service_of(c, least_ns),
            dram_bytes=c.of(0, 0, 5, 40),
            qnn=qnn,
            vtcm_bytes=VTCM if qnn and c.of(True, False) else c.whole(0, 4),
            hvx=c.whole(0, 2),
            hmx=1 if qnn else c.of(0, 0, 1),
        )
        for n in range(c.of(1, 1, 2))
    )  # fmt: skip


def _placed(c: Chooser, device: Device) -> dict[str, Any]:
    spans = device.topology != "device-per-core"
    return {
        "built_for_cores": c.of(0, 0, 0, 1, device.cores) if spans else 0,
        "placement": c.of("by-instance", "by-instance", "least-loaded", "0"),
        "load": c.of("mmap", "read"),
    }


def vit_of(c: Chooser, device: Device, name: str = "vit") -> Model:
    """Return a ViT, cut into up to three graphs."""
    contexts, split = contexts_of(c), c.of(1, 1, 3)
    return Model(
        name=name,
        role="vit",
        contexts=contexts,
        graphs=graphs_of(c, "v", contexts, least_ns=9 if split > 1 else 1),  # no part of it may take no time at all
        split=split,
        tokens_per_image=c.whole(0, 4),
        **_placed(c, device),
    )


def llm_of(c: Chooser, device: Device, name: str = "llm") -> Model:
    """Return an LLM of one or two splits."""
    contexts = contexts_of(c)
    prefill = graphs_of(c, "p", contexts)
    return Model(
        name=name,
        role="llm",
        contexts=contexts,
        prefill=prefill,
        decode=graphs_of(c, "d", contexts),
        ar=c.whole(1, 5),
        context_tokens=20,
        kv_bytes=c.whole(0, 2),
        lm_head_split=len(prefill) > 1 and c.of(False, True),
        tokens_per_image=0,
        **_placed(c, device),
    )


def arrivals_of(c: Chooser) -> Arrivals:
    """Return an arrival process of any kind."""
    kind = c.of("closed", "closed", "periodic", "poisson", "replay")
    offset_ns = c.of(0, 0, 5)
    if kind == "closed":
        return Arrivals(kind="closed", think=c.of(constant(c.whole(1, 9)), exponential(20)), offset_ns=offset_ns)
    if kind == "replay":
        times = sorted(c.whole(0, 150) for _ in range(c.whole(1, 4)))
        return Arrivals(kind="replay", times_ns=tuple(times), offset_ns=offset_ns)
    jitter_ns = c.of(0, 30) if kind == "periodic" else 0
    return Arrivals(
        kind="periodic" if kind == "periodic" else "poisson",
        period_ns=c.whole(10, 60),
        jitter_ns=jitter_ns,
        offset_ns=offset_ns,
    )


def instance_of(c: Chooser, name: str, vits: list[Model], llms: list[Model], process: int = 0) -> Instance:
    """Return a VLM that uses one of each model, or only one of the two."""
    has = c.of("both", "both", "vit", "llm")
    return Instance(
        name=name,
        process=process,
        weight=c.whole(1, 4),
        guard_priority=c.whole(0, 2),
        vit=c.of(*vits) if has != "llm" else None,
        llm=c.of(*llms) if has != "vit" else None,
        vit_path=c.of("genie", "qnn"),
        llm_path=c.of("genie", "genie", "qnn"),
        vit_priority=c.of("NORMAL", "NORMAL", *PRIORITIES),
        llm_priority=c.of("NORMAL", "NORMAL", *PRIORITIES),
        arrivals=arrivals_of(c),
        images=c.of(constant(1), constant(2), Distribution(kind="uniform", low=0, high=2)),
        text_tokens=constant(c.whole(1, 6)),
        output_tokens=c.of(constant(c.whole(1, 4)), Distribution(kind="uniform", low=1, high=4)),
        dialog_turns=c.of(1, 1, 3),
        queue_limit=c.of(None, 0, 1),
        drop=c.of("oldest", "newest"),
        host_gap_graph_ns=c.of(0, 0, 1),
        host_gap_step_ns=c.of(0, 0, 3),
        ttft_deadline_ns=c.of(None, 60),
        itl_deadline_ns=c.of(None, 20),
        adapter=c.of("", "", "", "a", "b") if has != "vit" else "",
    )  # fmt: skip


def other_of(c: Chooser, device: Device, name: str, process: int = 0) -> OtherClient:
    """Return another client, QNN or not, with a model of its own."""
    contexts, when = contexts_of(c), arrivals_of(c)
    graphs = graphs_of(c, "o", contexts, qnn=c.of(True, True, False))
    return OtherClient(
        name=name,
        model=Model(name=f"{name} model", role="other", contexts=contexts, graphs=graphs, **_placed(c, device)),
        process=process,
        path=c.of("genie", "qnn"),
        weight=c.whole(1, 4),
        guard_priority=c.whole(0, 2),
        priority=c.of("NORMAL", "NORMAL", *PRIORITIES),
        arrivals=when,
        outstanding=c.whole(1, 3) if when.kind == "closed" else c.of(0, 1, 2),
        when_full=c.of("block", "drop"),
        host_gap_ns=c.of(0, 0, 2),
        deadline_ns=c.of(None, 40),
    )
