"""Bounds that are to be kept, and goals, as one writes them: ``itl.p99 <= 80ms``, ``min vit.mean``."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, fields
from typing import Final

from htpsim.errors import ScenarioError
from htpsim.results.metric import unit_of
from htpsim.results.paths import metric_fault
from htpsim.results.summary import Summary
from htpsim.units import parse_bytes, parse_time

_GROUPS: Final = frozenset(field.name for field in fields(Summary))
"""What a path in a summary may begin with; one that begins otherwise is of all clients together."""
_BOUND: Final = re.compile(r"^\s*([\w.]+)\s*(<=|>=)\s*(\S.*?)\s*$")


@dataclass(frozen=True, slots=True)
class Demand:
    """A bound that is to be kept, or, without a limit, a goal."""

    path: str
    less: bool
    """whether less is better"""
    limit: float | None = None
    text: str = ""

    def kept_by(self, value: float | None) -> bool:
        """Tell whether a figure keeps the bound; a missing one does not."""
        if value is None or self.limit is None:
            return self.limit is None
        return value <= self.limit if self.less else value >= self.limit

    def short_by(self, value: float | None) -> float:
        """Return by how much a figure misses the bound, as a share of it."""
        if self.kept_by(value):
            return 0.0
        return 1e6 if value is None else abs(value - (self.limit or 0.0)) / max(abs(self.limit or 0.0), 1e-9)

    def loss(self, value: float | None) -> float:
        """Return a figure so that less is better."""
        return float("inf") if value is None else value if self.less else -value


def parse_bound(text: str) -> Demand:
    """Read a bound such as ``itl.p99 <= 80ms`` or ``clients.vlm0.tokens_per_s >= 5``.

    Raises
    ------
    ScenarioError
        When it is none.

    Examples
    --------
    >>> parse_bound("itl.p99 <= 80ms").path, parse_bound("itl.p99 <= 80ms").limit
    ('overall.itl.p99', 80000000.0)
    """
    found = _BOUND.match(text)
    if found is None:
        raise ScenarioError(f"--keep: got '{text}', expected FIGURE <= VALUE or FIGURE >= VALUE, as in itl.p99 <= 80ms")
    path, sign, value = found.groups()
    path = _path(path, "--keep")
    return Demand(path, sign == "<=", _limit(path, value), f"{path.removeprefix('overall.')} {sign} {value}")


def parse_goal(text: str) -> Demand:
    """Read a goal: a figure, by itself or after "min" or "max"; of rates more is better, of all others less.

    >>> parse_goal("vit.mean").less, parse_goal("tokens_per_s").less, parse_goal("max vit.mean").less
    (True, False, False)
    """
    words = text.split()
    if not 1 <= len(words) <= 2 or (len(words) == 2 and words[0] not in ("min", "max")):
        raise ScenarioError(
            f"--goal: got '{text}', expected a figure such as vit.mean, 'min vit.mean' or 'max tokens_per_s'"
        )
    path = _path(words[-1], "--goal")
    return Demand(path, words[0] == "min" if len(words) == 2 else not path.endswith("_per_s"), None, text)


def _path(path: str, option: str) -> str:
    whole = path if path.partition(".")[0] in _GROUPS else f"overall.{path}"
    fault = metric_fault(whole)
    if fault:
        raise ScenarioError(f"{option}: {fault}")
    return whole


def _limit(path: str, value: str) -> float:
    unit = unit_of(path)
    try:
        if unit == "ns":
            return float(parse_time(value))
        if unit == "bytes" and not value.isdecimal():
            return float(parse_bytes(value))
        limit = float(value.removesuffix("%")) / (100 if value.endswith("%") else 1)
        if not math.isfinite(limit):
            raise ValueError(value)
    except ValueError as error:
        told = str(error) if unit in ("ns", "bytes") else f"got '{value}', expected a number"
        raise ScenarioError(f"--keep: {path}: {told}") from None
    return limit
