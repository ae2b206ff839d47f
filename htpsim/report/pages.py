"""What the commands print: tables put together for one run, one comparison, one list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from htpsim.experiments.compare import BASE, Comparison
from htpsim.experiments.precision import Reached
from htpsim.experiments.single import Single
from htpsim.report.cells import stack, table
from htpsim.report.decision import capability_matrix, decision_table
from htpsim.report.text import assumption_table, assumptions, load_failures, run_tables
from htpsim.report.verdict import changes_dict, grid_dict, short_answer, sign_tables
from htpsim.results.summary import Summary
from htpsim.scenario import ScenarioFile, Variant
from htpsim.spec import Scenario


def single_page(single: Single, *, whole: bool = False) -> RenderableType:
    """Return the tables of one scenario; of several replications the first, then how they spread.

    `whole` adds every assumption in force, which is long; without it, one line says how many there are.
    """
    spread = None
    if len(single.summaries) > 1:
        title = f"Over all {len(single.summaries)} replications"
        spread = decision_table({single.resolved.scenario.name: single.summaries}, title=title)
    return stack(
        run_tables(single.summaries[0]),
        spread,
        None if single.reached is None else Text(f"Precision: {single.reached}"),
        *_warnings(single.resolved.warnings),
        _assumed(single.resolved.scenario, whole),
        _which(single),
    )


def _which(single: Single) -> RenderableType | None:
    """Say what of the file was run, and what else it offers."""
    file = single.file
    if file is None or not (file.variants or file.cases):
        return None
    ran = [f"{kind} {name}" for kind, name in (("variant", single.variant), ("case", single.case)) if name is not None]
    ran += [f"option {option}" for option in single.options]
    said = f"This was {', '.join(ran)}." if ran else "This was the file as it stands, without any of its variants."
    for kind, offered, own in (("variant", file.variants, single.variant), ("case", file.cases, single.case)):
        others = [name for name in offered if name != own]
        if others:
            said += f" Other {kind}s (--{kind}): {', '.join(others)}." if own else f" --{kind}: {', '.join(others)}."
    return Text(said)


def comparison_page(comparison: Comparison, *, whole: bool = False) -> RenderableType:
    """Return a decision table a case, the capability matrix, the grid of assumptions, and the short answer.

    The short answer comes last: it is what a terminal shows when everything has been printed. `whole` adds every
    assumption in force.
    """
    parts: list[RenderableType | None] = [Text(comparison.file.title, style="bold")]
    if comparison.file.question:
        parts.append(Text(comparison.file.question))
    if comparison.options:
        parts.append(Text(f"throughout under {', '.join(comparison.options)}"))
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
    elif not comparison.file.assumptions:
        parts.append(Text("The file names no assumptions, so none was varied.", style="dim"))
    resolved = comparison.resolved.values()
    parts += _warnings(warning for one in resolved for warning in one.warnings)
    parts.append(_assumed(next(iter(resolved)).scenario, whole))
    parts += [short_answer(comparison), *_verdict(comparison)]
    if comparison.reached is not None:
        parts.append(Text(f"Precision: {comparison.reached}"))
    if len(comparison.variants) < 2:
        parts.append(Text("There was one variant, so nothing to compare it with."))
    return stack(*parts)


def _verdict(comparison: Comparison) -> list[RenderableType]:
    """Say of every variant what it gains and what it costs, and on which open questions that rests."""
    if len(comparison.variants) < 2:
        return []
    from htpsim.report.html.answer import NO_BREAK, cards_of
    from htpsim.report.html.wording import Wording

    words = {name: {"title": title, "text": ""} for name, title in comparison.variants.items()}
    lines: list[RenderableType] = [Text("Verdict", style="bold")]
    for case, variants in comparison.summaries.items():
        if case != BASE:
            lines.append(Text(f"{comparison.cases[case] or case}:"))
        for card in cards_of(variants, words, Wording("en")):
            lines.append(Text(f"- {card.sentence.replace(NO_BREAK, ' ')}"))
        for name, runs in variants.items():
            missing = list(dict.fromkeys(client for run in runs for client in run.failed))
            if missing:
                who = f"{', '.join(missing)} did not start with {comparison.variants[name] or name}"
                lines.append(Text(f"! {who}: its figures are of fewer, and no measure of the others", style="yellow"))
    return [*lines, _rests_on(comparison)]


def _rests_on(comparison: Comparison) -> Text:
    """Say which open questions would turn an answer round."""
    grid = comparison.grid
    if grid is None:
        return Text("What this rests on was not asked; htpsim sensitivity asks.")
    titles = option_titles(comparison.file)
    turning = dict.fromkeys(titles.get(flip.option, flip.option) for flip in grid.flips() if flip.reverses)
    if not turning:
        return Text(f"None of the {len(grid.options) - 1} other answers to open questions turns a sign round.")
    return Text(f"It rests on these not being so: {'; '.join(turning)}.")


def _warnings(texts: Iterable[str]) -> list[RenderableType | None]:
    return [Text(f"! {text}", style="yellow") for text in dict.fromkeys(texts)]


def option_titles(file: ScenarioFile) -> dict[str, str]:
    """Return the words for every option of a file's assumptions, by "NAME.OPTION"."""
    return {
        f"{name}.{option}": words.title
        for name, assumption in file.assumptions.items()
        for option, words in assumption.options.items()
    }


