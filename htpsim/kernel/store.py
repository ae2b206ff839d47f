"""The tables of a run together with the functions that work on them: interpreted over objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from htpsim.device.records import NOBODY
from htpsim.kernel import entries, guarding
from htpsim.kernel.binding import Binder, Function
from htpsim.kernel.entries import CLOSE, NOTE
from htpsim.kernel.fields import TABLES
from htpsim.kernel.layout import FEW_THREADS, Layout, new_thread
from htpsim.kernel.world import Array, array, objects
from htpsim.sched import Policy
from htpsim.spec.records import record_class

ROOMS: Final = (
    ("heap", "queued", "heap_room"),
    ("rows", "rows", "row_room"),
    ("requests", "requests", "request_room"),
    ("slices", "slices", "slice_room"),
)
"""Tables that grow: how many of their records are in use, and how many may be before more are made."""


def policy_in_place(policy: type[Policy]) -> dict[tuple[str, str], Function]:
    """Return what stands in the place of the policy's functions."""
    return {(guarding.__name__, name): getattr(policy, name) for name in ("wake", "pick", "charge", "timer")}


@lru_cache(maxsize=64)
def interpreted(policy: type[Policy]) -> Function:
    """Return the loop's function, with a policy in its place."""
    return Binder(policy_in_place(policy)).bind(entries.enter)


class Store:
    """One run, interpreted: tables as lists of objects."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.world: Any = objects(layout.make())
        self.enter: Function = interpreted(layout.policy)
        for name, _, room in ROOMS:
            setattr(self.state, room, len(getattr(self.world, name)) - layout.margins[name])

    @property
    def state(self) -> Any:
        """The record of the loop's state."""
        return self.world.st

    def records(self, name: str) -> Any:
        """Return a table as it is; what is written to its records is written to the run."""
        return getattr(self.world, name)

    def table(self, name: str, count: int) -> Array:
        """Return the first `count` records of a table as an array."""
        return array(name, getattr(self.world, name)[:count])

    def call(self, what: int, j: int = NOBODY) -> int:
        """Call the loop to do something; return why it left."""
        return int(self.enter(self.world, what, j))

    def extend(self, name: str, records: Sequence[Mapping[str, int]]) -> None:
        """Add records to a table."""
        kind = record_class(name, TABLES[name])
        for given in records:
            record = kind()
            for field, value in given.items():
                setattr(record, field, value)
            getattr(self.world, name).append(record)

    def enlarge(self, name: str, count: int) -> None:
        """Add so many records to a table, all fields 0."""
        self.extend(name, [{}] * count)

    def open_contexts(self, count: int) -> None:
        """Make room for so many contexts in all."""
        more = count + 1 - len(self.records("contexts"))
        if more > 0:
            self.extend("contexts", [{"head": NOBODY, "tail": NOBODY}] * more)
            for name in ("clients", "holders", "evicted", "returns"):
                self.lengthen(name, more)
            self.layout.margins["slices"] += 2 * more
            self.state.slice_room -= 2 * more

    def lengthen(self, name: str, count: int) -> None:
        """Add so many integers to a list."""
        getattr(self.world, name).extend([NOBODY] * count)

    def make_room(self, least: int = 0) -> None:
        """Make room in every table that is full; in that of rows for at least so many more."""
        for name, used, room in ROOMS:
            wanted = getattr(self.state, used) + (least if name == "rows" else 0)
            if wanted >= getattr(self.state, room):
                count = len(self.records(name))
                self.enlarge(name, count + least)
                setattr(self.state, room, 2 * count + least - self.layout.margins[name])

    def add_threads(self) -> None:
        """Give more threads to the client that ran out of them."""
        layout, users = self.layout, self.records("users")
        u = int(self.state.starved_user)
        user = users[u]
        template = layout.threads[int(user.thread)]
        graphs = template["last"] + 1
        jobs = layout.jobs[template["first"] : template["first"] + graphs]
        count = max(FEW_THREADS, int(user.threads))
        t, j = len(self.records("threads")), len(self.records("jobs"))
        threads = []
        for k in range(count):
            thread = {**new_thread(t + k, u), "first": j + k * graphs, "last": graphs - 1}
            threads.append(thread | {"next_free": t + k + 1 if k + 1 < count else NOBODY})
        more = [{**job, "thread": t + k} for k in range(count) for job in jobs]
        user.free = t
        user.threads += count
        self.extend("threads", threads)
        self.extend("jobs", more)

    def accounts(self) -> Any:
        """Return the accounts of each lane."""
        return self.world.accounts

    def in_flight(self) -> list[int]:
        """Return the jobs that have not returned, in order of call."""
        jobs = self.records("jobs")
        return sorted((j for j in range(len(jobs)) if jobs[j].in_flight), key=lambda j: int(jobs[j].execute))

    def rows(self) -> tuple[Array, int]:
        """Return the rows of all graphExecutes, and how many of the last ones had not returned at the end."""
        self.call(CLOSE)
        jobs = self.in_flight()
        self.make_room(len(jobs))
        for j in jobs:
            self.call(NOTE, j)
        return self.table("rows", int(self.state.rows)), len(jobs)


def matrix(table: Array) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return a table of records as an array of integers, a row a record."""
    names = table.dtype.names
    assert names is not None
    return table.view(np.int64).reshape(len(table), len(names))
