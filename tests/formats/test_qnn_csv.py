"""QNN profiling CSV: phases, executions and operations as written, in every variant of the columns, whole or cut."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htpsim import formats
from htpsim.errors import FormatError
from htpsim.formats import qnn_csv
from htpsim.formats.form import Match
from htpsim.formats.qnn_csv import CsvLog
from htpsim.formats.source import from_text, load
from htpsim.formats.values import Report, ServiceQuery, Value

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "formats"
BASIC = (FIXTURES / "netrun_basic.csv").read_text(encoding="utf-8")
HEADER = "Msg Timestamp,Message,Time,Unit of Measurement,Timing Source,Event Level,Event Identifier\n"
RUN = "1,EXECUTE,90,US,NETRUN,ROOT,Graph 0: vit\n1,EXECUTE,80,US,BACKEND,ROOT,Accelerator (execute) time\n"


def read(text: str, lenient: bool = False) -> Report:
    return qnn_csv.read(from_text("a.csv", text), lenient)


def log(name: str) -> CsvLog:
    data = qnn_csv.read(load(FIXTURES / name)).data
    assert isinstance(data, CsvLog)
    return data


def samples(text: str, **query: str) -> tuple[int, ...]:
    return qnn_csv.samples(from_text("a.csv", text), ServiceQuery(**query))  # type: ignore[arg-type]


def test_a_basic_csv_gives_phases_and_executions() -> None:
    data = log("netrun_basic.csv")
    init = data.phase("INIT")

    assert init is not None
    assert init.event("NetRun") == Value(9000, "us", 6)
    assert init.events("Accelerator (load binary) time") == (Value(310, "us", 8), Value(290, "us", 9))
    assert init.event("Accelerator (load binary) time") is None, "two of them: which one is not said"
    assert [item.message for item in data.phases] == ["INIT", "COMPOSE GRAPHS", "DE-INIT"]
    assert data.graphs == ("prefill", "decode")
    assert [item.timestamp for item in data.executions] == [200, 400, 600, 300, 500], "by graph, not by time"
    assert data.executions[0].event("QNN (execute) time") == Value(1490, "us", 18)
    assert data.executions[0].event("RPC (execute) time") is None
    assert (data.tool_version, data.level, data.truncated) == ("v2.40.0.250101000000_1", "basic", False)
    assert data.hvx_threads == Value(4, "count", 15)
    assert (data.header_line, data.header_has_spaces, len(data.preamble)) == (5, True, 4)


def test_a_csv_without_timestamp_and_header_is_read_by_its_shape() -> None:
    data = log("netrun_no_timestamp.csv")

    assert data.missing_columns == ("Msg Timestamp",)
    assert (data.header_line, data.preamble, len(data.columns)) == (None, (), 6)
    assert data.executions[0].timestamp is None
    assert data.executions[0].event("Accelerator (execute) time (cycles)") == Value(149000, "cycles", 3)
    assert [(item.event, item.value.value) for item in data.executions[0].operations] == [
        ("_Transpose_3:OpId_9", 13800)
    ]
    assert data.level == "detailed"


def test_a_later_column_and_quoted_names_are_read() -> None:
    data = log("netrun_extra_column.csv")

    assert data.columns[-1] == "ONNX Source Ops"
    assert data.missing_columns == ()
    assert data.executions[0].operations[0].event == "MatMul, fused:OpId_7"
    assert [(item.event, item.value.value, item.value.unit) for item in data.overall] == [
        ("NetRun IPS", 333.25, "inf/sec")
    ]


def test_a_name_with_commas_needs_no_quotes_in_the_last_column() -> None:
    data = read(HEADER + RUN + "1,EXECUTE,5,CYCLES,BACKEND,SUB-EVENT,Mul, then, Add:OpId_1 (cycles)\n").data

    assert data.executions[0].operations[0].event == "Mul, then, Add:OpId_1"


def test_a_cut_detailed_csv_keeps_what_it_states_and_is_no_sample() -> None:
    data = log("netrun_detailed_cut.csv")
    (execution,) = data.executions

    assert data.cut == Value("200,EXECUTE,1590", "", 16)
    assert data.truncated
    assert not execution.complete
    assert execution.event("NetRun") == Value(25000, "us", 8)
    assert execution.event("QNN (execute) time") is None
    assert [item.value.value for item in execution.operations] == [33000, 0]
    with pytest.raises(
        FormatError, match=r"netrun_detailed_cut\.csv:8: got one execution of prefill, which is cut off"
    ):
        formats.samples_ns(FIXTURES / "netrun_detailed_cut.csv")


@given(st.integers(0, len(BASIC)))
def test_a_cut_csv_has_no_sample_that_the_whole_one_does_not(end: int) -> None:
    """The first execution has nothing to compare with, so a cut at the end of one of its lines cannot be seen."""
    whole = {item.line: item for item in read(BASIC).data.executions}
    try:
        data = read(BASIC[:end]).data
    except FormatError:
        return
    for item in data.executions:
        assert set(item.measurements) <= set(whole[item.line].measurements)
        if item.complete and item.line > 14:
            assert item == whole[item.line]


def test_the_graph_of_a_cut_row_is_told_by_its_number() -> None:
    text = BASIC + "700,EXECUTE,300,US,NETRUN,ROOT,Graph 1: dec"
    data = read(text).data

    assert data.graphs == ("prefill", "decode")
    assert [item.complete for item in data.of("decode", complete=False)] == [True, True, False]
    assert data.truncated


def test_a_file_without_a_last_line_end_may_be_whole() -> None:
    data = read(BASIC.rstrip("\n")).data

    assert not data.truncated
    assert all(item.complete for item in data.executions)


def test_service_times_are_over_whole_executions() -> None:
    path = FIXTURES / "netrun_basic.csv"

    assert formats.samples_ns(path, "prefill") == (1_400_000, 500_000, 540_000)
    assert formats.samples_ns(path, "decode", "NetRun") == (300_000, 290_000)
    assert formats.service_time_ns(path, "prefill").value_ns == 813_333
    assert formats.service_time_ns(path, "prefill", "median").value_ns == 540_000
    assert formats.service_time_ns(path, "prefill", "max", "NetRun").value_ns == 1_500_000
    assert formats.service_time_ns(path, "decode", "min").source == f"{path}:31 Accelerator (execute) time of decode"
    with pytest.raises(FormatError, match="got none, expected one of prefill, decode"):
        formats.service_time_ns(path)
    with pytest.raises(FormatError, match=r"event: got 'Netrun', expected one of .*did you mean 'NetRun'"):
        formats.service_time_ns(path, "prefill", event="Netrun")
    with pytest.raises(FormatError, match="got device 'x', expected none"):
        formats.service_time_ns(path, "prefill", device="x")


def test_an_event_that_repeats_within_an_execution_is_no_sample() -> None:
    text = HEADER + RUN + "1,EXECUTE,70,US,BACKEND,ROOT,Accelerator (execute) time\n"

    with pytest.raises(FormatError, match=r"a\.csv:4: got a second 'Accelerator \(execute\) time' of one execution"):
        samples(text)
    assert samples(text, event="NetRun") == (90_000,)


def test_cycles_and_counts_are_no_times() -> None:
    with pytest.raises(FormatError, match="event: got 'Number of HVX threads used', expected one of"):
        formats.samples_ns(FIXTURES / "netrun_basic.csv", "prefill", "Number of HVX threads used")


@pytest.mark.parametrize(("unit", "value_ns"), [("US", 90_000), ("MICROSEC", 90_000), ("MS", 90_000_000), ("NS", 90)])
def test_each_row_has_a_unit_of_its_own(unit: str, value_ns: int) -> None:
    assert samples(HEADER + RUN.replace("90,US", f"90,{unit}"), event="NetRun") == (value_ns,)


@pytest.mark.parametrize(
    ("row", "refusal"),
    [
        ("1,EXECUTE,-5,US,BACKEND,ROOT,x time", r"got time '-5', expected a number from 0"),
        ("1,EXECUTE,NaN,US,BACKEND,ROOT,x time", r"got time 'NaN', expected a number from 0"),
        ("1,EXECUTE,1e9,US,BACKEND,ROOT,x time", r"got time '1e9', expected"),
        ("1,EXECUTE," + "9" * 40 + ",US,BACKEND,ROOT,x time", r"got time '9{40}', expected .*at most 18 digits"),
        ("1,EXECUTE,٣,US,BACKEND,ROOT,x time", r"got time '٣', expected"),
        ("1,EXECUTE,5,MINUTES,BACKEND,ROOT,x time", r"unit: got 'MINUTES', expected one of .*US"),
        ("1,EXECUTE,5,US,BACKEND", r"got 5 fields: '1,EXECUTE,5,US,BACKEND', expected 7"),
        ("x,EXECUTE,5,US,BACKEND,ROOT,x time", r"got timestamp 'x', expected a whole number"),
        ("1,exec,5,US,BACKEND,ROOT,x time", r"got message 'exec', expected words in capitals"),
        ("1,EXECUTE,5,US,NETRUN,ROOT,Grph 0: vit", r"got 'Grph 0: vit', expected a graph such as 'Graph 0: vit'"),
        ("1,FINALIZE,5,US,BACKEND,ROOT,x time", r"got an event of no FINALIZE that was opened: 'x time', expected"),
        ('1,EXECUTE,5,US,BACKEND,ROOT,"x time', r"unexpected end of data\), expected fields whose quotes are closed"),
        ("x" * 70_000, r"got a line of 70000 characters, expected a row of at most 65536"),
        (HEADER.strip(), r"got message 'Message', expected|got time 'Time', expected"),
    ],
)
def test_a_row_that_cannot_be_read_is_refused_or_skipped_with_a_word(row: str, refusal: str) -> None:
    text = HEADER + RUN + row + "\n" + RUN

    with pytest.raises(FormatError, match=rf"^a\.csv:4: .*{refusal}|^a\.csv:4: {refusal}"):
        read(text)
    report = read(text, lenient=True)
    assert len(report.data.executions) == 2
    assert report.notes[0].startswith("line 4 is skipped: a.csv:4: ")


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("", r"^a\.csv:1: got an empty file, expected the header 'Msg Timestamp,Message,"),
        ("\n\nhello\n", r"^a\.csv:3: got 'hello', expected the header"),
        ("Message,Time,Event Identifier\n", r"^a\.csv:1: got a header .*expected the columns Msg Timestamp, Message"),
        (HEADER.replace("Time,", "Time,Time,", 1), r"^a\.csv:1: got a header"),
        ("1,EXECUTE,5,US,BACKEND,ROOT,x\n", r"^a\.csv:1: got an event of no EXECUTE that was opened"),
    ],
)
def test_what_is_no_such_csv_is_refused(text: str, refusal: str) -> None:
    with pytest.raises(FormatError, match=refusal):
        read(text)


def test_a_header_alone_holds_nothing() -> None:
    report = read(HEADER)

    assert report.data.executions == report.data.phases == ()
    assert [fact.value for fact in report.facts if fact.section == "EXECUTE"] == [None]
    assert "the file has a header only: nothing was measured, which is not zero" in report.notes
    with pytest.raises(FormatError, match="the file holds none"):
        samples(HEADER)


@pytest.mark.parametrize(
    ("text", "fit"),
    [
        (BASIC, Match.YES),
        ("EXECUTE,3300,US,NETRUN,ROOT,Graph 0: block\n", Match.YES),
        (HEADER, Match.TRACES),
        (HEADER + "0,BACKEND,100,US,BACKEND,ROOT,QNN (execute) time\n", Match.TRACES),
        ("a,b,c\n1,2,3\n", Match.NO),
        ("the NETRUN, time\n", Match.NO),
    ],
)
def test_recognition(text: str, fit: Match) -> None:
    assert qnn_csv.sniff(from_text("a", text)) == fit


def test_the_table_tells_mean_least_and_most() -> None:
    facts = [fact for fact in formats.read(FIXTURES / "netrun_basic.csv").facts if fact.section == "EXECUTE / prefill"]
    netrun = [(fact.value, fact.line, fact.note) for fact in facts if fact.name == "NetRun"]

    assert netrun == [(920.0, None, "mean of 3"), (620, 19, "least"), (1500, 14, "most")]
    assert [(fact.value, fact.line, fact.note) for fact in facts if fact.name.startswith("Number of HVX")] == [
        (4, 15, "each of 3")
    ]
    assert facts[0].value == 3


def test_the_table_stays_short() -> None:
    many = HEADER + RUN + "".join(f"1,EXECUTE,{n},CYCLES,BACKEND,SUB-EVENT,op:OpId_{n} (cycles)\n" for n in range(500))
    report = read(many)

    assert len(report.data.executions[0].operations) == 500
    assert len(report.facts) < 60
    assert [fact.value for fact in report.facts if fact.name == "ops not listed"] == [460]


def test_what_is_easily_misread_is_said() -> None:
    notes = formats.read(FIXTURES / "netrun_basic.csv").notes

    assert "the first execution of prefill took 1500 us, the median of the others is 630.0 us" in notes
    assert "decode waits between 20 and 100 us on the accelerator before it runs" in notes
    assert not [note for note in notes if "detailed" in note]
    assert [note for note in formats.read(FIXTURES / "netrun_no_timestamp.csv").notes if "not for calibration" in note]


def test_skipped_rows_are_counted_where_they_are_many() -> None:
    notes = read(HEADER + RUN + "broken\n" * 500, lenient=True).notes

    assert len(notes) == 101
    assert notes[-1] == "500 lines are skipped in all"
