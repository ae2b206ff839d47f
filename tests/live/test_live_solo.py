"""What is calibrated from an instance alone, and what is predicted and scored from it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.trust_tables import targets
from htpsim.live import TimedBench
from htpsim.live.solo import Solo, alone, calibrated, exercise, sample_of, seen_alone
from htpsim.live.trials import Ranking, Trial, Trials, kind_of, run_trials
from htpsim.live.written import calibrated_toml, write_calibrated
from htpsim.results.replications import Estimate
from htpsim.scenario import load, problems
from htpsim.sim import simulate
from htpsim.spec import Model
from tests.live.bench import MS, VIT, all_answer, play_until, scene, vlm


def test_what_is_seen_alone_is_what_the_engine_was_told() -> None:
    """An engine's run of one instance stands for the testbed: what goes in must come out."""
    told = replace(
        scene(vlm("vlm0", host_gap_step_ns=300_000)),
        device=replace(scene().device, acquire_ns=5_000, power_up_ns=40_000, power_up_warm_ns=40_000, rpc_call_ns=7_000,
                       rpc_return_ns=30_000),
    )  # fmt: skip

    solo = seen_alone(simulate(told))
    solo.delays["next_graph"] = [5_000]
    found = calibrated(scene(vlm("vlm0")), solo)

    assert found.device.acquire_ns == 5_000
    assert found.device.power_up_warm_ns in range(35_000, 40_001)  # from one ViT to its prefill the core does not idle
    assert (found.device.rpc_call_ns, found.device.rpc_return_ns) == (7_000, 30_000)
    assert found.instances[0].host_gap_step_ns == 300_000
    assert found.instances[0].llm is not None
    assert set(found.instances[0].llm.decode[0].service.sample) == {MS}
    assert found.guard.overhead_ns == 0


def test_the_segments_of_a_cut_graph_count_together() -> None:
    split = replace(VIT, split=3)

    solo = seen_alone(simulate(scene(vlm("vlm0", vit=split))))

    assert set(solo.graphs["vit/vit"]) == {3 * MS}
    assert kind_of(scene(vlm("vlm0"))) != kind_of(scene(vlm("vlm0", vit=split)))


def test_only_one_instance_of_each_kind_runs_alone() -> None:
    other = replace(VIT, name="other")

    found = alone(scene(vlm("a"), vlm("b"), vlm("c", vit=other)), 9 * MS)

    assert [[i.name for i in each.instances] for each in found] == [["a"], ["c"]]
    assert all(each.run.duration_ns == 9 * MS for each in found)


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=600), st.integers(1, 50))
def test_a_shortened_sample_keeps_its_mean_and_its_order(values: list[int], most: int) -> None:
    sample = sample_of(values, most).sample

    assert len(sample) == min(len(values), most)
    assert list(sample) == sorted(sample)
    assert min(values) <= sample[0]
    assert sample[-1] <= max(values)
    if len(values) % len(sample) == 0:
        assert abs(float(np.mean(sample)) - float(np.mean(values))) <= 1


def test_delays_without_work_are_measured() -> None:
    found = exercise()

    assert len(found.delays["next_graph"]) >= 100
    assert len(found.delays["hand_over"]) >= 100
    assert 0 < found.delay_ns("next_graph") < 1_000 * MS


def test_a_difference_within_its_interval_is_a_tie() -> None:
    def ranking(mean: float, half: float | None) -> Ranking:
        return Ranking("a", "b", "ttft.p50", Estimate(mean, half, 5, "ns"), (-3.0, 2.0, -1.0))

    assert ranking(1.0, 2.0).tie
    assert ranking(1.0, None).tie
    assert not ranking(-3.0, 2.0).tie
    assert ranking(-3.0, 2.0).right == 2


def test_an_order_of_which_nothing_was_decided_is_not_called_met() -> None:
    trial = Trial("genie", scene(vlm("vlm0")))

    rows = {row.split(" | ")[0].strip("| "): row for row in targets(Trials({"genie": trial}, {})).splitlines()}

    assert rows["variants in the predicted order in every repeat"].endswith("| 0 of 0 differences, 0 ties | - |")
    assert rows["median error of throughput at most 3 %"].endswith("| - | - |")


@pytest.mark.slow
def test_trials_predict_what_they_have_not_seen(tmp_path: Path) -> None:
    two, weighed = (scene(vlm("vlm0", weight=weight), vlm("vlm1"), duration_ms=300) for weight in (1, 4))

    found = run_trials({"two": two, "weighed": weighed}, TimedBench(), rounds=2, solo_ns=150 * MS)

    assert [len(trial.scores) for trial in found.trials.values()] == [2, 2]
    assert all(trial.copies_exact() for trial in found.trials.values())
    assert all(len(trial.errors("tokens_per_s")) == 2 for trial in found.trials.values())
    assert {each.figure for each in found.rankings(["two", "weighed"])} >= {"tokens_per_s"}
    assert [path.name for path in write_calibrated(found, tmp_path, "a test")] == ["two.toml", "weighed.toml"]
    again = load(tmp_path / "two.toml").resolve()
    assert {source.mark for source in again.sources} == {"measured"}
    assert again.scenario.device.rpc_return_ns > 0
    assert not problems(again.scenario)


def test_the_written_scenario_says_what_each_value_rests_on() -> None:
    solo = Solo(graphs={"vit/vit": [MS, 3 * MS]})

    text = calibrated_toml(scene(vlm("vlm0")), solo, "a desk")

    assert "# Written by the testbed of htpsim: a desk" in text
    assert 'source = "time on the core of an instance alone on the testbed, 2 values"' in text


@pytest.mark.slow
def test_timed_work_alone_takes_the_time_it_was_told() -> None:
    solo = seen_alone(play_until(all_answer, scene(vlm("vlm0"), duration_ms=200)).log)

    assert min(solo.graphs["vit/vit"]) >= 3 * MS
    assert min(solo.graphs["llm/decode"]) >= MS


def test_a_model_without_a_shape_is_told_what_to_state() -> None:
    from htpsim.errors import ScenarioError
    from htpsim.live.work import shape_of

    cases = {
        "": "expected the shape of the model",
        "blocks=4": "expected the shape of the model",
        "blocks=4 width=0": "width: got '0'",
        "blocks=4 widht=64": "did you mean 'width'",
    }
    for options, told in cases.items():
        with pytest.raises(ScenarioError, match=told.replace("?", r"\?")):
            shape_of(Model(name="vit", role="vit", options=options))
