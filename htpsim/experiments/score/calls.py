"""graphExecutes as rows, whoever recorded them: a simulated run, its records.csv, or a trace of a device."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from htpsim.errors import HtpsimError
from htpsim.invariants import Trace
from htpsim.results.columns import NEVER, STAGES, Execute
from htpsim.results.columns import Request as RequestRow
from htpsim.results.log import RunLog

NOT: Final = -1
"""A time that did not come, a number that does not apply."""

NEEDED: Final = (
    "client", "request", "stage", "step", "graph", "token", "called_ns", "submitted_ns", "returned_ns", "rpc_ns",
    "acquire_ns", "run_ns", "evict_ns", "restore_ns",
)  # fmt: skip
"""Columns of a records.csv that are looked at."""

_NAMES: Final = frozenset({"client", "stage", "graph"})


class Call(NamedTuple):
    """One graphExecute that returned."""

    client: str
    request: int
    stage: str
    step: int
    token: int
    """Number of the token that its return yields, or NOT."""

    graph: str
    handed_ns: int
    """When it was handed to QNN: the guard is behind it. What a log calls its start."""

    returned_ns: int
    core_ns: int
    """For how long it held its core, or NOT where nobody recorded that."""


class Request(NamedTuple):
    """One request or job."""

    client: str
    request: int
    arrived_ns: int
    first_token_ns: int
    done_ns: int
    prompt_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """The rows of one run."""

    calls: Sequence[Call]
    requests: Mapping[tuple[str, int], Request] = field(default_factory=dict)
    start_ns: int = 0
    """Begin of the measured window; what returned before it does not count."""

    end_ns: int | None = None
    """End of what was observed; ``None``: that of the last return."""

    def of(self, client: str) -> Calls:
        """Return the rows of one client.

        Raises
        ------
        HtpsimError
            When there is no such client, with those there are.
        """
        names = sorted({call.client for call in self.calls})
        if client not in names:
            raise HtpsimError(f"client: got '{client}', expected one of {', '.join(names) or 'none: no call returned'}")
        return Calls(
            calls=[call for call in self.calls if call.client == client],
            requests={key: row for key, row in self.requests.items() if key[0] == client},
            start_ns=self.start_ns,
            end_ns=self.end_ns,
        )


def calls_of_csv(text: str, name: str) -> list[Call]:
    r"""Return the calls of a records.csv that returned.

    Raises
    ------
    HtpsimError
        Names the line that is no such row, or the column that is missing.

    Examples
    --------
    >>> calls_of_csv("a,b\n1,2\n", "records.csv")
    Traceback (most recent call last):
    htpsim.errors.HtpsimError: records.csv:1: got no column client, expected the header of a records.csv
    """
    return [_call(row) for row in _rows(text, name, NEEDED) if row["returned_ns"] != NOT]


def _call(row: Mapping[str, int | str]) -> Call:
    def number(column: str) -> int:
        return int(row[column])

    core_ns = sum(number(name) for name in ("acquire_ns", "run_ns", "evict_ns", "restore_ns"))
    handed_ns = number("submitted_ns") - number("rpc_ns")
    return Call(
        str(row["client"]), number("request"), str(row["stage"]), number("step"), number("token"), str(row["graph"]),
        handed_ns, number("returned_ns"), core_ns,
    )  # fmt: skip


def requests_of_csv(text: str, name: str) -> dict[tuple[str, int], Request]:
    """Return the requests of a requests.csv; raises as :func:`calls_of_csv` does."""
    columns = Request._fields
    rows = [
        Request(str(row["client"]), *(int(row[column]) for column in columns[1:])) for row in _rows(text, name, columns)
    ]
    return {(row.client, row.request): row for row in rows}


def _rows(text: str, name: str, columns: Sequence[str]) -> Iterator[dict[str, int | str]]:
    """Yield the wanted columns of a CSV, numbers as numbers; an empty cell is NOT."""
    reader = csv.reader(io.StringIO(text, newline=""))
    header = next(reader, [])
    for column in columns:
        if column not in header:
            raise HtpsimError(f"{name}:1: got no column {column}, expected the header of a {name.rpartition('/')[2]}")
    at = {column: header.index(column) for column in columns}
    for cells in reader:
        if len(cells) != len(header):
            raise HtpsimError(f"{name}:{reader.line_num}: got {len(cells)} cells, expected {len(header)}")
        row: dict[str, int | str] = {}
        for column, index in at.items():
            cell = cells[index]
            if column in _NAMES:
                row[column] = cell
            elif not cell:
                row[column] = NOT
            elif cell.lstrip("-").isascii() and cell.lstrip("-").isdigit() and len(cell) < 20:
                row[column] = int(cell)
            else:
                place = f"{name}:{reader.line_num}"
                raise HtpsimError(f"{place}: got '{cell[:40]}' for {column}, expected a whole number")
        yield row


def calls_of_log(log: RunLog) -> Calls:
    """Return the rows of a simulated run."""
    clients, graphs = log.clients, log.graphs
    calls = []
    for row in map(Execute._make, log.executes):
        if row.returned_ns != NEVER:
            core_ns = row.acquire_ns + row.run_ns + row.evict_ns + row.restore_ns
            calls.append(
                Call(
                    clients[row.client], row.request, STAGES[row.stage], row.step, row.token, graphs[row.graph],
                    row.submitted_ns - row.rpc_ns, row.returned_ns, core_ns,
                )
            )  # fmt: skip
    requests = {
        (clients[row.client], row.request): Request(
            clients[row.client], row.request, row.arrived_ns, row.first_token_ns, row.done_ns, row.prompt_tokens
        )
        for row in map(RequestRow._make, log.requests)
    }
    return Calls(calls=calls, requests=requests, start_ns=log.start_ns, end_ns=log.end_ns)


def calls_of_trace(trace: Trace) -> Calls:
    """Return the calls of a trace; what its recorder could not see is left out."""
    handed: dict[int, int] = {}
    calls = []
    for event in trace.events:
        if event.kind in ("call", "grant", "submit"):
            handed[event.execute] = event.time_ns
        elif event.kind == "return":
            facts, parts = trace.calls[event.execute], trace.parts.get(event.execute)
            calls.append(
                Call(
                    client=facts.client or facts.thread,
                    request=facts.request,
                    stage=facts.stage,
                    step=NOT,
                    token=facts.token,
                    graph=facts.graph,
                    handed_ns=handed.get(event.execute, event.time_ns) - (parts.rpc_ns if parts else 0),
                    returned_ns=event.time_ns,
                    core_ns=parts.core_ns if parts else NOT,
                )
            )
    return Calls(calls=calls, end_ns=trace.last_ns)
