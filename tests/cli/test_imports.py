"""The command that makes a scenario of a configuration of qnn-throughput-net-run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from htpsim import formats
from htpsim.experiments.single import run_one
from htpsim.scenario import load
from htpsim.scenario.imported import ModelSources, import_throughput
from tests.cli.support import ROOT, call

SAMPLES = ROOT / "tests" / "fixtures" / "formats"
CONFIG = SAMPLES / "throughput_two.json"
BOTH = ("--time", "vit=5ms", "--time", "lane detector=2ms")


def test_each_thread_on_the_htp_becomes_a_client(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "t.toml"
    done = call(capsys, "import", str(CONFIG), "-o", str(path), *BOTH)
    scenario = load(path).base

    assert (done.code, done.out) == (0, "")
    assert f"Written to {path}" in done.err
    assert "! not on the HTP, so left out: pre" in done.err
    assert '! models: "lane detector" is called lane_detector' in done.err
    vit, lane = scenario.clients
    assert (vit.name, vit.priority, vit.outstanding, vit.arrivals.think.mean) == ("vit_0", "LOW", 1, 0)
    assert (lane.name, lane.priority, lane.outstanding) == ("lane", "HIGH", 4)
    assert lane.arrivals.think.mean == 33_000_000
    assert [client.model.graphs[0].service.mean for client in scenario.clients] == [5_000_000, 2_000_000]
    assert scenario.run.duration_ns == 10_000_000_000, "200 executions of 35 ms take less than the 10 s of the other"


def test_what_is_imported_can_be_run_as_it_is(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "t.toml"
    call(capsys, "import", str(CONFIG), "-o", str(path), *BOTH)
    done = call(capsys, "run", str(path), "--for", "1s", "--workers", "1", "--json")

    told = json.loads(done.out)
    assert done.code == 0
    assert "lane" in json.dumps(told)


def test_a_time_that_nothing_gives_is_assumed_and_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "t.toml"
    done = call(capsys, "import", str(CONFIG), "-o", str(path), "--time", "vit=5ms")
    sources = {source.key: source for source in load(path).sources}

    assert "! how long lane detector takes is not known: 10ms is assumed" in done.err
    (found,) = [source for key, source in sources.items() if "lane_detector" in key and key.endswith("service")]
    assert (found.mark, found.value) == ("assumed", "10ms")


def test_time_and_memory_come_from_files_with_their_lines(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "t.toml"
    viewer, info = SAMPLES / "viewer_cpu.txt", SAMPLES / "ctxinfo_two_graphs.json"
    done = call(
        capsys, "import", str(CONFIG), "-o", str(path), "--profile", f"vit={viewer}#toy", "--binary", f"vit={info}"
    )
    loaded = load(path)
    (context,) = loaded.base.clients[0].model.contexts

    assert done.code == 0
    assert loaded.base.clients[0].model.graphs[0].service.mean == formats.service_time_ns(viewer, "toy").value_ns
    assert (context.weights_bytes, context.run_list_bytes, context.io_bytes) == (2_500_256, 60_000, 100_000)
    assert (context.spill_fill_bytes, context.vtcm_backup_bytes, context.file_bytes) == (40_960, 8 << 20, 3_000_000)
    assert {s.mark for s in loaded.sources if "vit.contexts" in s.key} == {"derived", "measured"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--time", "vit"), "--time: got 'vit', expected MODEL=VALUE"),
        (("--time", "vit=5"), "--time vit=5: "),
        (("--time", "vit=0ms"), "--time: got 'vit=0ms', expected a time above zero"),
        (("--time", "vitt=5ms"), "did you mean 'vit'?"),
        (("--time", "vit=5ms", "--profile", "vit=x"), "--time and --profile of vit: got both"),
        (("--profile", "vit=nowhere.txt"), "nowhere.txt: got no such file"),
        (("--binary", "vit=nowhere.json"), "nowhere.json: got no such file"),
        (("--preset", "sa8775"), "did you mean 'sa8775p'"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    done = call(capsys, "import", str(CONFIG), "-o", str(tmp_path / "t.toml"), *arguments)

    assert done.code == 2
    assert message in done.err
    assert list(tmp_path.iterdir()) == []


def test_another_file_is_refused_by_its_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    done = call(capsys, "import", str(SAMPLES / "genie_dialog.json"), "-o", str(tmp_path / "t.toml"))

    assert done.code == 2
    assert "genie_dialog.json:1: got an object, expected a configuration of qnn-throughput-net-run" in done.err
    assert list(tmp_path.iterdir()) == []


def test_an_old_scenario_is_kept_when_the_new_one_fails(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "t.toml"
    path.write_text("kept")
    done = call(capsys, "import", str(CONFIG), "-o", str(path), "--preset", "none such")

    assert done.code == 2
    assert path.read_text() == "kept"
    assert [found.name for found in tmp_path.iterdir()] == ["t.toml"]
    assert "t.toml" in done.err


words = st.text(min_size=1, max_size=12)
threads = st.lists(
    st.fixed_dictionaries(
        {
            "interval": st.integers(0, 10**6),
            "loop": st.integers(0, 10**6),
            "loopUnit": st.sampled_from(["count", "second"]),
        }
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(words, min_size=4, max_size=4, unique=True), threads, st.sampled_from([None, "low", "QNN_PRIORITY_HIGH"])
)
def test_any_names_give_a_valid_scenario(
    tmp_path: Path, names: list[str], loops: list[dict[str, Any]], priority: str | None
) -> None:
    """Names are free text: quotes, line ends, dots, the names of other things."""
    backend, model, context, thread = names
    config = {
        "backends": [{"backendName": backend}],
        "models": [{"modelName": model}],
        "contexts": [{"contextName": context, **({"priority": priority} if priority else {})}],
        "testCase": {
            "threads": [
                {"threadName": f"{thread}{number}", "backend": backend, "context": context, "model": model, **loop}
                for number, loop in enumerate(loops)
            ]
        },
    }
    path, out = tmp_path / "c.json", tmp_path / "t.toml"
    path.write_text(json.dumps(config), encoding="utf-8")
    import_throughput(path, out, {model: ModelSources(time_ns=1_000_000)})

    assert len(load(out).base.clients) == len(loops)


@pytest.mark.slow
def test_two_equal_threads_each_take_twice_as_long(tmp_path: Path) -> None:
    """A closed form: two back-to-back loops of equal priority and 5 ms each see 10 ms."""
    config = json.loads(CONFIG.read_text(encoding="utf-8"))
    pair = [{**config["testCase"]["threads"][0], "threadName": f"vit_{n}"} for n in range(2)]
    config["testCase"]["threads"] = pair
    path, out = tmp_path / "c.json", tmp_path / "t.toml"
    path.write_text(json.dumps(config), encoding="utf-8")
    import_throughput(path, out, {"vit": ModelSources(time_ns=5_000_000)})

    (summary,) = run_one(out, workers=1).summaries

    # At the very start one of the two is alone.
    assert [client.job.p50.value for client in summary.clients.values()] == [10_000_000, 10_000_000]
