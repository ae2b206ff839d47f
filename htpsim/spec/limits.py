"""What an engine's integers can carry: all of them are int64, and nothing may overflow or stand still unnoticed.

==================  ==================================================  ===========================
quantity            grows as                                            must stay below
==================  ==================================================  ===========================
virtual time        slots x horizon x 2^16 (weight 1 takes it all)      2^62, but see below
instants            horizon: a float, as plots have, holds each exactly 2^53
work of a graph     its time alone x 2^20                               2^62
bandwidth share     bytes a second x 2^20                               2^62
demand of a graph   its bytes x 10^9 / its time alone                   2^62
rank in an instant  index of a client or process                        2^16
==================  ==================================================  ===========================

The horizon is loading, warm-up and measured time together. Virtual times bind under policies whose tags grow for ever:
``stride`` and ``eevdf``, where the distance between two accounts grows with them, and policies of a user's own. ``sfq``
takes what has passed off all its tags at once, and the others have no such tags.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from htpsim.spec.scenario import Scenario
from htpsim.spec.work import Arrivals, Instance, OtherClient
from htpsim.units import NS_PER_S, format_time

LARGEST: Final = 2**62
VIRTUAL_TIME_MAX_NS: Final = LARGEST >> 16
HORIZON_MAX_NS: Final = 2**53
FOR_EVER: Final = frozenset({"drr", "edf", "fifo", "lottery", "priority", "quota", "sfq"})
"""Policies under which no tag grows with the time that is simulated."""
WORK_MAX_NS: Final = LARGEST >> 20
BANDWIDTH_MAX: Final = LARGEST >> 20
INDEX_MAX: Final = 2**16 - 1

Table = npt.NDArray[np.int64]
Tables = Mapping[str, tuple[Table, Table]]
"""For each graph its tables of time alone, in ns, and of DRAM demand, in bytes a second."""


def beyond_limits(scenario: Scenario, slots: int, tables: Tables) -> list[str]:
    """Return a line for everything that an engine could not count, or that would never let time pass.

    Parameters
    ----------
    scenario : Scenario
        What is to be simulated.
    slots : int
        Slots of a guard lane.
    tables : mapping
        Tables of each graph, as ``make_plan`` fills them.

    Examples
    --------
    >>> from htpsim.spec import Run
    >>> from htpsim.spec import Guard
    >>> beyond_limits(Scenario(run=Run(duration_ns=2**46), guard=Guard(policy="stride")), 1, {})
    ['run.duration: got 70,368,744,177,664 ns with loading and warm-up, expected less than 70,368,744,177,664 ns ...']
    >>> beyond_limits(Scenario(run=Run(duration_ns=2**46), guard=Guard(policy="sfq")), 1, {})
    []
    """
    stretch = 1000 if scenario.device.throttle_after_ns is None else scenario.device.throttle_stretch
    return [*_horizon(scenario, slots), *_device(scenario), *_graphs(tables, stretch), *_clients(scenario)]


def _horizon(scenario: Scenario, slots: int) -> Iterator[str]:
    run = scenario.run
    horizon_ns = run.duration_ns + run.warmup_ns + _loading_ns(scenario)
    most_ns = longest_horizon_ns(scenario.guard.policy, slots)
    if horizon_ns >= most_ns:
        why = "instants would not be exact"
        if most_ns < HORIZON_MAX_NS:
            why = f"virtual times of policy {scenario.guard.policy} would overflow"
        yield (
            f"run.duration: got {horizon_ns:,} ns with loading and warm-up, expected less than {most_ns:,} ns "
            f"with {slots} slots: {why}"
        )


def longest_horizon_ns(policy: str, slots: int) -> int:
    """Return the time below which no number of a policy can overflow, in ns.

    >>> longest_horizon_ns("sfq", 2) // 86_400_000_000_000, longest_horizon_ns("eevdf", 2) // 3_600_000_000_000
    (104, 9)
    """
    return HORIZON_MAX_NS if policy in FOR_EVER else VIRTUAL_TIME_MAX_NS // slots


def _loading_ns(scenario: Scenario) -> int:
    """Return what loading takes at most: every client loads for itself, and division leaves a byte a second each."""
    bandwidth = scenario.device.load_bandwidth
    if not bandwidth:
        return 0
    models = [model for i in scenario.instances for model in (i.vit, i.llm) if model]
    models += [client.model for client in scenario.clients]
    nbytes = sum(context.binary_bytes for model in models for context in model.contexts)
    return nbytes * NS_PER_S // max(1, bandwidth - len(models)) + len(models)


def _device(scenario: Scenario) -> Iterator[str]:
    device = scenario.device
    for name, rate in (
        ("dram_bandwidth", device.dram_bandwidth or 0),
        ("core_dram_bandwidth", (device.core_dram_bandwidth or 0) * device.cores),
    ):
        if rate >= BANDWIDTH_MAX:
            yield f"device.{name}: got {rate:,} bytes/s over all cores, expected less than {BANDWIDTH_MAX:,}"
    if device.yield_interval_ns >= WORK_MAX_NS or (device.yield_rule == "grid" and device.yield_interval_ns < 1):
        yield f"device.yield_interval: got {device.yield_interval_ns:,} ns, expected 1 to {WORK_MAX_NS - 1:,} ns"


def _graphs(tables: Tables, stretch: int) -> Iterator[str]:
    for name, (solo_ns, demand) in tables.items():
        longest_ns, most = int(solo_ns.max()) * stretch // 1000, int(demand.max())
        if longest_ns >= WORK_MAX_NS:
            yield f"models.{name}: got up to {format_time(longest_ns)}, expected less than {format_time(WORK_MAX_NS)}"
        if most >= LARGEST:
            yield f"models.{name}: asks for up to {most:,} bytes/s of DRAM, expected less than {LARGEST:,}"


def _clients(scenario: Scenario) -> Iterator[str]:
    users: list[tuple[str, Instance | OtherClient]] = [(f"instances.{i.name}", i) for i in scenario.instances]
    users += [(f"clients.{c.name}", c) for c in scenario.clients]
    if len(users) > INDEX_MAX:
        yield f"instances: got {len(users):,} with other clients, expected at most {INDEX_MAX:,}"
    for where, user in users:
        if not 0 <= user.process <= INDEX_MAX:
            yield f"{where}.process: got {user.process}, expected 0 to {INDEX_MAX}"
        if user.weight < 1:
            yield f"{where}.weight: got {user.weight}, expected at least 1"
        yield from _arrivals(where, user.arrivals)
        if isinstance(user, OtherClient) and user.arrivals.kind == "closed" and user.outstanding < 1:
            yield f"{where}.outstanding: got unlimited for a closed loop, expected how many go round at once"


def _arrivals(where: str, arrivals: Arrivals) -> Iterator[str]:
    if arrivals.kind in {"periodic", "poisson"} and arrivals.period_ns < 1:
        yield f"{where}.arrivals.period: got {arrivals.period_ns} ns, expected a time above 0 for '{arrivals.kind}'"
