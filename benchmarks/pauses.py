"""How long an instance alone should pause: the time of its graphs alone over their time among the other instances.

Run with ``python -m benchmarks.pauses --rounds 16 genie``. In each round the scenario runs once, and one of its
instances alone once with each mean pause, in an order that turns; the table in docs/trust.md is of two such runs.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from statistics import mean, median
from typing import Final

from benchmarks.timing import markdown
from benchmarks.trust import OTHERS, scenarios
from benchmarks.trust_tables import VARIANTS, percent
from htpsim.live.engine import run_live
from htpsim.live.runs import bench_of
from htpsim.live.solo import alone
from htpsim.results.columns import NEVER, Execute
from htpsim.results.log import RunLog
from htpsim.spec import Scenario, exponential
from htpsim.units import NS_PER_MS, format_time

PAUSES_NS: Final = (1, 50 * NS_PER_MS, 150 * NS_PER_MS)
"""Means of the pauses; of the first nothing is left."""
ALONE_NS: Final = 1_500 * NS_PER_MS
WARMUP_NS: Final = 400 * NS_PER_MS


def times_of(log: RunLog) -> dict[str, float]:
    """Return the mean time on the core of each graph of a run, after its warm-up [ns]."""
    found: dict[str, list[int]] = {}
    for row in map(Execute._make, log.executes):
        if row.returned_ns != NEVER and row.called_ns >= log.start_ns:
            found.setdefault(log.graphs[row.graph], []).append(row.run_ns)
    return {name: mean(values) for name, values in found.items()}


def pausing(scenario: Scenario, pause_ns: int) -> Scenario:
    """Return the scenario of one instance alone that pauses so long, on average."""
    made = alone(scenario, ALONE_NS)[0]
    one = made.instances[0]
    return replace(made, instances=(replace(one, arrivals=replace(one.arrivals, think=exponential(pause_ns))),))


def main() -> int:
    """Run the rounds and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenario", choices=(*VARIANTS, *OTHERS), metavar="NAME", help=", ".join((*VARIANTS, *OTHERS)))
    parser.add_argument("--rounds", type=int, default=16, help="default 16")
    given = parser.parse_args()
    bench = bench_of("onnx")
    together = bench.prepare(scenarios("2.5s", [given.scenario])[given.scenario])
    together = replace(together, run=replace(together.run, warmup_ns=WARMUP_NS))
    jobs = [together, *(pausing(together, pause_ns) for pause_ns in PAUSES_NS)]
    errors: dict[tuple[str, int], list[float]] = {}
    for number in range(given.rounds):
        times = {}
        for at in range(len(jobs)):
            which = (number + at) % len(jobs)
            times[which] = times_of(run_live(jobs[which], bench, number).log)
        for which, pause_ns in enumerate(PAUSES_NS, start=1):
            for name in times[0].keys() & times[which].keys():
                errors.setdefault((name, pause_ns), []).append(times[which][name] / times[0][name] - 1)
    rows = [
        [name, format_time(pause_ns), percent(median(each)), percent(median(map(abs, each))), str(len(each))]
        for (name, pause_ns), each in sorted(errors.items())
    ]
    print(markdown(["graph", "mean pause", "alone / together - 1, median", "median of its size", "rounds"], rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
