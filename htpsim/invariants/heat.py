"""The work of each graphExecute as its core found it: one that starts on a throttled core takes longer.

A core is throttled once it has been busy for ``throttle_after`` since it was last cool, which it is again after a rest.
Busy time is added up a second time here, from the events alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from htpsim.invariants.spans import History, Span
from htpsim.invariants.trace import NOWHERE, DeviceFacts


class Job(NamedTuple):
    """What a graphExecute asked of its core."""

    span: Span
    work_ns: int
    """Time that its work takes alone."""
    demand: int
    """DRAM bytes a second at full rate."""


@dataclass(slots=True)
class Heat:
    """How long a core has been busy."""

    held: int = 0
    busy_ns: int = 0
    since_ns: int = 0
    """Since when it is busy, or idle."""

    def change(self, by: int, at_ns: int, rest_ns: int) -> None:
        """Count one more or one less on the core."""
        if self.held == 0 and rest_ns and at_ns - self.since_ns >= rest_ns:
            self.busy_ns = 0
        if self.held and self.held + by == 0:
            self.busy_ns += at_ns - self.since_ns
        if self.held == 0 or self.held + by == 0:
            self.since_ns = at_ns
        self.held += by

    def now_ns(self, at_ns: int) -> int:
        """Return its busy time up to an instant."""
        return self.busy_ns + (at_ns - self.since_ns if self.held else 0)


def jobs_of(history: History) -> dict[int, Job]:
    """Return every graphExecute whose time alone is known, as its core found it."""
    jobs = {
        span.execute: Job(span, span.call.solo_ns, span.call.demand)
        for span in history.sound
        if span.call.solo_ns != NOWHERE
    }
    device = history.trace.device
    if device is None or device.throttle_after_ns == NOWHERE:
        return jobs
    cores: dict[int, Heat] = {}
    steps = {"start": 1, "resume": 1, "freed": -1, "finish": -1}
    sound = {span.execute: span for span in history.sound if span.call.cores}
    for event in history.trace.events:
        span = sound.get(event.execute)
        if span is None or event.kind not in steps:
            continue
        for core in span.call.cores:
            cores.setdefault(core, Heat()).change(steps[event.kind], event.time_ns, device.throttle_rest_ns)
        busy_ns = cores[span.call.cores[0]].now_ns(event.time_ns)
        if event.kind == "start" and event.execute in jobs and busy_ns >= device.throttle_after_ns:
            jobs[event.execute] = stretched(jobs[event.execute], device)
    return jobs


def stretched(job: Job, device: DeviceFacts) -> Job:
    """Return a job on a throttled core: longer by the stretch, its bytes the slower.

    >>> from htpsim.invariants.trace import Call
    >>> stretched(Job(Span(Call(execute=0, thread="a")), 10, 600), DeviceFacts(throttle_stretch=2000))[1:]
    (20, 300)
    """
    demand = max(1, job.demand * 1000 // device.throttle_stretch) if job.demand else 0
    return Job(job.span, job.work_ns * device.throttle_stretch // 1000, demand)
