"""How precise an average over a simulated run can be: known asymptotic variances, and the sample size they ask for.

An average over n customers has variance v / n for large n. Two ways give v exactly, both from the solution g of the
Poisson equation A g = -(f - mean of f), A the generator: the average then is a martingale, whose variance is read off
its jumps. For a chain of finitely many states g is a vector; for the work in an M/G/1 queue, x^2 / (2 (1 - rho)).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from math import ceil, comb
from typing import Any, Generic, TypeVar

State = TypeVar("State", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Jump(Generic[State]):
    """A transition of a chain."""

    to: State
    rate: float
    impulse: float = 0.0
    """added to the reward when it happens"""


def mg1_wait_variance(rate: float, moments: Sequence[float]) -> float:
    """Return v for the mean wait of M/G/1 in order of arrival; `moments` are the first four of the service.

    E (V - E V + rate (2 V S + S^2) / (2 (1 - rho)))^2 with V the stationary work (moments by Takacs's recursion).

    Agrees with Daley 1968 for M/M/1, rho (2 + 5 rho - 4 rho^2 + rho^3) / (1 - rho)^4:

    >>> rho = 0.9
    >>> daley = rho * (2 + 5 * rho - 4 * rho**2 + rho**3) / (1 - rho) ** 4
    >>> abs(mg1_wait_variance(rho, [1, 2, 6, 24]) / daley - 1) < 1e-9
    True
    """
    m1, m2, m3, m4 = moments
    v1, v2 = mg1_work_moments(rate, moments)
    c = rate / (2 * (1 - rate * m1))
    spread = v2 - v1**2
    return spread + 4 * c * m1 * spread + c**2 * (4 * v2 * m2 + 4 * v1 * m3 + m4)


def mg1_work_moments(rate: float, moments: Sequence[float]) -> tuple[float, float]:
    """Return E V and E V^2 of the stationary work in M/G/1. Source: Takacs 1962.

    >>> mg1_work_moments(0.5, [1, 2, 6, 24])
    (1.0, 4.0)
    """
    work = [1.0]
    for k in (1, 2):
        terms = (comb(k, i) * moments[i] / (i + 1) * work[k - i] for i in range(1, k + 1))
        work.append(rate / (1 - rate * moments[0]) * sum(terms))
    return work[1], work[2]


def chain_variance(
    start: State, jumps: Callable[[State], Iterable[Jump[State]]], reward: Callable[[State], float]
) -> tuple[float, float]:
    """Return mean and asymptotic variance, a unit of time, of the reward a finite chain earns.

    Parameters
    ----------
    start
        Any state; the others are those reachable from it.
    jumps
        The transitions out of a state.
    reward
        What a state earns a unit of time; jumps add their impulses.

    Examples
    --------
    A Poisson process counted by its own jumps has mean and variance equal to its rate:

    >>> mean, variance = chain_variance(0, lambda s: [Jump(0, 3.0, impulse=1.0)], lambda s: 0.0)
    >>> round(mean, 9), round(variance, 9)
    (3.0, 3.0)
    """
    import numpy as np
    from scipy.sparse import coo_matrix
    from scipy.sparse.linalg import splu

    order, table = _explore(start, jumps)
    n = len(order)
    rows, columns, rates, impulses = (np.array(column) for column in zip(*table, strict=True))
    out = np.bincount(rows, rates, n)
    diagonal = np.arange(n)
    generator = coo_matrix(
        (np.concatenate([rates, -out]), (np.concatenate([rows, diagonal]), np.concatenate([columns, diagonal]))), (n, n)
    ).tolil()
    # One equation of a singular system is replaced by "all probabilities add up to one", or by g = 0 in one state.
    balance: Any = generator.T.tolil()
    balance[n - 1, :] = np.ones(n)
    one = np.zeros(n)
    one[n - 1] = 1.0
    share = splu(balance.tocsc()).solve(one)
    earned = np.array([reward(state) for state in order]) + np.bincount(rows, rates * impulses, n)
    mean = float(share @ earned)
    generator[n - 1, :] = 0
    generator[n - 1, n - 1] = 1.0
    right = mean - earned
    right[n - 1] = 0.0
    g = splu(generator.tocsc()).solve(right)
    variance = float(np.sum(share[rows] * rates * (impulses + g[columns] - g[rows]) ** 2))
    return mean, variance


def _explore(
    start: State, jumps: Callable[[State], Iterable[Jump[State]]]
) -> tuple[list[State], list[tuple[int, int, float, float]]]:
    """Give the reachable states numbers and list all transitions as (from, to, rate, impulse)."""
    number, order, table = {start: 0}, [start], []
    for state in order:  # grows while it is walked
        for jump in jumps(state):
            if jump.to not in number:
                number[jump.to] = len(order)
                order.append(jump.to)
            table.append((number[state], number[jump.to], jump.rate, jump.impulse))
    return order, table


def customers_needed(variance: float, mean: float, relative: float, z: float) -> int:
    """Return how many customers bring the half width z sqrt(variance / n) down to `relative` of the mean.

    >>> customers_needed(29.0, 1.0, 0.1, 2.0)
    11600
    """
    return ceil(variance * (z / (relative * mean)) ** 2)
