"""A measurement as a preset: a scenario runs it, another one takes it, and it says where it comes from."""

from __future__ import annotations

from pathlib import Path

import pytest

from htpsim.errors import HtpsimError
from htpsim.experiments.measured import preset
from htpsim.results.columns import NEVER, Execute
from htpsim.scenario import load
from htpsim.sim import simulate
from tests.measure.support import MS, measured, measurement


def test_a_preset_runs_and_repeats_what_was_measured(tmp_path: Path) -> None:
    times = [4 * MS + 10_000 * number for number in range(20)]
    preset(measurement(measured(times))).write(tmp_path / "own.toml")

    scenario = load(tmp_path / "own.toml", set_values=["run.duration=1s", "run.replications=1"]).base
    ran = {row.run_ns for row in map(Execute._make, simulate(scenario).executes) if row.returned_ns != NEVER}

    assert len(ran) > 5
    assert ran <= set(times)
    assert scenario.clients[0].model.contexts[0].weights_bytes == 40_000_000


def test_another_scenario_takes_its_service_time(tmp_path: Path) -> None:
    preset(measurement(measured([5 * MS] * 3))).write(tmp_path / "own.toml")
    (tmp_path / "user.toml").write_text(
        "[device]\ncores = 2\n[models.mine]\npreset = 'own.toml'\n"
        "[[clients]]\nname = 'c'\nmodel = 'mine'\narrivals = { kind = 'closed', think = 0 }\n",
        encoding="utf-8",
    )

    (client,) = load(tmp_path / "user.toml").base.clients

    assert client.model.graphs[0].service.mean == 5 * MS


def test_it_cannot_be_mixed_with_figures_of_a_chip(tmp_path: Path) -> None:
    preset(measurement()).write(tmp_path / "own.toml")
    (tmp_path / "user.toml").write_text(
        "[device]\npreset = 'sa8775p'\n[models.mine]\npreset = 'own.toml'\n[[clients]]\nname = 'c'\nmodel = 'mine'\n",
        encoding="utf-8",
    )

    with pytest.raises(HtpsimError, match="chips are not mixed"):
        _ = load(tmp_path / "user.toml").base


def test_everything_that_repeats_it_is_said() -> None:
    text = preset(measurement()).to_toml()

    for word in (
        "htpsim measure 'small net.onnx'", "ab" * 32, "opset 20", "ONNX Runtime 1.99", "CPUExecutionProvider",
        'Some "fast" CPU', "1 thread", "batch=1", "seed 1", "2026-11-30T23:00:00+00:00",
        "runs: 3 after a first one of 9 ms and 1 to warm up", "says nothing about an HTP",
    ):  # fmt: skip
        assert word in text
    assert "Written by htpsim calibrate" not in text


def test_every_value_has_its_source() -> None:
    values = dict(preset(measurement(measured([5 * MS] * 4))).values)

    assert values["models.other.graphs.graph0.service"].value == "5ms"
    assert values["models.other.graphs.graph0.service"].mark == "measured"
    assert "n = 4" in values["models.other.graphs.graph0.service"].source
    assert values["models.other.contexts.graph0.weights"].value == "40MB"
    assert values["device.load_bandwidth"].value == "500MB/s"
    assert values["device.first_call"].value == "4ms"
    assert {leaf.mark for leaf in values.values()} == {"measured", "derived"}


def test_a_first_run_like_the_others_is_no_cold_start() -> None:
    values = dict(preset(measurement(measured(first_ns=5 * MS))).values)

    assert "device.first_call" not in values


def test_the_threads_are_chosen() -> None:
    both = measurement(measured([5 * MS] * 3), measured([3 * MS] * 3, threads=2))

    assert dict(preset(both).values)["models.other.graphs.graph0.service"].value == "5ms"
    assert dict(preset(both, threads=2).values)["models.other.graphs.graph0.service"].value == "3ms"
    with pytest.raises(HtpsimError, match="got 4 threads, expected one of 1, 2"):
        preset(both, threads=4)


def test_a_vit_is_one_of_an_instance(tmp_path: Path) -> None:
    made = preset(measurement(title="vit.onnx"), role="vit", image_tokens=64)

    (instance,) = made.write(tmp_path / "vit.toml").base.instances

    assert instance.vit is not None
    assert (instance.vit.graphs[0].name, instance.vit.graphs[0].service.mean) == ("vit", 5 * MS)


def test_doubts_stand_on_top() -> None:
    busy = measurement(measured(cpu_ns=8 * MS))

    assert "! the runs had 53 % of a core" in preset(busy).to_toml()


def test_more_threads_than_processors_are_doubted() -> None:
    many = measurement(measured(threads=3))

    assert many.doubts(many.measured[0]) == ("more threads than the 2 CPUs: they wait for one another",)
