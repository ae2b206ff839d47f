"""Closed forms for open queues. Any unit of time; rates are per that unit. Sources stand with each function.

Notation: class 1 (first in a list) is the most important; S a service time, m1 and m2 its first two moments,
rho = rate x m1, sigma_k = rho_1 + ... + rho_k, W0 = sum of rate_i x m2_i / 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import factorial

from htpsim.errors import ScenarioError


def mg1_wait(rate: float, m1: float, m2: float) -> float:
    """Return the mean wait of M/G/1 in order of arrival: rate m2 / (2 (1 - rho)).

    Source: Pollaczek 1930, Khinchine 1932. M/M/1 has m2 = 2 m1^2, M/D/1 has m2 = m1^2, half the wait.

    >>> mg1_wait(0.5, 1, 2), mg1_wait(0.5, 1, 1)
    (1.0, 0.5)
    """
    return rate * m2 / (2 * (1 - _stable(rate * m1)))


def mm1_wait(rate: float, service: float) -> float:
    """Return the mean wait of M/M/1: rho / (mu - rate).

    >>> mm1_wait(0.9, 1.0)
    9.000000000000002
    """
    return mg1_wait(rate, service, 2 * service**2)


def md1_wait(rate: float, service: float) -> float:
    """Return the mean wait of M/D/1: half that of M/M/1.

    >>> md1_wait(0.5, 1.0)
    0.5
    """
    return mg1_wait(rate, service, service**2)


def erlang_c(servers: int, offered: float) -> float:
    """Return the chance that an arrival of M/M/c must wait; `offered` is rate x service. Source: Erlang 1917.

    >>> round(erlang_c(1, 0.5), 12), round(erlang_c(2, 1.0), 12)
    (0.5, 0.333333333333)
    """
    rho = _stable(offered / servers)
    last = offered**servers / factorial(servers) / (1 - rho)
    return last / (sum(offered**n / factorial(n) for n in range(servers)) + last)


def mmc_wait(servers: int, rate: float, service: float) -> float:
    """Return the mean wait of M/M/c: C / (c mu - rate).

    >>> round(mmc_wait(2, 1.0, 1.0), 12)
    0.333333333333
    """
    return erlang_c(servers, rate * service) / (servers / service - rate)


def mm1k_blocking(rho: float, places: int) -> float:
    """Return the share of arrivals that M/M/1/K loses, K `places` in all: (1 - rho) rho^K / (1 - rho^(K+1)).

    >>> mm1k_blocking(0.5, 1), mm1k_blocking(1.0, 4)
    (0.3333333333333333, 0.2)
    """
    if rho == 1:
        return 1 / (places + 1)
    return (1 - rho) * rho**places / (1 - rho ** (places + 1))


def cobham_waits(rates: Sequence[float], m1: Sequence[float], m2: Sequence[float]) -> list[float]:
    """Return the mean wait of each class of M/G/1 with non-preemptive priority: W0 / ((1 - sigma_k-1)(1 - sigma_k)).

    Source: Cobham, Operations Research 2 (1954).

    >>> [round(w, 5) for w in cobham_waits([0.2, 0.3], [1, 1], [2, 2])]
    [0.625, 1.25]
    """
    w0 = sum(rate * second for rate, second in zip(rates, m2, strict=True)) / 2
    return [w0 / ((1 - before) * (1 - after)) for before, after in _sigmas(rates, m1)]


def davis_waits(servers: int, rates: Sequence[float], service: float) -> list[float]:
    """Return the mean wait of each class of M/M/c with non-preemptive priority and one service rate.

    (C / (c mu)) / ((1 - sigma_k-1)(1 - sigma_k)) with rho_i = rate_i / (c mu).
    Source: Davis, Operations Research 14 (1966).

    >>> davis_waits(1, [0.2, 0.3], 1.0) == cobham_waits([0.2, 0.3], [1, 1], [2, 2])
    True
    """
    first = erlang_c(servers, sum(rates) * service) * service / servers
    sigmas = _sigmas(rates, [service / servers] * len(rates))
    return [first / ((1 - before) * (1 - after)) for before, after in sigmas]


def preemptive_responses(rates: Sequence[float], m1: Sequence[float], m2: Sequence[float]) -> list[float]:
    """Return the mean time in the system of each class of M/G/1 with preemptive-resume priority.

    (m1_k (1 - sigma_k) + sum over i <= k of rate_i m2_i / 2) / ((1 - sigma_k-1)(1 - sigma_k)).
    Source: Kleinrock, Queueing Systems 2 (1976).

    >>> preemptive_responses([0.5], [1], [2]) == [mm1_wait(0.5, 1) + 1]
    True
    """
    residual = accumulate(rate * second / 2 for rate, second in zip(rates, m2, strict=True))
    return [
        (own * (1 - after) + work) / ((1 - before) * (1 - after))
        for own, work, (before, after) in zip(m1, residual, _sigmas(rates, m1), strict=True)
    ]


def conserved(rates: Sequence[float], m1: Sequence[float], m2: Sequence[float]) -> float:
    """Return what every work-conserving, non-preemptive, size-blind order gives for sum of rho_k Wq_k.

    rho W0 / (1 - rho). Source: Kleinrock, Naval Research Logistics Quarterly 12 (1965).

    >>> rates, m1, m2 = [0.2, 0.3], [1, 1], [2, 2]
    >>> waits = cobham_waits(rates, m1, m2)
    >>> abs(sum(r * w for r, w in zip(rates, waits)) - conserved(rates, m1, m2)) < 1e-12
    True
    """
    rho = _stable(sum(rate * first for rate, first in zip(rates, m1, strict=True)))
    w0 = sum(rate * second for rate, second in zip(rates, m2, strict=True)) / 2
    return rho * w0 / (1 - rho)


def _sigmas(rates: Sequence[float], m1: Sequence[float]) -> list[tuple[float, float]]:
    """Return (sigma_k-1, sigma_k) of each class."""
    sums = list(accumulate(rate * first for rate, first in zip(rates, m1, strict=True)))
    _stable(sums[-1])
    return list(zip([0.0, *sums], sums, strict=False))


def _stable(rho: float) -> float:
    if not 0 <= rho < 1:
        raise ScenarioError(f"utilisation: got {rho:g}, expected at least 0 and less than 1, or nothing has a mean")
    return rho
