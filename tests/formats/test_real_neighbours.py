"""The real files of ONNX Runtime, SNPE, ExecuTorch and the tools beside them; and that no real file at all is left out.

The files are not part of the repository; where they are absent these tests are skipped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from htpsim import formats
from htpsim.errors import FormatError
from htpsim.formats import Match
from htpsim.formats.source import load
from tests.formats import test_real_files, test_real_measurements

CASES = Path(__file__).resolve().parents[2] / ".." / "shared" / "cases"
# In two pieces: it is no page of this repository.
SNPE_TEXT = "misc/06-snpe-diagview-2.37-cpu-gpu-npu" + ".md"
FORMAT_OF = {
    "ort-profile-json/01-mql5-cuda-two-runs-lines-cut.json": "ort-profile",
    "ort-profile-json/02-ort1297-v0.4.0-cpu-EXCERPT.json": "ort-profile",
    "ort-profile-json/04-genai2031-dml-thread-stats-EXCERPT.json": "ort-profile",
    "ort-qnn-ep-csv/01-fixture-unknown-timestamps-two-runs.csv": "ort-qnn-csv",
    "ort-qnn-ep-csv/02-fixture-8cols-35runs.csv": "ort-qnn-csv",
    "misc/01-qnn_ctx_bin_gen-w8a16-ddr-summary.log": "qnn-context-log",
    "misc/03-specula-bench-ac.csv": "llm-bench-csv",
    "misc/05-qaiappbuilder-service-results.json": "service-tests",
    SNPE_TEXT: "snpe-diagview",
    "misc/08-executorch-pr5928-init.log": "executorch-log",
    "misc/10-qairt249-detailed-report.json": "qnn-report",
}
EXPECTED: dict[str, dict[str, Any]] = {}
if (CASES / "expected.json").is_file():
    EXPECTED = json.loads((CASES / "expected.json").read_text(encoding="utf-8"))
FILES = sorted(path.relative_to(CASES).as_posix() for path in CASES.glob("*/*") if path.is_file())

needs_files = pytest.mark.skipif(not EXPECTED, reason="the folder of real files (shared/cases) is not beside this one")

REMARKS = {"prov", "note", "ep"}
CUT_WITHIN = ("ort-profile-json/01", "ort-profile-json/04")
"""Lines of these are cut off; what stands in such a line is read leniently only."""


def value(thing: Any) -> Any:
    return None if thing is None else thing.value


def values(items: Any) -> list[Any]:
    return [item.duration.value for item in items]


def kernels(data: Any, op: str) -> list[int]:
    return [node.duration.value for node in data.nodes if node.op == op and node.kind == "kernel"]


def only(items: list[Any]) -> Any:
    found = set(items)
    assert len(found) == 1, found
    return found.pop()


def run_event(name: str) -> Callable[[Any, Any], Any]:
    return lambda data, _: only([run.event(name).value for run in data.runs])


ORT_PROFILE: dict[str, Callable[[Any, Any], Any]] = {
    "load_us": lambda data, _: value(data.load),
    "init_us": lambda data, _: value(data.init),
    "model_runs_complete": lambda data, _: len(data.runs),
    "model_runs": lambda data, _: len(data.runs),
    "model_run_us": lambda data, _: values(data.runs),
    "seq_exec_us": lambda data, _: values(data.named("SequentialExecutor::Execute")),
    "first_conv_us": lambda data, _: values(data.kernels()["Convolution28"])[0],
    "second_conv_us": lambda data, _: values(data.kernels()["Convolution28"])[1],
    "conv_us": lambda data, _: only(kernels(data, "Conv")),
    "node_names": lambda data, _: only([node.name for node in data.nodes]),
    "providers": lambda data, _: list(data.providers),
    "truncated": lambda data, _: data.truncated,
    "valid_json": lambda data, _: not any(node.cut for node in data.nodes),
}
ORT_CSV: dict[str, Callable[[Any, Any], Any]] = {
    "runs": lambda data, _: len(data.whole),
    "columns": lambda data, _: len(data.columns),
    "execute_us": run_event("EXECUTE"),
    "qnn_us": run_event("QNN (execute) time"),
    "rpc_us": run_event("RPC (execute) time"),
    "accel_us": lambda data, _: only(
        [
            (run.event("Accelerator (execute) time") or run.event("QNN accelerator (execute) time")).value
            for run in data.runs
        ]
    ),
    "accel_cycles": run_event("Accelerator (execute) time (cycles)"),
    "hvx": run_event("Number of HVX threads used"),
    "node_cycles_per_run": lambda data, _: only(
        [sum(item.value.value for item in run.operations) for run in data.runs]
    ),
}
STAGES = {
    "opt": "Graph Optimizations",
    "post": "Post Graph Optimization",
    "seq": "Graph Sequencing for Target",
    "vtcm": "VTCM Allocation",
    "par": "Parallelization Optimization",
    "fin": "Finalizing Graph Sequence",
    "compl": "Completion",
}


def stages(data: Any, wanted: Any) -> Any:
    times = {stage.name: value(stage.duration) for stage in data.graphs[0].stages}
    return {key: times[STAGES[key]] for key in wanted}


CONTEXT_LOG: dict[str, Callable[[Any, Any], Any]] = {
    "spill": lambda data, _: value(data.graphs[0].spill_bytes),
    "fill": lambda data, _: value(data.graphs[0].fill_bytes),
    "write_total_bytes": lambda data, _: value(data.graphs[0].write_total_bytes),
    "read_total_bytes": lambda data, _: value(data.graphs[0].read_total_bytes),
    "stages_us": stages,
}
BENCH_FIELDS = {
    "pp_tps": "prompt_rate",
    "tg_tps": "generation_rate",
    "pp": "prompt_tokens",
    "tg": "generated_tokens",
    "pp_s": "prompt_time",
    "tg_s": "generation_time",
    "wall_s": "wall",
}


def bench(data: Any, wanted: Any) -> Any:
    row = data.of("npu-genie")
    found = {key: value(getattr(row, field)) for key, field in BENCH_FIELDS.items()}
    return {key: round(found[key], 4) if key.endswith("_s") else found[key] for key in wanted}


BENCH: dict[str, Callable[[Any, Any], Any]] = {
    "npu": bench,
    "ok_rows": lambda data, _: sum(row.ok.value for row in data.rows),
    "failed_rows": lambda data, _: sum(not row.ok.value for row in data.rows),
}
SERVED = ("time_to_first_token", "token_generation_time", "prompt_processing_rate", "token_generation_rate")


def served(data: Any, wanted: Any) -> Any:
    names = (*SERVED, "num_prompt_tokens", "num_generated_tokens")
    found = {item.model: [value(getattr(item, name)) for name in names] for item in data.profiles}
    return {model: found[model] for model in wanted}


SERVICE: dict[str, Callable[[Any, Any], Any]] = {
    **{key: lambda data, _, key=key: value(data.summary[key]) for key in ("total", "passed", "failed", "skipped")},
    "mem_refusals": lambda data, _: len(data.refusals),
    "profile": served,
}


def snpe_npu(data: Any, wanted: Any) -> Any:
    block = data.blocks[2]
    found = {
        "rpc": value(block.measure("RPC Execute Time")),
        "accel": value(block.measure("Accelerator Time")),
        "subnet_cycles": value(block.subnets[0].value),
        "layers_sum": sum(layer.value.value for layer in block.layers),
    }
    return {key: found[key] for key in wanted}


SNPE: dict[str, Callable[[Any, Any], Any]] = {
    "total_us": lambda data, _: {
        block.title.split()[0]: value(block.measure("Total Inference Time")) for block in data.blocks
    },
    "npu": snpe_npu,
}
EXECUTORCH: dict[str, Callable[[Any, Any], Any]] = {
    "rpc_us": lambda data, _: value(data.event("RPC (load binary) time")),
    "qnn_accel_us": lambda data, _: value(data.event("QNN accelerator (load binary) time")),
    "accel_us": lambda data, _: value(data.event("Accelerator (load binary) time")),
    "qnn_us": lambda data, _: value(data.event("QNN (load binary) time")),
    "init_ms": lambda data, _: value(data.time("init in QnnBackend")),
    "load_ms": lambda data, _: value(data.time("load()")),
    "nested": lambda data, _: (
        sorted(item.value.value for item in data.events) == [15709, 15899, 16303, 53819]  # each within the next
    ),
}


def report_event(method: str, name: str) -> Callable[[Any, Any], Any]:
    return lambda data, _: value(data.of(method)[0].event(name))


REPORT: dict[str, Callable[[Any, Any], Any]] = {
    "version": lambda data, _: value(dict(data.versions)["appVersion"]),
    "qnn_us": report_event("BACKEND_EXECUTE", "QNN (execute) time"),
    "rpc_us": report_event("BACKEND_EXECUTE", "RPC (execute) time"),
    "qnn_accel_us": report_event("BACKEND_EXECUTE", "QNN accelerator (execute) time"),
    "accel_us": report_event("BACKEND_EXECUTE", "Accelerator (execute) time"),
    "excl_wait_us": report_event("BACKEND_EXECUTE", "Accelerator (execute excluding wait) time"),
    "power_on_us": report_event("BACKEND_EXECUTE", "Time for HVX + HMX power on and acquire"),
    "vtcm_us": report_event("BACKEND_EXECUTE", "Time for initial VTCM acquire"),
    "cycles": report_event("BACKEND_EXECUTE", "Accelerator (execute) time (cycles)"),
    "hvx": report_event("BACKEND_EXECUTE", "Number of HVX threads used"),
    "load_us": report_event("BACKEND_CREATE_FROM_BINARY", "QNN (load binary) time"),
    "deinit_us": report_event("BACKEND_DEINIT", "QNN (deinit) time"),
    "n": report_event("APP_EXECUTE_IPS", "numInferences"),
}
MAPPINGS: dict[str, dict[str, Callable[[Any, Any], Any]]] = {
    "ort-profile": ORT_PROFILE,
    "ort-qnn-csv": ORT_CSV,
    "qnn-context-log": CONTEXT_LOG,
    "llm-bench-csv": BENCH,
    "service-tests": SERVICE,
    "snpe-diagview": SNPE,
    "executorch-log": EXECUTORCH,
    "qnn-report": REPORT,
}
NAMES = sorted(name for name in FORMAT_OF if name in EXPECTED)


@needs_files
@pytest.mark.parametrize("name", NAMES)
def test_every_expected_value_is_read(name: str) -> None:
    report = formats.read(CASES / name, lenient=name.startswith(CUT_WITHIN))
    mapping = MAPPINGS[report.format]
    wanted = {key: held for key, held in EXPECTED[name].items() if key not in REMARKS}

    assert report.format == FORMAT_OF[name]
    assert {key: mapping[key](report.data, held) for key, held in wanted.items()} == wanted


@needs_files
@pytest.mark.parametrize("name", NAMES)
def test_every_line_number_points_at_its_value(name: str) -> None:
    path = CASES / name
    lines = path.read_text(encoding="utf-8").split("\n")

    for fact in formats.read(path, lenient=name.startswith(CUT_WITHIN)).facts:
        if fact.line is None or fact.value is None:
            continue
        line = lines[fact.line - 1]
        spelled = [str(fact.value), str(fact.value).removesuffix(".0"), str(fact.value) + "0"]
        assert any(text.lower() in line.lower() for text in spelled), fact


@needs_files
def test_a_line_that_a_page_cut_is_refused_unless_read_leniently() -> None:
    path = CASES / "ort-profile-json/01-mql5-cuda-two-runs-lines-cut.json"

    with pytest.raises(FormatError, match=r":3:257: got the end of the line, expected a string that ends in its own"):
        formats.read(path)
    assert (
        "11 lines are cut off; their times are read, the rest of them is not" in formats.read(path, lenient=True).notes
    )


@needs_files
def test_no_real_file_is_left_out() -> None:
    """Each file is in one of three tables, and each table has no other; the folder and the list of values agree."""
    tables = (set(FORMAT_OF), set(test_real_files.EXPECTED), set(test_real_measurements.EXPECTED))

    assert set.union(*tables) == set(EXPECTED) == set(FILES)
    assert sum(map(len, tables)) == len(FILES) >= 60


@needs_files
@pytest.mark.parametrize("name", FILES)
def test_every_real_file_is_read_or_refused_by_its_line(name: str) -> None:
    """One way or the other: facts with a unit and a line, or file, line, what was found and what was expected."""
    try:
        report = formats.read(CASES / name)
    except FormatError as error:
        message = str(error)
        assert re.match(rf"{re.escape(str(CASES / name))}:\d+(:\d+)?: got .+, expected .+", message, re.DOTALL), message
        return
    assert any(fact.line is not None and fact.value is not None for fact in report.facts) or report.notes
    json.dumps(report.to_json(), allow_nan=False)


@needs_files
def test_exactly_the_files_that_cannot_be_read_are_refused() -> None:
    refused = set()
    for name in FILES:
        try:
            formats.read(CASES / name)
        except FormatError:
            refused.add(name)

    assert refused == {
        "genie-config/09-edh-gpt-oss-20b-EMPTY.json",
        "htp-backend-ext/01-aihubapps-template-INVALID.json",
        "ort-profile-json/01-mql5-cuda-two-runs-lines-cut.json",
        "qnn-profile-viewer-text/07-vision-encoder-v68-reworded.txt",
    }


@needs_files
@pytest.mark.parametrize("name", FILES)
def test_one_format_only_is_sure_of_a_real_file(name: str) -> None:
    source = load(CASES / name)
    sure = [item.name for item in formats.FORMATS.values() if item.sniff(source) is Match.YES]

    assert len(sure) <= 1
    assert sure or name in {
        "genie-config/09-edh-gpt-oss-20b-EMPTY.json",
        "qnn-profile-viewer-text/07-vision-encoder-v68-reworded.txt",
        "qnn-netrun-csv/04-tiny_block_decode-no-timestamp-EXCERPT.csv",
        "qnn-optrace/03-modelinsider-chrome_trace-SYNTHETIC.json",
        "genie-profile-json/04-genie-trace-variant.json",
    }


@needs_files
@pytest.mark.parametrize(
    ("name", "query", "value_ns"),
    [
        ("ort-qnn-ep-csv/01-fixture-unknown-timestamps-two-runs.csv", {}, 2_800_000),
        ("ort-qnn-ep-csv/02-fixture-8cols-35runs.csv", {"event": "QNN (execute) time"}, 100_000),
        (SNPE_TEXT, {"graph": "NPU (int8) Performance"}, 59_000),
        (SNPE_TEXT, {"graph": "CPU (fp32) Performance"}, 69_000),
        ("misc/10-qairt249-detailed-report.json", {}, 1_734_000),
        (
            "misc/05-qaiappbuilder-service-results.json",
            {"graph": "phi4-v81", "event": "time_to_first_token"},
            110_000_000,
        ),
    ],
)
def test_service_times_of_real_files(name: str, query: dict[str, Any], value_ns: int) -> None:
    assert formats.service_time_ns(CASES / name, **query).value_ns == value_ns
