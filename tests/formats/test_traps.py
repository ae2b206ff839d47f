"""The traps that people fell into with these files, one test each; the numbers are those of the collection of cases.

Each is shown on a small file of ours, and, where the real file is at hand, on the real one.
"""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

import pytest

from htpsim import formats
from htpsim.errors import FormatError
from htpsim.formats import genie_console, genie_profile, qnn_csv
from htpsim.formats.genie_console import ExecutionLog
from htpsim.formats.source import from_text
from htpsim.formats.values import Value

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "formats"
CASES = Path(__file__).resolve().parents[2] / ".." / "shared" / "cases"

needs_files = pytest.mark.skipif(
    not (CASES / "expected.json").is_file(), reason="the folder of real files (shared/cases) is not beside this one"
)
RUN_TRACE = CASES / "qnn-optrace" / "01-qcom_htp-runtrace-v1.1.0.json"
OP_TRACE = CASES / "qnn-optrace" / "02-qcom_htp-optrace-first-events-TRUNCATED.json"
BASIC = CASES / "qnn-netrun-csv" / "01-specula-clean2-basic-first16k.csv"
DETAILED = CASES / "qnn-netrun-csv" / "03-specula-out3-detailed-truncated.csv"
PROFILE = CASES / "genie-profile-json" / "01-xiaomi15-llama3.2-1b-qnn2.36.json"
VERBOSE = CASES / "genie-console" / "01-specula-npu-genie-ac-verbose.log"
SERVICE = CASES / "genie-console" / "03-qaiappbuilder-phi4-vlm-service.log"


@cache
def verbose_run() -> ExecutionLog:
    """Read the long log once for all tests."""
    found = formats.read(VERBOSE).data.executions
    assert isinstance(found, ExecutionLog)
    return found


def test_trap_1_units_ticks_cycles_and_microseconds_are_told_apart() -> None:
    units = {
        name: formats.read(FIXTURES / f"trace_{name}.json").data.unit for name in ("run", "op", "plain", "summary")
    }

    assert units == {"run": "ticks", "op": "cycles", "plain": "us", "summary": ""}
    assert formats.samples_ns(FIXTURES / "trace_run.json")[0] == 500_000, "9600 ticks are 500 us, not 9.6 ms"


def test_trap_1_units_each_row_of_a_csv_has_its_own() -> None:
    execution = formats.read(FIXTURES / "netrun_detailed_cut.csv").data.executions[0]

    assert {item.value.unit for item in execution.measurements} == {"us", "count", "cycles"}
    assert formats.read(FIXTURES / "netrun_extra_column.csv").data.overall[0].value.unit == "inf/sec"


def test_trap_1_units_of_genie_have_several_spellings() -> None:
    pipeline = formats.read(FIXTURES / "profile_pipeline.json").data.queries[2]
    spelled = {item.unit_written: item.value.unit for item in pipeline.figures}

    assert spelled == {"NONE": "", "ms": "ms", "MICROSEC": "us", "TPS": "toks/sec"}


def test_trap_1_units_megabytes_that_are_mebibytes() -> None:
    notes = formats.read(FIXTURES / "console_service.log").notes

    assert [note for note in notes if "MiB, which the log calls MB" in note]


@needs_files
def test_trap_1_units_of_the_real_files() -> None:
    (memory,) = formats.read(SERVICE).data.memory

    assert formats.read(RUN_TRACE).data.executions[0].phases[0].time_ns == 410_885
    assert formats.read(OP_TRACE).data.unit == "cycles"
    assert round(memory.reserved.value / 2**20, 2) == 460.45
    assert round(memory.reserved.value / 10**6, 2) == 482.81, "which is not the ~460.45 MB that the log says"


def test_trap_2_inferences_a_second_are_never_a_time() -> None:
    """A rate row of the CSV is neither an execution nor an event of one."""
    data = formats.read(FIXTURES / "netrun_extra_column.csv").data

    assert len(data.executions) == 1
    assert "NetRun IPS" not in data.executions[0].names
    with pytest.raises(FormatError, match="event: got 'NetRun IPS', expected one of"):
        formats.service_time_ns(FIXTURES / "netrun_extra_column.csv", event="NetRun IPS")


def test_trap_3_tokens_a_second_are_counted_in_two_ways() -> None:
    older = formats.read(FIXTURES / "console_kpis.log").data.queries[0]
    newer = formats.read(FIXTURES / "console_service.log").data.queries[0]

    assert (older.rate_rule, older.derived_generated_tokens) == ("n/t", 9)
    assert newer.rate_rule == "(n-1)/t"
    text = "Using libGenie.so version {}\nToken Generation Time: 750000 us, Token Generation Rate: 12.0 toks/sec\n"
    derived = {
        version: genie_console.read(from_text("a", text.format(version))).data.queries[0].derived_generated_tokens
        for version in ("1.17.0", "1.18.0", "1.19.0")
    }
    assert derived == {"1.17.0": 9, "1.18.0": None, "1.19.0": 10}, "of releases in between it is not known"


