"""The device in SimPy: gives the rules their instants and tells when a graphExecute has finished."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from simpy.events import Event

from htpsim.device import rates, rules
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
from htpsim.sim.clock import DEVICE, NO_TIME, Clock, place
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
    for name in ("acquire_ns", "power_up_ns", "power_up_warm_ns", "idle_timeout_ns", "first_call_ns"):
        setattr(record, name, getattr(device, name))
    record.powers = int(device.power_up_ns > 0 or device.power_up_warm_ns > 0)
    record.throttles = int(device.throttle_after_ns is not None)
    record.throttle_after_ns = device.throttle_after_ns or 0
    record.throttle_stretch = device.throttle_stretch
    record.throttle_rest_ns = device.throttle_rest_ns
    record.rpc_return_ns, record.rpc_wake_ns = device.rpc_return_ns, device.rpc_wake_ns
    record.rpc_polling_ns = NEVER if device.rpc_polling_ns is None else device.rpc_polling_ns
    if device.dram_bandwidth is not None:
        record.bandwidth = device.dram_bandwidth - device.background_bandwidth
    record.core_bandwidth = device.core_dram_bandwidth or 0
    record.parallel, record.parallel_rate = int(device.pge), device.pge_scaled
    record.shares = int(record.bandwidth > 0 or record.core_bandwidth > 0 or device.pge)
    return record


class Machine:
    """The cores, their contexts and what runs on them.

    ``finished`` is told of every graphExecute that has finished; without it they return at once.
    """

    def __init__(
        self,
        env: Clock,
        device: Device,
        jobs: list[Any],
        finished: Callable[[int], None] | None,
        *,
        gangs: bool = False,
        check: bool = False,
    ) -> None:
        self.env = env
        self.jobs = jobs
        self.finished = finished
        self.check = check
        self.dev = device_record(device, gangs)
        self.cores = [_Core() for _ in range(device.cores)]
        self.contexts: list[Any] = []
        self.clients: list[int] = []
        self.holders: list[int] = []
        self.evicted: list[int] = []
        self.slices: list[tuple[int, int, int, int]] = []
        self._records = (self.dev, self.cores, self.contexts, jobs, self.clients, self.holders, self.evicted)
        """all of them at once, for the rules"""
        self._bits = [env.bit(partial(self._dispatch, c)) for c in range(device.cores)]
        self._shift = self._bits[0].bit_length() - 1
        self._due = NOBODY
        env.due, env.due_place = self._look, self._due_place
        if device.background_off_ns and device.dram_bandwidth is not None:
            self._alternate(device.dram_bandwidth, device.background_on_ns, device.background_off_ns)
        for core in self.cores:
            core.cold = 1
            core.holder = NOBODY

    def add_context(self) -> int:
        """Open the FIFO of a newly loaded context; return its position."""
        context = _Context()
        context.head = context.tail = NOBODY
        self.contexts.append(context)
        for each in (self.clients, self.holders, self.evicted):
            each.append(NOBODY)
        return len(self.contexts) - 1

    def renew_context(self, number: int) -> int:
        """Let the FIFO of a context that is loaded again begin anew; return its position."""
        self.contexts[number].warm = 0
        return number

    def submit(self, j: int) -> None:
        """Hand graphExecute `j` to the device."""
        env = self.env
        dev, cores, contexts, jobs, clients, _, _ = self._records
        rules.submit(dev, cores, contexts, jobs, clients, j, env._now)
        env.wanted |= dev.stale << self._shift
        if self.check:
            self.validate()

    def _alternate(self, bandwidth: int, wait_ns: int, then_ns: int) -> None:
        """After `wait_ns` set the device's bandwidth, after `then_ns` more set it back, and so on for ever."""
        event = self.env.at(wait_ns, place(DEVICE, len(self.cores) + 1), self._alternated)
        event.change = bandwidth, wait_ns, then_ns  # type: ignore[attr-defined]

    def _alternated(self, event: Event) -> None:
        """Let background traffic come or go."""
        bandwidth, waited_ns, then_ns = event.change  # type: ignore[attr-defined]
        self._alternate(self.dev.bandwidth, then_ns, waited_ns)
        rates.set_bandwidth(self.dev, self.jobs, self.holders, bandwidth, self.env._now)
        self._set_due()

    def _set_due(self) -> None:
        """Ask to be called when the next timer is due."""
        self._due = due = rules.next_due(self.dev, self.jobs, self.holders)
        self.env.due_ns = NO_TIME if due == NOBODY else self.jobs[due].timer_ns

    def _due_place(self) -> int:
        job = self.jobs[self._due]
        return place(DEVICE, job.core, job.execute)

    def _look(self) -> int:
        """Move on the graphExecute that is due; return it if it returns in this instant, else NOBODY."""
        env, j = self.env, self._due
        dev, cores, contexts, jobs, clients, holders, _ = self._records
        job = jobs[j]
        now = env._now
        state, since_ns = job.state, job.since_ns
        rules.look(dev, cores, contexts, jobs, clients, holders, j, now)
        if job.evictions and now > since_ns and not job.yield_due:
            self.slices.append((job.execute, KINDS[state], since_ns, now))
        env.wanted |= dev.stale << self._shift
        if job.timer_ns == NEVER and not dev.tied:
            env.due_ns = NO_TIME  # in this instant, which has a dispatch to come
        else:
            self._due = due = rules.next_due(dev, jobs, holders)
            env.due_ns = NO_TIME if due == NOBODY else jobs[due].timer_ns
        if self.check:
            self.validate()
        if job.state != DONE:
            return NOBODY
        if self.finished is None:
            return j
        self.finished(j)
        return NOBODY

    def _dispatch(self, core: int) -> None:
        """Bring a core's running set up to date."""
        env = self.env
        dev, cores, _, jobs, clients, holders, evicted = self._records
        if not dev.stale >> core & 1:
            return
        rules.dispatch(dev, cores, jobs, clients, holders, evicted, core, env._now)
        if dev.evicted:
            self._note_evicted(env._now)
        self._due = due = rules.next_due(dev, jobs, holders)
        env.due_ns = NO_TIME if due == NOBODY else jobs[due].timer_ns
        if self.check:
            self.validate()

    def _note_evicted(self, now: int) -> None:
        """Record the stretches that ended with an eviction, and the acquire before the first of them."""
        for k in range(self.dev.evicted):
            job = self.jobs[self.evicted[k]]
            run_from_ns = job.started_ns + job.acquired_ns
            if job.acquired_ns and job.ran_from_ns == run_from_ns:
                self.slices.append((job.execute, KINDS[ACQUIRING], job.started_ns, run_from_ns))
            self.slices.append((job.execute, KINDS[RUNNING], job.ran_from_ns, now))
        self.dev.evicted = 0

    def note_open_slices(self, now: int) -> None:
        """Record, at the end of the run, the stretches still open."""
        for k in range(self.dev.holders):
            job = self.jobs[self.holders[k]]
            if (job.evictions or job.state == EVICTING) and now > job.since_ns:
                self.slices.append((job.execute, KINDS[job.state], job.since_ns, now))

    def validate(self) -> None:
        """Raise InvariantError unless the device's records agree."""
        validate(self.dev, self.cores, self.contexts, self.jobs, self.clients, self.holders)
