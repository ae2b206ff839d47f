"""Read back what `write` wrote: a run's log from its directory, bit for bit, and a summary from its JSON.

Whatever reads a run directory goes through here: a report, an export, a calibration.
"""

from __future__ import annotations

import csv
import io
import json
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from htpsim.errors import FormatError, HtpsimError, unknown_name
from htpsim.results.columns import (
    NEVER,
    PATHS,
    REQUEST_STATES,
    SLICES,
    STAGES,
    Copy,
    Execute,
    Load,
    MemoryEvent,
    Request,
    Slice,
)  # fmt: skip
from htpsim.results.log import Row, RunLog
from htpsim.results.summary import IF_ANY, Summary
from htpsim.results.write import LOG, PROVENANCE, SLICES_CSV
from htpsim.spec import PRIORITIES, Scenario

BYTES_MAX: Final = 2**30
"""Of one file: a run of a day is below it."""

_T = TypeVar("_T")
_TEXTS: Final = ("clients", "graphs", "accounts", "notes")
_NUMBERS: Final = ("replication", "ready_ns", "start_ns", "end_ns")


def read_log(folder: Path, scenario: Scenario, *, engine: str | None = None) -> RunLog:
    """Return the log that `write_run` wrote to a folder.

    Parameters
    ----------
    folder
        A run directory, or the folder of one run in the directory of a comparison.
    scenario
        That of the folder's scenario.json, which a layer above reads.
    engine
        Name of the engine that ran; by default what the provenance says.

    Raises
    ------
    HtpsimError
        When a file is missing, is not what `write_run` writes, or does not fit the others; names file and line.
    """
    head = _head(folder / LOG)
    copies = [copy.name for copy in head.copies]
    names: dict[str, Sequence[str]] = {
        "client": head.texts["clients"],
        "stage": STAGES,
        "graph": head.texts["graphs"],
        "copy": copies,
        "path": PATHS,
        "level": PRIORITIES,
        "account": head.texts["accounts"],
    }
    requests: dict[str, Sequence[str]] = {"client": head.texts["clients"], "state": REQUEST_STATES}
    return RunLog(
        scenario=scenario,
        engine=_engine(folder) if engine is None else engine,
        replication=head.numbers["replication"],
        ready_ns=head.numbers["ready_ns"],
        start_ns=head.numbers["start_ns"],
        end_ns=head.numbers["end_ns"],
        clients=head.texts["clients"],
        graphs=head.texts["graphs"],
        accounts=head.texts["accounts"],
        notes=head.texts["notes"],
        executes=_rows(folder / "records.csv", Execute._fields, names),
        requests=_rows(folder / "requests.csv", Request._fields, requests),
        slices=_rows(folder / SLICES_CSV, Slice._fields, {"kind": SLICES}),
        memory=_memory(folder / "memory.csv"),
        copies=head.copies,
        loads=head.loads,
        failed=head.failed,
    )


class _Head(NamedTuple):
    """What log.json holds."""

    numbers: dict[str, int]
    texts: dict[str, list[str]]
    copies: list[Copy]
    loads: list[Load]
    failed: dict[str, str]


def _head(path: Path) -> _Head:
    tree = read_json(path)
    return _Head(
        {name: field_of(path, tree, name, int) for name in _NUMBERS},
        {name: [_is(path, name, text, str) for text in field_of(path, tree, name, list)] for name in _TEXTS},
        [_tuple(path, Copy, row) for row in field_of(path, tree, "copies", list)],
        [_tuple(path, Load, row) for row in field_of(path, tree, "loads", list)],
        {str(name): _is(path, "failed", why, str) for name, why in field_of(path, tree, "failed", dict).items()},
    )


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object of a file of a run directory.

    Raises
    ------
    HtpsimError
        When the file is missing, too long or no JSON object.
    """
    return _is(path, "the file", _json(path), dict)


def read_json_list(path: Path) -> list[Any]:
    """Return the JSON array of a file of a run directory; raises as `read_json` does."""
    return _is(path, "the file", _json(path), list)


def _json(path: Path) -> object:
    try:
        value: object = json.loads(_text(path))
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path}: got {error}, expected the JSON of a run directory") from error
    return value


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > BYTES_MAX:
            raise FormatError(f"{path}: got {path.stat().st_size:,} bytes, expected at most {BYTES_MAX:,}")
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError as error:
        raise HtpsimError(
            f"{path.parent}: got no {path.name} in it, expected a run directory as htpsim run --out writes it "
            f"(one by an earlier version has none: make it anew with the command in its {PROVENANCE})"
        ) from error
    except UnicodeDecodeError as error:
        raise FormatError(f"{path}: got bytes that are no UTF-8 text, expected a file of a run directory") from error


def _is(path: Path | str, name: str, value: object, kind: type[_T]) -> _T:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise FormatError(f"{path}: {name}: got {_short(value)}, expected {kind.__name__}")
    return value


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def field_of(path: Path | str, tree: object, name: str, kind: type[_T]) -> _T:
    """Return a field of a JSON object that must be there and of a kind; raises FormatError, which names the file.

    >>> field_of("summary.json", {"title": "four VLMs"}, "title", str)
    'four VLMs'
    """
    known = _is(path, f"what holds '{name}'", tree, dict)
    if name not in known:
        raise FormatError(f"{path}: got no '{name}', expected it beside {', '.join(list(known)[:5]) or 'nothing'}")
    return _is(path, name, known[name], kind)


def _tuple(path: Path, kind: type[_T], row: object) -> _T:
    values = _is(path, kind.__name__.lower(), row, dict)
    hints = get_type_hints(kind)
    return kind(**{name: field_of(path, values, name, hint) for name, hint in hints.items()})


def _engine(folder: Path) -> str:
    """Return the engine that the nearest provenance names: the run's own, or that of the comparison around it."""
    for place in (folder, folder.parent.parent):
        if (place / PROVENANCE).is_file():
            return str(read_json(place / PROVENANCE).get("engine", ""))
    return ""


