"""Run one resolved scenario in all its replications."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from htpsim.errors import ScenarioError
from htpsim.experiments.precision import Precision, Reached, extend, figures_of, judge
from htpsim.experiments.replay import replay_command
from htpsim.experiments.runner import Outcome, Progress, Task, run_tasks
from htpsim.experiments.trace import trace_of
from htpsim.invariants import Trace
from htpsim.results.log import RunLog
from htpsim.results.run import RunResult
from htpsim.results.summary import Summary
from htpsim.scenario import ResolvedScenario, ScenarioFile, load, problems, warnings
from htpsim.spec import Scenario

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Single:
    """One scenario's replications."""

    resolved: ResolvedScenario
    summaries: list[Summary]
    """one a replication"""
    log: RunLog
    """of the first replication that was run"""
    file: ScenarioFile | None = None
    """where it came from; None for a scenario made in Python"""
    variant: str | None = None
    case: str | None = None
    options: tuple[str, ...] = ()
    replay: str = ""
    """command that runs the first replication again; "" for a scenario made in Python"""
    reached: Reached | None = None
    """how narrow the intervals are, where that was asked"""
    _results: list[RunResult] = field(default_factory=list, init=False, repr=False, compare=False)
    """of the first replication, once it was asked for: its tables are made once"""

    @property
    def result(self) -> RunResult:
        """The first replication, for frames and plots; the same object each time."""
        if not self._results:
            self._results.append(RunResult(self.log))
        return self._results[0]

    def trace(self) -> Trace:
        """Return the trace of the first replication: what `check_trace` and `explain` look at."""
        return trace_of(self.log, self.replay)

    def to_dataframe(self) -> pd.DataFrame:
        """Return a row a figure: replication, metric, value, unit, n, why.

        Times are nanoseconds, sizes bytes; a missing value is NaN, and `why` says why.
        """
        from htpsim.experiments.tidy import tidy_frame

        return tidy_frame((((s.replication,), s) for s in self.summaries), ["replication"])

    def __repr__(self) -> str:
        count = len(self.summaries)
        return f"<Single {self.resolved.scenario.name!r}: {count} replication{'s' * (count != 1)}>"

    def _repr_html_(self) -> str:
        return self.result._repr_html_()


def run_one(  # noqa: PLR0913 - all but the first have a name and a default
    scenario: str | os.PathLike[str] | Scenario,
    *,
    variant: str | None = None,
    case: str | None = None,
    options: Sequence[str] = (),
    set_values: Sequence[str] = (),
    replication: int | None = None,
    check: bool = False,
    precision: Precision | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Single:
    """Run one scenario, variant and case in as many replications as it asks for.

    Parameters
    ----------
    scenario
        A scenario file, the name of a shipped one, or a specification made in Python.
    variant, case, options, set_values
        Which of those that the file offers, by default the file as it stands; options are "NAME.OPTION". Assignments
        have the last word, such as ``"run.duration=60s"``.
    replication
        Run this one only, counted from 0; it is the same whichever others are run.
    check
        Validate every state machine after every action.
    precision
        Add replications until the interval of every headline figure is as narrow.
    workers, progress
        Processes to use, on which the results do not depend; told how far the runs are.

    Raises
    ------
    ScenarioError, InvariantError
        When the file or a name is wrong, one line a problem; when a rule broke, with the command that repeats it.

    Examples
    --------
    >>> single = run_one("four_vlms", set_values=["run.duration=1s", "run.warmup=0s"], replication=0)
    >>> single
    <Single 'four_vlms': 1 replication>
    >>> frame = single.to_dataframe()
    >>> frame.columns.tolist()
    ['replication', 'metric', 'value', 'unit', 'n', 'why']
    """
    file: ScenarioFile | None = None
    if isinstance(scenario, Scenario):
        resolved = _specified(scenario, variant, case, options, set_values)
    else:
        file = load(scenario, set_values=set_values)
        resolved = file.resolve(variant, case, options)
    spec = resolved.scenario

    def task(r: int) -> Task:
        again = "" if isinstance(scenario, Scenario) else replay_command(
            spec, os.fspath(scenario), replication=r, variant=variant, case=case,
            options=options, set_values=set_values, check=check,
        )  # fmt: skip
        return Task((spec.name,), spec, r, keep_log=r == wanted[0], check=check, replay=again)

    wanted = range(spec.run.replications) if replication is None else [replication]
    outcomes = run_tasks([task(r) for r in wanted], workers, progress)
    log = outcomes[0].log
    assert log is not None
    reached = None
    if precision is not None and replication is None:
        reached = _sharpen(outcomes, precision, lambda more: run_tasks([task(r) for r in more], workers, progress))
    summaries = [outcome.summary for outcome in outcomes]
    return Single(resolved, summaries, log, file, variant, case, tuple(options), task(wanted[0]).replay, reached)


def _sharpen(outcomes: list[Outcome], precision: Precision, run: Callable[[range], list[Outcome]]) -> Reached:
    """Add replications until the headline figures are precise."""

    def look(count: int) -> Reached:
        figures = figures_of([outcome.summary for outcome in outcomes], outcomes[0].key[0])
        return judge(figures, precision.target, count)

    return extend(len(outcomes), precision, lambda more: outcomes.extend(run(more)), look)


def _specified(
    scenario: Scenario, variant: str | None, case: str | None, options: Sequence[str], set_values: Sequence[str]
) -> ResolvedScenario:
    """Return a specification made in Python, once it has passed the checks of one from a file."""
    if variant is not None or case is not None or options or set_values:
        raise ScenarioError(
            "scenario: got a specification with a variant, case, option or value to set, "
            "expected a file with these, or a specification that is complete"
        )
    found = problems(scenario)
    if found:
        raise ScenarioError(*found)
    return ResolvedScenario(scenario, (), tuple(warnings(scenario)))
