"""Compare the variants of a scenario file: the same draws, the same seeds, side by side."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from htpsim.errors import ScenarioError, unknown_name
from htpsim.experiments.change import HEADLINES, Change, change, refuse_unpaired
from htpsim.experiments.precision import Precision, Reached, changes_of, extend, figures_of, judge
from htpsim.experiments.replay import replay_command
from htpsim.experiments.runner import Outcome, Progress, Task, run_tasks
from htpsim.experiments.sign_grid import SignGrid, grid_tasks, read_grid
from htpsim.experiments.tidy import html_table, tidy_frame
from htpsim.results.log import RunLog
from htpsim.results.metric import Metric
from htpsim.results.replications import Estimate, estimate
from htpsim.results.summary import Summary
from htpsim.scenario import ResolvedScenario, ScenarioFile, load

if TYPE_CHECKING:
    import pandas as pd

BASE = "base"
"""What a file without variants, or without cases, calls its only one."""


@dataclass(slots=True)
class Comparison:
    """What a comparison found; `summaries[case][variant]` holds one summary a replication."""

    file: ScenarioFile
    cases: dict[str, str]
    """name -> title, in the order of the file"""
    variants: dict[str, str]
    """name -> title; the first is what the others are compared with"""
    resolved: dict[tuple[str, str], ResolvedScenario]
    """by (case, variant)"""
    options: tuple[str, ...] = ()
    """options of assumptions that were in force throughout"""
    summaries: dict[str, dict[str, list[Summary]]] = field(default_factory=dict)
    logs: dict[tuple[str, str], RunLog] = field(default_factory=dict)
    """log of replication 0, by (case, variant)"""
    grid: SignGrid | None = None
    """which assumption would change which sign; None where the file names no assumptions"""
    reached: Reached | None = None
    """how narrow the intervals are, where that was asked"""

    @property
    def baseline(self) -> str:
        """Name of the variant that the others are compared with."""
        return next(iter(self.variants))

    def changes(self, case: str) -> dict[str, dict[str, Change]]:
        """Return by how much every other variant differs from the first, by variant and path of the figure."""
        first = self.summaries[case][self.baseline]
        return {
            variant: {path: change(first, runs, pick) for path, (_, pick) in HEADLINES.items()}
            for variant, runs in self.summaries[case].items()
            if variant != self.baseline
        }

    def to_dataframe(self) -> pd.DataFrame:
        """Return a row a figure: case, variant, replication, metric, value, unit, n, why.

        Times are nanoseconds, sizes bytes; a missing value is NaN, and `why` says why.
        """
        runs = (
            ((case, variant, summary.replication), summary)
            for case, variants in self.summaries.items()
            for variant, summaries in variants.items()
            for summary in summaries
        )
        return tidy_frame(runs, ["case", "variant", "replication"])

    def __repr__(self) -> str:
        return f"<Comparison {self.file.title!r}: variants {', '.join(self.variants)}; cases {', '.join(self.cases)}>"

    def _repr_html_(self) -> str:
        head = ["", *(words for words, _ in HEADLINES.values())]
        tables = []
        for case, variants in self.summaries.items():
            rows = []
            for variant, runs in variants.items():
                found = [estimate([pick(run) for run in runs]) for _, pick in HEADLINES.values()]
                rows.append([variant, *(str(Metric(one.mean, one.n, one.unit)) for one in found)])
            tables.append(html_table(f"{self.file.title} {self.cases[case]}".strip(), head, rows))
        return "".join(tables)


def _chosen(kind: str, available: dict[str, str], wanted: Sequence[str] | None) -> dict[str, str]:
    """Return the wanted ones of what a file offers, in the order in which they were asked for; all by default."""
    faults = [unknown_name(kind, name, available) if available else _none(kind, name)
              for name in wanted or () if name not in available]  # fmt: skip
    if faults:
        raise ScenarioError(*dict.fromkeys(faults))
    return {name: available[name] for name in wanted or available} or {BASE: ""}


def _none(kind: str, name: str) -> str:
    return f"{kind}: got '{name}', expected none: the file has none"


def _names(file: ScenarioFile, case: str, variant: str) -> tuple[str | None, str | None]:
    """Return variant and case as the file knows them: None for the one that it does not have."""
    return variant if variant in file.variants else None, case if case in file.cases else None


def _resolve(file: ScenarioFile, case: str, variant: str, options: Sequence[str]) -> ResolvedScenario:
    return file.resolve(*_names(file, case, variant), options)


def compare(  # noqa: PLR0913 - all but the first have a name and a default
    path_or_name: str | os.PathLike[str],
    *,
    set_values: Sequence[str] = (),
    variants: Sequence[str] | None = None,
    cases: Sequence[str] | None = None,
    options: Sequence[str] = (),
    grid: bool = True,
    precision: Precision | None = None,
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
        Names to keep, in this order; all by default. The first variant is what the others are compared with.
    options
        Options of assumptions, "NAME.OPTION", that hold in every run.
    grid
        Whether to ask which assumption would change the sign of a difference, in shorter runs.
    precision
        Add replications until the interval of every difference, or of every figure where there is nothing to compare
        with, is as narrow.
    keep_logs
        Whether to keep the log of replication 0 of every variant, for records and plots.
    workers
        Processes to use; the results do not depend on it.
    progress
        Told how far the runs are.

    Raises
    ------
    ScenarioError, InvariantError
        When the file or a name is wrong, one line a problem; when a rule broke, with the command that repeats it.

    Examples
    --------
    >>> short = ["run.duration=1s", "run.warmup=0s", "run.replications=1"]
    >>> found = compare("vit_migration", variants=["legacy", "genie"], cases=["equal"], set_values=short, grid=False)
    >>> found.baseline, found.to_dataframe().columns.tolist()
    ('legacy', ['case', 'variant', 'replication', 'metric', 'value', 'unit', 'n', 'why'])
    """
    file = load(path_or_name, set_values=set_values)
    comparison = Comparison(
        file,
        _chosen("case", {name: v.title for name, v in file.cases.items()}, cases),
        _chosen("variant", {name: v.title for name, v in file.variants.items()}, variants),
        {},
        tuple(options),
    )
    for case in comparison.cases:
        found = {variant: _resolve(file, case, variant, options) for variant in comparison.variants}
        refuse_unpaired({variant: resolved.scenario for variant, resolved in found.items()})
        comparison.resolved |= {(case, variant): resolved for variant, resolved in found.items()}
    tasks = _tasks(comparison, name := os.fspath(path_or_name), set_values, keep_logs)
    questions = _questions(comparison, name, set_values) if grid else []
    outcomes = run_tasks(tasks + questions, workers, progress)
    _collect(comparison, outcomes[: len(tasks)])
    if questions:
        comparison.grid = read_grid(questions, outcomes[len(tasks) :])
    if precision is not None:
        _sharpen(comparison, precision, name, set_values, lambda more: run_tasks(more, workers, progress))
    return comparison


