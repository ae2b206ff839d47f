"""Log of ExecuTorch with the QNN backend: how long loading took, as the backend's own events and as the runner's.

The events are nested, not parts to be added up: the accelerator's time lies within QNN's accelerator time, that within
the RPC, and all of them within QNN's own. Other lines of the log are passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from htpsim.errors import FormatError, unknown_name
from htpsim.formats.form import Format, Match
from htpsim.formats.skipped import Skipped
from htpsim.formats.source import Source, shown
from htpsim.formats.values import Fact, Report, Value, row

NAME: Final = "executorch-log"

_MARK: Final = "Event Data:"
_SPENT: Final = "[Time consuming "
_EVENT: Final = re.compile(
    r".{0,200}?Type: (?P<id>\d{1,9}), (?P<phase>\w{1,20}) Event Name: (?P<name>\S.{0,200}?), "
    r"Event Data: (?P<digits>\d{1,18}) (?P<unit>[A-Za-z/]{1,20})",
    re.ASCII,
)
_TIME: Final = re.compile(
    r".{0,200}?\[Time consuming (?P<what>[\w ()]{1,80})\] (?P<name>[A-Za-z][\w ]{0,40}?):?"
    r"(?: took)? (?P<digits>\d{1,18}) (?P<unit>[A-Za-z]{1,20})",
    re.ASCII,
)
_UNITS: Final = {
    "us": "us",
    "ms": "ms",
    "milliseconds": "ms",
    "s": "s",
    "seconds": "s",
    "cycles": "cycles",
    "count": "count",
}
_EVENTS_MAX: Final = 1000
_LINE_MAX: Final = 1000


@dataclass(frozen=True, slots=True)
class BackendEvent:
    """One event of the backend."""

    id: int
    """QNN's own number of the event: 1002 to 1004 are of loading, 100 is the whole of it."""

    phase: str
    name: str
    value: Value[int]


@dataclass(frozen=True, slots=True)
class RunnerTime:
    """One time that the runner itself took."""

    what: str
    value: Value[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorchLog:
    """One log."""

    events: tuple[BackendEvent, ...]
    times: tuple[RunnerTime, ...]

    def event(self, name: str) -> Value[int] | None:
        """Return the first value of an event, ``None`` where it is absent."""
        return next((item.value for item in self.events if item.name == name), None)

    def time(self, word: str) -> Value[int] | None:
        """Return the first time of the runner that a word stands in, such as ``load()``."""
        return next((item.value for item in self.times if word in item.what), None)


def sniff(source: Source) -> Match:
    """Say whether such lines stand in the text."""
    if "ExecuTorch" not in source.text and "executorch" not in source.text:
        return Match.NO
    return Match.YES if _MARK in source.text or _SPENT in source.text else Match.NO


def read(source: Source, lenient: bool = False) -> Report:
    r"""Read a log.

    Parameters
    ----------
    source
        The text.
    lenient
        Skip an event that cannot be read, with a note for each.

    Raises
    ------
    FormatError
        Names the line of an event that could not be read, or of a text without any.

    Examples
    --------
    >>> from htpsim.formats.source import from_text
    >>> line = "[INFO] [Qnn ExecuTorch]: Type: 100, Init Event Name: QNN (load binary) time, Event Data: 53819 us"
    >>> read(from_text("a.log", line + "\n")).data.event("QNN (load binary) time")
    Value(value=53819, unit='us', line=1)
    """
    log, notes = _parse(source, lenient)
    return Report(NAME, source.name, log, tuple(_facts(log)), source.notes + notes + _warnings(log))


def _parse(source: Source, lenient: bool) -> tuple[ExecutorchLog, tuple[str, ...]]:
    events: list[BackendEvent] = []
    times: list[RunnerTime] = []
    skipped = Skipped()
    for number, line in enumerate(source.lines, start=1):
        try:
            if _MARK in line:
                events.append(_event(source, number, line))
            elif _SPENT in line:
                times.append(_time(source, number, line))
        except FormatError as error:
            if not lenient:
                raise
            skipped.add(number, error)
    if not events and not times:
        number = next((number for number, line in enumerate(source.lines, start=1) if line.strip()), 1)
        got = shown(source.lines[number - 1]) if source.text.strip() else "an empty file"
        raise source.error(number, got, f"a log of ExecuTorch with lines of '{_MARK}' or '{_SPENT.strip()}'")
    return ExecutorchLog(events=tuple(events), times=tuple(times)), skipped.notes


def _event(source: Source, number: int, line: str) -> BackendEvent:
    found = _EVENT.fullmatch(line.strip()) if len(line) < _LINE_MAX else None
    if found is None:
        raise source.error(number, shown(line), "an event that ends in 'Event Data: 16303 us'")
    return BackendEvent(int(found["id"]), found["phase"], found["name"], _value(source, number, found))


def _time(source: Source, number: int, line: str) -> RunnerTime:
    found = _TIME.fullmatch(line.strip()) if len(line) < _LINE_MAX else None
    if found is None:
        raise source.error(number, shown(line), "a time that ends in a number and its unit")
    return RunnerTime(found["what"], _value(source, number, found))


def _value(source: Source, number: int, found: re.Match[str]) -> Value[int]:
    if found["unit"] not in _UNITS:
        raise FormatError(unknown_name(f"{source.name}:{number}: unit", found["unit"], _UNITS))
    return Value(int(found["digits"]), _UNITS[found["unit"]], number)


def _facts(log: ExecutorchLog) -> Iterator[Fact]:
    for item in log.events[:_EVENTS_MAX]:
        yield row(f"backend, {item.phase.lower()}", item.name, item.value, f"event {item.id}")
    for time in log.times[:_EVENTS_MAX]:
        yield row("runner", time.what, time.value)


def _warnings(log: ExecutorchLog) -> tuple[str, ...]:
    inits = [item.value.value for item in log.events if item.phase == "Init" and item.value.unit == "us"]
    return ("the times of loading lie within each other: they do not add up",) if len(inits) > 1 else ()


FORMAT: Final = Format(
    NAME,
    "ExecuTorch log",
    "log of an ExecuTorch runner with the QNN backend: times of loading, nested",
    sniff,
    read,
)
