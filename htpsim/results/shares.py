"""Device time beside weight: what each client got, what its weight says, and what a fair core could have given it.

A weight is a promise to whoever is always waiting. A client that pauses between calls cannot use its whole share, so
the yardstick is the water-filled share: weighted max-min, no client above what it would take alone. What it would take
alone is read from the run itself: its device time over the time in which it was not kept waiting; where requests
arrive by the clock, no more than they bring. Where the guard counts slots a core, water is filled core by core.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from htpsim.results.columns import DONE, NEVER, PATH_GENIE
from htpsim.results.log import RunLog
from htpsim.results.metric import IntArray, Metric, missing, ratio
from htpsim.results.occupancy import Occupancy, sums
from htpsim.results.summary import DeviceShare
from htpsim.results.tables import Tables
from htpsim.spec import Guard, Instance, OtherClient, Scenario


def water_fill(demands: Sequence[float], weights: Sequence[float], capacity: float) -> list[float]:
    """Share `capacity` in proportion to `weights`, nobody above its demand; what one leaves the others get.

    Parameters
    ----------
    demands, weights
        One a client, not negative; a weight of 0 gets nothing.
    capacity
        What there is to share, in the unit of the demands.

    Examples
    --------
    >>> water_fill([0.25, 1.0, 1.0], [1, 1, 2], 1.0)
    [0.25, 0.25, 0.5]
    """
    given = [0.0] * len(demands)
    left, weight_left = max(capacity, 0.0), float(sum(weights))
    thirst = sorted((i for i in range(len(demands)) if weights[i] > 0), key=lambda i: (demands[i] / weights[i], i))
    for i in thirst:
        given[i] = min(demands[i], left * weights[i] / weight_left)
        left -= given[i]
        weight_left -= weights[i]
    return given


def all_clients(scenario: Scenario) -> list[Instance | OtherClient]:
    """Return instances, then other clients: the order of the client index."""
    return [*scenario.instances, *scenario.clients]


def weights_in_force(log: RunLog) -> list[int | None]:
    """Return the weight of each client, or None where no call of it can pass a guard."""
    return [None if c.name in log.failed else _weight(c) for c in all_clients(log.scenario)]


def _weight(client: Instance | OtherClient) -> int | None:
    if isinstance(client, OtherClient):
        return client.weight if client.path == "genie" else None
    paths = [client.vit_path] * bool(client.vit) + [client.llm_path] * bool(client.llm)
    return client.weight if "genie" in paths else None


def slots(guard: Guard, cores: int) -> int:
    """Return how many may hold one guard at once (a core, where slots are counted a core).

    >>> slots(Guard(), 2), slots(Guard(slots_per="core"), 2), slots(Guard(slots=1), 2)
    (2, 1, 1)
    """
    return guard.slots or (cores if guard.slots_per == "process" else 1)


class _Pool(NamedTuple):
    """Cores shared out together."""

    cores: list[int]
    capacity: float


def device_shares(tables: Tables, held: Occupancy) -> list[DeviceShare]:
    """Return for each client its device time, its share, its share by weight, and its water-filled share."""
    scenario = tables.log.scenario
    clients = all_clients(scenario)
    cores = max(int(held.core.max(initial=0)) + 1, scenario.device.cores)
    by_core = sums(
        tables.executes["client"][held.row] * cores + held.core, held.length_ns, len(clients) * cores
    ).reshape(len(clients), cores)
    device_ns = by_core.sum(axis=1)
    weights = weights_in_force(tables.log)
    demand = _demands(tables, by_core)
    fair = _fair(tables, held, by_core, demand, weights)
    whole, weight_sum = int(device_ns.sum()), sum(w for w in weights if w)
    shares = []
    for i, weight in enumerate(weights):
        n = int(np.count_nonzero(tables.returned & (tables.executes["client"] == i)))
        no_weight = missing("no call of it passes a guard", "share")
        shares.append(
            DeviceShare(
                device_ns=int(device_ns[i]),
                share=ratio(int(device_ns[i]), whole, n, "no device time in the window"),
                weight=weight,
                weight_share=no_weight if weight is None else ratio(weight, weight_sum, n, "all weights are 0"),
                fair_share=no_weight if weight is None else ratio(fair[i], sum(fair), n, "no demand in the window"),
                demand=Metric(float(demand[i].sum()), n, "cores"),
            )
        )
    return shares


def _fair(
    tables: Tables,
    held: Occupancy,
    by_core: IntArray,
    demand: npt.NDArray[np.float64],
    weights: list[int | None],
) -> list[float]:
    """Return the cores each client would hold on average if water were filled; without a weight, what it held."""
    length = max(tables.length_ns, 1)
    fair = [0.0 if weight is not None else float(by_core[i].sum()) / length for i, weight in enumerate(weights)]
    weighted = [i for i, weight in enumerate(weights) if weight is not None]
    for pool in _pools(tables, held, by_core):
        taken = sum(float(by_core[i, pool.cores].sum()) / length for i, w in enumerate(weights) if w is None)
        wanted = [float(demand[i, pool.cores].sum()) for i in weighted]
        given = water_fill(wanted, [weights[i] or 0 for i in weighted], pool.capacity - taken)
        for i, amount in zip(weighted, given, strict=True):
            fair[i] += amount
    return fair


def _pools(tables: Tables, held: Occupancy, by_core: IntArray) -> list[_Pool]:
    """Return the cores that are shared out together, and how many of them can be held at once."""
    scenario = tables.log.scenario
    used = [core for core in range(by_core.shape[1]) if by_core[:, core].any()]
    if scenario.guard.slots_per == "core":
        return [_Pool([core], 1.0) for core in used]
    all_guarded = bool((tables.executes["path"][held.row] == PATH_GENIE).all())
    processes = len({client.process for client in all_clients(scenario)})
    holders = slots(scenario.guard, scenario.device.cores) * processes
    return [_Pool(used, float(min(len(used), holders) if all_guarded else len(used)))]


def _demands(tables: Tables, by_core: IntArray) -> npt.NDArray[np.float64]:
    """Return what each client would take of each core if it never waited, in cores."""
    scenario, length = tables.log.scenario, tables.length_ns
    waiting = waiting_ns(tables)
    demand: npt.NDArray[np.float64] = np.zeros(by_core.shape, dtype=np.float64)
    for i, client in enumerate(all_clients(scenario)):
        held = int(by_core[i].sum())
        free = length - int(waiting[i])
        if not held:
            if waiting[i]:
                # It waited all the time, so it wants what it can get of the cores it waits for.
                cores = np.unique(tables.executes["core"][_present(tables, i)])
                demand[i, cores] = 1.0 / len(cores)
            continue
        one_call = isinstance(client, Instance) or client.outstanding == 1
        # Waiting calls of one that sends many at once overlap: it is taken to want all it can get.
        wanted = held / free if one_call and free > 0 else float(by_core.shape[1])
        if client.arrivals.kind != "closed":
            # What it did take it wanted, also when that had arrived before the window.
            wanted = max(held / length, min(wanted, _offered(tables, i)))
        demand[i] = np.minimum(wanted * by_core[i] / held, 1.0)
    return demand


def _present(tables: Tables, client: int) -> IntArray:
    """Return the rows of a client's calls that were open at some time in the window."""
    x, log = tables.executes, tables.log
    still = (x["returned_ns"] == NEVER) | (x["returned_ns"] > log.start_ns)
    return np.flatnonzero((x["client"] == client) & still & (x["called_ns"] <= log.end_ns))


