"""genie_config.json and htp_backend_ext_config.json, and what a scenario takes from them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from htpsim import formats
from htpsim.errors import FormatError
from htpsim.formats import genie_config, htp_backend_ext
from htpsim.formats.genie_config import GenieConfig
from htpsim.formats.htp_backend_ext import BackendExt
from htpsim.formats.source import from_text, load
from htpsim.formats.values import Value

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "formats"


def genie(document: Any) -> GenieConfig:
    return genie_config.parse(from_text("g.json", document if isinstance(document, str) else json.dumps(document)))


def htp(document: Any) -> BackendExt:
    return htp_backend_ext.parse(from_text("h.json", document if isinstance(document, str) else json.dumps(document)))


def test_a_dialog_gives_every_value_with_its_line() -> None:
    config = genie_config.parse(load(FIXTURES / "genie_dialog.json"))
    engine = config.engine

    assert engine is not None
    assert config.context_size == Value(4096, "tokens", 7)
    assert config.eos_tokens == (Value(2, "", 7), Value(3, "", 7))
    assert config.bos_token == Value(-1, "", 7)
    assert config.max_num_tokens == Value(512, "tokens", 5)
    assert config.embedding_size == Value(1536, "values", 6)
    assert (engine.mmap, engine.poll) == (Value(True, "", 19), Value(False, "", 22))
    assert engine.async_init == Value(True, "", 27)
    assert engine.graph_switching == Value(False, "", 28)
    assert engine.mmap_budget == Value(25, "", 21)
    assert engine.n_threads == Value(3, "count", 13)
    assert [path.value for path in engine.lora_adapters] == ["night"]
    assert [path.value for path in config.placeholders] == ["<models_path>/part_1_of_2.bin"]
    assert engine.shared_engine is None


def test_what_a_dialog_means_is_said() -> None:
    notes = genie_config.read(load(FIXTURES / "genie_dialog.json")).notes

    assert "1 paths are placeholders (line 37: <models_path>/part_1_of_2.bin)" in notes
    assert [note for note in notes if "the ViT must come from another file" in note]
    assert "keys not read: hints" in notes


def test_special_tokens_are_no_placeholders() -> None:
    assert genie({"dialog": {"stop-sequence": ["<|end|>", "</s>"]}}).placeholders == ()


def test_an_image_encoder_is_a_fragment() -> None:
    report = genie_config.read(load(FIXTURES / "genie_image_encoder.json"))
    config = report.data

    assert config.root == "image-encoder"
    assert (config.engine.vision_height, config.engine.vision_width) == (
        Value(24, "patches", 1),
        Value(32, "patches", 1),
    )
    assert config.context_size is None
    assert config.ctx_bins == ()
    assert [note for note in report.notes if note.startswith("a fragment")]


def test_of_several_engines_the_target_counts() -> None:
    config = genie_config.parse(load(FIXTURES / "genie_two_engines.json"))

    assert [len(engine.ctx_bins) for engine in config.engines] == [1, 3]
    assert len(config.ctx_bins) == 3
    assert config.eos_tokens == (Value(2, "", 4),)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("", "g.json:1: got an empty file, expected a genie_config.json"),
        ([], "g.json:1: got a list, expected a genie_config.json"),
        ({}, "g.json:1: got no keys, expected a genie_config.json"),
        (
            {"dialogue": {}},
            "g.json:1: got the keys dialogue, expected a genie_config.json with 'dialog' or a component",
        ),
        ({"dialogue": {}}, "did you mean 'dialog'?"),
        ({"dialog": 3}, "got 3 at dialog, expected an object"),
        ({"dialog": {"context": {"size": "4096"}}}, "got '4096' at dialog.context.size, expected a whole number"),
        ({"dialog": {"engine": {"n-threads": 2.5}}}, "got 2.5 at dialog.engine.n-threads, expected a whole number"),
        (
            {"dialog": {"engine": {"model": {"binary": {"ctx-bins": ["a", 3]}}}}},
            "got 3 at dialog.engine.model.binary.ctx-bins[1], expected text in quotes",
        ),
        (
            {"dialog": {"engine": [{"backend": {"QnnHtp": {"poll": "yes"}}}]}},
            "got 'yes' at dialog.engine[0].backend.QnnHtp.poll, expected true or false",
        ),
    ],
)
def test_a_genie_configuration_of_the_wrong_kind_is_refused(document: Any, message: str) -> None:
    with pytest.raises(FormatError) as refusal:
        genie(document)

    assert message in str(refusal.value)


def test_everything_absent_is_missing() -> None:
    config = genie({"dialog": {}})

    assert config.engine is None
    assert [name for name in config.__slots__ if getattr(config, name) not in (None, (), "dialog")] == []


def test_an_inner_file_lists_devices_cores_and_graphs() -> None:
    data = htp_backend_ext.parse(load(FIXTURES / "htp_inner.json"))

    assert data.cores_per_device == (2, 0)
    assert data.cores == 2
    assert data.arch == Value("v79", "", 7)
    assert data.soc_model == Value(69, "", 7)
    assert data.soc_id == Value(60, "", 10)
    assert data.weight_sharing == Value(False, "", 13)
    assert data.share_resources == Value(True, "", 14)
    assert data.perf_profile == Value("burst", "", 8)
    assert data.graphs[0].fp16_relaxed_precision == Value(True, "", 3)


def test_a_runtime_flag_is_reported_and_kept_apart_from_resource_sharing() -> None:
    report = htp_backend_ext.read(load(FIXTURES / "htp_inner.json"))
    facts = {fact.name: fact for fact in report.facts}

    assert (facts["weight sharing"].value, facts["weight sharing"].note) == (False, "decided when the binary was built")
    assert (facts["share resources"].value, facts["share resources"].note) == (True, "not weight sharing")
    assert [note for note in report.notes if note.startswith("line 13: weight_sharing_enabled is false")]
    assert "2 devices with 2 and 0 cores: the count reported is the largest, not the sum" in report.notes
    assert "keys not read: mystery" in report.notes


def test_absent_weight_sharing_is_neither_true_nor_false() -> None:
    assert htp({"devices": [], "groupContext": {"share_resources": True}}).weight_sharing is None
    assert htp({"context": {"weight_sharing_enabled": True}}).weight_sharing == Value(True, "", 1)


def test_older_and_irregular_files_are_read() -> None:
    data = htp_backend_ext.parse(load(FIXTURES / "htp_old.json"))

    assert data.graphs_is_object
    assert [name.value for name in data.graphs[0].names] == ["toy"]
    assert data.graphs[0].vtcm_mb == Value(2, "MB", 2)
    assert data.graphs[0].optimisation == Value(3.0, "", 2)
    assert data.cores == 2, "two core ids on the device, one entry in cores"
    assert data.weight_sharing == Value(True, "", 4)


@pytest.mark.parametrize(
    ("document", "cores"),
    [
        ({"graphs": []}, None),
        ({"devices": []}, None),
        ({"devices": [{}]}, 0),
        ({"devices": [{"cores": [{}]}, {"cores": [{}, {}, {}]}]}, 3),
        ({"backend_extensions": {"config_file_path": "x"}}, None),
    ],
)
def test_cores_are_counted_by_device_and_the_largest_reported(document: Any, cores: int | None) -> None:
    assert htp(document).cores == cores


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("", "h.json:1: got an empty file, expected a htp_backend_ext_config.json"),
        ({"dialog": {}}, "h.json:1: got an object, expected a htp_backend_ext_config.json"),
        ({"devices": [3]}, "got 3 at devices[0], expected an object"),
        ({"devices": [{"soc_id": "sixty"}]}, "got 'sixty' at devices[0].soc_id, expected a whole number"),
        ({"devices": [{"dsp_arch": 79}]}, "got 79 at devices[0].dsp_arch, expected text in quotes"),
        ({"graphs": {"vtcm_mb": 2.5}}, "got 2.5 at graphs.vtcm_mb, expected a whole number"),
        (
            {"context": {"weight_sharing_enabled": "no"}},
            "got 'no' at context.weight_sharing_enabled, expected true or f",
        ),
    ],
)
def test_a_backend_configuration_of_the_wrong_kind_is_refused(document: Any, message: str) -> None:
    with pytest.raises(FormatError) as refusal:
        htp(document)

    assert message in str(refusal.value)


def test_a_template_is_refused_by_line_and_column() -> None:
    path = FIXTURES / "htp_template.json"

    assert formats.recognise(path) == "htp-backend-ext"
    with pytest.raises(FormatError, match=r"htp_template\.json:3:19: got '<\w+>.*expected a value.*placeholders"):
        formats.read(path)


def test_model_facts_name_their_source() -> None:
    path = FIXTURES / "genie_dialog.json"
    facts = formats.model_facts(path)

    assert facts.context_tokens == Value(4096, "tokens", 7)
    assert facts.source("context_tokens") == f"{path}:7"
    assert facts.splits == 2
    assert facts.placeholders
    assert facts.source("vision_height") == ""
    fragment = formats.model_facts(FIXTURES / "genie_image_encoder.json")
    assert fragment.splits is None
    assert fragment.mmap is None


def test_device_facts_follow_a_wrapper() -> None:
    facts = formats.device_facts(FIXTURES / "htp_wrapper.json")

    assert facts == formats.device_facts(FIXTURES / "htp_inner.json")
    assert facts.vtcm_bytes == (("prefill", Value(8388608, "bytes", 3)), ("decode", Value(8388608, "bytes", 3)))
    assert facts.hvx_threads[1] == ("decode", Value(4, "count", 3))
    assert facts.source("arch").endswith("htp_inner.json:7")
    assert facts.cores == 2


def test_device_facts_do_not_count_cores_that_nobody_listed(tmp_path: Path) -> None:
    (tmp_path / "h.json").write_text('{"devices": [{"dsp_arch": "v79"}]}')

    facts = formats.device_facts(tmp_path / "h.json")
    assert (facts.cores, facts.cores_per_device) == (None, (0,))


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ('"config_file_path": "gone.json"', "w.json:1: got 'gone.json', which is not here, expected a file; give the"),
        ('"config_file_path": "w.json"', "w.json: got another wrapper, expected the file with 'devices'"),
        ('"shared_library_path": "x"', "w.json: got a wrapper without config_file_path"),
    ],
)
def test_a_wrapper_that_leads_nowhere_is_refused(tmp_path: Path, path: str, message: str) -> None:
    (tmp_path / "w.json").write_text(f'{{"backend_extensions": {{{path}}}}}')

    with pytest.raises(FormatError) as refusal:
        formats.device_facts(tmp_path / "w.json")

    assert message in str(refusal.value)


def test_an_embedding_has_its_own_names_for_alike_things() -> None:
    config = genie_config.parse(load(FIXTURES / "genie_embedding.json"))

    assert config.root == "embedding"
    assert (config.context_size, config.embedding_size) == (Value(512, "tokens", 4), Value(1024, "values", 4))
    assert [path.value for path in config.ctx_bins] == ["encoder.bin"]
    assert config.unread == ()


def test_a_text_generator_is_read_like_a_dialog() -> None:
    config = genie_config.parse(load(FIXTURES / "genie_text_generator.json"))

    assert (config.root, config.context_size) == ("text-generator", Value(4096, "tokens", 4))
    assert (len(config.ctx_bins), config.embedding_size) == (2, Value(2048, "values", 5))
    assert formats.model_facts(FIXTURES / "genie_text_generator.json").splits == 2


def test_shared_engines_have_roles_and_the_target_counts() -> None:
    report = genie_config.read(load(FIXTURES / "genie_shared_engines.json"))
    config = report.data

    assert [engine.role.value for engine in config.engines] == ["draft", "target"]
    assert [path.value for path in config.ctx_bins] == ["t1.bin", "t2.bin"]
    assert config.unread == ()
    assert "2 engines, of roles draft, target: each loads its own binaries" in report.notes
    assert [fact.section for fact in report.facts if fact.name == "polling"] == ["engine draft", "engine target"]


@pytest.mark.parametrize("nested", [True, False])
def test_a_standalone_engine_may_leave_a_level_out(nested: bool) -> None:
    document = json.loads((FIXTURES / "genie_standalone_engine.json").read_text(encoding="utf-8"))
    body = document["standalone-engine"]
    config = genie({"standalone-engine": body if nested else body["engine"]})

    assert config.root == "standalone-engine"
    assert config.engine is not None
    assert (config.engine.role, config.engine.n_threads) == (Value("primary", "", 1), Value(4, "count", 1))
    assert config.engine.library_bin == Value("model.bin", "", 1)
    assert config.ctx_bins == ()


def test_graphs_may_be_a_list_and_name_several_or_one() -> None:
    data = htp_backend_ext.parse(load(FIXTURES / "htp_list_and_object.json"))

    assert [[name.value for name in item.names] for item in data.graphs] == [["vit_a", "vit_b"], ["llm"]]
    assert (data.graphs[1].vtcm_mb, data.graphs[1].num_cores) == (Value(0, "MB", 4), Value(2, "count", 4))
    assert (data.cores, data.weight_sharing) == (2, Value(True, "", 9))


@pytest.mark.parametrize("path", ["../secret.json", "../a/../secret.json", "/etc/hostname", "link.json"])
def test_a_wrapper_does_not_lead_out_of_its_folder(tmp_path: Path, path: str) -> None:
    (tmp_path / "secret.json").write_text('{"devices": []}')
    folder = tmp_path / "a"
    folder.mkdir()
    (folder / "link.json").symlink_to(tmp_path / "secret.json")
    (folder / "w.json").write_text(json.dumps({"backend_extensions": {"config_file_path": path}}))

    with pytest.raises(FormatError, match=r"w.json:1: got .* which (leads out of the folder|is not here), expected a"):
        formats.device_facts(folder / "w.json")


@pytest.mark.parametrize("path", ["a\0b", "x" * 5000, "w.json/w.json"])
def test_a_wrapper_with_a_path_that_is_none_is_refused(tmp_path: Path, path: str) -> None:
    (tmp_path / "w.json").write_text(json.dumps({"backend_extensions": {"config_file_path": path}}))

    with pytest.raises(FormatError, match=r"w.json:1: got .*, expected a file"):
        formats.device_facts(tmp_path / "w.json")
