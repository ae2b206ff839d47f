"""The loop compiled by Numba, once a policy and shape and then from the disk, and a store of arrays for it.

Numba's own cache looks at the file of the function that is called and at nothing else: a rule that changed in another
file would go on running as it was. So code is kept here, in a folder that is named by a hash of everything that decides
what is compiled: the sources of the engine and the rules, Numba's version, the options. Within it each file has a name
made of a digest of all that the code reaches, a user's policy included. What is kept is loaded without Numba.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import types
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np

from htpsim.device.records import NOBODY
from htpsim.kernel import draws, entries, steps
from htpsim.kernel.binding import Binder, Function, Stand
from htpsim.kernel.code import callable_of, read_code, write_code
from htpsim.kernel.fields import INTEGERS, SINGLE, TABLES
from htpsim.kernel.layout import Layout
from htpsim.kernel.shapes import Shape
from htpsim.kernel.store import ROOMS, Store, policy_in_place
from htpsim.kernel.world import NAMES, Array, Memory
from htpsim.sched import Policy
from htpsim.sched.policy import ACCOUNT_FIELDS, LANE_FIELDS

USER_OPTIONS: Final[dict[str, Any]] = {"error_model": "python", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""For functions of a user's policy: a division by nothing is an error that stops the run."""
RULES: Final = tuple(f"htpsim.{part}." for part in ("device", "memory", "sched"))
"""Modules whose functions become part of those that call them."""
SOURCES: Final = (
    "kernel",
    "sched",
    "device",
    "memory/turns.py",
    "results/columns.py",
    "results/tally.py",
    "spec/records.py",
)
DIGEST: Final = 24
"""Characters of a digest that a name has."""
_WORLD_AT: Final = (entries.__name__, "world_at")
PACKAGE: Final = __name__.split(".", maxsplit=1)[0] + "."


def can_compile() -> bool:
    """Tell whether Numba is there and may compile (NUMBA_DISABLE_JIT is not set)."""
    return find_spec("numba") is not None and os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")


@lru_cache(maxsize=1)
def cache_folder() -> Path:
    """Return the folder of the compiled code of exactly these sources, this Numba and these options."""
    root = Path(__file__).parents[1]
    told = [version("numba"), sys.version, version("llvmlite"), repr(USER_OPTIONS)]
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
    try:
        base = (Path(home) if home else Path.home() / ".cache") / "htpsim"
        base.mkdir(parents=True, exist_ok=True)
        if os.access(base, os.W_OK):
            return base
    except (OSError, RuntimeError):  # it cannot be written to; or, in a container, the user has no home
        pass
    return Path(tempfile.gettempdir()) / f"htpsim-{os.getuid() if hasattr(os, 'getuid') else 0}"


@lru_cache(maxsize=64)
def digest(policy: type[Policy], shape: Shape) -> str:
    """Return the digest of what would be compiled for a policy and a shape."""
    return Binder(_in_place(policy, shape)).digest(entries.enter)


def _in_place(
    policy: type[Policy], shape: Shape, world_at: Any = None, fetch: Any = None
) -> dict[tuple[str, str], Any]:
    """Return what stands in the place of other functions where the loop is compiled."""
    return {
        **policy_in_place(policy),
        _WORLD_AT: Stand(f"{layout_of(policy)}-{shape.name}", world_at),
        (steps.__name__, "expect"): draws.fetch_ahead,
        (draws.__name__, "fetch"): Stand("fetch", fetch),
    }


def file_of(policy: type[Policy], shape: Shape) -> Path:
    """Return where the code for a policy and a shape is kept."""
    return cache_folder() / f"{policy.name.replace(':', '-')}-{shape.name}-{digest(policy, shape)[:DIGEST]}.code"


def is_compiled(policy: type[Policy], shape: Shape) -> bool:
    """Tell whether the loop was compiled for a policy and a shape before and lies on the disk; asks no Numba."""
    return can_compile() and file_of(policy, shape).exists()


class CannotCompile(Exception):
    """Numba does not compile the loop with a policy; its text says why, on one line."""


def function_for(policy: type[Policy], shape: Shape) -> Function:
    """Return the loop's function for a policy and a shape: from the disk, or compiled now, which takes its time.

    Raises
    ------
    CannotCompile
        When Numba does not compile it.
    """
    made = _function_or_why(policy, shape)
    if isinstance(made, str):
        raise CannotCompile(made)
    return made


