"""Oracles of open queues: one core, Poisson arrivals, and the mean waits that theory gives."""

from __future__ import annotations

from functools import partial

import numpy as np

from htpsim.experiments.theory import queues
from htpsim.experiments.theory.chains import (
    blocking_variance,
    mmc_wait_variance,
    preemptive_variance,
    priority_wait_variance,
)
from htpsim.experiments.theory.lab import REPLICATIONS, Finding, Group, Lab, planned_z
from htpsim.experiments.theory.stations import MEAN_NS, client, dealt_out, moments, poisson, station, times
from htpsim.experiments.theory.variance import customers_needed, mg1_wait_variance
from htpsim.results.columns import DROPPED, Request
from htpsim.sched import POLICIES
from htpsim.spec import Distribution, Scenario, constant, exponential

EXPONENTIAL = exponential(MEAN_NS)
ERLANG_2 = Distribution(kind="erlang", mean=MEAN_NS, stages=2)


def _alone(kind: str, rate: float, service: Distribution, path: str, duration_ns: int, seed: int) -> Scenario:
    return station([client(kind, poisson(rate), service, path=path)], duration_ns, seed)


def _one_server(lab: Lab, kind: str, rate: float, service: Distribution, path: str) -> list[Finding]:
    m = moments(service)
    theory, variance = queues.mg1_wait(rate, m[0], m[1]), mg1_wait_variance(rate, m)
    group = Group(f"{kind}, utilisation {rate:g}, path {path}: wait", [0], rate, theory, variance)
    return lab.averages([group], rate, partial(_alone, kind, rate, service, path))


def mm1(lab: Lab) -> list[Finding]:
    """Compare M/M/1, in the queue of a context."""
    return [
        f for rate in ([0.5] if lab.quick else [0.5, 0.9]) for f in _one_server(lab, "M/M/1", rate, EXPONENTIAL, "qnn")
    ]


def md1(lab: Lab) -> list[Finding]:
    """Compare M/D/1, in the queue of the guard."""
    return _one_server(lab, "M/D/1", 0.5 if lab.quick else 0.9, constant(MEAN_NS), "genie")


def mg1(lab: Lab) -> list[Finding]:
    """Compare M/G/1 with Erlang service of two stages, in the queue of a context."""
    return _one_server(lab, "M/E2/1", 0.5 if lab.quick else 0.8, ERLANG_2, "qnn")


def mmc(lab: Lab) -> list[Finding]:
    """Compare M/M/c: as many slots as servers."""
    findings = []
    for servers, rho in [(2, 0.5)] if lab.quick else [(2, 0.8), (3, 0.7)]:
        rate = servers * rho

        def make(duration_ns: int, seed: int, rate: float = rate, servers: int = servers) -> Scenario:
            loops = dealt_out("many", rate, EXPONENTIAL, duration_ns, seed, ways=_ways(servers))
            return station(loops, duration_ns, seed, servers=servers)

        theory, variance = queues.mmc_wait(servers, rate, 1.0), mmc_wait_variance(servers, rate, 1.0)
        group = Group(f"M/M/{servers}, utilisation {rho:g}: wait", range(_ways(servers)), rate, theory, variance)
        findings += lab.averages([group], rho, make)
    return findings


def _ways(servers: int) -> int:
    """Return among how many clients to deal out a stream: two jobs of one meet less than once in 30,000."""
    return 16 if servers == 2 else 32


def blocking(lab: Lab) -> list[Finding]:
    """Compare M/M/1/K: a client with K jobs in flight at most, the rest dropped."""
    rho, most = 0.8, 3
    theory, variance = queues.mm1k_blocking(rho, most), blocking_variance(rho, most)
    n = customers_needed(variance, theory, lab.relative, planned_z())

    def make(duration_ns: int, seed: int) -> Scenario:
        loop = client("full", poisson(rho), EXPONENTIAL, path="qnn", outstanding=most, when_full="drop")
        return station([loop], duration_ns, seed)

    (log, window_ns), *_ = lab.windows(make, n / rho, 100, 1)
    rows = np.array(log.requests, dtype=np.int64)
    state, arrived = (rows[:, Request._fields.index(name)] for name in ("state", "arrived_ns"))
    counted = state[(arrived >= window_ns[0]) & (arrived < window_ns[1])]
    return [
        Finding(
            name=f"M/M/1/{most}, load {rho:g}: share of arrivals lost",
            unit="share",
            theory=theory,
            simulated=float(np.mean(counted == DROPPED)),
            n=len(counted),
            error=(variance / len(counted)) ** 0.5,
        )
    ]


