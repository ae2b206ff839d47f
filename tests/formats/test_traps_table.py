"""Every trap of the collection of cases, clause by clause, with the test that falls into it when a reader does.

The rest of the traps: units of published tables and services, rates that are no times, staircases, power-on, error
codes, missing sections. The table below names for each clause the tests that hold it, in this folder; that each of
them is there, and that no clause of the collection is left out, is a test too.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from htpsim import formats
from htpsim.errors import FormatError
from htpsim.formats import genie_console, qnn_viewer
from htpsim.formats.source import from_text
from htpsim.formats.values import ServiceQuery

HERE = Path(__file__).resolve().parent
FIXTURES = HERE.parent / "fixtures" / "formats"
CASES = HERE.parents[1] / ".." / "shared" / "cases"

needs_files = pytest.mark.skipif(
    not (CASES / "expected.json").is_file(), reason="the folder of real files (shared/cases) is not beside this one"
)

TRAPS: dict[str, dict[str, tuple[str, ...]]] = {
    "1": {
        "RUN_TRACE ticks 19.2 MHz": (
            "test_trap_1_units_ticks_cycles_and_microseconds_are_told_apart",
            "test_trap_1_units_of_the_real_files",
        ),
        "OP_TRACE cycles": ("test_trap_1_units_ticks_cycles_and_microseconds_are_told_apart",),
        "CSV `US/CYCLES/COUNT/INF/SEC` per row": ("test_trap_1_units_each_row_of_a_csv_has_its_own",),
        "Genie `us`, `MICROSEC`, `ms`": ("test_trap_1_units_of_genie_have_several_spellings",),
        "perf.yaml us until v0.18, ms after": (
            "test_trap_1_units_of_published_tables_changed",
            "test_trap_1_units_of_the_real_tables",
        ),
        "service seconds labelled ms": ("test_trap_1_units_of_a_service_are_seconds",),
        '"MB" that is MiB': ("test_trap_1_units_megabytes_that_are_mebibytes",),
    },
    "2": {
        "includes I/O (214.9 reported vs 339 = 1/2952 us)": (
            "test_trap_2_inferences_a_second_include_more_than_the_graph",
            "test_trap_2_rates_of_the_real_files",
        ),
        "doubled on two-NSP chips (QCS9075)": (
            "test_trap_2_a_rate_that_is_twice_what_the_latency_gives_is_pointed_out",
            "test_trap_2_rates_of_the_real_files",
        ),
        "tokens/s of a chunk (397.13)": ("test_trap_2_rates_of_the_real_files",),
        "IPS is not 1/latency": ("test_trap_2_inferences_a_second_are_never_a_time",),
    },
    "3": {
        "n/t in libGenie 1.1.0": (
            "test_trap_3_tokens_a_second_are_counted_in_two_ways",
            "test_trap_3_tokens_a_second_of_the_real_files",
        ),
        "(n−1)/t in 1.19.0": (
            "test_trap_3_tokens_a_second_are_counted_in_two_ways",
            "test_trap_3_tokens_a_second_of_the_real_files",
        ),
    },
    "4": {
        "ceil(tokens/128) × chunk": (
            "test_trap_4_the_first_token_comes_after_whole_chunks",
            "test_trap_4_the_staircase_of_the_real_files",
        ),
        "perf.yaml max = 32 × min": ("test_trap_4_the_longest_first_token_is_a_whole_number_of_chunks",),
    },
    "5": {
        "detailed 292.9 ms vs basic 12.4 ms": (
            "test_trap_5_profiling_itself_costs_time",
            "test_trap_5_profiling_costs_24_times_in_the_real_files",
        ),
        "verbose console log: mean 4.0 vs median 1.1 ms": ("test_trap_5_profiling_costs_24_times_in_the_real_files",),
    },
    "6": {
        "410.9 vs 49.2 vs 37.0 us": (
            "test_trap_6_the_first_run_is_another_one",
            "test_trap_6_the_first_run_of_the_real_file",
        ),
        "Conv 66055 → 87 us": ("test_trap_6_the_first_execution_of_an_operator_is_another_one",),
        "power-on can be outside execute": ("test_trap_6_power_on_may_be_longer_than_the_execution",),
    },
    "7": {
        "I/O + KV buffers, not weights": ("test_trap_7_the_allocated_size_is_not_that_of_the_weights",),
        "the same in a good and a failing run": ("test_trap_7_the_allocated_size_is_not_that_of_the_weights",),
        "five-term sum": ("test_trap_7_the_five_terms_of_the_real_vision_model",),
    },
    "8": dict.fromkeys(
        ("1002", "1003", "1007", "5000", "5005"), ("test_trap_8_each_code_that_was_seen_says_what_threads_say",)
    )
    | {"not a specification": ("test_trap_8_error_codes_are_numbers_with_what_threads_say_of_them",)},
    "9": {
        "substring `init` also matches `de-init`": ("test_trap_9_init_is_not_de_init",),
        "last `,execute,` row wins instead of the mean": ("test_trap_9_the_mean_counts_not_the_last_row",),
        "`components[0].events[1]`": ("test_trap_9_a_query_is_known_by_its_type_not_by_its_place",),
        "torn or interleaved lines": (
            "test_trap_9_torn_and_interleaved_lines_are_read",
            "test_a_torn_line_is_mended",
            "test_two_lines_in_one_are_two",
        ),
    },
    "10": {
        "no Min/Max": ("test_trap_10_a_section_that_is_not_there_is_none",),
        "no KPI": ("test_trap_10_what_is_missing_is_not_zero",),
        "empty file": ("test_trap_10_an_empty_file_is_refused_by_every_format",),
        "header only": ("test_trap_10_what_is_missing_is_not_zero", "test_trap_10_a_header_alone_measures_nothing"),
        "`Backend (null)`": ("test_trap_10_an_event_called_null_is_not_missing",),
        "`null`": ("test_trap_10_null_and_unknown_are_no_names_and_no_times",),
        "`NULL`": ("test_trap_10_null_and_unknown_are_no_names_and_no_times",),
        "`UNKNOWN`": (
            "test_trap_10_null_and_unknown_are_no_names_and_no_times",
            "test_unknown_and_null_are_neither_times_nor_names",
        ),
    },
}
"""Item of the collection -> clause, in its words -> tests."""


def traps_of_the_collection() -> dict[str, str]:
    """Return the numbered items of the section on traps, by number."""
    text = (CASES / ("cases" + ".md")).read_text(encoding="utf-8")
    section = text[text.index("## 4. ") : text.index("## 5. ")]
    return dict(re.findall(r"^(\d+)\. (.+)$", section, re.MULTILINE))


def names_of_tests() -> set[str]:
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in HERE.glob("test_*.py"))
    return {node.name for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_test_that_the_table_names_is_there() -> None:
    named = {test for clauses in TRAPS.values() for tests in clauses.values() for test in tests}

    assert named - names_of_tests() == set()
    assert all(tests for clauses in TRAPS.values() for tests in clauses.values())


@needs_files
def test_no_trap_of_the_collection_is_left_out() -> None:
    """Each clause of the table is in the item's own words, and each part of an item is covered by one."""
    items = traps_of_the_collection()

    assert set(items) == set(TRAPS)
    for number, text in items.items():
        for clause in TRAPS[number]:
            assert clause in text, (number, clause)
        plain = re.sub(r"\*\*.*?\*\*", "", text)
        parts = [part for part in re.split(r";|, (?=[^()]*$)", plain) if len(part.strip()) > 8]
        if number in {"1", "2", "5", "6", "9"}:  # the items that are lists
            uncovered = [part for part in parts if not any(_overlap(part, clause) for clause in TRAPS[number])]
            assert uncovered == []


