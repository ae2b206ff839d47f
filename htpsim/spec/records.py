"""Records of integers: one table of field names, a slotted Python class for one engine, a NumPy dtype for the other.

The rules in ``sched`` and ``device`` are plain functions over ``records[i].field``; they read the same on both.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np


def record_class(name: str, fields: Iterable[str]) -> type[Any]:
    """Return a slotted class whose instances start with every field at 0; the same class for the same fields.

    >>> Core = record_class("Core", ("held", "since_ns"))
    >>> Core().held
    0
    """
    return _record_class(name, tuple(dict.fromkeys(fields)))


@lru_cache(maxsize=256)
def _record_class(name: str, names: tuple[str, ...]) -> type[Any]:
    """Make the class once, so that what the interpreter learns about its instances in one run holds in the next."""

    def start(self: Any) -> None:
        for field in names:
            setattr(self, field, 0)

    def show(self: Any) -> str:
        return f"{name}({', '.join(f'{f}={getattr(self, f)}' for f in names)})"

    return type(name, (), {"__slots__": names, "__init__": start, "__repr__": show, "fields": names})


def record_dtype(fields: Iterable[str]) -> np.dtype[Any]:
    """Return the dtype of a record array with the same fields, all int64.

    >>> record_dtype(("held", "since_ns")).names
    ('held', 'since_ns')
    """
    return np.dtype([(f, np.int64) for f in dict.fromkeys(fields)])
