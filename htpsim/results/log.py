"""What an engine hands over when it stops: raw rows in the layout of ``columns``, and the names they index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import eq
from typing import Any, Final, overload

import numpy as np
import numpy.typing as npt

from htpsim.results.columns import Copy, Load, MemoryEvent
from htpsim.spec import Scenario
from htpsim.units import format_time

Row = tuple[int, ...]

RECORDED: Final = "live"
"""In place of an engine's name: the run was not simulated, but recorded on the testbed of real threads."""


class Rows(Sequence[Row]):
    """Rows of integers kept as an array; read as a list of tuples is read.

    >>> rows = Rows(np.array([[1, 2], [3, 4]]))
    >>> rows[1], rows[:1], len(rows), rows == [(1, 2), (3, 4)]
    ((3, 4), [(1, 2)], 2, True)
    """

    __slots__ = ("array",)

    def __init__(self, array: npt.NDArray[np.int64]) -> None:
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    def __iter__(self) -> Iterator[Row]:
        return map(tuple, self.array.tolist())

    @overload
    def __getitem__(self, at: int) -> Row: ...

    @overload
    def __getitem__(self, at: slice) -> list[Row]: ...

    def __getitem__(self, at: int | slice) -> Row | list[Row]:
        found = self.array[at].tolist()
        return [tuple(row) for row in found] if isinstance(at, slice) else tuple(found)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(eq, self, other))

    __hash__ = None  # type: ignore[assignment]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self.array, dtype=dtype, copy=copy)

    def __repr__(self) -> str:
        return repr(list(self))


@dataclass(slots=True, kw_only=True)
class RunLog:
    """The raw record of one run; rows are plain tuples in the field order of the classes in ``columns``."""

    scenario: Scenario
    replication: int
    engine: str
    engine_why: str = ""
    """why it was not the compiled one, where a reader may want to know; in no summary"""
    ready_ns: int = 0
    """all loads have ended"""
    start_ns: int = 0
    """measured window begins: ready plus warm-up"""
    end_ns: int = 0
    """measured window ends, inclusive"""
    clients: list[str] = field(default_factory=list)
    """instances, then other clients"""
    graphs: list[str] = field(default_factory=list)
    """"model/graph"."""
    accounts: list[str] = field(default_factory=list)
    """guard accounts: "process 0/vlm0", "process 0/unregistered vlm0" ..."""
    executes: Sequence[Row] = field(default_factory=list)
    """rows of Execute, in order of return; those in flight at the end follow, in order of call"""
    requests: Sequence[Row] = field(default_factory=list)
    """rows of Request, by client and number"""
    slices: Sequence[Row] = field(default_factory=list)
    """rows of Slice, by graphExecute, begin, end, kind"""
    memory: list[MemoryEvent] = field(default_factory=list)
    loads: list[Load] = field(default_factory=list)
    copies: list[Copy] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    """instances that did not start, with the reason"""
    notes: list[str] = field(default_factory=list)
    """what a reader must know: a fallback taken, a warning of the specification"""


def waited(user: str, copy: str, waited_ns: int) -> str:
    """Tell how long somebody waited for turns at a copy.

    >>> waited("vlm0", "llm", 3_000).partition(",")[0]
    'vlm0 waited 3 us in all for its turn at llm'
    """
    return (
        f"{user} waited {format_time(waited_ns)} in all for its turn at {copy}, which others used with another "
        "adapter, or with its graphs switched"
    )
