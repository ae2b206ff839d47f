"""The memory of a run: tables of records that can grow, as lists of objects or as NumPy record arrays."""

from __future__ import annotations

from array import array as integers
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from htpsim.kernel.fields import INTEGERS, SINGLE, TABLES
from htpsim.spec.records import record_class, record_dtype

LANES: Final = ("lanes", "accounts")
NAMES: Final = (*TABLES, *LANES, *INTEGERS)
"""Everything that a world has, in the order of the addresses that compiled code is given."""

Array = npt.NDArray[Any]


class World:
    """What an engine's functions read and write, where they run interpreted: lists of objects."""

    __slots__ = NAMES

    def __init__(self, tables: dict[str, Any]) -> None:
        for name in NAMES:
            setattr(self, name, tables[name])


class Memory:
    """The tables of one run, made as NumPy record arrays; `objects` turns them into the lists of a `World`."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}
        self.accounts: list[Array] = []

    def put(self, name: str, count: int, fields: Sequence[str] = (), **columns: Any) -> Array:
        """Make a table of `count` records with the given columns, 0 elsewhere."""
        table = np.zeros(count, dtype=record_dtype(fields or TABLES[name]))
        for column, values in columns.items():
            table[column] = values
        self.arrays[name] = table
        return table

    def integers(self, name: str, values: Any) -> None:
        """Make a list of integers."""
        self.arrays[name] = np.asarray(values, dtype=np.int64)

    def copy(self) -> Memory:
        """Return the same tables anew; the values, which nobody writes to and which are many, are shared."""
        other = Memory()
        other.arrays = {name: table if name == "values" else table.copy() for name, table in self.arrays.items()}
        other.accounts = [table.copy() for table in self.accounts]
        return other

    def grow(self, name: str, count: int) -> None:
        """Make room for `count` records, keeping those that are there."""
        old = self.arrays[name]
        table = np.zeros(count, dtype=old.dtype)
        table.view(np.int64)[: old.nbytes // 8] = old.view(np.int64)  # integers by the block, not field by field
        self.arrays[name] = table


def objects(memory: Memory) -> World:
    """Return the tables as lists of objects."""
    tables: dict[str, Any] = {name: _objects(name, memory.arrays[name]) for name in (*TABLES, "lanes")}
    for name in SINGLE:
        tables[name] = tables[name][0]
    for name in INTEGERS:
        tables[name] = integers("q", memory.arrays[name].tobytes())
    tables["accounts"] = [_objects("account", table) for table in memory.accounts]
    return World(tables)


def _objects(name: str, table: Array) -> list[Any]:
    names = table.dtype.names
    assert names is not None
    kind = record_class(name, names)
    found = []
    for row in table.tolist():
        record = kind()
        for field, value in zip(names, row, strict=True):
            setattr(record, field, value)
        found.append(record)
    return found


def array(name: str, records: Sequence[Any]) -> Array:
    """Return records that are objects as an array."""
    fields = TABLES[name]
    return np.array([tuple(getattr(r, f) for f in fields) for r in records], dtype=record_dtype(fields))
