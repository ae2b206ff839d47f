"""Who held which core when, within the measured window.

A graphExecute that was never evicted holds its core from start to finish. One that was evicted holds it in the
stretches recorded for it, evict and restore included. A gang holds each of its cores. Two at one instant on one core
count once in its utilisation, which therefore never exceeds one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from htpsim.results.columns import NEVER
from htpsim.results.metric import IntArray
from htpsim.results.tables import Tables
from htpsim.spec import Device, Model, Scenario


class Occupancy(NamedTuple):
    """Stretches on cores, clipped to the window."""

    row: IntArray
    """row of the graphExecute in the table"""
    core: IntArray
    start_ns: IntArray
    end_ns: IntArray

    @property
    def length_ns(self) -> IntArray:
        """Length of each stretch."""
        return self.end_ns - self.start_ns


def occupancy(tables: Tables) -> Occupancy:
    """Return every stretch in which a graphExecute held a core within the measured window."""
    all_of_them, log = stretches(tables), tables.log
    start = np.maximum(all_of_them.start_ns, log.start_ns)
    end = np.minimum(all_of_them.end_ns, log.end_ns)
    keep = end > start
    return Occupancy(all_of_them.row[keep], all_of_them.core[keep], start[keep], end[keep])


def stretches(tables: Tables) -> Occupancy:
    """Return every stretch in which a graphExecute held a core; one that is still open ends with the run."""
    x, s, log = tables.executes, tables.slices, tables.log
    sliced = tables.slice_rows
    whole = x["started_ns"] != NEVER
    whole[sliced] = False
    rows = np.concatenate([np.flatnonzero(whole), sliced])
    start = np.concatenate([x["started_ns"][whole], s["start_ns"]])
    end = np.concatenate([x["finished_ns"][whole], s["end_ns"]])
    end = np.where(end == NEVER, log.end_ns, end)
    core = x["core"][rows]
    width = gang_width(tables)[x["graph"][rows]] if len(rows) else rows
    parts = [Occupancy(rows, core, start, end)]
    for k in range(1, int(width.max(initial=1))):
        wide = width > k
        parts.append(Occupancy(rows[wide], core[wide] + k, start[wide], end[wide]))
    return Occupancy(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def gang_width(tables: Tables) -> IntArray:
    """Return how many cores each graph of the log takes at once."""
    scenario = tables.log.scenario
    models = sorted(scenario_models(scenario), key=lambda model: -len(model.name))
    widths = []
    for graph in tables.log.graphs:
        model = next((m for m in models if graph.startswith(f"{m.name}/")), None)
        widths.append(cores_of(model, scenario.device) if model else 1)
    return np.array(widths, dtype=np.int64)


def cores_of(model: Model, device: Device) -> int:
    """Return how many cores a graph of the model takes at once.

    >>> cores_of(Model(name="vit", role="vit"), Device(cores=2, topology="gang"))
    2
    """
    return model.built_for_cores or (device.cores if device.topology == "gang" else 1)


def scenario_models(scenario: Scenario) -> list[Model]:
    """Return every model of the scenario, each once, in the order of who names it first."""
    named = [m for i in scenario.instances for m in (i.vit, i.llm) if m] + [c.model for c in scenario.clients]
    return list({model.name: model for model in named}.values())


def union_ns(start_ns: IntArray, end_ns: IntArray) -> int:
    """Return the length of the union of intervals.

    >>> union_ns(np.array([0, 5, 20]), np.array([10, 12, 30]))
    22
    """
    if not len(start_ns):
        return 0
    order = np.argsort(start_ns, kind="stable")
    start, end = start_ns[order], np.maximum.accumulate(end_ns[order])
    covered = np.concatenate([start[:1], np.maximum(start[1:], end[:-1])])
    return int(np.maximum(end - covered, 0).sum())


def sums(groups: IntArray, values: IntArray, size: int) -> IntArray:
    """Add integers up by group, exactly.

    >>> sums(np.array([0, 2, 0]), np.array([5, 7, 1]), 3).tolist()
    [6, 0, 7]
    """
    added = np.zeros(size, dtype=np.int64)
    np.add.at(added, groups, values)
    return added
