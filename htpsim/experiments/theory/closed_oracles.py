"""Oracles of closed queues: threads that wait for their answer before they ask again, as dialogs do."""

from __future__ import annotations

import numpy as np

from htpsim.experiments.theory import closed
from htpsim.experiments.theory.chains import closed_throughput_variance
from htpsim.experiments.theory.lab import REPLICATIONS, Finding, Lab, planned_z
from htpsim.experiments.theory.stations import MEAN_NS, client, columns, station
from htpsim.experiments.theory.variance import customers_needed
from htpsim.results.columns import NEVER
from htpsim.results.log import RunLog
from htpsim.spec import (
    Arrivals,
    Context,
    Distribution,
    Graph,
    Guard,
    Instance,
    Model,
    Run,
    Scenario,
    constant,
    exponential,
)


def _loops(customers: int, service: Distribution, think: Distribution, duration_ns: int, seed: int) -> Scenario:
    """Return so many clients with one job outstanding each, at one guard."""
    arrivals = Arrivals(kind="closed", think=think)
    loops = [client(f"c{k}", arrivals, service, outstanding=1) for k in range(customers)]
    return station(loops, duration_ns, seed)


def _completed(log: RunLog, window_ns: tuple[int, int]) -> int:
    (returned,) = columns(log, "returned_ns")
    return int(np.count_nonzero((returned >= window_ns[0]) & (returned < window_ns[1])))


def machine_repair(lab: Lab) -> list[Finding]:
    """Compare the throughput of M/M/1//N, and the interactive law on the same run."""
    findings = []
    for customers, think in [(4, 3.0)] if lab.quick else [(2, 1.0), (4, 3.0), (8, 9.0)]:
        theory = closed.machine_repair(customers, 1.0, think)
        variance = closed_throughput_variance(customers, 1.0, think)
        n = customers_needed(variance, 1.0, 0.06 if lab.quick else 0.02, planned_z())

        def make(duration_ns: int, seed: int, customers: int = customers, think: float = think) -> Scenario:
            return _loops(customers, exponential(MEAN_NS), exponential(round(think * MEAN_NS)), duration_ns, seed)

        measured = n / theory.throughput
        (log, window_ns), *_ = lab.windows(make, measured, 20 * (1 + think), 1)
        done = _completed(log, window_ns)
        findings.append(
            Finding(
                name=f"M/M/1//{customers}, think {think:g}: throughput",
                unit="1/service",
                theory=theory.throughput,
                simulated=done / measured,
                n=done,
                error=(variance * theory.throughput / measured) ** 0.5,
            )
        )
        findings.append(_interactive_law(log, customers, think))
    return findings


def _interactive_law(log: RunLog, customers: int, think: float) -> Finding:
    """Compare the mean response with N / X - Z on the path itself, Z the mean of the thinking times drawn.

    The cycles that the run's end cuts short are all that can keep the two apart.
    """
    who, called, returned = columns(log, "client", "called_ns", "returned_ns")
    done = returned != NEVER
    responses = (returned - called)[done] / MEAN_NS
    thinking = longest = 0.0
    for k in range(customers):
        mine = np.flatnonzero((who == k) & done)
        pauses = (called[mine] - np.concatenate([[0], returned[mine][:-1]])) / MEAN_NS
        thinking += float(pauses.sum())
        last_ns = int(returned[mine][-1]) if len(mine) else 0
        longest = max(longest, (log.end_ns - last_ns) / MEAN_NS)
    n = len(responses)
    return Finding(
        name=f"interactive law on the path, {customers} threads, think {think:g}: response",
        unit="service",
        theory=closed.interactive_response(customers, n / (log.end_ns / MEAN_NS), thinking / n),
        simulated=float(responses.mean()),
        n=n,
        tolerance=customers * longest / n,
    )


def decoding(lab: Lab) -> list[Finding]:
    """Compare the tokens of N dialogs that decode on one core, with a pause on the host after each, with MVA."""
    gap, measured, findings = 0.25, 300.0 if lab.quick else 6000.0, []
    for streams in [3] if lab.quick else [1, 2, 3]:

        def make(duration_ns: int, seed: int, streams: int = streams) -> Scenario:
            return _dialogs(streams, round(gap * MEAN_NS), duration_ns, seed)

        theory = closed.mva([1.0], gap, streams).throughput
        runs = [_completed(log, at) / measured for log, at in lab.windows(make, measured, 20.0, REPLICATIONS)]
        n = round(sum(runs) * measured)
        name = f"MVA, {streams} dialogs decode, host gap {gap:g}: tokens"
        findings.append(lab.replicated(name, theory, runs, n, unit="1/service"))
    return findings


def _dialogs(streams: int, gap_ns: int, duration_ns: int, seed: int) -> Scenario:
    """Return instances without a ViT whose every token is one graph of exponential length."""
    step = Graph(name="step", context="all", service=exponential(MEAN_NS))
    llm = Model(
        name="llm",
        role="llm",
        contexts=(Context(name="all"),),
        prefill=(step,),
        decode=(step,),
        context_tokens=1 << 20,
    )
    instances = tuple(
        Instance(
            name=f"vlm{k}",
            llm=llm,
            arrivals=Arrivals(kind="closed", think=constant(0)),
            text_tokens=constant(64),
            output_tokens=constant(500),
            host_gap_step_ns=gap_ns,
        )
        for k in range(streams)
    )
    run = Run(duration_ns=duration_ns, seed=seed)
    return Scenario(guard=Guard(policy="fifo", slots=1), run=run, instances=instances)


def bounds(lab: Lab) -> list[Finding]:
    """Compare constant times with the asymptotic bound, which they attain."""
    findings, measured = [], 400
    for customers in (3, 7, 10):
        theory = closed.throughput_bound([1.0], 6.0, customers)

        def make(duration_ns: int, seed: int, customers: int = customers) -> Scenario:
            return _loops(customers, constant(MEAN_NS), constant(6 * MEAN_NS), duration_ns, seed)

        (log, window_ns), *_ = lab.windows(make, measured, 70.0, 1)
        done = _completed(log, window_ns)
        findings.append(
            Finding(
                name=f"asymptotic bound, {customers} threads, constant times: throughput",
                unit="1/service",
                theory=theory,
                simulated=done / measured,
                n=done,
                tolerance=customers / measured,
            )
        )
    return findings
