"""The device: what happens to a graphExecute from its submission to its end, as rules over records, without a clock.

Theory of operation. A submitted graphExecute queues in its context's FIFO; as head it is a client of its cores.
The engine calls ``submit`` when one arrives, ``look`` when one's timer is due, and ``dispatch`` for a core that is
stale (its clients or its resources changed). The rules move jobs through the table below, write the instant each must
be looked at next into ``timer_ns`` and list in ``changed`` those for which it moved; the engine schedules them.

==========  ==========================  ======================================================================
state       on                          becomes
==========  ==========================  ======================================================================
(none)      submit                      QUEUED behind others of its context, or WAITING as its head
QUEUED      head of its context         WAITING
WAITING     admitted, resources free    ACQUIRING (first time), RESTORING (after an eviction); RUNNING if that is 0
ACQUIRING   timer                       RUNNING
RESTORING   timer                       RUNNING
RUNNING     timer, no work left         DONE: resources freed, next of its context is head
RUNNING     timer, yield due            RUNNING, due to yield when its cores are dispatched
RUNNING     dispatch, yield due         EVICTING; WAITING if that is 0: work left and first arrival are kept
EVICTING    timer                       WAITING: resources freed
==========  ==========================  ======================================================================

A job on the core that is no longer admitted is *asked* to yield; the request lapses when it is admitted again or
finishes. It runs on until the yield: ``yield_latency`` after it lost its place and not before its acquire or restore
ended (rule LATENCY), or at the next multiple of ``yield_interval`` of its own work (rule GRID). A yield that is due is
carried out by the dispatch of that instant, after whatever else ended or arrived in it: a job that became admissible
again at that very moment stays, so nothing yields and resumes in one instant.
"""

from __future__ import annotations

from typing import Any

from htpsim.device.admission import admit, can_take, holds_core, is_admitted
from htpsim.device.bandwidth import draws, rate_of, share_bandwidth
from htpsim.device.records import (
    ACQUIRING,
    DONE,
    EVICTING,
    FULL_RATE,
    GRID,
    NEVER,
    NOBODY,
    QUEUED,
    RESTORING,
    RUNNING,
    WAITING,
    Records,
)


def set_timer(dev: Any, jobs: Records, changed: Records, j: int, at_ns: int) -> None:
    """Note that job `j` must be looked at `at_ns`."""
    if jobs[j].timer_ns != at_ns:
        jobs[j].timer_ns = at_ns
        changed[dev.changed] = j
        dev.changed += 1


def become_client(dev: Any, cores: Records, jobs: Records, clients: Records, j: int) -> None:
    """Make the head of a context a client of its cores."""
    jobs[j].state = WAITING
    jobs[j].admitted = 0
    clients[dev.clients] = j
    dev.clients += 1
    dev.stale |= jobs[j].cores
    if not jobs[j].qnn:
        for c in range(dev.cores):
            if jobs[j].cores >> c & 1:
                cores[c].others += 1


def cease_client(dev: Any, cores: Records, jobs: Records, clients: Records, j: int) -> None:
    """Take a job off the list of clients; it holds no resources."""
    for k in range(dev.clients):
        if clients[k] == j:
            dev.clients -= 1
            clients[k] = clients[dev.clients]
            break
    if not jobs[j].qnn:
        for c in range(dev.cores):
            if jobs[j].cores >> c & 1:
                cores[c].others -= 1


def submit(dev: Any, cores: Records, contexts: Records, jobs: Records, clients: Records, j: int, now_ns: int) -> None:
    """Queue job `j` in its context; what it is (cores, level, work ...) has been filled in before."""
    job = jobs[j]
    job.arrival_ns = now_ns
    job.since_ns = now_ns
    job.started_ns = NEVER
    job.left = job.work
    job.rate = FULL_RATE
    job.timer_ns = NEVER
    job.yield_asked = 0
    job.yield_due = 0
    job.evictions = 0
    job.wait_ns = 0
    job.acquired_ns = 0
    job.run_ns = 0
    job.evict_ns = 0
    job.restore_ns = 0
    job.seen = 0
    job.next_in_context = NOBODY
    queue_up(dev, cores, contexts[job.context], jobs, clients, j)


def queue_up(dev: Any, cores: Records, context: Any, jobs: Records, clients: Records, j: int) -> None:
    """Put job `j` into its context's FIFO: by submission, and of one instant by number, as the core would take them."""
    head, tail = context.head, context.tail
    if head == NOBODY:
        context.head = context.tail = j
        become_client(dev, cores, jobs, clients, j)
        return
    if is_before(jobs[tail], jobs[j]):
        jobs[tail].next_in_context = j
        context.tail = j
        jobs[j].state = QUEUED
        return
    if is_before(jobs[j], jobs[head]):  # nothing that arrived in this instant has started: dispatch comes after
        cease_client(dev, cores, jobs, clients, head)
        jobs[head].state = QUEUED
        jobs[j].next_in_context = head
        context.head = j
        become_client(dev, cores, jobs, clients, j)
        return
    before = head
    while is_before(jobs[jobs[before].next_in_context], jobs[j]):
        before = jobs[before].next_in_context
    jobs[j].next_in_context = jobs[before].next_in_context
    jobs[before].next_in_context = j
    jobs[j].state = QUEUED


