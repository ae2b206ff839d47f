"""Presets: every figure has a source, the arithmetic behind the derived ones holds, and chips are never mixed."""

from __future__ import annotations

import csv
import itertools
import tomllib
from pathlib import Path
from typing import Any

import pytest

from htpsim import scenario
from htpsim.errors import ScenarioError
from htpsim.scenario.sourced import is_sourced
from htpsim.spec import Model
from tests.scenario.support import written

PRESETS = scenario.presets()
CHIPS = {
    "sa8775p": "SA8775P",
    "sa8295p": "SA8295P",
    "sa8255p": "SA8255P",
    "8elite": "8 Elite",
    "8elite_gen5": "8 Elite Gen 5",
    "x_elite": "X Elite",
    "x2_elite": "X2 Elite",
}
# Name -> parameters, vocabulary, hidden size, layers, KV heads, head size, whether both ends share one table, splits.
SHAPES = {
    "llama_v3_2_1b": (1_235_814_400, 128_256, 2048, 16, 8, 64, True, 3),
    "llama_v3_2_3b": (3_212_749_824, 128_256, 3072, 28, 8, 128, True, 3),
    "llama_v3_1_8b": (8_030_261_248, 128_256, 4096, 32, 8, 128, False, 5),
    "qwen2_5_7b": (7_615_616_512, 152_064, 3584, 28, 4, 128, False, 6),
    "phi_3_5_mini": (3_821_079_552, 32_064, 3072, 32, 32, 96, False, 4),
    "falcon3_7b": (7_455_550_464, 131_072, 3072, 28, 4, 256, False, 5),
    "mistral_7b_v0_3": (7_248_023_552, 32_768, 4096, 32, 8, 128, False, 4),
    "internvl_2b": (1_889_110_016, 92_544, 2048, 24, 8, 128, False, 3),
}
STRUCTURE = {"title", "chip", "role", "name", "count", "context", "preset"}


def chip_of(preset: str) -> str:
    return max((chip for chip in CHIPS if preset.endswith(f"_{chip}")), key=len)


LLMS = sorted(name for name in PRESETS["model"] if not name.startswith("vit_"))
VITS = sorted(name for name in PRESETS["model"] if name.startswith("vit_") and name != "vit_memory")


def using(tmp_path: Path, model: str, device: str | None = None, more: str = "") -> scenario.ScenarioFile:
    role = "vit" if model.startswith("vit") else "llm"
    text = f"""
[device]
preset = "{device or chip_of(model)}"
[models.m]
preset = "{model}"
[[instances]]
{role} = "m"
{more}
"""
    return scenario.load(written(tmp_path, text))


def model_of(loaded: scenario.ScenarioFile) -> Model:
    instance = loaded.base.instances[0]
    model = instance.llm or instance.vit
    assert model is not None
    return model


def unsourced(value: Any, path: str = "") -> list[str]:
    if is_sourced(value):
        return []
    if isinstance(value, dict):
        parts = [unsourced(inner, f"{path}.{key}") for key, inner in value.items() if key not in STRUCTURE]
        return list(itertools.chain.from_iterable(parts))
    if isinstance(value, list):
        return list(itertools.chain.from_iterable(unsourced(inner, path) for inner in value))
    return [path]


@pytest.mark.parametrize("path", [*PRESETS["device"].values(), *PRESETS["model"].values()], ids=lambda path: path.stem)
def test_every_figure_says_where_it_comes_from(path: Path) -> None:
    assert unsourced(tomllib.loads(path.read_text(encoding="utf-8"))) == []


def test_a_figure_without_a_source_would_be_found() -> None:
    assert unsourced(tomllib.loads("[device]\ncores = 2\nchip = 'X'\n[models.llm]\nkv = '1MB'")) == [
        ".device.cores",
        ".models.llm.kv",
    ]


@pytest.mark.parametrize("name", LLMS + VITS)
def test_a_model_runs_on_its_own_chip(tmp_path: Path, name: str) -> None:
    loaded = using(tmp_path, name)

    assert loaded.base.device.name == CHIPS[chip_of(name)]
    assert loaded.resolve().warnings == (
        ("device.dram_bandwidth: not given, so the 2 cores do not slow each other; on a chip they do",)
        if chip_of(name) == "sa8255p"
        else ()
    )
    assert {source.mark for source in loaded.sources} <= {"measured", "derived", "assumed"}


