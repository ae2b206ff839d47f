"""Large JSON: events one after another, what is around them with line numbers, both as strict as the slow reader."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htpsim.errors import FormatError
from htpsim.formats import jsontext
from htpsim.formats.jsonevents import Cursor, Event
from htpsim.formats.source import from_text

words = st.sampled_from(["", "a", "é", '"', "\\", "]", "}", "\n", "🙂"])
scalars = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.sampled_from([0.5, -1e300, 1e-9]) | words
values = scalars | st.lists(scalars, max_size=2) | st.dictionaries(words, scalars, max_size=2)
events = st.lists(st.dictionaries(st.sampled_from(["name", "ts", "dur", "args", "é"]), values, max_size=4), max_size=4)


def read(text: str) -> tuple[dict[str, Any], list[Event], bool]:
    """Read the events of "traceEvents" and the values of all other keys."""
    cursor = Cursor(from_text("a.json", text), "a trace")
    around: dict[str, Any] = {}
    found: list[Event] = []
    for key in cursor.members():
        if key == "traceEvents":
            found = list(cursor.events(key))
        elif key != "skipped":
            around[key] = cursor.node(key).value
    cursor.finish()
    return around, found, cursor.truncated


@given(events, st.booleans(), st.sampled_from([None, 0, 2]))
def test_events_are_what_the_standard_library_reads(
    held: list[dict[str, Any]], first: bool, indent: int | None
) -> None:
    document = {"skipped": [1, {"x": "]"}], "traceEvents": held, "unit": "us"}
    if first:
        document = dict(reversed(document.items()))
    text = json.dumps(document, indent=indent)
    around, found, truncated = read(text)

    assert [event.members for event in found] == held
    assert around == {"unit": "us"}
    assert not truncated
    lines = text.split("\n")
    for event in found:
        assert "{" in lines[event.line - 1]


@given(events.filter(bool), st.data())
def test_a_cut_file_gives_the_events_before_the_cut(held: list[dict[str, Any]], data: st.DataObject) -> None:
    text = json.dumps({"traceEvents": held, "unit": "us"})
    start = text.index("[") + 1
    end = data.draw(st.integers(start, len(text) - 1))
    _, found, truncated = read(text[:end])

    assert truncated
    assert [event.members for event in found] == held[: len(found)]
    whole = sum(len(json.dumps(held[:count])) - 1 <= end - start + 1 for count in range(1, len(held) + 1))
    assert len(found) == whole


def test_a_file_cut_before_its_events_is_refused() -> None:
    with pytest.raises(FormatError, match=r'a\.json:2:2: got \'"trace\', expected a string that ends in its own line'):
        read('{"unit": "us",\n "trace')
    with pytest.raises(FormatError, match=r"expected a key in quotes"):
        read('{"unit": "us",')


@pytest.mark.parametrize(
    ("item", "refusal"),
    [
        ('{"a": 1, "a": 2}', r":3:1: got a second key 'a' in the value that starts here, expected each key once"),
        ('{"a": NaN}', r":3:1: got 'NaN' in the value that starts here, expected a finite number"),
        ('{"a": -Infinity}', r":3:1: got '-Infinity' .*expected a finite number"),
        ('{"a": 1e999}', r":3:1: got '1e999' .*expected a number below 1e308"),
        ('{"a": ' + "9" * 400 + "}", r":3:1: got '999.*expected a number of at most 300 digits"),
        ('{"a": ' + "[" * 100 + "]" * 100 + "}", r":3:1: got a deeper one, expected at most 64 levels of nesting"),
        ('{"a": ' + "[" * 9000 + "]" * 9000 + "}", r":3:1: got a deeper one, expected at most 64 levels of nesting"),
        ("[1]", r":3:1: got '\[1\],', expected an object at traceEvents\[1\]"),
        ("7", r":3:1: got '7,', expected an object at traceEvents\[1\]"),
        ('{"a": 1,}', r":3:9: got '},', expected a key in quotes"),
        ('{"a" 1}', r":3:6: got '1},', expected ':' after a key"),
        ('{"a": 1 "b": 2}', r":3:9: got '\"b\": 2},', expected ',' or a closing bracket"),
        ('{"a": "x\ny"}', r":3:9: got .*expected a string that ends in its own line"),
        ('{"a": .5}', r":3:7: got '\.5},', expected a JSON value"),
        ('{"a": "\\q"}', r":3:8: .*expected a JSON value"),
        ("", r":3:1: got ',', expected a JSON value"),
    ],
)
def test_what_is_no_event_is_refused_by_its_line(item: str, refusal: str) -> None:
    with pytest.raises(FormatError, match=r"a\.json" + refusal):
        read(f'{{"traceEvents": [\n{{"a": 0}},\n{item},\n{{"a": 0}}]}}')


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("", "a.json:1: got an empty file, expected a trace"),
        ("[]", r"a\.json:1:1: got '\[\]', expected an object"),
        ('{"traceEvents": {}}', r":1:17: got '{}}', expected a list of events"),
        ('{"traceEvents": [{}],}', r"expected a key in quotes"),
        ('{"traceEvents": [{},]}', r"expected an event after ','"),
        ('{"traceEvents": [{} {}]}', r"expected ',' or '\]'"),
        ('{"traceEvents": []} x', r"got 'x', expected the end of the file after the document"),
        ('{"unit": 1, "unit": 2}', r"got a second key 'unit', expected each key once"),
        ('{"traceEvents": [] "unit": 2}', r"expected ',' or '}'"),
        ('{"skipped": {"a": 1, "a": 2}}', r"got a second key 'a'"),
        ('{"skipped": [1, 2', r":1:18: got the end of the file, expected ',' or a closing bracket"),
    ],
)
def test_what_is_no_document_is_refused(text: str, refusal: str) -> None:
    with pytest.raises(FormatError, match=refusal):
        read(text)


@given(st.text(st.sampled_from('{}[]":,1a\\ \n'), max_size=30))
def test_no_text_is_taken_that_the_slow_reader_refuses(tail: str) -> None:
    text = '{"traceEvents": [{"a": ' + tail
    try:
        _, found, truncated = read(text)
    except FormatError:
        return
    if not truncated:
        whole = json.loads(text)
        assert [event.members for event in found] == whole["traceEvents"]
        jsontext.parse(from_text("a.json", text))


def event(**members: Any) -> Event:
    return Event(members, "traceEvents[4]", 9, "a.json")


def test_a_member_is_what_is_asked_for_or_refused() -> None:
    held = event(dur=3.0, ts=7, name="x", args={"id": "0x1"}, none=None)

    assert (held.whole("dur"), held.number("ts"), held.text("name"), held.whole("absent")) == (3, 7.0, "x", None)
    assert held.inner("args").text("id") == "0x1"
    assert held.inner("absent").members == held.inner("none").members == {}
    assert held.inner("args").where == "traceEvents[4].args"


@pytest.mark.parametrize(
    ("key", "ask", "member", "refusal"),
    [
        ("dur", "whole", -1, "got -1 at traceEvents[4].dur, expected a number from 0 to 2^63"),
        ("dur", "whole", 2**63, f"got {2**63} at traceEvents[4].dur, expected a number from 0 to 2^63"),
        ("dur", "whole", 1.5, "got 1.5 at traceEvents[4].dur, expected a whole number"),
        ("dur", "whole", True, "got true at traceEvents[4].dur, expected a whole number"),
        ("dur", "needed", None, "got nothing at traceEvents[4].dur, expected a whole number"),
        ("dur", "number", "5", "got '5' at traceEvents[4].dur, expected a number"),
        ("dur", "number", -0.5, "got -0.5 at traceEvents[4].dur, expected a number from 0 to 2^63"),
        ("name", "text", 5, "got 5 at traceEvents[4].name, expected text in quotes"),
        ("name", "text", "\ud800", "got '\\ud800' at traceEvents[4].name, expected both halves of a surrogate pair"),
        ("args", "inner", [1], "got a list at traceEvents[4].args, expected an object"),
        ("args", "text", {}, "got an object at traceEvents[4].args, expected text in quotes"),
    ],
)
def test_a_member_of_another_kind_is_refused(key: str, ask: str, member: Any, refusal: str) -> None:
    with pytest.raises(FormatError) as caught:
        getattr(event(**{key: member}), ask)(key)
    assert str(caught.value) == f"a.json:9: {refusal}"
