"""qnn-profile-viewer text: sections and graphs as printed, and refusals where a line cannot be read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from htpsim.errors import FormatError
from htpsim.formats import qnn_viewer
from htpsim.formats.qnn_viewer import ViewerLog
from htpsim.formats.source import from_text, load
from htpsim.formats.values import Report, ServiceQuery, ServiceTime, Value

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "formats"
CPU = (FIXTURES / "viewer_cpu.txt").read_text(encoding="utf-8")
DETAILED = (FIXTURES / "viewer_htp_detailed.txt").read_text(encoding="utf-8")


def read(text: str, lenient: bool = False) -> Report:
    return qnn_viewer.read(from_text("a.txt", text), lenient)


def log(name: str, lenient: bool = False) -> ViewerLog:
    data = qnn_viewer.read(load(FIXTURES / name), lenient).data
    assert isinstance(data, ViewerLog)
    return data


def time_of(text: str, query: ServiceQuery) -> ServiceTime:
    return qnn_viewer.service_time(from_text("a.txt", text), query)


def test_a_cpu_log_gives_every_section() -> None:
    data = log("viewer_cpu.txt")

    assert data.init is not None
    assert data.finalize is not None
    assert data.deinit is not None
    assert data.average is not None
    assert data.init.event("NetRun") == Value(1200, "us", 14)
    assert data.finalize.event("GRAPH_FINALIZE") == Value(300, "us", 24)
    assert data.deinit.event("null") == Value(0, "us", 29)
    assert data.average.event("GRAPH_EXECUTE", "toy") == Value(10000, "us", 41)
    assert data.average.event("GRAPH_EXECUTE", "other") is None
    assert (data.backend, data.level, data.truncated) == ("CPU", "basic", False)
    assert data.tool_version == "v2.40.0.250101000000_1"
    assert len(data.versions) == 3
    assert data.hvx_threads is None


def test_a_detailed_htp_log_gives_graphs_and_operations() -> None:
    data = log("viewer_htp_detailed.txt")

    assert data.graphs == ("vit_part_1", "vit_part_2")
    assert data.average is not None
    first, second = data.average.graphs
    assert [item.event for item in first.operations] == ["Input OpId_2", "/blocks/0/attn: q:OpId_27", "Output OpId_3"]
    assert first.operations[1].value == Value(5990000, "cycles", 28)
    assert first.event("Accelerator (execute) time (cycles)") == Value(6000000, "cycles", 26)
    assert first.event("Accelerator (execute excluding wait) time") == Value(4700, "us", 33)
    assert first.event("Num times yield occured") == Value(2, "count", 24)
    assert second.event("Number of HVX threads used") is None
    assert data.hvx_threads == Value(4, "count", 21)
    assert (data.backend, data.level) == ("HTP", "detailed")
    assert data.average.event("NetRun") is None, "two graphs: an event without a graph is ambiguous"


def test_a_page_around_the_log_is_not_the_log() -> None:
    report = qnn_viewer.read(load(FIXTURES / "viewer_in_a_page.txt"))
    data = report.data

    assert data.average.event("Accelerator (execute) time") == Value(410, "us", 13)
    assert (data.first_line, data.last_line) == (5, 13)
    assert data.inferences_asked == Value(25, "count", 3)
    assert data.num_inferences is None
    assert "a command quoted in line 3 asks for 25" in report.notes[0]


def test_a_cut_log_invents_nothing() -> None:
    report = qnn_viewer.read(load(FIXTURES / "viewer_cut.txt"))
    data = report.data

    assert data.truncated
    assert data.minimum.event("NetRun") == Value(9900, "us", 18)
    assert data.minimum.event("GRAPH_EXECUTE") is None
    assert data.maximum is None
    assert [note for note in report.notes if "line 19" in note and "cut off" in note]


def test_every_cut_of_a_log_tells_only_what_is_there() -> None:
    """Cut at every character: each value that is read is one of the whole log, or the log is refused."""
    whole = {(fact.section, fact.name): fact for fact in read(CPU).facts if fact.line}
    for end in range(len(CPU)):
        try:
            report = read(CPU[:end])
        except FormatError:
            continue
        for fact in report.facts:
            if fact.line:
                expected = whole[fact.section, fact.name]
                shorter = fact.name.startswith("version of") and str(expected.value).startswith(str(fact.value))
                assert fact == expected or shorter


def test_a_log_that_lists_less_at_its_end_counts_as_cut() -> None:
    lines = CPU.split("\n")
    data = read("\n".join(lines[:56])).data

    assert data.maximum.event("NetRun") == Value(12100, "us", 56)
    assert data.maximum.event("GRAPH_EXECUTE") is None
    assert data.truncated


@pytest.mark.parametrize("lenient", [False, True])
def test_order_decoration_and_markdown_make_no_difference(lenient: bool) -> None:
    moved = re.sub(r"^-+$", "---", CPU, flags=re.MULTILINE)
    moved = re.sub(r"^(Graph|Init|Finalize)", r"--- \1", moved, flags=re.MULTILINE)
    head, overall, rest = re.split(r"(?=Execute Stats \(Overall\))|(?=Execute Stats \(Average\))", moved)
    data = read(head + rest + "\n" + overall + "```\n", lenient).data

    plain = {(section.title, section.events()) for section in read(CPU).data.sections}
    assert {(section.title, section.events()) for section in data.sections} == plain
    assert data.sections[-1].title == "Execute (Overall)"
    assert not data.truncated


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("    NetRun: 9900 us", "    NetRun: 99x0 us", "a.txt:48: got 'NetRun: 99x0 us', expected a heading, a graph,"),
        ("    NetRun: 9900 us", "    NetRun: 9900", "a.txt:48: got 'NetRun: 9900', expected a heading"),
        ("    NetRun: 9900 us", "    NetRun: -9900 us", "a.txt:48: got 'NetRun: -9900 us'"),
        ("    NetRun: 9900 us", "it was about ten ms", "a.txt:48: got 'it was about ten ms', expected a heading"),
        ("Execute Stats (Min):", "Execute Stats (Minn):", "a.txt:43: section: got 'Execute (Minn)', expected one of"),
        (
            "Execute Stats (Min):",
            "Execute Stats (Max):",
            "a.txt:51: got a second section 'Execute (Max)', expected one",
        ),
        (
            "    Backend (GRAPH_EXECUTE): 9800 us",
            "    NetRun: 9901 us",
            "a.txt:49: got a second 'NetRun', expected one of each (the first is in line 48)",
        ),
    ],
)
def test_a_line_that_cannot_be_read_is_refused_or_skipped_with_a_note(old: str, new: str, message: str) -> None:
    text = CPU.replace(old, new)

    with pytest.raises(FormatError) as refusal:
        read(text)
    assert message in str(refusal.value)

    report = read(text, lenient=True)
    number = message.split(":")[1]
    assert [note for note in report.notes if number in note and note.endswith("skipped")]
    assert report.data.average == read(CPU).data.average


@pytest.mark.parametrize("text", ["", "\n\n", "nothing of the kind"])
@pytest.mark.parametrize("lenient", [False, True])
def test_a_file_without_sections_is_refused(text: str, lenient: bool) -> None:
    with pytest.raises(FormatError, match=r"^a\.txt:1: got .*, expected a section heading"):
        read(text, lenient)


def test_a_reworded_log_is_read_by_its_words_when_asked() -> None:
    source = load(FIXTURES / "viewer_reworded.txt")

    with pytest.raises(FormatError, match=r":2: got 'NetRun IPS: 48.5 inf/sec' outside any section.*leniently only"):
        qnn_viewer.read(source)
    data = qnn_viewer.read(source, lenient=True).data
    assert data.reworded
    assert data.average.event("NetRun") == Value(20100, "us", 3)
    assert data.average.event("Accelerator (execute) time") == Value(18, "ms", 4)
    assert data.init.event("NetRun") == Value(40000, "us", 6)
    assert data.deinit.event("NetRun") == Value(9000, "us", 7)
    assert data.hvx_threads == Value(4, "count", 8)
    assert data.maximum is None


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("Average NetRun latency: 20", "line without its unit"),
        ("Average NetRun time: 21000 us", "another value"),
    ],
)
def test_a_reworded_log_that_contradicts_itself_is_refused(line: str, message: str) -> None:
    text = (FIXTURES / "viewer_reworded.txt").read_text(encoding="utf-8") + line + "\n"
    expected = {"line without its unit": "expected a time with its unit", "another value": "expected the one of line 3"}

    with pytest.raises(FormatError, match=rf"^a\.txt:9: got .*{expected[message]}"):
        read(text, lenient=True)


def test_notes_say_what_is_easily_misread() -> None:
    notes = read(DETAILED.replace("Graph 1 (vit_part_2):", "").replace("NetRun: 3100", "NetRun IPO: 3100"), True).notes

    assert notes[0].startswith("line ")
    assert [note for note in notes if "IPS is not 1/latency: 1/90.5 is 11050 us, the average NetRun is 5200 us" in note]
    assert [note for note in notes if "not for calibration" in note]
    assert not [note for note in read(CPU).notes if "IPS" in note]


def test_a_rate_is_never_taken_for_a_time() -> None:
    text = CPU.replace("    NetRun: 10100 us", "    NetRun: 10100 inf/sec")

    assert not [note for note in read(text).notes if "IPS" in note]
    with pytest.raises(FormatError, match=r"^a\.txt:40: got '10100 inf/sec', expected a time"):
        time_of(text, ServiceQuery(event="NetRun"))


@pytest.mark.parametrize(
    ("text", "query", "value_ns", "source"),
    [
        (CPU, ServiceQuery(), 10_000_000, "a.txt:41 GRAPH_EXECUTE of toy"),
        (CPU, ServiceQuery("toy", "min"), 9_800_000, "a.txt:49 GRAPH_EXECUTE of toy"),
        (CPU, ServiceQuery("toy", "max", "NetRun"), 12_100_000, "a.txt:56 NetRun of toy"),
        (DETAILED, ServiceQuery("vit_part_2"), 2_900_000, "a.txt:37 Accelerator (execute) time of vit_part_2"),
        (
            DETAILED,
            ServiceQuery("vit_part_1", event="QNN (execute) time"),
            5_180_000,
            "a.txt:34 QNN (execute) time of vit_part_1",
        ),
        ("Execute Stats (Average):\n    NetRun: 1.5 us\n", ServiceQuery(), 1500, "a.txt:2 NetRun"),
    ],
)
def test_the_service_time_of_a_graph(text: str, query: ServiceQuery, value_ns: int, source: str) -> None:
    assert time_of(text, query) == ServiceTime(value_ns, source, query.statistic)


@pytest.mark.parametrize(
    ("text", "query", "message"),
    [
        (DETAILED, ServiceQuery(), "a.txt:15: graph: got none, expected one of vit_part_1, vit_part_2"),
        (
            DETAILED,
            ServiceQuery("vit_part_3"),
            "a.txt:15: graph: got 'vit_part_3', expected one of vit_part_1, vit_par",
        ),
        (CPU, ServiceQuery("toi"), "did you mean 'toy'?"),
        (CPU, ServiceQuery(event="GRAPH_EXECUT"), "did you mean 'GRAPH_EXECUTE'?"),
        (CPU, ServiceQuery(statistic="mean"), "a.txt: statistic: got 'mean', expected one of average, max, min"),
        (CPU, ServiceQuery(device="Toy"), "a.txt: got device 'Toy', expected none"),
        (DETAILED, ServiceQuery(statistic="min"), "a.txt: got no Execute Stats for 'min', expected one of: average"),
        ("Init Stats:\n NetRun: 1 us", ServiceQuery(), "expected one of: none is there"),
        ("Execute Stats (Average):\n NetRun: 1 us", ServiceQuery("toy"), "got 'toy', but none is named"),
        ("Execute Stats (Average):\n NetRun: 0 us", ServiceQuery(), "a.txt:2: got 0 us, expected a time above zero"),
        (
            DETAILED,
            ServiceQuery("vit_part_1", event="Num times yield occured"),
            "a.txt:24: got '2 count', expected a tim",
        ),
    ],
)
def test_a_service_time_that_is_not_there_is_refused(text: str, query: ServiceQuery, message: str) -> None:
    with pytest.raises(FormatError) as refusal:
        time_of(text, query)

    assert message in str(refusal.value)
