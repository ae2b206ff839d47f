"""Rows of a QNN profiling CSV, whoever wrote it: a preamble, a header and rows, each of which may be missing or vary.

The columns are ``Msg Timestamp, Message, Time, Unit of Measurement, Timing Source, Event Level, Event Identifier``. The
first may be absent, later ones may follow, and the header may have spaces after its commas, or not be there at all.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from htpsim.errors import FormatError, unknown_name
from htpsim.formats.skipped import Skipped
from htpsim.formats.source import Source, shown
from htpsim.formats.values import Value

COLUMNS: Final = (
    "Msg Timestamp",
    "Message",
    "Time",
    "Unit of Measurement",
    "Timing Source",
    "Event Level",
    "Event Identifier",
)
UNITS: Final = {
    "US": "us",
    "MICROSEC": "us",
    "MS": "ms",
    "NS": "ns",
    "SEC": "s",
    "CYCLES": "cycles",
    "COUNT": "count",
    "BYTES": "bytes",
    "INF/SEC": "inf/sec",
}
"""Each row has a unit of its own, and they are mixed in one file."""

_NEEDED: Final = COLUMNS[1:]
_LINE_MAX: Final = 64 * 2**10
_MESSAGE: Final = re.compile(r"[A-Z][A-Z0-9 _/-]{0,40}")
_NUMBER: Final = re.compile(r"\d{1,18}(?:\.\d{1,9})?", re.ASCII)
_TIMESTAMP: Final = re.compile(r"\d{1,19}", re.ASCII)
_MISSING: Final = {"", "null", "unknown"}


class Row(NamedTuple):
    """One row."""

    line: int
    message: str
    value: Value[int] | Value[float]
    timing_source: str
    level: str
    identifier: str | None
    timestamp: int | None = None
    extra: tuple[str, ...] = ()
    """What stands in columns after the identifier."""


@dataclass(slots=True)
class Layout:
    """How the file is laid out; settled before the first row is yielded."""

    columns: tuple[str, ...] = COLUMNS
    header_line: int | None = None
    header_has_spaces: bool = False
    preamble: list[tuple[str, Value[str]]] = field(default_factory=list)
    """The lines before the header, "name, value" each."""

    first_row: int = 1

    @property
    def missing(self) -> tuple[str, ...]:
        """The columns of the usual seven that this file does not have."""
        return tuple(name for name in COLUMNS if name not in self.columns)


@dataclass(slots=True)
class RowReader:
    """Reads the rows of one file; what is cut or skipped stands in its fields afterwards."""

    source: Source
    lenient: bool = False
    cut: Value[str] | None = None
    """The last line, where it ends in the middle."""

    skipped: Skipped = field(default_factory=Skipped)
    layout: Layout = field(default_factory=Layout)
    unterminated: int | None = None
    """The line number of a last line without a line end, where the file may have been cut."""

    _extra: tuple[str, ...] = ()
    _messages: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Find the header, or the shape of the first row."""
        self.layout = _layout(self.source)
        self._extra = self.layout.columns[len(_known(self.layout.columns)) :]
        if self.source.lines[-1].strip():
            self.unterminated = len(self.source.lines)

    def rows(self) -> Iterator[Row]:
        """Yield the rows in the order of the file.

        Raises
        ------
        FormatError
            Names the line that is no row.

        Examples
        --------
        >>> from htpsim.formats.source import from_text
        >>> reader = RowReader(from_text("a.csv", "INIT,12,US,NETRUN,ROOT,null\\nINIT,7,CO"))
        >>> [(row.message, row.value.value, row.value.unit) for row in reader.rows()], reader.cut.value
        ([('INIT', 12, 'us')], 'INIT,7,CO')
        """
        for number, line in enumerate(self.source.lines, start=1):
            if number < self.layout.first_row or not line or line.isspace():
                continue
            try:
                yield self._row(number, line)
            except FormatError as error:
                if number == self.unterminated:
                    self.cut = Value(line, "", number)
                elif not self.lenient:
                    raise
                else:
                    self.skipped.add(number, error)

    def _row(self, number: int, line: str) -> Row:
        known = len(self.layout.columns) - len(self._extra)
        fields = _fields(self.source, number, line, self.layout.columns)
        if len(fields) < len(self.layout.columns):
            raise self.source.error(number, f"{len(fields)} fields: {shown(line)}", f"{len(self.layout.columns)}")
        message, digits, unit, timing_source, level, identifier = fields[known - 6 : known]
        if message not in self._messages:
            if not _MESSAGE.fullmatch(message):
                raise self.source.error(number, f"message {shown(message)}", "words in capitals such as EXECUTE")
            self._messages.add(message)
        if not _NUMBER.fullmatch(digits):
            raise self.source.error(number, f"time {shown(digits)}", "a number from 0, of at most 18 digits")
        if unit not in UNITS:
            raise FormatError(unknown_name(f"{self.source.name}:{number}: unit", unit, UNITS))
        value = Value(float(digits) if "." in digits else int(digits), UNITS[unit], number)
        timestamp = self._timestamp(number, fields[0]) if known == len(COLUMNS) else None
        name = None if identifier.lower() in _MISSING else identifier
        return Row(number, message, value, timing_source, level, name, timestamp, tuple(fields[known:]))

    def _timestamp(self, number: int, text: str) -> int | None:
        if _TIMESTAMP.fullmatch(text):
            return int(text)
        if text.lower() in _MISSING:
            return None
        raise self.source.error(number, f"timestamp {shown(text)}", "a whole number")


