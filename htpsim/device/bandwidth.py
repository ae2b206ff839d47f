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

from htpsim.device.records import FULL_RATE, NO_DRAW, NOBODY, RUNNING, WORK_SCALE, Records


def share_bandwidth(dev: Any, jobs: Records, holders: Records) -> None:
    """Leave in ``cap`` of every running graph with a demand what it may draw, and NO_DRAW in that of other holders."""
    drawing = 0
    wanted = 0
    one = other = NOBODY
    for k in range(dev.holders):
        j = holders[k]
        job = jobs[j]
        job.cap = NO_DRAW
        if job.state == RUNNING and job.demand:
            job.cap = drawn_at(job.demand, job.top) if dev.parallel else job.demand
            wanted += job.cap
            drawing += 1
            other = one
            one = j
    if drawing > 1 and dev.core_bandwidth:
        wanted = 0
        for core in range(dev.cores):
            cap_within_core(dev, jobs, holders, core)
        for k in range(dev.holders):
            job = jobs[holders[k]]
            if job.cap != NO_DRAW:
                wanted += job.cap
    if dev.bandwidth and wanted > dev.bandwidth:
        if drawing == 2:
            fill_two(dev.bandwidth, jobs[one], jobs[other])
        else:
            fill_device(dev, jobs, holders, drawing)


def drawn_at(demand: int, rate: int) -> int:
    """Return what a graph draws at a rate that asks for `demand` at full rate, in bytes a second.

    >>> drawn_at(10, FULL_RATE), drawn_at(10, FULL_RATE // 2), drawn_at(1, FULL_RATE // 2)
    (10, 5, 1)
    """
    if rate == FULL_RATE:
        return demand
    drawn = demand // FULL_RATE * rate + (demand % FULL_RATE * rate >> WORK_SCALE)
    return drawn if drawn > 0 else 1


def share_cores(dev: Any, jobs: Records, holders: Records) -> None:
    """Leave in ``top`` of every holder the rate it would have with all the bandwidth it asks for.

    A QNN graph beside another that runs on its core goes at the rate of parallel graphs.
    """
    for k in range(dev.holders):
        job = jobs[holders[k]]
        job.top = FULL_RATE
        if job.qnn and job.state == RUNNING:
            for i in range(dev.holders):
                other = jobs[holders[i]]
                if i != k and other.qnn and other.state == RUNNING and other.cores & job.cores:
                    job.top = dev.parallel_rate


def fill_two(bandwidth: int, one: Any, other: Any) -> None:
    """Lower the caps of two running graphs to their max-min shares of the device's bandwidth: the common case."""
    least, most = one, other
    if other.cap < one.cap or (other.cap == one.cap and other.execute < one.execute):
        least, most = other, one
    half, rest = bandwidth // 2, bandwidth - least.cap
    if least.cap > half:
        least.cap, rest = half, bandwidth - half
    most.cap = rest if most.cap > rest else most.cap


def fill_device(dev: Any, jobs: Records, holders: Records, drawing: int) -> None:
    """Lower the caps of the `drawing` running graphs to their max-min shares of the device's bandwidth."""
    left = dev.bandwidth
    level = left // drawing
    for k in range(dev.holders):
        job = jobs[holders[k]]
        job.seen = 1 if job.cap == NO_DRAW else 0
    k = 0
    while k < dev.holders:
        job = jobs[holders[k]]
        k += 1
        if job.cap <= level and not job.seen:  # has all it wants, and leaves the others more than they had
            job.seen = 1
            left -= job.cap
            drawing -= 1
            level = left // drawing
            k = 0
    spare = left - level * drawing
    while spare:  # what division leaves goes to those who are served last, by (demand, number)
        last = NOBODY
        for k in range(dev.holders):
            j = holders[k]
            job = jobs[j]
            if not job.seen and (
                last == NOBODY
                or job.cap > jobs[last].cap
                or (job.cap == jobs[last].cap and job.execute > jobs[last].execute)
            ):
                last = j
        jobs[last].cap = level + 1
        jobs[last].seen = 1
        spare -= 1
    for k in range(dev.holders):
        job = jobs[holders[k]]
        if not job.seen:
            job.cap = level


def cap_within_core(dev: Any, jobs: Records, holders: Records, core: int) -> None:
    """Lower the caps of the running graphs on `core` to their max-min shares of that core's bandwidth."""
    bit = 1 << core
    drawing = 0
    for k in range(dev.holders):
        job = jobs[holders[k]]
        job.seen = 1
        if job.cap != NO_DRAW and job.cores & bit:
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
