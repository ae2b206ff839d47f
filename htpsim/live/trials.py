"""Trials: run scenarios for real, again and again, predict each from instances alone, and score the prediction.

In every round each scenario runs once, in an order that turns from round to round, and right before it, and before the
next of its kind, one instance alone: a machine changes its speed by some per cent within minutes, and alone or together
must meet the same machine. Round r of a scenario is its replication r: the engines are asked for the very same draws.
What is predicted rests on what was seen alone before and after, and on nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from htpsim.experiments.engine import simulate
from htpsim.experiments.score import Score, score
from htpsim.experiments.trace import trace_of
from htpsim.invariants import Report, check_trace
from htpsim.live.engine import run_live
from htpsim.live.solo import Solo, alone, calibrated, exercise, seen_alone
from htpsim.live.work import Bench
from htpsim.results.log import RunLog
from htpsim.results.metric import Metric, order_statistic
from htpsim.results.replications import Estimate, estimate
from htpsim.results.run import RunResult
from htpsim.spec import Scenario

POOLED: Final = {"ttft": (50, 95, 99), "itl": (50, 95, 99)}
"""Latencies, and the percentiles of all rounds together."""
RANKED: Final = ("tokens_per_s", "ttft.p50", "ttft.mean", "itl.p50", "itl.mean", "itl.p99")
"""Figures by which variants are ranked."""

Told = Callable[[str], None]
"""Told what is being run."""


@dataclass(slots=True)
class Trial:
    """One scenario: what its rounds measured, and what was predicted for them."""

    name: str
    scenario: Scenario
    live: list[RunLog] = field(default_factory=list)
    alone: list[Solo] = field(default_factory=list)
    """what was seen of one instance alone around each round"""
    predicted: list[RunLog] = field(default_factory=list)
    scores: list[Score] = field(default_factory=list)
    level: list[Score] = field(default_factory=list)
    """the same where every round of every scenario is predicted from all that was seen alone: for comparing scenarios,
    which then differ by nothing but themselves"""
    reports: list[Report] = field(default_factory=list)
    """of the rules, for each round"""
    resident_bytes: list[int] = field(default_factory=list)
    weights_bytes: list[int] = field(default_factory=list)

    def figures(self, name: str, *, level: bool = False) -> tuple[list[float], list[float]]:
        """Return a figure as measured and as predicted, for the rounds that have both."""
        rows = [row for each in (self.level if level else self.scores) for row in each.rows if row.name == name]
        return [float(row.measured.value or 0) for row in rows], [float(row.simulated.value or 0) for row in rows]

    def names(self) -> list[str]:
        """Return the figures that some round has."""
        return list(dict.fromkeys(row.name for each in self.scores for row in each.rows))

    def errors(self, name: str) -> list[float]:
        """Return by how much the prediction was off in each round, as a part of what was measured."""
        return [simulated / measured - 1 for measured, simulated in zip(*self.figures(name), strict=True) if measured]

    def error(self, name: str) -> Estimate:
        """Return the error over rounds, with half of its 95 % interval."""
        errors = self.errors(name)
        return estimate([Metric(error, 1, "share") for error in errors])

    def pooled_error(self, measure: str, percent: int) -> float | None:
        """Return the error of a percentile of all rounds together; None where there is none."""
        found = []
        for logs in (self.live, self.predicted):
            values = sorted(v for log in logs for v in RunResult(log).samples(measure)["value_ns"].tolist())
            found.append(order_statistic(values, percent) if values else 0)  # type: ignore[arg-type]
        measured, simulated = found
        return simulated / measured - 1 if measured else None

    def share_points(self) -> float:
        """Return the largest error of an instance's share of device time in any round, in points of a hundred."""
        worst = 0.0
        for name in self.names():
            if name.startswith("share."):
                measured, simulated = self.figures(name)
                worst = max(worst, *(100 * abs(s - m) for m, s in zip(measured, simulated, strict=True)))
        return worst

    def copies(self) -> tuple[dict[str, int], dict[str, int]]:
        """Return how many copies of each context there were, and were predicted, in the first round."""
        rows = [row for row in self.scores[0].rows if row.name.startswith("copies.")]
        names = [row.name.removeprefix("copies.") for row in rows]
        measured = dict(zip(names, (int(row.measured.value or 0) for row in rows), strict=True))
        simulated = dict(zip(names, (int(row.simulated.value or 0) for row in rows), strict=True))
        return measured, simulated

    def copies_exact(self) -> bool:
        """Tell whether every round had the copies, of the bytes, that were predicted."""
        exact = [row for each in self.scores for row in each.rows if row.name.startswith(("copies.", "memory."))]
        return all(row.measured.value == row.simulated.value for row in exact)


