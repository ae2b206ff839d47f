"""What a scenario takes from files that tools wrote: service times, a model's configuration, a device's."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from htpsim import scenario
from htpsim.errors import ScenarioError
from tests.scenario.support import SMALL, written

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "scenario"
PROFILED = SMALL.replace('"161ms"', "SERVICE")


def beside(tmp_path: Path, file: str, text: str) -> Path:
    shutil.copy(FIXTURES / file, tmp_path)
    return written(tmp_path, text)


def profiled(tmp_path: Path, service: str) -> scenario.ScenarioFile:
    return scenario.load(beside(tmp_path, "viewer.txt", PROFILED.replace("SERVICE", service)))


@pytest.mark.parametrize(
    ("service", "expected_ns"),
    [
        ('{ profile = "viewer.txt", graph = "front" }', 4_800_000),
        ('{ profile = "viewer.txt", graph = "back" }', 2_900_000),
        ('{ profile = "./viewer.txt", graph = "back", event = "QNN (execute) time" }', 3_080_000),
    ],
)
def test_a_service_time_comes_from_a_profile(tmp_path: Path, service: str, expected_ns: int) -> None:
    loaded = profiled(tmp_path, service)

    vit = loaded.base.instances[0].vit
    assert vit is not None
    assert vit.graphs[0].service.mean == expected_ns


def test_the_profile_is_the_source(tmp_path: Path) -> None:
    (source,) = profiled(tmp_path, '{ profile = "viewer.txt", graph = "front" }').sources

    assert (source.key, source.value, source.mark) == ("models.vit.graphs.vit.service", "4.8ms", "measured")
    assert source.source.startswith("viewer.txt:9 ")  # no folder: it would differ from one machine to the next


def test_an_absolute_path_and_one_that_leads_up_are_read(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    shutil.copy(FIXTURES / "viewer.txt", tmp_path)
    up = written(
        tmp_path / "inner", PROFILED.replace("SERVICE", '{ profile = "../viewer.txt", graph = "back" }'), "up.toml"
    )
    absolute = PROFILED.replace("SERVICE", f'{{ profile = "{(FIXTURES / "viewer.txt").as_posix()}", graph = "back" }}')

    assert scenario.load(up).base == scenario.load(written(tmp_path / "inner", absolute, "up.toml")).base


def test_a_path_is_relative_to_the_file_that_has_it(tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    shutil.copy(FIXTURES / "viewer.txt", tmp_path / "base")
    written(tmp_path / "base", PROFILED.replace("SERVICE", '{ profile = "viewer.txt", graph = "back" }'), "base.toml")
    loaded = scenario.load(written(tmp_path, 'extends = "base/base.toml"\n'))

    assert loaded.sources[0].value == "2.9ms"


@pytest.mark.parametrize(
    ("service", "said"),
    [
        ('{ profile = "gone.txt" }', "gone.txt: got no such file"),
        ('{ profile = "viewer.txt" }', "front, back"),
        ('{ profile = "viewer.txt", graph = "frnt" }', "did you mean 'front'?"),
        ('{ profile = "viewer.txt", graph = "front", statistic = "median" }', "median"),
        ('{ profile = "viewer.txt", graph = "front", statistic = "max" }', "max"),
        ('{ profile = "viewer.txt", grph = "front" }', "did you mean 'graph'?"),
    ],
)
def test_a_profile_that_does_not_say_is_refused(tmp_path: Path, service: str, said: str) -> None:
    with pytest.raises(ScenarioError, match=r"scenario\.toml: models\.vit\.graphs\.vit\.service") as error:
        profiled(tmp_path, service)

    assert said in str(error.value)


GENIE = SMALL.replace('contexts = [{ name = "part", count = 2, weights = "1GB" }]', "{}").replace("part1", "part2")


def test_a_model_comes_from_a_genie_configuration(tmp_path: Path) -> None:
    text = GENIE.replace("{}", 'genie_config = "genie_three_bins.json"\ncontexts = { weights = "700MB" }')
    loaded = scenario.load(beside(tmp_path, "genie_three_bins.json", text))

    llm = loaded.base.instances[0].llm
    assert llm is not None
    assert (llm.context_tokens, llm.load) == (2048, "read")
    assert [(context.name, context.weights_bytes) for context in llm.contexts] == [
        ("part0", 700_000_000),
        ("part1", 700_000_000),
        ("part2", 700_000_000),
    ]
    sources = {source.key: source.source for source in loaded.sources}
    assert sources["models.llm.context_tokens"] == "genie_three_bins.json:3"


def test_what_the_scenario_says_itself_wins_over_the_configuration(tmp_path: Path) -> None:
    text = GENIE.replace("{}", 'genie_config = "genie_three_bins.json"\ncontext_tokens = 1024')
    llm = scenario.load(beside(tmp_path, "genie_three_bins.json", text)).base.instances[0].llm

    assert llm is not None
    assert llm.context_tokens == 1024


def test_a_configuration_of_another_number_of_contexts_is_refused(tmp_path: Path) -> None:
    text = SMALL.replace('role = "llm"', 'role = "llm"\ngenie_config = "genie_three_bins.json"')

    with pytest.raises(
        ScenarioError, match="got a file that names 3 context binaries, expected 2, the contexts of this model"
    ):
        scenario.load(beside(tmp_path, "genie_three_bins.json", text))


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("two_devices.json", ("v73", 2, "device-per-core")),
        ("three_cores.json", ("v79", 3, "one-device")),
        ("no_cores.json", ("v79", 5, "one-device")),
    ],
)
def test_a_device_comes_from_a_backend_configuration(tmp_path: Path, file: str, expected: tuple[str, int, str]) -> None:
    (tmp_path / "p.toml").write_text('[device]\ncores = 5\narch = "v75"\n')
    text = SMALL.replace("[device]\ncores = 2", f'[device]\npreset = "p.toml"\nhtp_backend_ext = "{file}"')
    device = scenario.load(beside(tmp_path, file, text)).base.device

    assert (device.arch, device.cores, device.topology) == expected


def test_graphs_take_the_vtcm_that_a_backend_configuration_states(tmp_path: Path) -> None:
    sizes = (("vit", 4), ("prefill0", 2), ("decode1", 0))
    graphs = [{"graph_names": [name], "vtcm_mb": size} for name, size in sizes]
    file = {"graphs": graphs, "devices": [{"cores": [{"core_id": 0}]}]}
    (tmp_path / "ext.json").write_text(json.dumps(file, indent=1))
    text = SMALL.replace("[device]\ncores = 2", '[device]\nhtp_backend_ext = "ext.json"')
    text = text.replace('service = "40ms"', 'service = "40ms", vtcm = "3MiB"')

    loaded = scenario.load(written(tmp_path, text)).base

    vit, llm = loaded.instances[0].vit, loaded.instances[0].llm
    assert vit is not None
    assert llm is not None
    assert vit.graphs[0].vtcm_bytes == 4 << 20
    assert llm.prefill[0].vtcm_bytes == 3 << 20  # what the scenario says itself goes before
    assert llm.decode[1].vtcm_bytes == 8 << 20  # 0 asks for all there is


def test_weight_sharing_read_at_run_time_doubles_nothing(tmp_path: Path) -> None:
    text = SMALL.replace("[device]\n", '[device]\nhtp_backend_ext = "two_devices.json"\n')
    told = scenario.load(beside(tmp_path, "two_devices.json", text)).base
    plain = scenario.load(written(tmp_path, SMALL)).base

    assert told.instances == plain.instances
    assert told.registry == plain.registry


def test_a_file_that_is_no_configuration_is_refused(tmp_path: Path) -> None:
    text = SMALL.replace("[device]\n", '[device]\nhtp_backend_ext = "viewer.txt"\n')

    with pytest.raises(
        ScenarioError, match=r"device\.htp_backend_ext: got a file that cannot be read, expected a htp_"
    ):
        scenario.load(beside(tmp_path, "viewer.txt", text))


CASES = Path(__file__).resolve().parents[2] / ".." / "shared" / "cases"


@pytest.mark.skipif(not CASES.is_dir(), reason="the sample files are not beside this checkout")
@pytest.mark.parametrize(
    ("service", "expected_ns"),
    [
        ('{ profile = "qnn-profile-viewer-text/01-seed-cpu-basic-inception_v3-v2.26.txt" }', 1_803_294_000),
        (
            '{ profile = "qnn-profile-viewer-text/01-seed-cpu-basic-inception_v3-v2.26.txt", statistic = "min" }',
            1_753_902_000,
        ),
    ],
)
def test_real_profiles_give_their_times(tmp_path: Path, service: str, expected_ns: int) -> None:
    found = service.replace('profile = "', f'profile = "{CASES.resolve().as_posix()}/')
    text = PROFILED.replace("SERVICE", found)
    vit = scenario.load(written(tmp_path, text)).base.instances[0].vit

    assert vit is not None
    assert vit.graphs[0].service.mean == expected_ns
