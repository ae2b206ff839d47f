"""How figures look in a table: one form a unit, n/a with a numbered reason, and a table that fits the terminal."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Sequence
from typing import Final

from rich import box
from rich.console import Console, Group, JustifyMethod, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from htpsim.results.metric import NOT_AVAILABLE, Metric
from htpsim.results.replications import Estimate
from htpsim.spec import Distribution
from htpsim.units import BYTE_UNITS, NS_PER_MS, format_bytes, format_time

WIDTH: Final = 80
NONE: Final = "-"
_SUPERSCRIPTS: Final = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


class Footnotes:
    """Reasons for missing values, each numbered once."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def mark(self, why: str) -> str:
        """Return the marked ``n/a`` for a reason."""
        if not why:
            return NOT_AVAILABLE
        if why not in self.reasons:
            self.reasons.append(why)
        return NOT_AVAILABLE + str(self.reasons.index(why) + 1).translate(_SUPERSCRIPTS)

    def lines(self) -> list[Text]:
        """Return one line a reason."""
        return [
            Text(f"{str(i).translate(_SUPERSCRIPTS)} {why}", style="dim") for i, why in enumerate(self.reasons, start=1)
        ]


def number(value: int | float, unit: str, *, like: int | float | None = None) -> str:
    """Write a value the way tables do, without its unit: times in ms, bytes in GiB, shares in percent.

    Parameters
    ----------
    value, unit
        As in a metric.
    like
        Value whose number of decimals is used instead of its own.

    Examples
    --------
    >>> number(178_800_000, "ns"), number(0.0312, "share"), number(6_335_076_761, "bytes")
    ('178.8', '3.1', '5.90')
    >>> number(1_401_300_000, "ns"), number(43_000, "ns"), number(7, "ns"), number(43_000, "ns", like=178_800_000)
    ('1,401', '0.043', '<0.001', '0.0')
    """
    scale = {"ns": NS_PER_MS, "bytes": BYTE_UNITS["GiB"], "share": 0.01}.get(unit, 1)
    shown, model = value / scale, (value if like is None else like) / scale
    if not value and like is None:
        return "0"
    if unit == "ns" and like is None and abs(shown) < 0.001:
        return "<0.001"
    return f"{shown:,.{_decimals(model, unit)}f}"


def _decimals(value: float, unit: str) -> int:
    """Return how many decimals leave about four figures, as far as the unit deserves them."""
    if unit == "count":
        return int(value != int(value))
    if unit in {"bytes", "share"}:
        return 2 if unit == "bytes" else 1
    size = abs(value)
    if size >= 1000:
        return 0
    if size >= (1 if unit == "ns" else 10):
        return 1
    return 3 if unit == "ns" else 2


def cell(metric: Metric, notes: Footnotes) -> str:
    """Write a metric, or why there is none."""
    return notes.mark(metric.why) if metric.value is None else number(metric.value, metric.unit)


def estimated(estimate: Estimate, notes: Footnotes) -> str:
    """Write a figure over replications with the half-width of its interval, unless they all agree."""
    if estimate.mean is None:
        return notes.mark(estimate.why)
    mean = number(estimate.mean, estimate.unit)
    if not estimate.half_width:
        return mean
    return f"{mean}±{number(estimate.half_width, estimate.unit, like=estimate.mean)}"


def value_text(value: object, unit: str) -> str:
    """Write the value of a parameter.

    >>> value_text(200_000, "ns"), value_text(None, "bytes"), value_text((), ""), value_text(True, "")
    ('200 us', 'none', 'none', 'yes')
    """
    if value is None or value == ():
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float) and unit:
        return format_time(value) if unit == "ns" else format_bytes(value) + "/s" * (unit == "bytes_per_s")
    if isinstance(value, Distribution):
        mean = format_time(value.expected) if unit == "ns" else f"{value.expected:,.1f}"
        return f"{value.kind}, mean {mean}"
    return str(value)


def table(
    title: str, headers: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1, fixed: bool = True
) -> Table:
    """Return a table whose first `left` columns are names, the first not broken if `fixed`, and the others figures."""
    made = Table(
        title=Text(title, style="bold") if title else None,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        show_edge=False,
    )
    for i, header in enumerate(headers):
        justify: JustifyMethod = "left" if i < left else "right"
        made.add_column(Text(header), justify=justify, overflow="fold", no_wrap=not i and fixed)
    for row in rows:
        made.add_row(*(Text(text) for text in row))
    return made


def stack(*parts: RenderableType | None) -> Group:
    """Return renderables one below another, a line apart where a table begins, leaving out what is None."""
    kept = [part for part in parts if part is not None]
    apart = [isinstance(part, Table | Group) and i > 0 for i, part in enumerate(kept)]
    return Group(*(Padding(part, (1, 0, 0, 0)) if gap else part for part, gap in zip(kept, apart, strict=True)))


def to_text(renderable: RenderableType, width: int = WIDTH) -> str:
    """Return what a terminal of `width` columns would show, without colour.

    >>> to_text(Text("one two"), width=4)
    'one\\ntwo\\n'
    """
    console = Console(file=io.StringIO(), width=width, color_system=None, force_terminal=False, legacy_windows=False)
    console.print(renderable)
    file = console.file
    assert isinstance(file, io.StringIO)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines()) + "\n"


def console(*, stderr: bool = False) -> Console:
    """Return a console that is never wider than 80 columns and obeys NO_COLOR."""
    made = Console(stderr=stderr, no_color=bool(os.environ.get("NO_COLOR")), highlight=False)
    if not 0 < made.width <= WIDTH:  # some programs set COLUMNS to 0
        made = Console(stderr=stderr, width=WIDTH, no_color=made.no_color, highlight=False)
    return made
