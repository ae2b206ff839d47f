"""The rows of a run as integer columns: what every metric, frame and check is computed from."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import chain
from typing import NamedTuple

import numpy as np

from htpsim.results.columns import NEVER, Execute, Request, Slice
from htpsim.results.log import Row, Rows, RunLog
from htpsim.results.metric import BoolArray, IntArray


class Table:
    """Integer columns by name; a column is made contiguous when it is first asked for.

    >>> Table(("a", "b"), [(1, 2), (3, 4)])["b"].tolist()
    [2, 4]
    """

    def __init__(self, names: Sequence[str], rows: Sequence[Row] | IntArray) -> None:
        self.names = tuple(names)
        if isinstance(rows, Rows):
            rows = rows.array
        if isinstance(rows, np.ndarray):
            self._rows = rows
        else:
            count = len(rows) * len(self.names)
            flat = np.fromiter(chain.from_iterable(rows), dtype=np.int64, count=count)
            self._rows = flat.reshape(len(rows), len(self.names))
        self._columns: dict[str, IntArray] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, name: str) -> IntArray:
        if name not in self._columns:
            self._columns[name] = np.ascontiguousarray(self._rows[:, self.names.index(name)])
        return self._columns[name]


class Tokens(NamedTuple):
    """Every token that was yielded, ordered by client, request and number."""

    client: IntArray
    """index of the client"""
    request: IntArray
    """number among the client's arrivals"""
    token: IntArray
    """number within the request; 0 is the first"""
    time_ns: IntArray
    """it was yielded"""
    gap_ns: IntArray
    """time since the token before it in the same request; NEVER for the first"""


class Tables:
    """One run's log in columns, with the few orderings that several metrics share."""

    def __init__(self, log: RunLog) -> None:
        self.log = log
        self.executes = Table(Execute._fields, log.executes)
        self.requests = Table(Request._fields, log.requests)
        self.slices = Table(Slice._fields, log.slices)

    @cached_property
    def tokens(self) -> Tokens:
        """Tokens yielded by graphExecutes that returned."""
        x = self.executes
        rows = np.flatnonzero((x["token"] >= 0) & (x["returned_ns"] != NEVER))
        rows = rows[np.lexsort((x["token"][rows], x["request"][rows], x["client"][rows]))]
        client, request, token, time = (x[name][rows] for name in ("client", "request", "token", "returned_ns"))
        gap = np.full(len(rows), NEVER, dtype=np.int64)
        follows = (client[1:] == client[:-1]) & (request[1:] == request[:-1]) & (token[1:] == token[:-1] + 1)
        gap[1:][follows] = (time[1:] - time[:-1])[follows]
        return Tokens(client, request, token, time, gap)

    @cached_property
    def request_of(self) -> IntArray:
        """Row in `requests` of every graphExecute."""
        return self.request_rows(self.executes["client"], self.executes["request"])

    @cached_property
    def slice_rows(self) -> IntArray:
        """Row in `executes` of every slice."""
        order = np.argsort(self.executes["execute"], kind="stable")
        if not len(self.slices):
            return order[:0]
        return order[np.searchsorted(self.executes["execute"][order], self.slices["execute"])]

    def request_rows(self, client: IntArray, request: IntArray) -> IntArray:
        """Return the row in `requests` of each pair of client and request number."""
        r = self.requests
        width = 1 + max(int(r["request"].max(initial=0)), int(request.max(initial=0)))
        keys = r["client"] * width + r["request"]
        order = np.argsort(keys, kind="stable")
        found = np.searchsorted(keys[order], client * width + request)
        return order[np.minimum(found, max(len(keys) - 1, 0))] if len(keys) else found

    @cached_property
    def returned(self) -> BoolArray:
        """Whether each graphExecute returned within the measured window."""
        return self.measured(self.executes["returned_ns"])

    def measured(self, time_ns: IntArray) -> BoolArray:
        """Whether each instant lies in the measured window, after its start and up to its end inclusive."""
        inside: BoolArray = (time_ns > self.log.start_ns) & (time_ns <= self.log.end_ns)
        return inside

    @property
    def length_ns(self) -> int:
        """Length of the measured window."""
        return self.log.end_ns - self.log.start_ns
