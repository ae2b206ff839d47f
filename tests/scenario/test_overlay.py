"""Merging and expanding: laws on generated tables, and the lists of instances by hand."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from htpsim.scenario.keys import keys_of
from htpsim.scenario.overlay import Patched, expand, is_leaf, merge
from htpsim.spec import Instance

KEYS = keys_of(Instance)
NAMES = st.sampled_from(["guard", "slots", "policy", "a", "b"])
SCALARS = st.one_of(st.integers(0, 3), st.sampled_from(["1ms", "core"]), st.lists(st.integers(0, 3), max_size=2))
LEAVES = st.sampled_from(
    [{"mean": "1s", "kind": "exponential"}, {"sample": ["1ms"]}, {"value": 3, "source": "a log", "mark": "measured"}]
)
TABLES: st.SearchStrategy[dict[str, Any]] = st.recursive(
    st.dictionaries(NAMES, st.one_of(SCALARS, LEAVES), max_size=3),
    lambda inner: st.dictionaries(NAMES, st.one_of(SCALARS, LEAVES, inner), max_size=3),
    max_leaves=8,
)


@given(table=TABLES)
def test_an_empty_overlay_changes_nothing(table: dict[str, Any]) -> None:
    assert merge(table, {}) == table
    assert merge({}, table) == table


@given(table=TABLES)
def test_laying_a_table_over_itself_changes_nothing(table: dict[str, Any]) -> None:
    assert merge(table, table) == table


@given(under=TABLES, over=TABLES)
def test_a_second_time_changes_nothing(under: dict[str, Any], over: dict[str, Any]) -> None:
    once = merge(under, over)

    assert merge(once, over) == once


@given(under=TABLES, over=TABLES)
def test_the_overlay_has_the_last_word_and_nothing_else_is_touched(under: dict[str, Any], over: dict[str, Any]) -> None:
    merged = merge(under, over)

    assert set(merged) == set(under) | set(over)
    for key, value in merged.items():
        if key not in over:
            assert value == under[key]
        elif is_leaf(over[key]):
            assert value == over[key]


@given(under=TABLES, over=TABLES)
def test_neither_table_is_changed(under: dict[str, Any], over: dict[str, Any]) -> None:
    before = repr((under, over))
    merge(under, over)

    assert repr((under, over)) == before


def conflicts(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Tell whether two tables say different things of one key, or one replaces what the other merges into."""
    return any(
        conflicts(one[key], other[key]) if not is_leaf(one[key]) and not is_leaf(other[key]) else one[key] != other[key]
        for key in set(one) & set(other)
    )


@given(one=TABLES, other=TABLES)
def test_overlays_without_conflict_commute(one: dict[str, Any], other: dict[str, Any]) -> None:
    if not conflicts(one, other):
        assert merge(one, other) == merge(other, one)


@given(bottom=TABLES, middle=TABLES, top=TABLES)
def test_merging_is_associative_where_tables_stay_tables(
    bottom: dict[str, Any], middle: dict[str, Any], top: dict[str, Any]
) -> None:
    if not conflicts(bottom, middle) and not conflicts(middle, top) and not conflicts(bottom, top):
        assert merge(merge(bottom, middle), top) == merge(bottom, merge(middle, top))


def test_a_distribution_is_replaced_whole() -> None:
    under = {"think": {"kind": "lognormal", "mean": "1s", "cv": 0.5}}

    assert merge(under, {"think": {"sample": ["1s"]}}) == {"think": {"sample": ["1s"]}}


def test_a_sourced_value_is_replaced_by_a_plain_one_and_the_reverse() -> None:
    sourced = {"value": "1s", "source": "a log", "mark": "measured"}

    assert merge({"a": sourced}, {"a": "2s"}) == {"a": "2s"}
    assert merge({"a": {"b": 1}}, {"a": sourced}) == {"a": sourced}


def test_arrivals_are_merged_although_they_have_a_kind() -> None:
    assert merge({"kind": "periodic", "period": "1s"}, {"kind": "poisson"}) == {"kind": "poisson", "period": "1s"}


def tables(value: Any) -> list[dict[str, Any]]:
    expansion = expand(value, KEYS, ("instances",))
    assert expansion.problems == []
    return expansion.tables


def test_a_count_numbers_from_zero_and_spreads_lists() -> None:
    group = {"name": "car", "count": 3, "weight": [3, 2, 1], "llm": ["a", "b", "a"], "process": 1}

    assert tables([group]) == [
        {"name": "car0", "weight": 3, "llm": "a", "process": 1},
        {"name": "car1", "weight": 2, "llm": "b", "process": 1},
        {"name": "car2", "weight": 1, "llm": "a", "process": 1},
    ]


def test_lists_spread_within_arrivals_but_a_list_of_times_does_not() -> None:
    group = {"count": 2, "arrivals": {"offset": ["0s", "5ms"], "times": ["1s", "2s"]}}

    assert [table["arrivals"] for table in tables([group])] == [
        {"offset": "0s", "times": ["1s", "2s"]},
        {"offset": "5ms", "times": ["1s", "2s"]},
    ]


def test_lists_of_times_spread_when_nested() -> None:
    group = {"count": 2, "arrivals": {"times": [["1s"], ["2s", "3s"]]}}

    assert [table["arrivals"]["times"] for table in tables([group])] == [["1s"], ["2s", "3s"]]


def test_a_sourced_list_spreads_and_keeps_its_source() -> None:
    group = {"count": 2, "weight": {"value": [4, 1], "source": "a talk", "mark": "assumed"}}

    assert [table["weight"] for table in tables([group])] == [
        {"value": 4, "source": "a talk", "mark": "assumed"},
        {"value": 1, "source": "a talk", "mark": "assumed"},
    ]


def test_patches_reach_all_a_group_and_one_in_that_order() -> None:
    groups = ({"name": "front", "count": 2}, {"name": "rear"})
    patch = {"weight": 2, "front": {"weight": [5, 6]}, "rear": {"weight": 7}, "front1": {"weight": 8}}

    assert [table["weight"] for table in tables(Patched(groups, (patch,)))] == [5, 8, 7]


def test_a_later_patch_of_all_wins_over_an_earlier_one_of_one() -> None:
    patches = ({"vlm0": {"weight": 9}}, {"weight": 2})

    assert [table["weight"] for table in tables(Patched(({"count": 2},), patches))] == [2, 2]


def test_a_patch_changes_the_count_of_the_only_group_or_of_a_named_one() -> None:
    assert len(tables(Patched(({"count": 2},), ({"count": 5},)))) == 5
    groups = ({"name": "front", "count": 2}, {"name": "rear", "count": 2})
    assert len(tables(Patched(groups, ({"rear": {"count": 1}},)))) == 3


@given(count=st.integers(1, 12), weights=st.lists(st.integers(1, 9), min_size=1, max_size=12))
def test_a_spread_list_must_have_the_length_of_the_count(count: int, weights: list[int]) -> None:
    expansion = expand([{"count": count, "weight": weights}], KEYS, ("instances",))

    if len(weights) == count:
        assert [table["weight"] for table in expansion.tables] == weights
    else:
        assert expansion.problems == [
            (
                ("instances", "vlm", "weight"),
                f"got {len(weights)} values, expected {count}, one each, or a single one for all",
            )
        ]
