"""What a run amounts to, in figures that a log of a device and a simulation both can give, defined once for both.

A log of libGenie sees a graphExecute from the moment it is handed to QNN until it finishes, and nothing of the guard
before it or of other processes on the core. So do the figures here, whatever they are made from:

======================  ==============================================================================
``ttft``                first token - arrival of the request, as the source counts it
``prefill``             end of the last prefill graph - hand-over of the first, a request
``itl``                 time between two consecutive tokens of one request
``tokens_per_s``        tokens / time from the first hand-over to the last return
``decode_per_s``        1 / mean itl
``busy``                share of that time in which at least one graph is handed over and not returned
``step.clN``            itl of the tokens that graphs of context length N gave; ``.per_s`` and ``.busy``
                        are of these steps alone
``execute.decode.K``    return - hand-over of part K of the model, from 1; so for prefill
``execute.NAME``        the same of a graph that is no LLM's
``gap_graph``           hand-over - return of the graph before it, in one decode step
``gap_step``            hand-over of a decode step's first graph - the token before it
``share.CLIENT``        a client's part of all time on cores
``memory.CONTEXT``      bytes that one copy of a context reserves; ``load``: time until all was loaded
``copies.CONTEXT``      how many copies of it are loaded
======================  ==============================================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from htpsim.experiments.score.calls import NOT, Call, Calls, Request
from htpsim.formats.genie_console import variant_of
from htpsim.results.metric import Metric, stats
from htpsim.spec.tiers import tier_runs
from htpsim.units import NS_PER_S

Figures = dict[str, Metric]
STATISTICS: Final = ("mean", "p50", "p95", "p99")


def spread(name: str, values: Sequence[int] | Iterable[int], wanted: Sequence[str] = STATISTICS) -> Figures:
    """Return mean and quantiles of times [ns]; nothing where there are none.

    >>> sorted(spread("itl", [3, 4, 5, 6, 7], ("mean", "p50")))
    ['itl.mean', 'itl.p50']
    """
    array = np.fromiter(values, dtype=np.int64)
    if not len(array):
        return {}
    found = stats(array)
    return {f"{name}.{statistic}": getattr(found, statistic) for statistic in wanted}


def rate(count: int, spent_ns: int | float) -> Metric:
    """Return events a second.

    >>> rate(3, 2 * 10**9).value
    1.5
    """
    return Metric(count * NS_PER_S / spent_ns, count, "per_s")


def part_of(part_ns: int | float, whole_ns: int | float, n: int) -> Metric:
    """Return a share of time."""
    return Metric(part_ns / whole_ns, n, "share")


def figures_of_calls(run: Calls, tiers: Sequence[int] = ()) -> Figures:
    """Return every figure of a run's rows.

    Parameters
    ----------
    run
        The rows.
    tiers
        Context lengths that decode graphs were built for, where their names do not tell: a step is of the least that
        holds its tokens.
    """
    calls = [call for call in run.calls if call.returned_ns > run.start_ns]
    if not calls:
        return {}
    found: Figures = {}
    first_ns, last_ns = min(call.handed_ns for call in calls), max(call.returned_ns for call in calls)
    found["busy"] = part_of(_union(calls), max(1, last_ns - first_ns), len(calls))
    tokens = sum(call.token != NOT for call in calls)
    if tokens:
        found["tokens_per_s"] = rate(tokens, max(1, last_ns - first_ns))
    found |= _requests(run)
    found |= _steps(run, calls, tiers)
    found |= _executions(calls)
    found |= _shares(calls)
    return found


def _union(calls: Sequence[Call]) -> int:
    """Return for how long at least one call was handed over and not returned."""
    busy_ns, until_ns = 0, NOT
    for begin_ns, end_ns in sorted((call.handed_ns, call.returned_ns) for call in calls):
        busy_ns += max(0, end_ns - max(begin_ns, until_ns))
        until_ns = max(until_ns, end_ns)
    return busy_ns


def _requests(run: Calls) -> Figures:
    ttft = [
        row.first_token_ns - row.arrived_ns
        for row in run.requests.values()
        if row.first_token_ns != NOT and row.first_token_ns > run.start_ns
    ]
    begun: dict[tuple[str, int], int] = {}
    prefill = []
    for call in sorted(run.calls, key=lambda call: call.returned_ns):
        key = (call.client, call.request)
        if call.stage == "prefill":
            begun.setdefault(key, call.handed_ns)
            if call.token == 0 and call.returned_ns > run.start_ns:
                prefill.append(call.returned_ns - begun[key])
    return spread("ttft", ttft) | spread("prefill", prefill)


def _steps(run: Calls, calls: Sequence[Call], tiers: Sequence[int]) -> Figures:
    """Return the gaps between tokens, all and by context length, and the host's gaps."""
    threads: dict[tuple[str, int], list[Call]] = {}
    for call in calls:
        if call.stage in ("prefill", "decode"):
            threads.setdefault((call.client, call.request), []).append(call)
    gaps: list[int] = []
    by_tier: dict[int, tuple[list[int], list[int]]] = {}
    between: list[int] = []
    within: list[int] = []
    for key, own in threads.items():
        request = run.requests.get(key)
        own.sort(key=lambda call: call.handed_ns)
        token_ns, busy_ns, before = NOT, 0, None
        for call in own:
            if call.stage == "decode" and before is not None and before.stage == "decode":
                (between if before.token != NOT else within).append(call.handed_ns - before.returned_ns)
            busy_ns += call.returned_ns - call.handed_ns
            before = call
            if call.token == NOT:
                continue
            if call.token > 0 and token_ns != NOT:
                gaps.append(call.returned_ns - token_ns)
                tier = _tier(call, request, tiers)
                if tier is not None:
                    lengths, busy = by_tier.setdefault(tier, ([], []))
                    lengths.append(call.returned_ns - token_ns)
                    busy.append(busy_ns)
            token_ns, busy_ns = call.returned_ns, 0
    found = spread("itl", gaps)
    if gaps:
        found["decode_per_s"] = rate(len(gaps), sum(gaps))
    for tier, (lengths, busy) in sorted(by_tier.items()):
        found |= tier_figures(tier, lengths, sum(busy), len(busy))
    return found | spread("gap_graph", within, ("mean",)) | spread("gap_step", between, ("mean",))