def _layout(source: Source) -> Layout:
    """Find the header among the first lines; without one, the shape of the first row decides.

    Raises
    ------
    FormatError
        When the first lines are neither.
    """
    preamble: list[tuple[str, Value[str]]] = []
    for number, line in enumerate(source.lines, start=1):
        if not line.strip():
            continue
        names = [name.strip() for name in line.split(",")] if len(line) <= _LINE_MAX else []
        if "Message" in names and "Time" in names:
            known = _known(tuple(names))
            if tuple(names[: len(known)]) != known or len(set(names)) < len(names):
                raise source.error(number, f"a header {shown(line)}", f"the columns {', '.join(COLUMNS)}")
            return Layout(tuple(names), number, ", " in line, preamble, number + 1)
        if _is_row(names):
            columns = COLUMNS if _TIMESTAMP.fullmatch(names[0]) or names[0].lower() in _MISSING else _NEEDED
            return Layout(columns, None, False, preamble, number)
        name, comma, value = line.partition(",")
        if not comma:
            break
        preamble.append((name.strip(), Value(value.strip(), "", number)))
    number = next((number for number, line in enumerate(source.lines, start=1) if line.strip()), 1)
    got = shown(source.lines[number - 1]) if source.text.strip() else "an empty file"
    raise source.error(number, got, f"the header '{','.join(COLUMNS)}'")


def _known(columns: tuple[str, ...]) -> tuple[str, ...]:
    """Return the usual columns, without the first where it is absent."""
    return COLUMNS if COLUMNS[0] in columns else _NEEDED


def _is_row(fields: list[str]) -> bool:
    """Say whether these are a row's fields, with or without a timestamp."""
    for shift in (0, 1):
        enough = len(fields) >= len(_NEEDED) + shift
        if enough and _MESSAGE.fullmatch(fields[shift]) and _NUMBER.fullmatch(fields[shift + 1]):
            return fields[shift + 2] in UNITS
    return False


def _fields(source: Source, number: int, line: str, columns: tuple[str, ...]) -> list[str]:
    """Split a line; an identifier in the last column may contain commas."""
    if len(line) > _LINE_MAX:
        raise source.error(number, f"a line of {len(line)} characters", f"a row of at most {_LINE_MAX}")
    fields = line.split(",")
    if '"' in line:
        try:
            (fields,) = csv.reader([line], strict=True)
        except (csv.Error, ValueError) as error:
            raise source.error(number, f"{shown(line)} ({error})", "fields whose quotes are closed") from error
    extra = len(fields) - len(columns)
    if extra > 0 and columns[-1] == COLUMNS[-1]:
        fields[-extra - 1 :] = [",".join(fields[-extra - 1 :])]
    elif extra > 0:
        raise source.error(number, f"{len(fields)} fields: {shown(line)}", f"{len(columns)}")
    return fields