def _rows(path: Path, columns: Sequence[str], names: Mapping[str, Sequence[str]]) -> list[Row]:
    """Return the rows of a CSV file, names as their indices, what is empty as NEVER."""
    header = ["priority" if name == "level" else name for name in columns]
    found = _table(path, header)
    made = [
        _column(path, header[i], found[i], _index(path, header[i], names[name]) if name in names else int)
        for i, name in enumerate(columns)
    ]
    return list(zip(*made, strict=True))


def _table(path: Path, header: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the columns of a CSV file whose first line is `header`."""
    lines = csv.reader(io.StringIO(_text(path), newline=""), strict=True)
    try:
        first = next(lines, [])
        rows = list(lines)
    except csv.Error as error:
        raise FormatError(f"{path}: got {error} in line {lines.line_num}, expected CSV") from error
    if first != list(header):
        raise FormatError(f"{path}: line 1: got {_short(','.join(first))}, expected the columns {','.join(header)}")
    width = len(header)
    if any(len(row) != width for row in rows):
        line = next(i for i, row in enumerate(rows, start=2) if len(row) != width)
        raise FormatError(f"{path}: line {line}: got {len(rows[line - 2])} fields, expected {width}")
    return list(zip(*rows, strict=True)) if rows else [()] * width


def _column(path: Path, name: str, texts: Sequence[str], read: Callable[[str], int]) -> list[int]:
    try:
        return [read(text) if text else NEVER for text in texts]
    except (ValueError, KeyError):
        return [_cell(path, name, line, text, read) for line, text in enumerate(texts, start=2)]


def _cell(path: Path, name: str, line: int, text: str, read: Callable[[str], int]) -> int:
    """Read one cell, and complain with its line."""
    try:
        return read(text) if text else NEVER
    except ValueError as error:
        raise FormatError(f"{path}: line {line}: {name}: got {_short(text)}, expected a whole number") from error
    except KeyError as error:
        raise FormatError(f"{path}: line {line}: {error.args[0]}") from error


def _index(path: Path, name: str, known: Sequence[str]) -> Callable[[str], int]:
    numbers = {text: i for i, text in enumerate(known)}
    if len(numbers) != len(known):
        twice = next(text for i, text in enumerate(known) if text in known[:i])
        raise FormatError(f"{path}: {name}: got '{twice}' twice among the names in {LOG}, expected each once")

    def number(text: str) -> int:
        if text not in numbers:
            raise KeyError(unknown_name(name, text, known))
        return numbers[text]

    return number


def _memory(path: Path) -> list[MemoryEvent]:
    time, ledger, place, item, delta = _table(path, MemoryEvent._fields)
    times, deltas = (_column(path, name, texts, int) for name, texts in (("time_ns", time), ("delta_bytes", delta)))
    return [MemoryEvent(*row) for row in zip(times, ledger, place, item, deltas, strict=True)]


def summary_of_dict(tree: Mapping[str, Any], where: str = "summary") -> Summary:
    """Return the summary whose JSON form this is.

    Parameters
    ----------
    tree
        What `Summary.to_dict` returned: floats are those of the JSON, rounded to six decimals.
    where
        What the message of an error begins with, such as the path of the file.

    Raises
    ------
    FormatError
        When something is missing or of another kind.
    """
    made: Summary = _made(Summary, tree, where)
    return made


def _made(kind: Any, value: Any, where: str) -> Any:
    """Return a value of a type of `summary`, made of its JSON form."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        if value is None and type(None) in inner:
            return None
        return _made(_fitting([one for one in inner if one is not type(None)], value), value, where)
    if origin is list:
        return [_made(inner[0], one, where) for one in _is(where, "a list", value, list)]
    if origin is dict:
        return {str(k): _made(inner[1], v, f"{where}: {k}") for k, v in _is(where, "it", value, dict).items()}
    if is_dataclass(kind) and isinstance(kind, type):
        tree, hints = _is(where, kind.__name__, value, dict), _hints(kind)
        return kind(**{f.name: _made(hints[f.name], _present(tree, f.name, where), f"{where}: {f.name}")
                       for f in fields(kind) if f.init and (f.name in tree or f.metadata != IF_ANY)})  # fmt: skip
    if kind is float and type(value) is int:
        return value
    return _is(where, "it", value, kind)


@cache
def _hints(kind: type) -> dict[str, Any]:
    """Return the types of the fields of a class: asked thousands of times, the same each time."""
    return get_type_hints(kind)


def _fitting(kinds: Sequence[Any], value: Any) -> Any:
    """Return the kind of a union that a value is of; the first where it is of none."""
    if isinstance(value, dict):
        named = {kind: {f.name for f in fields(kind)} for kind in kinds if is_dataclass(kind)}
        return next((kind for kind, names in named.items() if names == value.keys()), kinds[0])
    return next((kind for kind in kinds if isinstance(kind, type) and type(value) is kind), kinds[0])


def _present(tree: Mapping[str, Any], name: str, where: str) -> Any:
    if name not in tree:
        raise FormatError(f"{where}: got no '{name}', expected it as this version of htpsim writes it")
    return tree[name]