def _overlap(part: str, clause: str) -> bool:
    """Tell whether a part of an item and a clause of the table speak of the same."""
    words = [word for word in re.findall(r"[\w./]+", part) if len(word) > 3 or word.isdigit()]
    return clause in part or sum(word in clause for word in words) >= max(1, len(words) // 2)


def test_trap_1_units_of_published_tables_changed() -> None:
    older, newer = (formats.read(FIXTURES / f"perf_{name}.yaml").data for name in ("list", "precisions"))

    assert {row.inference_time.unit for row in older.rows if row.inference_time} == {"us"}
    assert {row.inference_time.unit for row in newer.rows if row.inference_time} == {"ms"}
    assert formats.service_time_ns(FIXTURES / "perf_precisions.yaml", "Encoder", precision="w8a8").value_ns == 3_500_000


@needs_files
def test_trap_1_units_of_the_real_tables() -> None:
    folder = CASES / "aihub-perf-yaml"
    us = formats.read(folder / "03-v0.18.0-llama_v3_8b_chat_quantized.yaml").data.rows[0].ttft_min
    ms = formats.read(folder / "05-v0.37.1-qwen2_5_7b_instruct.yaml").data.rows[0].ttft_min

    assert (us.unit, ms.unit) == ("us", "ms")
    assert 100_000 < us.value < 1_000_000
    assert 100 < ms.value < 1000


def test_trap_1_units_of_a_service_are_seconds() -> None:
    path = FIXTURES / "service_results.json"

    assert formats.read(path).data.profiles[0].time_to_first_token.unit == "s"
    assert formats.service_time_ns(path, event="time_to_first_token").value_ns == 40_000_000


def test_trap_2_inferences_a_second_include_more_than_the_graph() -> None:
    log = formats.read(FIXTURES / "viewer_cpu.txt").data

    assert log.ips.value == 99.0099
    assert formats.service_time_ns(FIXTURES / "viewer_cpu.txt", "toy").value_ns == 10_000_000
    assert 10**9 / log.ips.value > 10_000_000, "a time from the rate would be too long"


def test_trap_2_a_rate_that_is_twice_what_the_latency_gives_is_pointed_out() -> None:
    notes = formats.read(FIXTURES / "perf_precisions.yaml").notes

    assert [note for note in notes if "2 x 1/latency" in note]


@needs_files
def test_trap_2_rates_of_the_real_files() -> None:
    blog = CASES / "qnn-profile-viewer-text" / "03-blog-htp-basic-mangled.txt"
    vit = formats.read(CASES / "aihub-perf-yaml" / "08-v0.28.0-vit.yaml").notes
    llama = formats.read(CASES / "aihub-perf-yaml" / "02-v0.6.0-llama_v2_7b_chat_quantized.yaml").notes

    assert round(formats.read(blog).data.ips.value, 1) == 214.9
    assert round(10**9 / formats.service_time_ns(blog, event="NetRun").value_ns) == 339
    assert [note for note in vit if "the rate of QCS9075 (Proxy) is 2 x 1/latency" in note]
    assert [note for note in llama if "397.13 is 1024 x 1/latency" in note]


@needs_files
def test_trap_4_the_longest_first_token_is_a_whole_number_of_chunks() -> None:
    rows = formats.read(CASES / "aihub-perf-yaml" / "06-v0.46.1-llama_v3_2_3b_instruct.yaml").data.rows
    chunks = {row.context_length.value: row.ttft_max.value / row.ttft_min.value for row in rows}

    assert {length: round(count, 3) for length, count in chunks.items()} == {4096: 32.0, 1024: 8.0}


def test_trap_6_the_first_execution_of_an_operator_is_another_one() -> None:
    notes = formats.read(FIXTURES / "ortprofile_cpu.json").notes

    assert "line 5: the first execution of patch took 60000 us, later ones at most 80 us" in notes
    assert formats.samples_ns(FIXTURES / "ortprofile_cpu.json", "patch")[0] == 60_000_000, "it is not dropped"


def test_trap_6_power_on_may_be_longer_than_the_execution() -> None:
    notes = formats.read(FIXTURES / "qnnreport_detailed.json").notes

    assert [note for note in notes if "power-on took 29000 us, more than the whole execution (3000)" in note]
    assert formats.service_time_ns(FIXTURES / "qnnreport_detailed.json").value_ns == 1_700_000


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (1002, "memory or mapping"),
        (1003, "too many clients at once"),
        (1007, "memory ran short"),
        (5000, "another version or chip"),
        (5005, "VTCM setting that is too large"),
    ],
)
def test_trap_8_each_code_that_was_seen_says_what_threads_say(code: int, said: str) -> None:
    text = (FIXTURES / "console_failed.log").read_text(encoding="utf-8")
    report = genie_console.read(from_text("a.log", text.replace("1007", str(code)).replace("14003", "0")))
    fact = next(fact for fact in report.facts if fact.name == "error code")

    assert fact.value == code
    assert said in fact.note