def _sharpen(
    comparison: Comparison,
    precision: Precision,
    name: str,
    set_values: Sequence[str],
    run: Callable[[list[Task]], list[Outcome]],
) -> None:
    """Add replications until the intervals are narrow enough."""

    def more(replications: range) -> None:
        # A case may ask for more replications than another; those that it has are not run again.
        tasks = _tasks(comparison, name, set_values, False, replications)
        had = {(case, v): len(runs) for case, variants in comparison.summaries.items() for v, runs in variants.items()}
        _collect(comparison, run([task for task in tasks if task.replication >= had[task.key[0], task.key[1]]]))

    def look(count: int) -> Reached:
        figures: list[tuple[str, Estimate]] = []
        for variants in comparison.summaries.values():
            first = variants[comparison.baseline]
            for variant, runs in variants.items():
                if variant != comparison.baseline:
                    figures += changes_of(first, runs, variant)
                elif len(variants) == 1:
                    figures += figures_of(runs, variant)
        return judge(figures, precision.target, count)

    have = min(len(runs) for variants in comparison.summaries.values() for runs in variants.values())
    comparison.reached = extend(have, precision, more, look)


def _tasks(
    comparison: Comparison, name: str, set_values: Sequence[str], keep_logs: bool, replications: range | None = None
) -> list[Task]:
    """Return the full runs, each with the command that repeats it; by default in the replications of the file."""
    tasks = []
    for (case, variant), resolved in comparison.resolved.items():
        names = _names(comparison.file, case, variant)
        for r in replications or range(resolved.scenario.run.replications):
            task = Task((case, variant), resolved.scenario, r, keep_log=keep_logs and r == 0)
            tasks.append(_repeatable(task, name, names, comparison.options, set_values))
    return tasks


def _questions(comparison: Comparison, name: str, set_values: Sequence[str]) -> list[Task]:
    """Return the shorter runs of the first case under every option that is not in force anyway."""
    file, case = comparison.file, next(iter(comparison.cases))
    settled = {option.partition(".")[0] for option in comparison.options}
    offered = [f"{a}.{o}" for a, words in file.assumptions.items() if a not in settled for o in words.options]
    if not offered or len(comparison.variants) < 2:
        return []

    def options(option: str) -> list[str]:
        return [*comparison.options, option] if option in offered else [*comparison.options]

    tasks = grid_tasks(
        lambda variant, option: _resolve(file, case, variant, options(option)).scenario,
        list(comparison.variants),
        offered,
    )
    return [
        _repeatable(task, name, _names(file, case, variant), options(option), set_values)
        for task in tasks
        for option, variant in [task.key]
    ]


def _repeatable(
    task: Task, file: str, names: tuple[str | None, str | None], options: Sequence[str], set_values: Sequence[str]
) -> Task:
    """Return the task with the command that repeats it."""
    again = replay_command(
        task.scenario, file, replication=task.replication, variant=names[0], case=names[1],
        options=options, set_values=set_values,
    )  # fmt: skip
    return replace(task, replay=again)


def _collect(comparison: Comparison, outcomes: Sequence[Outcome]) -> None:
    """Sort the outcomes of the full runs."""
    for outcome in outcomes:
        case, variant = outcome.key
        comparison.summaries.setdefault(case, {}).setdefault(variant, []).append(outcome.summary)
        if outcome.log is not None:
            comparison.logs[case, variant] = outcome.log
