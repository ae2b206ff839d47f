"""Samples reduced to one figure, and tokens a second under their two definitions."""

from __future__ import annotations

import statistics
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htpsim.errors import FormatError
from htpsim.formats.genie_console.times import Recorder
from htpsim.formats.samples import choose, mean_ns, median_ns, refuse_selectors, statistic_ns
from htpsim.formats.tokenrates import ALL, WITHOUT_FIRST, agrees, definition, of_version, tokens_of
from htpsim.formats.values import ServiceQuery

samples = st.lists(st.integers(1, 10**15), min_size=1, max_size=30)


@given(samples)
def test_figures_are_those_of_the_standard_library(values: list[int]) -> None:
    counts = Counter(values)

    low, high = statistics.median_low(values), statistics.median_high(values)
    assert abs(2 * median_ns(counts) - low - high) <= 1
    assert 2 * abs(mean_ns(counts) * len(values) - sum(values)) <= len(values)
    assert statistic_ns(values, "min", "a") == min(values)
    assert statistic_ns(values, "max", "a") == max(values)


@given(samples)
def test_counting_keeps_every_figure(values: list[int]) -> None:
    recorder = Recorder(keep=("a", "x"))
    for line, value in enumerate(values, start=1):
        recorder.add(("a", "x"), value, line)
        recorder.add(("a", "y"), 1, line)
    times = recorder.times(("a", "x"))

    assert times is not None
    assert (times.n, times.total_ns, times.first_ns, times.line) == (len(values), sum(values), values[0], 1)
    assert (times.min_ns, times.max_ns) == (min(values), max(values))
    assert dict(times.counts) == Counter(values)
    assert list(recorder.kept) == values
    assert recorder.values == len(set(values)) + 1
    assert recorder.names("a") == ("x", "y")
    assert recorder.times(("b", "x")) is None


def test_an_unknown_statistic_and_no_time_at_all_are_refused() -> None:
    with pytest.raises(FormatError, match=r"^a:1: statistic: got 'mean', expected one of average, max, median, min"):
        statistic_ns((1,), "mean", "a:1")
    with pytest.raises(FormatError, match=r"^a:1: got 0 ns, expected a time above zero"):
        statistic_ns((0, 0), "average", "a:1")


def test_a_choice_is_made_only_where_there_is_none() -> None:
    assert choose("a:1", "graph", None, ["vit"]) == "vit"
    assert choose("a:1", "graph", "llm", ["vit", "llm"]) == "llm"
    with pytest.raises(FormatError, match=r"^a:1: graph: got none, expected one of vit, llm"):
        choose("a:1", "graph", None, ["vit", "llm"])
    with pytest.raises(FormatError, match="did you mean 'vit'"):
        choose("a:1", "graph", "vitt", ["vit", "llm"])
    with pytest.raises(FormatError, match="got none, expected one, but the file holds none"):
        choose("a:1", "graph", None, [])


def test_a_selector_that_means_nothing_is_refused() -> None:
    refuse_selectors("a", ServiceQuery(context_length=5), "context_length")
    for query in (ServiceQuery(device="x"), ServiceQuery(runtime="qnn"), ServiceQuery(precision="w8"),
                  ServiceQuery(context_length=5)):  # fmt: skip
        with pytest.raises(FormatError, match="expected none: this is a log of one run on one device"):
            refuse_selectors("a", query)


@given(st.integers(8, 400), st.floats(0.5, 50), st.sampled_from([ALL, WITHOUT_FIRST]))
def test_a_rate_tells_its_definition_back(tokens: int, seconds: float, rule: str) -> None:
    """Printed as the tools print: six digits behind the point."""
    rate = round((tokens - (rule == WITHOUT_FIRST)) / seconds, 6)

    assert agrees(tokens, seconds, rate)
    assert definition(tokens, seconds, rate) == rule
    assert tokens_of(rate, seconds, rule) == tokens


@pytest.mark.parametrize("arguments", [(10, 0.0, 1.0), (10, 1.0, 0.0), (0, 1.0, 1.0)])
def test_nothing_is_told_from_nothing(arguments: tuple[int, float, float]) -> None:
    assert definition(*arguments) is None
    assert not agrees(*arguments)


def test_what_a_version_prints_is_known_only_where_it_was_seen() -> None:
    older, newer, unknown = ("1.0.0", "1.17.0"), ("1.19.0", "2.0"), ("1.18.3", "x", None)

    assert {of_version(version) for version in older} == {ALL}
    assert {of_version(version) for version in newer} == {WITHOUT_FIRST}
    assert {of_version(version) for version in unknown} == {None}
    assert tokens_of(12.0, 0.75, None) is None
    assert tokens_of(12.3, 0.75, ALL) is None, "9.2 tokens are no number of tokens"
