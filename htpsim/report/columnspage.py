"""The reference of what comes out: every file of a run directory, every column of every table, every figure.

Meanings stand beside the code that fills the columns; this page collects them, and a test holds the stored one to it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import fields, is_dataclass
from typing import Any, Final, get_args, get_type_hints

from htpsim.experiments.fit import FIT_COLUMNS
from htpsim.experiments.sensitivity import COLUMNS as EFFECT_COLUMNS
from htpsim.experiments.sweep.store import COLUMNS as STORE_COLUMNS
from htpsim.experiments.sweep.store import SCHEMA
from htpsim.experiments.tidy import KEY_COLUMNS, METRIC_COLUMNS
from htpsim.experiments.tune import Candidate
from htpsim.report.directory import FILES
from htpsim.results.columns import PATHS, REQUEST_STATES, SLICES, STAGES, Copy, Execute, Load, MemoryEvent, Request
from htpsim.results.columns import Slice as Stretch
from htpsim.results.frames import EXTRA_COLUMNS
from htpsim.results.host import DEFINITIONS as HOST_DEFINITIONS
from htpsim.results.metric import Metric, Stats, unit_of
from htpsim.results.samples import DEFINITIONS
from htpsim.results.summary import Summary
from htpsim.results.tables import Tokens
from htpsim.spec import PRIORITIES
from htpsim.spec.fielddocs import field_docs

Row = tuple[str, ...]

TABLES: Final[dict[str, tuple[str, str, type]]] = {
    "executes": ("one graphExecute; its nine parts sum to returned_ns - called_ns", "records.csv", Execute),
    "requests": ("one request of an instance, or one job of another client", "requests.csv", Request),
    "tokens": ("one token", "", Tokens),
    "slices": ("one stretch on a core, of graphExecutes that were evicted", "slices.csv", Stretch),
    "memory": ("one change of memory", "memory.csv", MemoryEvent),
    "loads": ("one client obtaining one model", "", Load),
    "copies": ("one loaded context", "", Copy),
}
"""Name of a frame -> what a row is, the file that holds it, the class whose fields are its columns."""

_NAMED: Final[Mapping[str, str]] = {
    "index in STAGES": f"stage of the model: {', '.join(STAGES)}",
    "index in PATHS": f"how it went: {', '.join(PATHS)} (past the guard without a handle)",
    "index in REQUEST_STATES": ", ".join(REQUEST_STATES),
    "index in SLICES": ", ".join(SLICES),
    "index in RunLog.graphs": 'graph, as "model/graph"',
    "loaded context it ran on: index in RunLog.copies": "name of the loaded context it ran on",
    "guard account charged (index in RunLog.accounts); -1 on the other paths": "guard account charged, if any",
    "QNN priority level after clamping": f"QNN priority after clamping: {', '.join(PRIORITIES)}",
    "index of the instance or other client": "name of the instance or other client",
    "index of the client": "name of the instance",
    "; NEVER without images": "; missing without images",
    "; NEVER for a job": "; missing for a job",
    "; NEVER for the first": "; missing for the first",
}
"""What a column says in a log -> what it says where names stand in place of indices."""

_HEAD: Final = """\
# What comes out: every file, column and figure

This page is written by the code (`htpsim.report.columnspage`); a test holds it to that.

Names say units: `_ns` is whole nanoseconds, `_bytes` whole bytes; a time counts from the start of the run. What was
not reached when the run ended is an empty cell in CSV and `<NA>` in a frame, never 0. What a figure means does not
depend on where it stands: terminal, JSON, frames and plots take it from one place.

## Files of a run directory

`htpsim run --out DIR` writes a run; `htpsim compare --out DIR` writes such a folder for each variant and case, below
`runs`. A directory is written whole or not at all.

{files}

`log.json` holds what the rows refer to: names of clients, graphs and accounts, loads and copies (below), and

{log}
"""

_SUMMARY: Final = """\
## Figures: summary.json