def _tier(call: Call, request: Request | None, tiers: Sequence[int]) -> int | None:
    """Return the context length of a decode step: its graph's name tells it, or else how many tokens there are."""
    named = variant_of(call.graph.rpartition("/")[2])
    if named is not None:
        return named[0].context_length
    return tier_of(request.prompt_tokens + call.token, tiers) if request is not None and tiers else None


def tier_of(tokens: int, tiers: Sequence[int]) -> int:
    """Return the context length at which the step that makes so many tokens is run, by the engine's own rule.

    >>> tier_of(1024, (1024, 2048)), tier_of(1025, (1024, 2048)), tier_of(9999, (1024, 2048))
    (1024, 2048, 2048)
    """
    ordered = sorted(tiers)
    return ordered[tier_runs(ordered, tokens - 1, 1, 1)[0][0]]


def tier_figures(tier: int, steps: Sequence[int] | Iterable[int], busy_ns: int, n: int) -> Figures:
    """Return the figures of the decode steps of one context length."""
    array = np.fromiter(steps, dtype=np.int64)
    found = spread(f"step.cl{tier}", array)
    mean_ns = float(array.mean())
    found[f"step.cl{tier}.per_s"] = rate(len(array), float(array.sum()))
    found[f"step.cl{tier}.busy"] = part_of(busy_ns / n, mean_ns, n)
    return found


def _executions(calls: Sequence[Call]) -> Figures:
    """Return the time of each part of an LLM, and of every other graph, as the host sees it.

    Parts are numbered as their graphs say, else in the order in which a client first executes them.
    """
    spent: dict[str, list[int]] = {}
    order: dict[tuple[str, str], dict[str, int]] = {}
    for call in sorted(calls, key=lambda call: call.handed_ns):
        name = call.graph.rpartition("/")[2]
        if call.stage in ("prefill", "decode"):
            known = order.setdefault((call.client, call.stage), {})
            named = variant_of(name)
            name = f"{call.stage}.{named[0].split + 1 if named else known.setdefault(name, len(known) + 1)}"
        spent.setdefault(name, []).append(call.returned_ns - call.handed_ns)
    found: Figures = {}
    for name, values in spent.items():
        found |= spread(f"execute.{name}", values, ("mean", "p50"))
    return found


def _shares(calls: Sequence[Call]) -> Figures:
    """Return each client's part of all time on cores; as the host sees it, where nobody recorded the cores."""
    seen = all(call.core_ns != NOT for call in calls)
    held: dict[str, int] = {}
    for call in calls:
        spent_ns = call.core_ns if seen else call.returned_ns - call.handed_ns
        held[call.client] = held.get(call.client, 0) + spent_ns
    whole_ns = sum(held.values())
    if len(held) < 2 or not whole_ns:
        return {}
    return {f"share.{client}": part_of(spent_ns, whole_ns, len(calls)) for client, spent_ns in held.items()}
