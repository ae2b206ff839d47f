"""perf.yaml of every schema: the same rows, whichever way they are written; one service time, or a question back."""

from __future__ import annotations

from pathlib import Path

import pytest

from htpsim.errors import FormatError
from htpsim.formats import aihub_perf
from htpsim.formats.aihub_perf import PerfFile, PerfRow
from htpsim.formats.source import from_text, load
from htpsim.formats.values import ServiceQuery, ServiceTime, Value

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "formats"


def perf(name: str) -> PerfFile:
    data = aihub_perf.read(load(FIXTURES / f"perf_{name}.yaml")).data
    assert isinstance(data, PerfFile)
    return data


def notes(name: str) -> tuple[str, ...]:
    return aihub_perf.read(load(FIXTURES / f"perf_{name}.yaml")).notes


def one(data: PerfFile, **names: str) -> PerfRow:
    (found,) = data.select(**names)
    return found


def service(name: str, query: ServiceQuery) -> ServiceTime:
    text = (FIXTURES / f"perf_{name}.yaml").read_text(encoding="utf-8")
    return aihub_perf.service_time(from_text("perf.yaml", text), query)


def test_a_list_of_models_in_microseconds() -> None:
    data = perf("list")
    token = one(data, component="Toy-TokenGenerator", runtime="torchscript_onnx_qnn")

    assert data.schema == "models"
    assert [row.component for row in data.rows] == [
        "Toy-TokenGenerator",
        "Toy-TokenGenerator",
        "Toy-PromptProcessor",
        "aggregated",
    ]
    assert token.inference_time == Value(5000, "us", 14)
    assert token.inferences_per_second == Value(200.0, "inf/sec", 15)
    assert (token.peak_memory_min, token.peak_memory_max) == (Value(4096, "bytes", 17), Value(8192, "bytes", 18))
    assert (token.layers, token.layers_npu) == (Value(13, "count", 25), Value(12, "count", 22))
    assert (token.precision, token.device, token.chipset) == ("w8a16", "Toy Phone", "Toy 1")


def test_a_failed_job_has_no_figures_instead_of_zeros() -> None:
    failed = one(perf("list"), runtime="torchscript_onnx_tflite")

    assert failed.inference_time is None
    assert failed.inferences_per_second is None
    assert failed.job_status == Value("Failed", "", 31)
    assert [note for note in notes("list") if note.startswith("1 jobs did not pass (line 29)")]


def test_a_single_model_with_llm_metrics() -> None:
    (row,) = perf("single").rows

    assert (row.component, row.chipset) == ("Toy-Chat", "Toy® 1")
    assert (row.ttft_min, row.ttft_max) == (Value(20000, "us", 7), Value(160000, "us", 8))
    assert row.tokens_per_second == Value(12.5, "tokens/s", 9)
    assert row.inference_time is None
    assert row.context_length is None


def test_precisions_and_components_in_milliseconds() -> None:
    data = perf("precisions")
    car = one(data, component="Encoder", device="Toy Car", runtime="qnn")

    assert data.schema == "precisions"
    assert len(data.rows) == 5
    assert car.inference_time == Value(16.858, "ms", 12)
    assert car.peak_memory_max == Value(9, "MB", 16)
    assert car.peak_memory_min == Value(0, "MB", 15), "a published zero stays a zero"
    assert one(data, precision="w8a8").inference_time == Value(3.5, "ms", 43)
    assert one(data, component="Decoder").inferences_per_second is None


def test_a_list_of_llm_metrics_gives_a_row_a_context_length() -> None:
    data = perf("genie")

    assert [row.context_length and row.context_length.value for row in data.rows] == [1024, 4096, 1024]
    assert data.rows[1].prefill_tokens_per_second == Value(2115.7, "tokens/s", 19)
    assert data.rows[2].tokens_per_second is None


