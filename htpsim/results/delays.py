"""Who made this token slow: the causes of one gap, of one first token, of the slowest few, and of the whole run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from htpsim.errors import HtpsimError, unknown_name
from htpsim.results.blame import KINDS, NOBODY, OWN, Blame
from htpsim.results.columns import NEVER, PATHS, STAGES
from htpsim.results.metric import IntArray

if TYPE_CHECKING:
    import pandas as pd

HOST: Final = "host"
"""The thread's own time between its graphExecutes."""
QUEUE: Final = "queue"
"""Waiting until the thread was done with earlier requests of its own."""
DELAYS: Final = ("itl", "ttft")


class Part(NamedTuple):
    """A part of a delay."""

    kind: str
    """of KINDS, or HOST, or QUEUE"""
    client: str
    """whose doing; "" where nobody's that is known"""
    stage: str
    path: str
    graph: str
    through: str
    """client whose guard slot stood between, or "" """
    delay_ns: int
    calls: int
    """graphExecutes of the culprit, or of its own for kind ``own``"""


@dataclass(frozen=True, slots=True)
class Delay:
    """One token's gap, or one request's time to first token, taken apart; the parts sum to the whole exactly."""

    client: str
    request: int
    token: int
    """number of the token; 0 is the first, whose delay counts from the arrival of the request"""
    start_ns: int
    end_ns: int
    parts: tuple[Part, ...]
    """largest first"""

    @property
    def total_ns(self) -> int:
        """Length of the delay."""
        return self.end_ns - self.start_ns


class Key(NamedTuple):
    """A token: index of its client, number of its request, its own number."""

    client: int
    request: int
    token: int


def delay_of(blame: Blame, key: Key) -> Delay:
    """Take apart the gap before a token, or, for token 0, the time to first token.

    Raises
    ------
    HtpsimError
        When the run has no such token, or it came not before the end.
    """
    tables = blame.tables
    tokens = tables.tokens
    at = np.flatnonzero((tokens.client == key.client) & (tokens.request == key.request) & (tokens.token == key.token))
    name = tables.log.clients[key.client]
    if not len(at):
        raise HtpsimError(f"{name}: got token {key.token} of request {key.request}, expected one that the run yielded")
    end_ns = int(tokens.time_ns[at[0]])
    extra: list[Part] = []
    if key.token:
        start_ns = begun_ns = end_ns - int(tokens.gap_ns[at[0]])
    else:
        request = tables.request_rows(np.array([key.client]), np.array([key.request]))[0]
        start_ns, begun_ns = (int(tables.requests[name][request]) for name in ("arrived_ns", "begun_ns"))
        if begun_ns > start_ns:
            extra.append(Part(QUEUE, name, "", "", "", "", begun_ns - start_ns, 0))
    x = tables.executes
    mine = (x["client"] == key.client) & (x["request"] == key.request) & (x["returned_ns"] != NEVER)
    rows = np.flatnonzero(mine & (x["called_ns"] >= begun_ns) & (x["returned_ns"] <= end_ns))
    called_ns = int((x["returned_ns"][rows] - x["called_ns"][rows]).sum())
    if end_ns - begun_ns > called_ns:
        extra.append(Part(HOST, name, "", "", "", "", end_ns - begun_ns - called_ns, 0))
    parts = sorted([*parts_of(blame, rows), *extra], key=lambda part: (-part.delay_ns, part))
    return Delay(name, key.request, key.token, start_ns, end_ns, tuple(parts))


def parts_of(blame: Blame, rows: IntArray) -> list[Part]:
    """Return the causes of several graphExecutes added up by what they have in common, largest first."""
    x, log = blame.tables.executes, blame.tables.log
    added: dict[tuple[str, ...], int] = {}
    culprits: dict[tuple[str, ...], set[int]] = {}
    columns = ("client", "stage", "path", "graph")
    client, stage, path, graph = (x[name].tolist() for name in columns)
    for row in rows.tolist():
        for cause in blame.causes(row):
            by = cause.culprit
            who = ("", "", "", "")
            if by != NOBODY:
                who = (log.clients[client[by]], STAGES[stage[by]], PATHS[path[by]], log.graphs[graph[by]])
            through = "" if cause.through == NOBODY else log.clients[client[cause.through]]
            key = (KINDS[cause.kind], *who, through)
            added[key] = added.get(key, 0) + cause.delay_ns
            culprits.setdefault(key, set()).add(by)
    parts = [
        Part(kind, who, stage_, path_, graph_, through, ns, len(culprits[kind, who, stage_, path_, graph_, through]))
        for (kind, who, stage_, path_, graph_, through), ns in added.items()
        if ns
    ]
    return sorted(parts, key=lambda part: (-part.delay_ns, part))


