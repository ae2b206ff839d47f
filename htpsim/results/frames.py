"""A run's log as pandas frames: names as categoricals, integers with their unit in the name, missing as missing.

An instant that was not reached is ``<NA>`` in a nullable integer column, never 0 or -1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from htpsim.results.columns import NEVER, PATHS, REQUEST_STATES, SLICES, STAGES, Execute, Request
from htpsim.results.metric import IntArray
from htpsim.results.samples import Sample
from htpsim.results.tables import Tables
from htpsim.spec import PRIORITIES

if TYPE_CHECKING:
    import pandas as pd

STATUSES: Final = ("done", "in flight")
EXTRA_COLUMNS: Final = {
    "executes": {"status": "done, or in flight when the run ended"},
    "memory": {
        "item_bytes": "what the item holds after it",
        "place_bytes": "what the place holds after it",
        "ledger_bytes": "what the ledger holds after it",
    },
}
"""Columns that a frame has beside those of the log, and what they hold."""
_MAY_BE_MISSING: Final = {
    "granted_ns", "submitted_ns", "started_ns", "finished_ns", "returned_ns", "released_ns",
    "begun_ns", "vit_done_ns", "first_token_ns", "done_ns",
}  # fmt: skip


def executes_frame(tables: Tables) -> pd.DataFrame:
    """Return one row a graphExecute, in order of return; those in flight at the end follow."""
    x, log = tables.executes, tables.log
    names: dict[str, Sequence[str]] = {
        "client": log.clients,
        "stage": STAGES,
        "graph": log.graphs,
        "copy": [copy.name for copy in log.copies],
        "path": PATHS,
        "level": PRIORITIES,
        "account": log.accounts,
    }
    columns: dict[str, object] = {}
    for name in Execute._fields:
        column = "priority" if name == "level" else name
        columns[column] = _names(x[name], names[name]) if name in names else _integers(name, x[name])
    columns["status"] = _names((x["returned_ns"] == NEVER).astype(np.int64), STATUSES)
    return _frame(columns)


def requests_frame(tables: Tables) -> pd.DataFrame:
    """Return one row a request or job, by client and number."""
    r = tables.requests
    names: dict[str, Sequence[str]] = {"client": tables.log.clients, "state": REQUEST_STATES}
    return _frame(
        {n: _names(r[n], names[n]) if n in names else _integers(n, r[n]) for n in Request._fields},
    )


def tokens_frame(tables: Tables) -> pd.DataFrame:
    """Return one row a token, by client, request and number; the first of a request has no gap."""
    tokens = tables.tokens
    return _frame(
        {
            "client": _names(tokens.client, tables.log.clients),
            "request": tokens.request,
            "token": tokens.token,
            "time_ns": tokens.time_ns,
            "gap_ns": _nullable(tokens.gap_ns),
        }
    )


def slices_frame(tables: Tables) -> pd.DataFrame:
    """Return the stretches on a core of graphExecutes that were evicted; a stretch amid which the run ended is open."""
    s = tables.slices
    return _frame(
        {
            "execute": s["execute"],
            "kind": _names(s["kind"], SLICES),
            "start_ns": s["start_ns"],
            "end_ns": _nullable(s["end_ns"]),
        }
    )


def memory_frame(tables: Tables) -> pd.DataFrame:
    """Return one row a change of memory, with what its item, its place and its ledger hold after it."""
    import pandas as pd

    rows = tables.log.memory
    frame = pd.DataFrame(
        {
            "time_ns": np.array([e.time_ns for e in rows], dtype=np.int64),
            "ledger": [e.ledger for e in rows],
            "place": [e.place for e in rows],
            "item": [e.item for e in rows],
            "delta_bytes": np.array([e.delta_bytes for e in rows], dtype=np.int64),
        }
    )
    for held, by in (
        ("item_bytes", ["ledger", "place", "item"]),
        ("place_bytes", ["ledger", "place"]),
        ("ledger_bytes", ["ledger"]),
    ):
        frame[held] = frame.groupby(by, sort=False)["delta_bytes"].cumsum().astype(np.int64)
    return frame.astype({"ledger": "category", "place": "category", "item": "category"})


def loads_frame(tables: Tables) -> pd.DataFrame:
    """Return one row a load, in order of start."""
    import pandas as pd

    log = tables.log
    rows = sorted(log.loads, key=lambda load: (load.start_ns, load.client, load.model))
    return pd.DataFrame(
        {
            "client": [log.clients[load.client] for load in rows],
            "model": [load.model for load in rows],
            "role": [load.role for load in rows],
            "copy": [load.copy for load in rows],
            "core": np.array([load.core for load in rows], dtype=np.int64),
            "start_ns": np.array([load.start_ns for load in rows], dtype=np.int64),
            "end_ns": np.array([load.end_ns for load in rows], dtype=np.int64),
            "message": [load.message for load in rows],
        }
    )


def copies_frame(tables: Tables) -> pd.DataFrame:
    """Return one row a loaded context."""
    import pandas as pd

    return pd.DataFrame([copy._asdict() for copy in tables.log.copies], columns=list(_COPY))


_COPY: Final = ("name", "model", "context", "role", "process", "core", "reserved_bytes", "users")


def _frame(columns: dict[str, object]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(columns, copy=False)


def _names(codes: IntArray, names: Sequence[str]) -> object:
    """Return the names behind indices; -1 is missing."""
    import pandas as pd

    return pd.Categorical.from_codes(codes.astype(np.int32), categories=pd.Index(list(names), dtype=object))


def samples_frame(tables: Tables, sample: Sample) -> pd.DataFrame:
    """Return the samples of one measure: columns client and value_ns."""
    return _frame({"client": _names(sample.client, tables.log.clients), "value_ns": sample.value_ns})


def _integers(name: str, values: IntArray) -> object:
    return _nullable(values) if name in _MAY_BE_MISSING else values


def _nullable(values: IntArray) -> object:
    import pandas as pd

    return pd.arrays.IntegerArray(values.copy(), values == NEVER)