def test_a_file_that_may_be_cut_is_said_to_be() -> None:
    text = (FIXTURES / "perf_single.yaml").read_text(encoding="utf-8")
    cut = text[: text.index("12.5") + 2]

    assert aihub_perf.read(from_text("a", cut)).data.rows[0].tokens_per_second == Value(12, "tokens/s", 9)
    assert [note for note in aihub_perf.read(from_text("a", cut)).notes if "its last value may be cut off too" in note]
    assert not aihub_perf.read(from_text("a", text)).notes[1:]


def test_missing_is_null_in_json_and_said_in_the_table() -> None:
    report = aihub_perf.read(load(FIXTURES / "perf_genie.yaml"))

    assert report.to_json()["data"]["rows"][2]["tokens_per_second"] is None
    assert [fact for fact in report.facts if fact.value is None and fact.note == "not in the file"]


def test_figures_to_distrust_are_pointed_out() -> None:
    assert [note for note in notes("precisions") if "rate of Toy Car is 2 x 1/latency (line 11)" in note]
    assert [note for note in notes("precisions") if note == "keys not read: brand_new_key"]
    assert [note for note in notes("list") if note.startswith("line 41: the rate 2000.0 is 128 x 1/latency, as of a")]
    assert [note for note in notes("genie") if "max is 8, 32 x min in every row" in note]
    assert not [note for note in notes("single") if "1/latency" in note]


def outlier_file(slow_ms: float) -> str:
    lines = ["precisions:", "  float:", "    components:", "      Net:", "        performance_metrics:"]
    for device in range(5):
        lines.append(f"          Device {device}:")
        for runtime, factor in (("qnn", 1.0), ("tflite", 1.1)):
            time = slow_ms if (device, runtime) == (3, "qnn") else 10.0 * (device + 1) * factor
            lines += [f"            {runtime}:", f"              inference_time_milliseconds: {time}"]
    return "\n".join(lines)


@pytest.mark.parametrize(("slow_ms", "found"), [(40.0, 0), (110.0, 0), (121.0, 1), (400.0, 1)])
def test_an_outlier_is_three_times_what_the_other_runtimes_suggest(slow_ms: float, found: int) -> None:
    warned = [note for note in aihub_perf.read(from_text("a", outlier_file(slow_ms))).notes if "outlier" in note]

    assert len(warned) == found
    assert all("Device 3 / qnn" in note for note in warned)


@pytest.mark.parametrize(
    ("name", "query", "value_ns", "source"),
    [
        (
            "precisions",
            ServiceQuery("Decoder"),
            500_000,
            "perf.yaml:35 inference_time of Decoder / float / Toy Phone / qnn",
        ),
        (
            "precisions",
            ServiceQuery("Encoder", device="Toy Car", runtime="qnn"),
            16_858_000,
            "perf.yaml:12 inference_time of Encoder / float / Toy Car / qnn",
        ),
        (
            "list",
            ServiceQuery("Toy-PromptProcessor"),
            64_000_000,
            "perf.yaml:40 inference_time of Toy-PromptProcessor / w8a16 / Toy Phone / torchscript_onnx_qnn",
        ),
        (
            "list",
            ServiceQuery("aggregated"),
            5_100_000,
            "perf.yaml:8 inference_time of aggregated / Toy Phone / torchscript_onnx_qnn",
        ),
        (
            "single",
            ServiceQuery(event="token_time"),
            80_000_000,
            "perf.yaml:9 1/tokens_per_second of Toy-Chat / Toy Phone / torchscript_onnx_qnn",
        ),
        (
            "single",
            ServiceQuery(statistic="max", event="time_to_first_token"),
            160_000_000,
            "perf.yaml:8 time_to_first_token of Toy-Chat / Toy Phone / torchscript_onnx_qnn",
        ),
        (
            "genie",
            ServiceQuery(precision="w4a16", statistic="min", event="time_to_first_token", context_length=4096),
            60_500_000,
            "perf.yaml:16 time_to_first_token of Toy-3B / w4a16 / Toy Car / genie / context 4096",
        ),
    ],
)
def test_the_service_time_of_a_component(name: str, query: ServiceQuery, value_ns: int, source: str) -> None:
    assert service(name, query) == ServiceTime(value_ns, source, query.statistic)


