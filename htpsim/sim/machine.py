"""The device in SimPy: gives the rules their instants and tells the runtime when a graphExecute has finished."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from simpy.events import Event

from htpsim.device import rules
from htpsim.device.records import (
    ACQUIRING,
    CONTEXT_FIELDS,
    CORE_FIELDS,
    DEVICE_FIELDS,
    DONE,
    EVICTING,
    GRID,
    LATENCY,
    NEVER,
    NOBODY,
    RESTORING,
    RUNNING,
)
from htpsim.device.validate import validate
from htpsim.sim.clock import DEVICE, DISPATCH, Clock, Instant, rank
from htpsim.sim.records import JobPool
from htpsim.spec import Device
from htpsim.spec.records import record_class

KINDS = {ACQUIRING: 0, RUNNING: 1, EVICTING: 2, RESTORING: 3}
"""Where a state stands in the log's SLICES."""

_DeviceRecord: type[Any] = record_class("DeviceRecord", DEVICE_FIELDS)
_Core: type[Any] = record_class("Core", CORE_FIELDS)
_Context: type[Any] = record_class("Context", CONTEXT_FIELDS)


def device_record(device: Device, gangs: bool) -> Any:
    """Return the device's record with its constants filled in."""
    record = _DeviceRecord()
    record.cores = device.cores
    record.gangs = int(gangs)
    record.coexists = int(device.coexists)
    record.vtcm_bytes, record.hvx, record.hmx = device.vtcm_bytes, device.hvx, device.hmx
    record.yield_rule = GRID if device.yield_rule == "grid" else LATENCY
    for name in ("yield_latency_ns", "yield_interval_ns", "evict_ns", "restore_ns"):
        setattr(record, name, getattr(device, name))
    for name in ("acquire_ns", "power_up_ns", "idle_timeout_ns"):
        setattr(record, name, getattr(device, name))
    if device.dram_bandwidth is not None:
        record.bandwidth = device.dram_bandwidth - device.background_bandwidth
    record.core_bandwidth = device.core_dram_bandwidth or 0
    return record


class Machine:
    """The cores, their contexts and what runs on them."""

    def __init__(
        self,
        env: Clock,
        device: Device,
        pool: JobPool,
        finished: Callable[[int], None],
        *,
        gangs: bool = False,
        check: bool = False,
    ) -> None:
        self.env = env
        self.pool = pool
        self.jobs = pool.jobs
        self.finished = finished
        self.check = check
        self.dev = device_record(device, gangs)
        self.cores = [_Core() for _ in range(device.cores)]
        self.contexts: list[Any] = []
        self.clients: list[int] = []
        self.changed: list[int] = []
        self.evicted: list[int] = []
        self.dispatching = 0
        self.dispatch_actions = [(rank(DISPATCH, c), partial(self._dispatch, c)) for c in range(device.cores)]
        self.slices: list[tuple[int, int, int, int]] = []
        for core in self.cores:
            core.cold = 1

    def add_context(self) -> int:
        """Open the FIFO of a newly loaded context; return its position."""
        context = _Context()
        context.head = context.tail = NOBODY
        self.contexts.append(context)
        self.clients.append(NOBODY)
        self.changed.extend([NOBODY] * 4)
        self.evicted.append(NOBODY)
        return len(self.contexts) - 1

    def submit(self, j: int) -> None:
        """Hand graphExecute `j` to the device."""
        rules.submit(self.dev, self.cores, self.contexts, self.jobs, self.clients, j, self.env.now)
        self._follow_up()

    def _look(self, event: Event) -> None:
        """Move on the graphExecute whose timer this was, unless the timer has moved since."""
        j: int = event.job  # type: ignore[attr-defined]
        job = self.jobs[j]
        now: int = self.env.now
        if job.timer_ns != now or job.execute != event.execute:  # type: ignore[attr-defined]
            return
        job.timer_ns = job.scheduled_ns = NEVER
        state, since_ns = job.state, job.since_ns
        rules.look(self.dev, self.cores, self.contexts, self.jobs, self.clients, self.changed, j, now)
        if job.evictions and now > since_ns and not job.yield_due:
            self.slices.append((job.execute, KINDS[state], since_ns, now))
        if job.state == DONE:
            self.finished(j)
        self._follow_up()

    def note_open_slices(self, now: int) -> None:
        """Record, at the end of the run, the stretches still open."""
        for k in range(self.dev.clients):
            job = self.jobs[self.clients[k]]
            if job.state in KINDS and (job.evictions or job.state == EVICTING) and now > job.since_ns:
                self.slices.append((job.execute, KINDS[job.state], job.since_ns, now))

    def _dispatch(self, core: int) -> None:
        """Bring a core's running set up to date."""
        self.dispatching &= ~(1 << core)
        if self.dev.stale >> core & 1:
            now: int = self.env.now
            rules.dispatch(self.dev, self.cores, self.jobs, self.clients, self.changed, self.evicted, core, now)
            if self.dev.evicted:
                self._note_evicted(now)
            self._follow_up()

    def _note_evicted(self, now: int) -> None:
        """Record the stretches that ended with an eviction, and the acquire before the first of them."""
        for k in range(self.dev.evicted):
            job = self.jobs[self.evicted[k]]
            run_from_ns = job.started_ns + job.acquired_ns
            if job.acquired_ns and job.ran_from_ns == run_from_ns:
                self.slices.append((job.execute, KINDS[ACQUIRING], job.started_ns, run_from_ns))
            self.slices.append((job.execute, KINDS[RUNNING], job.ran_from_ns, now))
        self.dev.evicted = 0

    def _follow_up(self) -> None:
        """Schedule what the rules asked for: timers that moved, cores to dispatch."""
        dev = self.dev
        if dev.changed:
            self._schedule_timers()
        missing = dev.stale & ~self.dispatching
        if missing:
            self.dispatching |= missing
            for c, (place, action) in enumerate(self.dispatch_actions):
                if missing >> c & 1:
                    self.env.soon(place, action)
        if self.check:
            validate(dev, self.cores, self.contexts, self.jobs, self.clients)

    def _schedule_timers(self) -> None:
        """Schedule the timers that moved; an event for an earlier setting finds that it has moved and does nothing."""
        env = self.env
        now = env.now
        for k in range(self.dev.changed):
            j = self.changed[k]
            job = self.jobs[j]
            due_ns = job.timer_ns
            if due_ns not in (NEVER, job.scheduled_ns):
                job.scheduled_ns = due_ns
                event = Instant(env)
                event.job = j  # type: ignore[attr-defined]
                event.execute = job.execute  # type: ignore[attr-defined]
                event.callbacks.append(self._look)
                env.schedule(event, rank(DEVICE, job.core, job.execute), due_ns - now)
        self.dev.changed = 0
