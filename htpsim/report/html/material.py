"""What a report is made of, whether it comes from a comparison, from one scenario, or from their run directory."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from htpsim.errors import FormatError, HtpsimError
from htpsim.experiments.change import HEADLINES, Change, change
from htpsim.experiments.compare import BASE, Comparison
from htpsim.experiments.opened import open_run
from htpsim.experiments.sign_grid import Difference, SignGrid
from htpsim.experiments.single import Single
from htpsim.report.pages import comparison_dict, single_dict
from htpsim.results.provenance import provenance
from htpsim.results.read import read_json, read_json_list, summary_of_dict
from htpsim.results.run import RunResult
from htpsim.results.summary import Summary
from htpsim.results.write import PROVENANCE

Key = tuple[str, str]
"""Case and variant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What a report is made of."""

    title: str
    question: str
    variants: dict[str, dict[str, str]]
    """name -> title and text, in order; the first is what the others are compared with"""
    cases: dict[str, str]
    """name -> title"""
    options: tuple[str, ...]
    """options of assumptions that were in force throughout"""
    summaries: dict[str, dict[str, list[Summary]]]
    """by case and variant, one a replication"""
    grid: SignGrid | None
    option_titles: dict[str, str]
    runs: dict[Key, RunResult]
    """replication 0 of every variant"""
    sources: list[dict[str, str]]
    """of the first variant's figures: key, value, mark, source"""
    warnings: list[str]
    provenance: dict[str, Any]

    @property
    def first(self) -> str:
        """Name of the variant that the others are compared with."""
        return next(iter(self.variants))

    def changes(self, case: str) -> dict[str, dict[str, Change]]:
        """Return by how much every other variant differs from the first, by variant and path of the figure."""
        runs = self.summaries[case]
        return {
            variant: {path: change(runs[self.first], of, pick) for path, (_, pick) in HEADLINES.items()}
            for variant, of in runs.items()
            if variant != self.first
        }


def from_comparison(comparison: Comparison, command: Sequence[str] = ()) -> Material:
    """Return the material of a comparison that kept its logs.

    Raises
    ------
    HtpsimError
        When the comparison kept no logs.
    """
    if comparison.logs.keys() != comparison.resolved.keys():
        raise HtpsimError("comparison: got no logs to report on, expected compare(..., keep_logs=True)")
    runs = {key: RunResult(log) for key, log in comparison.logs.items()}
    first = next(iter(comparison.resolved.values()))
    made = provenance(command, engine=next(iter(comparison.logs.values())).engine)
    return _compared(comparison_dict(comparison), runs, [asdict(one) for one in first.sources], made, "comparison")


def from_single(single: Single, command: Sequence[str] = ()) -> Material:
    """Return the material of one scenario's run."""
    tree = single_dict(single)
    made = provenance(command, engine=single.log.engine)
    sources = [asdict(one) for one in single.resolved.sources]
    return _alone(tree["replications"], single.result, sources, tree["warnings"], made, "run")


def from_directory(directory: str | os.PathLike[str]) -> Material:
    """Return the material that a run directory holds, of ``htpsim run --out`` or ``htpsim compare --out``.

    Raises
    ------
    HtpsimError
        When it is no run directory, or a file in it is missing or damaged; names file and line.
    """
    folder = Path(directory)
    made = read_json(folder / PROVENANCE)
    if (folder / "replications.json").is_file():
        tree = read_json(folder / "scenario.json")
        summaries = read_json_list(folder / "replications.json")
        return _alone(summaries, open_run(folder), tree["sources"], tree["warnings"], made,
                      str(folder / "replications.json"))  # fmt: skip
    where = folder / "summary.json"
    tree = read_json(where)
    missing = [key for key in ("cases", "variants", "case_titles", "option_titles") if key not in tree]
    if missing:
        raise FormatError(f"{where}: got no '{missing[0]}', expected a summary as htpsim compare --out writes it")
    keys = [(case, variant) for case, variants in tree["cases"].items() for variant in variants]
    runs = {(case, variant): open_run(folder / "runs" / f"{case}.{variant}") for case, variant in keys}
    first = read_json(folder / "runs" / "{}.{}".format(*keys[0]) / "scenario.json")
    return _compared(tree, runs, first["sources"], made, str(where))


def _compared(
    tree: Mapping[str, Any], runs: dict[Key, RunResult], sources: list[dict[str, str]], made: dict[str, Any], where: str
) -> Material:
    """Return the material of a comparison from its JSON form: what is shown is what the JSON says."""
    summaries = {
        case: {
            variant: [summary_of_dict(one, f"{where}: {case}: {variant}") for one in of] for variant, of in v.items()
        }
        for case, v in tree["cases"].items()
    }
    return Material(
        title=tree["title"],
        question=tree["question"],
        variants=tree["variants"],
        cases={case: title or ("" if case == BASE else case) for case, title in tree["case_titles"].items()},
        options=tuple(tree["options"]),
        summaries=summaries,
        grid=None if tree["grid"] is None else _grid(tree["grid"]),
        option_titles=tree["option_titles"],
        runs=runs,
        sources=sources,
        warnings=tree["warnings"],
        provenance=made,
    )


def _alone(
    replications: Sequence[Mapping[str, Any]], run: RunResult, sources: list[dict[str, str]], warnings: list[str],
    made: dict[str, Any], where: str,
) -> Material:  # fmt: skip
    """Return the material of one scenario: a comparison with a single variant."""
    summaries = [summary_of_dict(one, where) for one in replications]
    name = summaries[0].scenario
    return Material(
        title=summaries[0].title or name,
        question="",
        variants={name: {"title": "", "text": ""}},
        cases={BASE: ""},
        options=(),
        summaries={BASE: {name: summaries}},
        grid=None,
        option_titles={},
        runs={(BASE, name): run},
        sources=sources,
        warnings=warnings,
        provenance=made,
    )


def _grid(tree: Mapping[str, Any]) -> SignGrid:
    rows = tree["differences"]
    return SignGrid(
        options=list(dict.fromkeys(row["option"] for row in rows)),
        variants=list(dict.fromkeys(row["variant"] for row in rows)),
        first=tree["first"],
        duration_ns=tree["duration_ns"],
        replications=tree["replications"],
        differences={(r["option"], r["variant"], r["metric"]): Difference(tuple(r["shares"])) for r in rows},
    )
