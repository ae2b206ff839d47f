"""Where the runs of a sweep are done: here, on processes of this machine, or on a Dask cluster."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

from htpsim.errors import HtpsimError, ScenarioError
from htpsim.experiments.change import HEADLINES
from htpsim.experiments.runner import Task, run_task, unordered
from htpsim.experiments.sweep.axes import Point
from htpsim.experiments.sweep.plan import Run, SweepPlan
from htpsim.experiments.sweep.store import Figure, Found
from htpsim.results.summary import Summary

Batch = Sequence[tuple[Run, Point]]
"""Runs, each with the values of its point."""


def do_batch(plan: SweepPlan, batch: Batch, alike: int) -> list[Found]:
    """Simulate several runs one after the other, of so many in this process.

    Raises
    ------
    HtpsimError
        When a rule broke, or the simulation itself failed.
    """
    return [_do(plan, run, point, alike) for run, point in batch]


def _do(plan: SweepPlan, run: Run, point: Point, alike: int) -> Found:
    began = time.perf_counter()
    try:
        scenario = plan.resolve(point).scenario
    except ScenarioError as error:  # each value is good, but not beside the others: that is a result, too
        return Found(run, (), "; ".join(error.problems), time.perf_counter() - began)
    summary = run_task(Task((f"point {run.point}",), scenario, run.replication), alike).summary
    return Found(run, figures(summary, plan.metrics), absent(summary), time.perf_counter() - began)


def absent(summary: Summary) -> str:
    """Say who did not start and why, or "": figures of those that did are no answer for all.

    Most of them look the better the fewer there are to share the device.
    """
    return "; ".join(f"{name} did not start: {reason}" for name, reason in summary.failed.items())


def figures(summary: Summary, metrics: Sequence[str]) -> tuple[Figure, ...]:
    """Return figures of a summary by their paths; one that this run does not have says so."""
    found = []
    for path in metrics:
        try:
            metric = HEADLINES[path][1](summary) if path in HEADLINES else summary.metric(path)
        except HtpsimError as error:
            found.append(Figure(None, 0, str(error)))
        else:
            value = round(metric.value, 6) if isinstance(metric.value, float) else metric.value
            found.append(Figure(value, metric.n, metric.why))
    return tuple(found)


def on_processes(plan: SweepPlan, batches: Sequence[Batch], workers: int) -> Iterator[list[Found]]:
    """Yield what batches came to, as they end."""
    alike = sum(map(len, batches)) // max(1, workers)
    if workers <= 1:
        yield from (do_batch(plan, batch, alike) for batch in batches)
        return
    yield from unordered(do_batch, [(plan, batch, alike) for batch in batches], workers)


def on_cluster(plan: SweepPlan, batches: Sequence[Batch], address: str) -> Iterator[list[Found]]:
    """Yield what batches came to on a Dask cluster, as they end; one whose worker dies is done again by another.

    Raises
    ------
    HtpsimError
        When dask.distributed is not installed, nobody answers at the address, or a run failed.
    """
    try:
        distributed: Any = import_module("dask.distributed")
    except ImportError:
        raise HtpsimError("--cluster: needs dask.distributed, install it with: pip install 'htpsim[cluster]'") from None
    try:
        client = distributed.Client(address, timeout="5s", set_as_default=False)
    except (OSError, ValueError) as error:
        raise HtpsimError(f"--cluster: got no answer from {address} ({error}), expected a Dask scheduler") from error
    with client, client.as_current():
        alike = sum(map(len, batches)) // max(1, len(client.nthreads()))
        futures = [client.submit(do_batch, plan, batch, alike, pure=False, retries=3) for batch in batches]
        try:
            for _, result in distributed.as_completed(futures, with_results=True):
                yield result
        finally:
            client.cancel(futures)
