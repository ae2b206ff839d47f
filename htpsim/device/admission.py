"""The running set: which clients of a core may run now, and which of them must leave.

Theory of operation. The clients of a core are the heads of the contexts loaded on it. They are admitted in order of
(priority, holding the core before waiting, arrival, number), each if it is feasible beside those already admitted:
one protection domain, at most one QNN graph, HMX, HVX and VTCM within the core's. This order makes equal or
lower priority wait and higher priority evict. Source: the vendor's page on yielding and pre-emption, and the
timelines it prints. A graph built for several cores takes part on each of them and is admitted when it is on all.
"""

from __future__ import annotations

from typing import Any

from htpsim.device.records import ACQUIRING, NOBODY, RESTORING, RUNNING, WAITING, Records


def holds_core(job: Any) -> bool:
    """Tell whether it is on the core with a claim to stay; one being evicted is not."""
    return bool(job.state in (RUNNING, ACQUIRING, RESTORING))


def goes_before(jobs: Records, a: int, b: int) -> bool:
    """Tell whether `a` is admitted before `b`."""
    if jobs[a].level != jobs[b].level:
        return bool(jobs[a].level > jobs[b].level)
    a_holds = holds_core(jobs[a])
    if a_holds != holds_core(jobs[b]):
        return a_holds
    if jobs[a].arrival_ns != jobs[b].arrival_ns:
        return bool(jobs[a].arrival_ns < jobs[b].arrival_ns)
    return bool(jobs[a].execute < jobs[b].execute)


def next_client(dev: Any, jobs: Records, clients: Records, core: int) -> int:
    """Return the first client of `core` in order of admission that was not seen in this pass, or NOBODY."""
    bit = 1 << core
    best = NOBODY
    for k in range(dev.clients):
        j = clients[k]
        if jobs[j].cores & bit and not jobs[j].seen & bit and (best == NOBODY or goes_before(jobs, j, best)):
            best = j
    return best


def fits_beside(dev: Any, job: Any, pd: int, qnn: int, vtcm_bytes: int, hvx: int, hmx: int) -> bool:
    """Tell whether `job` may run beside clients that together hold the given resources."""
    return bool(
        dev.coexists
        and job.pd == pd
        and not (job.qnn and qnn)
        and job.vtcm_bytes + vtcm_bytes <= dev.vtcm_bytes
        and job.hvx + hvx <= dev.hvx
        and job.hmx + hmx <= dev.hmx
    )


def admit(dev: Any, cores: Records, jobs: Records, clients: Records, core: int) -> int:
    """Find the running set of `core`: set its bit in ``admitted`` of those that belong, and return how many do."""
    bit = 1 << core
    for k in range(dev.clients):
        j = clients[k]
        jobs[j].seen &= ~bit
        jobs[j].admitted &= ~bit
    count = pd = qnn = vtcm_bytes = hvx = hmx = 0
    j = next_client(dev, jobs, clients, core)
    while j != NOBODY:
        jobs[j].seen |= bit
        if count == 0 or fits_beside(dev, jobs[j], pd, qnn, vtcm_bytes, hvx, hmx):
            jobs[j].admitted |= bit
            count += 1
            pd = jobs[j].pd
            qnn += jobs[j].qnn
            vtcm_bytes += jobs[j].vtcm_bytes
            hvx += jobs[j].hvx
            hmx += jobs[j].hmx
            if qnn and cores[core].others == 0:
                return count  # only QNN graphs are left, and one is admitted
        j = next_client(dev, jobs, clients, core)
    return count


def is_admitted(job: Any) -> bool:
    """Tell whether it belongs to the running set of every core it takes."""
    return bool(job.admitted & job.cores == job.cores)


def can_take(dev: Any, cores: Records, jobs: Records, holders: Records, job: Any) -> bool:
    """Tell whether every core it takes has room for it beside what is still held there."""
    for c in range(dev.cores):
        if job.cores >> c & 1 and cores[c].held:
            pd = qnn = vtcm_bytes = hvx = hmx = 0
            for k in range(dev.holders):
                held = jobs[holders[k]]
                if held.cores >> c & 1:
                    pd = held.pd
                    qnn += held.qnn
                    vtcm_bytes += held.vtcm_bytes
                    hvx += held.hvx
                    hmx += held.hmx
            if not fits_beside(dev, job, pd, qnn, vtcm_bytes, hvx, hmx):
                return False
    return True


def next_to_start(dev: Any, cores: Records, jobs: Records, clients: Records, holders: Records, mask: int) -> int:
    """Return the first (priority, arrival, number) admitted client of these cores that waits and fits, or NOBODY."""
    best = NOBODY
    for k in range(dev.clients):
        j = clients[k]
        if jobs[j].state == WAITING and jobs[j].cores & mask and is_admitted(jobs[j]):
            before = best == NOBODY or goes_before(jobs, j, best)
            if before and can_take(dev, cores, jobs, holders, jobs[j]):
                best = j
    return best


def first_waiting(dev: Any, jobs: Records, clients: Records, core: int) -> int:
    """Return the first waiting client of a core in order of admission, or NOBODY; graphs of one core only."""
    best = NOBODY
    for k in range(dev.clients):
        j = clients[k]
        job = jobs[j]
        if job.state == WAITING and job.core == core:
            if best != NOBODY:
                first = jobs[best]
                if job.level < first.level:
                    continue
                if job.level == first.level:
                    if job.arrival_ns > first.arrival_ns:
                        continue
                    if job.arrival_ns == first.arrival_ns and job.execute > first.execute:
                        continue
            best = j
    return best
