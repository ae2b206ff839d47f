"""Contexts and clients: one FIFO a loaded context, whose head is a client of its cores.

Theory of operation. Submitted graphExecutes queue in their context by submission, and of one instant by number, as a
core would take them. The head asks for its cores, the others wait behind it; when it has finished, the next is head.
"""

from __future__ import annotations

from typing import Any

from htpsim.device.records import NEVER, NOBODY, QUEUED, WAITING, Records


def queue_up(dev: Any, cores: Records, context: Any, jobs: Records, clients: Records, j: int) -> None:
    """Put job `j` behind others of its context: by submission, and of one instant by number, as a core takes them.

    So it makes no difference whether graphs that compete for one core share a context there or not.
    """
    job, head, before = jobs[j], context.head, context.tail
    job.state = QUEUED
    if not goes_behind(job, jobs[before]):
        if not goes_behind(job, jobs[head]) and jobs[head].started_ns == NEVER:
            cease_client(dev, cores, jobs, clients, head)
            jobs[head].state = QUEUED
            job.next_in_context = head
            context.head = j
            become_client(dev, cores, jobs, clients, j)
            return
        before = head
        while jobs[before].next_in_context != NOBODY and goes_behind(job, jobs[jobs[before].next_in_context]):
            before = jobs[before].next_in_context
    job.next_in_context = jobs[before].next_in_context
    jobs[before].next_in_context = j
    if job.next_in_context == NOBODY:
        context.tail = j


def goes_behind(job: Any, other: Any) -> bool:
    """Tell whether a job that is submitted now goes behind another of its context."""
    return bool(other.arrival_ns < job.arrival_ns or other.execute < job.execute)


def become_client(dev: Any, cores: Records, jobs: Records, clients: Records, j: int) -> None:
    """Make the head of a context a client of its cores."""
    job = jobs[j]
    job.state = WAITING
    job.client_at = dev.clients
    clients[dev.clients] = j
    dev.clients += 1
    if not job.qnn:
        count_other(dev, cores, job, 1)
    core = cores[job.core]
    if core.held and not core.others and not dev.gangs and not dev.parallel and job.level <= jobs[core.holder].level:
        return  # only one can run there, and it is not this one
    dev.stale |= job.cores


def cease_client(dev: Any, cores: Records, jobs: Records, clients: Records, j: int) -> None:
    """Take a job that holds no cores off the list of clients."""
    job = jobs[j]
    dev.clients -= 1
    last = clients[dev.clients]
    clients[job.client_at] = last
    jobs[last].client_at = job.client_at
    if not job.qnn:
        count_other(dev, cores, job, -1)


def count_other(dev: Any, cores: Records, job: Any, change: int) -> None:
    """Count a client that is not a QNN graph in or out."""
    for c in range(dev.cores):
        if job.cores >> c & 1:
            cores[c].others += change
