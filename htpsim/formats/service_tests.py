"""Results of a test run of an OpenAI-like LLM service on a device: tests by model, and what ``/profile`` answered.

The times that ``/profile`` states are seconds, as text, whatever an HTML report of the same run calls them; rates are
tokens a second. A model that the service refused to load for want of memory says what it asked for and what was free.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from htpsim.formats import jsontext
from htpsim.formats.form import Format, Match
from htpsim.formats.samples import choose, refuse_selectors
from htpsim.formats.source import Source, shown
from htpsim.formats.tree import Node
from htpsim.formats.values import Fact, Report, ServiceQuery, ServiceTime, Value, row, time_ns

NAME: Final = "service-tests"

_EXPECTED: Final = "results of a service's tests: 'summary' and 'models', each with rounds of tests"
_KEYS: Final = re.compile(r'"(?:time_to_first_token|token_generation_rate|model_capability_issues|crash_events)"\s*:')
_SUMMARY: Final = ("total", "passed", "failed", "crashed", "skipped", "ignored")
_TIMES: Final = ("time_to_first_token", "token_generation_time")
_RATES: Final = ("prompt_processing_rate", "token_generation_rate")
_TOKENS: Final = ("num_prompt_tokens", "num_generated_tokens")
_NUMBER: Final = re.compile(r"\d{1,12}(?:\.\d{1,9})?", re.ASCII)
_MEMORY: Final = re.compile(
    r"required=(?P<required>\d{1,18}) bytes, available_raw=(?P<available>\d{1,18}) bytes, "
    r"other_loaded_models_reserved=(?P<reserved>\d{1,18}) bytes, effective_available=(?P<effective>\d{1,18}) bytes",
    re.ASCII,
)
_LISTED_MAX: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedProfile:
    """What ``/profile`` says of the last answer of a model."""

    model: str
    line: int
    time_to_first_token: Value[float] | None
    token_generation_time: Value[float] | None
    prompt_processing_rate: Value[float] | None
    token_generation_rate: Value[float] | None
    num_prompt_tokens: Value[int] | None
    num_generated_tokens: Value[int] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRefusal:
    """A load that the service refused."""

    model: str
    required: Value[int]
    available: Value[int]
    reserved: Value[int]
    """By other models that are loaded."""

    effective: Value[int]
    """What counts: available less reserved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceTests:
    """One run of the tests."""

    summary: dict[str, Value[int] | None]
    profiles: tuple[ServedProfile, ...]
    refusals: tuple[MemoryRefusal, ...]
    tests: int
    """How many are listed."""


def sniff(source: Source) -> Match:
    """Say whether this is such a file."""
    if not source.text.lstrip().startswith("{") or '"models"' not in source.text or '"summary"' not in source.text:
        return Match.NO
    return Match.YES if _KEYS.search(source.text) else Match.NO


def read(source: Source, lenient: bool = False) -> Report:
    """Read the results.

    Parameters
    ----------
    source
        The text.
    lenient
        Makes no difference: JSON is either well formed or not.

    Raises
    ------
    FormatError
        Names line and column of what is no JSON, or the place of a value of the wrong kind.

    Examples
    --------
    >>> from htpsim.formats.source import from_text
    >>> text = '''{"summary": {"total": 1}, "models": {"m": {"round_1": [{"name": "GET /profile", "response_data":
    ... {"time_to_first_token": "0.04"}}]}}}'''
    >>> read(from_text("a.json", text)).data.profiles[0].time_to_first_token
    Value(value=0.04, unit='s', line=2)
    """
    tests = _parse(source)
    return Report(NAME, source.name, tests, tuple(_facts(tests)), source.notes + _warnings(tests))


def service_time(source: Source, query: ServiceQuery) -> ServiceTime:
    """Find a time that ``/profile`` stated for a model; there is one of each, so it is neither mean nor least."""
    refuse_selectors(source.name, query)
    tests = _parse(source)
    model = choose(f"{source.name}:1", "graph", query.graph, [item.model for item in tests.profiles])
    found = next(item for item in tests.profiles if item.model == model)
    stated = {name: value for name in _TIMES if (value := getattr(found, name)) is not None}
    event = choose(f"{source.name}:{found.line}", "event", query.event, list(stated))
    choose(f"{source.name}:{found.line}", "statistic", query.statistic, ["average"])
    value = stated[event]
    return ServiceTime(time_ns(value, source.name), f"{source.name}:{value.line} {event} of {model}", "average")


