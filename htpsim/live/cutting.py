"""Cut what threads wrote down at the end of the run, as an engine's clock would: what came later did not happen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from htpsim.results.columns import DONE, NEVER, QUEUED, REFUSED, RUNNING, Execute, Request
from htpsim.results.log import Row
from htpsim.sim.requests import RequestState

_INSTANTS = ("granted_ns", "submitted_ns", "started_ns", "finished_ns", "returned_ns", "released_ns")


def cut_rows(rows: Iterable[Row], end_ns: int) -> list[Row]:
    """Return the rows of graphExecutes as the end leaves them: in order of return, then those in flight.

    They are numbered anew in the order of the calls.
    """
    seen = [_cut(Execute(*row), end_ns) for row in rows]
    called = sorted((row for row in seen if NEVER != row.called_ns <= end_ns), key=lambda r: (r.called_ns, r.execute))
    numbered = [row._replace(execute=number) for number, row in enumerate(called)]
    done = sorted((row for row in numbered if row.returned_ns != NEVER), key=lambda r: (r.returned_ns, r.execute))
    return [tuple(row) for row in [*done, *(row for row in numbered if row.returned_ns == NEVER)]]


def _cut(row: Execute, end_ns: int) -> Execute:
    """Return a row with the instants after the end taken out, and the parts that had not ended."""
    late = [name for name in _INSTANTS if not NEVER != getattr(row, name) <= end_ns]
    if not late:
        return row
    changes = dict.fromkeys(late, NEVER)
    if "granted_ns" in late:
        changes["guard_wait_ns"] = 0
    if "submitted_ns" in late:
        changes |= {"guard_overhead_ns": 0, "rpc_ns": 0}
    if "started_ns" in late:
        changes["device_wait_ns"] = 0
    if "finished_ns" in late:
        changes |= {"acquire_ns": 0, "run_ns": 0}
    if "returned_ns" in late:
        changes["rpc_return_ns"] = 0
    return row._replace(**changes)


def cut_requests(requests: Iterable[RequestState], executes: Sequence[Row], end_ns: int) -> list[Row]:
    """Return the rows of the requests that had arrived by the end, by client and number."""
    tokens: dict[tuple[int, int], int] = {}
    for call in map(Execute._make, executes):
        if NEVER not in (call.token, call.returned_ns):
            key = call.client, call.request
            tokens[key] = max(tokens.get(key, 0), call.token + 1)
    rows: list[Row] = []
    for request in sorted(requests, key=lambda r: (r.client, r.number)):
        if request.arrived_ns <= end_ns:
            row = Request(*request.row())
            late = [
                name for name in ("begun_ns", "vit_done_ns", "first_token_ns", "done_ns") if getattr(row, name) > end_ns
            ]
            state = row.state
            if "done_ns" in late and state in (DONE, REFUSED):
                state = RUNNING
            if "begun_ns" in late:
                state = QUEUED
            row = row._replace(state=state, tokens=tokens.get((row.client, row.request), 0))
            rows.append(tuple(row._replace(**dict.fromkeys(late, NEVER))))
    return rows
