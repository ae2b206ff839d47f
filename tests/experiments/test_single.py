"""One scenario: from a file or from Python, all replications or one of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

import htpsim
from htpsim.errors import InvariantError, ScenarioError
from htpsim.experiments.runner import Task, run_task
from htpsim.experiments.single import run_one
from htpsim.spec import Run, Scenario
from tests.cli.support import FIXTURES, PAIR

SHORT = ("run.duration=500ms",)


def test_a_specification_made_in_python_runs_like_the_file_it_equals() -> None:
    scenario = htpsim.load(PAIR, set_values=SHORT).resolve("guarded", "weighted").scenario

    from_file = htpsim.run(PAIR, variant="guarded", case="weighted", set_values=SHORT, workers=1)
    from_python = htpsim.run(scenario, workers=1)

    assert from_python.log.executes == from_file.log.executes
    assert [s.to_dict() for s in from_python.summaries] == [s.to_dict() for s in from_file.summaries]
    assert from_python.file is None


def test_a_specification_is_checked_like_a_file() -> None:
    with pytest.raises(ScenarioError, match="at least one instance or client"):
        htpsim.run(Scenario())
    with pytest.raises(ScenarioError, match="expected a file with these"):
        htpsim.run(Scenario(), variant="x")


@pytest.mark.parametrize("replication", [0, 2])
def test_one_replication_is_what_it_is_among_others(replication: int) -> None:
    together = run_one(PAIR, set_values=SHORT, workers=1)
    alone = run_one(PAIR, set_values=SHORT, replication=replication, workers=1)

    assert [s.to_dict() for s in alone.summaries] == [together.summaries[replication].to_dict()]
    assert alone.log.replication == replication


def test_the_frame_names_the_replication_that_was_run() -> None:
    frame = run_one(PAIR, set_values=SHORT, replication=1, workers=1).to_dataframe()

    assert set(frame["replication"]) == {1}
    assert frame["metric"].is_unique
    assert {"overall.itl.p99", "guard.calls", "cores.core 0.utilisation"} <= set(frame["metric"])
    assert not {"seed", "replication"} & set(frame["metric"])


def test_a_notebook_shows_the_clients() -> None:
    single = run_one(PAIR, set_values=SHORT, replication=0, workers=1)

    assert "vlm1" in single._repr_html_()
    assert repr(single) == "<Single 'pair': 1 replication>"
    assert single.result is single.result


def test_a_check_looks_at_the_trace_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log that an engine got wrong is found, though every state machine was content."""
    from htpsim.experiments import runner

    scenario = htpsim.load(PAIR, set_values=SHORT).resolve("guarded").scenario
    sound = runner.simulate

    def twice(scenario: Scenario, replication: int, **more: object) -> object:
        log = sound(scenario, replication, check=True)
        granted = log.executes[0]
        late = list(log.executes[1])
        late[log_column("granted_ns")] = granted[log_column("granted_ns")]  # two holders of one slot
        log.executes[1] = tuple(late)
        return log

    monkeypatch.setattr(runner, "simulate", twice)

    with pytest.raises(InvariantError) as told:
        run_task(Task(("x",), scenario, 0, check=True, replay="htpsim run it"))
    text = str(told.value)
    assert "violation" in text
    assert text.count("htpsim run it") == 1
    run_task(Task(("x",), scenario, 0, check=False))


def log_column(name: str) -> int:
    from htpsim.results.columns import Execute

    return Execute._fields.index(name)


def test_what_breaks_without_a_file_names_seed_and_replication(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FIXTURES))
    scenario = htpsim.load(PAIR, set_values=["guard.policy=bad_policies:Raises"]).resolve("guarded").scenario
    scenario = replace(scenario, run=Run(duration_ns=10**9, seed=5, replications=1))

    with pytest.raises(InvariantError, match=r"replication=0\) with seed 5$"):
        htpsim.run(scenario, workers=1)
