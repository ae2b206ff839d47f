"""Every real file of the four formats gives the value that a person read in it, or is refused by its line.

The files are not part of the repository; where they are absent these tests are skipped.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from htpsim import formats
from htpsim.errors import FormatError
from htpsim.formats.aihub_perf import PerfFile, PerfRow
from htpsim.formats.genie_config import GenieConfig
from htpsim.formats.htp_backend_ext import BackendExt
from htpsim.formats.qnn_viewer import Section, ViewerLog

CASES = Path(__file__).resolve().parents[2] / ".." / "shared" / "cases"
DATA = CASES.parent / "data"
KINDS = {
    "qnn-profile-viewer-text": "qnn-viewer",
    "aihub-perf-yaml": "aihub-perf",
    "genie-config": "genie-config",
    "htp-backend-ext": "htp-backend-ext",
}
EXPECTED: dict[str, dict[str, Any]] = {}
if (CASES / "expected.json").is_file():
    EXPECTED = {
        name: entry
        for name, entry in json.loads((CASES / "expected.json").read_text(encoding="utf-8")).items()
        if name.split("/")[0] in KINDS
    }

needs_files = pytest.mark.skipif(not EXPECTED, reason="the folder of real files (shared/cases) is not beside this one")

# Said about a file, not in it: who typed it, what to look out for, what a person knows from the page around it.
REMARKS = {"prov", "note", "trap", "hw", "paths"}
NOT_IN_THE_FILE = {("qnn-profile-viewer-text/07-vision-encoder-v68-reworded.txt", "num_inferences")}


def value(thing: Any) -> Any:
    """Take the bare value out of a Value; what is missing stays None."""
    return None if thing is None else thing.value


def event(section: Section | None, name: str) -> Any:
    return None if section is None else value(section.event(name))


def events(section: Section | None, names: dict[str, str]) -> dict[str, Any]:
    return {key: event(section, name) for key, name in names.items()}


def htp(phase: str, accelerator: str = "accelerator") -> dict[str, str]:
    return {
        "netrun": "NetRun",
        "rpc": f"RPC ({phase}) time",
        "qnn_accel": f"QNN {accelerator} ({phase}) time",
        "accel": f"Accelerator ({phase}) time",
        "qnn": f"QNN ({phase}) time",
    }


def execute(log: ViewerLog, wanted: dict[str, Any]) -> dict[str, Any]:
    sections = {"avg": log.average, "min": log.minimum, "max": log.maximum}
    names = {"graph_execute": "GRAPH_EXECUTE", **htp("execute")}
    return {which: events(sections[which], {key: names[key] for key in wanted[which]}) for which in wanted}


VIEWER: dict[str, Callable[[ViewerLog, Any], Any]] = {
    "tool_version": lambda log, _: log.tool_version,
    "backend": lambda log, _: log.backend,
    "level": lambda log, _: log.level,
    "graphs": lambda log, _: list(log.graphs),
    "init_us": lambda log, _: event(log.init, "NetRun"),
    "compose_us": lambda log, _: event(log.compose, "NetRun"),
    "finalize_us": lambda log, wanted: events(
        log.finalize, {key: {"backend": "GRAPH_FINALIZE", **htp("finalize")}[key] for key in wanted}
    ),
    "deinit_us": lambda log, wanted: (
        events(log.deinit, htp("deinit", "Accelerator")) if isinstance(wanted, dict) else event(log.deinit, "NetRun")
    ),
    "deinit_backend_null_us": lambda log, _: event(log.deinit, "null"),
    "ips": lambda log, _: value(log.ips),
    "execute_us": execute,
    "execute_min": lambda log, _: log.minimum,
    "execute_max": lambda log, _: log.maximum,
    "hvx": lambda log, _: value(log.hvx_threads),
    "num_inferences": lambda log, _: log.num_inferences,
    "truncated": lambda log, _: log.truncated,
    "avg_netrun_us": lambda log, _: event(log.average, "NetRun"),
    "qnn_us": lambda log, _: event(log.average, "QNN (execute) time"),
    "accel_us": lambda log, _: event(log.average, "Accelerator (execute) time"),
    "accel_excl_wait_us": lambda log, _: event(log.average, "Accelerator (execute excluding wait) time"),
    "min_netrun_us": lambda log, _: event(log.minimum, "NetRun"),
    "max_netrun_us": lambda log, _: event(log.maximum, "NetRun"),
}


GENIE: dict[str, Callable[[GenieConfig, Any], Any]] = {
    "ctx_bins": lambda config, _: len(config.ctx_bins),
    "size": lambda config, _: value(config.context_size),
    "mmap": lambda config, _: value(config.engine and config.engine.mmap),
    "poll": lambda config, _: value(config.engine and config.engine.poll),
    "kv_dim": lambda config, _: value(config.engine and config.engine.kv_dim),
    "async_init": lambda config, _: value(config.engine and config.engine.async_init),
    "n_threads": lambda config, _: value(config.engine and config.engine.n_threads),
    "graph_switching": lambda config, _: value(config.engine and config.engine.graph_switching),
    "type": lambda config, _: value(config.type),
    "bos": lambda config, _: value(config.bos_token),
    "forecast_prefix": lambda config, _: value(config.forecast_prefix),
    "max_num_tokens": lambda config, _: value(config.max_num_tokens),
    "placeholders": lambda config, _: bool(config.placeholders),
    "embedding": lambda config, _: config.embedding_size is not None,
    "vision": lambda config, _: [value(config.engines[0].vision_height), value(config.engines[0].vision_width)],
}

HTP: dict[str, Callable[[BackendExt, Any], Any]] = {
    "cores": lambda data, _: data.cores,
    "soc": lambda data, _: value(data.soc_id or data.soc_model),
    "soc_id": lambda data, _: value(data.soc_id),
    "soc_model": lambda data, _: value(data.soc_model),
    "arch": lambda data, _: value(data.arch),
    "weight_sharing": lambda data, _: value(data.weight_sharing),
    "share_resources": lambda data, _: value(data.share_resources),
    "perf": lambda data, _: value(data.perf_profile),
    "core_id": lambda data, _: value((data.devices or ())[0].cores[0].core_id),
    "graphs_is_object": lambda data, _: data.graphs_is_object,
    "vtcm_mb": lambda data, _: value(data.graphs[0].vtcm_mb),
    "hvx_threads": lambda data, _: value(data.graphs[0].hvx_threads),
    "O": lambda data, _: value(data.graphs[0].optimisation),
    "wrapper": lambda data, _: data.wrapper,
    "inner": lambda data, _: value(data.inner),
    "devices": lambda data, _: len(data.devices or ()),
    "cores_per_device": lambda data, _: list(data.cores_per_device or ()),
    "cores_reported_by_upstream_test": lambda data, _: data.cores,
}

DEVICES = {
    "8 Elite": "Snapdragon 8 Elite QRD",
    "8 Elite Gen5": "Snapdragon 8 Elite Gen 5 QRD",
    "X Elite": "Snapdragon X Elite CRD",
    "SA8295P": "SA8295P ADP",
}


def only(rows: tuple[PerfRow, ...]) -> PerfRow:
    assert len(rows) == 1, [row.place for row in rows]
    return rows[0]


def pass_of(data: PerfFile, part: str) -> PerfRow:
    return only(tuple(row for row in data.rows if part in row.component))


def llm_table(precision: str) -> Callable[[PerfFile, Any], Any]:
    def look_up(data: PerfFile, wanted: Any) -> Any:
        rows = {name: only(data.select(device=DEVICES[name], precision=precision)) for name in wanted}
        fields = ("context_length", "ttft_min", "ttft_max", "tokens_per_second")
        return {name: [value(getattr(row, field)) for field in fields] for name, row in rows.items()}

    return look_up


def ttft(data: PerfFile, wanted: Any) -> Any:
    rows = {name: only(data.select(device=DEVICES[name])) for name in wanted}
    return {name: [value(row.ttft_min), value(row.ttft_max)] for name, row in rows.items()}


def latencies(precision: str) -> Callable[[PerfFile, Any], Any]:
    def look_up(data: PerfFile, wanted: Any) -> Any:
        rows = {name: only(data.select(device=name, runtime="qnn", precision=precision)) for name in wanted}
        return {name: value(row.inference_time) for name, row in rows.items()}

    return look_up


def components(data: PerfFile, wanted: Any) -> Any:
    return {
        name: {
            runtime: value(only(data.select(component=name, runtime=f"torchscript_onnx_{runtime}")).inference_time)
            for runtime in wanted[name]
        }
        for name in wanted
    }


def units(data: PerfFile, _: Any) -> str:
    times = (time for row in data.rows for time in (row.inference_time, row.ttft_min, row.ttft_max) if time)
    (unit,) = {time.unit for time in times}
    return unit


PERF: dict[str, Callable[[PerfFile, Any], Any]] = {
    "unit": units,
    "components": components,
    "device": lambda data, _: next(iter({row.device for row in data.rows})),
    "token_gen_us": lambda data, _: value(pass_of(data, "TokenGenerator").inference_time),
    "token_gen_tps": lambda data, _: value(pass_of(data, "TokenGenerator").inferences_per_second),
    "prompt_us": lambda data, _: value(pass_of(data, "PromptProcessor").inference_time),
    "prompt_throughput": lambda data, _: value(pass_of(data, "PromptProcessor").inferences_per_second),
    "ttft_us": ttft,
    "ttft_ms": ttft,
    "tps": lambda data, wanted: {
        name: value(only(data.select(device=DEVICES[name])).tokens_per_second) for name in wanted
    },
    "ratio": lambda data, _: next(iter({value(row.ttft_max) / value(row.ttft_min) for row in data.rows})),
    "entries": lambda data, _: len(data.rows),
    "w4a16": llm_table("w4a16"),
    "w4": llm_table("w4"),
    "float_qnn_ms": latencies("float"),
    "w8a8_qnn_ms": latencies("w8a8"),
}

MAPPINGS: dict[str, dict[str, Callable[[Any, Any], Any]]] = {
    "qnn-viewer": VIEWER,
    "aihub-perf": PERF,
    "genie-config": GENIE,
    "htp-backend-ext": HTP,
}
# Keys that say how the file must be treated as a whole; each has a test of its own below.
WHOLE = {"expect", "bytes", "same_values_as", "models_is_dict"}


def wanted_of(name: str) -> dict[str, Any]:
    """Return what is expected of a file, with the values that it shares with another one filled in."""
    entry = dict(EXPECTED[name])
    shared = str(entry.get("same_values_as", ""))
    if shared.startswith("01"):
        base = EXPECTED["qnn-profile-viewer-text/01-seed-cpu-basic-inception_v3-v2.26.txt"]
        names = set(base)
        if "for init/compose/finalize/deinit/ips/avg" in shared:
            names = {"init_us", "compose_us", "finalize_us", "deinit_us", "deinit_backend_null_us", "ips"}
            entry["execute_us"] = {"avg": base["execute_us"]["avg"]}
        entry = {key: held for key, held in base.items() if key in names} | entry
    return entry


def spellings(held: Any) -> list[str]:
    """Return how a file may write a value: flags as 1 and 0, rates with more decimals."""
    if isinstance(held, bool):
        return [str(held).lower(), str(int(held))]
    return [str(held), str(held).removesuffix(".0")]


READABLE = [name for name, entry in EXPECTED.items() if "expect" not in entry]
REFUSED = [name for name, entry in EXPECTED.items() if "expect" in entry]


@needs_files
@pytest.mark.parametrize("name", READABLE)
def test_every_expected_value_is_read(name: str) -> None:
    report = formats.read(CASES / name, lenient="reworded" in name)
    mapping = MAPPINGS[report.format]
    wanted = {key: held for key, held in wanted_of(name).items() if key not in REMARKS | WHOLE}
    wanted = {key: held for key, held in wanted.items() if (name, key) not in NOT_IN_THE_FILE}

    assert {key: mapping[key](report.data, held) for key, held in wanted.items()} == wanted


@needs_files
@pytest.mark.parametrize("name", READABLE)
def test_every_expected_key_is_mapped(name: str) -> None:
    mapping = MAPPINGS[KINDS[name.split("/", maxsplit=1)[0]]]

    assert set(EXPECTED[name]) - REMARKS - WHOLE - set(mapping) == set()


@needs_files
@pytest.mark.parametrize("name", EXPECTED)
def test_every_file_is_recognised_by_its_content(name: str) -> None:
    if EXPECTED[name].get("bytes") == 0:
        with pytest.raises(FormatError, match="got an empty file, expected one of"):
            formats.recognise(CASES / name)
    else:
        assert formats.recognise(CASES / name) == KINDS[name.split("/", maxsplit=1)[0]]


@needs_files
@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_refused_by_its_line(name: str) -> None:
    line = "1" if EXPECTED[name].get("bytes") == 0 else "4:26"

    with pytest.raises(FormatError) as refusal:
        formats.read(CASES / name, format=KINDS[name.split("/", maxsplit=1)[0]])

    assert str(refusal.value).startswith(f"{CASES / name}:{line}: got ")
    assert ", expected " in str(refusal.value)


@needs_files
def test_the_reworded_log_is_refused_unless_read_leniently() -> None:
    path = CASES / "qnn-profile-viewer-text" / "07-vision-encoder-v68-reworded.txt"

    with pytest.raises(
        FormatError, match=r":1: got 'NetRun IPS: 32.3070 inf/sec' outside any section, expected a sect"
    ):
        formats.read(path)
    assert formats.read(path, lenient=True).data.reworded


@needs_files
def test_a_single_model_reads_like_a_list_of_one() -> None:
    name = "aihub-perf-yaml/03-v0.18.0-llama_v3_8b_chat_quantized.yaml"
    data = formats.read(CASES / name).data

    assert EXPECTED[name]["models_is_dict"]
    assert {row.component for row in data.rows} == {"Llama-v3-8B-Chat"}


@needs_files
@pytest.mark.parametrize("name", READABLE)
def test_every_line_number_points_at_its_value(name: str) -> None:
    """A value's own digits or text stand in the line that it claims to come from."""
    path = CASES / name
    lines = path.read_text(encoding="utf-8").split("\n")
    report = formats.read(path, lenient="reworded" in name)

    for fact in report.facts:
        if fact.line is not None and fact.name != "cores":
            line = lines[fact.line - 1].replace("\\\\", "\\")
            assert any(text in line for text in spellings(fact.value)), fact


