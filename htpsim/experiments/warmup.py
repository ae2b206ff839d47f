"""How long a scenario takes to settle: MSER-5 on its latencies in order of time, in a run without warm-up."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from htpsim.errors import HtpsimError
from htpsim.results.columns import NEVER
from htpsim.results.metric import IntArray
from htpsim.results.run import RunResult
from htpsim.results.statistics import mser5
from htpsim.results.tables import Tables
from htpsim.sim import simulate
from htpsim.spec import Scenario

Series = Callable[[Tables], tuple[IntArray, IntArray]]
"""Instants and values of one latency."""
MS_NS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class WarmUp:
    """What MSER-5 says of one scenario."""

    length_ns: int
    """from the end of loading to where the last latency has settled, rounded up to a millisecond"""
    said: dict[str, str]
    """for each latency how much is cut, or why the cut is refused"""


def warm_up(scenario: Scenario, replication: int = 0) -> WarmUp:
    """Return how long a scenario takes to settle.

    Raises
    ------
    HtpsimError
        When every latency has too few samples, or has not settled in half of the run.

    Examples
    --------
    >>> from htpsim.scenario import load
    >>> warm_up(load("four_vlms", set_values=["run.duration=60s"]).base).length_ns >= 0
    True
    """
    whole = replace(scenario, run=replace(scenario.run, warmup_ns=0))
    log = simulate(whole, replication)
    tables = RunResult(log).tables
    said: dict[str, str] = {}
    longest_ns = None
    for name, series in (("TTFT", _first_tokens), ("ITL", _gaps), ("jobs", _jobs)):
        at_ns, values = series(tables)
        if not len(values):
            continue
        order = np.argsort(at_ns, kind="stable")
        found = mser5(values[order].astype(np.float64))
        if found.refused:
            said[name] = found.refused
            continue
        cut_ns = int(at_ns[order][found.cut - 1]) - log.ready_ns if found.cut else 0
        said[name] = f"{found.cut} of {found.n} samples cut"
        longest_ns = max(longest_ns or 0, cut_ns)
    if longest_ns is None:
        raise HtpsimError(f"--warmup auto: {scenario.name}: {_reasons(said)}; expected a time, or a longer run")
    return WarmUp(-(-max(0, longest_ns) // MS_NS) * MS_NS, said)


def common_warm_up(scenarios: Iterable[Scenario]) -> WarmUp:
    """Return the longest warm-up of several scenarios: what is compared must be measured over the same time."""
    return max((warm_up(scenario) for scenario in scenarios), key=lambda found: found.length_ns)


def _reasons(said: dict[str, str]) -> str:
    return ", ".join(f"{name}: {why}" for name, why in said.items()) or "nothing happened"


def _first_tokens(tables: Tables) -> tuple[IntArray, IntArray]:
    r = tables.requests
    came = r["first_token_ns"] != NEVER
    return r["first_token_ns"][came], (r["first_token_ns"] - r["arrived_ns"])[came]


def _gaps(tables: Tables) -> tuple[IntArray, IntArray]:
    tokens = tables.tokens
    kept = tokens.gap_ns != NEVER
    return tokens.time_ns[kept], tokens.gap_ns[kept]


def _jobs(tables: Tables) -> tuple[IntArray, IntArray]:
    r = tables.requests
    done = (r["done_ns"] != NEVER) & (r["client"] >= len(tables.log.scenario.instances))
    return r["done_ns"][done], (r["done_ns"] - r["arrived_ns"])[done]
