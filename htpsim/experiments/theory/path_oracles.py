"""Oracles that leave nothing to chance: recursions and bounds that a single path must obey to the nanosecond."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapreplace

from htpsim.experiments.theory.lab import SEED, Finding, Lab
from htpsim.experiments.theory.response import Task, non_preemptive_responses, preemptive_responses
from htpsim.experiments.theory.stations import MEAN_NS, client, columns, dealt_out, poisson_times, station
from htpsim.results.log import RunLog
from htpsim.rng import stream_key
from htpsim.sched import POLICIES
from htpsim.spec import PRIORITIES, Arrivals, Distribution, OtherClient, Scenario, constant, exponential

GOLDEN = (Task(1_000_000, 2_500_000), Task(1_000_000, 3_500_000), Task(1_000_000, 3_500_000))
"""Davis and others 2007: responses 2, 3 and 3.5 ms; the first instance alone gives 3 for the last task."""

PREEMPTIVE_GOLDEN = (Task(3_000_000, 7_000_000), Task(3_000_000, 12_000_000), Task(5_000_000, 20_000_000))
"""Responses 3, 6 and 20 ms."""


def waits_in_order(arrivals_ns: Sequence[int], services_ns: Sequence[int], servers: int) -> list[int]:
    """Return every wait of a first-come-first-served queue, by the recursion of Kiefer and Wolfowitz 1955.

    With one server it is Lindley's (1952): the next wait is max(0, wait + service - gap).

    >>> waits_in_order([0, 1, 2], [5, 5, 5], 1), waits_in_order([0, 1, 2], [5, 5, 5], 2)
    ([0, 4, 8], [0, 0, 3])
    """
    free_ns = [0] * servers
    waits = []
    for arrival_ns, service_ns in zip(arrivals_ns, services_ns, strict=True):
        start_ns = max(arrival_ns, free_ns[0])
        heapreplace(free_ns, start_ns + service_ns)
        waits.append(start_ns - arrival_ns)
    return waits


def _jobs(log: RunLog) -> list[tuple[int, int, int, int]]:
    """Return (called, number of the call, service, wait) of every graphExecute, in order of call."""
    called, number, solo, started = columns(log, "called_ns", "execute", "solo_ns", "started_ns")
    rows = zip(called.tolist(), number.tolist(), solo.tolist(), (started - called).tolist(), strict=True)
    return sorted(rows)


def recursion(lab: Lab) -> list[Finding]:
    """Compare every single wait with the recursion, on one server and on two.

    The queue is a context's, the guard's, a core's (its running set, on two HVX units) and the guard's with two slots.
    """
    jobs, findings = 1000 if lab.quick else 20_000, []
    for path, servers in (("qnn", 1), ("genie", 1), ("qnn", 2), ("genie", 2)):
        rate, end_ns = 0.8 * servers, round(jobs / (0.8 * servers)) * MEAN_NS
        service = exponential(MEAN_NS)
        if servers == 1:
            times_ns = tuple(poisson_times(rate, end_ns, stream_key(SEED, 0, path, "arrival")).tolist())
            loops = [client("a", Arrivals(kind="replay", times_ns=times_ns), service, path=path)]
        else:
            loops = dealt_out("a", rate, service, end_ns, SEED, path=path)
        done = _jobs(lab.run(station(loops, 2 * end_ns, SEED, servers=servers)))
        expected = waits_in_order([job[0] for job in done], [job[2] for job in done], servers)
        worst = max(abs(job[3] - wait) for job, wait in zip(done, expected, strict=True))
        findings.append(
            Finding(
                name=f"recursion of waits, path {path}, servers {servers}: largest difference",
                unit="ns",
                theory=0.0,
                simulated=float(worst),
                n=len(done),
            )
        )
    return findings


def invariance(lab: Lab) -> list[Finding]:
    """Compare the sum of service x wait over whole busy periods, which no work-conserving order can change."""
    end_ns = (300 if lab.quick else 5_000) * MEAN_NS
    loops = _three_classes(end_ns)
    findings = []
    for policy in sorted(POLICIES):
        done = _jobs(lab.run(station(loops, 2 * end_ns, SEED, policy=policy)))
        waits = waits_in_order([job[0] for job in done], [job[2] for job in done], 1)
        findings.append(
            Finding(
                name=f"conservation on the path, {policy}: sum of service x wait",
                unit="service^2",
                theory=_weighed(waits, done),
                simulated=_weighed([job[3] for job in done], done),
                n=len(done),
            )
        )
    return findings


def _weighed(waits_ns: Sequence[int], jobs: Sequence[tuple[int, int, int, int]]) -> float:
    return sum(wait_ns * job[2] for wait_ns, job in zip(waits_ns, jobs, strict=True)) / MEAN_NS**2


def _three_classes(end_ns: int) -> list[OtherClient]:
    services = (exponential(MEAN_NS // 2), Distribution(kind="uniform", low=0, high=2 * MEAN_NS), constant(2 * MEAN_NS))
    found = []
    for k, (rate, service) in enumerate(zip((0.5, 0.3, 0.15), services, strict=True)):
        times_ns = poisson_times(rate, end_ns, stream_key(SEED, 0, f"c{k}", "arrival"))
        arrivals = Arrivals(kind="replay", times_ns=tuple(times_ns.tolist()))
        deadline_ns = (k + 1) * MEAN_NS
        found.append(client(f"c{k}", arrivals, service, weight=k + 1, guard_priority=k, deadline_ns=deadline_ns))
    return found


def worst_responses(lab: Lab) -> list[Finding]:
    """Compare the worst response of periodic tasks, released at their critical instants, with the analysis."""
    name, findings = "response times, not preemptive, C 1 1 1, T 2.5 3.5 3.5", []
    for i, bound_ns in enumerate(non_preemptive_responses(GOLDEN)):
        log = lab.run(critical_instant(GOLDEN, i, 100 * MEAN_NS))
        # What blocks must have begun before, and in whole nanoseconds that is one earlier.
        findings.append(_worst(log, i, name, bound_ns, tolerance_ns=1))
    name = "response times, preemptive, C 3 3 5, T 7 12 20"
    log = lab.run(released_together(PREEMPTIVE_GOLDEN, 420 * MEAN_NS))
    bounds_ns = enumerate(preemptive_responses(PREEMPTIVE_GOLDEN))
    return findings + [_worst(log, i, name, bound_ns, tolerance_ns=0) for i, bound_ns in bounds_ns]


def _worst(log: RunLog, i: int, name: str, bound_ns: int, *, tolerance_ns: int) -> Finding:
    who, called, finished = columns(log, "client", "called_ns", "finished_ns")
    mine = (who == i) & (finished >= 0)
    return Finding(
        name=f"{name}: worst of task {i + 1}",
        unit="ns",
        theory=float(bound_ns),
        simulated=float((finished - called)[mine].max()),
        n=int(mine.sum()),
        tolerance=float(tolerance_ns),
    )


def released_together(tasks: Sequence[Task], duration_ns: int) -> Scenario:
    """Return periodic clients on path qnn, each at a QNN level above the next, all released at once."""
    loops = [
        client(
            f"task{j}",
            Arrivals(kind="periodic", period_ns=task.period_ns),
            constant(task.cost_ns),
            path="qnn",
            priority=PRIORITIES[len(tasks) - j],
        )
        for j, task in enumerate(tasks)
    ]
    return station(loops, duration_ns, SEED)


def critical_instant(tasks: Sequence[Task], i: int, duration_ns: int) -> Scenario:
    """Return periodic clients: task `i` and all above released together, the longest below 1 ns before."""
    below = range(i + 1, len(tasks))
    blocker = max(below, key=lambda j: tasks[j].cost_ns, default=-1)
    loops = [
        client(
            f"task{j}",
            Arrivals(kind="periodic", period_ns=task.period_ns, offset_ns=0 if j == blocker else 1),
            constant(task.cost_ns),
            guard_priority=len(tasks) - j,
        )
        for j, task in enumerate(tasks)
    ]
    return station(loops, duration_ns, SEED, policy="priority")
