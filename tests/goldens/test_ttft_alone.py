"""TTFT of an LLM alone: the chunks of its prompt, each at its published time."""

from __future__ import annotations

import pytest

from htpsim.results.run import RunResult
from htpsim.sim import simulate
from htpsim.spec import Arrivals, Context, Device, Distribution, Graph, Instance, Model, Run, Scenario, constant

CHUNK_NS = 75_987_000
"""One AR-128 chunk of Llama-3.2-1B, w4, on an 8 Elite (ai-hub-models perf.yaml)."""
AR = 128
PUBLISHED_MS = 531.665
"""Genie's own profile of 823 prompt tokens with that model on that chip."""
GENIE_THREAD = Run(duration_ns=20_000_000_000)


def ttfts_ns(prompt: int, service: Distribution, *, lm_head_split: bool = False) -> set[int]:
    """Return the TTFTs of an LLM of three splits, alone on its core, without a ViT."""
    prefill = tuple(Graph(name=f"prefill{i}", context="llm", service=service) for i in range(3))
    decode = Graph(name="decode", context="llm", service=constant(26_000_000))
    model = Model(
        name="llm", role="llm", contexts=(Context(name="llm"),), prefill=prefill, decode=(decode,), ar=AR,
        lm_head_split=lm_head_split,
    )  # fmt: skip
    instance = Instance(
        name="llm", llm=model, text_tokens=constant(prompt), output_tokens=constant(2), arrivals=Arrivals()
    )
    log = simulate(Scenario(device=Device(), run=GENIE_THREAD, instances=(instance,)), check=True)
    return set(RunResult(log).samples("ttft")["value_ns"].tolist())


def test_the_published_prompt_takes_its_seven_chunks() -> None:
    """Predicted. ceil(823 / 128) x 75.987 ms = 7 x 75.987 = 531.909 ms; published 531.665, 0.05 % less."""
    taken = ttfts_ns(823, constant(CHUNK_NS // 3))

    assert taken == {7 * CHUNK_NS} == {531_909_000}
    assert taken.pop() / 1e6 == pytest.approx(PUBLISHED_MS, rel=0.001)


@pytest.mark.parametrize(("prompt", "chunks"), [(1, 1), (128, 1), (129, 2), (256, 2), (823, 7), (3900, 31)])
def test_ttft_is_a_staircase_of_chunks(prompt: int, chunks: int) -> None:
    """Predicted. A chunk is padded: ceil(prompt / AR) x chunk, whatever the last one holds."""
    assert ttfts_ns(prompt, constant(CHUNK_NS // 3)) == {chunks * CHUNK_NS}


def test_a_split_lm_head_runs_in_the_last_chunk_only() -> None:
    """Predicted. Seven chunks of two graphs, and one LM head."""
    assert ttfts_ns(823, constant(10_000_000), lm_head_split=True) == {(7 * 2 + 1) * 10_000_000}
