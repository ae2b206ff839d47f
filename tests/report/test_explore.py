"""Knobs make the assignments they say, answers are those of a run by hand, and the panel follows its sliders."""

from __future__ import annotations

import inspect
import sys
from types import SimpleNamespace
from typing import Any

import pytest

import htpsim
from htpsim.errors import HtpsimError, ScenarioError
from htpsim.experiments.engine import simulate
from htpsim.report.explore import CONFIGURED, Explorer
from htpsim.report.notebook import telling
from htpsim.report.panel import answer_table
from htpsim.results.run import RunResult
from htpsim.scenario import load
from htpsim.spec import Scenario

SHORT = ["run.duration=2s", "run.warmup=0s", "run.replications=1"]


@pytest.fixture(scope="module")
def comparison() -> htpsim.Comparison:
    return htpsim.compare(
        "vit_migration", variants=["legacy", "genie"], cases=["equal"], set_values=SHORT, grid=False, workers=1
    )


@pytest.fixture(scope="module")
def explorer() -> Explorer:
    return Explorer.over(load("vit_migration", set_values=SHORT), variants=["legacy", "genie"], length="2s")


def test_the_usual_knobs_are_those_one_reaches_for(explorer: Explorer) -> None:
    names = [knob.label or knob.key for knob in explorer.knobs]
    assert names[:4] == [f"weight of vlm{i}" for i in range(4)]
    assert names[4:] == ["guard.policy", "guard.slots", "guard.slots_per", "models.vit.split"]
    assert all(not explorer.problems_of(knob) for knob in explorer.knobs)


def test_a_knob_at_rest_sets_nothing_and_weights_are_set_together(explorer: Explorer) -> None:
    assert explorer.assignments({"guard.slots": CONFIGURED, "weight of vlm1": "1"}) == []
    assert explorer.assignments({"weight of vlm1": "4", "guard.slots": "1"}) == [
        "guard.slots=1",
        "instances.weight=[1,4,1,1]",
    ]


def test_an_answer_is_what_a_run_by_hand_gives(explorer: Explorer) -> None:
    answer = explorer.ask({"guard.slots": "1", "weight of vlm0": "4"})
    by_hand = load("vit_migration", set_values=[*SHORT, "guard.slots=1", "instances.weight=[4,1,1,1]"])
    for name, summary in answer.summaries.items():
        again = RunResult(simulate(by_hand.resolve(name).scenario, engine="reference")).summary()
        assert summary.metric("overall.tokens_per_s") == again.metric("overall.tokens_per_s")
        assert summary.metric("overall.itl.p99") == again.metric("overall.itl.p99")


def test_wrong_knobs_and_lengths_are_refused_by_name() -> None:
    file = load("four_vlms")
    with pytest.raises(ScenarioError, match=r"guard\.slotz"):
        Explorer.over(file, vary=["guard.slotz=1,2"])
    with pytest.raises(ScenarioError, match="expected a time"):
        Explorer.over(file, length="soon")
    with pytest.raises(ScenarioError, match="more than nothing"):
        Explorer.over(file, length="0s")
    with pytest.raises(ScenarioError, match=r"did you mean 'guard\.slots'"):
        Explorer.over(file, vary=["guard.slots=1,2"], length="1s").ask({"guard.slot": "1"})


def test_a_range_without_steps_becomes_stops() -> None:
    made = Explorer.over(load("four_vlms"), vary=["device.evict=0us..400us"], length="1s")
    assert made.knobs[0].values[:3] == (CONFIGURED, "0us", "20us")
    assert made.knobs[0].ordered


def test_the_table_shows_the_change_from_the_first_answer(explorer: Explorer) -> None:
    first, moved = explorer.ask({}), explorer.ask({"guard.slots": "1"})
    assert "%" not in answer_table(first, first)
    assert " %)" in answer_table(moved, first)


def test_the_panel_follows_a_slider_and_says_what_cannot_be_run(comparison: htpsim.Comparison) -> None:
    pytest.importorskip("ipywidgets", reason="ipywidgets is not installed: pip install 'htpsim[notebook]'")
    panel = comparison.explore("guard.slots=1,2", "guard.policy=fifo,priority", length="6s")
    before = panel.table.value
    panel.controls["guard.slots"].value = "1"
    assert panel.table.value != before
    assert "in brackets the change" in panel.said.value
    assert bytes(panel.plot.value).startswith(b"\x89PNG")
    panel.controls["guard.slots"].options = [*panel.controls["guard.slots"].options, "-3"]
    panel.controls["guard.slots"].value = "-3"
    assert "cannot be run" in panel.said.value
    assert "guard.slots" in panel.said.value
    assert (panel.table.value, panel.plot.layout.display) == ("", "none")
    panel.controls["guard.slots"].value = "1"
    assert "ITL p99" in panel.table.value
    assert panel.plot.layout.display is None
    assert len(panel.box().children) == 5


def test_without_ipywidgets_the_extra_is_named(comparison: htpsim.Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    with pytest.raises(HtpsimError, match=r"htpsim\[notebook\]"):
        comparison.explore(length="1s")


def test_a_scenario_made_in_python_has_nothing_to_turn() -> None:
    made: Scenario = load("four_vlms", set_values=SHORT).base
    with pytest.raises(HtpsimError, match="made in Python"):
        htpsim.run(made, workers=1).explore()


def test_results_plot_themselves_with_the_signature_of_the_function(comparison: htpsim.Comparison) -> None:
    assert repr(comparison.plot.ecdf("itl")) == repr(htpsim.plot.ecdf(comparison, "itl"))
    assert "of" not in inspect.signature(comparison.plot.gantt).parameters
    assert comparison.plot.gantt.__doc__ == htpsim.plot.gantt.__doc__
    with pytest.raises(HtpsimError, match="genie"):
        comparison.plot.gantt(variant="geni")


def test_public_functions_keep_signature_and_words() -> None:
    from htpsim.experiments.compare import compare

    assert inspect.signature(htpsim.compare) == inspect.signature(compare)
    assert htpsim.compare.__doc__ == compare.__doc__


class _Handle:
    def __init__(self) -> None:
        self.shown: list[str] = []

    def update(self, line: Any) -> None:
        self.shown.append(repr(line))


def test_progress_shows_in_a_notebook_only_and_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    def work(count: int, *, progress: Any = None) -> int:
        for i in range(count):
            if progress:
                progress(i + 1, count, "<part>")
        return count

    handle = _Handle()
    shell = type("ZMQInteractiveShell", (), {})()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    assert telling(work)(2) == 2
    assert not handle.shown
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=lambda *_, **__: handle))
    assert telling(work)(2) == 2
    assert handle.shown == ["work 1 of 2: <part>", "work 2 of 2: <part>", ""]
    told: list[int] = []
    assert telling(work)(1, progress=lambda done, *_: told.append(done)) == 1
    assert told == [1]
    assert len(handle.shown) == 3
