"""Which assumption would change the sign of an answer, as tables and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rich.console import RenderableType
from rich.text import Text

from htpsim.experiments.sign_grid import METRICS, NOISE, Difference, SignGrid
from htpsim.report.cells import stack, table
from htpsim.units import NS_PER_S

_NAMES: Final = {
    "overall.tokens_per_s": "tokens/s",
    "overall.itl.p99": "ITL p99",
    "overall.ttft.mean": "TTFT mean",
}


def percent(difference: Difference) -> str:
    """Write a difference as a signed percentage; "0" where it is no larger than noise.

    >>> percent(Difference(-0.0561)), percent(Difference(0.001)), percent(Difference(None))
    ('-5.6 %', '0', 'n/a')
    """
    if difference.share is None:
        return "n/a"
    if not difference.sign:
        return "0"
    return f"{100 * difference.share:+,.1f} %"


def sign_tables(grid: SignGrid, titles: Mapping[str, str]) -> RenderableType:
    """Return, a metric, how the variants differ from the first as configured and under each option.

    Parameters
    ----------
    grid
        What the shorter runs gave.
    titles
        Words for an option, by "NAME.OPTION".
    """
    flips = {(flip.option, flip.variant, flip.metric) for flip in grid.flips()}
    parts: list[RenderableType] = [Text("Which assumption would change a sign?", style="bold")]
    for metric in METRICS:
        rows = []
        for option in grid.options:
            cells = [
                percent(grid.differences[option, variant, metric])
                + (" !" if (option, variant, metric) in flips else "")
                for variant in grid.variants
            ]
            rows.append([titles.get(option, option), *cells])
        parts.append(table(f"{_NAMES[metric]}, difference from {grid.first}", ["", *grid.variants], rows, fixed=False))
    said = (
        f"{grid.replications} replications of {grid.duration_ns / NS_PER_S:g} s of the first case; below "
        f"{100 * NOISE:g} % counts as 0; ! marks a sign other than as configured"
    )
    return stack(*parts, Text(said, style="dim"))


def grid_dict(grid: SignGrid) -> dict[str, Any]:
    """Return the grid in JSON form."""
    return {
        "first": grid.first,
        "duration_ns": grid.duration_ns,
        "replications": grid.replications,
        "differences": [
            {"option": option, "variant": variant, "metric": metric, "share": found.share, "sign": found.sign}
            for (option, variant, metric), found in grid.differences.items()
        ],
    }