@lru_cache(maxsize=64)
def _function_or_why(policy: type[Policy], shape: Shape) -> Function | str:
    """Return the function, or why there is none; kept, because it takes as long to find out a second time."""
    path = file_of(policy, shape)
    found = read_code(path)
    if found is None:
        try:
            found = _compiled(policy, shape)
        except Exception as error:  # whatever Numba raises over a user's policy, or for want of what `parts` relies on
            return (str(error).strip().splitlines() or [type(error).__name__])[0]
        with suppress(OSError):  # a folder that cannot be written to: compiled again the next time
            write_code(path, *found)
    return callable_of(*found)


def _compiled(policy: type[Policy], shape: Shape) -> tuple[str, bytes]:
    """Return the name by which the function is called, and the object file with it."""
    import numba

    from htpsim.kernel.parts import Part, compile_whole
    from htpsim.kernel.pointers import fetch, world_at

    in_place = _in_place(policy, shape, world_at(world_type(policy, shape)), fetch)
    njit: Any = numba.njit

    def finish(function: types.FunctionType, name: str) -> Any:
        _named(function, name)
        if function.__module__ == entries.__name__:
            return function
        if function.__module__.startswith(PACKAGE):
            return Part(function, inline=function.__module__.startswith(RULES))
        return njit(**USER_OPTIONS)(function)

    function = Binder(in_place, finish).bind(entries.enter)
    assert isinstance(function, types.FunctionType)
    made: tuple[str, bytes] = compile_whole(function, (numba.int64,) * 3)
    return made


def _named(function: types.FunctionType, digest: str) -> types.FunctionType:
    """Name a function after all that it reaches: that is its name in the machine code."""
    function.__qualname__ = f"{function.__name__}_{digest[:DIGEST]}"
    return function


def _fields(policy: type[Policy]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the fields of a lane and of an account."""
    lane = dict.fromkeys((*LANE_FIELDS, *policy.lane_fields, *policy.params))
    return tuple(lane), tuple(dict.fromkeys((*ACCOUNT_FIELDS, *policy.account_fields)))


def layout_of(policy: type[Policy]) -> str:
    """Return a word that tells the lanes and accounts of one policy from those of others."""
    checked = "" if policy.pick.__module__.startswith(PACKAGE) else "checked"
    return hashlib.sha256(repr(_fields(policy)).encode()).hexdigest()[:12] + checked


def world_type(policy: type[Policy], shape: Shape) -> Any:
    """Return the type of a world whose lanes are those of a policy, with the fields fixed that a shape fixes."""
    from htpsim.kernel.pointers import Integers, Record, Records, Several, WorldType

    layout = layout_of(policy)
    lane_fields, account_fields = _fields(policy)
    tables: dict[str, Any] = {}
    for name, fields in TABLES.items():
        record = Record(name, tuple(dict.fromkeys(fields)), shape.fixed(name))
        tables[name] = record if name in SINGLE else Records(record)
    tables["lanes"] = Records(Record(f"lane.{layout}", lane_fields))
    accounts = Records(Record(f"account.{layout}", account_fields), layout.endswith("checked"))
    tables["accounts"] = Several(accounts)
    tables |= {name: Integers(name) for name in INTEGERS}
    return WorldType(f"{layout}-{shape.name}", {name: tables[name] for name in NAMES})


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
        self.enter = function_for(layout.policy, layout.shape)
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
        found = self.memory.arrays[name]
        return found.view(np.recarray) if found.dtype.names else found

    def table(self, name: str, count: int) -> Array:
        """Return the first `count` records of a table."""
        return self.memory.arrays[name][:count]

    def accounts(self) -> Any:
        """Return the accounts of each lane."""
        return [table[1:].view(np.recarray) for table in self.lanes]

    def extend(self, name: str, records: Sequence[Mapping[str, int]]) -> None:
        """Add records to a table."""
        before = len(self.memory.arrays[name])
        self.enlarge(name, len(records))
        table = self.memory.arrays[name]
        for k, record in enumerate(records, start=before):
            for field, value in record.items():
                table[field][k] = value

    def lengthen(self, name: str, count: int) -> None:
        """Add so many integers to a list."""
        self.memory.integers(name, [*self.memory.arrays[name], *[NOBODY] * count])
        self._point(name)

    def enlarge(self, name: str, count: int) -> None:
        """Add so many records to a table, all fields 0."""
        self.memory.grow(name, len(self.memory.arrays[name]) + count)
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
