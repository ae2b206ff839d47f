"""What must hold of the device's records between any two rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from htpsim.device.admission import holds_core
from htpsim.device.records import EVICTING, NEVER, NOBODY, QUEUED, STATE_NAMES, WAITING, Records
from htpsim.errors import InvariantError

_HELD = ("qnn", "vtcm_bytes", "hvx", "hmx")


def validate(dev: Any, cores: Sequence[Any], contexts: Sequence[Any], jobs: Records, clients: Records) -> None:
    """Raise InvariantError unless device, cores, contexts and jobs agree."""
    active = [clients[k] for k in range(dev.clients)]
    if len(set(active)) != len(active):
        raise InvariantError(f"device: client list {active} names one twice")
    heads = {x.head for x in contexts if x.head != NOBODY}
    if heads != set(active):
        raise InvariantError(f"device: heads of contexts are {sorted(heads)}, clients are {sorted(active)}")
    for c, core in enumerate(cores):
        _validate_core(dev, c, core, [jobs[j] for j in active if jobs[j].cores >> c & 1])
    for j in active:
        _validate_job(jobs[j])
    for x in contexts:
        j = jobs[x.head].next_in_context if x.head != NOBODY else NOBODY
        while j != NOBODY:
            if jobs[j].state != QUEUED:
                raise InvariantError(f"graphExecute {jobs[j].execute} is behind its context's head, not queued")
            j = jobs[j].next_in_context


def _validate_core(dev: Any, number: int, core: Any, clients: list[Any]) -> None:
    on = [job for job in clients if holds_core(job) or job.state == EVICTING]
    if core.held != len(on):
        raise InvariantError(f"core {number}: counts {core.held} holders, {len(on)} hold it")
    for name in _HELD:
        if getattr(core, f"held_{name}") != sum(getattr(job, name) for job in on):
            raise InvariantError(
                f"core {number}: held_{name} is {getattr(core, f'held_{name}')}, not what holders have"
            )
    if len(on) > 1:
        if (
            core.held_qnn > 1
            or core.held_hmx > dev.hmx
            or core.held_hvx > dev.hvx
            or core.held_vtcm_bytes > dev.vtcm_bytes
        ):
            raise InvariantError(f"core {number}: holders exceed it: {on}")
        if len({job.pd for job in on}) > 1:
            raise InvariantError(f"core {number}: holders of {len({job.pd for job in on})} protection domains at once")
    if core.others != sum(1 - job.qnn for job in clients):
        raise InvariantError(f"core {number}: counts {core.others} clients that are not QNN graphs")


def _validate_job(job: Any) -> None:
    if not 0 <= job.left <= job.work:
        raise InvariantError(f"graphExecute {job.execute}: {job.left} of {job.work} work left")
    if (job.timer_ns == NEVER) != (job.state == WAITING or job.yield_due == 1):
        raise InvariantError(f"graphExecute {job.execute}: {STATE_NAMES[job.state]} with timer {job.timer_ns}")
