"""Who holds a core: what is taken when a graphExecute starts, and given back when it leaves."""

from __future__ import annotations

from typing import Any

from htpsim.device.records import NOBODY, Records


def take_cores(dev: Any, cores: Records, job: Any, j: int, now_ns: int) -> int:
    """Take the cores of job `j`, neighbours from its first on; return how long they take to power up, in ns."""
    power_up_ns: int = 0
    c = job.core
    left = job.width
    while left:
        core = cores[c]
        if dev.power_up_ns and core.held == 0:
            if core.cold or now_ns - core.idle_since_ns > dev.idle_timeout_ns:
                power_up_ns = dev.power_up_ns
            core.cold = 0
        core.holder = j
        core.held += 1
        left -= 1
        if left:
            c = (c + 1) % dev.cores
    return power_up_ns


def free_cores(dev: Any, cores: Records, jobs: Records, holders: Records, j: int, now_ns: int) -> None:
    """Take a job off its cores; they must be looked at again."""
    job = jobs[j]
    dev.holders -= 1
    last = holders[dev.holders]
    holders[job.holder_at] = last
    jobs[last].holder_at = job.holder_at
    dev.stale |= job.cores
    c = job.core
    left = job.width
    while left:
        core = cores[c]
        core.held -= 1
        if core.held == 0:
            core.holder = NOBODY
            core.idle_since_ns = now_ns
        else:
            for k in range(dev.holders):
                if jobs[holders[k]].cores >> c & 1:
                    core.holder = holders[k]
        left -= 1
        if left:
            c = (c + 1) % dev.cores