@pytest.mark.parametrize(
    ("model", "device"), [*itertools.product([LLMS[0], "vit_8elite", "vit_sa8775p"], sorted(CHIPS))]
)
def test_chips_are_never_mixed(tmp_path: Path, model: str, device: str) -> None:
    if device == chip_of(model):
        assert using(tmp_path, model, device)
        return
    with pytest.raises(ScenarioError) as error:
        using(tmp_path, model, device)

    expected = f"got figures of chip '{CHIPS[chip_of(model)]}', expected '{CHIPS[device]}' as the device has"
    assert f"models.m.chip: {expected}" in str(error.value)


def test_two_models_of_two_chips_are_refused_even_on_a_device_without_a_chip(tmp_path: Path) -> None:
    text = """
[models.a]
preset = "vit_8elite"
[models.b]
preset = "llama_v3_2_3b_sa8775p"
[[instances]]
vit = "a"
llm = "b"
"""
    with pytest.raises(ScenarioError, match=r"chip 'SA8775P', expected '8 Elite' as model 'a' has"):
        scenario.load(written(tmp_path, text))


def test_a_model_that_nobody_uses_may_be_of_another_chip(tmp_path: Path) -> None:
    assert using(tmp_path, "vit_8elite", more='[models.spare]\npreset = "llama_v3_2_3b_sa8775p"')


def test_a_preset_of_any_chip_holds_memory_terms_only(tmp_path: Path) -> None:
    text = """
[device]
preset = "sa8295p"
[models.m]
preset = "vit_memory"
graphs = [{ name = "vit", context = "vit", service = "400ms" }]
[[instances]]
vit = "m"
"""
    with pytest.raises(ScenarioError, match=r"models\.m\.chip: got 'any' for a model with service times"):
        scenario.load(written(tmp_path, text))
    own = text.replace('"vit_memory"', '"vit_memory"\nchip = "SA8295P"')
    assert model_of(scenario.load(written(tmp_path, own))).contexts[0].reserved_bytes == 482_812_160


@pytest.mark.parametrize("name", VITS)
def test_the_vit_reserves_the_five_terms_of_the_public_log(tmp_path: Path, name: str) -> None:
    (context,) = model_of(using(tmp_path, name)).contexts

    terms = (context.weights_bytes, context.io_bytes, context.run_list_bytes)
    assert terms == (425_721_856, 4_882_432, 31_498_496)
    assert (context.spill_fill_bytes, context.vtcm_backup_bytes) == (12_320_768, 8_388_608)
    assert context.reserved_bytes == 482_812_160


def test_the_vit_times_are_the_measured_one_and_two_derived(tmp_path: Path) -> None:
    times = {name: model_of(using(tmp_path, name)).graphs[0].service.mean / 10**6 for name in VITS}

    assert times == {"vit_8elite": 161, "vit_sa8295p": 440, "vit_sa8775p": 370}
    marks = {name: {s.key: s.mark for s in using(tmp_path, name).sources} for name in VITS}
    assert {name: found["models.m.graphs.vit.service"] for name, found in marks.items()} == {
        "vit_8elite": "measured",
        "vit_sa8295p": "assumed",
        "vit_sa8775p": "assumed",
    }


