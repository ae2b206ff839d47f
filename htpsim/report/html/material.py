"""What a report is made of, whether it comes from a comparison, from one scenario, or from their run directory."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from htpsim.errors import FormatError, HtpsimError
from htpsim.experiments.compare import BASE, Comparison
from htpsim.experiments.opened import open_run
from htpsim.experiments.precision import Reached
from htpsim.experiments.sign_grid import Difference, SignGrid
from htpsim.experiments.single import Single
from htpsim.report.pages import comparison_dict, single_dict
from htpsim.results.provenance import PROGRAM, provenance
from htpsim.results.read import field_of, read_json, read_json_list, summary_of_dict
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
    precision: str = ""
    """how narrow the intervals came to be, where that was asked"""

    @property
    def first(self) -> str:
        """Name of the variant that the others are compared with."""
        return next(iter(self.variants))


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
    if made.get("program") != PROGRAM:
        raise FormatError(f"{folder / PROVENANCE}: got no 'program' of {PROGRAM}, expected a run directory of it")
    if (folder / "replications.json").is_file():
        path, replications = folder / "scenario.json", folder / "replications.json"
        tree = read_json(path)
        warnings = field_of(path, tree, "warnings", list)
        summaries = read_json_list(replications)
        return _alone(summaries, open_run(folder), _sources(path, tree), warnings, made, str(replications))
    path = folder / "summary.json"
    tree = read_json(path)
    keys = _keys(path, tree)
    first = folder / "runs" / "{}.{}".format(*keys[0]) / "scenario.json"
    sources = _sources(first, read_json(first))
    bare = _compared(tree, {}, sources, made, str(path))
    return replace(bare, runs={(c, v): open_run(folder / "runs" / f"{c}.{v}") for c, v in keys})


def _keys(path: Path, tree: Mapping[str, Any]) -> list[Key]:
    """Return case and variant of every run of a comparison, once its parts agree on them."""
    cases, titles = field_of(path, tree, "cases", dict), field_of(path, tree, "case_titles", dict)
    variants = field_of(path, tree, "variants", dict)
    if not variants or list(cases) != list(titles) or not cases:
        raise FormatError(f"{path}: got cases and variants that do not agree, expected those of htpsim compare --out")
    for case in cases:
        if list(field_of(path, cases, case, dict)) != list(variants):
            raise FormatError(f"{path}: {case}: got other variants than {', '.join(variants)}, expected those")
        for variant, runs in cases[case].items():
            if not _whole(runs):
                raise FormatError(f"{path}: {case}: {variant}: got no summaries, expected one a replication")
    return [(case, variant) for case in cases for variant in variants]


def _whole(runs: object) -> bool:
    return isinstance(runs, list) and bool(runs)


def _sources(path: Path, tree: Mapping[str, Any]) -> list[dict[str, str]]:
    found = field_of(path, tree, "sources", list)
    return [{key: field_of(path, one, key, str) for key in ("key", "value", "mark", "source")} for one in found]


def _compared(
    tree: Mapping[str, Any], runs: dict[Key, RunResult], sources: list[dict[str, str]], made: dict[str, Any], where: str
) -> Material:
    """Return the material of a comparison from its JSON form: what is shown is what the JSON says."""
    variants, titles = field_of(where, tree, "variants", dict), field_of(where, tree, "case_titles", dict)
    bare = Material(
        title=field_of(where, tree, "title", str),
        question=field_of(where, tree, "question", str),
        variants={name: {key: field_of(where, words, key, str) for key in ("title", "text")}
                  for name, words in variants.items()},
        cases={case: title or ("" if case == BASE else case) for case, title in titles.items()},
        options=tuple(field_of(where, tree, "options", list)),
        summaries={},
        grid=None if tree.get("grid") is None else _grid(field_of(where, tree, "grid", dict), where),
        option_titles=field_of(where, tree, "option_titles", dict),
        runs=runs,
        sources=sources,
        warnings=field_of(where, tree, "warnings", list),
        provenance=made,
        precision=_precision(tree, where),
    )  # fmt: skip
    summaries = {
        case: {
            variant: [summary_of_dict(one, f"{where}: {case}: {variant}") for one in of] for variant, of in v.items()
        }
        for case, v in field_of(where, tree, "cases", dict).items()
    }
    return replace(bare, summaries=summaries)


def _precision(tree: Mapping[str, Any], where: str) -> str:
    if tree.get("precision") is None:
        return ""
    found = field_of(where, tree, "precision", dict)
    widest = None if found.get("widest") is None else field_of(where, found, "widest", float)
    return str(
        Reached(
            field_of(where, found, "target", float), widest, field_of(where, found, "figure", str),
            field_of(where, found, "replications", int),
        )
    )  # fmt: skip


def _alone(
    replications: Sequence[Mapping[str, Any]], run: RunResult, sources: list[dict[str, str]], warnings: list[str],
    made: dict[str, Any], where: str,
) -> Material:  # fmt: skip
    """Return the material of one scenario: a comparison with a single variant."""
    if not replications:
        raise FormatError(f"{where}: got no summaries, expected one a replication")
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


def _grid(tree: Mapping[str, Any], where: str) -> SignGrid:
    rows = field_of(where, tree, "differences", list)
    for row in rows:
        for key, kind in (("option", str), ("variant", str), ("metric", str), ("shares", list)):
            field_of(where, row, key, kind)
    return SignGrid(
        options=list(dict.fromkeys(row["option"] for row in rows)),
        variants=list(dict.fromkeys(row["variant"] for row in rows)),
        first=field_of(where, tree, "first", str),
        duration_ns=field_of(where, tree, "duration_ns", int),
        replications=field_of(where, tree, "replications", int),
        differences={(r["option"], r["variant"], r["metric"]): Difference(tuple(r["shares"])) for r in rows},
    )
