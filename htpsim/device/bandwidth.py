"""DRAM bandwidth: running graphs share it max-min fairly, in integers.

Each running graph has a demand d (bytes a second at full rate). Filled in order of (demand, number), each gets
min(d, left // remaining), first within its core's cap, then within the device's; its rate is the share over d,
scaled by 2^20. With less demand than bandwidth every rate is full, so the model then changes nothing.

Filling core by core and then the device is the max-min fair share of both limits together, because the limits are
nested: a core is full at the same level of water whether or not the device fills up later. A graph on k cores draws a
k-th of its demand through each; the least of what its cores allow it holds, core by core in order, and what it then
leaves on an earlier core is not given out again.
"""

from __future__ import annotations

from typing import Any

from htpsim.device.records import FULL_RATE, NOBODY, RUNNING, WORK_SCALE, Records


def draws(job: Any) -> bool:
    """Tell whether it draws DRAM bandwidth now."""
    return bool(job.state == RUNNING and job.demand)


def least_unseen(dev: Any, jobs: Records, clients: Records, mask: int) -> int:
    """Return the running graph on the cores of `mask` not yet served with the least (cap, number), or NOBODY.

    On one core what counts is the part of the cap that goes through that core.
    """
    best = NOBODY
    best_cap = 0
    for k in range(dev.clients):
        j = clients[k]
        if jobs[j].seen or not draws(jobs[j]) or not jobs[j].cores & mask:
            continue
        cap = jobs[j].cap if mask < 0 else jobs[j].cap // jobs[j].width
        if best == NOBODY or cap < best_cap or (cap == best_cap and jobs[j].execute < jobs[best].execute):
            best = j
            best_cap = cap
    return best


def cap_within_core(dev: Any, jobs: Records, clients: Records, core: int) -> None:
    """Lower the caps of the graphs on `core` to their max-min shares of the core's bandwidth."""
    bit = 1 << core
    remaining = 0
    for k in range(dev.clients):
        j = clients[k]
        if draws(jobs[j]) and jobs[j].cores & bit:
            jobs[j].seen = 0
            remaining += 1
    left = dev.core_bandwidth
    while remaining:
        j = least_unseen(dev, jobs, clients, bit)
        jobs[j].cap = min(jobs[j].cap, left // remaining * jobs[j].width)
        jobs[j].seen = 1
        left -= -(-jobs[j].cap // jobs[j].width)
        remaining -= 1


def share_bandwidth(dev: Any, jobs: Records, clients: Records) -> None:
    """Leave in ``cap`` of every running graph with a demand its max-min share of the device's bandwidth."""
    remaining = 0
    for k in range(dev.clients):
        j = clients[k]
        if draws(jobs[j]):
            jobs[j].cap = jobs[j].demand
            jobs[j].seen = 0
            remaining += 1
    if dev.core_bandwidth:
        for core in range(dev.cores):
            cap_within_core(dev, jobs, clients, core)
        for k in range(dev.clients):
            jobs[clients[k]].seen = 0
    left = dev.bandwidth
    while remaining and dev.bandwidth:
        j = least_unseen(dev, jobs, clients, -1)
        jobs[j].cap = min(jobs[j].cap, left // remaining)
        jobs[j].seen = 1
        left -= jobs[j].cap
        remaining -= 1


def rate_of(share: int, demand: int) -> int:
    """Return the rate at which a graph with `demand` progresses on `share`, from 1 to 2^20."""
    if share >= demand:
        return FULL_RATE
    return max(1, (share << WORK_SCALE) // demand)
