"""What must hold of the device's records between any two rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from htpsim.device.admission import clear_taken, holds_core, may_join, take
from htpsim.device.records import EVICTING, NEVER, NOBODY, QUEUED, STATE_NAMES, WAITING, Records
from htpsim.errors import InvariantError


def validate(
    dev: Any, cores: Sequence[Any], contexts: Sequence[Any], jobs: Records, clients: Records, holders: Records
) -> None:
    """Raise InvariantError unless device, cores, contexts and jobs agree."""
    active = [clients[k] for k in range(dev.clients)]
    heads = {x.head for x in contexts if x.head != NOBODY}
    if heads != set(active) or [jobs[j].client_at for j in active] != list(range(len(active))):
        raise InvariantError(f"device: heads of contexts are {sorted(heads)}, clients are {active}")
    holding = [holders[k] for k in range(dev.holders)]
    expected = {j for j in active if holds_core(jobs[j]) or jobs[j].state == EVICTING}
    if expected != set(holding) or [jobs[j].holder_at for j in holding] != list(range(len(holding))):
        raise InvariantError(f"device: {sorted(expected)} hold cores, holders are {holding}")
    for c, core in enumerate(cores):
        on = [j for j in holding if jobs[j].cores >> c & 1]
        if (core.holder not in on) if on else (core.holder != NOBODY):
            raise InvariantError(f"core {c}: names {core.holder} as its holder, {on} hold it")
        _validate_core(dev, c, core, [jobs[j] for j in on])
        others = sum(1 - jobs[j].qnn for j in active if jobs[j].cores >> c & 1)
        if core.others != others:
            raise InvariantError(f"core {c}: counts {core.others} clients that are not QNN graphs, there are {others}")
    for j in active:
        _validate_job(dev, jobs[j])
    for x in contexts:
        j = jobs[x.head].next_in_context if x.head != NOBODY else NOBODY
        while j != NOBODY:
            if jobs[j].state != QUEUED:
                raise InvariantError(f"graphExecute {jobs[j].execute} is behind its context's head, not queued")
            j = jobs[j].next_in_context


def _validate_core(dev: Any, number: int, core: Any, on: list[Any]) -> None:
    if core.held != len(on):
        raise InvariantError(f"core {number}: counts {core.held} holders, {len(on)} hold it")
    clear_taken(dev)
    for job in on:
        if not may_join(dev, job):
            raise InvariantError(f"core {number}: its holders exceed it: {on}")
        take(dev, job)
    if len({job.pd for job in on}) > 1:
        raise InvariantError(f"core {number}: holders of {len({job.pd for job in on})} protection domains at once")


def _validate_job(dev: Any, job: Any) -> None:
    if not 0 <= job.left <= job.work:
        raise InvariantError(f"graphExecute {job.execute}: {job.left} of {job.work} work left")
    if (job.timer_ns == NEVER) != (job.state == WAITING or job.yield_due == 1):
        raise InvariantError(f"graphExecute {job.execute}: {STATE_NAMES[job.state]} with timer {job.timer_ns}")
    if job.yield_due and not job.yield_asked:
        raise InvariantError(f"graphExecute {job.execute}: due to yield, and nobody asked")
