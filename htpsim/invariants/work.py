"""The rule of work: a graphExecute finishes when its work is done, at the share of bandwidth that is its own.

Rates are computed a second time from the description: running graphs with a demand share DRAM bandwidth max-min
fairly, first within their cores', then within the device's, and one that gets a part of its demand progresses at that
part of full speed. Work is counted in ns x 2^20, so that all of it is exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Final

from htpsim.invariants.heat import Job, jobs_of
from htpsim.invariants.rule import Finding, Rule, no_device
from htpsim.invariants.spans import History
from htpsim.invariants.trace import NOWHERE, DeviceFacts

FULL: Final = 1 << 20


def fill(bandwidth: int, wanted: dict[int, int]) -> dict[int, int]:
    """Share `bandwidth` max-min fairly: in order of (what is wanted, number), each min(wanted, left // remaining).

    >>> fill(10, {1: 2, 2: 9, 3: 9})
    {1: 2, 2: 4, 3: 4}
    """
    left, shares = bandwidth, {}
    order = sorted(wanted, key=lambda number: (wanted[number], number))
    for served, number in enumerate(order):
        shares[number] = min(wanted[number], left // (len(order) - served))
        left -= shares[number]
    return shares


def bandwidth_at(device: DeviceFacts, at_ns: int) -> tuple[int, int]:
    """Return the device's bandwidth from `at_ns` on, and until when it stays so; NOWHERE for ever.

    >>> camera = DeviceFacts(bandwidth=6, background=3, background_on_ns=10, background_off_ns=20)
    >>> [bandwidth_at(camera, at_ns) for at_ns in (0, 10, 30)]
    [(6, 10), (9, 30), (6, 40)]
    """
    if not device.background_off_ns:
        return device.bandwidth, NOWHERE
    round_ns = device.background_on_ns + device.background_off_ns
    since_ns = at_ns % round_ns
    if since_ns < device.background_on_ns:
        return device.bandwidth, at_ns - since_ns + device.background_on_ns
    return device.bandwidth + device.background, at_ns - since_ns + round_ns


def rates(device: DeviceFacts, running: dict[int, Job], at_ns: int) -> dict[int, int]:
    """Return the work each running graph does in a nanosecond, in ns x 2^-20."""
    top = {number: _top(device, number, running) for number in running}
    thirsty = {number: job for number, job in running.items() if job.demand}
    wanted = {number: max(1, job.demand * top[number] // FULL) for number, job in thirsty.items()}
    whole = dict(wanted)
    if device.core_bandwidth:
        for core in range(device.cores):
            here = [number for number, job in thirsty.items() if core in job.span.call.cores]
            wanted.update(_within_core(device.core_bandwidth, here, wanted, thirsty))
    shares = fill(bandwidth_at(device, at_ns)[0], wanted) if device.bandwidth else wanted
    speed = {number: max(1, FULL * shares[number] // job.demand) for number, job in thirsty.items()}
    short = {number for number in thirsty if shares[number] < whole[number]}
    return {number: speed[number] if number in short else top[number] for number in running}


def _top(device: DeviceFacts, number: int, running: dict[int, Job]) -> int:
    """Return the rate of a running graph that has all the bandwidth it asks for."""
    call = running[number].span.call
    beside = (job.span.call for other, job in running.items() if other != number)
    shares = call.qnn and any(other.qnn and set(other.cores) & set(call.cores) for other in beside)
    return device.parallel_rate if device.parallel_rate and shares else FULL


def _within_core(bandwidth: int, here: list[int], wanted: dict[int, int], jobs: dict[int, Job]) -> dict[int, int]:
    """Return what graphs on one core may draw; one on k cores draws a k-th of it through each."""
    left, capped = bandwidth, {}
    width = {number: len(jobs[number].span.call.cores) for number in here}
    for served, number in enumerate(sorted(here, key=lambda number: (wanted[number] // width[number], number))):
        capped[number] = min(wanted[number], left // (len(here) - served) * width[number])
        left -= -(-capped[number] // width[number])
    return capped


def wrong_work(history: History) -> Iterator[Finding]:
    """Find graphExecutes that finished with work left, or later than their work was done."""
    device = history.trace.device
    assert device is not None
    known = jobs_of(history)
    events = [e for e in history.trace.events if e.execute in known and e.kind in ("run", "yield", "finish")]
    running: dict[int, Job] = {}
    speed: dict[int, int] = {}
    left = {number: job.work_ns * FULL for number, job in known.items()}
    before_ns = 0
    for at_ns, group in groupby(events, key=lambda event: event.time_ns):
        while before_ns < at_ns and running:
            speed, until_ns = _until(device, running, speed, before_ns, at_ns)
            for number in running:
                left[number] -= speed[number] * (until_ns - before_ns)
            before_ns = until_ns
        before_ns = at_ns
        changed = False
        for event in group:
            number = event.execute
            changed = changed or bool(known[number].demand or device.parallel_rate) or event.kind == "run"
            if event.kind == "run":
                running[number] = known[number]
                continue
            if number not in running:
                continue
            del running[number]
            # At its end it has done all its work and, one nanosecond earlier, not yet: `left` is 0 or less, by less
            # than a nanosecond's work. A yield may fall on that last nanosecond too.
            if event.kind == "finish" and not -speed.get(number, FULL) < left[number] <= 0:
                yield _finding(history, known[number], left[number], at_ns)
            elif event.kind == "yield" and left[number] < 0:
                left[number] = 0
        if changed:
            speed = rates(device, running, at_ns)


def _until(
    device: DeviceFacts, running: dict[int, Job], speed: dict[int, int], from_ns: int, to_ns: int
) -> tuple[dict[int, int], int]:
    """Return the speeds from `from_ns` on and until when they hold, `to_ns` at the latest."""
    if not device.background_off_ns or not any(job.demand for job in running.values()):
        return speed, to_ns
    _, until_ns = bandwidth_at(device, from_ns)
    return rates(device, running, from_ns), min(until_ns, to_ns)


def _finding(history: History, job: Job, left: int, at_ns: int) -> Finding:
    span = job.span
    amount_ns = abs(left) // FULL
    if left > 0:
        message = f"{history.name(span)} finished with {amount_ns} ns of its {job.work_ns} ns of work left"
    else:
        message = f"{history.name(span)} ran on for {amount_ns} ns after its work was done"
    return at_ns, span.execute, message, amount_ns


WORK: Final = Rule(
    "work", "a graphExecute finishes when its work is done, at its share of the bandwidth", no_device, wrong_work
)
