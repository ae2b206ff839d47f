"""JSON report of a QNN profile (QAIRT 2.49, artifact type ``QNN_PROFILE``): messages with their profiling events.

A message is one call into the backend (``BACKEND_CREATE_FROM_BINARY``, ``BACKEND_EXECUTE`` ...); its events have a unit
each, and one in cycles may hold the operators. ``APP_EXECUTE_IPS`` is the tool's own count of inferences and time.
Events are not nested in time as their order suggests: power-on may be longer than the execution.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from htpsim.errors import unknown_name
from htpsim.formats import jsontext
from htpsim.formats.form import Format, Match
from htpsim.formats.samples import choose, refuse_selectors, statistic_ns
from htpsim.formats.source import Source
from htpsim.formats.tree import Node
from htpsim.formats.values import Fact, Report, ServiceQuery, ServiceTime, Value, row, time_ns
from htpsim.units import TIME_UNITS

NAME: Final = "qnn-report"
ARTIFACT: Final = "QNN_PROFILE"
EXECUTE: Final = "BACKEND_EXECUTE"
POWER_ON: Final = "Time for HVX + HMX power on and acquire"
PREFERRED: Final = (
    "Accelerator (execute) time",
    "QNN accelerator (execute) time",
    "QNN (execute) time",
    "RPC (execute) time",
)
"""Which event is the service time, best first."""

UNITS: Final = {
    "MICROSEC": "us",
    "US": "us",
    "MILLISEC": "ms",
    "NANOSEC": "ns",
    "SEC": "s",
    "CYCLES": "cycles",
    "COUNT": "count",
    "BYTES": "bytes",
    "NONE": "",
}
_EXPECTED: Final = f"a report with artifact type '{ARTIFACT}' and 'messages'"
_KIND: Final = re.compile(rf'"artifact_type"\s*:\s*"{ARTIFACT}"')
_LISTED_MAX: Final = 40
_MESSAGES_MAX: Final = 200


@dataclass(frozen=True, slots=True)
class ReportEvent:
    """One event of a message."""

    name: str
    value: Value[int] | Value[float] | Value[int | float]
    kind: str
    """Such as EXECUTE or NODE; often empty."""

    parts: tuple[ReportEvent, ...] = ()
    """Its operators, in cycles."""


@dataclass(frozen=True, slots=True)
class Message:
    """One call into the backend, or a figure of the tool itself."""

    method: str
    line: int
    events: tuple[ReportEvent, ...]

    def event(self, name: str) -> Value[int] | Value[float] | Value[int | float] | None:
        """Return the first value of a name, ``None`` where it is absent."""
        return next((item.value for item in self.events if item.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileReport:
    """One report."""

    versions: tuple[tuple[str, Value[str]], ...]
    messages: tuple[Message, ...]

    def of(self, method: str) -> tuple[Message, ...]:
        """Return the messages of a method, in the order of the file."""
        return tuple(message for message in self.messages if message.method == method)


def sniff(source: Source) -> Match:
    """Say whether the header says so."""
    return Match.YES if source.text.lstrip().startswith("{") and _KIND.search(source.text) else Match.NO


def read(source: Source, lenient: bool = False) -> Report:
    """Read a report.

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
    >>> text = '''{"header": {"artifact_type": "QNN_PROFILE"}, "messages": [{"method": "BACKEND_EXECUTE",
    ... "profilingEvents": [{"identifier": "QNN (execute) time", "unit": "MICROSEC", "value": 3001}]}]}'''
    >>> read(from_text("a.json", text)).data.messages[0].event("QNN (execute) time")
    Value(value=3001, unit='us', line=2)
    """
    report = _parse(source)
    return Report(NAME, source.name, report, tuple(_facts(report)), source.notes + _warnings(report))


def service_time(source: Source, query: ServiceQuery) -> ServiceTime:
    """Find the time of an execution over all of them; the report names no graph."""
    values, event, line = _samples(source, query)
    where = f"{source.name}:{line}"
    return ServiceTime(statistic_ns(values, query.statistic, where), f"{where} {event}", query.statistic)


def samples(source: Source, query: ServiceQuery) -> tuple[int, ...]:
    """Return an event of every execution [ns], in the order of the file."""
    return _samples(source, query)[0]


def _samples(source: Source, query: ServiceQuery) -> tuple[tuple[int, ...], str, int]:
    refuse_selectors(source.name, query)
    if query.graph is not None:
        raise source.error(1, f"graph '{query.graph}'", "none: this report names no graph")
    executions = _parse(source).of(EXECUTE)
    timed = dict.fromkeys(item.name for call in executions for item in call.events if item.value.unit in TIME_UNITS)
    wanted = query.event or next((name for name in PREFERRED if name in timed), None)
    event = choose(f"{source.name}:1", "event", wanted, list(timed))
    stated = [value for call in executions if (value := call.event(event)) is not None]
    return (
        tuple(time_ns(Value(value.value, value.unit, value.line), source.name) for value in stated),
        event,
        stated[0].line,
    )


def _parse(source: Source) -> ProfileReport:
    root = jsontext.parse(source, _EXPECTED)
    messages = root.find("messages") if isinstance(root.value, dict) else None
    if messages is None or not isinstance(messages.value, list):
        root.refuse(_EXPECTED)
    metadata = root.find("metadata")
    versions = [(name, node.text()) for name, node in (metadata.members() if metadata else {}).items()]
    return ProfileReport(
        versions=tuple((name, value) for name, value in versions if value is not None),
        messages=tuple(_message(item) for item in messages.items()),
    )


def _message(node: Node) -> Message:
    method = node.text("method")
    if method is None:
        node.refuse("a message with 'method'")
    events = node.find("profilingEvents")
    return Message(method.value, node.line, tuple(_event(item) for item in (events.items() if events else [])))


def _event(node: Node) -> ReportEvent:
    name, unit, value = node.text("identifier"), node.text("unit"), node.measured("value")
    if name is None or unit is None or value is None:
        node.refuse("an event with 'identifier', 'unit' and 'value'")
    if unit.value not in UNITS:
        node.refuse(unknown_name("unit", unit.value, UNITS).partition("expected ")[2])
    kind, parts = node.text("type"), node.find("sub-events")
    return ReportEvent(
        name.value,
        Value(value.value, UNITS[unit.value], value.line),
        kind.value if kind else "",
        tuple(_event(item) for item in (parts.items() if parts else [])),
    )


def _facts(report: ProfileReport) -> Iterator[Fact]:
    for name, version in report.versions:
        yield row("file", name, version)
    seen: dict[str, int] = {}
    for message in report.messages[:_MESSAGES_MAX]:
        seen[message.method] = seen.get(message.method, 0) + 1
        place = message.method if len(report.of(message.method)) == 1 else f"{message.method} {seen[message.method]}"
        for item in message.events[:_LISTED_MAX]:
            yield row(place, item.name, item.value)
            yield from (row(f"{place}, operators", part.name, part.value) for part in item.parts[:_LISTED_MAX])
    if len(report.messages) > _MESSAGES_MAX:
        yield Fact("file", "messages not listed", len(report.messages) - _MESSAGES_MAX, "count")
    if not report.of(EXECUTE):
        yield Fact(EXECUTE, "QNN (execute) time", None, note="no execution in the file")


def _warnings(report: ProfileReport) -> tuple[str, ...]:
    notes = []
    for message in report.of(EXECUTE)[:_LISTED_MAX]:
        power, whole = message.event(POWER_ON), message.event("QNN (execute) time")
        if power is not None and whole is not None and power.unit == whole.unit and power.value > whole.value:
            notes.append(
                f"line {power.line}: power-on took {power.value} {power.unit}, more than the whole execution "
                f"({whole.value}): it is not part of it"
            )
        if any(item.parts for item in message.events):
            notes.append("profiling was detailed, which itself slows execution: not for calibration")
    if len(report.of(EXECUTE)) == 1:
        notes.append("one execution only, and the first is often slower: too few to say")
    return tuple(dict.fromkeys(notes))


FORMAT: Final = Format(
    NAME,
    "QNN profile report",
    "JSON report of a QNN profile: events of loading, execution and freeing, operators in cycles",
    sniff,
    read,
    service_time,
    samples,
)