def _offered(tables: Tables, client: int) -> float:
    """Return the device time that requests arriving by the clock bring, in cores."""
    r, x = tables.requests, tables.executes
    done = (r["client"] == client) & (r["state"] == DONE)
    arrived = int(np.count_nonzero((r["client"] == client) & tables.measured(r["arrived_ns"])))
    if not done.any() or tables.length_ns <= 0:
        return float("inf")
    rows = done[tables.request_of] & (x["client"] == client)
    work = sum(int(x[part][rows].sum()) for part in ("acquire_ns", "run_ns", "evict_ns", "restore_ns"))
    return work / int(np.count_nonzero(done)) * arrived / tables.length_ns


def waiting_ns(tables: Tables) -> IntArray:
    """Return how long each client's calls waited within the window, for the guard or for a core."""
    x, s, log = tables.executes, tables.slices, tables.log
    waits = np.zeros(len(x), dtype=np.int64)
    for begin, end in (("called_ns", "granted_ns"), ("submitted_ns", "started_ns")):
        waits += np.where(x[begin] != NEVER, _clipped(tables, x[begin], x[end]), 0)
    # Waiting while evicted: the span from its start to its end, without the stretches on the core.
    row = tables.slice_rows
    sliced = np.unique(row)
    waits[sliced] += _clipped(tables, x["started_ns"][sliced], x["finished_ns"][sliced])
    np.subtract.at(waits, row, _clipped(tables, s["start_ns"], s["end_ns"]))
    return sums(x["client"], waits, len(all_clients(log.scenario)))


def _clipped(tables: Tables, begin: IntArray, end: IntArray) -> IntArray:
    """Return how much of each interval lies in the window; one without an end lasts."""
    until = np.where(end == NEVER, tables.log.end_ns, end)
    length: IntArray = np.minimum(until, tables.log.end_ns) - np.maximum(begin, tables.log.start_ns)
    return np.maximum(length, 0)
