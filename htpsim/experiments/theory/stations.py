"""Each queue of theory as a scenario: who arrives at one core, and how what they leave behind is averaged.

- One server: one core, path ``qnn`` (the queue is the context's) or ``genie`` with one slot (the queue is the guard's).
- c servers: a context is pinned to its core and runs one graph at a time, so several cores are several queues and not
  one queue with several servers. c servers are c HVX units of one core, used by clients that are no QNN graphs, and the
  queue is the guard's with c slots. A client has one context; so that no two jobs of one client meet in service, the
  Poisson stream is dealt out in turn to many clients.
- Priority: the guard's ``priority`` where nobody is interrupted, QNN levels at no cost of eviction where one is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from htpsim.results.columns import NEVER, Execute
from htpsim.results.log import RunLog
from htpsim.rng import draws, stream_key
from htpsim.spec import (
    Arrivals,
    Context,
    Device,
    Distribution,
    Graph,
    Guard,
    Model,
    OtherClient,
    Run,
    Scenario,
    exponential,
    table,
)

MEAN_NS = 1_000_000
"""Mean service of every oracle: the unit of its times."""

DEALT_OUT = 48
"""Clients among which the stream of a class is dealt out where there are several servers. Two jobs of one client meet
if DEALT_OUT - 1 others are served while one is: with c servers about once in (c / (c - 1)) ^ DEALT_OUT."""

Floats = npt.NDArray[np.float64]


def client(
    name: str, arrivals: Arrivals, service: Distribution, *, whole_core: bool = True, **given: Any
) -> OtherClient:
    """Return a client on path genie whose jobs are one graphExecute each, as many in flight as there are.

    Without `whole_core` a job takes one HVX unit and no more; `given` are other fields of ``OtherClient``.
    """
    share: dict[str, Any] = {} if whole_core else {"qnn": False, "vtcm_bytes": 0, "hmx": 0}
    graph = Graph(name="job", context="all", service=service, hvx=1, **share)
    model = Model(name=name, role="other", contexts=(Context(name="all"),), graphs=(graph,))
    return OtherClient(name=name, model=model, arrivals=arrivals, **{"path": "genie", "outstanding": 0, **given})


def poisson(rate: float) -> Arrivals:
    """Return Poisson arrivals, `rate` a mean service.

    >>> poisson(0.5).period_ns
    2000000
    """
    return Arrivals(kind="poisson", period_ns=round(MEAN_NS / rate))


def station(
    clients: Iterable[OtherClient],
    duration_ns: int,
    seed: int,
    *,
    policy: str = "fifo",
    params: tuple[tuple[str, int], ...] = (),
    servers: int = 1,
) -> Scenario:
    """Return a core with `servers` HVX units, as many slots, one PD, and no cost of any kind but the service itself."""
    device = Device(hvx=servers, pd_rule="any", yield_latency_ns=0, evict_ns=0, restore_ns=0)
    return Scenario(
        device=device,
        guard=Guard(policy=policy, params=params, slots=servers),
        run=Run(duration_ns=duration_ns, seed=seed),
        clients=tuple(clients),
    )


def dealt_out(
    name: str, rate: float, service: Distribution, until_ns: int, seed: int, *, ways: int = DEALT_OUT, **given: Any
) -> list[OtherClient]:
    """Return `ways` clients that together bring one Poisson stream of `rate` a mean service, in turn.

    `given` are other fields of ``OtherClient``.
    """
    times_ns = poisson_times(rate, until_ns, stream_key(seed, 0, name, "arrival"))
    return [
        client(
            f"{name}.{k}",
            Arrivals(kind="replay", times_ns=tuple(times_ns[k::ways].tolist())),
            service,
            whole_core=False,
            **given,
        )
        for k in range(ways)
    ]


def poisson_times(rate: float, duration_ns: int, key: int) -> npt.NDArray[np.int64]:
    """Return the instants of a Poisson process until `duration_ns`.

    >>> len(poisson_times(0.5, 2000 * MEAN_NS, 7)) in range(850, 1150)
    True
    """
    gaps = table(exponential(round(MEAN_NS / rate)))
    wanted = int(duration_ns / MEAN_NS * rate)
    count = wanted + 10 * int(wanted**0.5) + 10
    picked = draws(key, 0, count) * np.uint64(len(gaps)) >> np.uint64(32)
    times_ns: npt.NDArray[np.int64] = np.cumsum(gaps[picked.astype(np.int64)])
    return times_ns[times_ns < duration_ns]


def columns(log: RunLog, *names: str) -> list[npt.NDArray[np.int64]]:
    """Return columns of the rows of ``Execute``."""
    rows = np.array(log.executes, dtype=np.int64).reshape(-1, len(Execute._fields))
    return [rows[:, Execute._fields.index(name)] for name in names]


def times(log: RunLog, members: Iterable[int], window_ns: tuple[int, int], until: str) -> Floats:
    """Return the times from call to `until` of the members' calls made in a window, in mean services.

    What has not come by the end of the run counts with the time so far; the window ends long before.
    """
    who, called, end = columns(log, "client", "called_ns", until)
    first_ns, last_ns = window_ns
    chosen = np.isin(who, list(members)) & (called >= first_ns) & (called < last_ns)
    end = np.where(end == NEVER, log.end_ns, end)
    spans: Floats = (end - called)[chosen] / MEAN_NS
    return spans


def moments(service: Distribution) -> list[float]:
    """Return the first four moments of what an engine draws from, in mean services.

    >>> [round(m, 2) for m in moments(exponential(MEAN_NS))]
    [1.0, 2.0, 6.0, 23.95]
    """
    values = table(service) / MEAN_NS
    return [float(np.mean(values**k)) for k in (1, 2, 3, 4)]
