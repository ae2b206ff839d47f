"""Scenarios over every feature of the model, small enough that a run takes milliseconds and full of ties.

Times are tens of nanoseconds, so that instants coincide; bytes are a few units, so that limits bind. Two strategies
make the same kind of scenario: ``scenarios()`` chooses one by one and shrinks well, ``seeded_scenarios()`` only
draws a seed and is many times faster. ``random_scenario(seed)`` is for corpora that must stay the same.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from hypothesis import strategies as st

from htpsim.sched import POLICIES
from htpsim.spec import (
    PRIORITIES,
    Arrivals,
    Context,
    Device,
    Distribution,
    Graph,
    Guard,
    Instance,
    Model,
    OtherClient,
    Registry,
    Run,
    Runtime,
    Scenario,
    constant,
    exponential,
)

T = TypeVar("T")
BYTE_A_NS = 10**9
"""One byte a nanosecond, in bytes a second."""


class Chooser(Protocol):
    """Who makes the choices: hypothesis, or a seeded generator."""

    def of(self, *options: T) -> T: ...

    def int(self, low: int, high: int) -> int: ...


class _Drawn:
    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self.draw = draw

    def of(self, *options: T) -> T:
        return self.draw(st.sampled_from(options))  # type: ignore[no-any-return]

    def int(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))  # type: ignore[no-any-return]


class _Seeded:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def of(self, *options: T) -> T:
        return self.random.choice(options)

    def int(self, low: int, high: int) -> int:
        return self.random.randint(low, high)


def time_ns(c: Chooser, low: int = 1, high: int = 40) -> Distribution:
    """A service time, constant as often as not: equal times make ties."""
    kind = c.of("constant", "constant", "constant", "constant", "sample", "sample", "sample", "lognormal")
    if kind == "constant":
        return constant(c.int(low, high))
    if kind == "sample":
        return Distribution(kind="sample", sample=tuple(c.int(low, high) for _ in range(3)))
    return Distribution(kind="lognormal", mean=high, cv=0.3)


def device(c: Chooser) -> Device:
    cores = c.of(1, 1, 2, 2, 3)
    bandwidth = c.of(None, None, BYTE_A_NS, 3 * BYTE_A_NS)
    return Device(
        cores=cores,
        topology=c.of("one-device", "device-per-core", "gang") if cores > 1 else "one-device",
        vtcm_bytes=8,
        hvx=4,
        dram_bandwidth=bandwidth,
        core_dram_bandwidth=c.of(None, None, 2 * BYTE_A_NS),
        background_bandwidth=c.of(0, BYTE_A_NS // 3) if bandwidth else 0,
        load_bandwidth=c.of(None, BYTE_A_NS),
        yield_rule=c.of("latency", "latency", "grid"),
        yield_latency_ns=c.of(0, 3, 10),
        yield_interval_ns=c.of(1, 7),
        evict_ns=c.of(0, 0, 4),
        restore_ns=c.of(0, 0, 5),
        priority_clamp=c.of(False, False, True),
        acquire_ns=c.of(0, 0, 2),
        power_up_ns=c.of(0, 0, 6),
        idle_timeout_ns=c.of(0, 50),
        rpc_call_ns=c.of(0, 0, 1),
        rpc_return_ns=c.of(0, 0, 2),
        dram_budget_bytes=c.of(None, None, None, None, None, 60),
        pd_bytes=c.of(1000, 1000, 1000, 1000, 30),
        pd_rule=c.of("any", "any", "by-model"),
        pd_count=c.of(4, 4, 1),
        contexts_per_process=c.of(None, None, None, None, 6),
    )  # fmt: skip


def guard(c: Chooser) -> Guard:
    scope = c.of("graph", "graph", "graph", "request")
    return Guard(
        policy=c.of(*sorted(POLICIES), "sfq", "sfq"),
        slots=c.of(0, 0, 1, 2),
        slots_per="process" if scope == "request" else c.of("process", "core"),
        scope=scope,
        registration=c.of("thread", "thread", "query"),
        unregistered=c.of("default-weight", "bypass"),
        overhead_ns=c.of(0, 0, 3),
        gap_inside=c.of(False, True),
    )


def contexts(c: Chooser, count: int) -> tuple[Context, ...]:
    return tuple(
        Context(name=f"c{n}", weights_bytes=c.int(1, 9), io_bytes=c.int(0, 2), spill_fill_bytes=c.int(0, 1))
        for n in range(count)
    )


def graphs(c: Chooser, stem: str, holders: tuple[Context, ...], *, qnn: bool = True) -> tuple[Graph, ...]:
    return tuple(
        Graph(
            name=f"{stem}{n}",
            context=c.of(*holders).name,
            service=time_ns(c),
            dram_bytes=c.of(0, c.int(1, 60)),
            qnn=qnn,
            vtcm_bytes=8 if qnn and c.of(True, False) else c.int(0, 5),
            hvx=c.int(0, 2),
            hmx=1 if qnn else c.of(0, 0, 1),
        )
        for n in range(c.int(1, 2))
    )  # fmt: skip


def _common(c: Chooser, dev: Device) -> dict[str, Any]:
    spans = dev.topology != "device-per-core"
    return {
        "built_for_cores": c.of(0, 0, 0, 1, c.int(1, dev.cores)) if spans else 0,
        "placement": c.of("by-instance", "by-instance", "least-loaded", "0"),
        "load": c.of("mmap", "read"),
    }


def vit(c: Chooser, dev: Device, name: str) -> Model:
    held = contexts(c, c.int(1, 2))
    return Model(
        name=name, role="vit", contexts=held, graphs=graphs(c, "v", held), split=c.int(1, 3),
        tokens_per_image=c.int(0, 6), **_common(c, dev),
    )  # fmt: skip


def llm(c: Chooser, dev: Device, name: str) -> Model:
    held = contexts(c, c.int(1, 2))
    prefill = graphs(c, "p", held)
    return Model(
        name=name, role="llm", contexts=held, prefill=prefill, decode=graphs(c, "d", held), ar=c.int(1, 5),
        context_tokens=40, kv_bytes=c.int(0, 3), lm_head_split=len(prefill) > 1 and c.of(True, False),
        tokens_per_image=0, **_common(c, dev),
    )  # fmt: skip


def arrivals(c: Chooser) -> Arrivals:
    kind = c.of("closed", "closed", "periodic", "poisson", "replay")
    offset_ns = c.of(0, 0, c.int(1, 30))
    if kind == "closed":
        return Arrivals(kind=kind, think=c.of(constant(c.int(1, 20)), exponential(30)), offset_ns=offset_ns)
    if kind == "replay":
        return Arrivals(
            kind=kind, times_ns=tuple(sorted(c.int(0, 400) for _ in range(c.int(1, 6)))), offset_ns=offset_ns
        )
    jitter_ns = c.of(0, c.int(1, 90)) if kind == "periodic" else 0
    return Arrivals(kind=kind, period_ns=c.int(20, 120), jitter_ns=jitter_ns, offset_ns=offset_ns)


def instance(c: Chooser, name: str, names: list[str], vits: list[Model], llms: list[Model]) -> Instance:
    both = c.of("both", "both", "both", "vit", "llm")
    return Instance(
        name=name,
        process=0,
        weight=c.int(1, 4),
        guard_priority=c.int(0, 2),
        vit=c.of(*vits) if both != "llm" else None,
        llm=c.of(*llms) if both != "vit" else None,
        vit_path=c.of("genie", "qnn"),
        llm_path=c.of("genie", "genie", "qnn"),
        vit_priority=c.of("NORMAL", "NORMAL", c.of(*PRIORITIES)),
        llm_priority=c.of("NORMAL", "NORMAL", c.of(*PRIORITIES)),
        arrivals=arrivals(c),
        images=c.of(constant(1), constant(0), Distribution(kind="uniform", low=0, high=2)),
        text_tokens=constant(c.int(1, 9)),
        output_tokens=c.of(constant(c.int(1, 6)), Distribution(kind="uniform", low=1, high=5)),
        dialog_turns=c.of(1, 1, 3),
        queue_limit=c.of(None, 0, 1),
        drop=c.of("oldest", "newest"),
        host_gap_graph_ns=c.of(0, 0, 2),
        host_gap_step_ns=c.of(0, 0, 5),
        stale_handle_of=c.of(None, *(other for other in names if other != name)),
        ttft_deadline_ns=c.of(None, 100),
        itl_deadline_ns=c.of(None, 30),
    )  # fmt: skip


def client(c: Chooser, dev: Device, name: str, process: int) -> OtherClient:
    held = contexts(c, c.int(1, 2))
    qnn = c.of(True, True, False)
    when = arrivals(c)
    return OtherClient(
        name=name,
        model=Model(
            name=f"{name} model", role="other", contexts=held, graphs=graphs(c, "o", held, qnn=qnn), **_common(c, dev)
        ),
        process=process,
        path=c.of("genie", "qnn"),
        weight=c.int(1, 4),
        guard_priority=c.int(0, 2),
        priority=c.of("NORMAL", "NORMAL", c.of(*PRIORITIES)),
        arrivals=when,
        outstanding=c.int(1, 3) if when.kind == "closed" else c.of(0, 1, 2),
        when_full=c.of("block", "drop"),
        host_gap_ns=c.of(0, 0, 4),
        deadline_ns=c.of(None, 60),
    )


def build(c: Chooser) -> Scenario:
    """Make every choice of one scenario."""
    dev = device(c)
    names = [f"vlm{n}" for n in range(c.int(0, 3))]
    vits = [vit(c, dev, f"vit{n}") for n in range(c.int(1, 2))]
    llms = [llm(c, dev, f"llm{n}") for n in range(c.int(1, 2))]
    return Scenario(
        device=dev,
        guard=guard(c),
        registry=Registry(
            llm=c.of(True, True, False),
            vit=c.of(True, False),
            llm_copies=c.of("per-core", "per-device", "per-process"),
            vit_copies=c.of("per-core", "per-device", "per-process"),
            waits_for_load=c.of(True, True, False),
        ),
        runtime=Runtime(embedding_raw_apis=c.of(True, True, True, False), on_throw=c.of("fail", "fallback")),
        run=Run(duration_ns=c.int(300, 1500), warmup_ns=c.of(0, 50), seed=c.int(0, 3)),
        instances=tuple(instance(c, name, names, vits, llms) for name in names),
        clients=tuple(client(c, dev, f"other{n}", c.int(0, 1)) for n in range(c.int(0 if names else 1, 3))),
    )


@st.composite
def scenarios(draw: Callable[[st.SearchStrategy[Any]], Any]) -> Scenario:
    """Scenarios that pass the checks of scenario files."""
    return build(_Drawn(draw))


def random_scenario(seed: int) -> Scenario:
    """Return scenario number `seed` of a fixed corpus."""
    return build(_Seeded(seed))


def seeded_scenarios() -> st.SearchStrategy[Scenario]:
    """The same from one number: fast, and it shrinks to nothing but a smaller number."""
    return st.integers(0, 2**32).map(random_scenario)
