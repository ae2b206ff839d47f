"""Every report of the field that is rebuilt: its figures come out, and it says what was fitted and what was not."""

from __future__ import annotations

import re

import pytest

from htpsim.errors import ScenarioError
from htpsim.scenario import load
from tests.field.page import PAGE, REPORTS, error, page
from tests.field.report import Figure, Report, loaded
from tests.scenarios.support import SCENARIOS

FIGURES = [
    pytest.param(report, figure, id=f"{report.number}-{figure.what}") for report in REPORTS for figure in report.figures
]


def text(report: Report) -> str:
    return (SCENARIOS / "field" / f"{report.scenario}.toml").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(("report", "figure"), FIGURES)
def test_it_is_what_arithmetic_says(report: Report, figure: Figure) -> None:
    said = figure.said(report.runs)

    if isinstance(figure.answer, str):
        assert said == figure.answer
    else:
        assert said == pytest.approx(figure.answer, rel=figure.exact, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("report", "figure"), FIGURES)
def test_it_is_as_close_to_what_was_published_as_it_claims(report: Report, figure: Figure) -> None:
    """And not much closer: a claim that is looser than the error hides the next change."""
    off = error(figure, figure.said(report.runs))

    if off is None:
        assert figure.within == 0, "there is nothing to be within of"
    else:
        assert abs(off) <= max(figure.within, 1e-9)
        assert figure.within <= max(2 * abs(off), 2e-3)


@pytest.mark.slow
def test_the_page_says_what_the_runs_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "write it anew: python -m tests.field.page"


def test_all_of_the_collection_are_there_and_none_twice() -> None:
    assert len({report.number for report in REPORTS}) == len(REPORTS) == 30


def test_every_file_is_a_report_and_every_report_a_file() -> None:
    files = {path.stem for path in (SCENARIOS / "field").glob("*.toml")}

    assert files == {report.scenario for report in REPORTS}


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.number)
def test_the_file_names_its_source_and_says_what_was_fitted(report: Report) -> None:
    schema, first, *rest = text(report).splitlines()
    comment = " ".join(line.removeprefix("#").strip() for line in rest[: rest.index(next(filter(is_no_comment, rest)))])

    assert schema == "#:schema ../scenario.schema.json"
    assert first.startswith(f"# {report.source}")
    assert re.match(r"Fitted: .+ Predicted: .+", comment)
    kinds = {figure.kind for figure in report.figures}
    assert ("fitted" in kinds) is not comment.startswith("Fitted: nothing")
    assert "predicted" in kinds
    assert loaded(report.scenario, report.settings).title.startswith(f"{report.number}: ")


def is_no_comment(line: str) -> bool:
    return not line.startswith("#")


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.number)
def test_every_variant_says_of_itself_whether_it_was_fitted(report: Report) -> None:
    for name, variant in loaded(report.scenario, report.settings).variants.items():
        assert re.search(r"\b(fitted|predicted)\b", variant.text) or "extends" in text(report), name


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.number)
def test_lines_are_no_longer_than_a_screen_save_for_sources(report: Report) -> None:
    lines = text(report).splitlines()

    assert [line for line in lines if len(line) > 120 and "source = " not in line and "[{" not in line] == []


def test_a_scenario_that_can_only_ask_for_too_much_is_refused_when_it_is_read() -> None:
    """B35: the compiled bundle decides."""
    with pytest.raises(ScenarioError, match="got requests of at least 5100 tokens, expected at most 4096"):
        load(SCENARIOS / "field" / "b35_beyond_the_context.toml", set_values=["instances.text_tokens=5000"])
