"""The FIFO of a context: by submission, and of one instant by number, in whatever order they are handed in."""

from __future__ import annotations

from itertools import permutations, product
from types import SimpleNamespace
from typing import Any

from htpsim.device.records import CONTEXT_FIELDS, CORE_FIELDS, DEVICE_FIELDS, JOB_FIELDS, NEVER, NOBODY, QUEUED, WAITING
from htpsim.device.rules import dispatch, look, submit


def record(fields: tuple[str, ...], **given: int) -> Any:
    return SimpleNamespace(**{**dict.fromkeys(fields, 0), **given})


class Bench:
    """One core, one context, and graphExecutes numbered as they stand in the list."""

    def __init__(self, count: int) -> None:
        self.dev = record(DEVICE_FIELDS, cores=1)
        self.cores = [record(CORE_FIELDS, holder=NOBODY)]
        self.contexts = [record(CONTEXT_FIELDS, head=NOBODY, tail=NOBODY)]
        self.jobs = [record(JOB_FIELDS, execute=n, cores=1, width=1, qnn=1, work=1 << 30) for n in range(count)]
        self.clients, self.holders, self.evicted = ([NOBODY] * count for _ in range(3))

    def submit(self, j: int, now_ns: int = 0) -> None:
        submit(self.dev, self.cores, self.contexts, self.jobs, self.clients, j, now_ns)

    def start(self) -> None:
        dispatch(self.dev, self.cores, self.jobs, self.clients, self.holders, self.evicted, 0, 0)

    def queue(self) -> list[int]:
        """Walk the context from its head to its tail."""
        found = [self.contexts[0].head]
        while self.jobs[found[-1]].next_in_context != NOBODY:
            found.append(self.jobs[found[-1]].next_in_context)
        assert self.contexts[0].tail == found[-1]
        return found


def test_submissions_of_one_instant_queue_by_number() -> None:
    for order in permutations(range(4)):
        bench = Bench(4)
        for j in order:
            bench.submit(j)

        assert bench.queue() == [0, 1, 2, 3]
        assert [job.state for job in bench.jobs] == [WAITING, QUEUED, QUEUED, QUEUED]
        assert bench.clients[: bench.dev.clients] == [0]


def test_one_that_has_its_core_stays_ahead_of_lower_numbers() -> None:
    for order in permutations(range(3)):
        bench = Bench(4)
        bench.submit(3)
        bench.start()
        for j in order:
            bench.submit(j)

        assert bench.queue() == [3, 0, 1, 2]
        assert bench.clients[: bench.dev.clients] == [3]


def test_an_earlier_submission_stays_ahead_of_lower_numbers() -> None:
    bench = Bench(4)
    bench.submit(2, 0)
    bench.submit(3, 5)
    bench.submit(1, 5)
    bench.submit(0, 9)

    assert bench.queue() == [2, 1, 3, 0]


def test_a_dispatch_leaves_the_other_cores_to_be_looked_at() -> None:
    bench = Bench(2)
    bench.submit(0)
    bench.start()
    bench.submit(1)
    bench.dev.cores, bench.dev.stale = 3, 0b111
    bench.cores += [record(CORE_FIELDS, holder=NOBODY) for _ in range(2)]

    bench.start()
    assert bench.dev.stale == 0b110
    assert (bench.cores[0].holder, bench.cores[0].held) == (0, 1)


def test_only_what_cannot_change_a_running_set_is_spared_a_look() -> None:
    for others, gangs, parallel, level in product((0, 1), (0, 1), (0, 1), (4, 5, 6)):
        bench = Bench(2)
        bench.jobs[0].level, bench.jobs[1].level = 5, level
        bench.contexts.append(record(CONTEXT_FIELDS, head=NOBODY, tail=NOBODY))
        bench.jobs[1].context = 1
        bench.submit(0)
        bench.start()
        assert bench.dev.stale == 0
        bench.cores[0].others, bench.dev.gangs, bench.dev.parallel = others, gangs, parallel
        bench.submit(1)

        assert bench.dev.stale == int(bool(others or gangs or parallel) or level == 6)


def test_a_yield_that_is_due_adds_its_core_to_those_to_be_looked_at() -> None:
    bench = Bench(1)
    bench.submit(0)
    bench.start()
    bench.dev.stale = 0b10

    look(bench.dev, bench.cores, bench.contexts, bench.jobs, bench.clients, bench.holders, 0, 7)

    assert (bench.dev.stale, bench.jobs[0].yield_due, bench.jobs[0].timer_ns) == (0b11, 1, NEVER)