@needs_files
def test_trap_3_tokens_a_second_of_the_real_files() -> None:
    kpis = formats.read(CASES / "genie-console" / "04-aihubapps-readme-kpis-v1.1.0.log").data.queries[0]
    service = formats.read(SERVICE).data.queries

    assert (kpis.derived_prompt_tokens, kpis.derived_generated_tokens) == (17, 9)
    assert [query.rate_rule for query in service] == ["(n-1)/t"] * 3
    assert "token-generation-rate is n/t" in " ".join(formats.read(PROFILE).notes)


def test_trap_4_the_first_token_comes_after_whole_chunks() -> None:
    """Chunks are counted by the graphs that ran, not by the tokens of the prompt."""
    (prefill,) = formats.read(FIXTURES / "console_verbose.log").data.executions.prefills

    assert prefill.chunks == 2
    assert prefill.end_ns - prefill.start_ns == 8_700_000


@needs_files
def test_trap_4_the_staircase_of_the_real_files() -> None:
    query = formats.read(PROFILE).data.queries[0]
    chunks = math.ceil(query.figure("num-prompt-tokens").value / 128)
    (prefill,) = verbose_run().prefills

    assert (chunks, round(query.figure("time-to-first-token").value / chunks)) == (7, 75_952)
    assert (prefill.chunks, (prefill.end_ns - prefill.start_ns) // prefill.chunks) == (5, 61_760_000)


def test_trap_5_profiling_itself_costs_time() -> None:
    detailed = formats.read(FIXTURES / "netrun_no_timestamp.csv").notes
    verbose = formats.read(FIXTURES / "console_verbose.log").notes

    assert [note for note in detailed if "profiling was detailed" in note and "not for calibration" in note]
    assert [note for note in verbose if "verbose logging slows the run: take medians, not means" in note]
    assert not [note for note in formats.read(FIXTURES / "netrun_basic.csv").notes if "not for calibration" in note]


@needs_files
def test_trap_5_profiling_costs_24_times_in_the_real_files() -> None:
    detailed = formats.read(DETAILED).data.executions[0].event("NetRun").value
    basic = formats.samples_ns(BASIC, "prompt_ar128_cl512_2_of_4", "NetRun")
    graph = verbose_run().of("token_ar1_cl1024_1_of_4")
    assert graph is not None
    times = graph.times

    assert round(detailed * 1000 * len(basic) / sum(basic), 1) == 23.6
    assert (round(times.mean_ns / 1e6, 1), times.median_ns) == (4.0, 1_100_000)
    assert times.mean_ns > 3 * times.median_ns


def test_trap_6_the_first_run_is_another_one() -> None:
    trace = formats.read(FIXTURES / "trace_run.json").notes
    csv = formats.read(FIXTURES / "netrun_basic.csv").notes

    assert (
        "the first execution of vit took 500.0 us, 400.0 us of it power-on; the median of the others is 95.0 us"
        in trace
    )
    assert "the first execution of prefill took 1500 us, the median of the others is 630.0 us" in csv
    assert formats.service_time_ns(FIXTURES / "trace_run.json", statistic="median").value_ns == 100_000
    assert formats.samples_ns(FIXTURES / "trace_run.json")[0] == 500_000, "it is not dropped behind one's back"


@needs_files
def test_trap_6_the_first_run_of_the_real_file() -> None:
    assert [round(value / 1000, 1) for value in formats.samples_ns(RUN_TRACE)] == [410.9, 49.2, 37.0]


def test_trap_7_the_allocated_size_is_not_that_of_the_weights() -> None:
    """It is the same in a run that works and in one that fails; what is needed is a sum of five terms."""
    failed, service = formats.read(FIXTURES / "console_failed.log"), formats.read(FIXTURES / "console_service.log")

    assert [note for note in failed.notes if "I/O and KV cache, not of the weights" in note]
    assert service.data.memory[0].terms_bytes == service.data.memory[0].reserved.value == 5330
    (allocated,) = [fact for fact in failed.facts if fact.name == "allocated"]
    assert allocated.note == "I/O and KV cache, not the weights"


@needs_files
def test_trap_7_the_five_terms_of_the_real_vision_model() -> None:
    (memory,) = formats.read(SERVICE).data.memory

    assert memory.terms_bytes == memory.reserved.value == 482_812_160


def test_trap_8_error_codes_are_numbers_with_what_threads_say_of_them() -> None:
    facts = [fact for fact in formats.read(FIXTURES / "console_failed.log").facts if fact.name == "error code"]

    assert [(fact.value, fact.line) for fact in facts] == [(1007, 5), (14003, 7)]
    assert facts[0].note == "seen where memory ran short; so issue threads say"
    assert facts[1].note == "", "of this one nothing was seen"


def test_trap_9_init_is_not_de_init() -> None:
    data = formats.read(FIXTURES / "netrun_basic.csv").data

    assert data.phase("INIT").event("NetRun") == Value(9000, "us", 6)
    assert data.phase("DE-INIT").event("NetRun") == Value(700, "us", 12)


def test_trap_9_the_mean_counts_not_the_last_row() -> None:
    assert formats.service_time_ns(FIXTURES / "netrun_basic.csv", "prefill", event="NetRun").value_ns == 920_000


def test_trap_9_a_query_is_known_by_its_type_not_by_its_place() -> None:
    """components[0].events[1] is a LoRA switch in one file and the whole of a pipeline in another."""
    dialog, pipeline = (formats.read(FIXTURES / f"profile_{name}.json").data for name in ("dialog", "pipeline"))

    assert dialog.components[0].events[1].type == "GenieDialog_applyLora"
    assert [event.type for event in dialog.queries] == ["GenieDialog_query"] * 2
    assert pipeline.components[0].events[1].figure("time-to-first-token") is None
    assert formats.samples_ns(FIXTURES / "profile_pipeline.json", event="time-to-first-token") == (3_500_000,)


def test_trap_9_torn_and_interleaved_lines_are_read() -> None:
    data = formats.read(FIXTURES / "console_verbose.log").data

    assert (data.torn_lines, data.allocations[0].total.value) == (2, 2048)
    assert data.most == (Value(2, "count", 45), Value(6, "count", 45))


def test_trap_9_operations_are_drawn_twice_and_counted_once() -> None:
    ops = formats.read(FIXTURES / "trace_op.json").data.operations

    assert (ops.events, ops.distinct, ops.cycles) == (10, 5, 1000)


def test_trap_9_rows_stand_by_graph_not_by_time() -> None:
    stamps = [item.timestamp for item in formats.read(FIXTURES / "netrun_basic.csv").data.executions]

    assert stamps != sorted(stamps)
    assert formats.samples_ns(FIXTURES / "netrun_basic.csv", "decode", "NetRun") == (300_000, 290_000)


def test_trap_9_two_clocks_in_one_log_are_not_mixed() -> None:
    """The keys of the settings are stamped 0.4 ms after lines stamped 44.7 ms."""
    data = formats.read(FIXTURES / "console_verbose.log").data

    assert data.executions.incomplete == 0
    assert [value.value for _, value in data.context_loads] == [20.5, 20.0]
    assert formats.read(FIXTURES / "console_service.log").data.context_loads == (), "its clock stands still"


def test_trap_10_what_is_missing_is_not_zero() -> None:
    header_only = "Msg Timestamp, Message, Time, Unit of Measurement, Timing Source, Event Level, Event Identifier\n"
    csv = qnn_csv.read(from_text("a.csv", header_only))
    csv_missing = [fact.value for fact in csv.facts if fact.section == "EXECUTE"]
    failed = formats.read(FIXTURES / "console_failed.log")
    trace = formats.read(FIXTURES / "profile_trace.json")

    assert csv_missing == [None]
    assert csv.data.phase("INIT") is None
    assert [fact.value for fact in failed.facts if fact.name == "key figures"] == [None]
    assert [fact.value for fact in trace.facts if fact.name == "key figures"] == [None]
    for report in (csv, failed, trace):
        assert [note for note in report.notes if "which is not zero" in note]
    assert 0 not in [fact.value for report in (csv, failed, trace) for fact in report.facts]


def test_trap_10_null_and_unknown_are_no_names_and_no_times() -> None:
    text = (FIXTURES / "netrun_extra_column.csv").read_text(encoding="utf-8")
    data = qnn_csv.read(from_text("a.csv", text)).data
    nulls = genie_profile.read(from_text("a.json", '{"components": [{"events": [{"type": null, "duration": null}]}]}'))

    assert [item.timestamp for item in data.executions] == [None]
    assert data.phase("INIT").event("NetRun") == Value(50, "us", 2)
    assert nulls.data.events[0].duration is None


@pytest.mark.parametrize("name", ["qnn-csv", "qnn-trace", "genie-profile", "genie-console"])
def test_trap_10_an_empty_file_is_refused_by_name(name: str, tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("")

    with pytest.raises(FormatError, match=r"empty:1: got an empty file, expected "):
        formats.read(tmp_path / "empty", format=name)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("name", ["netrun_basic.csv", "trace_run.json", "profile_dialog.json", "console_service.log"])
def test_encodings_and_line_ends_change_nothing(name: str, line_end: str, encoding: str, tmp_path: Path) -> None:
    copy = tmp_path / name
    copy.write_bytes((FIXTURES / name).read_text(encoding="utf-8").replace("\n", line_end).encode(encoding))

    assert formats.read(copy).data == formats.read(FIXTURES / name).data
