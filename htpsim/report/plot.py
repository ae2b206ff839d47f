"""Plots by one call, for notebooks: ``htpsim.plot.gantt(result)`` shows itself, and ``.save("gantt.png")`` keeps it.

Each function takes what `htpsim.run`, `compare`, `sensitivity` or `tune` returned, makes a figure of its own and calls
the drawing function of the same name (`htpsim.report.plots`, `plots_answers`, `gantt`), which take an Axes instead.
Nothing here touches pyplot, so a plot looks the same in every notebook and leaves no setting behind.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from htpsim.errors import HtpsimError, unknown_name
from htpsim.experiments.change import HEADLINES
from htpsim.experiments.compare import Comparison
from htpsim.experiments.sign_grid import METRICS
from htpsim.experiments.single import Single
from htpsim.report import plots, plots_answers
from htpsim.report.gantt import WINDOW_NS
from htpsim.report.gantt import gantt as draw_gantt
from htpsim.report.picture import Picture
from htpsim.report.sweep import words_of
from htpsim.results.delays import blame_matrix
from htpsim.results.run import RunResult
from htpsim.units import NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from htpsim.experiments.sensitivity import Sensitivity
    from htpsim.experiments.tune import Candidate, Tuned
    from htpsim.results.metric import IntArray

Run: TypeAlias = RunResult | Single
_MS, _PLAIN = ("ms", NS_PER_MS), ("", 1)


def gantt(
    of: Run | Comparison,
    *,
    variant: str | None = None,
    case: str | None = None,
    start_ns: int | None = None,
    window_ns: int = WINDOW_NS,
) -> Picture:
    """Draw who was on which core, and what each thread waited for.

    Parameters
    ----------
    of
        A run, or a comparison; of several replications the first.
    variant, case
        Which of a comparison, by default its first.
    start_ns
        Where to begin; by default where a ViT blocks a decode longest.
    window_ns
        Length of the window [ns].

    Examples
    --------
    >>> import htpsim
    >>> made = htpsim.run("surprise_long_vit", variant="fifo", set_values=["run.duration=1s"])
    >>> htpsim.plot.gantt(made).ax.get_xlabel()
    'time [s]...'
    """
    name, run = _one(of, variant, case)
    picture = Picture()
    with picture.style():
        draw_gantt(picture.ax, run.executes, run.slices, start_ns=start_ns, window_ns=window_ns,
                   gang=plots.gangs(run), until_ns=run.log.end_ns)  # fmt: skip
        if name:
            picture.ax.set_title(f"{name}\n{picture.ax.get_title(loc='left')}".strip())
    return picture


def policy_timeline(
    of: Run | Comparison,
    *,
    variant: str | None = None,
    case: str | None = None,
    start_ns: int | None = None,
    window_ns: int = NS_PER_S,
) -> Picture:
    """Draw whom the guard let in when; parameters as of `gantt`."""
    _, run = _one(of, variant, case)
    picture = Picture()
    with picture.style():
        plots_answers.policy_timeline(
            picture.ax, run.executes, start_ns=start_ns, window_ns=window_ns, until_ns=run.log.end_ns
        )
    return picture


def memory(of: Run | Comparison, *, case: str | None = None) -> Picture:
    """Draw memory over time: of a run every ledger with its limit, of a comparison device DRAM by variant."""
    picture = Picture()
    with picture.style():
        if isinstance(of, Comparison):
            plots.memory_of_variants(picture.ax, {name: run.memory for name, run in _each(of, case).items()})
        else:
            run = _result(of)
            plots.memory_over_time(picture.ax, run.memory, plots.limits(run)).set_title("Memory over time")
    return picture


def ecdf(of: Run | Comparison, measure: str = "itl", *, case: str | None = None, tail: bool | None = None) -> Picture:
    """Draw the distribution of a latency: of a run by client, of a comparison by variant.

    Parameters
    ----------
    of
        A run or a comparison; of several replications the first.
    measure
        "ttft", "itl", "tpot", "vit", "prefill", "job" or "worst_gap".
    case
        Which of a comparison, by default its first.
    tail
        Draw the share beyond a value instead of up to it; by default for "itl" alone.

    Raises
    ------
    HtpsimError
        When there is no such measure.
    """
    series = (
        {name: _values(run, measure) for name, run in _each(of, case).items()}
        if isinstance(of, Comparison)
        else plots.by_client(_result(of), measure)
    )
    beyond = measure == "itl" if tail is None else tail
    label = "ViT latency" if measure == "vit" else measure.replace("_", " ").upper()
    picture = Picture()
    with picture.style():
        plots.ecdf(picture.ax, series, label, tail=beyond, log=beyond).set_title(plots.TITLES.get(measure, label))
    return picture


def shares(of: Run | Comparison, *, variant: str | None = None, case: str | None = None) -> Picture:
    """Draw each client's share of device time beside its weight and its water-filled share."""
    _, run = _one(of, variant, case)
    picture = Picture()
    with picture.style():
        plots.shares(picture.ax, run.summary()).set_title("Who got the device")
    return picture


