"""Who holds a core: what is taken when a graphExecute starts, and given back when it leaves."""

from __future__ import annotations

from typing import Any

from htpsim.device.records import NOBODY, WORK_SCALE, Records


def take_cores(dev: Any, cores: Records, job: Any, j: int, now_ns: int) -> int:
    """Take the cores of job `j`, neighbours from its first on; return how long they take to power up, in ns."""
    power_up_ns: int = 0
    c = job.core
    left = job.width
    while left:
        core = cores[c]
        if core.held == 0:
            idle_ns = now_ns - core.idle_since_ns
            if dev.powers:
                power_up_ns = max(power_up_ns, power_up(dev, core, idle_ns))
            if dev.throttle_rest_ns and idle_ns >= dev.throttle_rest_ns:
                core.busy_ns = 0
            core.busy_since_ns = now_ns
        core.holder = j
        core.held += 1
        left -= 1
        if left:
            c = (c + 1) % dev.cores
    return power_up_ns


def power_up(dev: Any, core: Any, idle_ns: int) -> int:
    """Return how long a core takes to power up that has idled for `idle_ns`, in ns: none if it did not idle at all."""
    cold = core.cold or idle_ns > dev.idle_timeout_ns
    core.cold = 0
    if cold:
        return int(dev.power_up_ns)
    return int(dev.power_up_warm_ns) if idle_ns else 0


def slow_down(dev: Any, cores: Records, job: Any, now_ns: int) -> None:
    """Stretch the work of a job that starts on a throttled core; its bytes come the more slowly.

    A core is throttled when it has been busy for ``throttle_after`` since it was last cool. Of a graph on several cores
    the first decides.
    """
    core = cores[job.core]
    if core.busy_ns + now_ns - core.busy_since_ns < dev.throttle_after_ns:
        return
    stretch = dev.throttle_stretch
    job.work = ((job.work >> WORK_SCALE) * stretch // 1000) << WORK_SCALE
    job.left = job.work
    if job.demand:
        job.demand = max(1, job.demand // stretch * 1000 + job.demand % stretch * 1000 // stretch)


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
            core.busy_ns += now_ns - core.busy_since_ns
        else:
            for k in range(dev.holders):
                if jobs[holders[k]].cores >> c & 1:
                    core.holder = holders[k]
        left -= 1
        if left:
            c = (c + 1) % dev.cores
