"""What every graphExecute waited for, on whose account, to the nanosecond.

A graphExecute takes ``returned - called``. What it would take alone is its own doing; the rest was somebody's:

=============  ==================================================================================================
kind           whose doing
=============  ==================================================================================================
guard          waiting for a slot: those who held the slots. While a holder itself waited for a core, the one on
               that core, with the holder as the one it came through
guard-policy   a slot was free and the policy granted nobody: a quota that idles, a tie that waits
device         submitted, waiting for the core: those on the core
core-idle      submitted, and the core stood empty: it was kept for a gang, or the context's FIFO had not moved on
evicted        waiting after an eviction: those on the core meanwhile
eviction       being evicted and restored: the one that took the core
stretch        running slower than alone: those that ran beside it, or nobody that is known (background, throttling)
own            its own run alone, guard overhead, RPC, acquire
=============  ==================================================================================================

Several at once share the time equally. The parts of a graphExecute sum exactly to its ``returned - called``.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from htpsim.results.columns import NEVER, PATH_GENIE, SLICES
from htpsim.results.metric import IntArray
from htpsim.results.occupancy import gang_width, stretches
from htpsim.results.occupants import Occupants, Segment, shared_out
from htpsim.results.shares import all_clients
from htpsim.results.tables import Tables

KINDS: Final = ("own", "guard", "guard-policy", "device", "core-idle", "evicted", "eviction", "stretch")
OWN, GUARD, GUARD_POLICY, DEVICE, CORE_IDLE, EVICTED, EVICTION, STRETCH = range(len(KINDS))
NOBODY: Final = -1
_OWN_PARTS: Final = ("guard_overhead_ns", "rpc_ns", "acquire_ns", "rpc_return_ns")
_RUNNING: Final = SLICES.index("run")
_ON_OFF: Final = (SLICES.index("evict"), SLICES.index("restore"))


class Cause(NamedTuple):
    """A part of the time of one graphExecute, and who was behind it."""

    row: int
    """row of the one that was delayed"""
    kind: int
    """index in KINDS"""
    culprit: int
    """row of the one whose doing it was; the row itself for ``own``, NOBODY where there is none"""
    through: int
    """row of the guard holder that was itself kept waiting by the culprit, or NOBODY"""
    delay_ns: int


class Blame:
    """Causes of the time of every graphExecute of a run that returned."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        x = tables.executes
        self._x = {name: x[name].tolist() for name in x.names}
        self._process = [client.process for client in all_clients(tables.log.scenario)]
        self._per_core = tables.log.scenario.guard.slots_per == "core"
        self._width = gang_width(tables).tolist()
        self._lines: dict[int, list[tuple[int, int, int]]] = {}
        for row, kind, start, end in zip(
            tables.slice_rows.tolist(), *(tables.slices[c].tolist() for c in ("kind", "start_ns", "end_ns")),
            strict=True,
        ):  # fmt: skip
            self._lines.setdefault(row, []).append((start, end, kind))
        for line in self._lines.values():
            line.sort()

    @cached_property
    def _cores(self) -> dict[int, Occupants]:
        held = stretches(self.tables)
        by_core: dict[int, list[tuple[int, int, int]]] = {}
        for row, core, start, end in zip(*(column.tolist() for column in held), strict=True):
            by_core.setdefault(core, []).append((row, start, end))
        return {core: Occupants(each) for core, each in by_core.items()}

    @cached_property
    def _guards(self) -> dict[tuple[int, int], Occupants]:
        """Holders of the slots of every line; a slot held over several graphExecutes belongs to the first of them."""
        x, end_ns = self._x, self.tables.log.end_ns
        lines: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
        first: dict[tuple[int, int], int] = {}
        for row in np.argsort(self.tables.executes["execute"], kind="stable").tolist():
            if x["path"][row] != PATH_GENIE or x["granted_ns"][row] == NEVER:
                continue
            released = x["released_ns"][row]
            holder = row
            if released != x["returned_ns"][row] or released == NEVER:
                holder = first.setdefault((x["client"][row], released), row)
            until = end_ns if released == NEVER else released
            lines.setdefault(self._line(row), []).append((holder, x["granted_ns"][row], until))
        return {line: Occupants(each) for line, each in lines.items()}

    def _line(self, row: int) -> tuple[int, int]:
        core = self._x["core"][row] if self._per_core else 0
        return self._process[self._x["client"][row]], core

    def causes(self, row: int) -> list[Cause]:
        """Return the causes of the time of one graphExecute that returned; their delays sum to returned - called."""
        x = self._x
        found = [*self._in_guard(row), *self._on_device(row), *self._stretched(row)]
        own_ns = sum(x[part][row] for part in _OWN_PARTS) + min(x["run_ns"][row], x["solo_ns"][row])
        return [Cause(row, OWN, row, NOBODY, own_ns), *found]

    def _in_guard(self, row: int) -> Iterator[Cause]:
        """Yield whose slots it waited for."""
        x = self._x
        called, granted = x["called_ns"][row], x["granted_ns"][row]
        if x["path"][row] != PATH_GENIE or called == granted:
            return
        slots = self.tables.log.scenario.guard.slots or self._default_slots
        for segment in self._guards[self._line(row)].between(called, granted):
            length_ns = segment.end_ns - segment.start_ns
            if len(segment.holders) < slots:
                yield Cause(row, GUARD_POLICY, NOBODY, NOBODY, length_ns)
                continue
            for holder, part_ns in shared_out(length_ns, segment.holders):
                yield from self._through(row, holder, segment.start_ns, segment.end_ns, part_ns)

    @property
    def _default_slots(self) -> int:
        return 1 if self._per_core else self.tables.log.scenario.device.cores

    def _through(self, row: int, holder: int, start_ns: int, end_ns: int, part_ns: int) -> Iterator[Cause]:
        """Yield what a holder did meanwhile: held its slot for itself, or waited for someone on its core."""
        spent: list[tuple[int, int]] = []
        at = start_ns
        for wait_start, wait_end in self._waits(holder):
            begin, end = max(wait_start, at), min(wait_end, end_ns)
            if begin >= end:
                continue
            spent.append((NOBODY, begin - at))
            for segment in self._on_cores(holder, begin, end):
                others = tuple(other for other in segment.holders if other != holder)
                length_ns = segment.end_ns - segment.start_ns
                spent += list(shared_out(length_ns, others)) if others else [(NOBODY, length_ns)]
            at = end
        spent.append((NOBODY, end_ns - at))
        for (culprit, _), share_ns in zip(spent, _in_proportion([ns for _, ns in spent], part_ns), strict=True):
            if share_ns:
                own = culprit == NOBODY
                yield Cause(row, GUARD, holder if own else culprit, NOBODY if own else holder, share_ns)

    def _waits(self, row: int) -> Iterator[tuple[int, int]]:
        """Yield the stretches in which it waited for its core: before it started, and after each eviction."""
        x, end_ns = self._x, self.tables.log.end_ns
        submitted, started, finished = x["submitted_ns"][row], x["started_ns"][row], x["finished_ns"][row]
        if submitted == NEVER:
            return
        yield submitted, end_ns if started == NEVER else started
        line = self._lines.get(row, [])
        for (_, end, _), (start, _, _) in pairwise(line):
            if start > end:
                yield end, start
        if line and finished == NEVER:
            yield line[-1][1], end_ns

    def _on_cores(self, row: int, start_ns: int, end_ns: int) -> Iterator[Segment]:
        """Yield who held the cores of a graphExecute; several cores count together."""
        x = self._x
        cores = range(x["core"][row], x["core"][row] + self._width[x["graph"][row]])
        held = [self._cores[core] for core in cores if core in self._cores]
        if len(held) == 1:
            yield from held[0].between(start_ns, end_ns)
            return
        pieces = [(h, s.start_ns, s.end_ns) for one in held for s in one.between(start_ns, end_ns) for h in s.holders]
        yield from Occupants(pieces).between(start_ns, end_ns)

    def _on_device(self, row: int) -> Iterator[Cause]:
        """Yield whom it waited for before it started, and what each eviction cost it and for whom."""
        waits = list(self._waits(row))
        for start, end in waits[:1]:
            for segment in self._on_cores(row, start, end):
                length_ns = segment.end_ns - segment.start_ns
                if not segment.holders:
                    yield Cause(row, CORE_IDLE, NOBODY, NOBODY, length_ns)
                for other, part_ns in shared_out(length_ns, segment.holders) if segment.holders else ():
                    yield Cause(row, DEVICE, other, NOBODY, part_ns)
        taken_by: tuple[int, ...] = ()
        for start, end, kind in self._lines.get(row, []):
            if kind in _ON_OFF:
                taken_by = self._takers(row, start, end, kind, waits) or taken_by
                for other, part_ns in shared_out(end - start, taken_by or (NOBODY,)):
                    yield Cause(row, EVICTION, other, NOBODY, part_ns)
        for start, end in waits[1:]:
            for segment in self._on_cores(row, start, end):
                for other, part_ns in shared_out(segment.end_ns - segment.start_ns, segment.holders or (NOBODY,)):
                    yield Cause(row, EVICTED, other, NOBODY, part_ns)

    def _takers(self, row: int, start_ns: int, end_ns: int, kind: int, waits: list[tuple[int, int]]) -> tuple[int, ...]:
        """Return who held the core in the wait that an eviction began, or that a restore ended."""
        at = 0 if kind == _ON_OFF[0] else 1
        edge = end_ns if at == 0 else start_ns
        for wait in waits[1:]:
            if wait[at] == edge:
                first = (s.holders for s in self._on_cores(row, *wait) if s.holders)
                return next(first, ())
        return ()

    def _stretched(self, row: int) -> Iterator[Cause]:
        """Yield beside whom it ran slower than alone, in proportion to the time together."""
        x = self._x
        lost_ns = x["run_ns"][row] - x["solo_ns"][row]
        if lost_ns <= 0:
            return
        together: dict[int, int] = {}
        for start, end in self._runs(row):
            for core in self._cores.values():
                for segment in core.between(start, end):
                    for other in segment.holders:
                        if other != row:
                            together[other] = together.get(other, 0) + segment.end_ns - segment.start_ns
        others = sorted(together) or [NOBODY]
        amounts = [together.get(other, 1) for other in others]
        for other, part_ns in zip(others, _in_proportion(amounts, lost_ns), strict=True):
            if part_ns:
                yield Cause(row, STRETCH, other, NOBODY, part_ns)

    def _runs(self, row: int) -> Iterator[tuple[int, int]]:
        """Yield the stretches in which it ran."""
        line = self._lines.get(row)
        if line is None:
            finished = self._x["finished_ns"][row]
            yield finished - self._x["run_ns"][row], finished
            return
        yield from ((start, end) for start, end, kind in line if kind == _RUNNING)

    def table(self, rows: IntArray) -> dict[str, IntArray]:
        """Return the causes of several graphExecutes as integer columns named as the fields of Cause."""
        found = [cause for row in rows.tolist() for cause in self.causes(row)]
        columns = np.array(found, dtype=np.int64).reshape(-1, len(Cause._fields))
        return {name: columns[:, i] for i, name in enumerate(Cause._fields)}


def _in_proportion(amounts: list[int], whole: int) -> list[int]:
    """Share a whole in proportion to amounts, exactly: each gets the growth of the rounded-down running total.

    >>> _in_proportion([1, 1, 1], 10)
    [3, 3, 4]
    """
    total, seen, given = sum(amounts), 0, 0
    parts = []
    for amount in amounts:
        seen += amount
        upto = whole * seen // total if total else 0
        parts.append(upto - given)
        given = upto
    return parts
