"""The device: what happens to a graphExecute from its submission to its end, as rules over records, without a clock.

Theory of operation. A submitted graphExecute queues in its context's FIFO; as head it is a client of its cores.
The engine calls ``submit`` when one arrives, ``look`` when one's timer is due (``next_due`` says whose is), and
``dispatch`` for a core that is stale (its clients or its resources changed). The rules move jobs through this table:

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

`clients` lists the heads of the contexts and `holders` those of them that hold cores, in no order that matters.
"""

from __future__ import annotations

from typing import Any

from htpsim.device.admission import admit, first_waiting, holds_core, is_admitted, next_to_start
from htpsim.device.contexts import become_client, cease_client, queue_up
from htpsim.device.holding import free_cores, slow_down, take_cores
from htpsim.device.rates import bring_forward, settle, share_rates
from htpsim.device.records import (
    ACQUIRING,
    DONE,
    EVICTING,
    FULL_RATE,
    GRID,
    NEVER,
    NO_DRAW,
    NOBODY,
    RESTORING,
    RUNNING,
    WAITING,
    WORK_SCALE,
    Records,
)


def submit(dev: Any, cores: Records, contexts: Records, jobs: Records, clients: Records, j: int, now_ns: int) -> None:
    """Queue job `j` in its context; what it is (cores, level, work ...) has been filled in before."""
    job = jobs[j]
    job.arrival_ns = now_ns
    job.since_ns = now_ns
    job.started_ns = NEVER
    job.timer_ns = NEVER
    job.left = job.work
    job.top = FULL_RATE
    job.yield_asked = 0
    job.yield_due = 0
    job.evictions = 0
    job.wait_ns = 0
    job.acquired_ns = 0
    job.run_ns = 0
    job.evict_ns = 0
    job.restore_ns = 0
    job.next_in_context = NOBODY
    context = contexts[job.context]
    job.first = 1 - context.warm
    if context.head == NOBODY:
        context.head = j
        context.tail = j
        become_client(dev, cores, jobs, clients, j)
    else:
        queue_up(dev, cores, context, jobs, clients, j)


def start(dev: Any, cores: Records, jobs: Records, holders: Records, j: int, now_ns: int) -> None:
    """Give an admitted job its cores."""
    job = jobs[j]
    job.wait_ns += now_ns - job.since_ns
    job.since_ns = now_ns
    job.holder_at = dev.holders
    holders[dev.holders] = j
    dev.holders += 1
    prelude_ns = take_cores(dev, cores, job, j, now_ns)
    if job.started_ns == NEVER:
        job.started_ns = now_ns
        job.state = ACQUIRING
        prelude_ns += dev.acquire_ns
        if job.first:
            prelude_ns += dev.first_call_ns
        if dev.throttles:
            slow_down(dev, cores, job, now_ns)
    else:
        job.state = RESTORING
        prelude_ns = dev.restore_ns
    if prelude_ns > 0:
        job.timer_ns = now_ns + prelude_ns
    else:
        run(dev, job, now_ns)


def run(dev: Any, job: Any, now_ns: int) -> None:
    """Let a job that has its cores begin or resume its work."""
    job.state = RUNNING
    job.since_ns = now_ns
    job.settled_ns = now_ns
    if dev.shares and (job.demand or dev.parallel):
        job.rate = 0  # until rates are shared out, in this instant
        job.share = NO_DRAW
        dev.rates_stale = 1
        return
    job.rate = FULL_RATE
    job.timer_ns = now_ns + (job.left + FULL_RATE - 1 >> WORK_SCALE)
    if job.yield_asked:
        bring_forward(dev, job, now_ns)


