"""Console logs of libGenie: figures of every version, failures, torn lines, executions paired from verbose lines."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htpsim import formats
from htpsim.errors import FormatError
from htpsim.formats import genie_console
from htpsim.formats.form import Match
from htpsim.formats.genie_console import ConsoleLog, ExecutionLog, Prefill
from htpsim.formats.source import from_text, load
from htpsim.formats.values import Report, ServiceQuery, Value

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "formats"
VERSION = "Using libGenie.so version 1.1.0\n"


def read(text: str, lenient: bool = False) -> Report:
    return genie_console.read(from_text("a.log", text), lenient)


def log(name: str) -> ConsoleLog:
    data = genie_console.read(load(FIXTURES / name)).data
    assert isinstance(data, ConsoleLog)
    return data


def run(text: str, lenient: bool = False) -> ExecutionLog:
    found = read(text, lenient).data.executions
    assert isinstance(found, ExecutionLog)
    return found


def samples(text: str, **query: Any) -> tuple[int, ...]:
    return genie_console.samples(from_text("a.log", text), ServiceQuery(**query))


def started(ms: float, handle: int) -> str:
    return f"Genie: {ms:8.1f}ms [  INFO ]  <I> QnnGraph_execute started. graph = {handle:#x}\n"


def finished(ms: float, graph: str, result: int = 0) -> str:
    return f"Genie: {ms:8.1f}ms [  INFO ]  <I> Graph {graph} execution finished with result {result}\n"


# Key figures


def test_the_two_lines_of_a_new_log() -> None:
    data = log("console_kpis.log")
    (query,) = data.queries

    assert (data.version, data.create_modes) == (Value("1.1.0", "", 1), (Value("From Binary List Async", "", 4),))
    assert query.init == Value(600000, "us", 12)
    assert (query.prompt_time, query.prompt_rate) == (Value(200000, "us", 13), Value(85.0, "toks/sec", 13))
    assert (query.generation_time, query.generation_rate) == (Value(750000, "us", 14), Value(12.0, "toks/sec", 14))
    assert (query.derived_prompt_tokens, query.derived_generated_tokens, query.rate_rule) == (17, 9, "n/t")
    assert query.ttft is query.prompt_tokens is query.generated_tokens is None


def test_the_two_lines_of_an_old_log() -> None:
    (query,) = log("console_old.log").queries

    assert (query.prompt_time, query.prompt_rate, query.init) == (Value(2000000, "us", 8), None, None)
    assert (query.generation_time, query.generation_rate) == (Value(8000000, "us", 9), Value(0.5, "tokens/s", 9))
    assert query.derived_generated_tokens == 4


def test_the_summary_of_a_service() -> None:
    data = log("console_service.log")
    first, second = data.queries

    assert (data.version.value, data.service.value) == ("1.19.0", "2.3.7")  # type: ignore[union-attr]
    assert (first.ttft, first.prompt_tokens) == (Value(0.12, "s", 28), Value(26, "", 30))
    assert (second.generated_tokens, second.generation_rate) == (Value(44, "", 48), Value(13.96, "toks/sec", 49))
    assert first.rate_rule == second.rate_rule == "(n-1)/t"
    assert first.derived_generated_tokens is None, "it is stated"
    assert first.token_time_ns == round(1e9 / 14.75)
    assert (data.load_total, dict(data.model_loads)["Vision"]) == (Value(0.91, "s", 17), Value(14.9, "ms", 13))


def test_what_a_prompt_or_a_model_says_is_no_figure() -> None:
    """The fixtures have figures within [PROMPT], [BEGIN] and [Response]."""
    assert [query.line for query in log("console_kpis.log").queries] == [11]
    assert [query.generated_tokens.value for query in log("console_service.log").queries] == [10, 44]  # type: ignore[union-attr]
    assert log("console_verbose.log").queries == ()


def test_two_queries_in_one_log_stay_two() -> None:
    text = VERSION + "[KPIS]:\nInit Time: 5 us\n[KPIS]:\nInit Time: 7 us\nToken Generation Time: 9 us\n"
    bare = VERSION + "Init Time: 5 us\nInit Time: 7 us\n"

    assert [(query.line, query.init.value) for query in read(text).data.queries] == [(2, 5), (4, 7)]
    assert [query.init.value for query in read(bare).data.queries] == [5, 7]


def test_a_figure_that_is_printed_in_any_spacing() -> None:
    (query,) = read(VERSION + "Prompt Processing Time: 10 us, Prompt Processing Rate: 5 toks/sec\n").data.queries

    assert (query.prompt_time.value, query.prompt_rate.value) == (10, 5)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Init Time: 5", "init time with its unit, ms or s or us"),
        ("Init Time: -5 us", "figures such as 'Init Time: 6549034 us'"),
        ("Init Time: NaN us", "figures such as"),
        ("Init Time: " + "9" * 40 + " us", "figures such as"),
        ("Init Time: 5 toks/sec", "init time with its unit"),
        ("Token Generation Rate: 5 us", "token generation rate with its unit, tok/s or"),
        ("Num Prompt Tokens: 5 us", "num prompt tokens with its unit, none"),
        ("Token generation: 5 us, 7 us", "a rate with its unit"),
    ],
)
def test_a_figure_that_cannot_be_read_is_refused_skipped_or_cut(line: str, expected: str) -> None:
    text = f"{VERSION}{line}\nPrompt Processing Time: 7 us\n"

    with pytest.raises(FormatError, match=rf"^a\.log:2: got '.*', expected {expected}"):
        read(text)
    lenient = read(text, lenient=True)
    assert lenient.notes[0].startswith("line 2 is skipped: a.log:2: ")
    assert lenient.data.queries[0].prompt_time.value == 7
    assert read(VERSION + line).notes[0] == "line 2 is cut off and not read"


@given(st.integers(0, 500))
def test_a_cut_log_states_no_figure_that_the_whole_one_does_not(end: int) -> None:
    text = (FIXTURES / "console_kpis.log").read_text(encoding="utf-8")
    whole = log("console_kpis.log").queries[0]
    try:
        data = read(text[:end]).data
    except FormatError:
        return
    for query in data.queries:
        for field in ("init", "prompt_time", "prompt_rate", "generation_time", "generation_rate"):
            # A number may be cut only where its unit is missing, and then it is not read.
            assert getattr(query, field) in (None, getattr(whole, field))


# Failures, memory, scripts


def test_a_failed_run_has_an_error_and_no_figures() -> None:
    data = log("console_failed.log")
    report = formats.read(FIXTURES / "console_failed.log")

    assert [(item.code, item.context_index) for item in data.errors] == [(1007, 2), (None, None), (14003, None)]
    assert data.contexts_before_failure == 2
    assert [item.value for item in data.failures] == ["Failure to initialize model", "Failed to create the dialog."]
    assert data.end == Value("Failed to create the dialog.", "", 9)
    assert data.queries == ()
    assert "no KPI in this log: nothing was measured, which is not zero" in report.notes
    assert [fact.value for fact in report.facts if fact.name == "error code"] == [1007, 14003]


def test_contexts_created_at_once_fail_in_no_order() -> None:
    text = (
        (FIXTURES / "console_failed.log").read_text(encoding="utf-8").replace("From Binary", "From Binary List Async")
    )

    assert read(text).data.contexts_before_failure is None


def test_a_warning_with_a_code_is_no_failure() -> None:
    """A driver that is tried and replaced says 1002 on the way."""
    data = log("console_verbose.log")

    assert data.errors == ()
    assert [item.value for item in data.failures] == ["Failed to query."]


def test_allocations_belong_to_the_node_of_the_script() -> None:
    data = log("console_script.log")

    assert data.version == Value("1.13.0", "", 2)
    assert [(item.node, item.total.value, item.buffers.value) for item in data.allocations] == [
        ("imageEncoder", 4096, 1), ("textGenerator", 8192, 2),
    ]  # fmt: skip


def test_the_memory_of_a_context_is_a_sum_of_five_terms() -> None:
    data = log("console_service.log")
    (memory,) = data.memory

    assert (memory.context, memory.graph, memory.terms_bytes) == (1, "veg", 1000 + 200 + 30 + 4 + 4096)
    assert memory.reserved == Value(5330, "bytes", 9)
    assert (memory.protection_domain, memory.graph_priority) == (Value(0, "", 10), Value(100, "", 10))
    assert (data.arch, data.hvx_threads) == (Value(81, "", 6), Value(8, "count", 5))
    assert data.left == ((1, 4, 8, data.left[0][3]),), "when context 1 is freed, four contexts are left"
    wrong = (FIXTURES / "console_service.log").read_text(encoding="utf-8").replace("to 5330", "to 5331")
    assert "5331 bytes are reserved for context 1, the five terms add up to 5330" in " ".join(read(wrong).notes)


def test_space_is_reserved_for_the_largest_graph_of_a_context() -> None:
    line = "  0.0ms [^main][3][VERBOSE]  <V> Context 1 graph {} estimated PD size ~1.00MB, "
    line += "including nonSharedWeight {} B I/O 2 B runlist 3 B spillfill 4 B \n"
    for order in (("a", 10, "b", 20), ("b", 20, "a", 10)):
        (memory,) = read(VERSION + line.format(*order[:2]) + line.format(*order[2:])).data.memory
        assert (memory.graph, memory.weights.value, memory.terms_bytes) == ("b", 20, None)


def test_settings_are_echoed_with_another_clock() -> None:
    data = log("console_verbose.log")

    assert data.whole_setting("soc_model") == Value(88, "", 21)
    assert (data.core_ids, data.weight_sharing) == ((0,), Value(True, "", 29))
    assert data.setting("absent") is None
    assert [item.value for item in data.model_files] == ["toy_1_of_2.bin", "toy_2_of_2.bin"]
    assert (data.graphs_announced, data.contexts_created) == (Value(6, "count", 5), 2)
    assert [(handle, value.value) for handle, value in data.context_loads] == [(1, 20.5), (2, 20.0)]
    assert data.most == (Value(2, "count", 45), Value(6, "count", 45))


# Torn lines


def test_a_torn_line_is_mended() -> None:
    data = log("console_verbose.log")

    assert data.torn_lines == 2
    assert data.allocations[0].total == Value(2048, "bytes", 38)
    assert data.create_modes == (Value("From Binary", "", 33),)


@pytest.mark.parametrize("cut", range(7, 68, 6))
def test_an_execution_is_read_wherever_it_is_torn(cut: int) -> None:
    line = started(1.0, 1).rstrip("\n")
    torn = f'{line[:cut]}[INFO]  "Allocated total size = 5 across 1 buffers"\n{line[cut:]}\n'
    data = read(torn + finished(3.0, "g")).data

    assert data.executions.of("g").times.total_ns == 2_000_000
    assert (data.allocations[0].total.value, data.torn_lines, data.executions.incomplete) == (5, 1, 0)


def test_two_lines_in_one_are_two() -> None:
    text = started(1.0, 1) + finished(3.0, "g").rstrip("\n") + started(3.5, 2) + finished(4.0, "h")
    found = run(text)

    assert [(item.graph, item.times.total_ns) for item in found.graphs] == [("g", 2_000_000), ("h", 500_000)]


def test_a_line_of_the_library_behind_other_words_tears_nothing() -> None:
    text = '07-16 20:46 I genie: [INFO]  "Using create From Binary"\nInit Time: 5 us\n'

    assert read(text).data.queries[0].init.value == 5


# Executions


def test_executions_are_paired_and_measured_by_one_clock() -> None:
    found = log("console_verbose.log").executions

    assert found is not None
    assert (found.executions, found.incomplete, found.ambiguous, found.failed) == (11, 0, 0, 0)
    assert (found.busy_ns, found.span_ns, round(found.utilisation or 0, 4)) == (28_400_000, 30_300_000, 0.9373)
    assert found.prefills == (Prefill(100_000_000, 108_700_000, 2, found.prefills[0].line),)
    assert (found.prefill_executions, found.decode_tokens) == (4, 3)
    assert [(length, times.total_ns, times.n) for length, times in found.steps] == [
        (8, 6_300_000, 1),
        (16, 7_600_000, 1),
    ]
    assert found.step is not None
    assert (found.step.n, found.step.mean_ns) == (2, 6_950_000)
    assert found.gap_graph is not None
    assert found.gap_step is not None
    assert (found.gap_graph.counts, found.gap_step.counts) == (((100_000, 3),), ((200_000, 3),))
    graph = found.of("token_ar1_cl16_1_of_2")
    assert graph is not None
    assert (graph.tokens, graph.context_length, graph.split) == (1, 16, 0)
    assert graph.times.counts == ((1_100_000, 1), (1_200_000, 1))


def test_a_run_that_ends_within_a_step_of_the_largest_context_was_probably_full() -> None:
    text = (FIXTURES / "console_verbose.log").read_text(encoding="utf-8")
    lines = text.split("\n")
    middle = next(index for index, line in enumerate(lines) if "129.2ms" in line)
    whole_steps = "\n".join(lines[:middle]) + "\nFailed to query.\n"
    start, end = text.index("Genie:    121.6ms"), text.index("Genie:    129.2ms")
    smaller = text[:start] + text[end:].replace("ar1_cl16", "ar1_cl8")

    assert log("console_verbose.log").ran_out_of_context
    assert not read(whole_steps).data.ran_out_of_context
    assert not read(text.replace("Failed to query.", "")).data.ran_out_of_context
    assert not read(smaller).data.ran_out_of_context


def test_executions_that_overlap_are_told_apart_where_that_is_possible() -> None:
    """Alone first, so that handles are known; then together, and finishing in another order."""
    text = started(1.0, 1) + finished(2.0, "a") + started(2.0, 2) + finished(4.0, "b")
    text += started(10.0, 1) + started(11.0, 2) + finished(13.0, "b") + finished(15.0, "a")
    found = run(text)

    assert found.overlapping
    assert [(item.graph, [ns for ns, _ in item.times.counts]) for item in found.graphs] == [
        ("a", [1_000_000, 5_000_000]), ("b", [2_000_000]),
    ]  # fmt: skip
    assert found.busy_ns == 8_000_000, "while at least one is open: 1 + 2 + 5 ms"
    assert (found.ambiguous, found.step, found.gap_step) == (0, None, None)


def test_executions_that_cannot_be_told_apart_are_left_out() -> None:
    text = started(1.0, 1) + started(2.0, 2) + finished(5.0, "a") + finished(9.0, "b")
    found = run(text)

    assert (found.executions, found.ambiguous) == (1, 1)
    assert "1 executions could not be paired and are left out" in read(text).notes


@given(st.integers(0, 2**32))
def test_known_graphs_are_paired_right_whatever_their_order(seed: int) -> None:
    """Oracle: the time of each graph as it was scheduled, on three threads at once."""
    chance = random.Random(seed)
    graphs = {handle: f"g{handle}" for handle in range(1, 4)}
    text = "".join(started(10.0 * h, h) + finished(10.0 * h + 1, name) for h, name in graphs.items())
    events: list[tuple[float, str]] = []
    spent: dict[str, list[int]] = {name: [1_000_000] for name in graphs.values()}
    for handle, name in graphs.items():
        now = 100.0
        for _ in range(4):
            begin = now + chance.randint(0, 20) / 10 + 0.01 * handle
            end = begin + chance.randint(1, 30) / 10
            events.append((begin, f"{begin:.3f}ms [  INFO ]  <I> QnnGraph_execute started. graph = {handle:#x}\n"))
            events.append((end, f"{end:.3f}ms [  INFO ]  <I> Graph {name} execution finished with result 0\n"))
            spent[name].append(round((end - begin) * 1e6))
            now = end + 0.001
    text += "".join(f"Genie: {line}" for _, line in sorted(events))
    found = run(text)

    assert (found.executions, found.ambiguous, found.incomplete) == (15, 0, 0)
    for name, times in spent.items():
        assert samples(text, graph=name) == tuple(times)


def test_what_never_finishes_or_starts_is_counted() -> None:
    text = finished(1.0, "a") + started(2.0, 1) + started(3.0, 1) + finished(5.0, "a") + started(6.0, 2)
    found = run(text)

    assert (found.executions, found.incomplete) == (1, 3)
    assert found.graphs[0].times.total_ns == 2_000_000


def test_a_failed_execution_is_no_sample() -> None:
    found = run(started(1.0, 1) + finished(2.0, "a", 1003) + started(3.0, 1) + finished(7.0, "a"))

    assert (found.executions, found.failed, found.graphs[0].times.n) == (2, 1, 1)


def test_a_clock_that_does_not_run_gives_no_times() -> None:
    text = started(0.0, 1) + finished(0.0, "a")
    found = run(text)

    assert (found.executions, found.unclocked, found.graphs) == (1, 1, ())
    assert (found.start_ns, found.end_ns, found.utilisation) == (None, None, None)
    with pytest.raises(FormatError, match="the file holds none"):
        samples(text)


def test_a_finish_before_its_start_is_refused_or_skipped() -> None:
    text = started(9.0, 1) + finished(8.5, "a") + started(10.0, 1) + finished(11.0, "a")

    with pytest.raises(
        FormatError, match=r"^a\.log:2: got a finish at 8\.5 ms, expected one not before the start in l"
    ):
        read(text)
    assert run(text, lenient=True).graphs[0].times.total_ns == 1_000_000


def test_a_second_run_in_one_log_is_another_run() -> None:
    """Its clock begins anew, and its handles mean other graphs."""
    text = started(5000.0, 1) + finished(5001.0, "a") + started(5002.0, 2)
    text += started(100.0, 1) + finished(103.0, "b")
    found = run(text)

    assert [(item.graph, item.times.total_ns) for item in found.graphs] == [("a", 1_000_000), ("b", 3_000_000)]
    assert (found.incomplete, found.overlapping) == (1, False)


def test_a_graph_that_is_no_part_of_an_llm_has_no_steps() -> None:
    found = run(started(1.0, 1) + finished(2.0, "vit") + started(2.5, 1) + finished(4.0, "vit"))

    assert (found.graphs[0].tokens, found.step, found.gap_step, found.decode_tokens) == (None, None, None, 0)


def test_service_times() -> None:
    path, kpis = FIXTURES / "console_verbose.log", FIXTURES / "console_kpis.log"

    assert formats.samples_ns(path, "token_ar1_cl16_1_of_2") == (1_200_000, 1_100_000), "in their order"
    assert formats.service_time_ns(path, "token_ar1_cl8_2_of_2", "median").value_ns == 5_000_000
    assert formats.service_time_ns(path, event="step").value_ns == 6_950_000
    assert formats.service_time_ns(path, event="step", context_length=16).value_ns == 7_600_000
    assert formats.samples_ns(path, event="step", context_length=8) == (6_300_000,)
    assert formats.samples_ns(path, event="host_gap_step") == (200_000, 200_000, 200_000)
    assert formats.service_time_ns(kpis, event="token-time").value_ns == round(1e9 / 12)
    assert formats.service_time_ns(kpis, event="prompt-processing-time").source == f"{kpis}:13 prompt-processing-time"
    for query, refusal in (
        ({}, "graph: got none, expected one of prompt_ar4_cl8_1_of_2"),
        ({"graph": "token_ar1_cl8_2_of_3"}, "did you mean 'token_ar1_cl8_2_of_2'"),
        ({"event": "step", "context_length": 32}, "context length: got '32', expected one of 16, 8"),
        ({"event": "step", "graph": "x"}, "got graph 'x' for step, expected none"),
        ({"event": "steps"}, "did you mean 'step'"),
        ({"graph": "token_ar1_cl8_2_of_2", "context_length": 8}, "got a context length for a graph"),
        ({"device": "x"}, "got device 'x', expected none"),
    ):
        with pytest.raises(FormatError, match=refusal):
            formats.service_time_ns(path, **query)  # type: ignore[arg-type]
    with pytest.raises(FormatError, match="got a graph or a context length for init-time, expected none"):
        formats.service_time_ns(kpis, "x", event="init-time")


# Recognition and bounds


@pytest.mark.parametrize(
    ("text", "fit"),
    [
        (VERSION, Match.YES),
        ("[KPIS]:\n", Match.YES),
        ('noise\n[INFO]  "Allocated total size = 5 across 1 buffers"\n', Match.YES),
        (started(1.0, 1), Match.YES),
        ("Token generation: 5 us, 7.0 tokens/s\n", Match.YES),
        ('{"log": "Using libGenie.so version 1.1.0"}', Match.NO),
        ("we measured the Token Generation Time: it was long\n", Match.NO),
        ("", Match.NO),
    ],
)
def test_recognition(text: str, fit: Match) -> None:
    assert genie_console.sniff(from_text("a", text)) == fit


def test_what_is_no_such_log_is_refused() -> None:
    with pytest.raises(FormatError, match=r"^a\.log:1: got 'hello', expected a line of libGenie, such as"):
        read("\n\nhello\n")
    with pytest.raises(FormatError, match=r"^a\.log:1: got an empty file, expected a line of libGenie"):
        read("\n")


@pytest.mark.parametrize(
    ("line", "refusal"),
    [
        ('[INFO]  "Allocated total size = 5 across 1 buffers"\n', r"a\.log:10002: got 10001 of the same kind of line"),
        ('[ERROR] "x"\n', r"got 10001 of the same kind of line, expected at most 10000"),
        ("[KPIS]:\nInit Time: 5 us\n", r"got more than 10000 queries"),
        ("Failed to query.\n", r"got 10001 of the same kind of line"),
    ],
)
def test_repetition_is_refused_where_it_would_be_kept(line: str, refusal: str) -> None:
    with pytest.raises(FormatError, match=refusal):
        read(VERSION + line * 10_100)


def test_ever_new_handles_and_graphs_are_refused() -> None:
    opens = "".join(started(1.0, handle) for handle in range(1, 1100))
    graphs = "".join(started(n, 1) + finished(n + 1, f"g{n}") for n in range(5000))

    with pytest.raises(FormatError, match=r"^a\.log:1025: got graph 1025 that starts and none that finishes"):
        read(opens)
    with pytest.raises(FormatError, match=r"got ever new graphs and times, expected at most 4096 graphs"):
        read(graphs)


def test_of_a_very_long_line_the_beginning_is_read() -> None:
    report = read(VERSION + "[PROMPT]: " + "word " * 50_000 + "[END]\nInit Time: 5 us\n")

    assert report.data.queries[0].init.value == 5
    assert "line 2 is very long: only its beginning was looked at, as of 1 lines" in report.notes
