"""What no schedule can beat: bounds on the figures of a scenario from its solo times alone.

They hold for any guard and any placement, a latency for any draw too, tokens/s for answers and thinking of the expected
length; so a point that cannot keep a demand even so need not be simulated.
Latency: a request takes at least the time its graphs take alone. Throughput: the asymptotic bounds of closed queues
(Lazowska, Zahorjan, Graham, Sevcik 1984), a client by its cycle and all of them by the cores.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from htpsim.spec import Instance, Scenario, table
from htpsim.spec.plan import ClientPlan, GraphPlan, Plan, make_plan
from htpsim.units import NS_PER_S

LATENCIES: Final = ("itl", "ttft", "vit", "prefill")


def bound(scenario: Scenario, path: str) -> float | None:
    """Return what the figure at a path cannot fall below (a latency) or rise above (tokens_per_s); None: not known.

    Parameters
    ----------
    scenario
        A valid one.
    path
        As in a summary, such as "overall.itl.p99" or "clients.vlm0.ttft.mean".

    Examples
    --------
    >>> from htpsim.scenario import load
    >>> four = load("four_vlms").base
    >>> bound(four, "overall.itl.p99") == bound(four, "clients.vlm3.itl.p50") > 50_000_000
    True
    >>> bound(four, "overall.guard_wait.mean") is None
    True
    """
    group, _, rest = path.partition(".")
    plan = make_plan(scenario)
    clients = [client for client in plan.clients if isinstance(client.spec, Instance) and not client.failure]
    if group == "clients":
        names = [client for client in clients if rest.startswith(f"{client.name}.")]
        if not names:
            return None
        clients, rest = names, rest.removeprefix(f"{names[0].name}.")
    measure = rest.split(".")[0]
    if measure == "tokens_per_s":
        return _most_tokens(plan, clients)
    if measure not in LATENCIES:
        return None
    concerned = [client for client in clients if (client.vit if measure == "vit" else client.llm) is not None]
    return float(min(_least(client, measure) for client in concerned)) if concerned else None


def _least(client: ClientPlan, measure: str) -> int:
    """Return the least time alone of what a measure covers."""
    spec = client.spec
    assert isinstance(spec, Instance)
    images = int(table(spec.images).min())
    vit = _alone(client.vit.graphs) * max(1, images) if client.vit else 0
    if measure == "vit":
        return vit
    assert client.llm is not None
    if measure == "itl":
        gaps_ns = spec.host_gap_step_ns + spec.host_gap_graph_ns * (len(client.llm.model.decode) > 1)
        return _step(client.llm.decode, len(client.llm.decode_tiers)) + gaps_ns
    prefill = _step(client.llm.prefill, len(client.llm.prefill_tiers))
    return prefill + (vit if images and measure == "ttft" else 0)


def _step(graphs: list[GraphPlan], tiers: int) -> int:
    """Return the least time of one step: of the context length whose graphs take least."""
    size = len(graphs) // tiers
    return min((_alone(graphs[i * size : (i + 1) * size]) for i in range(tiers)), default=0)


def _alone(graphs: Iterable[GraphPlan]) -> int:
    return sum(int(graph.solo_ns.min()) for graph in graphs)


def _most_tokens(plan: Plan, clients: list[ClientPlan]) -> float | None:
    """Return tokens a second: by what each client can cycle through, and by what the cores can carry."""
    rates, costs = 0.0, []
    for client in clients:
        spec = client.spec
        assert isinstance(spec, Instance)
        if client.llm is None:
            continue
        step_ns = _least(client, "itl")
        if not step_ns:
            return None
        tokens = max(1.0, spec.output_tokens.expected)
        alone_ns = _least(client, "prefill") + (tokens - 1) * step_ns
        vit_ns = _least(client, "ttft") - _least(client, "prefill")
        cycle_ns = alone_ns
        if spec.vit_thread == "same":  # else the next image is under way beside this answer
            cycle_ns += vit_ns + (spec.arrivals.think.expected if spec.arrivals.kind == "closed" else 0.0)
        rates += tokens * NS_PER_S / cycle_ns
        gaps_ns = (tokens - 1) * (step_ns - _step(client.llm.decode, len(client.llm.decode_tiers)))
        costs.append((alone_ns - gaps_ns + (vit_ns if spec.vit_path != "host" else 0)) / tokens)
    if not costs:
        return None
    return min(rates, plan.scenario.device.cores * NS_PER_S / min(costs))