def cobham(lab: Lab) -> list[Finding]:
    """Compare non-preemptive priority on one server: the guard's ``priority`` with one slot."""
    rates = (0.2, 0.2) if lab.quick else (0.45, 0.45)

    def make(duration_ns: int, seed: int) -> Scenario:
        loops = [client(f"ranked{k}", poisson(rates[k]), EXPONENTIAL, guard_priority=1 - k) for k in (0, 1)]
        return station(loops, duration_ns, seed, policy="priority")

    waits = queues.davis_waits(1, rates, 1.0)
    groups = [
        Group(
            f"priority, 1 server, utilisation {sum(rates):g}: wait of class {k + 1}",
            [k],
            rates[k],
            waits[k],
            priority_wait_variance(1, rates, 1.0, k),
        )
        for k in (0, 1)
    ]
    return lab.averages(groups, sum(rates), make) + ([] if lab.quick else _cobham_mixed(lab))


def _cobham_mixed(lab: Lab) -> list[Finding]:
    """Compare three classes with constant, Erlang and exponential service of different lengths."""
    services = [constant(MEAN_NS // 2), Distribution(kind="erlang", mean=MEAN_NS, stages=2), exponential(2 * MEAN_NS)]
    rates, m = (0.25, 0.2, 0.15), [moments(s) for s in services]

    def make(duration_ns: int, seed: int) -> Scenario:
        loops = [client(f"mixed{k}", poisson(rates[k]), services[k], guard_priority=2 - k) for k in range(3)]
        return station(loops, duration_ns, seed, policy="priority")

    waits = queues.cobham_waits(rates, [x[0] for x in m], [x[1] for x in m])
    groups = [
        Group(f"priority, 1 server, mixed service: wait of class {k + 1}", [k], rates[k], waits[k], None)
        for k in range(3)
    ]
    return lab.averages(groups, 0.625, make)


def davis(lab: Lab) -> list[Finding]:
    """Compare non-preemptive priority on c servers: the guard's ``priority`` with c slots."""
    servers, rates, ways = 2, (0.4, 0.4) if lab.quick else (0.7, 0.7), _ways(2)

    def make(duration_ns: int, seed: int) -> Scenario:
        first = dealt_out("c0", rates[0], EXPONENTIAL, duration_ns, seed, ways=ways, guard_priority=1)
        second = dealt_out("c1", rates[1], EXPONENTIAL, duration_ns, seed, ways=ways, guard_priority=0)
        return station([*first, *second], duration_ns, seed, policy="priority", servers=servers)

    waits, rho = queues.davis_waits(servers, rates, 1.0), sum(rates) / servers
    groups = [
        Group(
            f"priority, {servers} servers, utilisation {rho:g}: wait of class {k + 1}",
            range(k * ways, (k + 1) * ways),
            rates[k],
            waits[k],
            priority_wait_variance(servers, rates, 1.0, k),
        )
        for k in (0, 1)
    ]
    return lab.averages(groups, rho, make)


def preemptive(lab: Lab) -> list[Finding]:
    """Compare preemptive-resume priority: QNN levels on path qnn, with free eviction."""
    rates = (0.2, 0.2) if lab.quick else (0.4, 0.4)

    def make(duration_ns: int, seed: int) -> Scenario:
        levels = ("HIGH", "NORMAL")
        loops = [client(f"level{k}", poisson(rates[k]), EXPONENTIAL, path="qnn", priority=levels[k]) for k in (0, 1)]
        return station(loops, duration_ns, seed)

    responses = queues.preemptive_responses(rates, [1.0, 1.0], [2.0, 2.0])
    groups = [
        Group(
            f"preemptive-resume, utilisation {sum(rates):g}: time in system of class {k + 1}",
            [k],
            rates[k],
            responses[k],
            preemptive_variance(rates, 1.0, k),
            until="finished_ns",
        )
        for k in (0, 1)
    ]
    return lab.averages(groups, sum(rates), make)


def conservation(lab: Lab) -> list[Finding]:
    """Compare the sum of rho_k Wq_k under a policy with what no such policy can change."""
    if lab.quick:
        return []  # too few jobs to say anything; the law on the path is exact and has its own oracle
    rates, means = (0.5, 0.25, 0.1), (0.5, 1.0, 2.0)
    services = [exponential(round(m * MEAN_NS)) for m in means]
    rho = sum(r * m for r, m in zip(rates, means, strict=True))
    theory = queues.conserved(rates, means, [2 * m**2 for m in means])
    findings = []
    for policy in sorted(POLICIES):

        def make(duration_ns: int, seed: int, policy: str = policy) -> Scenario:
            loops = [
                client(
                    f"c{k}",
                    poisson(rates[k]),
                    services[k],
                    weight=k + 1,
                    guard_priority=k,
                    deadline_ns=(3 - k) * MEAN_NS,
                )
                for k in range(3)
            ]
            return station(loops, duration_ns, seed, policy=policy)

        values, n = [], 0
        for log, window_ns in lab.windows(make, 2500.0, 10 / (1 - rho) ** 2, REPLICATIONS):
            waits = [times(log, [k], window_ns, "started_ns") for k in range(3)]
            values.append(sum(rates[k] * means[k] * float(waits[k].mean()) for k in range(3)))
            n += sum(len(w) for w in waits)
        findings.append(lab.replicated(f"conservation law, {policy}: sum of load x wait", theory, values, n))
    return findings
