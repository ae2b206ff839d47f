"""How fast a running graphExecute works, and so when the device must look at it next.

Its rate is what it gets of its core and of DRAM bandwidth. Rates are shared out whenever a running set changes; each
running job has done some work by then, which is settled at the old rate before it goes on at the new one.
"""

from __future__ import annotations

from typing import Any

from htpsim.device.bandwidth import drawn_at, share_bandwidth, share_cores
from htpsim.device.records import GRID, NO_DRAW, RUNNING, WORK_SCALE, Records


def bring_forward(dev: Any, job: Any, now_ns: int) -> None:
    """Set the timer of a running job that was asked to yield: to its yield, if that comes before its end."""
    yield_ns = job.yield_ns
    if dev.yield_rule == GRID:
        before = max(0, job.yield_work - (job.work - job.left))
        yield_ns = now_ns + (before + job.rate - 1) // job.rate
    job.timer_ns = min(job.timer_ns, max(now_ns, yield_ns))


def settle(job: Any, now_ns: int) -> None:
    """Count the work a running job has done up to now."""
    if job.settled_ns != now_ns:
        left = job.left - job.rate * (now_ns - job.settled_ns)
        job.left = left if left > 0 else 0
        job.settled_ns = now_ns


def share_rates(dev: Any, jobs: Records, holders: Records, now_ns: int) -> None:
    """Share cores and DRAM bandwidth out anew, and move the timers of those whose rate changed."""
    dev.rates_stale = 0
    if dev.parallel:
        share_cores(dev, jobs, holders)
    share_bandwidth(dev, jobs, holders)
    for k in range(dev.holders):
        job = jobs[holders[k]]
        cap = job.cap
        wanted = job.demand
        if dev.parallel:
            if job.state != RUNNING:
                continue
            wanted = drawn_at(job.demand, job.top)
        elif cap in (NO_DRAW, job.share):
            continue
        job.share = cap
        rate = job.top
        if cap not in (NO_DRAW, wanted):
            rate = (cap << WORK_SCALE) // job.demand
            if rate == 0:
                rate = 1
        if rate != job.rate:
            change_rate(dev, job, rate, now_ns)


def change_rate(dev: Any, job: Any, rate: int, now_ns: int) -> None:
    """Let a running job go on at another rate."""
    settle(job, now_ns)
    job.rate = rate
    if not job.yield_due:
        job.timer_ns = now_ns + (job.left + rate - 1) // rate
        if job.yield_asked:
            bring_forward(dev, job, now_ns)


def set_bandwidth(dev: Any, jobs: Records, holders: Records, bandwidth: int, now_ns: int) -> None:
    """Change the device's bandwidth: what shares DRAM with the cores came or went."""
    dev.bandwidth = bandwidth
    share_rates(dev, jobs, holders, now_ns)
