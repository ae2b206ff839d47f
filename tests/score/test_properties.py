"""Figures against slow, obvious references on generated rows."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htpsim.experiments.score.calls import NOT, Call, Calls
from htpsim.experiments.score.figures import figures_of_calls, tier_of
from htpsim.spec.tiers import tier_runs

SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 30)), min_size=1, max_size=12)


def vits(spans: list[tuple[int, int]]) -> Calls:
    calls = [
        Call(f"c{number % 3}", number, "vit", 0, NOT, "vit/veg", begin, begin + length, length)
        for number, (begin, length) in enumerate(spans)
    ]
    return Calls(calls=calls)


@given(SPANS)
def test_busy_is_the_part_of_all_instants_at_which_a_graph_is_out(spans: list[tuple[int, int]]) -> None:
    first, last = min(begin for begin, _ in spans), max(begin + length for begin, length in spans)
    out = sum(any(begin <= instant < begin + length for begin, length in spans) for instant in range(first, last))

    assert figures_of_calls(vits(spans))["busy"].value == pytest.approx(float(Fraction(out, last - first)))


@given(SPANS)
def test_shares_add_up_to_one(spans: list[tuple[int, int]]) -> None:
    shares = [m.value for name, m in figures_of_calls(vits(spans)).items() if name.startswith("share.")]

    assert not shares or sum(share for share in shares if share is not None) == pytest.approx(1)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=2, max_size=40))
def test_gaps_and_executions_add_up_to_the_steps(steps: list[tuple[int, int]]) -> None:
    """Of one thread with one graph a step, a step is the gap before it and its execution."""
    now, calls = 0, []
    for token, (gap, length) in enumerate(steps):
        now += gap
        calls.append(Call("a", 0, "decode", token, token, "llm/decode0", now, now + length, length))
        now += length
    found = figures_of_calls(Calls(calls=calls))
    itl = sum(gap + length for gap, length in steps[1:]) / (len(steps) - 1)

    assert found["itl.mean"].value == pytest.approx(itl)
    assert found["gap_step.mean"].value == pytest.approx(sum(gap for gap, _ in steps[1:]) / (len(steps) - 1))
    assert found["decode_per_s"].value == pytest.approx(1e9 / itl)


@given(
    st.lists(st.integers(1, 300), min_size=1, max_size=4, unique=True).map(sorted),
    st.integers(1, 200),
    st.integers(1, 200),
)
def test_a_step_is_counted_to_the_length_that_the_engine_takes(tiers: list[int], prompt: int, steps: int) -> None:
    engine = [tiers[tier] for tier, _, count in tier_runs(tiers, prompt, 1, steps) for _ in range(count)]

    assert [tier_of(prompt + token, tiers) for token in range(1, steps + 1)] == engine
