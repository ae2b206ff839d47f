"""The choice that keeps its promises at least cost: points that keep stated bounds, and the front between them.

Points that no schedule could make good (`htpsim.experiments.bounds`) are left out first. The others are looked at in
short runs: all of them where there are few, else those that differential evolution (SciPy, seeded) picks. What comes
out best of that is run in full, and only these figures, with their intervals, are reported.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from htpsim.errors import ScenarioError
from htpsim.experiments.bounds import bound
from htpsim.experiments.demand import Demand, parse_bound, parse_goal
from htpsim.experiments.runner import Progress
from htpsim.experiments.sign_grid import shortened_ns
from htpsim.experiments.sweep.axes import Axis, Point, parse_axis, points_of
from htpsim.experiments.sweep.plan import Run, SweepPlan
from htpsim.experiments.sweep.store import Figure, Found
from htpsim.experiments.sweep.work import on_processes
from htpsim.experiments.tidy import html_table
from htpsim.results.metric import Metric, unit_of
from htpsim.results.replications import Estimate, estimate
from htpsim.scenario import load
from htpsim.scenario.quantities import write

if TYPE_CHECKING:
    import pandas as pd

POINTS: Final = 200
"""Points that are looked at, unless told otherwise."""
FINALISTS: Final = 8
"""Points that are run in full."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One point that was run in full."""

    point: Point
    goal: Estimate
    kept: tuple[Estimate, ...]
    """the bounded figures, in the order of the bounds"""
    keeps: bool
    """whether the means keep every bound"""
    clear: bool
    """whether that holds, or fails, for the whole of every interval"""
    front: bool = False
    """whether no other candidate is at least as good in everything and better in something"""


@dataclass(frozen=True, slots=True)
class Tuned:
    """What tuning came to."""

    title: str
    axes: tuple[str, ...]
    goal: Demand
    bounds: tuple[Demand, ...]
    candidates: tuple[Candidate, ...]
    """those that keep the bounds first, the best of them first; then the nearest"""
    points: int
    """how many points there were to choose from; 0 where ranges make it countless"""
    hopeless: int
    """points that no schedule could make good, and the first reason"""
    why_hopeless: str
    looked_at: int

    @property
    def best(self) -> Candidate | None:
        """The point that keeps every bound at the best goal; None where none does."""
        return next((one for one in self.candidates if one.keeps), None)

    @property
    def front(self) -> list[Candidate]:
        """The Pareto front between goal and bounded figures, by goal."""
        return sorted((c for c in self.candidates if c.front), key=lambda c: self.goal.loss(c.goal.mean))

    def to_dataframe(self) -> pd.DataFrame:
        """Return a row a candidate: axes, goal and bounded figures with half-widths, keeps, clear, front."""
        import pandas as pd

        rows = []
        for one in self.candidates:
            row: dict[str, Any] = dict(zip(self.axes, one.point, strict=True))
            for demand, found in zip((self.goal, *self.bounds), (one.goal, *one.kept), strict=True):
                row |= {demand.path: found.mean, f"{demand.path} half-width": found.half_width}
            rows.append({**row, "keeps": one.keeps, "clear": one.clear, "front": one.front})
        return pd.DataFrame(rows)

    def __repr__(self) -> str:
        best = " ".join(self.best.point) if self.best else "none keeps the bounds"
        return f"<Tuned {self.title!r}: {', '.join(self.axes)}; best: {best}>"

    def _repr_html_(self) -> str:
        head = [", ".join(self.axes), self.goal.path, *(demand.path for demand in self.bounds), "keeps"]
        rows = [
            [
                " ".join(c.point),
                *(str(Metric(e.mean, e.n, e.unit)) for e in (c.goal, *c.kept)),
                "yes" if c.keeps else "",
            ]
            for c in self.candidates
        ]
        return html_table(self.title, head, rows)


