"""Trace files: both forms say the same, and what is wrong with one is said with its line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htpsim import formats
from htpsim.errors import FormatError, HtpsimError
from htpsim.formats.source import from_text
from htpsim.formats.trace import WRITERS, parse_trace, read_trace, sniff, write_trace
from htpsim.formats.trace_records import EVENT_KINDS
from htpsim.formats.trace_text import write_chrome, write_lines
from htpsim.invariants import Trace
from htpsim.testing import traces
from tests.invariants.hand import guarded, trace

HEADER = '{"htpsim_trace": 1, "source": "test"}'
CHROME = '{"otherData": {"htpsim_trace": 1}, "traceEvents": ['
CALL = '{"ev": "call", "t": 5, "id": 0, "thread": "a"}'


def same(one: Trace, two: Trace) -> bool:
    """Compare field by field, so that a difference is shown where it is."""
    for name in Trace.__dataclass_fields__:
        assert getattr(one, name) == getattr(two, name), name
    return True


@pytest.mark.parametrize("form", WRITERS)
@settings(max_examples=15)
@given(made=traces())
def test_what_is_written_is_read_back(form: str, made: Trace) -> None:
    text = "\n".join(WRITERS[form](made))  # type: ignore[index]
    source = from_text("trace", text)

    read, notes = parse_trace(source)

    assert same(read, made)
    assert notes == []
    assert formats.recognise_source(source).name == "htpsim-trace"


@pytest.mark.parametrize("name", ["trace.jsonl", "trace.json", "trace.ndjson", "trace"])
def test_the_name_decides_the_form(name: str, tmp_path: Path) -> None:
    made = trace(guarded(0, 2, 9), guarded(1, 9, 12))

    write_trace(made, tmp_path / name)

    text = (tmp_path / name).read_text(encoding="utf-8")
    assert ("traceEvents" in text) == (not name.endswith(("jsonl", "ndjson")))
    assert same(read_trace(tmp_path / name), made)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_an_unknown_form_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HtpsimError, match="did you mean 'lines'"):
        write_trace(Trace(), tmp_path / "x", form="line")  # type: ignore[arg-type]


def test_a_viewer_can_open_it() -> None:
    """Chrome trace JSON: events have a phase, a process, a thread and a time; spans a duration."""
    document = json.loads("\n".join(write_chrome(trace(guarded(0, 2_500, 9_000), calls={0: {"graph": "g"}}))))

    events = document["traceEvents"]
    assert {event["ph"] for event in events} == {"M", "X", "i", "C"}
    assert all({"name", "ph", "pid", "tid"} <= event.keys() for event in events)
    assert [(e["name"], e["ts"], e["dur"]) for e in events if e["ph"] == "X"] == [
        ("g", 0.0, 9.0),
        ("guard wait", 0.0, 2.5),
        ("on the device", 2.5, 6.5),
    ]


def test_spans_of_other_tools_are_passed_over() -> None:
    document: dict[str, Any] = {
        "traceEvents": [
            {"name": "graphExecute", "ph": "X", "ts": 1, "dur": 2},
            {"name": "call", "cat": "htpsim", "ph": "i", "ts": 1.5, "args": {"id": 4, "thread": "a"}},
        ],
        "otherData": {"htpsim_trace": 1},
    }

    read, _ = parse_trace(from_text("x.json", json.dumps(document)))

    assert [tuple(event) for event in read.events] == [(1500, "call", 4)]


def test_files_of_several_processes_may_be_put_together(tmp_path: Path) -> None:
    one, two = (trace(guarded(at, at + 2, at + 9)) for at in (0, 5))
    two.calls = {7: two.calls[0]}
    two.events = [event._replace(execute=7) for event in two.events]
    for made, name in ((one, "one.jsonl"), (two, "two.jsonl")):
        write_trace(made, tmp_path / name)
    (tmp_path / "both.jsonl").write_text(
        (tmp_path / "one.jsonl").read_text() + (tmp_path / "two.jsonl").read_text(), encoding="utf-8"
    )

    apart = read_trace(tmp_path / "one.jsonl", tmp_path / "two.jsonl")

    assert same(apart, read_trace(tmp_path / "both.jsonl"))
    assert [event.time_ns for event in apart.events] == sorted(event.time_ns for event in apart.events)
    with pytest.raises(FormatError, match="each number once"):
        read_trace(tmp_path / "one.jsonl", tmp_path / "one.jsonl")


def test_lines_out_of_order_are_put_in_order() -> None:
    late = '{"ev": "grant", "t": 9, "id": 0}'
    text = "\n".join([HEADER, CALL, late, '{"ev": "call", "t": 7, "id": 1, "thread": "b"}'])

    assert [event.time_ns for event in parse_trace(from_text("x", text))[0].events] == [5, 7, 9]


REFUSED = [
    ("", 1, "an empty file"),
    ("hello", 1, "no JSON"),
    ('{"ev": "call"}', 1, "a header such as"),
    ('{"htpsim_trace": 2}', 1, "expected version 1"),
    ('{"htpsim_trace": true}', 1, "expected version 1"),
    ('{"htpsim_trace": 1, "polcy": 1}', 1, "expected one of"),
    ('{"htpsim_trace": 1, "clock": "us"}', 1, "expected one of ns"),
    ('{"htpsim_trace": 1, "guard": {"slot": 2}}', 1, "did you mean 'slots'"),
    ('{"htpsim_trace": 1, "guard": {"slots": 0}}', 1, "at least 1"),
    ('{"htpsim_trace": 1, "guard": {"slots_per": "device"}}', 1, "expected one of process, core"),
    ('{"htpsim_trace": 1, "guard": {"params": {"a": "b"}}}', 1, "whole number"),
    ('{"htpsim_trace": 1, "guard": {"accounts": 3}}', 1, "a list"),
    ('{"htpsim_trace": 1, "guard": {"accounts": [{"process": 0}]}}', 1, "without 'handle'"),
    ('{"htpsim_trace": 1, "guard": {"weight_sums": [[0, 1]]}}', 1, "sum of weights"),
    ('{"htpsim_trace": 1, "device": {"cores": 0}}', 1, "at least 1"),
    ('{"htpsim_trace": 1, "device": 7}', 1, "an object"),
    (f"{HEADER}\n[]", 2, "an object with 'ev'"),
    (f"{HEADER}\n{{}}", 2, "an object with 'ev'"),
    (f'{HEADER}\n{{"ev": "cal", "t": 1}}', 2, "did you mean 'call'"),
    (f'{HEADER}\n{{"ev": "call", "t": 1, "id": 0}}', 2, "without 'thread'"),
    (f'{HEADER}\n{{"ev": "call", "t": -1, "id": 0, "thread": "a"}}', 2, "at least 0"),
    (f'{HEADER}\n{{"ev": "call", "t": 1.5, "id": 0, "thread": "a"}}', 2, "a whole number"),
    (f'{HEADER}\n{{"ev": "call", "t": true, "id": 0, "thread": "a"}}', 2, "a whole number"),
    (f'{HEADER}\n{{"ev": "call", "t": 1, "id": {2**63}, "thread": "a"}}', 2, "below 2^62"),
    (f'{HEADER}\n{{"ev": "call", "t": 1, "id": 0, "thread": 3}}', 2, "text in quotes"),
    (f'{HEADER}\n{{"ev": "call", "t": 1, "id": 0, "thread": "\\ud800"}}', 2, "whole characters"),
    (f'{HEADER}\n{{"ev": "call", "t": 1, "id": 0, "thread": "a", "wieght": 3}}', 2, "did you mean 'weight'"),
    (f'{HEADER}\n{{"ev": "call", "t": 1, "id": 0, "thread": "a", "weight": 0}}', 2, "at least 1"),
    (f'{HEADER}\n{{"ev": "call", "t": 1, "id": 0, "thread": "a", "path": "gene"}}', 2, "did you mean 'genie'"),
    (f'{HEADER}\n{{"ev": "call", "t": 1, "id": 0, "thread": "a", "cores": [0, "1"]}}', 2, "a list of whole numbers"),
    (f'{HEADER}\n{{"ev": "call", "t": 1, "id": 0, "thread": "a", "cores": [-1]}}', 2, "at least 0"),
    (f'{HEADER}\n{{"ev": "grant", "t": 1, "id": 0}}', 2, "its 'call' before it"),
    (f"{HEADER}\n{CALL}\n{CALL}", 3, "each id once"),
    (f'{HEADER}\n{CALL}\n\n{{"ev": "return", "t": 9, "id": 0, "parts": {{"run": 1}}}}', 4, "'parts' without"),
    (f'{HEADER}\n{{"ev": "take", "t": 1, "ledger": "device", "place": "dram", "item": "x"}}', 2, "without 'bytes'"),
    (f'{HEADER}\n{{"ev": "arrive", "t": 1, "client": "a"}}', 2, "without 'request'"),
    (f'{HEADER}\n{{"ev": "attach", "t": 1}}', 2, "without 'copy'"),
    (f'{HEADER}\n{{"ev": "call", "t": NaN}}', 2, "a number"),
    (f'{HEADER}\n{{"ev": "call", "t": 1, "t": 2}}', 2, "'t' twice"),
    (f'{HEADER}\n{CALL}\n{{"ev": "gra', 3, "cut off"),
    (HEADER + "\n" + "[" * 100_000, 2, "no JSON"),
    ('{"traceEvents": 3}', 1, "a list 'traceEvents'"),
    ('{"traceEvents": []}', 1, "under 'otherData'"),
    ('{"otherData": {"htpsim_trace": 3},\n "traceEvents": []}', 1, "version 1"),
    (CHROME + '\n {"cat": "htpsim", "name": "grant", "ts": 1}]}', 2, "'id'"),
    (CHROME + '\n\n {"cat": "htpsim", "name": "call", "ts": "x"}]}', 3, "'ts'"),
    (CHROME + '\n {"cat": "htpsim", "args": 4}]}', 2, "an object"),
    (CHROME + "\n}", 2, "a value"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "expected"), REFUSED, ids=range(len(REFUSED)))
def test_what_cannot_be_read_is_refused_with_its_line(text: str, line: int, expected: str) -> None:
    with pytest.raises(FormatError) as error:
        parse_trace(from_text("trace.jsonl", text))

    assert str(error.value).startswith(f"trace.jsonl:{line}:")
    assert expected in str(error.value)
    assert len(str(error.value)) < 700


def test_a_lenient_reading_leaves_out_what_does_not_fit() -> None:
    text = "\n".join([HEADER, CALL, '{"ev": "grant", "t": 1, "id": 8}', '{"ev": "gra'])

    read, notes = parse_trace(from_text("x", text), lenient=True)

    assert len(read.events) == 1
    assert [note.split(":")[0] for note in notes] == ["line 3", "line 4"]


def refusal(text: str) -> str:
    """Return why a text is refused; "" when it is read."""
    try:
        parse_trace(from_text("x", text))
    except FormatError as error:
        return str(error)
    return ""


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
KEYS = [
    "ev",
    "t",
    "id",
    "thread",
    "weight",
    "parts",
    "bytes",
    "ledger",
    "place",
    "item",
    "client",
    "request",
    "copy",
    "cores",
]


@given(
    records=st.lists(
        st.dictionaries(st.sampled_from(KEYS), JSON | st.sampled_from(EVENT_KINDS), max_size=8), max_size=4
    ),
    chrome=st.booleans(),
)  # fmt: skip
def test_no_record_ends_in_a_traceback(records: list[dict[str, Any]], chrome: bool) -> None:
    if chrome:
        events = [{"cat": "htpsim", "name": record.get("ev"), "ts": 1, "args": record} for record in records]
        text = json.dumps({"otherData": {"htpsim_trace": 1}, "traceEvents": events})
    else:
        text = "\n".join([HEADER, *map(json.dumps, records)])

    said = refusal(text)

    assert not said or said.startswith("x:")
    if "NaN" not in text and "Infinity" not in text:
        parse_trace(from_text("x", text), lenient=True)


@given(st.text(max_size=200))
def test_no_text_ends_in_a_traceback(text: str) -> None:
    for head in ("", HEADER + "\n", '{"traceEvents": '):
        said = refusal(head + text)
        assert not said or said.startswith("x:")


@settings(max_examples=25)
@given(made=traces(), cut=st.integers(0, 10_000))
def test_a_file_that_was_cut_off_is_refused_or_shorter(made: Trace, cut: int) -> None:
    text = "\n".join(write_lines(made))
    try:
        read, _ = parse_trace(from_text("x", text[: cut % (len(text) + 1)]))
    except FormatError:
        return
    assert read.events == made.events[: len(read.events)]


def test_inspect_shows_what_a_trace_holds(tmp_path: Path) -> None:
    write_trace(trace(guarded(0, 2, 9), guarded(1, 9, 12)), tmp_path / "x.jsonl")

    report = formats.read(tmp_path / "x.jsonl")

    values = {fact.name: fact.value for fact in report.facts}
    assert values["graphExecutes"] == 2
    assert values["grants"] == 2
    assert values["policy"] is None
    assert json.loads(json.dumps(report.to_json()))["format"] == "htpsim-trace"


def test_other_json_is_not_a_trace() -> None:
    assert sniff(from_text("x", '{"dialog": {}}')) == 0
    assert sniff(from_text("x", "")) == 0
