"""A core under real threads: one graph at a time, by priority, then in order, never interrupted; and how it ends."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import pairwise

import pytest

from htpsim.live.cores import Job, LiveCore
from htpsim.live.machine import seats
from htpsim.live.stopping import Stop, Stopped, clock_from_now
from tests.live.bench import wait_until


@pytest.fixture
def core() -> Iterator[LiveCore]:
    stop = Stop()
    made = LiveCore(0, seats(1).cores[0], clock_from_now(), stop)
    made.start()
    yield made
    stop.raise_()
    assert made.end()


def job_of(number: int, context: int, level: int = 0) -> Job:
    job = Job()
    job.clear(number)
    job.context, job.level = context, level
    return job


def test_what_waits_goes_by_priority_then_in_order_and_of_a_context_only_the_oldest(core: LiveCore) -> None:
    gate, order = threading.Event(), []
    first = job_of(0, context=0)
    first.work = lambda _: gate.wait(10) and None  # type: ignore[assignment, return-value]
    # An older call of low priority stands before a high one in its own context; others pass both.
    waiting = [job_of(1, 1, level=0), job_of(2, 1, level=2), job_of(3, 2, level=1), job_of(4, 3, level=1)]
    for job in waiting:
        job.work = lambda _, n=job.number: order.append(n)  # type: ignore[misc]

    core.submit(first)
    for job in waiting:
        core.submit(job)
    gate.set()
    for job in (first, *waiting):
        core.wait(job)

    assert order == [3, 4, 1, 2]
    instants = [(job.submitted_ns, job.started_ns, job.began_ns, job.finished_ns) for job in (first, *waiting)]
    assert all(tuple(sorted(times)) == times for times in instants)
    held = sorted((job.started_ns, job.finished_ns) for job in (first, *waiting))
    assert all(end <= begin for (_, end), (begin, _) in pairwise(held))


def test_a_higher_priority_does_not_interrupt(core: LiveCore) -> None:
    gate = threading.Event()
    low, high = job_of(0, 0), job_of(1, 1, level=7)
    low.work = lambda _: gate.wait(10) and None  # type: ignore[assignment, return-value]

    core.submit(low)
    wait_until(lambda: low.began_ns >= 0)
    core.submit(high)
    gate.set()
    core.wait(high)

    assert low.finished_ns <= high.started_ns


def test_a_graph_that_fails_tells_its_thread_and_the_core_goes_on(core: LiveCore) -> None:
    bad, good = job_of(0, 0), job_of(1, 0)
    bad.work = lambda _: 1 / 0  # type: ignore[assignment, return-value]
    for job in (bad, good):
        core.submit(job)
        core.wait(job)

    assert isinstance(bad.error, ZeroDivisionError)
    assert good.error is None
    assert core.idle()


def test_at_the_end_it_finishes_what_runs_and_lets_go_of_what_waits() -> None:
    stop, gate = Stop(), threading.Event()
    core = LiveCore(0, seats(1).cores[0], clock_from_now(), stop)
    core.start()
    runs, waits = job_of(0, 0), job_of(1, 1)
    runs.work = lambda _: gate.wait(10) and None  # type: ignore[assignment, return-value]
    core.submit(runs)
    wait_until(lambda: runs.began_ns >= 0)
    core.submit(waits)

    stop.raise_()
    gate.set()
    core.wait(runs)
    core.wait(waits)

    assert runs.error is None
    assert isinstance(waits.error, Stopped)
    assert core.end()
    with pytest.raises(Stopped):
        core.submit(job_of(2, 0))
