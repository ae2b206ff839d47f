"""Run replications of scenarios, on several processes where there are several, with the same results either way."""

from __future__ import annotations

import os
import signal
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from htpsim.errors import HtpsimError, IllegalTransition, InvariantError
from htpsim.experiments.engine import simulate
from htpsim.experiments.trace import trace_of
from htpsim.invariants import check_trace
from htpsim.results.log import RunLog
from htpsim.results.run import RunResult
from htpsim.results.summary import Summary
from htpsim.spec import Scenario

Result = TypeVar("Result")
Progress = Callable[[float, int, str], None]
"""Called with (runs done, a run under way counting as the part of it that is over; runs in all; what is being run)."""

ORPHAN_CHECK_S: Final = 1.0
"""How often [s] a worker process looks whether the one that started it still lives."""


@dataclass(frozen=True, slots=True)
class Task:
    """One replication to run; `key` names it in the results."""

    key: tuple[str, ...]
    scenario: Scenario
    replication: int
    keep_log: bool = False
    check: bool = False
    """validate every state machine after every action, and then hold the trace to every rule"""
    replay: str = ""
    """command that runs this replication again; "" where the scenario came from no file"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a task came to."""

    key: tuple[str, ...]
    replication: int
    summary: Summary
    log: RunLog | None


def run_task(task: Task, alike: int = 1, progress: Callable[[float], None] | None = None) -> Outcome:
    """Run one replication, of so many alike in this process, and summarise it.

    Raises
    ------
    InvariantError
        When a rule broke, or the simulation itself failed; the last line is the command that repeats it.
    """
    try:
        log = simulate(task.scenario, task.replication, check=task.check, alike=alike, progress=progress)
        if task.check:
            check_trace(trace_of(log, task.replay)).require()
        return Outcome(task.key, task.replication, RunResult(log).summary(), log if task.keep_log else None)
    except (InvariantError, IllegalTransition) as error:
        raise type(error)(_with_replay(str(error), task)) from error
    except (HtpsimError, MemoryError):
        raise
    except Exception as error:  # whatever it is, the reader is owed the command that shows it again
        raise InvariantError(_with_replay(_failure(error), task)) from error


def _failure(error: Exception) -> str:
    """Say what failed and where, in one line: a fault of htpsim, or of a policy of the user's own."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"the simulation failed: {type(error).__name__}: {error} ({Path(last.filename).name}, line {last.lineno})"


def _with_replay(text: str, task: Task) -> str:
    run = task.scenario.run
    again = task.replay or f"simulate(scenario, replication={task.replication}) with seed {run.seed}"
    return text if again in text else f"{text}\nrun it again with: {again}"


def run_tasks(tasks: Sequence[Task], workers: int | None = None, progress: Progress | None = None) -> list[Outcome]:
    """Run every task and return the outcomes in the order of the tasks.

    Parameters
    ----------
    tasks : sequence of Task
        What to run.
    workers : int, optional
        Processes to use; by default one a core, and never more than there are tasks.
    progress : callable, optional
        Told how far the runs are.

    Raises
    ------
    HtpsimError
        What went wrong in a run, or that a process was killed.

    Examples
    --------
    >>> run_tasks([])
    []
    """
    workers = min(workers or os.cpu_count() or 1, len(tasks))
    if workers <= 1:
        return list(_one_by_one(tasks, progress))
    outcomes = []
    for done, outcome in enumerate(_on_processes(tasks, workers), start=1):
        outcomes.append(outcome)
        if progress:
            progress(done, len(tasks), " ".join(outcome.key))
    return outcomes


def _one_by_one(tasks: Sequence[Task], progress: Progress | None) -> Iterator[Outcome]:
    """Yield outcomes, telling also how far a run is."""
    for done, task in enumerate(tasks):
        yield run_task(task, len(tasks), _part(progress, done, len(tasks), " ".join(task.key)) if progress else None)


def _part(progress: Progress, done: int, total: int, what: str) -> Callable[[float], None]:
    return lambda share: progress(done + share, total, what)


def _on_processes(tasks: Sequence[Task], workers: int) -> Iterator[Outcome]:
    """Yield outcomes in the order of the tasks, as they come."""
    yield from _spread(run_task, [(task, len(tasks) // workers) for task in tasks], workers, "generator")


def unordered(call: Callable[..., Result], arguments: Sequence[tuple[Any, ...]], workers: int) -> Iterator[Result]:
    """Call a function on several processes, once for each tuple of arguments, and yield results as they come.

    Raises
    ------
    HtpsimError
        What went wrong in a call, or that a process was killed.
    """
    yield from _spread(call, arguments, workers, "generator_unordered")


def _spread(
    call: Callable[..., Result], arguments: Sequence[tuple[Any, ...]], workers: int, order: str
) -> Iterator[Result]:
    from concurrent.futures.process import BrokenProcessPool

    from joblib import Parallel, delayed, parallel_config

    # One thread a worker in the numeric libraries: the processes are the parallelism.
    with parallel_config("loky", inner_max_num_threads=1, initializer=_end_with, initargs=(os.getpid(),)):
        parallel = Parallel(n_jobs=workers, return_as=order)
    try:
        with _deaf_to_interrupts():
            results = parallel(delayed(_attempt)(call, *given) for given in arguments)
        for result in results:
            if isinstance(result, HtpsimError):
                with warnings.catch_warnings():  # that the rest is called off is no news to who reads the error
                    warnings.simplefilter("ignore", UserWarning)
                    results.close()
                raise result
            yield result
    except BrokenProcessPool as error:
        raise HtpsimError(
            f"a worker process was killed, most likely for want of memory; got {workers} workers, "
            "expected as many as memory allows: try --workers 1, or a shorter duration"
        ) from error


def _attempt(call: Callable[..., Result], *given: Any) -> Result | HtpsimError:
    """Make a call in a worker process; an error waits for its turn, so that always the same one of several is told."""
    try:
        return call(*given)
    except HtpsimError as error:
        return error


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Start processes that no interrupt reaches: this one hears the next, ends them, and says so once."""
    if threading.current_thread() is not threading.main_thread():  # only the main one may set what a signal does
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _end_with(parent: int) -> None:
    """Let this worker process end when its parent is gone: else one that was killed leaves it hanging for good."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(ORPHAN_CHECK_S)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
