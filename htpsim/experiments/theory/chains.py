"""Queues with exponential times as chains, for the variances of their averages. Infinite queues are cut off far out."""

from __future__ import annotations

from functools import lru_cache
from math import ceil, log

from htpsim.experiments.theory.closed import machine_repair
from htpsim.experiments.theory.queues import davis_waits, mm1k_blocking, mmc_wait, preemptive_responses
from htpsim.experiments.theory.variance import Jump, chain_variance

_CUT_OFF = 1e-9
"""How unlikely the states are that are left out."""

Pair = tuple[int, int]
Triple = tuple[int, int, int]


def places(rho: float) -> int:
    """Return how long a queue has to be allowed to become.

    >>> places(0.5)
    30
    """
    return ceil(log(_CUT_OFF) / log(rho))


@lru_cache
def mmc_wait_variance(servers: int, rate: float, service: float) -> float:
    """Return v for the mean wait of M/M/c, a customer.

    >>> from htpsim.experiments.theory.variance import mg1_wait_variance
    >>> abs(mmc_wait_variance(1, 0.5, 1.0) / mg1_wait_variance(0.5, [1, 2, 6, 24]) - 1) < 1e-4
    True
    """
    wait = mmc_wait(servers, rate, service)
    most = servers + places(rate * service / servers)

    def jumps(n: int) -> list[Jump[int]]:
        found = [Jump(n + 1, rate, -wait)] if n < most else []
        return [*found, Jump(n - 1, min(n, servers) / service)] if n else found

    _, variance = chain_variance(0, jumps, lambda n: max(n - servers, 0))
    return variance / rate


@lru_cache
def blocking_variance(rho: float, most: int) -> float:
    """Return v for the share of lost arrivals of M/M/1/K, an arrival."""
    lost = mm1k_blocking(rho, most)

    def jumps(n: int) -> list[Jump[int]]:
        found = [Jump(n + 1, rho, -lost) if n < most else Jump(n, rho, 1 - lost)]
        return [*found, Jump(n - 1, 1.0)] if n else found

    _, variance = chain_variance(0, jumps, lambda n: 0.0)
    return variance / rho


@lru_cache
def closed_throughput_variance(customers: int, service: float, think: float) -> float:
    """Return v for the throughput of M/M/1//N: its variance over a time T is v x throughput^2 / (throughput x T).

    >>> round(closed_throughput_variance(1, 1.0, 1e-6), 3)
    1.0
    """

    def jumps(n: int) -> list[Jump[int]]:
        found = [Jump(n + 1, (customers - n) / think)] if n < customers else []
        return [*found, Jump(n - 1, 1 / service, 1.0)] if n else found

    throughput, variance = chain_variance(0, jumps, lambda n: 0.0)
    assert abs(throughput / machine_repair(customers, service, think).throughput - 1) < 1e-6
    return variance / throughput


@lru_cache
def priority_wait_variance(servers: int, rates: tuple[float, float], service: float, which: int) -> float:
    """Return v for the mean wait of class `which`, 0 or 1, of M/M/c with non-preemptive priority, a customer of it.

    >>> both = [priority_wait_variance(1, (0.3, 0.3), 1.0, k) for k in (0, 1)]
    >>> both[0] < both[1]
    True
    """
    wait = davis_waits(servers, rates, service)[which]
    most = [places(sum(rates[: k + 1]) * service / servers) for k in (0, 1)]

    def jumps(state: Triple) -> list[Jump[Triple]]:
        busy, *queues = state
        found = []
        for k in (0, 1):
            if busy < servers or queues[k] < most[k]:
                to = (busy + 1, 0, 0) if busy < servers else (busy, queues[0] + (k == 0), queues[1] + (k == 1))
                found.append(Jump(to, rates[k], -wait if k == which else 0.0))
        if busy:
            served = 0 if queues[0] else 1
            to = (busy, queues[0] - (served == 0), queues[1] - (served == 1)) if any(queues) else (busy - 1, 0, 0)
            found.append(Jump(to, busy / service))
        return found

    _, variance = chain_variance((0, 0, 0), jumps, lambda state: state[1 + which])
    return variance / rates[which]


@lru_cache
def preemptive_variance(rates: tuple[float, float], service: float, which: int) -> float:
    """Return v for the mean time in the system of class `which`, 0 or 1, of M/M/1 with preemptive-resume priority.

    A class that is as good as alone has the variance of its wait, 29, plus that of its service and twice their
    covariance:

    >>> round(preemptive_variance((0.5, 1e-9), 1.0, 0), 2)
    36.0
    """
    response = preemptive_responses(rates, [service] * 2, [2 * service**2] * 2)[which]
    most = [places(sum(rates[: k + 1]) * service) for k in (0, 1)]

    def jumps(state: Pair) -> list[Jump[Pair]]:
        first, second = state
        found = []
        for k, to in enumerate([(first + 1, second), (first, second + 1)]):
            if state[k] < most[k]:
                found.append(Jump(to, rates[k], -response if k == which else 0.0))
        if first:
            found.append(Jump((first - 1, second), 1 / service))
        elif second:
            found.append(Jump((first, second - 1), 1 / service))
        return found

    _, variance = chain_variance((0, 0), jumps, lambda state: state[which])
    return variance / rates[which]