def test_trap_10_a_section_that_is_not_there_is_none() -> None:
    text = (FIXTURES / "viewer_cpu.txt").read_text(encoding="utf-8")
    source = from_text("a.txt", text[: text.index("Execute Stats (Min)")])
    log = qnn_viewer.read(source).data

    assert log.average is not None
    assert (log.minimum, log.maximum) == (None, None)
    with pytest.raises(FormatError, match="min"):
        qnn_viewer.service_time(source, ServiceQuery(statistic="min"))


def test_trap_10_an_event_called_null_is_not_missing() -> None:
    """The tool measured 0 us for what it calls null; that is a value, and no name of a graph."""
    log = formats.read(FIXTURES / "viewer_cpu.txt").data

    assert log.deinit.event("null").value == 0
    assert "null" not in log.graphs
    with pytest.raises(FormatError, match="event"):
        qnn_viewer.service_time(
            from_text("a", "Execute Stats (Average):\n    NetRun: 5 us\n"), ServiceQuery(event="null")
        )


@pytest.mark.parametrize("name", sorted(formats.FORMATS))
def test_trap_10_an_empty_file_is_refused_by_every_format(name: str, tmp_path: Path) -> None:
    for text in ("", "\n", " \t\r\n\n", "\ufeff"):
        (tmp_path / "empty").write_text(text, encoding="utf-8", newline="")
        with pytest.raises(FormatError, match=r"empty:1(:\d+)?: got (an empty file|''|no ).*, expected "):
            formats.read(tmp_path / "empty", format=name)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ort-profile", "[]"),
        ("llm-bench-csv", "backend,pp_tps,tg_tps\n"),
        (
            "ort-qnn-csv",
            "Msg Timestamp,Message,Time,Unit of Measurement,Timing Source,Event Level,Event Identifier\n",
        ),
    ],
)
def test_trap_10_a_header_alone_measures_nothing(name: str, text: str) -> None:
    report = formats.FORMATS[name].read(from_text("a", text), False)

    assert [note for note in report.notes if "nothing was measured, which is not zero" in note]
    assert [fact for fact in report.facts if fact.unit in ("us", "ms", "s", "toks/sec")] == []