def _parse(source: Source) -> ServiceTests:
    root = jsontext.parse(source, _EXPECTED)
    summary, models = (root.find(key) if isinstance(root.value, dict) else None for key in ("summary", "models"))
    if summary is None or models is None:
        root.refuse(_EXPECTED)
    profiles: list[ServedProfile] = []
    refusals: list[MemoryRefusal] = []
    count = 0
    for model, rounds in models.members().items():
        for item in rounds.members().values():
            for test in item.items():
                count += 1
                answer = test.find("response_data") if isinstance(test.value, dict) else None
                if answer is None or not isinstance(answer.value, dict):
                    continue
                if any(answer.find(key) for key in _TIMES + _RATES):
                    profiles.append(_profile(model, answer))
                detail = answer.find("failure_detail")
                found = _MEMORY.search(detail.value) if detail and isinstance(detail.value, str) else None
                if detail is not None and found is not None:
                    refusals.append(_refusal(model, found, detail.line))
    return ServiceTests(
        summary={key: summary.count(key, unit="count") for key in _SUMMARY},
        profiles=tuple(profiles),
        refusals=tuple(refusals),
        tests=count,
    )


def _profile(model: str, answer: Node) -> ServedProfile:
    return ServedProfile(
        model=model,
        line=answer.line,
        time_to_first_token=_amount(answer, "time_to_first_token", "s"),
        token_generation_time=_amount(answer, "token_generation_time", "s"),
        prompt_processing_rate=_amount(answer, "prompt_processing_rate", "toks/sec"),
        token_generation_rate=_amount(answer, "token_generation_rate", "toks/sec"),
        num_prompt_tokens=answer.count("num_prompt_tokens", unit="tokens"),
        num_generated_tokens=answer.count("num_generated_tokens", unit="tokens"),
    )


def _amount(answer: Node, key: str, unit: str) -> Value[float] | None:
    """Return a number that is written as text, as this service does, or as a number."""
    node = answer.find(key)
    if node is None:
        return None
    if not isinstance(node.value, str):
        found = answer.measured(key, unit=unit)
        return Value(float(found.value), unit, found.line) if found else None
    if not _NUMBER.fullmatch(node.value):
        node.refuse(f"a number such as '0.04', not {shown(node.value)}")
    return Value(float(node.value), unit, node.line)


def _refusal(model: str, found: re.Match[str], line: int) -> MemoryRefusal:
    sizes = {name: Value(int(digits), "bytes", line) for name, digits in found.groupdict().items()}
    return MemoryRefusal(model=model, **sizes)


def _facts(tests: ServiceTests) -> Iterator[Fact]:
    yield Fact("tests", "listed", tests.tests, "count")
    for name, value in tests.summary.items():
        yield row("tests", name, value)
    for profile in tests.profiles[:_LISTED_MAX]:
        for name in (*_TIMES, *_RATES, *_TOKENS):
            yield row(profile.model, name, getattr(profile, name), "one answer")
    for refusal in tests.refusals[:_LISTED_MAX]:
        for name in ("required", "available", "reserved", "effective"):
            yield row(f"{refusal.model}, not loaded for want of memory", name, getattr(refusal, name))


def _warnings(tests: ServiceTests) -> tuple[str, ...]:
    notes = []
    total = tests.summary["total"]
    if total is not None and total.value != tests.tests:
        notes.append(f"line {total.line}: {total.value} tests in the summary, {tests.tests} are listed")
    if tests.profiles:
        notes.append("times of /profile are seconds; a report of the same run that labels them ms is off by 1000")
    else:
        notes.append("no /profile in the file: nothing was timed, which is not zero")
    return tuple(notes)


FORMAT: Final = Format(
    NAME,
    "LLM service tests",
    "results of an LLM service's test run: time to first token and rates by model, loads refused for memory",
    sniff,
    read,
    service_time,
)