@dataclass(frozen=True, slots=True)
class Ranking:
    """Two variants and one figure: which is larger, as predicted and as measured."""

    first: str
    second: str
    figure: str
    predicted: Estimate
    """second - first, over the rounds"""
    measured: tuple[float, ...]

    @property
    def tie(self) -> bool:
        """Whether the predicted difference does not exceed the half of its 95 % interval."""
        mean, half = self.predicted.mean, self.predicted.half_width
        return mean is None or half is None or abs(mean) <= half

    @property
    def right(self) -> int:
        """In how many rounds the measured difference has the predicted sign."""
        mean = self.predicted.mean or 0.0
        return sum(difference * mean > 0 for difference in self.measured)


@dataclass(slots=True)
class Trials:
    """Everything that was run and predicted."""

    trials: dict[str, Trial]
    solo: dict[tuple[object, ...], Solo]
    """by kind: cores and models; of all rounds together"""

    def rankings(self, names: Sequence[str]) -> list[Ranking]:
        """Return how every two of some scenarios compare, by every figure that both have in every round."""
        found = []
        for at, first in enumerate(names):
            for second in names[at + 1 :]:
                for figure in RANKED:
                    one, two = (self.trials[name].figures(figure, level=True) for name in (first, second))
                    rounds = len(self.trials[first].scores)
                    if {len(one[0]), len(two[0])} != {rounds}:
                        continue
                    predicted = [Metric(b - a, 1, "") for a, b in zip(one[1], two[1], strict=True)]
                    measured = tuple(b - a for a, b in zip(one[0], two[0], strict=True))
                    found.append(Ranking(first, second, figure, estimate(predicted), measured))
        return found

    def errors(self, figures: Sequence[str]) -> list[float]:
        """Return the errors of some figures, over all scenarios and rounds, without their signs."""
        return [abs(error) for trial in self.trials.values() for name in figures for error in trial.errors(name)]


def kind_of(scenario: Scenario) -> tuple[object, ...]:
    """Return what a measurement of one instance alone depends on: how many cores there are, and the models.

    >>> kind_of(Scenario())
    (1, ())
    """
    models = tuple(dict.fromkeys((i.vit, i.llm) for i in scenario.instances))
    return scenario.device.cores, models


def run_trials(
    scenarios: Mapping[str, Scenario], bench: Bench, *, rounds: int, solo_ns: int, told: Told | None = None
) -> Trials:
    """Run every scenario in every round, predict it, and score the prediction.

    Parameters
    ----------
    scenarios
        By name; each with the time it is to run for.
    bench
        What the graphs really do.
    rounds
        How many repeats; at least two, for an interval.
    solo_ns : int [ns]
        How long an instance runs alone before each scenario.
    told
        Told what is being run.

    Returns
    -------
    Trials
        One for each scenario.
    """
    prepared = {name: bench.prepare(scenario) for name, scenario in scenarios.items()}
    found = Trials({name: Trial(name, scenario) for name, scenario in prepared.items()}, {})
    paths, names = exercise(), list(prepared)
    waiting: dict[tuple[object, ...], Solo] = {}
    """of each kind, what the latest round rests on: it wants what comes after, too"""

    def look(scenario: Scenario, number: int) -> Solo:
        _tell(told, f"round {number + 1} of {rounds}: one instance of {scenario.name} alone")
        kind, seen = kind_of(scenario), Solo()
        for one in alone(scenario, solo_ns):
            seen.add(seen_alone(run_live(one, bench, number).log))
        for rests_on in (found.solo.setdefault(kind, Solo()), waiting.pop(kind, None)):
            if rests_on is not None:
                rests_on.add(seen)
        seen.add(paths)
        waiting[kind] = seen
        return seen

    for number in range(rounds):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            trial = found.trials[name]
            trial.alone.append(look(trial.scenario, number))
            _tell(told, f"round {number + 1} of {rounds}: {name}")
            ran = run_live(trial.scenario, bench, number)
            trial.live.append(ran.log)
            trial.reports.append(check_trace(trace_of(ran.log)))
            trial.resident_bytes.append(ran.resident_bytes)
            trial.weights_bytes.append(ran.weights_bytes)
    for scenario in {kind_of(each): each for each in prepared.values()}.values():
        look(scenario, rounds - 1)
    for seen in found.solo.values():
        seen.add(paths)
    for trial in found.trials.values():
        _predict(trial, found.solo[kind_of(trial.scenario)])
    return found


def _predict(trial: Trial, whole: Solo) -> None:
    """Predict every round, and score it."""
    level = calibrated(trial.scenario, whole)
    for log, solo in zip(trial.live, trial.alone, strict=True):
        measured = RunResult(log)
        simulated = simulate(calibrated(trial.scenario, solo), log.replication)
        trial.predicted.append(simulated)
        trial.scores.append(score(measured, RunResult(simulated)))
        trial.level.append(score(measured, RunResult(simulate(level, log.replication))))


def _tell(told: Told | None, text: str) -> None:
    if told is not None:
        told(text)
