"""The running set: which clients of a core may run now, and which of them must leave.

Theory of operation. The clients of a core are the heads of the contexts loaded on it. They are admitted in order of
(priority, holding the core before waiting, arrival, number), each if it is feasible beside those already admitted:
one protection domain, at most one QNN graph, HMX, HVX and VTCM within the core's. This order makes equal or
lower priority wait and higher priority evict. With parallel graph execution there may be several QNN graphs, of one
priority: they take turns at HMX and HVX, of which they count as many as the greatest takes, but each has VTCM its own.
Source: the vendor's pages on yielding, pre-emption and parallel execution, and the timelines they print. A graph built
for several cores takes part on each of them and is admitted when it is on all.
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


def clear_taken(dev: Any) -> None:
    """Begin with an empty core."""
    dev.taken = 0
    dev.taken_qnn = 0
    dev.taken_vtcm_bytes = 0
    dev.taken_hvx = 0
    dev.taken_hmx = 0
    dev.shared_hvx = 0
    dev.shared_hmx = 0


def take(dev: Any, job: Any) -> None:
    """Count a client in."""
    dev.taken += 1
    dev.taken_pd = job.pd
    dev.taken_vtcm_bytes += job.vtcm_bytes
    if not job.qnn:
        dev.taken_hvx += job.hvx
        dev.taken_hmx += job.hmx
        return
    dev.taken_level = job.level if dev.taken_qnn == 0 or dev.taken_level == job.level else NOBODY
    dev.taken_qnn += 1
    dev.shared_hvx = max(dev.shared_hvx, job.hvx)
    dev.shared_hmx = max(dev.shared_hmx, job.hmx)


def may_join(dev: Any, job: Any) -> bool:
    """Tell whether `job` may run beside those counted in."""
    if dev.taken == 0:
        return True
    hvx, hmx = dev.taken_hvx, dev.taken_hmx
    if dev.parallel and job.qnn and dev.taken_qnn:
        return bool(
            job.level == dev.taken_level and fits_beside(dev, job, dev.taken_pd, 0, dev.taken_vtcm_bytes, hvx, hmx)
        )
    hvx, hmx = hvx + dev.shared_hvx, hmx + dev.shared_hmx
    return fits_beside(dev, job, dev.taken_pd, dev.taken_qnn, dev.taken_vtcm_bytes, hvx, hmx)


def admit(dev: Any, cores: Records, jobs: Records, clients: Records, core: int) -> int:
    """Find the running set of `core`: set its bit in ``admitted`` of those that belong, and return how many do."""
    bit = 1 << core
    for k in range(dev.clients):
        j = clients[k]
        jobs[j].seen &= ~bit
        jobs[j].admitted &= ~bit
    clear_taken(dev)
    j = next_client(dev, jobs, clients, core)
    while j != NOBODY:
        jobs[j].seen |= bit
        if may_join(dev, jobs[j]):
            jobs[j].admitted |= bit
            take(dev, jobs[j])
            if dev.taken_qnn and cores[core].others == 0 and not dev.parallel:
                break  # only QNN graphs are left, and one is admitted
        j = next_client(dev, jobs, clients, core)
    return int(dev.taken)


def is_admitted(job: Any) -> bool:
    """Tell whether it belongs to the running set of every core it takes."""
    return bool(job.admitted & job.cores == job.cores)


def can_take(dev: Any, cores: Records, jobs: Records, holders: Records, job: Any) -> bool:
    """Tell whether every core it takes has room for it beside what is still held there."""
    for c in range(dev.cores):
        if job.cores >> c & 1 and cores[c].held:
            clear_taken(dev)
            for k in range(dev.holders):
                held = jobs[holders[k]]
                if held.cores >> c & 1:
                    take(dev, held)
            if not may_join(dev, job):
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
