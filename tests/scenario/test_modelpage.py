"""The page on the model says what the code says: every parameter, its mark, its default, where that comes from."""

from __future__ import annotations

import importlib
from dataclasses import fields
from pathlib import Path

import pytest

from htpsim.scenario.modelpage import BEGIN, SECTIONS, tables
from htpsim.spec import MARKS, Scenario, describe
from htpsim.spec.origins import FIXED, ORIGINS

PAGE = Path(__file__).parents[2] / "docs" / "model.md"
AGAIN = "docs/model.md is not what the code says; write it again with: python -m htpsim.cli.reference"


def parameters() -> dict[str, str]:
    """Return the mark of every parameter, by class and field."""
    specs = [spec for _, spec in SECTIONS]
    return {
        f"{spec.__name__}.{f.name}": describe(spec, f.name).mark
        for spec in specs
        for f in fields(spec)
        if "param" in f.metadata
    }


def test_the_page_is_what_the_code_says() -> None:
    text = PAGE.read_text(encoding="utf-8")

    _, found, below = text.partition(BEGIN)

    assert found, "docs/model.md has lost the line below which it is written by the code"
    assert below == "\n" + tables(), AGAIN


def test_every_table_of_a_scenario_is_on_the_page() -> None:
    of_a_scenario = {type(getattr(Scenario(), f.name)) for f in fields(Scenario) if f.name not in ("name", "title")}
    assert {spec for spec in of_a_scenario if spec is not tuple} <= {spec for _, spec in SECTIONS}


def test_every_parameter_that_is_no_choice_has_an_origin_and_nothing_else_has() -> None:
    marks = parameters()
    assert set(marks.values()) <= set(MARKS)
    assert set(ORIGINS) == {name for name, mark in marks.items() if mark != "choice"}


def test_what_is_assumed_is_not_dressed_up_as_known() -> None:
    for name, mark in parameters().items():
        if mark == "assumed":
            assert "vendor documentation" not in ORIGINS[name], name


@pytest.mark.parametrize("fixed", FIXED, ids=lambda fixed: fixed.rule[:40])
def test_a_rule_without_a_parameter_is_where_it_is_said_to_be(fixed: object) -> None:
    rule, mark, origin, where = fixed  # type: ignore[misc]
    assert mark in MARKS
    assert origin
    assert rule[0].islower()
    importlib.import_module(f"htpsim.{where}")
