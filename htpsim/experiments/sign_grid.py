"""Which assumption would change the sign of an answer: every option of a file, one at a time, in shorter runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from htpsim.experiments.runner import Outcome, Task
from htpsim.results.summary import Summary
from htpsim.spec import Scenario
from htpsim.units import NS_PER_S

METRICS: Final = ("overall.tokens_per_s", "overall.itl.p99", "overall.ttft.mean")
"""What the grid looks at; of the first more is better, of the others less."""

VARIANTS_MAX: Final = 4
"""The grid asks about the first variants of a file: the one compared with and three others."""

SHORTEST_NS: Final = 30 * NS_PER_S
FRACTION: Final = 10
REPLICATIONS: Final = 2
NOISE: Final = 0.01
"""A difference below this share is called none: two short replications cannot tell it from chance."""

UNCHANGED: Final = "as configured"


@dataclass(frozen=True, slots=True)
class Difference:
    """How a variant differs from the first one in one metric, as a share of it."""

    share: float | None
    """(variant - first) / first, the mean over replications; None where either is n/a"""

    @property
    def sign(self) -> int:
        """1, -1, or 0 where there is no difference worth the name."""
        if self.share is None or abs(self.share) < NOISE:
            return 0
        return int(math.copysign(1, self.share))


@dataclass(frozen=True, slots=True)
class Flip:
    """An assumption that changes the sign of a difference."""

    option: str
    variant: str
    metric: str
    configured: Difference
    under_option: Difference


@dataclass(frozen=True, slots=True)
class SignGrid:
    """Differences from the first variant, by (option, variant, metric)."""

    options: list[str]
    variants: list[str]
    """without the first"""
    first: str
    duration_ns: int
    replications: int
    differences: dict[tuple[str, str, str], Difference]

    def flips(self) -> list[Flip]:
        """Return the differences whose sign an option turns around, makes vanish or brings about."""
        found = []
        for option in self.options:
            for variant in self.variants:
                for metric in METRICS:
                    configured = self.differences[UNCHANGED, variant, metric]
                    changed = self.differences[option, variant, metric]
                    known = configured.share is not None and changed.share is not None
                    if option != UNCHANGED and known and configured.sign != changed.sign:
                        found.append(Flip(option, variant, metric, configured, changed))
        return found


def grid_tasks(
    resolve: Callable[[str, Sequence[str]], Scenario], variants: Sequence[str], options: Sequence[str]
) -> list[Task]:
    """Return the shortened runs: the first variants under every option and as configured."""
    tasks = []
    for option in (UNCHANGED, *options):
        for variant in variants[:VARIANTS_MAX]:
            scenario = resolve(variant, [] if option == UNCHANGED else [option])
            duration_ns = min(scenario.run.duration_ns, max(SHORTEST_NS, scenario.run.duration_ns // FRACTION))
            replications = min(REPLICATIONS, scenario.run.replications)
            short = replace(scenario, run=replace(scenario.run, duration_ns=duration_ns))
            tasks += [Task((option, variant), short, r) for r in range(replications)]
    return tasks


def read_grid(tasks: Sequence[Task], outcomes: Sequence[Outcome]) -> SignGrid:
    """Read the differences off the outcomes of `tasks`."""
    summaries: dict[tuple[str, str], list[Summary]] = {}
    for outcome in outcomes:
        option, variant = outcome.key
        summaries.setdefault((option, variant), []).append(outcome.summary)
    options = list(dict.fromkeys(option for option, _ in summaries))
    first, *variants = dict.fromkeys(variant for _, variant in summaries)
    differences = {
        (option, variant, metric): _difference(summaries[option, first], summaries[option, variant], metric)
        for option in options
        for variant in variants
        for metric in METRICS
    }
    return SignGrid(
        options, variants, first, tasks[0].scenario.run.duration_ns, len(summaries[UNCHANGED, first]), differences
    )


def _difference(first: Sequence[Summary], other: Sequence[Summary], metric: str) -> Difference:
    """Compare replication by replication: both saw the same draws."""
    shares = []
    for a, b in zip(first, other, strict=True):
        x, y = a.metric(metric).value, b.metric(metric).value
        if x is None or y is None or not x:
            return Difference(None)
        shares.append((y - x) / x)
    return Difference(sum(shares) / len(shares))
