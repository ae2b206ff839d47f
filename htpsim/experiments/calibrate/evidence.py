"""What files hold that a calibration can use, each piece with its place: times of graphs, bytes, gaps, loads, facts.

Readers return what a file says; the modules beside this one turn that into the pieces below, one module a kind of
file. What the pieces amount to is decided once, in ``build``, from all files together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

Mark: TypeAlias = Literal["measured", "derived", "assumed"]
Role: TypeAlias = Literal["vit", "llm", "other"]
Stage: TypeAlias = Literal["graphs", "prefill", "decode"]
Plain: TypeAlias = int | str | bool
Counts: TypeAlias = tuple[tuple[int, int], ...]
"""Times [ns] and how often each occurred, ascending."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where something stands. The folder is left out: it differs from one machine to the next."""

    file: str
    first: int | None = None
    last: int | None = None
    what: str = ""

    def __str__(self) -> str:
        lines = "" if self.first is None else f":{self.first}"
        if self.last is not None and self.last != self.first:
            lines += f"-{self.last}"
        return f"{Path(self.file.replace(chr(92), '/')).name}{lines}" + (f" {self.what}" if self.what else "")


@dataclass(frozen=True, slots=True)
class Stated:
    """One value with what it rests on."""

    value: Plain
    origin: Origin
    mark: Mark = "measured"
    unit: str = ""
    """Unit of a plain number: "ns", "bytes", "bytes_per_s", or ""."""

    n: int | None = None
    """How many measurements it rests on; ``None`` where that is not a matter of counting, or not stated."""

    note: str = ""

    @property
    def source(self) -> str:
        """What a scenario file says as its source."""
        counted = "" if self.n is None else f"n = {self.n}"
        return "; ".join(part for part in (str(self.origin), counted, self.note) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """The times of one graph, or of a whole step where a file tells no graphs apart."""

    role: Role
    stage: Stage
    graph: str
    origin: Origin
    counts: Counts
    n: int | None
    """Executions; ``None`` for an average of a number that the file does not state."""

    first_ns: int | None = None
    """The first execution, where executions are told apart."""

    part: int | None = None
    """Which part of the model, from 0; ``None`` for a whole step of all parts."""

    parts: int = 1
    tokens: int | None = None
    """Tokens that one execution takes in (AR-n)."""

    tier: int | None = None
    """Context length it was built for."""

    mark: Mark = "measured"
    low_ns: int | None = None
    high_ns: int | None = None
    """Least and most, where only these and the average are stated."""

    detailed: bool = False
    """Profiled operation by operation, which slows a graph some twenty times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextBytes:
    """The terms of one context, by the key that a scenario file has for each."""

    role: Role | None
    """``None``: told by the graph."""

    name: str
    graphs: tuple[str, ...]
    """The graphs it is known to hold."""

    terms: Mapping[str, Stated]


@dataclass(slots=True, kw_only=True)
class Evidence:
    """Everything that all files hold."""

    files: list[str] = field(default_factory=list)
    timings: list[Timing] = field(default_factory=list)
    device: dict[str, Stated] = field(default_factory=dict)
    llm: dict[str, Stated] = field(default_factory=dict)
    """Keys of the LLM's model: context_tokens, load, ar, kv."""

    parts: Stated | None = None
    """How many context binaries the LLM has."""

    contexts: list[ContextBytes] = field(default_factory=list)
    gaps: dict[str, Stated] = field(default_factory=dict)
    """Keys of an instance: host_gap_graph, host_gap_step."""

    loads: list[tuple[str, Stated]] = field(default_factory=list)
    """Name of what was loaded, and how long it took [ns]."""

    text_tokens: list[int] = field(default_factory=list)
    output_tokens: list[int] = field(default_factory=list)
    workload: dict[str, Origin] = field(default_factory=dict)
    """Where the two come from."""

    dram: list[tuple[Role, Stated]] = field(default_factory=list)
    """Bytes that one execution of a graph moves, in the order of the graphs of a role; their log does not name them."""

    chips: list[tuple[str, Origin]] = field(default_factory=list)
    span_ns: int | None = None
    """How long the one recorded run took, from its first graph to its last."""

    warnings: list[str] = field(default_factory=list)

    def warn(self, text: str) -> None:
        """Keep a warning, once."""
        if text not in self.warnings:
            self.warnings.append(text)

    def state(self, table: dict[str, Stated], key: str, value: Stated) -> None:
        """Keep a value; where two files differ, keep the first and say so."""
        known = table.setdefault(key, value)
        if known.value != value.value:
            self.warn(f"{key}: {known.origin} says {known.value}, {value.origin} says {value.value}; took the first")


def plain_name(name: str, number: int) -> str:
    """Return a name as a scenario may write it.

    >>> plain_name("vit", 0), plain_name("/a b", 3)
    ('vit', 'graph3')
    """
    plain = name.isascii() and all(c.isalnum() or c in "_-." for c in name) and name[:1].isalnum()
    return name if plain else f"graph{number}"


def counted(values: tuple[int, ...]) -> Counts:
    """Return values with their counts, ascending.

    >>> counted((30, 10, 10))
    ((10, 2), (30, 1))
    """
    found: dict[int, int] = {}
    for value in values:
        found[value] = found.get(value, 0) + 1
    return tuple(sorted(found.items()))
