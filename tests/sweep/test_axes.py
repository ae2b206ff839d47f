"""Axes are read as they are written, and designs make the points they promise."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htpsim.errors import ScenarioError
from htpsim.experiments.sweep.axes import Axis, parse_axis, points_of

names = st.from_regex(r"[a-z]{1,8}(\.[a-z_]{1,8})?", fullmatch=True)
words = st.from_regex(r"[a-z0-9_.-]{1,6}", fullmatch=True).filter(lambda word: ".." not in word)


@given(names, st.lists(words, min_size=1, max_size=6, unique=True))
def test_a_list_keeps_its_values_in_order(key: str, values: list[str]) -> None:
    assert parse_axis(f"{key}={', '.join(values)}") == Axis(key, tuple(values))


@given(st.integers(-100, 100), st.integers(1, 200), st.sampled_from(["", "ms", "GB/s"]), st.integers(2, 12))
def test_a_range_runs_from_end_to_end(low: int, span: int, unit: str, steps: int) -> None:
    axis = parse_axis(f"key={low}{unit}..{low + span}{unit}/{steps}")
    values = [float(value.removesuffix(unit) if unit else value) for value in axis.grid()]
    assert (values[0], values[-1]) == (low, low + span)
    assert values == sorted(set(values))
    assert len(values) == (min(steps, span + 1) if not unit else steps) or not unit
    if not unit:
        assert all(value.lstrip("-").isdigit() for value in axis.grid())


@given(st.integers(1, 200), st.integers(0, 5))
def test_a_latin_hypercube_has_one_point_in_every_slice_of_every_axis(count: int, seed: int) -> None:
    axes = [parse_axis("a=0.0..1.0"), parse_axis("b=10.0ms..20.0ms")]
    points = points_of(axes, "lhs", count, seed)
    first = sorted(int(float(a) * count) for a, _ in points)
    second = sorted(int((float(b.removesuffix("ms")) - 10) / 10 * count) for _, b in points)
    assert first == second == list(range(count))
    assert points == points_of(axes, "lhs", count, seed)


@given(st.integers(1, 100))
def test_a_sobol_sample_is_spread_and_seeded(count: int) -> None:
    axes = [parse_axis("a=0.0..1.0"), parse_axis("b=1,2,3,4")]
    points = points_of(axes, "sobol", count, 1)
    assert len(points) == count
    assert all(0 <= float(a) <= 1 and b in "1234" for a, b in points)
    if count >= 32:
        assert {b for _, b in points} == set("1234")
        assert abs(sum(float(a) for a, _ in points) / count - 0.5) < 0.1


def test_whole_numbers_of_a_sample_have_equal_chances() -> None:
    values = [int(value) for (value,) in points_of([parse_axis("a=1..4")], "lhs", 400)]
    assert {value: values.count(value) for value in set(values)} == {1: 100, 2: 100, 3: 100, 4: 100}


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_a_grid_has_every_combination_once(lengths: list[int]) -> None:
    axes = [Axis(f"k{i}", tuple(map(str, range(n)))) for i, n in enumerate(lengths)]
    points = points_of(axes)
    assert len(points) == len(set(points)) == math.prod(lengths)


@pytest.mark.parametrize(
    ("vary", "design", "count", "told"),
    [
        ([], "grid", 0, "expected at least one"),
        (["a"], "grid", 0, "expected KEY=a,b,c"),
        (["a="], "grid", 0, "expected KEY=a,b,c"),
        (["a=1,2", "a=3"], "grid", 0, "got it twice"),
        (["a=1..5"], "grid", 0, "without steps"),
        (["a=5..1"], "lhs", 9, "low below high"),
        (["a=1ms..5s"], "lhs", 9, "one unit for both"),
        (["a=1.2.3..5"], "lhs", 9, "two numbers"),
        (["a=1..5/1"], "grid", 0, "two steps or more"),
        (["a=1,2", "b=1"], "list", 0, "as many for each"),
        (["a=1,2"], "lhs", 0, "for a sample"),
        (["a=1,2"], "gird", 0, "did you mean 'grid'"),
        ([f"{k}=0..99999/1000" for k in "abc"], "grid", 0, "more than 1,000,000 points"),
    ],
)
def test_what_does_not_do_is_told(vary: list[str], design: str, count: int, told: str) -> None:
    with pytest.raises(ScenarioError, match=told):
        points_of([parse_axis(text) for text in vary], design, count)


def test_more_steps_than_anybody_can_run_are_refused_before_they_are_made() -> None:
    assert parse_axis("device.evict=0us..9us/1000000").steps == 1_000_000
    with pytest.raises(ScenarioError, match="got 99999999999 steps, expected at most 1,000,000"):
        parse_axis("guard.slots=1..2/99999999999")
