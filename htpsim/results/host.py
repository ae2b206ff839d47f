"""What powering up and polling cost: latencies of requests that met a cold core beside the others, CPU time polled.

A call met a *cold* core when its acquire has the power-up of a core that idled beyond ``idle_timeout``. Percentiles of
cold and warm requests stand side by side, because the mean of both describes neither.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from htpsim.results.columns import DONE, NEVER
from htpsim.results.metric import BoolArray, Metric, Stats, ratio, stats, total
from htpsim.results.samples import Sample, of_client
from htpsim.results.tables import Tables

DEFINITIONS: Final = {
    "cold": "TTFT (of other clients: job latency) of requests that found their core powered down at some call",
    "warm": "the same of requests that never did",
    "polling": "CPU time spent polling for answers / length of the window; 1 is one CPU core",
}

Costs = dict[str, Stats | Metric]


def costs(tables: Tables, client: int, why: str) -> Costs:
    """Return what one client's figures say about power and polling, where these are modelled; `why` withholds them."""
    device = tables.log.scenario.device
    found: Costs = {}
    if device.power_up_ns:
        ended, cold = answered(tables)
        for name, chosen in (("cold", cold), ("warm", ~cold)):
            values = of_client(Sample(ended.client[chosen], ended.value_ns[chosen]), client)
            found[name] = stats(values, why=why)
    if device.rpc_polling_ns is not None:
        x = tables.executes
        mine = tables.returned & (x["client"] == client)
        polled = np.minimum((x["finished_ns"] - x["submitted_ns"])[mine], device.rpc_polling_ns)
        n = int(np.count_nonzero(mine))
        found["polling"] = ratio(total(polled), tables.length_ns, n, "the measured window is empty")
    return found


def definitions(tables: Tables) -> dict[str, str]:
    """Return what these figures mean, for those that a scenario has."""
    device = tables.log.scenario.device
    names = ["cold", "warm"] * (device.power_up_ns > 0) + ["polling"] * (device.rpc_polling_ns is not None)
    return {name: DEFINITIONS[name] for name in names}


def answered(tables: Tables) -> tuple[Sample, BoolArray]:
    """Return the latency of every request answered in the window, and whether it met a cold core."""
    r = tables.requests
    of_instance = r["client"] < len(tables.log.scenario.instances)
    end_ns = np.where(of_instance, r["first_token_ns"], np.where(r["state"] == DONE, r["done_ns"], NEVER))
    rows = tables.measured(end_ns)
    cold = np.zeros(len(r), dtype=np.bool_)
    cold[tables.request_of[met_cold_core(tables) & (tables.executes["called_ns"] < end_ns[tables.request_of])]] = True
    return Sample(r["client"][rows], (end_ns - r["arrived_ns"])[rows]), cold[rows]


def met_cold_core(tables: Tables) -> BoolArray:
    """Tell which graphExecutes powered up a cold core: by their acquire, less what else it holds."""
    device, x = tables.log.scenario.device, tables.executes
    acquired_ns = x["acquire_ns"] - device.acquire_ns
    if device.first_call_ns:
        acquired_ns = acquired_ns - device.first_call_ns * first_calls(tables)
    met: BoolArray = acquired_ns == device.power_up_ns
    return met


def first_calls(tables: Tables) -> BoolArray:
    """Tell which graphExecutes started before any of their context had finished."""
    x = tables.executes
    finished_ns = np.where(x["finished_ns"] == NEVER, tables.log.end_ns + 1, x["finished_ns"])
    copies = int(x["copy"].max(initial=0)) + 1
    earliest_ns = np.full(copies, tables.log.end_ns + 1)
    np.minimum.at(earliest_ns, x["copy"], finished_ns)
    first: BoolArray = x["started_ns"] < earliest_ns[x["copy"]]
    return first
