"""Who chooses what a generated scenario is like: hypothesis, which shrinks, or a seeded generator, which is fast.

Also how long a state machine runs: short runs, for a bug in a guard or a registry shows within a few steps.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from hypothesis import settings
from hypothesis import strategies as st

T = TypeVar("T")


class Chooser(Protocol):
    """Something that chooses; what is listed first is the simplest."""

    def of(self, *options: T) -> T:
        """Return one of `options`."""

    def whole(self, least: int, most: int) -> int:
        """Return a whole number from `least` to `most`."""


class Drawn:
    """Chooses by hypothesis."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self.draw = draw

    def of(self, *options: T) -> T:
        """Return one of `options`."""
        chosen: T = self.draw(st.sampled_from(options))
        return chosen

    def whole(self, least: int, most: int) -> int:
        """Return a whole number from `least` to `most`."""
        chosen: int = self.draw(st.integers(least, most))
        return chosen


class Seeded:
    """Chooses by a seeded generator: the same seed, the same choices.

    >>> Seeded(5).whole(1, 100) == Seeded(5).whole(1, 100)
    True
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def of(self, *options: T) -> T:
        """Return one of `options`."""
        return self.random.choice(options)

    def whole(self, least: int, most: int) -> int:
        """Return a whole number from `least` to `most`."""
        return self.random.randint(least, most)


def brief(machine: Any) -> None:
    """Give a state machine a test case of short runs and no deadline: a busy computer is no defect of yours."""
    machine.TestCase.settings = settings(machine.TestCase.settings, stateful_step_count=20, deadline=None)
