"""Small parts to put scenarios together from, and a run's rows by name."""

from __future__ import annotations

from typing import Any

from htpsim.results import RunLog
from htpsim.results.columns import Execute, Request
from htpsim.sim import simulate
from htpsim.spec import (
    Arrivals,
    Context,
    Device,
    Distribution,
    Graph,
    Instance,
    Model,
    OtherClient,
    Run,
    Scenario,
    constant,
)

PLAIN = Device(yield_latency_ns=0, evict_ns=0, restore_ns=0, pd_rule="any")
"""One core, nothing costs anything."""


def graphs(*times_ns: int, context: str = "c", **given: Any) -> tuple[Graph, ...]:
    return tuple(Graph(name=f"g{n}", context=context, service=constant(ns), **given) for n, ns in enumerate(times_ns))


def vit(*times_ns: int, name: str = "vit", weights: int = 0, **given: Any) -> Model:
    context = Context(name="c", weights_bytes=weights)
    return Model(
        name=name, role="vit", contexts=(context,), graphs=graphs(*times_ns), **{"tokens_per_image": 0, **given}
    )


def llm(prefill: tuple[int, ...], decode: tuple[int, ...], weights: int = 0, **given: Any) -> Model:
    contexts = (Context(name="p", weights_bytes=weights), Context(name="d"))
    return Model(
        name="llm", role="llm", contexts=contexts, prefill=graphs(*prefill, context="p"),
        decode=tuple(Graph(name=f"d{n}", context="d", service=constant(ns)) for n, ns in enumerate(decode)), **given,
    )  # fmt: skip


def other(name: str, *times_ns: int, arrives: tuple[int, ...] | None = None, **given: Any) -> OtherClient:
    """A client with one model of its own; with `arrives` it replays these instants."""
    about = {key: given.pop(key) for key in ("placement", "built_for_cores", "weights") if key in given}
    weights = about.pop("weights", 0)
    model = Model(
        name=f"{name} model", role="other", contexts=(Context(name="c", weights_bytes=weights),),
        graphs=graphs(*times_ns), **about,
    )  # fmt: skip
    if arrives is not None:
        given["arrivals"] = Arrivals(kind="replay", times_ns=arrives)
    return OtherClient(name=name, model=model, **given)


def once(at_ns: int) -> Arrivals:
    return Arrivals(kind="replay", times_ns=(at_ns,))


def closed(think_ns: int, offset_ns: int = 0) -> Arrivals:
    return Arrivals(kind="closed", think=constant(think_ns), offset_ns=offset_ns)


def instance(name: str, **given: Any) -> Instance:
    defaults: dict[str, Any] = {
        "arrivals": once(0),
        "images": constant(1),
        "text_tokens": constant(1),
        "output_tokens": constant(2),
    }
    return Instance(name=name, **{**defaults, **given})


def run(duration_ns: int = 1_000, **given: Any) -> RunLog:
    about = {"duration_ns": duration_ns, **{k: given.pop(k) for k in ("warmup_ns", "seed") if k in given}}
    given.setdefault("device", PLAIN)
    return simulate(Scenario(run=Run(**about), **given), check=True)


def executes(log: RunLog) -> list[Execute]:
    """Return the graphExecutes in order of call."""
    return sorted(map(Execute._make, log.executes))


def requests(log: RunLog) -> list[Request]:
    return [Request._make(row) for row in log.requests]


def spans(log: RunLog, client: int | None = None) -> list[tuple[int, int, int]]:
    """Return (client, started, finished) in order of start; -1 where it has not come."""
    rows = [(e.client, e.started_ns, e.finished_ns) for e in executes(log) if client in (None, e.client)]
    return sorted(rows, key=lambda row: (row[1] < 0, row[1], row[0]))


UNIFORM = Distribution(kind="uniform", low=1, high=30)
