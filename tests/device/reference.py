"""The device rules once more, as slow and plain as they can be: nanosecond by nanosecond, sets sorted anew each time.

It shares no code with htpsim and knows nothing of timers, events or records. No bandwidth: every job does one
nanosecond of work in each nanosecond in which it runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field

UNBORN, QUEUED, WAITING, ACQUIRING, RUNNING, EVICTING, RESTORING, DONE = (
    "unborn", "queued", "waiting", "acquiring", "running", "evicting", "restoring", "done",
)  # fmt: skip
HOLDING = (ACQUIRING, RUNNING, EVICTING, RESTORING)
STAYING = (ACQUIRING, RUNNING, RESTORING)


@dataclass
class Job:
    number: int
    context: int
    arrives: int
    work: int
    level: int
    pd: int
    cores: tuple[int, ...]
    qnn: bool
    hmx: int
    hvx: int
    vtcm: int
    state: str = UNBORN
    done: int = 0
    until: int = -1
    asked: int = -1
    target: int = -1
    started: int = -1
    finished: int = -1
    evictions: int = 0
    spent: dict[str, int] = field(default_factory=lambda: dict.fromkeys((QUEUED, WAITING, *HOLDING), 0))
    stretches: list[tuple[str, int]] = field(default_factory=list)
    """(state, from when), one after the other"""

    def become(self, state: str, now: int) -> None:
        self.state = state
        if state in (*HOLDING, WAITING, DONE):
            self.stretches.append((state, now))


@dataclass
class Rules:
    cores: int
    hvx: int
    hmx: int
    vtcm: int
    grid: bool
    latency: int
    interval: int
    evict: int
    restore: int
    acquire: int
    power_up: int
    idle_timeout: int


class Machine:
    def __init__(self, rules: Rules, jobs: list[Job]) -> None:
        self.rules = rules
        self.jobs = jobs
        self.contexts: dict[int, list[Job]] = {job.context: [] for job in jobs}
        self.idle_since: dict[int, int | None] = dict.fromkeys(range(rules.cores))
        """None for a core on which nothing ever ran"""

    def run(self, until: int) -> None:
        for now in range(until + 1):
            self.ends(now)
            for job in self.jobs:
                if job.state == UNBORN and job.arrives == now:
                    job.state = QUEUED
                    self.contexts[job.context].append(job)
            while self.dispatch(now):
                pass
            if now < until:
                for job in self.jobs:
                    if job.state in job.spent:
                        job.spent[job.state] += 1
                    if job.state == RUNNING:
                        job.done += 1

    def ends(self, now: int) -> None:
        for job in self.jobs:
            if job.state in (ACQUIRING, RESTORING) and job.until == now:
                job.become(RUNNING, now)
            elif job.state == EVICTING and job.until == now:
                self.leave(job, now)
            if job.state == RUNNING and job.done == job.work:
                job.become(DONE, now)
                job.finished = now
                self.contexts[job.context].remove(job)
                self.free(job, now)

    def leave(self, job: Job, now: int) -> None:
        job.become(WAITING, now)
        job.evictions += 1
        self.free(job, now)

    def free(self, job: Job, now: int) -> None:
        for core in job.cores:
            if not self.on(core):
                self.idle_since[core] = now

    def on(self, core: int) -> list[Job]:
        return [job for job in self.jobs if core in job.cores and job.state in HOLDING]

    def fits(self, job: Job, beside: list[Job]) -> bool:
        if not beside:
            return True
        together = [job, *beside]
        return (
            len({j.pd for j in together}) == 1
            and sum(j.qnn for j in together) <= 1
            and sum(j.hmx for j in together) <= self.rules.hmx
            and sum(j.hvx for j in together) <= self.rules.hvx
            and sum(j.vtcm for j in together) <= self.rules.vtcm
        )

    def admitted(self) -> list[Job]:
        """Those in the running set of every core they take, most important first."""
        sets = {}
        for core in range(self.rules.cores):
            clients = [job for job in self.jobs if core in job.cores and job.state in (WAITING, *HOLDING)]
            clients.sort(key=lambda j: (-j.level, j.state not in STAYING, j.arrives, j.number))
            sets[core] = list[Job]()
            for job in clients:
                if self.fits(job, sets[core]):
                    sets[core].append(job)
        found = [job for job in self.jobs if all(job in sets[core] for core in job.cores)]
        return sorted(found, key=lambda j: (-j.level, j.arrives, j.number))

    def dispatch(self, now: int) -> bool:
        """Bring the running sets up to date; True when that may have changed them once more."""
        for queue in self.contexts.values():
            if queue and queue[0].state == QUEUED:
                queue[0].become(WAITING, now)
        admitted = self.admitted()
        again = False
        for job in self.jobs:
            if job.state not in STAYING:
                continue
            if job in admitted:
                job.asked = -1
                continue
            if job.asked < 0:  # a yield without latency follows in this instant, after those have started that fit
                job.asked = now
                job.target = (job.done // self.rules.interval + 1) * self.rules.interval
                again = True
                continue
            due = job.done >= job.target if self.rules.grid else now >= job.asked + self.rules.latency
            if job.state == RUNNING and due:
                job.asked = -1
                again = True
                if self.rules.evict:
                    job.become(EVICTING, now)
                    job.until = now + self.rules.evict
                else:
                    self.leave(job, now)
        for job in admitted:
            if job.state == WAITING and all(self.fits(job, self.on(core)) for core in job.cores):
                self.start(job, now)
                again = True
        return again

    def start(self, job: Job, now: int) -> None:
        cold = False
        for core in job.cores:
            if not self.on(core):
                since = self.idle_since[core]
                cold |= since is None or now - since > self.rules.idle_timeout
        if job.started < 0:
            job.started = now
            state, length = ACQUIRING, self.rules.acquire + (self.rules.power_up if cold else 0)
        else:
            state, length = RESTORING, self.rules.restore
        job.until = now + length
        job.become(state if length else RUNNING, now)
