"""The loop compiled by Numba, once a specialisation and then from the disk, and a store of arrays for it.

Numba's own cache looks at the file of the function that is called and at nothing else: a rule that changed in another
file would go on running as it was. So the folder of the cache is named by a hash of everything that decides what is
compiled: the sources of the engine and the rules, Numba's version, the options. Within it each function has a name made
of a digest of all that it reaches, a user's policy included.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import types
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from htpsim.kernel import entries
from htpsim.kernel.binding import Binder
from htpsim.kernel.fields import INTEGERS, SINGLE, TABLES
from htpsim.kernel.layout import Layout
from htpsim.kernel.store import ENTRIES, ROOMS, Store, policy_in_place
from htpsim.kernel.world import NAMES, Array, Memory
from htpsim.sched import Policy
from htpsim.sched.policy import ACCOUNT_FIELDS, LANE_FIELDS

OPTIONS: Final[dict[str, Any]] = {"nogil": True, "error_model": "numpy", "no_rewrites": True}
USER_OPTIONS: Final[dict[str, Any]] = {"nogil": True, "error_model": "python"}
"""For a user's policy: a division by nothing is an error that stops the run."""
INNER: Final = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""For functions that only compiled code calls."""
SOURCES: Final = ("kernel", "sched", "device", "results/columns.py", "spec/records.py")
PACKAGE: Final = __name__.split(".", maxsplit=1)[0] + "."


def can_compile() -> bool:
    """Tell whether Numba is there and may compile (NUMBA_DISABLE_JIT is not set)."""
    try:
        import numba
    except ImportError:
        return False
    config: Any = numba.config
    return not config.DISABLE_JIT


@lru_cache(maxsize=1)
def cache_folder() -> Path:
    """Return the folder of the compiled code of exactly these sources, this Numba and these options."""
    import numba

    root = Path(__file__).parents[1]
    told = [numba.__version__, sys.version, repr((OPTIONS, USER_OPTIONS, INNER))]
    for source in SOURCES:
        at = root / source
        told += [file.read_text(encoding="utf-8") for file in (sorted(at.glob("*.py")) if at.is_dir() else [at])]
    digest = hashlib.sha256("\0".join(told).encode()).hexdigest()
    return _base() / f"kernel-{digest[:16]}"


def _base() -> Path:
    """Return where caches are kept, by the user's own setting first."""
    given = os.environ.get("NUMBA_CACHE_DIR")
    if given:
        return Path(given)
    home = os.environ.get("XDG_CACHE_HOME")
    base = (Path(home) if home else Path.home() / ".cache") / "htpsim"
    try:
        base.mkdir(parents=True, exist_ok=True)
        if os.access(base, os.W_OK):
            return base
    except OSError:
        pass
    return Path(tempfile.gettempdir()) / f"htpsim-{os.getuid() if hasattr(os, 'getuid') else 0}"


@lru_cache(maxsize=64)
def functions_for(policy: type[Policy]) -> Mapping[str, Callable[..., Any]]:
    """Return the loop's functions for a policy, ready to be compiled when they are first called."""
    import numba

    from htpsim.kernel.pointers import world_at

    instead = policy_in_place(policy) | {(entries.__name__, "world_at"): world_at(world_type(policy))}

    def finish(function: types.FunctionType, digest: str) -> Callable[..., Any]:
        ours = function.__module__.startswith(PACKAGE)
        outer = function.__module__ == entries.__name__
        function.__qualname__ = f"{function.__name__}_{digest[:24]}"
        options = (OPTIONS if ours else USER_OPTIONS) | ({} if outer else INNER)
        made: Callable[..., Any] = numba.njit(cache=True, **options)(function)
        return made

    config: Any = numba.config
    before = config.CACHE_DIR
    config.CACHE_DIR = str(cache_folder())
    try:
        binder = Binder(instead, finish)
        return {name: binder.bind(getattr(entries, f"enter_{name}")) for name in ENTRIES}
    finally:
        config.CACHE_DIR = before


def world_type(policy: type[Policy]) -> Any:
    """Return the type of a world whose lanes are those of a policy."""
    from htpsim.kernel.pointers import Integers, Record, Records, Several, WorldType

    lane_fields = tuple(dict.fromkeys((*LANE_FIELDS, *policy.lane_fields, *policy.params)))
    account_fields = tuple(dict.fromkeys((*ACCOUNT_FIELDS, *policy.account_fields)))
    layout = hashlib.sha256(repr((lane_fields, account_fields)).encode()).hexdigest()[:12]
    checked = not policy.pick.__module__.startswith(PACKAGE)
    tables: dict[str, Any] = {}
    for name, fields in TABLES.items():
        record = Record(name, tuple(dict.fromkeys(fields)))
        tables[name] = record if name in SINGLE else Records(record)
    tables["lanes"] = Records(Record(f"lane.{layout}", lane_fields))
    tables["accounts"] = Several(Records(Record(f"account.{layout}", account_fields), checked))
    tables |= {name: Integers(name) for name in INTEGERS}
    return WorldType(f"{layout}.{checked}", {name: tables[name] for name in NAMES})


class CompiledStore(Store):
    """One run, compiled: tables as NumPy record arrays, given to the code by their addresses."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.memory: Memory = layout.make()
        for name, count in layout.rooms.items():
            self.memory.grow(name, count)
        self.lanes = [_counted(table) for table in self.memory.accounts]
        self.several = np.array([_address(table) + table.itemsize for table in self.lanes] or [0], dtype=np.int64)
        self.addresses = np.zeros(len(NAMES), dtype=np.int64)
        for name in NAMES:
            self._point(name)
        self.world = self.addresses.ctypes.data
        self.functions = functions_for(layout.policy)
        for name, _, room in ROOMS:
            setattr(self.state, room, len(self.memory.arrays[name]) - layout.margins[name])

    def _point(self, name: str) -> None:
        array = self.several if name == "accounts" else self.memory.arrays[name]
        self.addresses[NAMES.index(name)] = _address(array)

    @property
    def state(self) -> Any:
        """The record of the loop's state."""
        return self.memory.arrays["st"].view(np.recarray)[0]

    def records(self, name: str) -> Any:
        """Return a table as it is; what is written to its records is written to the run."""
        return self.memory.arrays[name].view(np.recarray)

    def table(self, name: str, count: int) -> Array:
        """Return the first `count` records of a table."""
        return self.memory.arrays[name][:count]

    def accounts(self) -> Any:
        """Return the accounts of each lane."""
        return [table[1:].view(np.recarray) for table in self.lanes]

    def extend(self, name: str, records: Sequence[Mapping[str, int]]) -> None:
        """Add records to a table."""
        before = len(self.memory.arrays[name])
        self.memory.grow(name, before + len(records))
        table = self.memory.arrays[name]
        for k, record in enumerate(records, start=before):
            for field, value in record.items():
                table[field][k] = value
        self._point(name)


def _counted(table: Array) -> Array:
    """Return a table with a record before its first, which begins with their number."""
    counted = np.zeros(len(table) + 1, dtype=table.dtype)
    counted[1:] = table
    counted.view(np.int64)[0] = len(table)
    return counted


def _address(table: Array) -> int:
    """Return where a table lies."""
    return int(table.ctypes.data)
