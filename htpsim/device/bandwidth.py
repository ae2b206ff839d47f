"""DRAM bandwidth: running graphs share it max-min fairly, in integers.

Each running graph has a demand d (bytes a second at full rate). Filled in order of (demand, number), each gets
min(d, left // remaining), first within its core's cap, then within the device's; its rate will be the share over d,
scaled by 2^20. With less demand than bandwidth every rate is full, so the model then changes nothing.

Filling core by core and then the device is the max-min fair share of both limits together, because the limits are
nested: a core is full at the same level of water whether or not the device fills up later. A graph on k cores draws a
k-th of its demand through each; the least of what its cores allow it holds, core by core in order, and what it then
leaves on an earlier core is not given out again.
"""

from __future__ import annotations

from typing import Any

from htpsim.device.records import NOBODY, RUNNING, Records


def share_bandwidth(dev: Any, jobs: Records, holders: Records) -> None:
    """Leave in ``cap`` of every running graph with a demand what it may draw."""
    drawing = 0
    wanted = 0
    for k in range(dev.holders):
        job = jobs[holders[k]]
        if job.state == RUNNING and job.demand:
            job.cap = job.demand
            wanted += job.demand
            drawing += 1
    if drawing > 1 and dev.core_bandwidth:
        wanted = 0
        for core in range(dev.cores):
            cap_within_core(dev, jobs, holders, core)
        for k in range(dev.holders):
            job = jobs[holders[k]]
            if job.state == RUNNING and job.demand:
                wanted += job.cap
    if dev.bandwidth and wanted > dev.bandwidth:
        fill_device(dev, jobs, holders, drawing)


def fill_device(dev: Any, jobs: Records, holders: Records, drawing: int) -> None:
    """Lower the caps of the `drawing` running graphs to their max-min shares of the device's bandwidth."""
    for k in range(dev.holders):
        jobs[holders[k]].seen = 0
    left = dev.bandwidth
    while drawing:
        best = NOBODY
        least = 0
        for k in range(dev.holders):
            j = holders[k]
            job = jobs[j]
            if job.state == RUNNING and job.demand and not job.seen:
                cap = job.cap
                if best == NOBODY or cap < least or (cap == least and job.execute < jobs[best].execute):
                    best = j
                    least = cap
        least = min(least, left // drawing)
        jobs[best].cap = least
        jobs[best].seen = 1
        left -= least
        drawing -= 1


def cap_within_core(dev: Any, jobs: Records, holders: Records, core: int) -> None:
    """Lower the caps of the running graphs on `core` to their max-min shares of that core's bandwidth."""
    bit = 1 << core
    drawing = 0
    for k in range(dev.holders):
        job = jobs[holders[k]]
        job.seen = 1
        if job.state == RUNNING and job.demand and job.cores & bit:
            job.seen = 0
            drawing += 1
    left = dev.core_bandwidth
    while drawing:
        best = NOBODY
        least = 0
        for k in range(dev.holders):
            j = holders[k]
            job = jobs[j]
            if not job.seen:
                through = job.cap // job.width
                if best == NOBODY or through < least or (through == least and job.execute < jobs[best].execute):
                    best = j
                    least = through
        job = jobs[best]
        job.cap = min(job.cap, left // drawing * job.width)
        job.seen = 1
        left -= -(-job.cap // job.width)
        drawing -= 1
