"""What QNN's profiling would have said of a simulated graphExecute: its events, their numbers, and how they nest.

On a device the times of one execution contain each other, and so they do here::

    NetRun                                        called -> returned
      QNN (execute) time, RPC (execute) time      given to QNN -> returned
        EXECUTE_QUEUE_WAIT                        submitted -> started
        QNN accelerator (execute) time            submitted -> finished
          Accelerator (execute) time              started -> finished
            acquire, release, wait, restore       each by itself
            Accelerator (execute excluding wait)  the work

The guard is around graphExecute, so QNN does not see it: NetRun less the QNN time is the guard's wait and overhead.
What the model has no figure for is left out, never zero: cycles and HVX threads always, RPC and acquire where the
scenario gives them no time. QNN's own cost on the host is not modelled, so its time equals the RPC's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from htpsim.errors import HtpsimError, unknown_name
from htpsim.results.columns import Execute
from htpsim.results.log import RunLog
from htpsim.results.run import RunResult
from htpsim.spec import Device

NETRUN: Final = "NetRun"
"""What the tool that calls graphExecute measures itself."""


class QnnEvent(NamedTuple):
    """One event of QNN's profiling, and what of a simulated graphExecute it stands for."""

    name: str
    """As qnn-profile-viewer prints it; the symbol in QNN's header where its printed name is not public."""
    number: int | None
    """Event type in QNN's headers; None: it is not the backend's."""
    unit: str
    """"us" or "count"."""
    value: Callable[[Execute, Device], int]
    """Time [ns], or a count."""
    modelled: Callable[[Device], bool]
    of_yields: bool = False
    """Listed only for graphs that yielded at least once."""


def _always(_: Device) -> bool:
    return True


def _has_rpc(device: Device) -> bool:
    return bool(device.rpc_call_ns or device.rpc_return_ns)


def _qnn_ns(row: Execute, _: Device) -> int:
    return row.returned_ns - row.called_ns - row.guard_wait_ns - row.guard_overhead_ns


def _queue_ns(row: Execute, _: Device) -> int:
    return row.started_ns - row.submitted_ns


def _vtcm_ns(row: Execute, device: Device) -> int:
    return min(row.acquire_ns, device.acquire_ns)


EVENTS: Final = (
    QnnEvent(NETRUN, None, "us", lambda row, _: row.returned_ns - row.called_ns, _always),
    QnnEvent("RPC (execute) time", 3001, "us", _qnn_ns, _has_rpc),
    QnnEvent("QNN accelerator (execute) time", 3002, "us", lambda row, _: row.finished_ns - row.submitted_ns, _always),
    QnnEvent("EXECUTE_QUEUE_WAIT", 405, "us", _queue_ns, _always),
    QnnEvent("Num times yield occured", 3009, "count", lambda row, _: row.evictions, _always),
    QnnEvent("GRAPH_EXECUTE_YIELD_INSTANCE_RELEASE_TIME", 3006, "us", lambda row, _: row.evict_ns, _always, True),
    QnnEvent(
        "GRAPH_EXECUTE_YIELD_INSTANCE_WAIT_TIME",
        3007,
        "us",
        lambda row, device: row.device_wait_ns - _queue_ns(row, device),
        _always,
        True,
    ),
    QnnEvent("GRAPH_EXECUTE_YIELD_INSTANCE_RESTORE_TIME", 3008, "us", lambda row, _: row.restore_ns, _always, True),
    QnnEvent("Time for initial VTCM acquire", 3010, "us", _vtcm_ns, lambda device: device.acquire_ns > 0),
    QnnEvent(
        "Time for HVX + HMX power on and acquire",
        3011,
        "us",
        lambda row, device: row.acquire_ns - _vtcm_ns(row, device),
        lambda device: device.power_up_ns > 0,
    ),
    QnnEvent("Accelerator (execute) time", 3004, "us", lambda row, _: row.finished_ns - row.started_ns, _always),
    QnnEvent("Accelerator (execute excluding wait) time", 3012, "us", lambda row, _: row.run_ns, _always),
    QnnEvent("QNN (execute) time", 400, "us", _qnn_ns, _always),
)
"""Every event that the model can tell, in the order in which the viewer lists them."""


@dataclass(frozen=True, slots=True)
class GraphProfile:
    """All executions of one graph that returned in the measured window."""

    index: int
    name: str
    rows: list[Execute]
    """In order of return."""


def events_of(device: Device, rows: Sequence[Execute]) -> list[QnnEvent]:
    """Return the events that a device's model has figures for, the same for all executions of a graph.

    >>> 3001 in {event.number for event in events_of(Device(), [])}
    False
    >>> 3001 in {event.number for event in events_of(Device(rpc_call_ns=43_000), [])}
    True
    """
    yielded = any(row.evictions for row in rows)
    return [event for event in EVENTS if event.modelled(device) and (yielded or not event.of_yields)]


def graph_profiles(result: RunResult, client: str | None = None) -> Iterator[GraphProfile]:
    """Yield every graph that returned in the measured window, with its executions.

    Parameters
    ----------
    result : RunResult
        A finished run.
    client : str, optional
        Only what this one called; by default all, as one backend would see them.

    Raises
    ------
    HtpsimError
        When there is no such client.
    """
    log, tables = result.log, result.tables
    if client is not None and client not in log.clients:
        raise HtpsimError(unknown_name("client", client, log.clients))
    wanted = tables.returned
    if client is not None:
        wanted = wanted & (tables.executes["client"] == log.clients.index(client))
    names = graph_names(log.graphs)
    shown = 0
    for graph in range(len(log.graphs)):
        rows = np.flatnonzero(wanted & (tables.executes["graph"] == graph))
        if len(rows):
            yield GraphProfile(shown, names[graph], [Execute(*log.executes[row]) for row in rows.tolist()])
            shown += 1


def graph_names(graphs: Sequence[str]) -> list[str]:
    """Return the names that a device prints: without the model's, unless two models have a graph of one name.

    >>> graph_names(["vit/vit#1/2", "llm/prefill", "llm/decode"]), graph_names(["a/g", "b/g"])
    (['vit#1/2', 'prefill', 'decode'], ['a/g', 'b/g'])
    """
    whole = [" ".join(name.split()) for name in graphs]
    short = [name.partition("/")[2] or name for name in whole]
    return short if len(set(short)) == len(short) else whole


def number_us(time_ns: int) -> str:
    """Write nanoseconds as microseconds, exactly.

    >>> number_us(1_803_480_000), number_us(12_345)
    ('1803480', '12.345')
    """
    whole, rest = divmod(time_ns, 1000)
    return f"{whole}.{rest:03d}" if rest else str(whole)


def what(log: RunLog) -> str:
    """Say in a line that these figures are of a simulation, and of which.

    >>> from htpsim.spec import Scenario
    >>> what(RunLog(scenario=Scenario(), replication=0, engine="reference"))
    'simulated, not measured: scenario scenario, seed 1, replication 0'
    """
    scenario = log.scenario
    name = " ".join(scenario.name.split())
    return f"simulated, not measured: scenario {name}, seed {scenario.run.seed}, replication {log.replication}"
