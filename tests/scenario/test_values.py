"""Quantities and distributions as text: what is written reads back exactly, what is wrong is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htpsim.scenario.distributions import distribution, from_distribution, to_distribution
from htpsim.scenario.quantities import PARSERS, parse, write
from htpsim.spec import Distribution
from htpsim.units import BYTE_UNITS, RATE_UNITS, TIME_UNITS

UNITS = {"ns": TIME_UNITS, "bytes": BYTE_UNITS, "bytes_per_s": RATE_UNITS}
WHOLE = st.integers(0, 2**61)


@given(value=WHOLE, unit=st.sampled_from([*UNITS, ""]))
def test_what_is_written_reads_back_exactly(value: int, unit: str) -> None:
    assert parse(write(value, unit), unit) == value


@given(
    kind=st.sampled_from([*UNITS]),
    number=st.decimals(0, 10_000, places=3, allow_nan=False),
    data=st.data(),
    space=st.sampled_from(["", " ", "\t"]),
)
def test_any_number_with_any_unit_is_read(kind: str, number: Decimal, data: st.DataObject, space: str) -> None:
    unit = data.draw(st.sampled_from(sorted(UNITS[kind])))
    exact = Fraction(number) * UNITS[kind][unit]

    assert abs(parse(f"{number}{space}{unit}", kind) - exact) <= Fraction(1, 2)


@given(text=st.text(max_size=12), unit=st.sampled_from([*UNITS]))
def test_any_text_is_read_or_refused_in_words(text: str, unit: str) -> None:
    def told(read: Callable[[], int]) -> int | str:
        try:
            return read()
        except ValueError as error:
            return str(error)

    said = told(lambda: parse(text, unit))
    assert said == told(lambda: PARSERS[unit](text))
    assert isinstance(said, int) or said.startswith("got ")


@pytest.mark.parametrize("value", [5, -1, 1.5, True, False, None, [], {}, 2**70])
def test_only_zero_goes_without_a_unit(value: object) -> None:
    with pytest.raises(ValueError, match=r"^got .*, expected a time with a unit"):
        parse(value, "ns")


@pytest.mark.parametrize("value", [1.0, True, "3", None, 2**62])
def test_a_whole_number_is_nothing_else(value: object) -> None:
    with pytest.raises(ValueError, match=r"^got .*, expected a whole number"):
        parse(value, "")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (60_000_000_000, "60s"),
        (1_800_000, "1.8ms"),
        (123_456_789_123, "123456789123ns"),
        (200_000, "200us"),
        (7_200_000_000_000, "2h"),
    ],
)
def test_times_are_written_briefly(value: int, text: str) -> None:
    assert write(value, "ns") == text


def read(value: object, unit: str) -> Distribution:
    from pydantic import TypeAdapter

    return to_distribution(TypeAdapter(distribution(unit)).validate_python(value), lambda profile: 0)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("300ms", Distribution(mean=300_000_000)),
        (0, Distribution(mean=0)),
        ({"mean": "1s", "cv": 0.2}, Distribution(kind="lognormal", mean=10**9, cv=0.2)),
        ({"mean": "1s", "cv": 1, "kind": "lognormal"}, Distribution(kind="lognormal", mean=10**9, cv=1.0)),
        ({"kind": "exponential", "mean": "1s"}, Distribution(kind="exponential", mean=10**9)),
        ({"kind": "constant", "mean": "1s"}, Distribution(mean=10**9)),
        ({"sample": ["1ms", "2ms", 0]}, Distribution(kind="sample", sample=(1_000_000, 2_000_000, 0))),
        ({"low": "1ms", "high": "2ms"}, Distribution(kind="uniform", low=1_000_000, high=2_000_000)),
        ({"mean": "9ms", "stages": 3}, Distribution(kind="erlang", mean=9_000_000, stages=3)),
    ],
)
def test_the_forms_of_a_time(value: object, expected: Distribution) -> None:
    assert read(value, "ns") == expected


def test_the_forms_of_a_count() -> None:
    assert read(3, "") == Distribution(mean=3)
    assert read({"low": 1, "high": 4}, "") == Distribution(kind="uniform", low=1, high=4)


@pytest.mark.parametrize(
    "value",
    [
        {"mean": "1s"},
        {"kind": "gauss", "mean": "1s"},
        {"sample": []},
        {"sample": "1ms"},
        {"low": "1ms"},
        {"mean": "1s", "cv": math.inf},
        {"mean": "1s", "cv": True},
        {"kind": "exponential", "mean": "1s", "cv": 1},
        {"profile": "x.txt", "mean": "1s"},
        5,
        {},
        [],
    ],
)
def test_what_is_no_distribution_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="validation error"):
        read(value, "ns")


def test_a_count_is_not_read_from_a_profile() -> None:
    with pytest.raises(ValueError, match="validation error"):
        read({"profile": "x.txt"}, "")


DISTRIBUTIONS = st.one_of(
    st.builds(Distribution, mean=WHOLE),
    st.builds(Distribution, kind=st.just("exponential"), mean=WHOLE),
    st.builds(Distribution, kind=st.just("lognormal"), mean=WHOLE, cv=st.floats(0, 10)),
    st.builds(Distribution, kind=st.just("sample"), sample=st.lists(WHOLE, min_size=1, max_size=4).map(tuple)),
    st.builds(Distribution, kind=st.just("uniform"), low=WHOLE, high=WHOLE),
    st.builds(Distribution, kind=st.just("erlang"), mean=WHOLE, stages=st.integers(1, 9)),
)


@given(given_distribution=DISTRIBUTIONS, unit=st.sampled_from(["ns", ""]))
def test_a_distribution_that_is_written_reads_back_exactly(given_distribution: Distribution, unit: str) -> None:
    assert read(from_distribution(given_distribution, unit), unit) == given_distribution
