"""How many graphExecutes a second the reference engine simulates, beside a bare SimPy loop that does the same ones.

The two take turns, round after round, in one process; what counts is the ratio within a round, because the machine may
be busy with other things. Checks are off, records are on. Run with ``make bench``.
"""

from __future__ import annotations

import argparse
import gc
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import simpy

from benchmarks.bare_simpy import Bare
from benchmarks.workload import Times, scenario
from htpsim.results.columns import NEVER, Execute
from htpsim.sim import Simulation
from htpsim.spec import Scenario


class Case(NamedTuple):
    """One row of the table."""

    times: Times
    bandwidth: bool
    genie: bool

    def scenario(self, seconds: int) -> Scenario:
        return scenario(self.times, bandwidth=self.bandwidth, genie=self.genie, seconds=seconds)

    def __str__(self) -> str:
        path = "Genie + registry" if self.genie else "legacy"
        return f"{path:<17}{self.times:<10} bandwidth {'on ' if self.bandwidth else 'off'}"


CASES = tuple(
    Case(times, bandwidth, genie)
    for genie in (False, True)
    for times in ("constant", "lognormal")
    for bandwidth in (False, True)
)  # type: ignore[var-annotated]


def rate(count: Callable[[], int]) -> float:
    """Return how many graphExecutes a second of processor time `count` simulates."""
    gc.collect()
    begun = time.process_time()
    done = count()
    return done / (time.process_time() - begun)


def reference(case: Case, seconds: int) -> Callable[[], int]:
    simulation = Simulation(case.scenario(seconds))

    def count() -> int:
        log = simulation.run()
        assert len(log.executes[0]) == len(Execute._fields)
        return len(log.executes)

    return count


def spread(values: Sequence[float], form: str) -> str:
    return " / ".join(format(v, form) for v in (min(values), statistics.median(values), max(values)))


def measure(case: Case, rounds: int, seconds: int) -> str:
    """Take turns and return the row."""
    ours, bare, ratios = [], [], []
    for turn in range(rounds):
        pair = [("bare", Bare(case.scenario(seconds)).run), ("ours", reference(case, seconds))]
        found = {name: rate(count) for name, count in (pair if turn % 2 else pair[::-1])}
        ours.append(found["ours"])
        bare.append(found["bare"])
        ratios.append(found["ours"] / found["bare"])
    return f"{case!s} {spread(ours, ',.0f'):>28} {spread(bare, ',.0f'):>28}   {spread(ratios, '.2f')}"


def same_work(case: Case) -> str:
    """Say that both do the same: how many graphExecutes each finishes in ten minutes."""
    bare = Bare(case.scenario(600)).run()
    column = Execute._fields.index("finished_ns")
    ours = sum(row[column] != NEVER for row in Simulation(case.scenario(600)).run().executes)
    return f"{case!s} {ours:,} by htpsim, {bare:,} bare"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7, help="turns of each pair (default 7)")
    parser.add_argument("--seconds", type=int, default=300, help="simulated seconds a turn (default 300)")
    given = parser.parse_args()
    print(f"Python {platform.python_version()}, SimPy {simpy.__version__}; four instances, two cores, policy sfq")
    print(f"{given.rounds} rounds of {given.seconds} simulated seconds; checks off, records on; min / median / max\n")
    print("The same work, graphExecutes finished in ten simulated minutes without bandwidth:")
    print(*(same_work(case) for case in CASES if not case.bandwidth), "", sep="\n")
    print(f"{'graphExecutes a second of processor time':<42} {'htpsim':>28} {'bare SimPy':>28}   ratio")
    for case in CASES:
        print(measure(case, given.rounds, given.seconds), flush=True)
    print("\nThe bare loop models no bandwidth: where it is on, htpsim does more for each graphExecute.")


if __name__ == "__main__":
    main()
