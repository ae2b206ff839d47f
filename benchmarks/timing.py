"""Taking turns: everything that is compared runs once a round, in one process, and what counts is the ratio in a round.

The machine may be busy with other things; within a round all suffer alike. Times are of the processor, not of the wall,
except where threads are what is measured.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping, Sequence

Count = Callable[[], int]
"""Does the work that is timed and returns how many graphExecutes that was."""
Prepare = Callable[[], Count]
"""Makes it ready, which is not timed."""


def rate(prepare: Prepare, clock: Callable[[], float] = time.process_time) -> float:
    """Return how many graphExecutes a second are simulated."""
    count = prepare()
    gc.collect()
    begun = clock()
    done = count()
    return done / (clock() - begun)


def take_turns(
    contenders: Mapping[str, Prepare], rounds: int, clock: Callable[[], float] = time.process_time
) -> dict[str, list[float]]:
    """Return the rates of each, round by round; every second round goes the other way round."""
    found: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(rounds):
        names = list(contenders)
        for name in names if turn % 2 else reversed(names):
            found[name].append(rate(contenders[name], clock))
    return found


def ratios(rates: Sequence[float], base: Sequence[float]) -> list[float]:
    """Return the ratio within each round."""
    return [mine / theirs for mine, theirs in zip(rates, base, strict=True)]


def spread(values: Sequence[float], form: str) -> str:
    """Return least / median / greatest."""
    return " / ".join(format(v, form) for v in (min(values), statistics.median(values), max(values)))


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
