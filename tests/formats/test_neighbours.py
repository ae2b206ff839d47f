"""SNPE's diagview, ExecuTorch's log, the QNN report, benchmark tables and service tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from htpsim import formats
from htpsim.errors import FormatError
from htpsim.formats import executorch_log, llm_bench_csv, qnn_report, service_tests, snpe_diagview
from htpsim.formats.source import from_text
from htpsim.formats.values import ServiceQuery, Value

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "formats"
SNPE = FIXTURES / "snpe_cpu_and_dsp.md"
EXECUTORCH = FIXTURES / "executorch_init.log"
REPORT = FIXTURES / "qnnreport_detailed.json"
BENCH = FIXTURES / "bench_backends.csv"
SERVICE = FIXTURES / "service_results.json"


def test_each_block_of_diagview_is_a_run_of_its_own() -> None:
    cpu, dsp = formats.read(SNPE).data.blocks

    assert (cpu.title, dsp.title) == ("CPU run", "DSP run")
    assert (cpu.processors, dsp.processors) == (("CPU",), ("DSP",))
    assert cpu.version == Value("2.37.0", "", 7)
    assert (cpu.measure("Load"), cpu.measure("Init")) == (Value(494, "us", 12), Value(4009, "us", 13))
    assert cpu.measure("Total Inference Time") == Value(69, "us", 18)
    assert [(layer.name, layer.value) for layer in dsp.layers] == [
        ("Input OpId_2", Value(2142, "cycles", 50)),
        ("dense/MatMul:OpId_18", Value(11399, "cycles", 51)),
    ]
    assert dsp.subnets[0].value == Value(13545, "cycles", 46)


def test_a_zero_without_a_unit_is_missing_and_a_count_of_zero_is_not() -> None:
    cpu = formats.read(SNPE).data.blocks[0]
    (fact,) = [fact for fact in formats.read(SNPE).facts if fact.name == "RPC Init Time"]

    assert cpu.measure("RPC Init Time") is None
    assert (fact.value, fact.line, fact.note) == (None, 14, "printed as 0 without a unit")
    assert cpu.measure("Num times yield occurred") == Value(0, "count", 19)


def test_the_accelerators_own_time_is_preferred() -> None:
    assert formats.service_time_ns(SNPE, "DSP run").value_ns == 59_000
    assert formats.service_time_ns(SNPE, "CPU run").value_ns == 69_000
    with pytest.raises(FormatError, match="graph: got none, expected one of CPU run, DSP run"):
        formats.service_time_ns(SNPE)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("  Load: soon\n", "a.txt:2: got 'Load: soon', expected a time such as 'Init: 4009 us'"),
        ("  Load: 5\n", "a.txt:2: got 'Load: 5' without a unit, expected a time in us, or 0"),
        ("  Load: -5 us\n", "a.txt:2: got 'Load: -5 us'"),
        ("  0: x : 5 days : CPU\n", "a.txt:2: got '0: x : 5 days : CPU'"),
    ],
)
def test_a_line_of_a_block_that_says_nothing_is_refused(line: str, message: str) -> None:
    source = from_text("a.txt", "SNPE Create Statistics:\n" + line)

    with pytest.raises(FormatError, match=message):
        snpe_diagview.read(source)
    assert [note for note in snpe_diagview.read(source, lenient=True).notes if note.startswith("line 2 is skipped")]


def test_a_time_that_is_once_missing_and_once_there_is_the_one_that_is_there() -> None:
    """The mutator found it: the same name twice, first as a 0 without a unit."""
    text = "SNPE Execute Statistics (Averaged):\n  Accelerator Time: 0\n  Accelerator Time: 59 us\n"

    assert snpe_diagview.service_time(from_text("a.txt", text), ServiceQuery()).value_ns == 59_000


def test_two_runs_of_one_title_are_numbered() -> None:
    block = "Log File Created: x\nSNPE Execute Statistics (Averaged):\n  Total Inference Time: 5 us\n"
    log = snpe_diagview.read(from_text("a.txt", f"# run\n{block}# run\n{block}{block}")).data

    assert [item.title for item in log.blocks] == ["run", "run #2", "run #3"]


def test_times_of_loading_lie_within_each_other() -> None:
    report = formats.read(EXECUTORCH)

    assert report.data.event("RPC (load binary) time") == Value(16000, "us", 2)
    assert [item.id for item in report.data.events] == [1002, 1004, 100]
    assert (report.data.time("during init"), report.data.time("load()")) == (Value(219, "ms", 1), Value(383, "ms", 5))
    assert report.notes == ("the times of loading lie within each other: they do not add up",)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("x Event Data: fast\n", "a.log:1: got 'x Event Data: fast', expected an event that ends in"),
        ("Type: 1, Init Event Name: x, Event Data: 5 days\n", "a.log:1: unit: got 'days', expected one of"),
        ("[Time consuming x] y -5 ms\n", "a.log:1: got"),
        ("nothing\n", "a.log:1: got 'nothing', expected a log of ExecuTorch"),
    ],
)
def test_a_torn_event_of_executorch_is_refused(line: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        executorch_log.read(from_text("a.log", line))


def test_a_report_gives_events_with_units_and_operators() -> None:
    report = formats.read(REPORT)
    (call,) = report.data.of("BACKEND_EXECUTE")

    assert call.event("QNN (execute) time") == Value(3000, "us", 13)
    assert call.event("Accelerator (execute) time (cycles)") == Value(3000, "cycles", 10)
    assert [(part.name, part.value) for item in call.events for part in item.parts] == [
        ("fc:OpId_17 (cycles)", Value(2000, "cycles", 11))
    ]
    assert formats.samples_ns(REPORT) == (1_700_000,)
    assert [note for note in report.notes if "line 9: power-on took 29000 us, more than the whole execution" in note]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            '"unit": "COUNT"',
            '"unit": "COUNTS"',
            r":8: got an object at messages\[1\].profilingEvents\[0\], expected one",
        ),
        ('"value": 6', '"value": -6', r":8: got -6 at .*value, expected a number from 0 to 2\^63"),
        ('"value": 6', '"valeu": 6', "expected an event with 'identifier', 'unit' and 'value'"),
        ('"method": "BACKEND_EXECUTE", ', "", "expected a message with 'method'"),
        ('"messages"', '"message"', "expected a report with artifact type 'QNN_PROFILE' and 'messages'"),
    ],
)
def test_what_is_wrong_in_a_report_is_refused_by_its_place(old: str, new: str, message: str) -> None:
    text = REPORT.read_text(encoding="utf-8").replace(old, new, 1)

    with pytest.raises(FormatError, match=message):
        qnn_report.read(from_text("a.json", text))


def test_a_failed_row_states_nothing_but_why() -> None:
    npu, gpu = formats.read(BENCH).data.rows

    assert (npu.prompt_rate, npu.generated_tokens) == (Value(1600.5, "toks/sec", 2), Value(100, "tokens", 2))
    assert npu.outside_s == 10.38
    assert (gpu.prompt_rate, gpu.prompt_tokens, gpu.generated_tokens) == (None, None, None)
    assert (gpu.wall, gpu.ok, gpu.notes) == (
        Value(32.2, "s", 3),
        Value(False, "", 3),
        "json parse: expecting ',' (char 2631)",
    )


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("npu,fast,1", "a.csv:2: got 'fast', expected a number from 0, or nothing"),
        ("npu,-1,1", "a.csv:2: got '-1'"),
        ("npu,nan,1", "a.csv:2: got 'nan'"),
        ("npu,1", "a.csv:2: got 2 fields, expected 3, as the header has"),
        (",1,1", "a.csv:2: got no backend, expected a name"),
        ('npu,"1,1', "a.csv:2: got .* expected fields whose quotes are closed"),
    ],
)
def test_a_row_of_another_kind_is_refused_or_skipped(row: str, message: str) -> None:
    source = from_text("a.csv", f"backend,pp_tps,tg_tps\n{row}\n")

    with pytest.raises(FormatError, match=message):
        llm_bench_csv.read(source)
    assert [note for note in llm_bench_csv.read(source, lenient=True).notes if note.startswith("line 2 is skipped")]


def test_seconds_of_a_profile_stay_seconds() -> None:
    data = formats.read(SERVICE).data
    (profile,) = data.profiles

    assert (profile.model, profile.time_to_first_token) == ("small", Value(0.04, "s", 8))
    assert profile.num_prompt_tokens == Value(34, "tokens", 9)
    assert formats.service_time_ns(SERVICE, event="token_generation_time").value_ns == 150_000_000
    assert [note for note in formats.read(SERVICE).notes if "times of /profile are seconds" in note]


def test_a_load_refused_for_memory_says_what_it_asked_for() -> None:
    (refusal,) = formats.read(SERVICE).data.refusals

    assert (refusal.model, refusal.required) == ("large", Value(9000, "bytes", 13))
    assert refusal.effective.value == refusal.available.value - refusal.reserved.value


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"models": {}}, "expected results of a service's tests"),
        ({"summary": {"total": -1}, "models": {}}, "got -1 at summary.total"),
        (
            {"summary": {}, "models": {"m": {"r": [{"response_data": {"time_to_first_token": "soon"}}]}}},
            "expected a number such as '0.04'",
        ),
        ({"summary": {}, "models": {"m": [1]}}, r"got a list at models.m, expected an object"),
    ],
)
def test_what_is_no_result_of_tests_is_refused(document: Any, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        service_tests.read(from_text("a.json", json.dumps(document)))