def ask_to_yield(dev: Any, job: Any, now_ns: int) -> None:
    """Ask a job that lost its place to leave."""
    interval = dev.yield_interval_ns * FULL_RATE
    if job.state == RUNNING:
        settle(job, now_ns)
    job.yield_asked = 1
    job.yield_ns = now_ns + dev.yield_latency_ns
    if dev.yield_rule == GRID:
        job.yield_work = ((job.work - job.left) // interval + 1) * interval
    if job.state == RUNNING:
        bring_forward(dev, job, now_ns)


def withdraw_request(dev: Any, job: Any, now_ns: int) -> None:
    """Let a job that is admitted again stay."""
    job.yield_asked = 0
    job.yield_due = 0
    if job.state == RUNNING:
        settle(job, now_ns)
        job.timer_ns = now_ns + (job.left + job.rate - 1) // job.rate


def evict(dev: Any, cores: Records, jobs: Records, holders: Records, evicted: Records, j: int, now_ns: int) -> None:
    """Carry out a yield that is due, and list the job in ``evicted``."""
    job = jobs[j]
    job.yield_asked = 0
    job.yield_due = 0
    job.run_ns += now_ns - job.since_ns
    job.ran_from_ns = job.since_ns
    job.since_ns = now_ns
    if dev.shares and (job.demand or dev.parallel):
        dev.rates_stale = 1
    evicted[dev.evicted] = j
    dev.evicted += 1
    if dev.evict_ns > 0:
        job.state = EVICTING
        job.timer_ns = now_ns + dev.evict_ns
    else:
        wait_again(dev, cores, jobs, holders, j, now_ns)


def wait_again(dev: Any, cores: Records, jobs: Records, holders: Records, j: int, now_ns: int) -> None:
    """Free the cores of an evicted job; it waits with the work it has left."""
    job = jobs[j]
    job.state = WAITING
    job.since_ns = now_ns
    job.timer_ns = NEVER
    job.evictions += 1
    free_cores(dev, cores, jobs, holders, j, now_ns)


def finish(
    dev: Any, cores: Records, contexts: Records, jobs: Records, clients: Records, holders: Records, j: int, now_ns: int
) -> None:
    """End a job: free its cores and make the next of its context the head."""
    job = jobs[j]
    job.state = DONE
    job.finished_ns = now_ns
    job.timer_ns = NEVER
    free_cores(dev, cores, jobs, holders, j, now_ns)
    cease_client(dev, cores, jobs, clients, j)
    context = contexts[job.context]
    follower = job.next_in_context
    context.head = follower
    context.warm = 1
    if follower == NOBODY:
        context.tail = NOBODY
    else:
        jobs[follower].first = 0
        become_client(dev, cores, jobs, clients, follower)


def next_due(dev: Any, jobs: Records, holders: Records) -> int:
    """Return the job whose timer is due first, by (instant, core, number), or NOBODY; note whether it is alone then."""
    best = NOBODY
    best_ns = 0
    dev.tied = 0
    for k in range(dev.holders):
        j = holders[k]
        job = jobs[j]
        at_ns = job.timer_ns
        if at_ns != NEVER:
            if best != NOBODY and at_ns >= best_ns:
                if at_ns > best_ns:
                    continue
                dev.tied = 1
                first = jobs[best]
                if job.core > first.core or (job.core == first.core and job.execute > first.execute):
                    continue
            elif at_ns < best_ns:
                dev.tied = 0
            best = j
            best_ns = at_ns
    return best


def look(
    dev: Any, cores: Records, contexts: Records, jobs: Records, clients: Records, holders: Records, j: int, now_ns: int
) -> None:
    """Move job `j` on, whose timer is due."""
    job = jobs[j]
    spent_ns = now_ns - job.since_ns
    if job.state == RUNNING:
        left = job.left - job.rate * (now_ns - job.settled_ns)
        job.left = left if left > 0 else 0
        job.settled_ns = now_ns
        if left > 0:
            job.yield_due = 1
            job.timer_ns = NEVER
            dev.stale |= job.cores
            return
        job.run_ns += spent_ns
        job.since_ns = now_ns
        if dev.shares and (job.demand or dev.parallel):
            dev.rates_stale = 1  # shared out again when its cores are dispatched, in this instant
        finish(dev, cores, contexts, jobs, clients, holders, j, now_ns)
    elif job.state == EVICTING:
        job.evict_ns += spent_ns
        wait_again(dev, cores, jobs, holders, j, now_ns)
    else:
        if job.state == ACQUIRING:
            job.acquired_ns += spent_ns
        else:
            job.restore_ns += spent_ns
        run(dev, job, now_ns)
        if dev.rates_stale:
            share_rates(dev, jobs, holders, now_ns)


def dispatch(
    dev: Any,
    cores: Records,
    jobs: Records,
    clients: Records,
    holders: Records,
    evicted: Records,
    core: int,
    now_ns: int,
) -> None:
    """Bring the running set of a stale core up to date: ask who must leave, start who may."""
    if dev.gangs or dev.parallel or cores[core].others:
        dispatch_sets(dev, cores, jobs, clients, holders, evicted, core, now_ns)
    else:
        dev.stale &= ~(1 << core)
        j = first_waiting(dev, jobs, clients, core)
        if cores[core].held:
            j = give_way(dev, cores, jobs, holders, evicted, cores[core].holder, j, now_ns)
            dev.stale &= ~(1 << core)  # what an eviction has just freed is taken below
        if j != NOBODY:
            start(dev, cores, jobs, holders, j, now_ns)
    if dev.rates_stale:
        share_rates(dev, jobs, holders, now_ns)


def give_way(
    dev: Any, cores: Records, jobs: Records, holders: Records, evicted: Records, holder: int, first: int, now_ns: int
) -> int:
    """Settle who runs where a core can run but one graph, of one core: `holder` or `first`, the first that waits.

    Return the one to start, or NOBODY.
    """
    job = jobs[holder]
    if job.state == EVICTING:
        return NOBODY
    if first == NOBODY or jobs[first].level <= job.level:
        if job.yield_asked:
            withdraw_request(dev, job, now_ns)
        return NOBODY
    if not job.yield_asked:
        ask_to_yield(dev, job, now_ns)
    elif job.yield_due:
        evict(dev, cores, jobs, holders, evicted, holder, now_ns)
        if job.state == WAITING:
            return first
    return NOBODY


def dispatch_sets(
    dev: Any,
    cores: Records,
    jobs: Records,
    clients: Records,
    holders: Records,
    evicted: Records,
    core: int,
    now_ns: int,
) -> None:
    """Do so where several may run. Where graphs span cores the sets depend on each other: all are done at once."""
    first, last = (0, dev.cores) if dev.gangs else (core, core + 1)
    room = 0
    for c in range(first, last):
        room += admit(dev, cores, jobs, clients, c)
    mask = (1 << last) - (1 << first)
    dev.stale &= ~mask
    k = 0
    while k < dev.holders:
        j = holders[k]
        job = jobs[j]
        k += 1
        if job.cores & mask and holds_core(job):
            if is_admitted(job) == job.yield_asked:
                if job.yield_asked:
                    withdraw_request(dev, job, now_ns)
                else:
                    ask_to_yield(dev, job, now_ns)
            elif job.yield_due:
                evict(dev, cores, jobs, holders, evicted, j, now_ns)
                if job.state == WAITING:
                    k -= 1  # another one has its place in the list now
    if not dev.gangs:
        dev.stale &= ~mask  # what an eviction has just freed belongs to those admitted above
    while room > 0:
        j = next_to_start(dev, cores, jobs, clients, holders, mask)
        if j == NOBODY:
            break
        start(dev, cores, jobs, holders, j, now_ns)
        room -= 1
