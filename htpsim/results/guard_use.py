"""What the guards of a run did: who waited, how long the line was, and whether the weights had anything to decide."""

from __future__ import annotations

from typing import Final

import numpy as np

from htpsim.results.columns import NEVER, PATH_BYPASS, PATH_GENIE
from htpsim.results.metric import BoolArray, IntArray, Metric, missing, ratio
from htpsim.results.shares import all_clients, slots, weights_in_force
from htpsim.results.summary import GuardSummary
from htpsim.results.tables import Tables

WEIGHTLESS_POLICIES: Final = ("fifo", "priority", "edf")
"""Built-in policies that never look at a weight."""


def guard_use(tables: Tables) -> GuardSummary:
    """Return what the guards did in the measured window."""
    x, scenario = tables.executes, tables.log.scenario
    guarded = x["path"] == PATH_GENIE
    line = _line_at_grants(tables, guarded)
    counted = guarded & tables.returned
    calls = int(np.count_nonzero(counted))
    waited = int(np.count_nonzero(x["guard_wait_ns"][counted] > 0))
    none = "no call passed a guard in the window"
    return GuardSummary(
        policy=scenario.guard.policy,
        slots=slots(scenario.guard, scenario.device.cores),
        slots_per=scenario.guard.slots_per,
        calls=Metric(calls, calls, "count"),
        waited=ratio(waited, calls, calls, none),
        line_max=Metric(int(line.max()), len(line), "count") if len(line) else missing(none, "count"),
        choices=ratio(int(np.count_nonzero(line > 1)), len(line), len(line), none),
        bypassed=Metric(int(np.count_nonzero((x["path"] == PATH_BYPASS) & tables.returned)), calls, "count"),
        weights_without_effect=_without_effect(tables, line),
    )


def _line_at_grants(tables: Tables, guarded: BoolArray) -> IntArray:
    """Return for every grant in the window how many calls it was chosen from: those in line at one guard.

    Where slots are counted a core, calls for another core are in another line.
    """
    x, scenario = tables.executes, tables.log.scenario
    rows = np.flatnonzero(guarded)
    process = np.array([client.process for client in all_clients(scenario)], dtype=np.int64)[x["client"][rows]]
    core = x["core"][rows] if scenario.guard.slots_per == "core" else np.zeros(len(rows), dtype=np.int64)
    lines = [np.empty(0, dtype=np.int64)]
    for number, at in sorted(set(zip(process.tolist(), core.tolist(), strict=True))):
        of_line = rows[(process == number) & (core == at)]
        called, granted = np.sort(x["called_ns"][of_line]), np.sort(x["granted_ns"][of_line])
        granted = granted[granted != NEVER]
        in_line = np.searchsorted(called, granted, side="right") - np.arange(len(granted))
        lines.append(in_line[tables.measured(granted)])
    return np.concatenate(lines)


def _without_effect(tables: Tables, line: IntArray) -> str:
    """Return the first reason why weights could not matter in this run, or an empty text."""
    scenario = tables.log.scenario
    guard, process_of = scenario.guard, [client.process for client in all_clients(scenario)]
    weights = weights_in_force(tables.log)
    if all(weight is None for weight in weights) or not len(line):
        return "no call passed a guard"
    if guard.policy in WEIGHTLESS_POLICIES:
        return f"policy {guard.policy} does not look at weights"
    if len({weight for weight in weights if weight is not None}) == 1:
        return "all weights are equal"
    if line.max() > 1:
        return ""
    holders = slots(guard, scenario.device.cores)
    busiest = max(sum(p == q and w is not None for q, w in zip(process_of, weights, strict=True)) for p in process_of)
    if guard.slots_per == "process" and holders >= busiest:
        return f"as many slots ({holders}) as clients in the guard ({busiest}): nobody ever waits"
    return "no two calls were ever in line together, so the guard never had a choice"
