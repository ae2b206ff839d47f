"""What the commands print: tables put together for one run, one comparison, one list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from htpsim.experiments.compare import BASE, Comparison
from htpsim.experiments.single import Single
from htpsim.report.cells import stack, table
from htpsim.report.decision import capability_matrix, decision_table
from htpsim.report.text import assumption_table, assumptions, load_failures, run_tables
from htpsim.report.verdict import grid_dict, sign_tables
from htpsim.results.summary import Summary
from htpsim.scenario import ScenarioFile
from htpsim.spec import Scenario


def single_page(single: Single, *, whole: bool = False) -> RenderableType:
    """Return the tables of one scenario; of several replications the first, then how they spread.

    `whole` adds every assumption in force, which is long; without it, one line says how many there are.
    """
    warnings = [Text(f"! {warning}", style="yellow") for warning in single.resolved.warnings]
    spread = None
    if len(single.summaries) > 1:
        spread = decision_table({single.resolved.scenario.name: single.summaries}, title="Over all replications")
    return stack(run_tables(single.summaries[0]), spread, *warnings, _assumed(single.resolved.scenario, whole))


def comparison_page(comparison: Comparison, *, whole: bool = False) -> RenderableType:
    """Return a decision table a case, the capability matrix, and which assumption would change a sign.

    `whole` adds every assumption in force.
    """
    parts: list[RenderableType | None] = [Text(comparison.file.title, style="bold")]
    if comparison.file.question:
        parts.append(Text(comparison.file.question))
    parts += [_legend(comparison)]
    for case, variants in comparison.summaries.items():
        title = comparison.cases[case] or case
        parts.append(decision_table(variants, title="Decision" if case == BASE else f"Decision: {title}"))
    first = next(iter(comparison.summaries.values()))
    parts.append(capability_matrix(first))
    for variant, runs in first.items():
        parts.append(_failures(variant, runs[0]))
    if comparison.grid is not None:
        parts.append(sign_tables(comparison.grid, option_titles(comparison.file)))
    parts.append(_assumed(next(iter(comparison.resolved.values())).scenario, whole))
    return stack(*parts)


def option_titles(file: ScenarioFile) -> dict[str, str]:
    """Return the words for every option of a file's assumptions, by "NAME.OPTION"."""
    return {
        f"{name}.{option}": words.title
        for name, assumption in file.assumptions.items()
        for option, words in assumption.options.items()
    }


def scenarios_page(files: Mapping[str, ScenarioFile]) -> RenderableType:
    """Return the shipped scenarios, a row each."""
    rows = [[name, file.question or file.title, str(len(file.variants) or "")] for name, file in files.items()]
    return table("Shipped scenarios", ["name", "question", "variants"], rows, left=2)


def comparison_dict(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison in JSON form: every summary, and the grid."""
    return {
        "title": comparison.file.title,
        "question": comparison.file.question,
        "cases": {
            case: {variant: [s.to_dict() for s in runs] for variant, runs in variants.items()}
            for case, variants in comparison.summaries.items()
        },
        "grid": grid_dict(comparison.grid) if comparison.grid is not None else None,
    }


def _assumed(scenario: Scenario, whole: bool) -> RenderableType:
    """Return the assumptions in force, or how many there are."""
    if whole:
        return assumption_table(scenario)
    count = sum(1 for _ in assumptions(scenario))
    return Text(f"{count} assumed parameters are in force; --out DIR lists them in its report.txt", style="dim")


def _legend(comparison: Comparison) -> RenderableType | None:
    """Return what each variant means."""
    rows = [
        [name, f"{words.title}: {words.text}" if words.text else words.title]
        for name, words in comparison.file.variants.items()
        if name in comparison.variants
    ]
    return table("Variants", ["name", "what it is"], rows, left=2) if rows else None


def _failures(variant: str, summary: Summary) -> RenderableType | None:
    found = load_failures(summary)
    return stack(Text(f"{variant}:", style="bold"), found) if found is not None else None