@pytest.mark.parametrize("name", LLMS)
def test_the_bytes_of_a_model_follow_from_its_shape(tmp_path: Path, name: str) -> None:
    model = model_of(using(tmp_path, name))
    parameters, vocabulary, hidden, layers, kv_heads, head, tied, splits = SHAPES[
        name.removesuffix(f"_{chip_of(name)}")
    ]
    table = vocabulary * hidden
    read = (parameters - table * (1 if tied else 2)) // 2 + table
    copies = 2 if chip_of(name) == "sa8295p" else 1

    assert len(model.decode) == len(model.prefill) == splits
    assert model.kv_bytes == 2 * layers * kv_heads * head * model.context_tokens
    assert len(model.contexts) == splits * copies
    assert sum(c.weights_bytes for c in model.contexts) == splits * copies * ((read + table) // splits)
    assert {graph.dram_bytes for graph in model.decode} == {read // splits}
    assert max(c.reserved_bytes for c in model.contexts) < 3_000_000_000  # what the vendor asks of one context


def test_weights_are_shared_between_prefill_and_decode_from_v73_on(tmp_path: Path) -> None:
    for name in LLMS:
        model = model_of(using(tmp_path, name))
        shared = {graph.context for graph in model.prefill} == {graph.context for graph in model.decode}

        assert shared is (chip_of(name) != "sa8295p")


def test_io_and_kv_of_the_3b_are_what_genie_allocated(tmp_path: Path) -> None:
    model = model_of(using(tmp_path, "llama_v3_2_3b_sa8775p"))
    allocated = sum(context.io_bytes for context in model.contexts) + model.kv_bytes

    assert 323_453_440 - len(model.contexts) < allocated <= 323_453_440


def test_the_bandwidth_of_sa8775p_makes_two_cores_keep_the_published_share(tmp_path: Path) -> None:
    loaded = using(tmp_path, "llama_v3_2_3b_sa8775p")
    model, bandwidth = model_of(loaded), loaded.base.device.dram_bandwidth
    assert bandwidth is not None

    def kept(graphs: Any) -> float:
        return bandwidth / 2 / (graphs[0].dram_bytes * 10**9 / graphs[0].service.mean)

    assert kept(model.decode) == pytest.approx(0.64, abs=0.005)
    assert kept(model.prefill) == pytest.approx(0.84, abs=0.005)


DATA = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "all_llm_metrics.csv"
DEVICES = {
    "sa8775p": "SA8775P ADP",
    "sa8295p": "SA8295P ADP",
    "8elite": "Snapdragon 8 Elite QRD",
    "8elite_gen5": "Snapdragon 8 Elite Gen 5 QRD",
    "x_elite": "Snapdragon X Elite CRD",
    "x2_elite": "Snapdragon X2 Elite CRD",
}
ROWS = {"falcon3_7b": "falcon_v3_7b_instruct", "mistral_7b_v0_3": "mistral_7b_instruct_v0_3"}
PUBLISHED = [name for name in LLMS if not name.startswith("internvl")]


@pytest.mark.skipif(not DATA.is_file(), reason="the table of published figures is not beside this checkout")
@pytest.mark.parametrize("name", PUBLISHED)
def test_times_are_those_of_a_published_row(tmp_path: Path, name: str) -> None:
    loaded = using(tmp_path, name)
    model, chip = model_of(loaded), chip_of(name)
    with DATA.open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["device"] == DEVICES[chip]]
    step_ns = sum(graph.service.mean for graph in model.decode)
    chunk_ns = sum(graph.service.mean for graph in model.prefill)
    fits = [
        row
        for row in rows
        if row["model"] == ROWS.get(name.removesuffix(f"_{chip}"), f"{name.removesuffix(f'_{chip}')}_instruct")
        and int(row["context_length"]) == model.context_tokens
        and abs(float(row["ttft_min_ms"]) * 10**6 - chunk_ns) < len(model.prefill)
        and abs(10**9 / float(row["tokens_per_s"]) - step_ns) < len(model.decode)
    ]
    told = next(source.source for source in loaded.sources if source.key.endswith("decode.*.service"))

    assert any(f" {row['precision']}, {row['device']}, " in told for row in fits)


def test_the_nearest_preset_is_offered(tmp_path: Path) -> None:
    with pytest.raises(
        ScenarioError, match=r"expected the name of a device preset or a \.toml file; did you mean 'sa8775p'"
    ):
        using(tmp_path, "vit_sa8775p", "sa8775")


def test_a_preset_of_ones_own_is_a_file_and_may_build_on_a_shipped_one(tmp_path: Path) -> None:
    own = '[models.mine]\npreset = "vit_sa8775p"\nchip = "SA8775P"\ntokens_per_image = 512\n'
    written(tmp_path, own, "mine.toml")
    text = """
[device]
preset = "sa8775p"
[models.vit]
preset = "mine.toml"
[models.vit.graphs]
service = "300ms"
[[instances]]
vit = "vit"
"""
    model = model_of(scenario.load(written(tmp_path, text)))

    assert (model.tokens_per_image, model.graphs[0].service.mean) == (512, 300_000_000)
    assert model.contexts[0].reserved_bytes == 482_812_160


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ('[models.m]\npreset = "vit_sa8775p"\nchip = "X Elite"', "which mixes the chips 'X Elite' and 'SA8775P'"),
        ('[models.m]\npreset = "mine.toml"', "expected presets that build on at most 8 others"),
        ("[models.a]\n[models.b]", "expected a file with a table [models.NAME], and only one"),
        ("models = 3", "expected a file with a table [models.NAME], and only one"),
        ("[models.m", "got a preset that cannot be read, expected one"),
    ],
)
def test_a_faulty_preset_of_ones_own_is_refused(tmp_path: Path, own: str, said: str) -> None:
    written(tmp_path, own, "mine.toml")
    with pytest.raises(ScenarioError) as error:
        scenario.load(written(tmp_path, '[models.vit]\npreset = "mine.toml"\n[[instances]]\nvit = "vit"\n'))

    assert said in str(error.value)
