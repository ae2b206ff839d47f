"""ONNX Runtime's profile and the CSV of its QNN execution provider."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htpsim import formats
from htpsim.errors import FormatError
from htpsim.formats import ort_profile, ort_qnn_csv
from htpsim.formats.source import from_text, load
from htpsim.formats.values import ServiceQuery, Value

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "formats"
PROFILE = FIXTURES / "ortprofile_cpu.json"
CUT = FIXTURES / "ortprofile_cut_lines.json"
TWO_RUNS = FIXTURES / "ortcsv_two_runs.csv"
EIGHT = FIXTURES / "ortcsv_eight_columns.csv"
HEADER = "Msg Timestamp,Message,Time,Unit of Measurement,Timing Source,Event Level,Event Identifier\n"


def event(**members: Any) -> dict[str, Any]:
    return {
        "cat": "Node",
        "pid": 1,
        "tid": 1,
        "dur": 5,
        "ts": 7,
        "ph": "X",
        "name": "n_kernel_time",
        "args": {},
        **members,
    }


def profile(*events: dict[str, Any]) -> ort_profile.OrtProfile:
    return ort_profile.read(from_text("a.json", json.dumps(list(events)))).data


def test_a_profile_gives_loading_runs_and_nodes_with_their_lines() -> None:
    data = formats.read(PROFILE).data

    assert (data.load, data.init) == (Value(700, "us", 2), Value(15000, "us", 3))
    assert [run.duration for run in data.runs] == [Value(61500, "us", 8), Value(1200, "us", 10)]
    assert data.providers == ("QNNExecutionProvider", "CPUExecutionProvider")
    assert [node.duration for node in data.kernels()["patch"]] == [
        Value(60000, "us", 5),
        Value(80, "us", 9),
        Value(70, "us", 11),
    ]
    assert not data.truncated


def test_a_node_belongs_to_the_run_that_it_lies_in() -> None:
    nodes = formats.read(PROFILE).data.nodes

    assert [node.run for node in nodes] == [0, 0, 0, 1, None]
    assert [node.kind for node in nodes] == ["fence before", "kernel", "kernel", "kernel", "kernel"]


def test_a_node_without_a_name_is_none_and_is_called_by_its_operator() -> None:
    (nameless,) = [node for node in formats.read(PROFILE).data.nodes if node.name is None]

    assert (nameless.label, nameless.provider) == ("Softmax", "CPUExecutionProvider")


def test_the_outer_brackets_may_be_missing() -> None:
    text = PROFILE.read_text(encoding="utf-8").strip().removeprefix("[").removesuffix("]").strip()
    excerpt = ort_profile.read(from_text("a.json", text))

    assert [node.duration.value for node in excerpt.data.nodes] == [4, 60000, 900, 80, 70]
    assert "the file does not begin with '[': an excerpt" in excerpt.notes
    assert ort_profile.sniff(from_text("a.json", text)) is formats.Match.YES


def test_a_cut_tail_gives_what_came_before() -> None:
    text = PROFILE.read_text(encoding="utf-8")
    data = ort_profile.read(from_text("a.json", text[: text.index('"ts" :90020')])).data

    assert data.truncated
    assert [run.duration.value for run in data.runs] == [61500]


def test_a_cut_line_is_read_leniently_by_what_still_stands_in_it() -> None:
    report = formats.read(CUT, lenient=True)

    assert [(node.label, node.op, node.duration, node.cut) for node in report.data.nodes] == [
        ("conv1", "Conv", Value(5000, "us", 2), True),
        ("relu", "Relu", Value(20, "us", 3), True),
    ]
    assert "2 lines are cut off; their times are read, the rest of them is not" in report.notes
    with pytest.raises(FormatError, match=r"cut_lines.json:2:211: got the end of the line, expected a string"):
        formats.read(CUT)


def test_the_time_of_a_run_or_of_a_node_is_found() -> None:
    assert formats.samples_ns(PROFILE) == (61_500_000, 1_200_000)
    assert formats.service_time_ns(PROFILE, "patch", statistic="median").value_ns == 80_000
    assert formats.service_time_ns(PROFILE, event="SequentialExecutor::Execute").value_ns == 61_000_000
    with pytest.raises(FormatError, match="did you mean 'patch'"):
        formats.service_time_ns(PROFILE, "pach")


def test_a_node_of_no_time_is_a_sample_and_no_service_time() -> None:
    source = from_text("a.json", json.dumps([event(dur=0)]))

    assert ort_profile.samples(source, ServiceQuery("n")) == (0,)
    with pytest.raises(FormatError, match="got 0 ns, expected a time above zero"):
        ort_profile.service_time(source, ServiceQuery("n"))


def test_a_profile_without_events_says_that_nothing_was_measured() -> None:
    notes = ort_profile.read(from_text("a.json", "[]")).notes

    assert "no event in the file: nothing was measured, which is not zero" in notes


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"dur": -1}, r"a.json:1: got -1 at event\[0\].dur, expected a number from 0 to 2\^63"),
        ({"dur": "5"}, r"a.json:1: got '5' at event\[0\].dur, expected a whole number"),
        ({"ts": None}, r"a.json:1: got nothing at event\[0\].ts, expected a whole number"),
        ({"name": None}, r"a.json:1: got nothing at event\[0\].name, expected text"),
        ({"args": [1]}, r"a.json:1: got a list at event\[0\].args, expected an object"),
    ],
)
def test_an_event_of_another_kind_is_refused(members: dict[str, Any], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        profile(event(**members))


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), max_size=8), st.lists(st.integers(0, 80), max_size=12)
)
def test_every_node_lies_within_the_run_it_is_given_to(runs: list[tuple[int, int]], starts: list[int]) -> None:
    events = [event(cat="Session", name="model_run", ts=ts, dur=dur) for ts, dur in runs]
    data = profile(*events, *(event(ts=ts) for ts in starts))

    for node in data.nodes:
        inside = [n for n, (ts, dur) in enumerate(runs) if ts <= node.start_us <= ts + dur]
        if node.run is not None:
            assert node.run in inside
        disjoint = all(end <= ts for (_, end), (ts, _) in zip(
            sorted((ts, ts + dur) for ts, dur in runs), sorted((ts, ts + dur) for ts, dur in runs)[1:], strict=False
        ))  # fmt: skip
        if disjoint and not inside:
            assert node.run is None


def test_a_run_of_the_csv_begins_with_its_execute_row() -> None:
    data = formats.read(TWO_RUNS).data

    assert [run.line for run in data.runs] == [3, 7]
    assert [run.event("EXECUTE").value for run in data.runs] == [3100, 2500]
    assert [item.event for item in data.runs[0].operations] == ["/blocks.0/MatMul", "input_cast"]
    assert [(item.event, item.value) for item in data.once] == [("QNN (load binary) time", Value(900, "us", 2))]


def test_without_such_rows_a_run_begins_where_an_event_comes_again() -> None:
    data = formats.read(EIGHT).data

    assert [run.event("QNN (execute) time").value for run in data.runs] == [100, 110, 102]
    assert [run.complete for run in data.runs] == [True, True, False]
    assert data.runs[0].operations[0].onnx_ops == "/patch/Conv"
    assert "the run of line 9 is cut off: it is in no mean" in formats.read(EIGHT).notes


def test_unknown_and_null_are_neither_times_nor_names() -> None:
    text = HEADER + "UNKNOWN,EXECUTE,3100,US,BACKEND,ROOT,NULL\n"
    data = ort_qnn_csv.read(from_text("a.csv", text)).data

    assert [item.event for item in data.runs[0].measurements] == ["EXECUTE"]


def test_the_time_of_a_run_of_the_csv_is_found() -> None:
    assert formats.samples_ns(TWO_RUNS) == (2_800_000, 2_200_000)
    assert formats.samples_ns(TWO_RUNS, event="EXECUTE") == (3_100_000, 2_500_000)
    assert formats.samples_ns(EIGHT) == (100_000, 110_000)
    with pytest.raises(FormatError, match="got graph 'vit', expected none: this file names no graph"):
        formats.samples_ns(TWO_RUNS, "vit")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("UNKNOWN,EXECUTE,-1,US,BACKEND,ROOT,NULL\n", "a.csv:2: got time '-1', expected a number from 0"),
        ("UNKNOWN,EXECUTE,1,DAYS,BACKEND,ROOT,NULL\n", "a.csv:2: unit: got 'DAYS', expected one of"),
        ("UNKNOWN,EXECUTE,1,US\n", "a.csv:2: got 4 fields"),
        ("soon,EXECUTE,1,US,BACKEND,ROOT,NULL\n", "a.csv:2: got timestamp 'soon', expected a whole number"),
    ],
)
def test_a_row_of_another_kind_is_refused_or_skipped(row: str, message: str) -> None:
    source = from_text("a.csv", HEADER + row)

    with pytest.raises(FormatError, match=message):
        ort_qnn_csv.read(source)
    assert len(ort_qnn_csv.read(source, lenient=True).notes) > 1


def test_the_two_writers_of_such_csv_are_told_apart() -> None:
    for path, mine in ((TWO_RUNS, True), (EIGHT, True), (FIXTURES / "netrun_extra_column.csv", False)):
        assert (ort_qnn_csv.sniff(load(path)) is formats.Match.YES) is mine
        assert formats.recognise(path) == ("ort-qnn-csv" if mine else "qnn-csv")
