"""Closed forms for closed queues: N threads that think and then want one core. The real shape of the workload."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Closed:
    """The steady state of a closed queue."""

    throughput: float
    """completions a unit of time"""
    response: float
    """time from call to completion"""
    utilisation: float
    """share of time in which the first station is busy"""


def machine_repair(customers: int, service: float, think: float) -> Closed:
    """Return M/M/1//N: exponential service, any think time with mean `think`.

    p_n is in proportion to N! / (N - n)! (service / think)^n; X = (1 - p_0) / service; R = N / X - think.
    Source: any text (machine interference; Kleinrock 1975).

    >>> machine_repair(1, 2.0, 6.0).throughput
    0.125
    """
    terms = [1.0]
    for n in range(customers):
        terms.append(terms[-1] * (customers - n) * service / think)
    busy = 1 - terms[0] / sum(terms)
    throughput = busy / service
    return Closed(throughput, interactive_response(customers, throughput, think), busy)


def mva(demands: Sequence[float], think: float, customers: int) -> Closed:
    """Return a closed network of queueing stations and one delay by exact mean value analysis.

    R_i(n) = D_i (1 + Q_i(n - 1)), X(n) = n / (R(n) + Z), Q_i(n) = X(n) R_i(n).
    Source: Reiser, Lavenberg, Journal of the ACM 27 (1980).

    >>> one, other = mva([2.0], 6.0, 4), machine_repair(4, 2.0, 6.0)
    >>> abs(one.throughput - other.throughput) < 1e-12
    True
    """
    queues = [0.0] * len(demands)
    throughput = response = 0.0
    for n in range(1, customers + 1):
        times = [demand * (1 + queue) for demand, queue in zip(demands, queues, strict=True)]
        response = sum(times)
        throughput = n / (response + think)
        queues = [throughput * time for time in times]
    return Closed(throughput, response, throughput * demands[0])


def interactive_response(customers: int, throughput: float, think: float) -> float:
    """Return R = N / X - Z, the interactive response time law. Source: Denning, Buzen 1978.

    >>> interactive_response(4, 0.5, 6.0)
    2.0
    """
    return customers / throughput - think


def throughput_bound(demands: Sequence[float], think: float, customers: int) -> float:
    """Return the asymptotic bound X <= min(1 / D_max, N / (D + Z)); attained by constant times on one station.

    Source: Lazowska, Zahorjan, Graham, Sevcik 1984.

    >>> throughput_bound([2.0], 6.0, 3), throughput_bound([2.0], 6.0, 8)
    (0.375, 0.5)
    """
    return min(1 / max(demands), customers / (sum(demands) + think))
