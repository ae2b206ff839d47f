"""Run a sweep to its end, going on where an earlier attempt was stopped, and hand over its table."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from htpsim.errors import ScenarioError
from htpsim.experiments.change import HEADLINES
from htpsim.experiments.runner import Progress
from htpsim.experiments.sweep.axes import Point, parse_axis, points_of
from htpsim.experiments.sweep.plan import SweepPlan, all_runs
from htpsim.experiments.sweep.store import Found, Store
from htpsim.experiments.sweep.work import Batch, on_cluster, on_processes
from htpsim.experiments.tidy import html_table
from htpsim.formats.writers.table import write_frame
from htpsim.results.metric import Metric, unit_of
from htpsim.results.paths import metric_fault
from htpsim.results.replications import Estimate, estimate
from htpsim.scenario import load

if TYPE_CHECKING:
    import pandas as pd

BATCH_MAX: Final = 16
"""Runs handed to a worker at once, at most: few enough that a kill loses little."""
ROUNDS: Final = 8
"""Batches a worker gets over a sweep, at least, so that all end at about the same time."""
METRICS: Final = tuple(HEADLINES)
"""Figures that are kept by default."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """The table of a sweep: a row a point and replication."""

    axes: tuple[str, ...]
    points: tuple[Point, ...]
    metrics: tuple[str, ...]
    found: tuple[Found, ...]
    """by point and replication"""
    title: str = ""

    def to_dataframe(self) -> pd.DataFrame:
        """Return a row a point and replication: point, replication, an axis a column, a metric a column, why.

        Times are nanoseconds; a missing figure is missing, and `why` has the reasons. The same sweep gives the same
        table, on however many workers it ran and however often it was interrupted.
        """
        import pandas as pd

        rows = []
        for one in self.found:
            figures = {path: figure.value for path, figure in zip(self.metrics, one.figures, strict=False)}
            whys = [f"{path}: {figure.why}" for path, figure in zip(self.metrics, one.figures, strict=False)
                    if figure.value is None]  # fmt: skip
            whys[:0] = [one.why] if one.why else []
            values = dict(zip(self.axes, self.points[one.run.point], strict=True))
            rows.append({"point": one.run.point, "replication": one.run.replication, **values,
                         **{path: figures.get(path) for path in self.metrics}, "why": "; ".join(whys)})  # fmt: skip
        frame = pd.DataFrame(rows, columns=["point", "replication", *self.axes, *self.metrics, "why"])
        return frame.astype(dict.fromkeys(self.metrics, "float64"))

    def estimates(self) -> dict[int, list[Estimate]]:
        """Return for each point its figures over the replications, in the order of the metrics."""
        by_point: dict[int, list[Found]] = {}
        for one in self.found:
            if one.figures:
                by_point.setdefault(one.run.point, []).append(one)
        return {
            point: [
                estimate([Metric(run.figures[i].value, run.figures[i].n, unit_of(path), run.figures[i].why)
                          for run in runs])
                for i, path in enumerate(self.metrics)
            ]
            for point, runs in by_point.items()
        }  # fmt: skip

    def export(self, path: str | os.PathLike[str]) -> None:
        """Write the table: parquet for a name that ends in .parquet, else CSV. Whole, or not at all.

        Raises
        ------
        HtpsimError
            When parquet is asked for and not installed.
        """
        write_frame(self.to_dataframe(), path)

    def __repr__(self) -> str:
        runs, points = len(self.found), len(self.points)
        return f"<Sweep of {', '.join(self.axes)}: {points:,} points, {runs:,} runs>"

    def _repr_html_(self) -> str:
        head = ["point", *self.axes, *self.metrics]
        rows = [
            [str(point), *self.points[point], *(str(Metric(one.mean, one.n, one.unit)) for one in found)]
            for point, found in self.estimates().items()
        ]
        return html_table(self.title or repr(self), head, rows)


def sweep(  # noqa: PLR0913 - all but the first two have a name and a default
    path_or_name: str | os.PathLike[str],
    vary: Sequence[str],
    *,
    design: str = "grid",
    points: int = 0,
    sample_seed: int = 0,
    variant: str | None = None,
    case: str | None = None,
    options: Sequence[str] = (),
    set_values: Sequence[str] = (),
    replications: int | None = None,
    metrics: Sequence[str] = METRICS,
    out: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    cluster: str | None = None,
    progress: Progress | None = None,
) -> Sweep:
    """Run a scenario at many points.

    Parameters
    ----------
    path_or_name
        A scenario file, or the name of a shipped one.
    vary
        Axes: "KEY=a,b,c", "KEY=low..high" or "KEY=low..high/steps"; a key of the file, or variant, case or option.
    design, points, sample_seed
        "grid", "list", "lhs" or "sobol"; of a sample, how many points, and its seed.
    variant, case, options, set_values
        As in `run`, where no axis says otherwise.
    replications
        Of each point; by default as many as the file says.
    metrics
        Figures to keep, as paths in a summary.
    out
        The store. One that is there and unfinished is gone on with; without it, nothing is left behind.
    workers
        Processes to use; the results do not depend on it.
    cluster
        Address of a Dask scheduler to use instead, such as "tcp://127.0.0.1:8786".
    progress
        Told how far it is.

    Raises
    ------
    ScenarioError
        When the file, an axis or a value is wrong; one line a problem.
    HtpsimError
        When the store is of another sweep, or a run failed.

    Examples
    --------
    >>> table = sweep("four_vlms", ["guard.slots=1,2"], set_values=["run.duration=2s"], replications=1, workers=1)
    >>> table
    <Sweep of guard.slots: 2 points, 2 runs>
    """
    file = load(path_or_name, set_values=set_values)
    axes = tuple(parse_axis(text) for text in vary)
    replications = replications or file.resolve(variant, case, options).scenario.run.replications
    plan = SweepPlan(
        file=file, axes=axes, points=tuple(points_of(axes, design, points, sample_seed)),
        replications=replications, metrics=tuple(metrics), variant=variant, case=case, options=tuple(options),
    )  # fmt: skip
    plan.refuse_unfit()
    _refuse_unknown(metrics)
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(out) if out is not None else Path(folder) / "sweep")
        store.begin(plan.described(), plan.points)
        _finish(plan, store, workers or os.cpu_count() or 1, cluster, progress)
        return _table(store)


def _refuse_unknown(metrics: Sequence[str]) -> None:
    """Complain of paths that cannot be in a summary, before anything is run."""
    wrong = [fault for path in metrics if (fault := metric_fault(path, METRICS))]
    if wrong or not metrics:
        raise ScenarioError(*(wrong or ["metric: got none, expected at least one"]))


def _finish(plan: SweepPlan, store: Store, workers: int, cluster: str | None, progress: Progress | None) -> None:
    """Do the runs that are not in the store."""
    done = store.done()
    total = len(plan.points) * plan.replications
    left = [run for run in all_runs(len(plan.points), plan.replications) if run not in done]
    size = max(1, min(BATCH_MAX, len(left) // (workers * ROUNDS)))
    pairs = [(run, plan.points[run.point]) for run in left]
    batches: list[Batch] = [pairs[i : i + size] for i in range(0, len(pairs), size)]
    if not batches:
        return
    sent = plan.without_points()
    if cluster is not None:
        results = on_cluster(sent, batches, cluster)
    else:
        results = on_processes(sent, batches, min(workers, len(batches)))
    count = len(done)
    for batch in results:
        store.add(batch)
        count += len(batch)
        if progress:
            progress(count, total, f"point {batch[-1].run.point}")


def open_sweep(path: str | os.PathLike[str]) -> Sweep:
    """Return what a store holds so far.

    Raises
    ------
    HtpsimError
        When it is no store of a sweep.
    """
    return _table(Store(Path(path)))


def _table(store: Store) -> Sweep:
    description: dict[str, Any] = store.description()
    return Sweep(tuple(description["axes"]), tuple(store.points()), tuple(description["metrics"]),
                 tuple(store.found()), str(description["scenario"]))  # fmt: skip
