"""Genie profile JSON: dialogs, pipelines and nodes, every unit, events by their type and not by their place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from htpsim import formats
from htpsim.errors import FormatError
from htpsim.formats import genie_profile
from htpsim.formats.form import Match
from htpsim.formats.genie_profile import GenieProfile
from htpsim.formats.source import from_text, load
from htpsim.formats.values import Report, ServiceQuery, Value

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "formats"


def read(text: str) -> Report:
    return genie_profile.read(from_text("a.json", text))


def profile(name: str) -> GenieProfile:
    data = genie_profile.read(load(FIXTURES / name)).data
    assert isinstance(data, GenieProfile)
    return data


def of_query(**figures: Any) -> str:
    event = {"type": "GenieDialog_query", **{name.replace("_", "-"): held for name, held in figures.items()}}
    return json.dumps({"components": [{"name": "d", "type": "dialog", "events": [event]}]})


def test_a_dialog_gives_every_event_and_figure() -> None:
    data = profile("profile_dialog.json")

    assert (data.version, data.artifact, data.timestamp) == (
        "0.1.0", Value("GENIE_PROFILE", "", 13), Value(1000, "us", 16),
    )  # fmt: skip
    assert data.create is not None
    assert (data.create.init, data.create.duration) == (Value(50000, "us", 29), Value(50100, "us", 25))
    assert [event.type for event in data.events][1] == "GenieDialog_applyLora", "so no query is the second event"
    first, second = data.queries
    assert first.figure("num-prompt-tokens") == Value(256, "", 49)
    assert second.figure("time-to-first-token") == Value(10000, "us", 87)
    assert second.figure("token-acceptance-rate") is None
    assert data.free is not None
    assert data.free.duration == Value(3000, "us", 105)
    assert (data.trace_events, data.truncated, data.has_figures) == (None, False, True)


def test_a_pipeline_states_its_loading_by_duration_only() -> None:
    data = profile("profile_pipeline.json")
    vlm, encoder, generator = data.components

    assert [item.type for item in data.components] == ["pipeline", "node", "node"]
    assert vlm.events[0].init == Value(40, "us", 25)
    assert encoder.events[0].init == Value(1_491_000, "us", 43)
    assert generator.events[0].init == Value(899, "ms", 65), "the stated one comes first"
    assert [event.type for event in data.queries] == ["GeniePipeline_execute", "GenieNode_execute", "GenieNode_execute"]
    assert data.queries[2].figure("time-to-first-token") == Value(3.5, "ms", 79)


def test_every_spelling_of_a_unit_means_the_same() -> None:
    data = profile("profile_nested.json")
    (query,) = data.queries

    assert query.figure("time-to-first-token") == Value(500, "us", 1)
    assert query.figure("token-generation-rate") == Value(68.8, "toks/sec", 1)
    assert query.figure("num-generated-tokens") == Value(64, "", 1)
    assert [item.unit_written for item in query.figures] == ["MICROSEC", "NONE", "NONE", "TPS", "MICROSEC"]
    for unit, value_ns in {
        "us": 2000,
        "MICROSEC": 2000,
        "ms": 2_000_000,
        "ns": 2,
        "s": 2 * 10**9,
        "SEC": 2 * 10**9,
    }.items():
        text = of_query(time_to_first_token={"value": 2, "unit": unit})
        assert genie_profile.samples(from_text("a", text), ServiceQuery()) == (value_ns,)


def test_a_profile_without_figures_has_no_zeros() -> None:
    report = formats.read(FIXTURES / "profile_trace.json")

    assert (report.data.components, report.data.trace_events, report.data.crossing) == ((), 3, 1)
    assert not report.data.has_figures
    assert report.notes[0] == "no KPI in this file: nothing was measured, which is not zero"
    assert "1 slices cross another one of their thread" in report.notes[1]
    assert [fact.value for fact in report.facts if fact.name == "key figures"] == [None]
    with pytest.raises(FormatError, match="the file holds none"):
        formats.service_time_ns(FIXTURES / "profile_trace.json")


@pytest.mark.parametrize(
    ("slices", "crossing"),
    [
        ([(0, 10), (10, 5)], 0),
        ([(0, 10), (2, 3), (6, 4)], 0),
        ([(0, 10), (5, 10)], 1),
        ([(0, 10), (0, 20)], 0),
        ([(0, 10), (2, 6), (5, 4)], 1),
        ([(0, 10), (2, 9), (3, 9)], 2),
    ],
)
def test_slices_that_nest_do_not_cross(slices: list[tuple[int, int]], crossing: int) -> None:
    events = [{"ph": "X", "ts": start, "dur": duration, "tid": 1} for start, duration in slices]
    elsewhere = [{"ph": "X", "ts": 5, "dur": 7, "tid": 2}]

    assert read(json.dumps({"components": [], "traceEvents": events + elsewhere})).data.crossing == crossing


def test_service_times() -> None:
    dialog, pipeline = FIXTURES / "profile_dialog.json", FIXTURES / "profile_pipeline.json"

    assert formats.samples_ns(dialog, event="time-to-first-token") == (20_000_000, 10_000_000)
    assert formats.service_time_ns(dialog, "dialog0", event="time_to_first_token").value_ns == 15_000_000
    assert formats.service_time_ns(dialog, event="token-time", statistic="median").value_ns == 10_000_000
    assert formats.service_time_ns(dialog, event="init-time").source == f"{dialog}:29 init-time"
    assert formats.samples_ns(dialog, event="query") == (120_500_000, 60_500_000)
    assert formats.service_time_ns(pipeline, "imageEncoder", event="query").value_ns == 2_500_000
    assert formats.service_time_ns(pipeline, "imageEncoder", event="init-time").source.endswith(
        ":43 init-time of imageEncoder"
    )
    assert formats.service_time_ns(pipeline, "textGenerator", event="token-time").value_ns == 200_000, (
        "2000 us / (11-1)"
    )
    with pytest.raises(FormatError, match="got none, expected one of create, free, init-time"):
        formats.service_time_ns(dialog)
    with pytest.raises(FormatError, match="component: got 'dialog', expected one of dialog0; did you mean 'dialog0'"):
        formats.service_time_ns(dialog, "dialog")
    with pytest.raises(FormatError, match="statistic: got 'p99'"):
        formats.service_time_ns(dialog, event="query", statistic="p99")


def test_a_rate_that_contradicts_its_own_numbers_gives_no_time_of_a_token() -> None:
    notes = formats.read(FIXTURES / "profile_nested.json").notes

    assert "line 1: GenieDialog_query: 64 tokens in 0.9 s are not 68.8 tokens/s" in notes
    with pytest.raises(FormatError, match="event: got 'token-time', expected one of"):
        formats.service_time_ns(FIXTURES / "profile_nested.json", event="token-time")


def test_a_prompt_rate_and_a_duration_that_do_not_fit_are_said() -> None:
    text = json.dumps({"components": [{"events": [{
        "type": "GenieDialog_query", "duration": 5, "start": 1, "stop": 9,
        "num-prompt-tokens": {"value": 33, "unit": ""}, "time-to-first-token": {"value": 50000, "unit": "us"},
        "prompt-processing-rate": {"value": 2700.5, "unit": "toks/sec"},
    }]}]})  # fmt: skip
    notes = read(text).notes

    assert "line 1: GenieDialog_query: stop less start is not the duration" in notes
    assert "line 1: GenieDialog_query: 33 prompt tokens in 0.05 s to the first token are not 2700.5 tokens/s" in notes


def test_a_missing_figure_is_none_and_a_null_is_missing() -> None:
    (query,) = read(of_query(time_to_first_token={"value": None, "unit": "us"})).data.queries

    assert query.figures == ()
    assert query.figure("time-to-first-token") is None
    assert query.token_time_ns is None


@pytest.mark.parametrize(
    ("figure", "refusal"),
    [
        ({"value": 5, "unit": ""}, r"got 5 without a unit at .*time-to-first-token, expected a time with its unit"),
        ({"value": 5}, r"got 5 without a unit at .*expected a time with its unit"),
        ({"value": 5, "unit": "TPS"}, r"got 5 TPS at .*expected a time with its unit"),
        ({"value": -5, "unit": "us"}, r"got -5 at .*time-to-first-token\.value, expected a number from 0 to 2\^63"),
        ({"value": 2**70, "unit": "us"}, r"expected a number from 0 to 2\^63"),
        ({"value": "5", "unit": "us"}, r"got '5' at .*value, expected a number"),
        ({"value": 5, "unit": "usecs"}, r"unit of time-to-first-token: got 'usecs', expected one of .*mean 'usec'"),
        ({"value": 5, "unit": 7}, r"got 7 at .*unit, expected text in quotes"),
    ],
)
def test_a_figure_that_cannot_be_read_is_refused(figure: dict[str, Any], refusal: str) -> None:
    with pytest.raises(FormatError, match=rf"^a\.json:1: .*{refusal}|^a\.json:1: {refusal}"):
        read(of_query(time_to_first_token=figure))


@pytest.mark.parametrize(
    ("name", "figure", "expected"),
    [
        ("num_prompt_tokens", {"value": 5.5, "unit": ""}, "a whole number without a unit"),
        ("num_prompt_tokens", {"value": 5, "unit": "us"}, "a whole number without a unit"),
        ("token_generation_rate", {"value": 5, "unit": ""}, "a rate with its unit, toks/sec"),
        ("lora_adapter_switching_time", {"value": 5, "unit": "bytes"}, "a time with its unit"),
    ],
)
def test_each_figure_has_the_unit_of_its_kind(name: str, figure: dict[str, Any], expected: str) -> None:
    with pytest.raises(FormatError, match=f"expected {expected}"):
        read(of_query(**{name: figure}))


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("", r"^a\.json:1: got an empty file, expected a Genie profile"),
        ('{"dialog": {}}', r"^a\.json:1: got .*expected a Genie profile with 'components'"),
        (
            '{"components": [{"events": [{"duration": -5}]}]}',
            r"got -5 at components\[0\]\.events\[0\]\.duration, expected",
        ),
        ('{"components": [{"events": [{"duration": 5.5}]}]}', r"expected a whole number"),
        ('{"components": [5]}', r"got 5 at components\[0\], expected an object"),
        ('{"components": [], "components": []}', r"got a second key 'components', expected each key once"),
        ('{"components": [{"events": [{"type"', r"expected"),
        ('{"components": [{"events": [{"duration": NaN}]}]}', r"expected a finite number"),
    ],
)
def test_what_is_no_profile_is_refused(text: str, refusal: str) -> None:
    with pytest.raises(FormatError, match=refusal):
        read(text)


@pytest.mark.parametrize("end", range(20, 1900, 60))
def test_a_profile_cut_before_its_end_is_refused_by_its_line(end: int) -> None:
    text = (FIXTURES / "profile_dialog.json").read_text(encoding="utf-8")[:end]

    with pytest.raises(FormatError, match=rf"^a\.json:{text.rstrip().count(chr(10)) + 1}:\d+: got .* expected "):
        read(text)


def test_a_profile_cut_within_its_slices_keeps_its_figures() -> None:
    text = (FIXTURES / "profile_dialog.json").read_text(encoding="utf-8").rstrip().removesuffix("}")
    report = read(text + ', "traceEvents": [{"ph": "X", "ts": 1, "dur": 5}, {"ph": "X", "t')

    assert report.data.truncated
    assert (report.data.trace_events, len(report.data.queries)) == (1, 2)
    assert [note for note in report.notes if "ends in the middle" in note]


@pytest.mark.parametrize(
    ("text", "fit"),
    [
        ('{"header": {"artifact_type": "GENIE_PROFILE"}}', Match.YES),
        ('{"profile": {"dialog": [{"type": "GenieDialog_query"}]}}', Match.YES),
        ('{"components": [{"events": [{"type": "GeniePipeline_execute"}]}]}', Match.YES),
        ('{"dialog": {"type": "GenieDialog_query"}}', Match.NO),
        ('{"profile": {}}', Match.NO),
        ('[{"type": "GenieDialog_query"}]', Match.NO),
    ],
)
def test_recognition(text: str, fit: Match) -> None:
    assert genie_profile.sniff(from_text("a", text)) == fit
