"""Every real file that holds single executions gives the values that a person read in it.

The files are not part of the repository; where they are absent these tests are skipped.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from htpsim import formats
from htpsim.errors import FormatError
from htpsim.formats import genie_console
from htpsim.formats.genie_console import ConsoleLog, GraphTimes, Query
from htpsim.formats.genie_profile import GenieProfile
from htpsim.formats.qnn_csv import CsvLog
from htpsim.formats.qnn_trace import Trace
from htpsim.formats.source import load
from htpsim.formats.stream import LineStream

CASES = Path(__file__).resolve().parents[2] / ".." / "shared" / "cases"
KINDS = {
    "qnn-netrun-csv": "qnn-csv",
    "qnn-optrace": "qnn-trace",
    "genie-profile-json": "genie-profile",
    "genie-console": "genie-console",
}
EXPECTED: dict[str, dict[str, Any]] = {}
if (CASES / "expected.json").is_file():
    EXPECTED = {
        name: entry
        for name, entry in json.loads((CASES / "expected.json").read_text(encoding="utf-8")).items()
        if name.split("/")[0] in KINDS
    }

needs_files = pytest.mark.skipif(not EXPECTED, reason="the folder of real files (shared/cases) is not beside this one")
VERBOSE = "genie-console/01-specula-npu-genie-ac-verbose.log"
SERVICE = "genie-console/03-qaiappbuilder-phi4-vlm-service.log"

# Said about a file, not in it: who typed it, what a person concludes from it.
REMARKS = {"prov", "note", "backend"}


def value(thing: Any) -> Any:
    """Take the bare value out of a Value; what is missing stays None."""
    return None if thing is None else thing.value


def spread(values: list[Any]) -> dict[str, Any]:
    numbers = [item.value for item in values]
    mean = round(sum(numbers) / len(numbers), 3)
    return {"mean": mean, "min": min(numbers), "max": max(numbers), "first": numbers[0]}


PHASE_EVENTS = {
    "init_us": {"rpc": "RPC (load binary) time", "qnn_accel": "QNN accelerator (load binary) time",
                "qnn": "QNN (load binary) time"},
    "deinit_us": {"rpc": "RPC (deinit) time", "qnn_accel": "QNN Accelerator (deinit) time",
                  "qnn": "QNN (deinit) time"},
}  # fmt: skip


def phase(message: str, key: str, accelerator: str) -> Callable[[CsvLog, Any], Any]:
    def look_up(log: CsvLog, wanted: Any) -> Any:
        found = log.phase(message)
        assert found is not None
        events = {"netrun": "NetRun", **PHASE_EVENTS[key]}
        values = {name: value(found.event(event)) for name, event in events.items()}
        values["accel_n"] = len(found.events(accelerator))
        return {name: values[name] for name in wanted}

    return look_up


def csv_graphs(log: CsvLog, wanted: Any) -> Any:
    found: dict[str, dict[str, Any]] = {}
    for name, entry in wanted.items():
        whole = log.of(name)
        values: dict[str, Any] = {"n": len(whole), "n_complete": len(whole)}
        netrun = spread([item.event("NetRun") for item in whole])
        values["netrun_us"] = {key: netrun[key] for key in entry["netrun_us"]}
        for key, event in {
            "accel_us_mean": "Accelerator (execute) time",
            "excl_wait_us_mean": "Accelerator (execute excluding wait) time",
            "qnn_us_mean": "QNN (execute) time",
        }.items():
            values[key] = spread([item.event(event) for item in whole])["mean"]
        values["plus_cut_row"] = any(not item.complete for item in log.of(name, complete=False))
        found[name] = {key: values[key] for key in entry}
    return found


def only_event(event: str) -> Callable[[CsvLog, Any], Any]:
    return lambda log, _: value(log.executions[0].event(event))


def csv_execute(log: CsvLog, wanted: Any) -> Any:
    names = {
        "netrun": "NetRun",
        "rpc": "RPC (execute) time",
        "qnn_accel": "QNN accelerator (execute) time",
        "vtcm_acquire": "Time for initial VTCM acquire",
        "power_on": "Time for HVX + HMX power on and acquire",
    }
    return {key: value(log.executions[0].event(names[key])) for key in wanted}


CSV: dict[str, Callable[[CsvLog, Any], Any]] = {
    "tool_version": lambda log, _: log.tool_version,
    "preamble_lines": lambda log, _: len(log.preamble),
    "header_has_spaces": lambda log, _: log.header_has_spaces,
    "level": lambda log, _: log.level,
    "init_us": phase("INIT", "init_us", "Accelerator (load binary) time"),
    "compose_us": lambda log, _: value(log.phase("COMPOSE GRAPHS").event("NetRun")),  # type: ignore[union-attr]
    "deinit_us": phase("DE-INIT", "deinit_us", "Accelerator (deinit) time"),
    "hvx": lambda log, _: value(log.hvx_threads),
    "graphs": csv_graphs,
    "truncated": lambda log, _: log.truncated,
    "graph": lambda log, _: log.executions[0].graph,
    "execute_us": csv_execute,
    "accel_cycles": only_event("Accelerator (execute) time (cycles)"),
    "yield_count": only_event("Num times yield occured"),
    "sub_events_kept": lambda log, _: len(log.executions[0].operations),
    "sub_events_cycles_sum": lambda log, _: sum(item.value.value for item in log.executions[0].operations),
    "columns": lambda log, _: len(log.columns),
    "missing": lambda log, _: ", ".join(log.missing_columns),
    "netrun_us": only_event("NetRun"),
    "qnn_us": only_event("QNN (execute) time"),
    "qnn_accel_us": only_event("QNN accelerator (execute) time"),
    "sub_events": lambda log, _: {item.event: item.value.value for item in log.executions[0].operations},
}


def phases_us(event: str) -> Callable[[Trace, Any], Any]:
    return lambda trace, _: [value(item.phase(event).time) for item in trace.executions]  # type: ignore[union-attr]


def summary(field: str) -> Callable[[Trace, Any], Any]:
    return lambda trace, _: value(getattr(trace.summary, field))


TRACE: dict[str, Callable[[Trace, Any], Any]] = {
    "artifact": lambda trace, _: value(trace.artifact),
    "ts_dur_unit": lambda trace, _: {"ticks": "ticks @19.2 MHz"}.get(trace.unit, trace.unit),
    "executions": lambda trace, _: len(trace.executions),
    "graph": lambda trace, _: trace.graphs[0],
    "dsp_execute_us": phases_us("QNN DSP Execute"),
    "graph_execute_us": phases_us("Graph Execute"),
    "vtcm_acquire_us": phases_us("VTCM Acquire"),
    "power_on_us": phases_us("Resource Power On"),
    "freq_ghz_range": lambda trace, _: list(trace.frequencies_ghz or ()),
    "distinct_ops": lambda trace, _: trace.operations.distinct if trace.operations else None,
    "cycles_sum": lambda trace, _: trace.operations.cycles if trace.operations else None,
    "span_cycles": lambda trace, _: trace.operations.span_cycles if trace.operations else None,
    "total_inference_us": summary("total"),
    "total_us": summary("total"),
    "htp_us": summary("htp"),
    "vtcm_us": summary("vtcm_acquire"),
    "power_us": summary("power_up"),
    "overhead_us": summary("overhead"),
    "nodes": summary("nodes"),
    "avg_node_us": summary("average_node"),
    "events": lambda trace, _: {name: duration.value for name, duration in trace.events},
}


def figure(name: str) -> Callable[[GenieProfile, Any], Any]:
    return lambda profile, _: value(profile.queries[0].figure(name))


PROFILE: dict[str, Callable[[GenieProfile, Any], Any]] = {
    "version": lambda profile, _: profile.version,
    "init_us": lambda profile, _: value(profile.create.init) if profile.create else None,
    "create_us": lambda profile, _: value(profile.create.duration) if profile.create else None,
    "prompt_tokens": figure("num-prompt-tokens"),
    "prompt_rate": figure("prompt-processing-rate"),
    "ttft_us": figure("time-to-first-token"),
    "gen_tokens": figure("num-generated-tokens"),
    "gen_rate": figure("token-generation-rate"),
    "gen_time_us": figure("token-generation-time"),
    "query_us": lambda profile, _: value(profile.queries[0].duration),
    "free_us": lambda profile, _: value(profile.free.duration) if profile.free else None,
    "components": lambda profile, _: len(profile.components),
    "trace_events": lambda profile, _: profile.trace_events,
}


def ms(value_ns: int, digits: int = 3) -> float:
    return round(value_ns / 1e6, digits)


def graph_times(item: GraphTimes) -> dict[str, Any]:
    times = item.times
    figures = {"mean": times.mean_ns, "median": times.median_ns, "min": times.min_ns, "max": times.max_ns}
    return {"n": times.n, **{name: ms(figure) for name, figure in figures.items()}}


def query_figures(query: Query) -> dict[str, Any]:
    return {
        "prompt": value(query.prompt_tokens),
        "ttft_s": value(query.ttft),
        "gen": value(query.generated_tokens),
        "gen_s": value(query.generation_time),
        "rate": value(query.generation_rate),
        "prompt_rate": value(query.prompt_rate),
    }


def vision(log: ConsoleLog, _: Any) -> dict[str, Any]:
    (memory,) = log.memory
    terms = {"weights": memory.weights, "io": memory.io, "runlist": memory.run_list, "spillfill": memory.spill_fill}
    return {name: value(term) for name, term in {**terms, "vtcm": memory.vtcm, "reserved": memory.reserved}.items()}


def first_query(field: str) -> Callable[[ConsoleLog, Any], Any]:
    def look_up(log: ConsoleLog, _: Any) -> Any:
        found = getattr(log.queries[0], field) if log.queries else None
        return found if isinstance(found, int) else value(found)

    return look_up


def run_of(log: ConsoleLog) -> genie_console.ExecutionLog:
    assert log.executions is not None
    return log.executions


def ending(log: ConsoleLog, _: Any) -> str:
    return f"{value(log.end)}{' (context full)' if log.ran_out_of_context else ''}"


CONSOLE: dict[str, Callable[[ConsoleLog, Any], Any]] = {
    "libgenie": lambda log, _: value(log.version),
    "service": lambda log, _: value(log.service),
    "soc_model": lambda log, _: value(log.whole_setting("soc_model")),
    "core_ids": lambda log, _: list(log.core_ids),
    "perf_profile": lambda log, _: f"{value(log.setting('perf_profile'))} (enum)",
    "weight_sharing": lambda log, _: value(log.weight_sharing),
    "ctx_bins": lambda log, _: len(log.model_files),
    "contexts": lambda log, _: log.contexts_created,
    "graphs": lambda log, _: value(log.graphs_announced),
    "alloc_total_bytes": lambda log, _: value(log.allocations[0].total) if log.allocations else None,
    "alloc_buffers": lambda log, _: value(log.allocations[0].buffers),
    "executions": lambda log, _: run_of(log).executions,
    "prefill_executions": lambda log, _: run_of(log).prefill_executions,
    "prefill_chunks": lambda log, _: run_of(log).prefills[0].chunks,
    "prefill_ms": lambda log, _: [ms(run_of(log).prefills[0].start_ns), ms(run_of(log).prefills[0].end_ns)],
    "decode_tokens": lambda log, _: run_of(log).decode_tokens,
    "decode_step_ms_mean": lambda log, _: ms(run_of(log).step.mean_ns),  # type: ignore[union-attr]
    "busy_ms": lambda log, _: ms(run_of(log).busy_ns),
    "span_ms": lambda log, _: ms(run_of(log).span_ns or 0),
    "util": lambda log, _: round(run_of(log).utilisation or 0, 4),
    "end": ending,
    "incomplete_executions": lambda log, _: run_of(log).incomplete + run_of(log).ambiguous,
    "per_graph_ms": lambda log, _: {item.graph: graph_times(item) for item in run_of(log).graphs},
    "arch": lambda log, _: f"v{value(log.arch)}",
    "hvx": lambda log, _: value(log.hvx_threads),
    "vision_graph": lambda log, _: log.memory[0].graph,
    "vision_bytes": vision,
    "vision_init_ms": lambda log, _: value(dict(log.model_loads)["Vision"]),
    "load_total_s": lambda log, _: value(log.load_total),
    "llm_alloc_total_bytes": lambda log, _: value(log.allocations[0].total) if log.allocations else None,
    "queries": lambda log, _: [query_figures(query) for query in log.queries],
    # What is left when the vision model's own context, the first, is freed.
    "llm_contexts": lambda log, _: {freed: contexts for freed, contexts, _, _ in log.left}[1],
    "llm_graphs": lambda log, _: {freed: graphs for freed, _, graphs, _ in log.left}[1],
    "graph_priority": lambda log, _: value(log.memory[0].graph_priority),
    "init_us": first_query("init"),
    "prompt_us": first_query("prompt_time"),
    "prompt_rate": first_query("prompt_rate"),
    "gen_us": first_query("generation_time"),
    "gen_rate": first_query("generation_rate"),
    "derived_prompt_tokens": first_query("derived_prompt_tokens"),
    "derived_gen_tokens": first_query("derived_generated_tokens"),
    "kpis": lambda log, _: log.queries or None,
    "error": lambda log, _: log.errors[0].code,
    "context_index": lambda log, _: log.errors[0].context_index,
    "second_error": lambda log, _: [item.code for item in log.errors if item.code][1],
    "contexts_created": lambda log, _: log.contexts_before_failure,
    "models": lambda log, _: [
        {"node": item.node, "alloc": item.total.value, "buffers": item.buffers.value} for item in log.allocations
    ],
    "create": lambda log, _: value(log.create_modes[0]),
}

MAPPINGS: dict[str, dict[str, Callable[[Any, Any], Any]]] = {
    "qnn-csv": CSV,
    "qnn-trace": TRACE,
    "genie-profile": PROFILE,
    "genie-console": CONSOLE,
}


@cache
def report_of(name: str) -> formats.Report:
    """Read a file once for all tests; a report cannot change."""
    return formats.read(CASES / name)


@pytest.fixture
def verbose() -> formats.Report:
    return report_of(VERBOSE)


@needs_files
@pytest.mark.parametrize("name", EXPECTED)
def test_every_expected_value_is_read(name: str) -> None:
    report = report_of(name)
    mapping = MAPPINGS[report.format]
    wanted = {key: held for key, held in EXPECTED[name].items() if key not in REMARKS}

    assert report.format == KINDS[name.split("/", maxsplit=1)[0]]
    assert {key: mapping[key](report.data, held) for key, held in wanted.items()} == wanted


@needs_files
@pytest.mark.parametrize("name", EXPECTED)
def test_every_expected_key_is_mapped(name: str) -> None:
    mapping = MAPPINGS[KINDS[name.split("/", maxsplit=1)[0]]]

    assert set(EXPECTED[name]) - REMARKS - set(mapping) == set()


@needs_files
def test_the_backend_that_is_no_htp_leaves_no_trace_of_one() -> None:
    """A log of the CPU backend, as its remark says: no device, no context, no allocation."""
    name = "genie-console/13-aihubmodels80-old-kpi-format.log"
    log = formats.read(CASES / name).data

    assert "CPU" in EXPECTED[name]["backend"]
    assert (log.contexts_created, log.allocations, log.settings, log.arch) == (0, (), (), None)


@needs_files
@pytest.mark.parametrize("name", EXPECTED)
def test_every_line_number_points_at_its_value(name: str) -> None:
    """A value's own digits or text stand in its line, or in an event's some lines after where it starts."""
    lines = load(CASES / name).lines
    report = report_of(name)
    reach = 12 if "SYNTHETIC" in name else 1

    stated = [fact for fact in report.facts if fact.line is not None and not fact.note.startswith("derived")]
    assert stated
    for fact in stated:
        text = "\n".join(lines[fact.line - 1 : fact.line - 1 + reach])  # type: ignore[operator]
        shown = str(fact.value).lower() if isinstance(fact.value, bool) else str(fact.value)
        assert shown in text or shown.removesuffix(".0") in text, fact


@needs_files
def test_ticks_and_stated_microseconds_agree_in_every_event() -> None:
    trace = formats.read(CASES / "qnn-optrace/01-qcom_htp-runtrace-v1.1.0.json").data
    phases = [phase for item in trace.executions for phase in item.phases]

    assert len(phases) == 12
    for phase in phases:
        assert phase.time.value == pytest.approx(phase.time_ns / 1000, rel=1e-5, abs=1e-3)
    starts = [round(item.phases[0].start.value / 19.2e3, 2) for item in trace.executions]
    assert starts == [0.0, 69.95, 121.64], "ms, as the note on the file says"


@needs_files
def test_decode_steps_by_context_tier(verbose: formats.Report) -> None:
    run = verbose.data.executions

    assert {length: ms(times.mean_ns, 2) for length, times in run.steps} == {
        1024: 39.06, 2048: 40.98, 3072: 42.95, 4096: 46.53,
    }  # fmt: skip
    assert run.of("token_ar1_cl1024_1_of_4").times.n == 479
    assert (run.overlapping, run.failed, run.unclocked) == (False, 0, 0)


@needs_files
def test_the_lines_of_a_log_give_what_its_text_gives(verbose: formats.Report) -> None:
    streamed = genie_console.read(LineStream(CASES / VERBOSE))

    assert streamed == verbose


@needs_files
def test_single_executions_come_in_their_order(verbose: formats.Report) -> None:
    graph = "token_ar1_cl1024_1_of_4"
    found = formats.samples_ns(CASES / VERBOSE, graph)
    times = verbose.data.executions.of(graph).times

    assert (len(found), sum(found), sorted(set(found))) == (479, times.total_ns, [ns for ns, _ in times.counts])
    assert found[0] == times.first_ns == 1_200_000


@needs_files
@pytest.mark.parametrize(
    ("name", "query", "value_ns"),
    [
        ("qnn-netrun-csv/01-specula-clean2-basic-first16k.csv", {"graph": "token_ar1_cl512_2_of_4"}, 6_972_000),
        ("qnn-netrun-csv/01-specula-clean2-basic-first16k.csv",
         {"graph": "prompt_ar128_cl1024_2_of_4", "event": "NetRun"}, 13_139_250),
        ("qnn-netrun-csv/04-tiny_block_decode-no-timestamp-EXCERPT.csv", {}, 1_851_000),
        ("qnn-optrace/01-qcom_htp-runtrace-v1.1.0.json", {"statistic": "median"}, 49_167),
        ("qnn-optrace/01-qcom_htp-runtrace-v1.1.0.json", {"event": "Graph Execute", "statistic": "min"}, 29_323),
        ("qnn-optrace/04-modelinsider-qhas_summary-SYNTHETIC.json", {}, 2_000_000),
        ("genie-profile-json/01-xiaomi15-llama3.2-1b-qnn2.36.json", {"event": "time-to-first-token"}, 531_665_000),
        ("genie-profile-json/01-xiaomi15-llama3.2-1b-qnn2.36.json", {"event": "token_time"}, 25_957_895),
        (SERVICE, {"event": "time-to-first-token", "statistic": "max"}, 1_710_000_000),
        (SERVICE, {"event": "token-time", "statistic": "min"}, 60_975_610),
        ("genie-console/04-aihubapps-readme-kpis-v1.1.0.log", {"event": "prompt-processing-time"}, 196_067_000),
    ],
)  # fmt: skip
def test_service_times_of_real_files(name: str, query: dict[str, Any], value_ns: int) -> None:
    found = formats.service_time_ns(CASES / name, **query)

    assert found.value_ns == value_ns
    assert found.source.startswith(f"{CASES / name}:")


@needs_files
@pytest.mark.parametrize(
    ("name", "refusal"),
    [
        (
            "qnn-netrun-csv/03-specula-out3-detailed-truncated.csv",
            r":35: got one execution of prompt_ar128_cl512_2_of_4",
        ),
        ("qnn-optrace/02-qcom_htp-optrace-first-events-TRUNCATED.json", r":13: got cycles without a clock"),
        ("genie-profile-json/04-genie-trace-variant.json", r"the file holds none"),
        ("genie-console/05-aihubapps148-err5000.log", r"the file holds none"),
    ],
)
def test_what_holds_no_time_gives_none(name: str, refusal: str) -> None:
    with pytest.raises(FormatError, match=refusal):
        formats.service_time_ns(CASES / name)


@needs_files
@pytest.mark.parametrize("path", sorted((CASES / "ort-qnn-ep-csv").glob("*.csv")), ids=lambda path: path.name)
def test_a_csv_of_onnx_runtime_is_not_taken_for_one_of_the_tools(path: Path) -> None:
    """The columns are the same; the rows that the tool itself measures are not there."""
    from htpsim.formats import qnn_csv

    assert qnn_csv.sniff(load(path)) < formats.Match.YES
    with pytest.raises(FormatError, match=r":2: got an event of no \w+ that was opened"):
        qnn_csv.read(load(path))