@dataclass(slots=True)
class _Search:
    """Looks at points in short runs, each once."""

    plan: SweepPlan
    bounds: Sequence[Demand]
    goal: Demand
    workers: int
    budget: int
    progress: Progress | None
    seen: dict[Point, tuple[float, float]] = field(default_factory=dict)
    """(by how much the bounds are missed, loss of the goal), by point"""
    hopeless: dict[Point, str] = field(default_factory=dict)

    def look(self, points: Sequence[Point]) -> None:
        """Look at points that were not seen yet, as far as the budget goes."""
        fresh = [point for point in dict.fromkeys(points) if point not in self.seen and point not in self.hopeless]
        good: list[Point] = []
        for point in fresh:
            why = self._why_hopeless(point)
            if why:
                self.hopeless[point] = why
            elif len(self.seen) + len(good) < self.budget:
                good.append(point)
        batches = [[(Run(i, 0), point)] for i, point in enumerate(good)]
        for done, (found,) in enumerate(on_processes(self.plan, batches, self.workers), start=1):
            values = [figure.value for figure in _judged(found, 1 + len(self.bounds))]
            missed = sum(demand.short_by(value) for demand, value in zip(self.bounds, values[1:], strict=True))
            self.seen[good[found.run.point]] = (missed, self.goal.loss(values[0]))
            if self.progress:
                self.progress(len(self.seen), max(self.budget, len(self.seen)), f"looking, {done} of {len(good)}")

    def _why_hopeless(self, point: Point) -> str:
        """Return which bound no schedule could keep at a point, or ""."""
        try:
            scenario = self.plan.resolve(point).scenario
        except ScenarioError as error:
            return error.problems[0]
        for demand in self.bounds:
            best = bound(scenario, demand.path)
            if best is not None and not demand.kept_by(best) and (demand.less != demand.path.endswith("_per_s")):
                return f"{demand.text}: no schedule gets past {best:,.6g}"
        return ""

    def ranked(self) -> list[Point]:
        """Return the points seen, the best first."""
        return sorted(self.seen, key=lambda point: (self.seen[point], point))

    def evolve(self, axes: Sequence[Axis], seed: int) -> None:
        """Let differential evolution pick points until the budget is spent."""
        from scipy import optimize

        evolution: Any = optimize.differential_evolution  # its stubs know no vectorised objective

        def losses(shares: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
            points = [tuple(a.at(float(x)) for a, x in zip(axes, column, strict=True)) for column in shares.T]
            self.look(points)
            scale = max((abs(loss) for _, loss in self.seen.values() if np.isfinite(loss)), default=1.0) or 1.0
            return np.array([self._penalty(point, scale) for point in points])

        size = max(2, min(15, self.budget // (4 * len(axes))))
        evolution(
            losses, [(0.0, 1.0)] * len(axes), rng=seed, popsize=size, maxiter=1000, polish=False, vectorized=True,
            updating="deferred", init="sobol", tol=0.0, callback=lambda *_, **__: len(self.seen) >= self.budget,
        )  # fmt: skip

    def _penalty(self, point: Point, scale: float) -> float:
        if point not in self.seen:
            return 1e9
        missed, loss = self.seen[point]
        return (1e3 * (1 + missed) if missed else 0.0) + (min(loss / scale, 1e3) if np.isfinite(loss) else 1e3)


def tune(  # noqa: PLR0913 - all but the first three have a name and a default
    path_or_name: str | os.PathLike[str],
    vary: Sequence[str],
    keep: Sequence[str],
    *,
    goal: str = "tokens_per_s",
    points: int = POINTS,
    finalists: int = FINALISTS,
    variant: str | None = None,
    case: str | None = None,
    options: Sequence[str] = (),
    set_values: Sequence[str] = (),
    search_seed: int = 0,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Tuned:
    """Find the points that keep bounds at the best goal.

    Parameters
    ----------
    path_or_name
        A scenario file, or the name of a shipped one.
    vary
        Axes as in `sweep`: weights, priorities, quotas, the parts of a ViT, or any other keys.
    keep
        Bounds, such as "itl.p99 <= 80ms".
    goal
        What to make best: "vit.mean", "min ttft.p95", "max tokens_per_s".
    points, finalists
        Points to look at in short runs, at most; points to run in full.
    variant, case, options, set_values
        As in `run`.
    search_seed
        Of the search, where there are more points than may be looked at.
    workers, progress
        Processes to use, on which the results do not depend; told how far it is.

    Raises
    ------
    ScenarioError
        When the file, an axis, a bound or the goal is wrong; one line a problem.

    Examples
    --------
    >>> found = tune("four_vlms", ["models.vit.split=1,4"], ["itl.p99 <= 1ms"], set_values=["run.duration=2s"])
    >>> found.best is None, found.hopeless, found.looked_at
    (True, 2, 0)
    """
    file = load(path_or_name, set_values=set_values)
    axes, bounds, wanted = tuple(map(parse_axis, vary)), tuple(map(parse_bound, keep)), parse_goal(goal)
    run = file.resolve(variant, case, options).scenario.run
    short = write(shortened_ns(run.duration_ns), "ns")
    quick = load(path_or_name, set_values=[*set_values, f'run.duration="{short}"'])
    grid = _grid(axes)
    plan = SweepPlan(
        file=quick, axes=axes, points=tuple(grid), replications=1, metrics=(wanted.path, *(b.path for b in bounds)),
        variant=variant, case=case, options=tuple(options),
    )  # fmt: skip
    plan.refuse_unfit()
    search = _Search(plan, bounds, wanted, workers or os.cpu_count() or 1, points, progress)
    if 0 < len(grid) <= points:
        search.look(grid)
    else:
        search.evolve(axes, search_seed)
    full = replace(plan, file=file, points=(), replications=run.replications)
    candidates = _finals(full, search, search.ranked()[:finalists])
    return Tuned(
        file.title, tuple(axis.key for axis in axes), wanted, bounds, candidates, len(grid), len(search.hopeless),
        next(iter(search.hopeless.values()), ""), len(search.seen),
    )  # fmt: skip


def _judged(found: Found, count: int) -> Sequence[Figure]:
    """Return the figures of a run; none where somebody did not start: a bound is to be kept by all."""
    return [Figure(None, 0, found.why)] * count if found.why else found.figures


def _grid(axes: Sequence[Axis]) -> list[Point]:
    """Return every point, or none where a range without steps makes them countless."""
    if any(axis.is_range and not axis.steps for axis in axes):
        return []
    return points_of(axes)


def _finals(plan: SweepPlan, search: _Search, points: Sequence[Point]) -> tuple[Candidate, ...]:
    """Run the finalists in full, and say which of them are on the front."""
    batches = [[(Run(i, r), point)] for i, point in enumerate(points) for r in range(plan.replications)]
    values: dict[int, dict[int, Sequence[Metric]]] = {}
    for done, (found,) in enumerate(on_processes(plan, batches, search.workers), start=1):
        read = _judged(found, len(plan.metrics))
        figures = [Metric(f.value, f.n, unit_of(path), f.why) for path, f in zip(plan.metrics, read, strict=True)]
        values.setdefault(found.run.point, {})[found.run.replication] = figures
        if search.progress:
            search.progress(done, len(batches), "the best in full")
    made = [_candidate(points[i], [runs[r] for r in sorted(runs)], search) for i, runs in sorted(values.items())]
    losses = [_losses(one, search) for one in made]
    on_front = [not any(_dominates(other, mine) for other in losses) for mine in losses]
    done_with = [replace(one, front=front) for one, front in zip(made, on_front, strict=True)]
    return tuple(sorted(done_with, key=lambda one: _rank(one, search)))


def _candidate(point: Point, runs: Sequence[Sequence[Metric]], search: _Search) -> Candidate:
    goal, *kept = (estimate(list(column)) for column in zip(*runs, strict=True))
    keeps = all(demand.kept_by(one.mean) for demand, one in zip(search.bounds, kept, strict=True))
    sides = [
        {demand.kept_by(one.mean + side * one.half_width) for side in (-1, 1)}
        for demand, one in zip(search.bounds, kept, strict=True)
        if one.mean is not None and one.half_width is not None
    ]
    clear = all(side == {True} for side in sides) if keeps else any(side == {False} for side in sides)
    return Candidate(point, goal, tuple(kept), keeps, clear)


def _losses(one: Candidate, search: _Search) -> list[float]:
    pairs = zip((search.goal, *search.bounds), (one.goal, *one.kept), strict=True)
    return [demand.loss(found.mean) for demand, found in pairs]


def _dominates(other: Sequence[float], mine: Sequence[float]) -> bool:
    return all(a <= b for a, b in zip(other, mine, strict=True)) and list(other) != list(mine)


def _rank(one: Candidate, search: _Search) -> tuple[float, float, Point]:
    missed = sum(demand.short_by(found.mean) for demand, found in zip(search.bounds, one.kept, strict=True))
    return missed, search.goal.loss(one.goal.mean), one.point
