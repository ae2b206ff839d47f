"""How many replications an answer needs: more of them until every interval is narrow enough, or a budget is spent."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from htpsim.experiments.change import HEADLINES, change
from htpsim.results.replications import Estimate, estimate
from htpsim.results.summary import Summary

BUDGET: Final = 30
"""Replications at most, unless told otherwise."""
FEWEST: Final = 3
"""Replications before an interval is believed: with two, it is as wide as chance will have it."""


@dataclass(frozen=True, slots=True)
class Precision:
    """How narrow intervals are to be, as a share of the figure, and how many replications that may cost."""

    target: float
    budget: int = BUDGET


@dataclass(frozen=True, slots=True)
class Reached:
    """What the widest interval came to."""

    target: float
    widest: float | None
    """half-width as a share of its figure; None where no figure has an interval"""
    figure: str
    """which one that is"""
    replications: int

    @property
    def enough(self) -> bool:
        """Whether every interval is as narrow as was asked."""
        return self.widest is not None and self.widest <= self.target

    def __str__(self) -> str:
        if self.widest is None:
            return f"{self.replications} replications; no figure has an interval"
        said = f"{self.replications} replications; the widest interval is ±{100 * self.widest:.2g} % ({self.figure})"
        return said if self.enough else f"{said}, not the {100 * self.target:g} % asked for: the budget is spent"


def figures_of(summaries: Sequence[Summary], name: str) -> Iterable[tuple[str, Estimate]]:
    """Yield the headline figures of one variant, each with its half-width as a share of it."""
    for words, pick in HEADLINES.values():
        found = estimate([pick(summary) for summary in summaries])
        if found.mean and found.half_width is not None:
            yield f"{words} of {name}", replace(found, half_width=found.half_width / abs(found.mean))


def changes_of(first: Sequence[Summary], other: Sequence[Summary], name: str) -> Iterable[tuple[str, Estimate]]:
    """Yield by how much a variant differs from the first in the headline figures."""
    for words, pick in HEADLINES.values():
        found = change(first, other, pick).estimate
        if found.half_width is not None:
            yield f"{words} of {name}, difference", found


def judge(figures: Iterable[tuple[str, Estimate]], target: float, replications: int) -> Reached:
    """Return the widest interval."""
    widths = [(found.half_width or 0.0, name) for name, found in figures]
    if not widths:
        return Reached(target, None, "", replications)
    widest, name = max(widths)
    return Reached(target, widest, name, replications)


def next_count(reached: Reached, budget: int) -> int:
    """Return how many replications in all to have next: what the widest interval suggests, at most twice as many.

    >>> next_count(Reached(0.02, 0.03, "TTFT", 4), 30), next_count(Reached(0.02, 0.01, "TTFT", 4), 30)
    (8, 4)
    >>> next_count(Reached(0.02, 0.2, "TTFT", 10), 15)
    15
    """
    n = reached.replications
    if n < FEWEST:
        return min(FEWEST, budget)
    if reached.enough or reached.widest is None or n >= budget:
        return n
    suggested = math.ceil(n * (reached.widest / reached.target) ** 2)
    return min(budget, max(n + 1, min(suggested, 2 * n)))


def extend(have: int, precision: Precision, more: Callable[[range], None], look: Callable[[int], Reached]) -> Reached:
    """Run more replications until the intervals are narrow enough or the budget is spent.

    It ends sooner where an interval is narrow by chance, so a 95 % interval covers a little less in the end:
    docs/answers.md has figures.

    Parameters
    ----------
    have
        Replications there are already.
    precision
        What is asked.
    more
        Runs these replications.
    look
        Judges the given number of them.
    """
    reached = look(have)
    while (wanted := next_count(reached, precision.budget)) > have:
        more(range(have, wanted))
        have = wanted
        reached = look(have)
    return reached