The summary of one replication. A *figure* is a table of `value`, `n` (samples it rests on), `unit` and `why` (the
reason where there is no value). A *distribution* has five: `mean`, `p50`, `p95`, `p99`, `max`. A path such as
`clients.vlm0.itl.p99` names one, here and in `htpsim sweep --metric`, `htpsim tune --keep` and `Summary.metric`.
"""

_PYTHON: Final = """\
## Tidy tables

`to_dataframe()` of what `htpsim.run` and `htpsim.compare` return: a row a figure of a replication.
"""


def page() -> str:
    """Return the whole page.

    >>> page().splitlines()[0]
    '# What comes out: every file, column and figure'
    """
    files = _table(("file", "of", "holds"), ((f"`{name}`", of, text) for name, (of, text) in FILES.items()))
    parts = [_HEAD.format(files=files, log=_log())]
    for name, (row, file, cls) in TABLES.items():
        kept = f"`{file}`, " if file else ""
        parts += [f"## {name}", "", f"A row is {row}: {kept}`RunResult.{name}`, `htpsim export --as table`.", ""]
        parts += [_table(("column", "unit", "meaning"), columns_of(name, cls)), ""]
    parts += [_SUMMARY, _table(("path", "holds", "unit", "meaning"), summary_rows()), ""]
    parts += [_PYTHON, _described(KEY_COLUMNS | METRIC_COLUMNS), ""]
    parts += ["## Sweeps", "", *_sweeps(), "## Other tables", "", *_others()]
    return "\n".join(parts).rstrip() + "\n"


def _table(head: Row, rows: Iterator[Row]) -> str:
    lines = ["| " + " | ".join(head) + " |", "| --- " * len(head) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def _described(columns: Mapping[str, str]) -> str:
    return _table(("column", "meaning"), ((f"`{name}`", text) for name, text in columns.items()))


def _log() -> str:
    from htpsim.results.log import RunLog

    docs = field_docs(RunLog)
    kept = ("replication", "ready_ns", "start_ns", "end_ns", "failed", "notes")
    told = {name: docs.get(name, "which replication, from 0") for name in kept}
    return _table(("key", "meaning"), ((f"`{name}`", text) for name, text in told.items()))


def columns_of(name: str, cls: type) -> Iterator[Row]:
    """Yield a row a column of a frame, those that only the frame has at the end."""
    docs = field_docs(cls)
    for field in getattr(cls, "_fields", ()):
        column = "priority" if field == "level" else field
        yield f"`{column}`", unit_by_name(field), _named(docs.get(field, ""))
    for column, text in EXTRA_COLUMNS.get(name, {}).items():
        yield f"`{column}`", unit_by_name(column), f"{text}; in the frame only"


def unit_by_name(name: str) -> str:
    """Return the unit that the end of a name says.

    >>> unit_by_name("run_ns"), unit_by_name("io_bytes"), unit_by_name("core")
    ('ns', 'bytes', '')
    """
    ending = name.rpartition("_")[2]
    return ending if ending in {"ns", "bytes"} else ""


def _named(text: str) -> str:
    for index, name in _NAMED.items():
        text = text.replace(index, name)
    return text.removesuffix(".")


def summary_rows() -> Iterator[Row]:
    """Yield a row for every path of a summary, names of clients and the like left open."""
    yield from _walk("", Summary)


def _walk(path: str, cls: type) -> Iterator[Row]:
    hints, docs = get_type_hints(cls), field_docs(cls)
    for field in fields(cls):
        hint, here = hints[field.name], f"{path}{field.name}"
        text = _meaning(field.name, docs).removesuffix(".")
        inner = _inner(hint)
        if field.name == "costs":
            for name, meaning in HOST_DEFINITIONS.items():
                kind = ("figure", "share") if name == "polling" else ("distribution", "ns")
                yield f"`{here}.{name}`", *kind, f"{meaning}; if any"
        elif inner is None:
            yield f"`{here}`", *_leaf(hint, here), text
        elif inner is not hint and path.startswith("clients.") and field.name == "parts":
            yield f"`{here}.STAGE`", "table", "", "as `overall.parts`"
        else:
            several = "" if inner is hint else _NAMES.get(field.name, ".NAME")
            if text and several:
                yield f"`{here}`", "list" if several == "[]" else "table by name", "", text
            if inner.__name__ == "ClientSummary":
                yield f"`{here}{several}`", "", "", "all that `overall` has, of this client alone, and"
                yield from _own(f"{here}{several}.", inner)
            else:
                yield from _walk(f"{here}{several}.", inner)


_DEFINED_AS: Final = {"device_ns": "device_time"}
_NAMES: Final = {
    "parts": ".STAGE",
    "cores": ".core N",
    "roles": ".ROLE",
    "memory": ".LEDGER",
    "copies": "[]",
    "loads": "[]",
}


def _own(path: str, cls: type) -> Iterator[Row]:
    """Yield the paths of a client that the pooled figures have not."""
    inherited = {field.name for field in fields(cls.__bases__[0])}
    for row in _walk(path, cls):
        if row[0].strip("`").removeprefix(path).split(".")[0] not in inherited:
            yield row


def _inner(hint: Any) -> type | None:
    """Return the dataclass that a member holds, one or many of them; None for a figure, a number or a text."""
    for candidate in (hint, *get_args(hint)):
        if isinstance(candidate, type) and is_dataclass(candidate) and candidate not in (Metric, Stats):
            return candidate
    return None


def _leaf(hint: Any, path: str) -> Row:
    if hint is Stats:
        return "distribution", "ns"
    if hint is Metric:
        return "figure", unit_of(path)
    kinds = {int: "number", str: "text", bool: "switch", int | None: "number or none", list[str]: "list of texts"}
    return kinds.get(hint, "list of numbers" if hint == list[int] else "table"), unit_by_name(path)


def _meaning(name: str, docs: Mapping[str, str]) -> str:
    return DEFINITIONS.get(name) or docs.get(name) or DEFINITIONS.get(_DEFINED_AS.get(name, ""), "")


def _sweeps() -> Iterator[str]:
    yield "`htpsim sweep --out STORE` keeps its runs in one SQLite file:"
    yield ""
    with closing(sqlite3.connect(":memory:")) as base:
        base.executescript(SCHEMA)
        names = [name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid")]
        found = [(table, *row[1:3]) for table in names for row in base.execute(f"PRAGMA table_info({table})")]
    rows = ((f"`{table}`", f"`{name}`", kind, STORE_COLUMNS[f"{table}.{name}"]) for table, name, kind in found)
    yield _table(("table", "column", "type", "meaning"), rows)
    yield ""
    yield "`--table FILE` and `Sweep.to_dataframe()` give a row a point and replication:"
    yield ""
    yield _described({
        "point": STORE_COLUMNS["points.point"],
        "replication": "which replication, from 0",
        "an axis a column": "the value of the point on it, by the key of the axis",
        "a figure a column": "by its path; times in ns, sizes in bytes, shares of one; NaN where there is none",
        "why": "why a figure is missing",
    })  # fmt: skip
    yield ""


def _others() -> Iterator[str]:
    yield "`htpsim.sensitivity(...).to_dataframe()`: a row an effect."
    yield ""
    yield _described(EFFECT_COLUMNS)
    yield ""
    yield "`htpsim.fit(...).to_dataframe()`: a row a variant."
    yield ""
    yield _described(FIT_COLUMNS)
    yield ""
    yield "`htpsim.tune(...).to_dataframe()`: a row a candidate; an axis a column, then for the goal and each bounded"
    yield "figure its mean by its path and its interval's `half-width`, then"
    yield ""
    docs = field_docs(Candidate)
    yield _described({name: docs.get(name, "").removesuffix(".") for name in ("keeps", "clear", "front")})
