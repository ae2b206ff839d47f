"""Run one resolved scenario in all its replications."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from htpsim.experiments.runner import Progress, Task, run_tasks
from htpsim.results.log import RunLog
from htpsim.results.run import RunResult
from htpsim.results.summary import Summary
from htpsim.scenario import ResolvedScenario, load


@dataclass(frozen=True, slots=True)
class Single:
    """One scenario's replications."""

    resolved: ResolvedScenario
    summaries: list[Summary]
    """one a replication"""
    log: RunLog
    """of replication 0"""

    @property
    def result(self) -> RunResult:
        """Replication 0, for frames and plots."""
        return RunResult(self.log)


def run_one(
    path_or_name: str | os.PathLike[str],
    *,
    variant: str | None = None,
    case: str | None = None,
    options: Sequence[str] = (),
    set_values: Sequence[str] = (),
    check: bool = False,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Single:
    """Run one scenario, variant and case in as many replications as it asks for.

    Raises
    ------
    ScenarioError
        When the file or a name is wrong; one line a problem.
    """
    resolved = load(path_or_name, set_values=set_values).resolve(variant, case, options)
    scenario = resolved.scenario
    tasks = [
        Task((scenario.name,), scenario, r, keep_log=r == 0, check=check) for r in range(scenario.run.replications)
    ]
    outcomes = run_tasks(tasks, workers, progress)
    log = outcomes[0].log
    assert log is not None
    return Single(resolved, [outcome.summary for outcome in outcomes], log)
