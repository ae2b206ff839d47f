"""The geometry of the report's charts: axes, ticks and paths in thousandths of the plotting area.

A chart is an SVG stretched over its place, so that it is as wide as the window; its labels are text beside it, so that
they keep their size.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from htpsim.results.metric import IntArray

SIDE: Final = 1000
"""Units of a plotting area, across and down."""
_STEPS: Final = (1.0, 2.0, 2.5, 5.0, 10.0)
_TICKS: Final = 5


class Tick(NamedTuple):
    """A mark on an axis."""

    at: float
    """percent of the axis, from the left or from the top"""
    text: str
    minor: bool = False
    """may be left out where there is little room"""


class Line(NamedTuple):
    """A curve, by its number in the legend."""

    key: str
    name: str
    number: int
    path: str


class Area(NamedTuple):
    """A filled band of a stack."""

    name: str
    kind: str
    path: str


class Level(NamedTuple):
    """A horizontal line with a word on it."""

    at: float
    text: str


@dataclass(slots=True, kw_only=True)
class Figure:
    """A chart, ready to be written."""

    title: str
    x_label: str
    y_label: str
    x: list[Tick]
    y: list[Tick]
    lines: list[Line] = field(default_factory=list)
    areas: list[Area] = field(default_factory=list)
    levels: list[Level] = field(default_factory=list)
    said: str = ""
    """what one sees, in words"""


@dataclass(frozen=True, slots=True)
class Axis:
    """A scale from values to thousandths."""

    low: float
    high: float
    log: bool = False

    def place(self, values: npt.ArrayLike) -> IntArray:
        """Return where values lie, in thousandths, held within the axis."""
        given = np.asarray(values, dtype=np.float64)
        if self.log:
            share = np.log(np.maximum(given, self.low) / self.low) / math.log(self.high / self.low)
        else:
            share = (given - self.low) / (self.high - self.low)
        return np.rint(np.clip(share, 0, 1) * SIDE).astype(np.int64)

    def percent(self, value: float) -> float:
        """Return where a value lies, in percent."""
        return float(self.place([value])[0]) / 10

    def ticks(self) -> list[Tick]:
        """Return round values along the axis, with as many decimals as they need."""
        values = _log_ticks(self.low, self.high) if self.log else _linear_ticks(self.low, self.high)
        texts = [f"{value:,.10g}" for value in values]
        return [Tick(self.percent(v), text, i % 2 == 1) for i, (v, text) in enumerate(zip(values, texts, strict=True))]


def _linear_ticks(low: float, high: float) -> list[float]:
    """Return about five round values.

    >>> _linear_ticks(0, 7.3), _linear_ticks(0, 0.09)
    ([0.0, 2.0, 4.0, 6.0], [0.0, 0.02, 0.04, 0.06, 0.08])
    """
    size = 10.0 ** math.floor(math.log10((high - low) / _TICKS))
    step = next(size * one for one in _STEPS if (high - low) / (size * one) <= _TICKS)
    first = math.ceil(low / step)
    return [round(step * i, 12) for i in range(first, math.floor(high / step + 1e-9) + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    """Return the values 1, 2, 5 times a power of ten, or powers of ten alone where those are many.

    >>> _log_ticks(15, 240), _log_ticks(1, 100_000)[:3]
    ([20.0, 50.0, 100.0, 200.0], [1.0, 10.0, 100.0])
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if len(powers) <= 4 else (1,)
    values = [round(step * 10.0**power, 12) for power in powers for step in steps]
    return [value for value in values if low * (1 - 1e-9) <= value <= high * (1 + 1e-9)]


def axis_of(values: Iterable[IntArray], scale: int) -> Axis:
    """Return an axis for samples: logarithmic where they lie far apart, else from zero."""
    kept = [v for v in values if len(v)]
    low, high = min(int(v.min()) for v in kept) / scale, max(int(v.max()) for v in kept) / scale
    if 0 < 3 * low < high:
        return Axis(low / 1.05, high * 1.05, log=True)
    return Axis(0.0, max(high * 1.05, 1e-6))


def steps(x: IntArray, y: IntArray) -> str:
    """Return the path of a staircase: across to each x at the height before, then to its own height.

    >>> steps(np.array([0, 10, 10, 30]), np.array([5, 5, 8, 9]))
    'M0 5H10V8H30V9'
    """
    return _path(_corners(x, y))


def band(x: IntArray, low: IntArray, high: IntArray) -> str:
    """Return the path around a band of a stack between two staircases over the same x, or "" where it is flat.

    >>> band(np.array([0, 10, 20]), np.array([9, 9, 9]), np.array([5, 4, 4]))
    'M0 5H10V4H20V9H0Z'
    """
    if (low == high).all():
        return ""
    return _path([*_corners(x, high), *_corners(x, low)[::-1]]) + "Z"


def _corners(x: IntArray, y: IntArray) -> list[tuple[int, int]]:
    """Return the corners of a staircase; of those above one another at one x, the first and the last."""
    xs, ys = x.tolist(), y.tolist()
    corners = [(xs[0], ys[0])]
    for i in range(1, len(xs)):
        if ys[i] == ys[i - 1] and i < len(xs) - 1:
            continue
        if corners[-1][0] != xs[i]:
            corners += [(xs[i], ys[i - 1]), (xs[i], ys[i])]
        elif len(corners) > 1 and corners[-2][0] == xs[i]:
            corners[-1] = (xs[i], ys[i])
        else:
            corners.append((xs[i], ys[i]))
    return corners


def _path(corners: list[tuple[int, int]]) -> str:
    parts, (at_x, at_y) = [f"M{corners[0][0]} {corners[0][1]}"], corners[0]
    for x, y in corners[1:]:
        parts += [f"H{x}"] * (x != at_x) + [f"V{y}"] * (y != at_y)
        at_x, at_y = x, y
    return "".join(parts)
