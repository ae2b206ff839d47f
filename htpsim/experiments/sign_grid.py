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
FRACTION: Final = 4
REPLICATIONS: Final = 2
NOISE: Final = 0.01
"""A difference below this share is called none: short replications cannot tell it from chance."""

UNCHANGED: Final = "as configured"


@dataclass(frozen=True, slots=True)
class Difference:
    """How a variant differs from the first one in one metric, as a share of it.

    >>> Difference((-0.03, -0.01)).sign, Difference((-0.03, 0.001)).sign, Difference((0.004, 0.006)).sign
    (-1, 0, 0)
    """

    shares: tuple[float, ...]
    """(variant - first) / first, one a replication; empty where either is n/a"""

    @property
    def share(self) -> float | None:
        """The mean over replications."""
        return sum(self.shares) / len(self.shares) if self.shares else None

    @property
    def sign(self) -> int:
        """1 or -1 where the mean is worth the name and every replication agrees with it; otherwise 0."""
        share = self.share
        if share is None or abs(share) < NOISE or any(one * share <= 0 for one in self.shares):
            return 0
        return int(math.copysign(1, share))


@dataclass(frozen=True, slots=True)
class Flip:
    """An assumption that changes the sign of a difference."""

    option: str
    variant: str
    metric: str
    configured: Difference
    under_option: Difference

    @property
    def reverses(self) -> bool:
        """Whether better becomes worse or worse better; otherwise a difference vanishes or comes about."""
        return self.configured.sign * self.under_option.sign < 0


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


def shortened_ns(duration_ns: int) -> int:
    """Return how long to look where a full run would take too long.

    >>> [shortened_ns(s * NS_PER_S) // NS_PER_S for s in (10, 60, 600)]
    [10, 30, 150]
    """
    return min(duration_ns, max(SHORTEST_NS, duration_ns // FRACTION))


def grid_tasks(resolve: Callable[[str, str], Scenario], variants: Sequence[str], options: Sequence[str]) -> list[Task]:
    """Return the shortened runs: the first variants under every option and as configured.

    `resolve` is given a variant and an option, or a variant and UNCHANGED.
    """
    tasks = []
    for option in (UNCHANGED, *options):
        for variant in variants[:VARIANTS_MAX]:
            scenario = resolve(variant, option)
            duration_ns = shortened_ns(scenario.run.duration_ns)
            replications = min(REPLICATIONS, scenario.run.replications)
            short = replace(scenario, run=replace(scenario.run, duration_ns=duration_ns))
            tasks += [Task((option, variant), short, r) for r in range(replications)]
    return tasks


def read_grid(tasks: Sequence[Task], outcomes: Sequence[Outcome]) -> SignGrid:
    """Read the differences off the outcomes of `tasks`; none where other instances started than configured."""
    summaries: dict[tuple[str, str], list[Summary]] = {}
    for outcome in outcomes:
        option, variant = outcome.key
        summaries.setdefault((option, variant), []).append(outcome.summary)
    options = list(dict.fromkeys(option for option, _ in summaries))
    first, *variants = dict.fromkeys(variant for _, variant in summaries)
    differences = {}
    for option in options:
        for variant in variants:
            one, other = summaries[option, first], summaries[option, variant]
            absent = {tuple(run.failed) for run in (*summaries[UNCHANGED, first], *one, *other)}
            alike = len(absent) == 1
            for metric in METRICS:
                differences[option, variant, metric] = difference_of(one, other, metric) if alike else Difference(())
    return SignGrid(
        options, variants, first, tasks[0].scenario.run.duration_ns, len(summaries[UNCHANGED, first]), differences
    )


def difference_of(first: Sequence[Summary], other: Sequence[Summary], metric: str) -> Difference:
    """Compare replication by replication: both saw the same draws."""
    shares = []
    for a, b in zip(first, other, strict=True):
        x, y = a.metric(metric).value, b.metric(metric).value
        if x is None or y is None or not x:
            return Difference(())
        shares.append((y - x) / x)
    return Difference(tuple(shares))