@needs_files
@pytest.mark.parametrize("path", sorted(DATA.glob("*.yaml")), ids=lambda path: path.name)
def test_published_files_are_read_whole(path: Path) -> None:
    """Count the results by another way: the keys that only a result has."""
    text = path.read_text(encoding="utf-8")
    report = formats.read(path)

    results = text.count("inference_time_milliseconds:") + text.count("tokens_per_second:")
    assert len(report.data.rows) == results
    assert not [note for note in report.notes if note.startswith("keys not read")]


@needs_files
def test_known_faults_of_published_figures_are_pointed_out() -> None:
    vit = formats.read(CASES / "aihub-perf-yaml/08-v0.28.0-vit.yaml").notes
    clip = formats.read(DATA / "qualcomm_ai-hub-models__openai_clip.yaml").notes
    llama = formats.read(CASES / "aihub-perf-yaml/02-v0.6.0-llama_v2_7b_chat_quantized.yaml").notes

    assert [note for note in vit if "the rate of QCS9075 (Proxy) is 2 x 1/latency" in note]
    assert not [note for note in vit if "SA8775P" in note]
    assert [note for note in clip if "97.264 ms" in note and "SA8775P" in note and "4.7 times" in note]
    assert [note for note in llama if "397.13 is 1024 x 1/latency, as of a pass of 1024 tokens" in note]


@needs_files
def test_a_runtime_false_is_reported_and_doubles_nothing() -> None:
    path = CASES / "htp-backend-ext/14-htp_setting-wsfalse-no-cores.json"
    report = formats.read(path)

    assert [note for note in report.notes if "line 20" in note and "doubles nothing" in note]
    assert [fact.value for fact in report.facts if fact.name == "weight sharing"] == [False]


@needs_files
def test_service_times_of_real_logs() -> None:
    seed = CASES / "qnn-profile-viewer-text/01-seed-cpu-basic-inception_v3-v2.26.txt"
    blog = CASES / "qnn-profile-viewer-text/03-blog-htp-basic-mangled.txt"
    vit = CASES / "aihub-perf-yaml/08-v0.28.0-vit.yaml"

    assert formats.service_time_ns(seed, "inception_v3").value_ns == 1_803_294_000
    assert formats.service_time_ns(seed, statistic="max").value_ns == 1_895_815_000
    assert formats.service_time_ns(blog) == formats.ServiceTime(
        2_492_000, f"{blog}:40 Accelerator (execute) time of model", "average"
    )
    chosen = formats.service_time_ns(vit, "VIT", device="SA8775P ADP", runtime="qnn", precision="float")
    assert chosen.value_ns == 16_858_000
