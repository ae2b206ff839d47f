"""Run the oracles and say which of them the simulator misses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from htpsim.experiments.theory import closed_oracles, open_oracles, path_oracles
from htpsim.experiments.theory.lab import Engine, Finding, Lab, quantile_t, quantile_z
from htpsim.results.log import RunLog
from htpsim.spec import Scenario

Basis = Literal["known variance", "replications", "exact"]
Progress = Callable[[int, int, str], None]
"""Told how many oracles are done, of how many, and which is next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleResult:
    """Theory beside simulation, and whether they agree."""

    name: str
    unit: str
    """"service" is the mean service time of the queue."""
    theory: float
    simulated: float
    half_width: float
    """of the interval around `simulated`; for what is exact, how far apart the two may be"""
    n: int
    """customers, jobs or tokens averaged over"""
    basis: Basis
    """what the half width rests on"""
    verdict: Literal["ok", "miss"]

    @property
    def interval(self) -> tuple[float, float]:
        """The interval in which theory is expected."""
        return self.simulated - self.half_width, self.simulated + self.half_width


@dataclass(frozen=True, slots=True)
class Oracle:
    """One thing theory knows, and how it is put to the simulator."""

    title: str
    formula: str
    source: str
    run: Callable[[Lab], list[Finding]]


ORACLES: Final = (
    Oracle("M/M/1", "Wq = rho / (mu - lambda)", "Kleinrock 1975", open_oracles.mm1),
    Oracle("M/D/1", "Wq = rho / (2 mu (1 - rho))", "Pollaczek 1930, Khinchine 1932", open_oracles.md1),
    Oracle("M/G/1", "Wq = lambda E[S^2] / (2 (1 - rho))", "Pollaczek 1930, Khinchine 1932", open_oracles.mg1),
    Oracle("M/M/c", "Wq = C(c, a) / (c mu - lambda)", "Erlang 1917", open_oracles.mmc),
    Oracle("M/M/1/K", "p_K = (1 - rho) rho^K / (1 - rho^(K+1))", "any text", open_oracles.blocking),
    Oracle("Priority, one server", "Wq_k = W0 / ((1 - s_k-1)(1 - s_k))", "Cobham 1954", open_oracles.cobham),
    Oracle("Priority, c servers", "Wq_k = C / (c mu) / ((1 - s_k-1)(1 - s_k))", "Davis 1966", open_oracles.davis),
    Oracle(
        "Preemptive-resume",
        "T_k = (E[S_k](1 - s_k) + sum lambda_i E[S_i^2] / 2) / ((1 - s_k-1)(1 - s_k))",
        "Kleinrock 1976",
        open_oracles.preemptive,
    ),
    Oracle("Conservation law", "sum rho_k Wq_k = rho W0 / (1 - rho)", "Kleinrock 1965", open_oracles.conservation),
    Oracle("M/M/1//N", "X = mu (1 - p_0); R = N / X - Z", "Kleinrock 1975", closed_oracles.machine_repair),
    Oracle("MVA", "R(n) = D (1 + Q(n-1)), X(n) = n / (R + Z)", "Reiser, Lavenberg 1980", closed_oracles.decoding),
    Oracle("Asymptotic bounds", "X <= min(1 / D, N / (D + Z))", "Lazowska and others 1984", closed_oracles.bounds),
    Oracle("Recursion of waits", "W' = max(0, W + S - A)", "Lindley 1952", path_oracles.recursion),
    Oracle("Conservation on the path", "sum S W is the same in any order", "Kleinrock 1965", path_oracles.invariance),
    Oracle(
        "Response times",
        "R = max_q w(q) - q T + C",
        "Davis, Burns, Bril, Lukkien 2007",
        path_oracles.worst_responses,
    ),
)
"""In the order in which they are run."""


def validate(
    quick: bool = True, *, engine: Engine | None = None, progress: Progress | None = None
) -> list[OracleResult]:
    """Put every oracle to an engine.

    Parameters
    ----------
    quick : bool
        Coarse intervals and moderate load; otherwise utilisation up to 0.9 and intervals of a tenth or less.
    engine : callable, optional
        From a scenario and a replication to a RunLog; the reference engine if not given.
    progress : callable, optional
        Called with (done, total, title) before each oracle and at the end.

    Returns
    -------
    list of OracleResult
        In a right simulator all are "ok" with a chance of 99 %; the seeds are fixed, so a verdict repeats.
    """
    lab = Lab(engine or _reference, quick)
    findings: list[Finding] = []
    for number, oracle in enumerate(ORACLES):
        if progress:
            progress(number, len(ORACLES), oracle.title)
        findings += oracle.run(lab)
    if progress:
        progress(len(ORACLES), len(ORACLES), "")
    return judge(findings)


def judge(findings: Sequence[Finding]) -> list[OracleResult]:
    """Give every finding the interval that its family asks for, and a verdict.

    >>> found = Finding(name="mean", unit="ms", theory=1.0, simulated=1.2, n=100, error=0.1)
    >>> [(r.verdict, round(r.half_width, 3)) for r in judge([found])]
    [('ok', 0.258)]
    """
    family = sum(f.statistical for f in findings)
    return [_judged(f, family) for f in findings]


def _judged(f: Finding, family: int) -> OracleResult:
    basis: Basis = "exact"
    half_width = f.tolerance
    if f.statistical:
        basis = "replications" if f.freedom else "known variance"
        half_width = f.error * (quantile_t(family, f.freedom) if f.freedom else quantile_z(family))
    return OracleResult(
        name=f.name,
        unit=f.unit,
        theory=f.theory,
        simulated=f.simulated,
        half_width=half_width,
        n=f.n,
        basis=basis,
        verdict="ok" if abs(f.simulated - f.theory) <= half_width else "miss",
    )


def _reference(scenario: Scenario, replication: int) -> RunLog:
    from htpsim.sim import simulate

    return simulate(scenario, replication)