_FOLDERS = {
    "": "Shipped scenarios",
    "field": "Field reports: what others published, rebuilt",
    "workloads": "Other workloads: each small enough to check by hand",
}


def scenarios_page(files: Mapping[str, ScenarioFile], faults: Mapping[str, str]) -> RenderableType:
    """Return the shipped scenarios with the question each answers, a table a folder; then those that cannot be read."""
    rows: dict[str, list[list[str]]] = {}
    for name, file in files.items():
        folder = name.rpartition("/")[0]
        rows.setdefault(folder, []).append([name, file.question if folder else _told(file)])
    said = "htpsim run NAME simulates one and names its variants; htpsim compare NAME sets them side by side"
    return stack(
        *(
            table(_FOLDERS.get(folder, folder), ["name", "the question it answers"], inner, left=2)
            for folder, inner in rows.items()
        ),
        Text(said, style="dim"),
        *_warnings(f"{name} cannot be read: {fault}" for name, fault in faults.items()),
    )


def _told(file: ScenarioFile) -> str:
    lines = [file.question or file.title]
    lines += [f"variants: {', '.join(file.variants)}"] if file.variants else []
    lines += [f"cases: {', '.join(file.cases)}"] if file.cases else []
    return "\n".join(lines)


def scenarios_dict(files: Mapping[str, ScenarioFile], faults: Mapping[str, str]) -> dict[str, Any]:
    """Return the shipped scenarios in JSON form."""
    return {
        name: {
            "title": file.title,
            "question": file.question,
            "variants": {variant: words.title for variant, words in file.variants.items()},
            "cases": {case: words.title for case, words in file.cases.items()},
            "assumptions": sorted(option_titles(file)),
        }
        for name, file in files.items()
    } | {name: {"fault": fault} for name, fault in faults.items()}


def single_dict(single: Single) -> dict[str, Any]:
    """Return one scenario's runs in JSON form: what was run, and a summary a replication."""
    return {
        "scenario": single.resolved.scenario.name,
        "title": single.resolved.scenario.title,
        "variant": single.variant,
        "case": single.case,
        "options": list(single.options),
        "warnings": list(single.resolved.warnings),
        "precision": _reached(single.reached),
        "replications": _summaries(single.summaries),
    }


def comparison_dict(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison in JSON form: every summary, the differences from the first variant, and the grid."""
    return {
        "title": comparison.file.title,
        "question": comparison.file.question,
        "first": comparison.baseline,
        "variants": {name: _words(comparison.file.variants.get(name)) for name in comparison.variants},
        "case_titles": dict(comparison.cases),
        "option_titles": option_titles(comparison.file),
        "options": list(comparison.options),
        "warnings": list(dict.fromkeys(w for one in comparison.resolved.values() for w in one.warnings)),
        "cases": {
            case: {variant: _summaries(runs) for variant, runs in variants.items()}
            for case, variants in comparison.summaries.items()
        },
        "precision": _reached(comparison.reached),
        "changes": changes_dict(comparison),
        "grid": grid_dict(comparison.grid) if comparison.grid is not None else None,
    }


def _reached(reached: Reached | None) -> dict[str, Any] | None:
    return None if reached is None else {**asdict(reached), "enough": reached.enough}


def _words(variant: Variant | None) -> dict[str, str]:
    return {"title": variant.title, "text": variant.text} if variant else {"title": "", "text": ""}


def _summaries(runs: Sequence[Summary]) -> list[dict[str, Any]]:
    return [summary.to_dict() for summary in runs]


def _assumed(scenario: Scenario, whole: bool) -> RenderableType:
    """Return the assumptions in force, or how many there are."""
    if whole:
        return assumption_table(scenario)
    count = sum(1 for _ in assumptions(scenario))
    return Text(f"{count} assumed parameters are in force; --out DIR lists them in its report.txt", style="dim")


def _legend(comparison: Comparison) -> RenderableType | None:
    """Return what each variant means."""
    rows = []
    for name in comparison.variants:
        words = comparison.file.variants.get(name)
        if words is not None:
            rows.append([name, f"{words.title}: {words.text}" if words.text else words.title])
    return table("Variants", ["name", "what it is"], rows, left=2) if rows else None


def _failures(variant: str, summary: Summary) -> RenderableType | None:
    found = load_failures(summary)
    return stack(Text(f"{variant}:", style="bold"), found) if found is not None else None
