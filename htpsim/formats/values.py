"""What a reader returns: values with unit and line, the rows of a table, and the report that holds both.

A value that a file does not hold is ``None``, never zero: a zero in a report is a zero that somebody measured.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from htpsim.errors import FormatError
from htpsim.units import parse_time

Scalar: TypeAlias = str | int | float | bool
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Value(Generic[T]):
    """One value as the file states it, unconverted.

    >>> Value(1803480, "us", 43)
    Value(value=1803480, unit='us', line=43)
    """

    value: T
    unit: str
    """As the file or its documentation states it; "" for a name, a flag or a bare number."""

    line: int
    """Counted from 1."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One row of the table that ``htpsim inspect`` shows."""

    section: str
    name: str
    value: Scalar | None
    unit: str = ""
    line: int | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """What one file says: the typed `data`, the same as flat rows, and what a user should be warned of."""

    format: str
    path: str
    data: Any
    """The dataclass of the format, for example :class:`htpsim.formats.qnn_viewer.ViewerLog`."""

    facts: tuple[Fact, ...]
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain dicts, lists and scalars; what is missing is ``None``.

        >>> report = Report("demo", "a.txt", Value(4, "count", 2), (Fact("execute", "HVX threads", 4, "count", 2),))
        >>> report.to_json()["data"]
        {'value': 4, 'unit': 'count', 'line': 2}
        """
        return {
            "format": self.format,
            "path": self.path,
            "facts": [plain(fact) for fact in self.facts],
            "notes": list(self.notes),
            "data": plain(self.data),
        }


@dataclass(frozen=True, slots=True)
class ServiceTime:
    """A service time taken from a measurement, ready for a scenario."""

    value_ns: int
    source: str
    """Where it stands: "file:line event"."""

    statistic: str


@dataclass(frozen=True, slots=True)
class ServiceQuery:
    """Which of a file's times is wanted; ``None`` leaves the choice to the file, if it leaves only one."""

    graph: str | None = None
    statistic: str = "average"
    event: str | None = None
    device: str | None = None
    runtime: str | None = None
    precision: str | None = None
    context_length: int | None = None


def row(section: str, name: str, value: Value[Any] | None, note: str = "") -> Fact:
    """Make the table row of a value that may be missing.

    >>> row("init", "NetRun", None, "not in the log").value is None
    True
    """
    if value is None:
        return Fact(section, name, None, note=note)
    return Fact(section, name, value.value, value.unit, value.line, note)


def plain(thing: Any) -> Any:
    """Turn dataclasses and tuples into dicts and lists, all the way down.

    >>> plain((Value("v79", "", 5), None))
    [{'value': 'v79', 'unit': '', 'line': 5}, None]
    """
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        return {field.name: plain(getattr(thing, field.name)) for field in dataclasses.fields(thing)}
    if isinstance(thing, dict):
        return {str(key): plain(value) for key, value in thing.items()}
    if isinstance(thing, tuple | list):
        return [plain(item) for item in thing]
    return thing


def time_ns(value: Value[int] | Value[float], file: str) -> int:
    """Convert a measured time to integer nanoseconds [ns].

    Raises
    ------
    FormatError
        When the unit is no time, or the time is zero or negative: nothing takes no time.

    Examples
    --------
    >>> time_ns(Value(2.5, "ms", 3), "perf.yaml")
    2500000
    """
    try:
        converted = parse_time(f"{value.value} {value.unit}")
    except ValueError as error:
        raise FormatError(f"{file}:{value.line}: {error}") from error
    if converted <= 0:
        raise FormatError(f"{file}:{value.line}: got {value.value} {value.unit}, expected a time above zero")
    return converted
