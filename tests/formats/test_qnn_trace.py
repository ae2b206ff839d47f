"""QNN traces: ticks, cycles and summaries, each with the meaning that its header gives it, whole or cut."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htpsim import formats
from htpsim.errors import FormatError
from htpsim.formats import qnn_trace
from htpsim.formats.form import Match
from htpsim.formats.qnn_trace import Trace
from htpsim.formats.qnn_trace.data import ticks_ns
from htpsim.formats.source import from_text, load
from htpsim.formats.values import Report, ServiceQuery, Value

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "formats"


def read(text: str, lenient: bool = False) -> Report:
    return qnn_trace.read(from_text("a.json", text), lenient)


def trace(name: str) -> Trace:
    data = qnn_trace.read(load(FIXTURES / name)).data
    assert isinstance(data, Trace)
    return data


def document(kind: str | None, *events: dict[str, Any], **rest: Any) -> str:
    header = {"header": {"artifact_type": kind}} if kind else {}
    return json.dumps({**header, "traceEvents": list(events), **rest})


def slice_of(name: str, start: Any, duration: Any, *, pid: int = 0, tid: int = 0, **args: Any) -> dict[str, Any]:
    args = {"graph_name": "m", **args}
    return {"name": name, "ph": "X", "pid": pid, "tid": tid, "ts": start, "dur": duration, "args": args}


WHOLE = "QNN DSP Execute"


def test_a_run_trace_is_in_ticks_of_19_2_mhz() -> None:
    data = trace("trace_run.json")
    first, second, third = data.executions

    assert (data.unit, data.version, data.artifact) == ("ticks", "1.1.0", Value("RUN_TRACE", "", 5))
    assert [item.phases[0].time_ns for item in data.executions] == [500_000, 100_000, 90_000]
    assert first.phases[0].ticks == Value(9600, "ticks", 8)
    assert first.phases[0].time == Value(500.0, "us", 8)
    assert [phase.event for phase in second.phases] == [WHOLE, "VTCM Acquire", "Resource Power On", "Graph Execute"]
    assert third.phase("Graph Execute").time_ns == 70_000  # type: ignore[union-attr]
    assert third.phase("Spill") is None
    assert [item.core for item in data.executions] == [1, 1, 1], "by the name of the thread"
    assert data.frequencies_ghz == (1.8, 1.8)
    assert (data.graphs, data.loose, data.truncated) == (("vit",), (), False)


@given(st.integers(0, 2**53))
def test_ticks_are_converted_exactly(ticks: int) -> None:
    assert abs(ticks_ns(ticks) * 12 - ticks * 625) <= 6


def test_phases_belong_to_the_execution_within_whose_time_they_lie() -> None:
    """Two graphs on two cores at once, listed in no order, and one phase outside any execution."""
    events = [
        slice_of("Graph Execute", 150, 20, tid=1, graph_name="b"),
        slice_of(WHOLE, 100, 100, tid=1, graph_name="b"),
        slice_of("Graph Execute", 10, 50, tid=0, graph_name="a"),
        slice_of("Graph Execute", 300, 50, tid=0, graph_name="a"),
        slice_of("Graph Execute", 950, 100, tid=0, graph_name="a"),
        slice_of(WHOLE, 280, 100, tid=0, graph_name="a"),
        slice_of(WHOLE, 0, 250, tid=0, graph_name="a"),
    ]
    report = read(document("RUN_TRACE", *events))
    found = [
        (item.graph, [(phase.event, phase.start.value) for phase in item.phases]) for item in report.data.executions
    ]

    assert found == [
        ("a", [(WHOLE, 0), ("Graph Execute", 10)]),
        ("b", [(WHOLE, 100), ("Graph Execute", 150)]),
        ("a", [(WHOLE, 280), ("Graph Execute", 300)]),
    ]
    assert [phase.start.value for phase in report.data.loose] == [950]
    assert report.notes[0] == "1 phases lie in no 'QNN DSP Execute' and are in no execution"


def test_ticks_that_contradict_the_stated_time_are_refused_or_noted() -> None:
    """Such as microseconds in a field of ticks."""
    text = document("RUN_TRACE", slice_of(WHOLE, 0, 411, summary_time_us=410.885))

    with pytest.raises(
        FormatError, match=r"a\.json:1: got 410.885 us for 411 ticks at traceEvents\[0\], expected 21.4"
    ):
        read(text)
    report = read(text, lenient=True)
    assert "expected 21.4062 us, as ticks run at 19.2 MHz" in report.notes[0]
    assert report.data.executions[0].phases[0].ticks.value == 411


def test_an_op_trace_counts_each_operation_once() -> None:
    data = trace("trace_op.json")
    ops = data.operations

    assert ops is not None
    assert (data.unit, ops.events, ops.distinct, ops.cycles, ops.span_cycles) == ("cycles", 10, 5, 1000, 970)
    assert [(item.name, item.runs, item.cycles) for item in ops.operations] == [
        ("q::MatMul", 2, 800), ("q::Add", 2, 140), ("DmaSet", 1, 60),
    ]  # fmt: skip
    assert data.executions == ()


def test_two_runs_of_one_operation_are_two() -> None:
    """The same operation on two threads at once, drawn for one process only."""
    events = [slice_of("Add", 5, 7, tid=tid, ID="0x1") for tid in (512, 513)]
    ops = read(document("OP_TRACE", *events)).data.operations

    assert (ops.distinct, ops.cycles) == (2, 14)


def test_a_cut_trace_gives_what_came_before() -> None:
    report = qnn_trace.read(load(FIXTURES / "trace_op_cut.json"))

    assert report.data.truncated
    assert (report.data.operations.events, report.data.operations.distinct) == (9, 5)
    assert "the file ends in the middle" in report.notes[0]


@given(st.data())
def test_a_cut_trace_states_nothing_that_the_whole_one_does_not(data: st.DataObject) -> None:
    text = (FIXTURES / "trace_run.json").read_text(encoding="utf-8")
    whole = trace("trace_run.json").executions
    try:
        cut = read(text[: data.draw(st.integers(0, len(text)))]).data
    except FormatError:
        return
    for item, other in zip(cut.executions, whole, strict=False):
        assert item.phases == other.phases[: len(item.phases)]


def test_cycles_are_no_time() -> None:
    with pytest.raises(FormatError, match=r"trace_op\.json:5: got cycles without a clock, expected a RUN_TRACE"):
        formats.service_time_ns(FIXTURES / "trace_op.json")
    with pytest.raises(FormatError, match="got cycles without a clock"):
        formats.samples_ns(FIXTURES / "trace_op.json")


def test_service_times_of_a_run_trace() -> None:
    path = FIXTURES / "trace_run.json"

    assert formats.samples_ns(path) == (500_000, 100_000, 90_000)
    assert formats.samples_ns(path, "vit", "Graph Execute") == (50_000, 80_000, 70_000)
    assert formats.service_time_ns(path, "vit", "median").value_ns == 100_000
    assert formats.service_time_ns(path, event="VTCM Acquire", statistic="max").value_ns == 10_000
    assert formats.service_time_ns(path).source == f"{path}:8 QNN DSP Execute of vit"
    with pytest.raises(FormatError, match="did you mean 'Graph Execute'"):
        formats.samples_ns(path, event="Graph execute")
    with pytest.raises(FormatError, match="graph: got 'llm', expected one of vit"):
        formats.samples_ns(path, "llm")


def test_service_times_of_a_summary() -> None:
    path = FIXTURES / "trace_summary.json"

    assert formats.service_time_ns(path).value_ns == 1_900_000
    assert formats.service_time_ns(path, event="total_inference_time").source == f"{path}:3 total_inference_time"
    assert formats.service_time_ns(FIXTURES / "trace_summary_tables.json").value_ns == 700_000
    assert formats.service_time_ns(FIXTURES / "trace_plain.json").value_ns == 1_900_000
    with pytest.raises(FormatError, match="got 'max', expected average: it has one figure"):
        formats.service_time_ns(path, statistic="max")
    with pytest.raises(FormatError, match="graph: got 'vit', expected none: a summary names no graph"):
        formats.service_time_ns(path, "vit")
    with pytest.raises(FormatError, match=r"got no execution, expected at least one event 'QNN DSP Execute'"):
        formats.samples_ns(path)


def test_a_trace_without_a_header_is_in_microseconds_by_assumption() -> None:
    report = formats.read(FIXTURES / "trace_plain.json")

    assert report.data.artifact is None
    assert [(name, value.value) for name, value in report.data.events] == [("Conv", 240), ("MatMul", 180.5)]
    assert report.data.summary.vtcm_acquire == Value(150, "us", 28)
    assert "the events add up to 420.5 us, the summary states 1900 us on the HTP" in report.notes
    (unit,) = [fact for fact in report.facts if fact.name == "unit of the events"]
    assert (unit.value, "assumed" in unit.note) == ("us", True)


def test_both_shapes_of_a_summary() -> None:
    sections, tables = trace("trace_summary.json").summary, trace("trace_summary_tables.json").summary

    assert sections is not None
    assert tables is not None
    assert (sections.total, sections.nodes) == (Value(2400, "us", 3), Value(3, "count", 13))
    assert sections.longest_node == Value("Conv", "", 15)
    assert (sections.timeline_cycles, sections.idle_percent) == (None, None)
    assert (tables.htp, tables.timeline_cycles) == (Value(700, "us", 6), Value(1_200_000, "cycles", 7))
    assert tables.idle_percent == Value(12.5, "percent", 9)
    assert tables.others == (("total_dram", Value(4096, "", 8)),)
    assert tables.total is None


@pytest.mark.parametrize(
    ("event", "refusal"),
    [
        (slice_of(WHOLE, -1, 5), r"got -1 at traceEvents\[0\]\.ts, expected a number from 0"),
        (slice_of(WHOLE, 1, -5), r"got -5 at traceEvents\[0\]\.dur, expected a number from 0"),
        (slice_of(WHOLE, 1, 5.5), r"got 5\.5 at traceEvents\[0\]\.dur, expected a whole number"),
        (slice_of(WHOLE, 1, None), r"got nothing at traceEvents\[0\]\.dur, expected a whole number"),
        (slice_of(WHOLE, 1, 2**70), r"got 1180591620717411303424 at traceEvents\[0\]\.dur, expected"),
        (
            slice_of(WHOLE, 1, 5, graph_name=None),
            r"got nothing at traceEvents\[0\]\.args\.graph_name, expected the name",
        ),
        (slice_of(WHOLE, 1, 5, summary_time_us="5"), r"got '5' at traceEvents\[0\]\.args\.summary_time_us, expected"),
        ({"ph": "X", "args": {"graph_name": "m"}}, r"got nothing at traceEvents\[0\]\.name, expected a name"),
        ({"ph": "X", "name": 5}, r"got nothing at traceEvents\[0\]\.args\.graph_name|got 5 at traceEvents\[0\]\.name"),
        ({"ph": "X", "args": 5}, r"got 5 at traceEvents\[0\]\.args, expected an object"),
    ],
)
def test_an_event_that_cannot_be_read_is_refused(event: dict[str, Any], refusal: str) -> None:
    with pytest.raises(FormatError, match=rf"^a\.json:1: {refusal}"):
        read(document("RUN_TRACE", event))


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("", r"^a\.json:1: got an empty file, expected a QNN trace"),
        ("{}", r"^a\.json:1: got '{}', expected a QNN trace with 'traceEvents', or the summary"),
        (document("GENIE_PROFILE"), r"^a\.json:1: got artifact_type 'GENIE_PROFILE', expected RUN_TRACE or OP_TRACE"),
        (document(None, slice_of("x", 1, 1, artifact_type="RUN_TRACE")), r"got artifact_type RUN_TRACE elsewhere"),
        ('{"execution_summary": {"htp_execution_time_us": -4}}', r"got -4 at execution_summary\.htp_execution_time_us"),
        ('{"execution_summary": {"htp_execution_time_us": "4"}}', r"expected a number"),
        ('{"execution_summary": {"time_us": 4, "htp_execution_time_us": 5}}', r"expected one figure for it"),
    ],
)
def test_what_is_no_trace_is_refused(text: str, refusal: str) -> None:
    with pytest.raises(FormatError, match=refusal):
        read(text)


def test_no_time_at_all_is_no_service_time() -> None:
    with pytest.raises(FormatError, match=r"^a\.json:1: got 0 ticks, expected a time above zero"):
        qnn_trace.samples(from_text("a.json", document("RUN_TRACE", slice_of(WHOLE, 1, 0))), ServiceQuery())


def test_a_second_phase_of_one_name_is_no_sample() -> None:
    events = [slice_of(WHOLE, 0, 100), slice_of("Graph Execute", 1, 2), slice_of("Graph Execute", 5, 2)]
    source = from_text("a.json", document("RUN_TRACE", *events))

    with pytest.raises(FormatError, match="got a second 'Graph Execute' of one execution"):
        qnn_trace.samples(source, ServiceQuery(event="Graph Execute"))
    assert qnn_trace.samples(source, ServiceQuery()) == (5208,)


@pytest.mark.parametrize(
    ("text", "fit"),
    [
        (document("RUN_TRACE"), Match.YES),
        (document("OP_TRACE"), Match.YES),
        (document("GENIE_PROFILE"), Match.NO),
        (document(None, metadata={"htp_execution_time_us": 5}), Match.YES),
        (document(None), Match.TRACES),
        ('{"data": {"htp_overall_summary": {}}}', Match.YES),
        ('{"dialog": {}}', Match.NO),
        ('see "traceEvents": [', Match.NO),
    ],
)
def test_recognition(text: str, fit: Match) -> None:
    assert qnn_trace.sniff(from_text("a", text)) == fit


def test_the_table_stays_short() -> None:
    ops = read(document("OP_TRACE", *(slice_of(f"op{n}", n, 1) for n in range(300))))
    runs = read(document("RUN_TRACE", *(slice_of(WHOLE, 10 * n, 5) for n in range(300))))

    assert [fact.value for report in (ops, runs) for fact in report.facts if fact.name == "not listed"] == [100, 100]
