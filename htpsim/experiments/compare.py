"""Compare the variants of a scenario file: the same draws, the same seeds, side by side."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from htpsim.errors import ScenarioError, unknown_name
from htpsim.experiments.runner import Outcome, Progress, Task, run_tasks
from htpsim.experiments.sign_grid import SignGrid, grid_tasks, read_grid
from htpsim.results.log import RunLog
from htpsim.results.summary import Summary
from htpsim.scenario import ResolvedScenario, ScenarioFile, load

BASE = "base"
"""What a file without variants, or without cases, calls its only one."""


@dataclass(slots=True)
class Comparison:
    """What a comparison found; `summaries[case][variant]` holds one summary a replication."""

    file: ScenarioFile
    cases: dict[str, str]
    """name -> title, in the order of the file"""
    variants: dict[str, str]
    """name -> title, in the order of the file; the first is what the others are compared with"""
    resolved: dict[tuple[str, str], ResolvedScenario]
    """by (case, variant)"""
    summaries: dict[str, dict[str, list[Summary]]] = field(default_factory=dict)
    logs: dict[tuple[str, str], RunLog] = field(default_factory=dict)
    """log of replication 0, by (case, variant)"""
    grid: SignGrid | None = None
    """which assumption would change which sign; None where the file names no assumptions"""

    @property
    def baseline(self) -> str:
        """Name of the variant that the others are compared with."""
        return next(iter(self.variants))


def _chosen(kind: str, available: dict[str, str], wanted: Sequence[str] | None) -> dict[str, str]:
    """Return the wanted ones of what a file offers, in the file's order; all by default."""
    for name in wanted or ():
        if name not in available:
            raise ScenarioError(unknown_name(kind, name, available))
    return {name: title for name, title in available.items() if not wanted or name in wanted} or {BASE: ""}


def _resolve(file: ScenarioFile, case: str, variant: str, options: Sequence[str] = ()) -> ResolvedScenario:
    return file.resolve(None if variant == BASE else variant, None if case == BASE else case, options)


def compare(
    path_or_name: str | os.PathLike[str],
    *,
    set_values: Sequence[str] = (),
    variants: Sequence[str] | None = None,
    cases: Sequence[str] | None = None,
    grid: bool = True,
    keep_logs: bool = True,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Run every variant of a scenario file in every case and replication, and the grid of its assumptions.

    Parameters
    ----------
    path_or_name
        A scenario file, or the name of a shipped one.
    set_values
        Assignments with the last word, such as ``"run.duration=60s"``.
    variants, cases
        Names to keep; all by default. The first variant is what the others are compared with.
    grid
        Whether to ask which assumption would change the sign of a difference, in shorter runs.
    keep_logs
        Whether to keep the log of replication 0 of every variant, for records and plots.
    workers
        Processes to use; the results do not depend on it.
    progress
        Told of every finished run.

    Raises
    ------
    ScenarioError
        When the file or a name is wrong; one line a problem.
    """
    file = load(path_or_name, set_values=set_values)
    comparison = Comparison(
        file,
        _chosen("case", {name: v.title for name, v in file.cases.items()}, cases),
        _chosen("variant", {name: v.title for name, v in file.variants.items()}, variants),
        {},
    )
    tasks = []
    for case in comparison.cases:
        for variant in comparison.variants:
            resolved = _resolve(file, case, variant)
            comparison.resolved[case, variant] = resolved
            tasks += [
                Task((case, variant), resolved.scenario, r, keep_log=keep_logs and r == 0)
                for r in range(resolved.scenario.run.replications)
            ]
    questions: list[Task] = []
    if grid and file.assumptions and len(comparison.variants) > 1:
        questions = grid_tasks(
            lambda variant, options: _resolve(file, next(iter(comparison.cases)), variant, options).scenario,
            list(comparison.variants),
            [f"{name}.{option}" for name, a in file.assumptions.items() for option in a.options],
        )
    outcomes = run_tasks(tasks + questions, workers, progress)
    _collect(comparison, outcomes[: len(tasks)])
    if questions:
        comparison.grid = read_grid(questions, outcomes[len(tasks) :])
    return comparison


def _collect(comparison: Comparison, outcomes: Sequence[Outcome]) -> None:
    """Sort the outcomes of the full runs."""
    for outcome in outcomes:
        case, variant = outcome.key
        comparison.summaries.setdefault(case, {}).setdefault(variant, []).append(outcome.summary)
        if outcome.log is not None:
            comparison.logs[case, variant] = outcome.log