def is_before(one: Any, other: Any) -> bool:
    """Tell whether a job was submitted before another; of one instant the lower number is first."""
    if one.arrival_ns != other.arrival_ns:
        return bool(one.arrival_ns < other.arrival_ns)
    return bool(one.execute < other.execute)


def take_cores(dev: Any, cores: Records, job: Any, now_ns: int) -> int:
    """Take the resources of every core of `job`; return how long the coldest of them takes to power up, in ns."""
    power_up_ns = 0
    for c in range(dev.cores):
        if job.cores >> c & 1:
            core = cores[c]
            if core.held == 0 and (core.cold or now_ns - core.idle_since_ns > dev.idle_timeout_ns):
                power_up_ns = dev.power_up_ns
            core.cold = 0
            core.held += 1
            core.held_qnn += job.qnn
            core.held_pd = job.pd
            core.held_vtcm_bytes += job.vtcm_bytes
            core.held_hvx += job.hvx
            core.held_hmx += job.hmx
    return power_up_ns


def free_cores(dev: Any, cores: Records, job: Any, now_ns: int) -> None:
    """Give them back; every core concerned must be looked at again."""
    dev.stale |= job.cores
    for c in range(dev.cores):
        if job.cores >> c & 1:
            core = cores[c]
            core.held -= 1
            core.held_qnn -= job.qnn
            core.held_vtcm_bytes -= job.vtcm_bytes
            core.held_hvx -= job.hvx
            core.held_hmx -= job.hmx
            if core.held == 0:
                core.idle_since_ns = now_ns


def start(dev: Any, cores: Records, jobs: Records, changed: Records, j: int, now_ns: int) -> None:
    """Give an admitted job its cores."""
    job = jobs[j]
    job.wait_ns += now_ns - job.since_ns
    job.since_ns = now_ns
    power_up_ns = take_cores(dev, cores, job, now_ns)
    if job.started_ns == NEVER:
        job.started_ns = now_ns
        prelude_ns = dev.acquire_ns + power_up_ns
        job.state = ACQUIRING
    else:
        prelude_ns = dev.restore_ns
        job.state = RESTORING
    if prelude_ns > 0:
        set_timer(dev, jobs, changed, j, now_ns + prelude_ns)
    else:
        run(dev, jobs, changed, j, now_ns)


def run(dev: Any, jobs: Records, changed: Records, j: int, now_ns: int) -> None:
    """Let a job that has its cores begin or resume its work."""
    job = jobs[j]
    job.state = RUNNING
    job.since_ns = now_ns
    job.settled_ns = now_ns
    job.rate = FULL_RATE
    if job.demand:
        dev.rates_stale = 1
    retime(dev, jobs, changed, j, now_ns)


