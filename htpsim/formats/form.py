"""What a format is to the registry: a name, how to recognise it by content, how to read it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

from htpsim.formats.source import Source
from htpsim.formats.stream import Lines
from htpsim.formats.values import Report, ServiceQuery, ServiceTime


class Match(IntEnum):
    """How well a file fits a format; the best fit of all formats is taken, a tie is refused."""

    NO = 0
    TRACES = 1
    """Damaged, reworded, or something else that has such a thing inside."""

    YES = 2


@dataclass(frozen=True, slots=True)
class Streamed:
    """The same three ways into a format, over lines that are read one after another in constant memory."""

    read: Callable[[Lines, bool], Report]
    service_time: Callable[[Lines, ServiceQuery], ServiceTime]
    samples: Callable[[Lines, ServiceQuery], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Format:
    """One entry of the registry. A reader is one module that ends in ``FORMAT = Format(...)``."""

    name: str
    title: str
    description: str
    """One line: which tool writes such files and what one finds in them."""

    sniff: Callable[[Source], Match]
    """Judges by content alone, cheaply, and never raises."""

    read: Callable[[Source, bool], Report]
    """Takes the text and whether to read leniently; raises FormatError only."""

    service_time: Callable[[Source, ServiceQuery], ServiceTime] | None = None
    """Finds a service time; ``None`` for a format that holds no times."""

    samples: Callable[[Source, ServiceQuery], tuple[int, ...]] | None = None
    """Finds the single executions [ns]; ``None`` for a format that holds averages only."""

    large: Streamed | None = None
    """How to read a file that is too large for one text; ``None`` where it cannot be that large."""