def slowest_tokens(blame: Blame, measure: str = "itl", share: float = 0.01, clients: Iterable[str] = ()) -> list[Key]:
    """Return the slowest share of the tokens (or first tokens) in the measured window, slowest first; at least one.

    Raises
    ------
    HtpsimError
        When there is no such measure or client, or no token of the kind came in the window.
    """
    if measure not in DELAYS:
        raise HtpsimError(unknown_name("measure", measure, DELAYS))
    tables, names = blame.tables, blame.tables.log.clients
    wanted = [_number(names, client) for client in clients] or range(len(names))
    if measure == "itl":
        t = tables.tokens
        keep = tables.measured(t.time_ns) & (t.gap_ns != NEVER) & np.isin(t.client, wanted)
        client, request, token, length = (c[keep] for c in (t.client, t.request, t.token, t.gap_ns))
    else:
        r = tables.requests
        keep = tables.measured(r["first_token_ns"]) & np.isin(r["client"], wanted)
        client, request = r["client"][keep], r["request"][keep]
        token, length = np.zeros_like(client), (r["first_token_ns"] - r["arrived_ns"])[keep]
    if not len(length):
        raise HtpsimError(f"{measure}: no {'gap' if measure == 'itl' else 'first token'} ended in the measured window")
    order = np.lexsort((token, request, client, -length))[: max(1, int(len(length) * share))]
    return [Key(int(client[i]), int(request[i]), int(token[i])) for i in order]


def named_token(blame: Blame, client: str, request: int, token: int) -> Key:
    """Return the key of a token by the name of its client.

    Raises
    ------
    HtpsimError
        When there is no such client.
    """
    return Key(_number(blame.tables.log.clients, client), request, token)


def _number(names: Sequence[str], client: str) -> int:
    if client not in names:
        raise HtpsimError(unknown_name("client", client, names))
    return names.index(client)


def together(delays: Sequence[Delay]) -> list[Part]:
    """Add up the parts of several delays, largest first.

    >>> part = Part("device", "vlm1", "vit", "qnn", "vit/graph", "", 5, 1)
    >>> [(p.delay_ns, p.calls) for p in together([Delay("vlm0", 0, 1, 0, 5, (part,))] * 2)]
    [(10, 2)]
    """
    added: dict[Part, tuple[int, int]] = {}
    for delay in delays:
        for part in delay.parts:
            key = part._replace(delay_ns=0, calls=0)
            delay_ns, calls = added.get(key, (0, 0))
            added[key] = (delay_ns + part.delay_ns, calls + part.calls)
    parts = [key._replace(delay_ns=ns, calls=calls) for key, (ns, calls) in added.items()]
    return sorted(parts, key=lambda part: (-part.delay_ns, part))


def blame_matrix(blame: Blame) -> pd.DataFrame:
    """Return how long [ns] each client (rows) was delayed by each (columns, and "nobody") over the measured window.

    Own time is left out; a graphExecute counts whole when it returned in the window.
    """
    import pandas as pd

    tables = blame.tables
    names = tables.log.clients
    rows = np.flatnonzero(tables.returned)
    matrix = np.zeros((len(names), len(names) + 1), dtype=np.int64)
    causes = blame.table(rows)
    others = causes["kind"] != OWN
    client = tables.executes["client"]
    culprit = causes["culprit"][others]
    column = np.where(culprit == NOBODY, len(names), client[np.maximum(culprit, 0)])
    np.add.at(matrix, (client[causes["row"][others]], column), causes["delay_ns"][others])
    return pd.DataFrame(matrix, index=pd.Index(names, name="delayed"), columns=pd.Index([*names, "nobody"], name="by"))