def retime(dev: Any, jobs: Records, changed: Records, j: int, now_ns: int) -> None:
    """Set the timer of a running job: its end, or its yield if that comes first. ``left`` is settled at `now_ns`."""
    job = jobs[j]
    at_ns = now_ns - (-job.left // job.rate)
    if job.yield_asked:
        yield_ns = job.yield_ns
        if dev.yield_rule == GRID:
            yield_ns = now_ns - (-max(0, job.yield_work - (job.work - job.left)) // job.rate)
        at_ns = min(at_ns, max(now_ns, yield_ns))
    set_timer(dev, jobs, changed, j, at_ns)


def settle(job: Any, now_ns: int) -> None:
    """Count the work a running job has done up to now."""
    job.left = max(0, job.left - job.rate * (now_ns - job.settled_ns))
    job.settled_ns = now_ns


def ask_to_yield(dev: Any, jobs: Records, changed: Records, j: int, now_ns: int) -> None:
    """Ask a job that lost its place to leave."""
    job = jobs[j]
    interval = dev.yield_interval_ns * FULL_RATE
    if job.state == RUNNING:
        settle(job, now_ns)
    job.yield_asked = 1
    job.yield_ns = now_ns + dev.yield_latency_ns
    job.yield_work = ((job.work - job.left) // interval + 1) * interval
    if job.state == RUNNING:
        retime(dev, jobs, changed, j, now_ns)


def withdraw_request(dev: Any, jobs: Records, changed: Records, j: int, now_ns: int) -> None:
    """Let a job that is admitted again stay."""
    jobs[j].yield_asked = 0
    jobs[j].yield_due = 0
    if jobs[j].state == RUNNING:
        settle(jobs[j], now_ns)
        retime(dev, jobs, changed, j, now_ns)


def evict(dev: Any, cores: Records, jobs: Records, changed: Records, evicted: Records, j: int, now_ns: int) -> None:
    """Carry out a yield that is due, and list the job in ``evicted``."""
    job = jobs[j]
    job.yield_asked = 0
    job.yield_due = 0
    job.run_ns += now_ns - job.since_ns
    job.ran_from_ns = job.since_ns
    job.since_ns = now_ns
    if job.demand:
        dev.rates_stale = 1
    evicted[dev.evicted] = j
    dev.evicted += 1
    if dev.evict_ns > 0:
        job.state = EVICTING
        set_timer(dev, jobs, changed, j, now_ns + dev.evict_ns)
    else:
        leave(dev, cores, jobs, j, now_ns)


def leave(dev: Any, cores: Records, jobs: Records, j: int, now_ns: int) -> None:
    """Free the cores of an evicted job; it waits with the work it has left."""
    job = jobs[j]
    job.state = WAITING
    job.since_ns = now_ns
    job.timer_ns = NEVER
    job.evictions += 1
    free_cores(dev, cores, job, now_ns)


def finish(dev: Any, cores: Records, contexts: Records, jobs: Records, clients: Records, j: int, now_ns: int) -> None:
    """End a job: free its cores and make the next of its context the head."""
    job = jobs[j]
    job.state = DONE
    job.timer_ns = NEVER
    free_cores(dev, cores, job, now_ns)
    cease_client(dev, cores, jobs, clients, j)
    follower = job.next_in_context
    contexts[job.context].head = follower
    if follower == NOBODY:
        contexts[job.context].tail = NOBODY
    else:
        become_client(dev, cores, jobs, clients, follower)


def look(
    dev: Any, cores: Records, contexts: Records, jobs: Records, clients: Records, changed: Records, j: int, now_ns: int
) -> None:
    """Move job `j` on, whose timer is due."""
    job = jobs[j]
    spent_ns = now_ns - job.since_ns
    if job.state == RUNNING:
        settle(job, now_ns)
        if job.left > 0:
            job.yield_due = 1
            job.timer_ns = NEVER
            dev.stale |= job.cores
            return
        job.run_ns += spent_ns
        job.since_ns = now_ns
        if job.demand:
            dev.rates_stale = 1
        finish(dev, cores, contexts, jobs, clients, j, now_ns)
        return  # its cores are stale: rates are shared out again when they are dispatched
    if job.state == EVICTING:
        job.evict_ns += spent_ns
        leave(dev, cores, jobs, j, now_ns)
    elif job.state == ACQUIRING:
        job.acquired_ns += spent_ns
        run(dev, jobs, changed, j, now_ns)
    elif job.state == RESTORING:
        job.restore_ns += spent_ns
        run(dev, jobs, changed, j, now_ns)
    share_rates(dev, jobs, clients, changed, now_ns)


def share_rates(dev: Any, jobs: Records, clients: Records, changed: Records, now_ns: int) -> None:
    """Share DRAM bandwidth out anew if a running set changed, and move the timers of those whose rate did."""
    if not dev.rates_stale:
        return
    dev.rates_stale = 0
    if not (dev.bandwidth or dev.core_bandwidth):
        return
    share_bandwidth(dev, jobs, clients)
    for k in range(dev.clients):
        j = clients[k]
        if draws(jobs[j]):
            rate = rate_of(jobs[j].cap, jobs[j].demand)
            if rate != jobs[j].rate:
                settle(jobs[j], now_ns)
                jobs[j].rate = rate
                retime(dev, jobs, changed, j, now_ns)


def dispatch(
    dev: Any,
    cores: Records,
    jobs: Records,
    clients: Records,
    changed: Records,
    evicted: Records,
    core: int,
    now_ns: int,
) -> None:
    """Bring the running set of a stale core up to date: ask who must leave, start who may.

    Where graphs span cores the sets depend on each other, so all cores are done at once.
    """
    first, last = core, core + 1
    if dev.gangs:
        first, last = 0, dev.cores
    room = 0
    for c in range(first, last):
        room += admit(dev, cores, jobs, clients, c)
    mask = (1 << last) - (1 << first)
    for k in range(dev.clients):
        j = clients[k]
        if jobs[j].cores & mask and holds_core(jobs[j]):
            if is_admitted(jobs[j]) == jobs[j].yield_asked:
                if jobs[j].yield_asked:
                    withdraw_request(dev, jobs, changed, j, now_ns)
                else:
                    ask_to_yield(dev, jobs, changed, j, now_ns)
            elif jobs[j].yield_due:
                evict(dev, cores, jobs, changed, evicted, j, now_ns)
    dev.stale &= ~mask  # what an eviction has just freed belongs to those admitted above
    while room > 0:
        j = next_to_start(dev, cores, jobs, clients, mask)
        if j == NOBODY:
            break
        start(dev, cores, jobs, changed, j, now_ns)
        room -= 1
    share_rates(dev, jobs, clients, changed, now_ns)


def next_to_start(dev: Any, cores: Records, jobs: Records, clients: Records, mask: int) -> int:
    """Return the first (priority, arrival, number) admitted client of these cores that waits and fits, or NOBODY."""
    best = NOBODY
    for k in range(dev.clients):
        j = clients[k]
        if jobs[j].state == WAITING and jobs[j].cores & mask and is_admitted(jobs[j]):
            before = best == NOBODY or (-jobs[j].level, jobs[j].arrival_ns, jobs[j].execute) < (
                -jobs[best].level,
                jobs[best].arrival_ns,
                jobs[best].execute,
            )
            if before and can_take(dev, cores, jobs[j]):
                best = j
    return best
