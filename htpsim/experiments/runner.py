"""Run replications of scenarios, on several processes where there are several, with the same results either way."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from htpsim.results.log import RunLog
from htpsim.results.run import RunResult
from htpsim.results.summary import Summary
from htpsim.sim import simulate
from htpsim.spec import Scenario

Progress = Callable[[int, int, str], None]
"""Called with (runs done, runs in all, what was done last)."""


@dataclass(frozen=True, slots=True)
class Task:
    """One replication to run; `key` names it in the results."""

    key: tuple[str, ...]
    scenario: Scenario
    replication: int
    keep_log: bool = False
    check: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a task came to."""

    key: tuple[str, ...]
    replication: int
    summary: Summary
    log: RunLog | None


def run_task(task: Task) -> Outcome:
    """Run one replication and summarise it."""
    log = simulate(task.scenario, task.replication, check=task.check)
    return Outcome(task.key, task.replication, RunResult(log).summary(), log if task.keep_log else None)


def run_tasks(tasks: Sequence[Task], workers: int | None = None, progress: Progress | None = None) -> list[Outcome]:
    """Run every task and return the outcomes in the order of the tasks.

    Parameters
    ----------
    tasks : sequence of Task
        What to run.
    workers : int, optional
        Processes to use; by default one a core, and never more than there are tasks.
    progress : callable, optional
        Told of every finished run.

    Examples
    --------
    >>> run_tasks([])
    []
    """
    workers = min(workers or os.cpu_count() or 1, len(tasks))
    outcomes = []
    for done, outcome in enumerate(_outcomes(tasks, workers), start=1):
        outcomes.append(outcome)
        if progress:
            progress(done, len(tasks), " ".join(outcome.key))
    return outcomes


def _outcomes(tasks: Sequence[Task], workers: int) -> Iterator[Outcome]:
    """Yield outcomes in the order of the tasks, as they come."""
    if workers <= 1:
        yield from map(run_task, tasks)
        return
    from joblib import Parallel, delayed

    # One thread a worker in the numeric libraries: the processes are the parallelism.
    parallel = Parallel(n_jobs=workers, return_as="generator", inner_max_num_threads=1, backend="loky")
    yield from parallel(delayed(run_task)(task) for task in tasks)