@pytest.mark.parametrize(
    ("name", "query", "message"),
    [
        (
            "precisions",
            ServiceQuery("Encodr"),
            "graph: got 'Encodr', expected one of Decoder, Encoder; did you mean 'Enc",
        ),
        ("precisions", ServiceQuery("Decoder", device="Toy Car"), "device: got 'Toy Car', expected one of Toy Phone"),
        ("precisions", ServiceQuery("Encoder", runtime="qn"), "did you mean 'qnn'?"),
        ("precisions", ServiceQuery("Encoder", precision="w4"), "precision: got 'w4', expected one of float, w8a8"),
        (
            "precisions",
            ServiceQuery("Encoder"),
            "got 4 results that fit, expected one; give device, runtime, precision: ",
        ),
        (
            "precisions",
            ServiceQuery("Encoder", device="Toy Car"),
            "give runtime: line 11: Encoder / float / Toy Car / qnn",
        ),
        (
            "precisions",
            ServiceQuery("Decoder", statistic="min"),
            "got statistic 'min' of inference_time, expected average",
        ),
        (
            "precisions",
            ServiceQuery("Decoder", event="latency"),
            "event: got 'latency', expected one of inference_time",
        ),
        ("precisions", ServiceQuery("Decoder", event="token_time"), "expected one of: inference_time"),
        (
            "precisions",
            ServiceQuery("Decoder", context_length=1),
            "context_length: got 1, expected one of none: these ro",
        ),
        (
            "single",
            ServiceQuery(),
            "got no event for Toy-Chat / Toy Phone / torchscript_onnx_qnn, expected one of: time_",
        ),
        (
            "single",
            ServiceQuery(event="time_to_first_token"),
            "got statistic 'average' of time_to_first_token, expected m",
        ),
        ("genie", ServiceQuery(precision="w4a16"), "give context_length: line 9: Toy-3B"),
        ("genie", ServiceQuery(context_length=2048), "context_length: got 2048, expected one of 1024, 4096"),
        ("list", ServiceQuery("Toy-TokenGenerator", runtime="torchscript_onnx_tflite"), "none: the row holds no time"),
    ],
)
def test_a_question_without_one_answer_is_asked_back(name: str, query: ServiceQuery, message: str) -> None:
    with pytest.raises(FormatError) as refusal:
        service(name, query)

    assert message in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a.yaml:1: got an empty file, expected an AI Hub perf.yaml"),
        ("- 1", "a.yaml:1: got a list, expected an AI Hub perf.yaml"),
        ("models: []", "expected at least one result under 'performance_metrics'"),
        (
            "models:\n- name: x\n  performance_metrics: 3",
            "a.yaml:3: got 3 at models[0].performance_metrics, expected an object",
        ),
        ("precisions:\n  float: 3", "a.yaml:2: got 3 at precisions.float, expected an object"),
        (
            "models:\n  name: x\n  performance_metrics:\n  - qnn:\n      inference_time: fast",
            "a.yaml:5: got 'fast' at models.performance_metrics[0].qnn.inference_time, expected a number",
        ),
    ],
)
def test_what_is_no_perf_file_is_refused_by_line(text: str, message: str) -> None:
    with pytest.raises(FormatError) as refusal:
        aihub_perf.read(from_text("a.yaml", text))

    assert message in str(refusal.value)


def test_a_published_zero_is_no_service_time() -> None:
    text = "models:\n  name: x\n  performance_metrics:\n  - qnn:\n      inference_time: 0"

    with pytest.raises(FormatError, match="got 0 us, expected a time above zero"):
        aihub_perf.service_time(from_text("a.yaml", text), ServiceQuery())