def blame(of: Run | Comparison, *, variant: str | None = None, case: str | None = None) -> Picture:
    """Draw who was delayed by whom, in percent of the measured time."""
    _, run = _one(of, variant, case)
    picture = Picture()
    with picture.style():
        plots_answers.blame_heat(picture.ax, blame_matrix(run.blame), run.tables.length_ns)
    return picture


def tornado(found: Sensitivity, metric: str = METRICS[0], variant: str | None = None) -> Picture:
    """Draw by how much each assumption moves one answer.

    Parameters
    ----------
    found
        From `htpsim.sensitivity`.
    metric
        "overall.tokens_per_s", "overall.itl.p99" or "overall.ttft.mean".
    variant
        Which difference from the first variant; by default that of the second.

    Raises
    ------
    HtpsimError
        When there is no such metric or variant.
    """
    name = found.variants[0] if variant is None else variant
    for kind, given, known in (("metric", metric, METRICS), ("variant", name, found.variants)):
        if given not in known:
            raise HtpsimError(unknown_name(kind, given, known))
    picture = Picture()
    with picture.style():
        plots_answers.tornado(picture.ax, found.of(metric, name))
        of = f"{HEADLINES[metric][0]}{f' of {name}' if name else ''}"
        picture.ax.set_title(f"{of}: {picture.ax.get_title(loc='left').replace('What', 'what')}")
    return picture


def pareto(tuned: Tuned, bound: int = 0) -> Picture:
    """Draw the points that tuning ran in full, by the goal and one of the bounds.

    Parameters
    ----------
    tuned
        From `htpsim.tune`.
    bound
        Which of the bounds, counted from 0, is on the horizontal axis.
    """
    if not -len(tuned.bounds) <= bound < len(tuned.bounds):
        raise HtpsimError(f"bound: got {bound}, expected a number below {len(tuned.bounds)}: so many were asked for")
    x, y, limit = tuned.bounds[bound], tuned.goal, tuned.bounds[bound].limit
    (x_unit, x_scale), (y_unit, y_scale) = (_scale(one.path) for one in (x, y))

    def choice(one: Candidate) -> plots_answers.Choice | None:
        a, b = one.kept[bound], one.goal
        if a.mean is None or b.mean is None:
            return None
        halves = ((a.half_width or 0) / x_scale, (b.half_width or 0) / y_scale)
        return plots_answers.Choice(" ".join(one.point), a.mean / x_scale, b.mean / y_scale, *halves,
                                    front=one.front, keeps=one.keeps)  # fmt: skip

    picture = Picture()
    with picture.style():
        choices = [found for found in map(choice, tuned.candidates) if found is not None]
        labels = (
            f"{words_of(d.path)} [{unit}]" if unit else words_of(d.path) for d, unit in ((x, x_unit), (y, y_unit))
        )
        edge = None if limit is None else limit / x_scale
        plots_answers.pareto(picture.ax, choices, *labels, bound=edge).set_title("What a choice costs")
    return picture


def _scale(path: str) -> tuple[str, int]:
    """Return unit and divisor in which a figure is drawn."""
    from htpsim.results.metric import unit_of

    return _MS if unit_of(path) == "ns" else _PLAIN


def _result(of: Run) -> RunResult:
    return of.result if isinstance(of, Single) else of


def _values(run: RunResult, measure: str) -> IntArray:
    values: IntArray = np.asarray(run.samples(measure)["value_ns"].to_numpy())
    return values


def _case(of: Comparison, case: str | None) -> str:
    if case is not None and case not in of.cases:
        raise HtpsimError(unknown_name("case", case, of.cases))
    return next(iter(of.cases)) if case is None else case


def _log(of: Comparison, case: str, variant: str) -> RunResult:
    if (case, variant) not in of.logs:
        raise HtpsimError("plot: got a comparison without logs, expected one made with keep_logs=True")
    return RunResult(of.logs[case, variant])


def _each(of: Comparison, case: str | None) -> Mapping[str, RunResult]:
    chosen = _case(of, case)
    return {title or name: _log(of, chosen, name) for name, title in of.variants.items()}


def _one(of: Run | Comparison, variant: str | None, case: str | None) -> tuple[str, RunResult]:
    """Return the run that is meant, and the title of its variant."""
    if isinstance(of, Comparison):
        name = of.baseline if variant is None else variant
        if name not in of.variants:
            raise HtpsimError(unknown_name("variant", name, of.variants))
        return of.variants[name] or name, _log(of, _case(of, case), name)
    if variant is not None or case is not None:
        raise HtpsimError("plot: got a variant or case of one run, expected none: it is of the one it was run with")
    return "", _result(of)
