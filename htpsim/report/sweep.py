"""A sweep as a table: a row a point, each figure with its interval over the replications."""

from __future__ import annotations

from typing import Any, Final

from rich.console import RenderableType
from rich.text import Text

from htpsim.experiments.change import HEADLINES
from htpsim.experiments.sweep import Sweep
from htpsim.report.cells import Footnotes, estimated, stack, table

ROWS: Final = 40
"""Points shown in the terminal; the exported table has them all."""


def sweep_page(sweep: Sweep) -> RenderableType:
    """Return the points of a sweep, the first of them where there are many."""
    notes = Footnotes()
    estimates = sweep.estimates()
    shown = list(estimates.items())[:ROWS]
    rows = [
        [" ".join(sweep.points[point]), *(estimated(figure, notes) for figure in figures)] for point, figures in shown
    ]
    refused = {one.run.point: one.why for one in sweep.found if one.why}
    runs = len(sweep.found)
    said = f"{len(sweep.points):,} points, {runs:,} runs; times in ms, memory in GiB, ± half of the 95 % interval"
    if len(estimates) > ROWS:
        said += f"; the first {ROWS} of {len(estimates):,}: --table FILE writes all"
    return stack(
        table(f"{sweep.title}: {', '.join(sweep.axes)}", ["point", *map(words_of, sweep.metrics)], rows, fixed=False),
        Text(said, style="dim"),
        *notes.lines(),
        *(Text(f"! {' '.join(sweep.points[point])}: {why}", style="yellow") for point, why in refused.items()),
    )


def words_of(path: str) -> str:
    """Return what a figure is called.

    >>> words_of("overall.itl.p99"), words_of("clients.vlm0.ttft.p50")
    ('ITL p99', 'vlm0.ttft.p50')
    """
    return HEADLINES[path][0] if path in HEADLINES else path.removeprefix("overall.").removeprefix("clients.")


def sweep_dict(sweep: Sweep) -> dict[str, Any]:
    """Return every run in JSON form."""
    return {
        "axes": list(sweep.axes),
        "metrics": list(sweep.metrics),
        "runs": [
            {
                "point": one.run.point,
                "replication": one.run.replication,
                "values": dict(zip(sweep.axes, sweep.points[one.run.point], strict=True)),
                "figures": {
                    path: {"value": figure.value, "n": figure.n, "why": figure.why}
                    for path, figure in zip(sweep.metrics, one.figures, strict=False)
                },
                "why": one.why,
            }
            for one in sweep.found
        ],
    }
