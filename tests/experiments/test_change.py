"""Differences between variants: paired by replication, with an interval, and a sign only where there is one."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htpsim.experiments.change import change
from htpsim.experiments.compare import compare
from htpsim.experiments.runner import Outcome, Task
from htpsim.experiments.sign_grid import METRICS, NOISE, UNCHANGED, Difference, Flip, grid_tasks, read_grid
from htpsim.report.cells import to_text
from htpsim.report.verdict import percent, short_answer, sign_tables
from htpsim.results.metric import Metric
from htpsim.results.summary import Summary
from htpsim.spec import Run, Scenario
from tests.cli.support import PAIR


@cache
def some_summary() -> Summary:
    found = compare(PAIR, set_values=["run.duration=200ms"], cases=["equal"], grid=False, workers=1)
    return found.summaries["equal"]["legacy"][0]


def summary(value: float | None) -> Summary:
    """A summary whose tokens/s, ITL p99 and TTFT mean are all `value`."""
    base = some_summary()
    metric = Metric(value, 10, "ns", "" if value is not None else "too few")
    overall = replace(
        base.overall,
        tokens_per_s=metric,
        itl=replace(base.overall.itl, p99=metric),
        ttft=replace(base.overall.ttft, mean=metric),
    )
    return replace(base, overall=overall)


def tokens(one: Summary) -> Metric:
    return one.overall.tokens_per_s


def test_what_replications_have_in_common_cancels() -> None:
    first = [summary(100.0), summary(200.0), summary(400.0)]
    other = [summary(110.0), summary(220.0), summary(440.0)]

    found = change(first, other, tokens)

    assert found.estimate.mean == pytest.approx(0.1)
    assert found.estimate.half_width == pytest.approx(0.0, abs=1e-12)
    assert found.clear
    assert not found.identical


def test_a_difference_is_clear_when_its_interval_leaves_out_zero() -> None:
    clear = change([summary(100.0)] * 3, [summary(110.0), summary(111.0), summary(109.0)], tokens)
    unclear = change([summary(100.0)] * 3, [summary(130.0), summary(90.0), summary(110.0)], tokens)

    # Student's t with 2 degrees of freedom at 97.5 %: 4.3027.
    assert clear.estimate.half_width == pytest.approx(4.3027 * 0.01 / math.sqrt(3), rel=1e-4)
    assert (clear.clear, unclear.clear) == (True, False)


def test_equal_figures_are_told_from_a_difference_that_is_too_small_to_see() -> None:
    assert change([summary(3.0)] * 2, [summary(3.0)] * 2, tokens).identical
    assert not change([summary(3.0)] * 2, [summary(3.0), summary(3.0000001)], tokens).identical


def test_one_replication_and_missing_figures_claim_nothing() -> None:
    assert change([summary(100.0)], [summary(150.0)], tokens).clear is None
    missing = change([summary(100.0), summary(None)], [summary(150.0), summary(3.0)], tokens)
    assert (missing.estimate.mean, missing.clear) == (None, None)
    assert "too few" in missing.estimate.why
    zero = change([summary(0.0)], [summary(1.0)], tokens)
    assert zero.estimate.why == "the first variant has 0"


@given(st.lists(st.floats(-0.5, 2.0).filter(lambda x: abs(x) > 1e-9), min_size=1, max_size=5))
def test_a_sign_is_that_of_every_replication_or_none(shares: list[float]) -> None:
    sign = Difference(tuple(shares)).sign

    agree = all(x > 0 for x in shares) or all(x < 0 for x in shares)
    large = abs(math.fsum(shares) / len(shares)) >= NOISE * (1 + 1e-9)
    assert sign in (-1, 0, 1)
    if sign:
        assert agree
        assert all(x * sign > 0 for x in shares)
    elif agree:
        assert not large


GRID_VALUES = {
    # (option, variant): one figure a replication
    (UNCHANGED, "first"): (100.0, 200.0),
    (UNCHANGED, "up"): (110.0, 230.0),
    (UNCHANGED, "same"): (100.0, 200.0),
    ("turn.round", "first"): (100.0, 200.0),
    ("turn.round", "up"): (90.0, 190.0),
    ("turn.round", "same"): (130.0, 250.0),
    ("leave.be", "first"): (10.0, 20.0),
    ("leave.be", "up"): (12.0, 23.0),
    ("leave.be", "same"): (10.0, 20.0),
}


def test_the_grid_finds_what_turns_round_and_what_comes_about() -> None:
    scenario = Scenario(run=Run(duration_ns=400_000_000_000, replications=5))
    asked: list[tuple[str, str]] = []

    def resolve(variant: str, option: str) -> Scenario:
        asked.append((variant, option))
        return scenario

    tasks = grid_tasks(resolve, ["first", "up", "same"], ["turn.round", "leave.be"])
    outcomes = [
        Outcome(task.key, task.replication, summary(GRID_VALUES[task.key][task.replication]), None)  # type: ignore[index]
        for task in tasks
    ]
    grid = read_grid(tasks, outcomes)
    flips = {(flip.option, flip.variant): flip for flip in grid.flips()}

    assert {(option, variant) for variant, option in asked} == set(GRID_VALUES)
    assert grid.first == "first"
    assert grid.variants == ["up", "same"]
    assert (grid.duration_ns, grid.replications) == (100_000_000_000, 2)
    assert set(flips) == {("turn.round", "up"), ("turn.round", "same")}
    assert (flips["turn.round", "up"].reverses, flips["turn.round", "same"].reverses) == (True, False)
    assert len(grid.flips()) == 2 * len(METRICS)
    text = to_text(sign_tables(grid, {"turn.round": "when it turns"}))
    assert "tokens/s of up: +12 % as configured, but when it turns: -7.5 %" in " ".join(text.split())
    assert "-7.5 % !!" in text
    assert "+28 % !" in text
    assert "with --option, in the order above: turn.round, leave.be" in " ".join(text.split())
    assert "2 replications of 100 s" in text


def test_an_option_under_which_an_instance_does_not_start_turns_nothing_round() -> None:
    scenario = Scenario(run=Run(duration_ns=400_000_000_000, replications=5))
    tasks = grid_tasks(lambda *_: scenario, ["first", "up", "same"], ["turn.round"])
    runs = {key: [summary(value) for value in values] for key, values in GRID_VALUES.items()}
    runs["turn.round", "up"] = [replace(run, failed={"vlm3": "no room"}) for run in runs["turn.round", "up"]]

    grid = read_grid(tasks, [Outcome(t.key, t.replication, runs[t.key][t.replication], None) for t in tasks])  # type: ignore[index]

    assert {grid.differences["turn.round", "up", metric] for metric in METRICS} == {Difference(())}
    assert {flip.variant for flip in grid.flips()} == {"same"}
    assert "n/a" in to_text(sign_tables(grid, {}))


def test_the_grid_is_never_longer_than_the_runs_it_explains() -> None:
    short = Scenario(run=Run(duration_ns=5_000_000_000, replications=1))

    tasks = grid_tasks(lambda *_: short, ["a", "b"], ["x.y"])

    assert {task.scenario.run.duration_ns for task in tasks} == {5_000_000_000}
    assert len(tasks) == 4


def test_at_most_four_variants_are_asked_about() -> None:
    tasks = grid_tasks(lambda *_: Scenario(), list("abcdef"), [])

    assert {task.key[1] for task in tasks} == set("abcd")


def test_a_flip_to_nothing_does_not_reverse() -> None:
    up, none, down = Difference((0.1,)), Difference((0.0,)), Difference((-0.1,))

    assert Flip("o", "v", "m", up, down).reverses
    assert not Flip("o", "v", "m", up, none).reverses
    assert not Flip("o", "v", "m", none, down).reverses


def test_the_short_answer_marks_what_is_equal_unclear_and_clear() -> None:
    found = compare(PAIR, set_values=["run.duration=200ms"], cases=["equal"], grid=False, workers=1)
    found.summaries["equal"] = {
        "legacy": [summary(100.0)] * 3,
        "guarded": [summary(112.0), summary(113.0), summary(111.0)],
        "shared": [summary(130.0), summary(90.0), summary(100.0)],
    }
    rows = {line.split()[0]: line.split()[1:] for line in to_text(short_answer(found)).splitlines() if line.split()}

    # TTFT mean, ITL p50, ITL p99, ViT mean, tokens/s, memory: all but three come from one summary.
    assert rows["guarded"] == ["+12±2", "=", "+12±2", "=", "+12±2", "="]
    assert rows["shared"] == ["~", "=", "~", "=", "~", "="]


@pytest.mark.parametrize(
    ("share", "half_width", "text"),
    [(0.0994, 0.0, "+9.9"), (-0.5, 0.04, "-50±4"), (22.21, 2.28, "+2,221±228"), (-0.0561, 0.0042, "-5.6±0.4")],
)
def test_a_percentage_has_the_digits_it_deserves(share: float, half_width: float, text: str) -> None:
    assert percent(share, half_width) == text


def test_tasks_of_a_grid_can_be_repeated_from_the_command_line() -> None:
    from htpsim.experiments.compare import _questions

    found = compare(PAIR, set_values=["run.duration=200ms"], cases=["weighted"], grid=False, workers=1)
    tasks: list[Task] = _questions(found, PAIR, ["run.duration=200ms", "guard.slots=1"])

    assert tasks[-1].replay == (
        f"htpsim run {PAIR} --variant shared --case weighted --option slots.two --set guard.slots=1 "
        "--seed 7 --for 200ms --replication 1"
    )
