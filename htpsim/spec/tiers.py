"""Which set of graphs runs a step of an LLM, where its binaries hold one for each of several context lengths (tiers).

A step needs a context that holds the tokens so far and its own: AR-n graphs of context length CL take up to CL - n
tokens from the KV cache. The runtime takes the least length that is enough, so decode gets slower tier by tier (a
public log: 39.1, 41.0, 43.0 and 46.5 ms a token at lengths of 1024 to 4096).
"""

from __future__ import annotations

from collections.abc import Sequence

from htpsim.spec.model import Graph


def tiers_of(graphs: Sequence[Graph]) -> list[int]:
    """Return the context lengths of a list of graphs, ascending; [0] where one length serves all.

    >>> from htpsim.spec.distribution import constant
    >>> decode = [Graph(name=f"d{cl}", context="c", service=constant(1), tier_tokens=cl) for cl in (2048, 1024)]
    >>> tiers_of(decode), tiers_of([])
    ([1024, 2048], [0])
    """
    return sorted({graph.tier_tokens for graph in graphs}) or [0]


def tier_runs(tiers: Sequence[int], tokens: int, width: int, steps: int) -> list[tuple[int, int, int]]:
    """Return (tier, first step, how many) of the runs of steps that one set of graphs takes.

    Parameters
    ----------
    tiers : sequence of int
        Context lengths, ascending; the last serves whatever comes.
    tokens : int
        Tokens in the KV cache before the first step.
    width : int
        Tokens that a step adds.
    steps : int
        How many steps there are.

    Examples
    --------
    >>> tier_runs([1024, 2048], 1000, 1, 100)
    [(0, 0, 24), (1, 24, 76)]
    >>> tier_runs([0], 1000, 128, 3)
    [(0, 0, 3)]
    """
    runs = []
    first = 0
    last = len(tiers) - 1
    for tier in range(last + 1):
        end = steps
        if tier < last:
            end = min(steps, max(first, (tiers[tier] - tokens) // width))
        if end > first:
            runs.append((tier, first, end - first))
            first = end
    return runs
