"""Table of LLM benchmarks, a row a backend: prompt and generation rates, tokens, times, and how the run ended.

The columns that are read are ``backend``, ``pp_tps`` and ``tg_tps`` [tokens/s], ``pp_tokens`` and ``tg_tokens``,
``pp_time_s``, ``tg_time_s`` and ``wall_s`` [s], ``ok`` and ``notes``; the order and further columns are free. A row
that failed states nothing but why.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from htpsim.errors import FormatError
from htpsim.formats.form import Format, Match
from htpsim.formats.skipped import Skipped
from htpsim.formats.source import Source, shown
from htpsim.formats.values import Fact, Report, Value, row

NAME: Final = "llm-bench-csv"

_NEEDED: Final = ("backend", "pp_tps", "tg_tps")
_UNITS: Final = {"pp_tps": "toks/sec", "tg_tps": "toks/sec", "pp_time_s": "s", "tg_time_s": "s", "wall_s": "s"}
_COUNTS: Final = ("pp_tokens", "tg_tokens")
_NUMBER: Final = re.compile(r"\d{1,15}(?:\.\d{1,20})?(?:e-?\d{1,2})?", re.ASCII)
_FLAGS: Final = {"true": True, "1": True, "false": False, "0": False}
_LINE_MAX: Final = 64 * 2**10
_ROWS_MAX: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchRow:
    """One run. What a failed one does not state is ``None``."""

    backend: Value[str]
    prompt_rate: Value[float] | None
    generation_rate: Value[float] | None
    prompt_tokens: Value[int] | None
    generated_tokens: Value[int] | None
    prompt_time: Value[float] | None
    generation_time: Value[float] | None
    wall: Value[float] | None
    ok: Value[bool] | None
    notes: str

    @property
    def outside_s(self) -> float | None:
        """Wall time that is neither prompt nor generation [s]: loading, tearing down."""
        times = (self.wall, self.prompt_time, self.generation_time)
        if None in times:
            return None
        wall, prompt, generation = (value.value for value in times if value is not None)
        return round(wall - prompt - generation, 6)


@dataclass(frozen=True, slots=True)
class BenchTable:
    """One table."""

    rows: tuple[BenchRow, ...]

    def of(self, backend: str) -> BenchRow | None:
        """Return the first row of a backend."""
        return next((item for item in self.rows if item.backend.value == backend), None)


def sniff(source: Source) -> Match:
    """Say whether the first line names the columns."""
    first = next((line for line in source.lines if line.strip()), "")[:_LINE_MAX]
    return Match.YES if set(_NEEDED) <= {name.strip() for name in first.split(",")} else Match.NO


def read(source: Source, lenient: bool = False) -> Report:
    r"""Read a table.

    Parameters
    ----------
    source
        The text.
    lenient
        Skip rows that cannot be read, with a note for each.

    Raises
    ------
    FormatError
        Names the line that could not be read.

    Examples
    --------
    >>> from htpsim.formats.source import from_text
    >>> read(from_text("a.csv", "backend,pp_tps,tg_tps,ok\nnpu,1566.2,23.3,True\n")).data.of("npu").generation_rate
    Value(value=23.3, unit='toks/sec', line=2)
    """
    table, notes = _parse(source, lenient)
    return Report(NAME, source.name, table, tuple(_facts(table)), source.notes + notes + _warnings(table))


def _parse(source: Source, lenient: bool) -> tuple[BenchTable, tuple[str, ...]]:
    columns: list[str] = []
    rows: list[BenchRow] = []
    skipped = Skipped()
    for number, line in enumerate(source.lines, start=1):
        if not line.strip():
            continue
        try:
            fields = _fields(source, number, line)
            if not columns:
                columns = _columns(source, number, fields)
                continue
            rows.append(_row(source, number, columns, fields))
        except FormatError as error:
            if not lenient or not columns:
                raise
            skipped.add(number, error)
    if not columns:
        raise source.error(1, "an empty file", f"a header with {', '.join(_NEEDED)}")
    return BenchTable(tuple(rows)), skipped.notes


def _fields(source: Source, number: int, line: str) -> list[str]:
    if len(line) > _LINE_MAX:
        raise source.error(number, f"a line of {len(line)} characters", f"a row of at most {_LINE_MAX}")
    try:
        (fields,) = csv.reader([line], strict=True)
    except (csv.Error, ValueError) as error:
        raise source.error(number, f"{shown(line)} ({error})", "fields whose quotes are closed") from error
    return [text.strip() for text in fields]


def _columns(source: Source, number: int, fields: list[str]) -> list[str]:
    if not set(_NEEDED) <= set(fields) or len(set(fields)) < len(fields):
        raise source.error(number, shown(",".join(fields)), f"a header with {', '.join(_NEEDED)}, each column once")
    return fields


def _row(source: Source, number: int, columns: list[str], fields: list[str]) -> BenchRow:
    if len(fields) != len(columns):
        raise source.error(number, f"{len(fields)} fields", f"{len(columns)}, as the header has")
    given = dict(zip(columns, fields, strict=True))
    if not given["backend"]:
        raise source.error(number, "no backend", "a name")
    amounts = {name: _amount(source, number, given.get(name, ""), unit) for name, unit in _UNITS.items()}
    counts = {name: _amount(source, number, given.get(name, ""), "tokens") for name in _COUNTS}
    for name, value in counts.items():
        if value is not None and not value.value.is_integer():
            raise source.error(number, f"{value.value} {name}", "a whole number")
    ok = given.get("ok", "")
    if ok and ok.lower() not in _FLAGS:
        raise source.error(number, f"ok {shown(ok)}", "True or False")
    failed = bool(ok) and not _FLAGS[ok.lower()]
    # A failed run writes 0 for tokens that it never saw.
    tokens = {
        name: None if value is None or (failed and not value.value) else Value(int(value.value), "tokens", number)
        for name, value in counts.items()
    }
    return BenchRow(
        backend=Value(given["backend"], "", number),
        prompt_rate=amounts["pp_tps"],
        generation_rate=amounts["tg_tps"],
        prompt_tokens=tokens["pp_tokens"],
        generated_tokens=tokens["tg_tokens"],
        prompt_time=amounts["pp_time_s"],
        generation_time=amounts["tg_time_s"],
        wall=amounts["wall_s"],
        ok=Value(not failed, "", number) if ok else None,
        notes=given.get("notes", "")[:500],
    )


def _amount(source: Source, number: int, text: str, unit: str) -> Value[float] | None:
    if not text:
        return None
    if not _NUMBER.fullmatch(text) or not math.isfinite(float(text)):
        raise source.error(number, shown(text), "a number from 0, or nothing")
    return Value(float(text), unit, number)


def _facts(table: BenchTable) -> Iterator[Fact]:
    for item in table.rows[:_ROWS_MAX]:
        place = item.backend.value
        note = f"failed: {item.notes}" if item.ok and not item.ok.value else item.notes
        yield row(place, "ended well", item.ok, note)
        yield row(place, "prompt rate", item.prompt_rate)
        yield row(place, "generation rate", item.generation_rate)
        yield row(place, "prompt tokens", item.prompt_tokens)
        yield row(place, "generated tokens", item.generated_tokens)
        yield row(place, "prompt time", item.prompt_time)
        yield row(place, "generation time", item.generation_time)
        yield row(place, "wall time", item.wall)
        outside = item.outside_s
        yield Fact(place, "outside of both", outside, "" if outside is None else "s", note="loading and tearing down")


def _warnings(table: BenchTable) -> tuple[str, ...]:
    if not table.rows:
        return ("the file has a header only: nothing was measured, which is not zero",)
    failed = [item for item in table.rows if item.ok is not None and not item.ok.value]
    return tuple(f"line {item.backend.line}: {item.backend.value} failed; it has no rates" for item in failed[:100])


FORMAT: Final = Format(
    NAME,
    "LLM benchmark table",
    "CSV of benchmark runs by backend: prompt and generation rates, tokens and times",
    sniff,
    read,
)
