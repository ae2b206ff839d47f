"""Plots of answers show every figure they are given, with units, inside the slide, and nothing on top of a name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Annotation, Text

from htpsim.experiments.sensitivity import Effect, Setting
from htpsim.experiments.sign_grid import Difference
from htpsim.report.plots_answers import TURNED, Choice, blame_heat, pareto, policy_timeline, tornado
from htpsim.report.style import slide
from htpsim.results import RunResult
from htpsim.results.delays import blame_matrix
from tests.report.test_plots import bars, labels
from tests.results.synthetic import Machine, hand_log, vlm_scenario


@pytest.fixture
def ax() -> Axes:
    return Figure().subplots()


@pytest.fixture(scope="module")
def result() -> RunResult:
    return RunResult(Machine(vlm_scenario(seconds=10, tokens=20, think_ms=300)).run())


def effect(key: str, value: str, changed: float, configured: float = 0.05) -> Effect:
    return Effect(Setting(key, value), "genie", "overall.itl.p99", Difference((configured,)), Difference((changed,)))


EFFECTS = [
    effect("guard.slots", "1", 0.12),
    effect("device.yield_latency", '"1ms"', 0.07),
    effect("device.yield_latency", '"50us"', 0.03),
    effect("guard.slots_per", '"core"', -0.04),
    effect("instances.vlm0.llm.contexts.part0.spill_fill_bytes", '"1GiB"', 0.055),
]
CHOICES = [
    Choice("4 2 1 1", 310, 1200, 20, 60, front=True),
    Choice("8 4 1 1", 290, 1500, 15, 50, front=True),
    Choice("1 1 1 1", 380, 1100, 20, 60, front=True, keeps=False),
    Choice("2 2 2 1", 350, 1700, 20, 60, keeps=False),
]


def notes(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.texts if isinstance(text, Annotation)]


def test_a_tornado_puts_the_strongest_on_top_and_marks_what_turns(ax: Axes) -> None:
    tornado(ax, EFFECTS)
    found = [p for p in ax.patches if isinstance(p, Rectangle)]

    assert [text.split(".")[-1] for text in labels(ax)[:3]] == ["slots_per", "slots", "yield_latency"]
    ends = {(round(p.get_y() + p.get_height() / 2), round(p.get_x() + p.get_width(), 6)) for p in found}
    assert ends == {(0, -4.0), (1, 12.0), (2, 7.0), (2, 3.0), (3, 5.5)}
    turned = [p for p in found if p.get_hatch()]
    assert [round(p.get_x(), 6) for p in turned] == [5.0]
    assert turned[0].get_facecolor() == Figure().subplots().bar(0, 1, color=TURNED)[0].get_facecolor()
    assert {"1", "1ms", "50us", "core", "1GiB"} <= set(notes(ax))
    assert ax.get_ylim()[0] > ax.get_ylim()[1]
    assert "[%]" in ax.get_xlabel()


def test_a_tornado_says_how_many_it_leaves_out(ax: Axes) -> None:
    assert (
        tornado(ax, EFFECTS, most=2).get_title(loc="left") + ax.get_title()
        == "What moves the answer (2 weaker left out)"
    )
    assert len(labels(ax)) == 2


def test_a_tornado_of_nothing_is_empty(ax: Axes) -> None:
    assert list(tornado(ax, []).patches) == []


def test_a_pareto_front_is_joined_in_order_and_named(ax: Axes) -> None:
    pareto(ax, CHOICES, "ITL p99 [ms]", "TTFT mean [ms]", bound=350)
    joined = next(line for line in ax.lines if line.get_linestyle() == "--")

    assert joined.get_xydata().tolist() == [[290, 1500], [310, 1200], [380, 1100]]
    assert [text for text in notes(ax) if text != "bound"] == ["8 4 1 1", "4 2 1 1", "1 1 1 1"]
    assert any(line.get_xdata()[0] == 350 for line in ax.lines if line.get_linestyle() == ":")
    hollow = [line for line in ax.lines if line.get_markerfacecolor() == "white"]
    assert sorted(x for line in hollow for x in line.get_xdata()) == [350, 380]


def test_a_heat_map_shows_every_figure_of_the_matrix(ax: Axes, result: RunResult) -> None:
    matrix = blame_matrix(result.blame)
    blame_heat(ax, matrix, result.tables.length_ns)
    kept = [c for c in matrix.columns if c != "nobody" or matrix[c].any()]
    expected = [f"{100 * matrix.loc[row, c] / result.tables.length_ns:.1f}" for row in matrix.index for c in kept]

    assert notes(ax) == expected
    assert any(float(text) > 0 for text in expected)
    assert labels(ax) == list(matrix.index)
    assert "[%" in ax.get_xlabel()


def test_a_policy_timeline_draws_who_stood_in_line_and_who_held(ax: Axes) -> None:
    log = hand_log()
    policy_timeline(ax, RunResult(log).executes, start_ns=0, window_ns=300)
    x = RunResult(log).executes
    guarded = x[(x["path"] == "genie") & x["granted_ns"].notna() & x["released_ns"].notna()]
    held = [(row.client, row.granted_ns, row.released_ns) for row in guarded.itertuples()]
    drawn = {(y, round(a * 1e9), round(b * 1e9)) for y, a, b in bars(ax)}
    names = list(x["client"].cat.categories)

    for client, granted, released in held:
        if granted < 300:
            assert (names.index(client), granted, min(released, 300)) in drawn
    assert labels(ax) == names
    assert "[s]" in ax.get_xlabel()


def test_a_policy_timeline_begins_where_most_wait(ax: Axes, result: RunResult) -> None:
    policy_timeline(ax, result.executes)
    widths = [right - left for _, left, right in bars(ax)]

    assert ax.get_xlim() == (0, 1)
    assert sum(widths) > 0.5
    assert len(notes(ax)) == len(labels(ax))
    assert all("weight" in text and "held" in text for text in notes(ax))


def drawings(result: RunResult) -> Iterator[tuple[str, Callable[[Axes], Axes]]]:
    yield "tornado", lambda ax: tornado(ax, EFFECTS)
    yield "pareto", lambda ax: pareto(ax, CHOICES, "ITL p99 [ms]", "TTFT mean [ms]", bound=350)
    yield "heat", lambda ax: blame_heat(ax, blame_matrix(result.blame), result.tables.length_ns)
    yield "policy", lambda ax: policy_timeline(ax, result.executes)


def _seen(texts: list[Text], way: int, limits: tuple[float, float]) -> list[Text]:
    """Return the labels of ticks within the limits: those beyond are never drawn."""
    return [text for text in texts if min(limits) <= text.get_position()[way] <= max(limits)]


@pytest.mark.slow
def test_each_is_a_slide_with_every_word_inside_and_no_two_names_on_each_other(
    tmp_path: Path, result: RunResult
) -> None:
    for name, draw in drawings(result):
        for copy in ("one", "two"):
            with slide(tmp_path / f"{name}-{copy}.png") as (ax,):
                assert draw(ax) is ax
        figure = ax.figure
        figure.canvas.draw()
        inside = figure.bbox.padded(1)
        texts = [*_seen(ax.get_xticklabels(), 0, ax.get_xlim()), *_seen(ax.get_yticklabels(), 1, ax.get_ylim())]
        texts += [ax.xaxis.label, ax.yaxis.label, *ax.texts]
        shown = [text for text in texts if text.get_text() and text.get_visible()]
        boxes = [text.get_window_extent() for text in shown]

        assert all(inside.contains(*box.min) and inside.contains(*box.max) for box in boxes), name
        assert all(text.get_fontsize() >= 12 for text in shown), name
        for axis in (ax.get_xticklabels(), ax.get_yticklabels()):
            named = [text.get_window_extent() for text in axis if text.get_text()]
            assert not any(a.overlaps(b) for a, b in combinations(named, 2)), name
        assert (tmp_path / f"{name}-one.png").read_bytes() == (tmp_path / f"{name}-two.png").read_bytes()


def test_the_busiest_window_is_found_by_waiting_alone() -> None:
    from htpsim.report.plots_answers import _busiest

    called = np.array([0, 10, 250, 260, 900])
    granted = np.array([1, 11, 300, 400, 900])

    assert [_busiest(called, granted, window) for window in (100, 1000)] == [200, 0]
    assert all(a < b for a, b in pairwise(called.tolist()))
