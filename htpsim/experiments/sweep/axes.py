"""What is varied: keys with their values, and the points that a design makes of them."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from htpsim.errors import ScenarioError, unknown_name

CHOICES: Final = ("variant", "case", "option")
"""Axes that choose among what a file offers, instead of setting a key."""
DESIGNS: Final = ("grid", "list", "lhs", "sobol")
POINTS_MAX: Final = 1_000_000
_RANGE: Final = re.compile(r"^\s*(-?[\d.]+)\s*([A-Za-z/%]*)\s*\.\.\s*(-?[\d.]+)\s*([A-Za-z/%]*)\s*(?:/\s*(\d+))?\s*$")

Point = tuple[str, ...]
"""A value, as it is written in a scenario file, for each axis."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One key and the values it takes."""

    key: str
    values: tuple[str, ...] = ()
    """empty for a range"""
    low: float = 0.0
    high: float = 0.0
    unit: str = ""
    steps: int = 0
    """how many values a grid takes of a range; 0 where none was said"""
    whole: bool = False
    """whether a range is of whole numbers"""

    @property
    def is_range(self) -> bool:
        """Whether it has ends instead of values."""
        return not self.values

    def at(self, share: float) -> str:
        """Return the value at a share of the way, 0 to 1."""
        if self.values:
            return self.values[min(len(self.values) - 1, int(share * len(self.values)))]
        value = self.low + share * (self.high - self.low)
        if self.whole:
            value = min(self.high, math.floor(self.low + share * (self.high - self.low + 1)))
        return f"{value:.12g}{self.unit}"

    def grid(self) -> tuple[str, ...]:
        """Return the values that a grid takes."""
        if self.values:
            return self.values
        spread = [self.low + i * (self.high - self.low) / (self.steps - 1) for i in range(self.steps)]
        return tuple(dict.fromkeys(f"{round(x) if self.whole else x:.12g}{self.unit}" for x in spread))


def parse_axis(text: str) -> Axis:
    """Read an axis: ``KEY=a,b,c``, ``KEY=low..high`` or ``KEY=low..high/steps``.

    Raises
    ------
    ScenarioError
        When it is none of these.

    Examples
    --------
    >>> parse_axis("guard.slots=1,2").values, parse_axis("instances.weight=[1,1],[4,1]").values
    (('1', '2'), ('[1,1]', '[4,1]'))
    >>> parse_axis("device.evict=0us..400us/5").grid()
    ('0us', '100us', '200us', '300us', '400us')
    """
    key, sign, rest = text.partition("=")
    key = key.strip()
    if not (key and sign and rest.strip()):
        raise ScenarioError(f"--vary: got '{text}', expected KEY=a,b,c or KEY=low..high, such as guard.slots=1,2")
    found = _RANGE.match(rest)
    if found is None:
        return Axis(key, _split(rest))
    low, unit_low, high, unit, steps = found.groups()
    if unit_low and unit and unit_low != unit:
        raise ScenarioError(f"--vary: {key}: got ends in {unit_low} and {unit}, expected one unit for both")
    try:
        ends = float(low), float(high)
    except ValueError:
        raise ScenarioError(f"--vary: {key}: got {low}..{high}, expected two numbers") from None
    if not ends[0] < ends[1] or steps == "1":
        raise ScenarioError(f"--vary: {key}: got {rest.strip()}, expected low below high, and two steps or more")
    if steps and int(steps) > POINTS_MAX:
        raise ScenarioError(f"--vary: {key}: got {steps} steps, expected at most {POINTS_MAX:,}")
    return Axis(key, (), *ends, unit or unit_low, int(steps or 0), "." not in low + high and not (unit or unit_low))


def _split(text: str) -> tuple[str, ...]:
    """Split at commas outside brackets and quotes."""
    parts, depth, quoted, start = [], 0, "", 0
    for i, sign in enumerate(text):
        if quoted:
            quoted = "" if sign == quoted else quoted
        elif sign in "\"'":
            quoted = sign
        elif sign in "[{":
            depth += 1
        elif sign in "]}":
            depth -= 1
        elif sign == "," and not depth:
            parts.append(text[start:i])
            start = i + 1
    return tuple(dict.fromkeys(part.strip() for part in [*parts, text[start:]] if part.strip()))


def points_of(axes: Sequence[Axis], design: str = "grid", count: int = 0, seed: int = 0) -> list[Point]:
    """Return the points of a design.

    Parameters
    ----------
    axes
        One or more; every key once.
    design
        "grid": every combination; "list": the axes side by side, like the columns of a table; "lhs": a Latin
        hypercube, "sobol": a scrambled Sobol sequence, both over ranges and lists alike.
    count
        Points of a sample.
    seed
        Of a sample.

    Raises
    ------
    ScenarioError
        When the axes do not fit the design.

    Examples
    --------
    >>> points_of([parse_axis("a=1,2"), parse_axis("b=x,y")])
    [('1', 'x'), ('1', 'y'), ('2', 'x'), ('2', 'y')]
    >>> points_of([parse_axis("a=1,2"), parse_axis("b=x,y")], "list")
    [('1', 'x'), ('2', 'y')]
    """
    _refuse_unfit(axes, design, count)
    if design == "grid":
        return list(itertools.product(*(axis.grid() for axis in axes)))
    if design == "list":
        return list(zip(*(axis.grid() for axis in axes), strict=True))
    from scipy.stats import qmc

    if design == "lhs":
        shares = qmc.LatinHypercube(len(axes), rng=seed).random(count)
    else:
        shares = qmc.Sobol(len(axes), rng=seed).random_base2(max(0, (count - 1).bit_length()))[:count]
    return [tuple(axis.at(float(share)) for axis, share in zip(axes, row, strict=True)) for row in shares]


def _refuse_unfit(axes: Sequence[Axis], design: str, count: int) -> None:
    problems = []
    if not axes:
        problems.append("--vary: got none, expected at least one, such as --vary guard.slots=1,2")
    if design not in DESIGNS:
        problems.append(unknown_name("--design", design, DESIGNS))
    twice = [axis.key for i, axis in enumerate(axes) if axis.key in {other.key for other in axes[:i]}]
    problems += [f"--vary: {key}: got it twice, expected every key once" for key in dict.fromkeys(twice)]
    if design in ("grid", "list"):
        problems += [
            f"--vary: {axis.key}: got a range without steps, expected {axis.at(0)}..{axis.at(1)}/STEPS for a {design}"
            for axis in axes
            if axis.is_range and not axis.steps
        ]
    if design == "list" and not problems and len({len(axis.grid()) for axis in axes}) > 1:
        lengths = ", ".join(f"{axis.key} {len(axis.grid())}" for axis in axes)
        problems.append(f"--design list: got {lengths} values, expected as many for each")
    if design == "grid" and not problems and math.prod(len(axis.grid()) for axis in axes) > POINTS_MAX:
        problems.append(f"--vary: got more than {POINTS_MAX:,} points, expected fewer")
    if design in ("lhs", "sobol") and not 0 < count <= POINTS_MAX:
        problems.append(f"--points: got {count}, expected 1 to {POINTS_MAX:,} for a sample")
    if problems:
        raise ScenarioError(*problems)
