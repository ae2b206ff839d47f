"""Which assumption would change the sign of an answer, as tables and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rich.console import RenderableType
from rich.text import Text

from htpsim.experiments.sign_grid import METRICS, NOISE, UNCHANGED, Difference, SignGrid
from htpsim.report.cells import stack, table
from htpsim.units import NS_PER_S

_NAMES: Final = {
    "overall.tokens_per_s": "tokens/s",
    "overall.itl.p50": "ITL p50",
    "overall.itl.p99": "ITL p99",
    "overall.ttft.p50": "TTFT p50",
    "overall.vit.p50": "ViT p50",
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
    """Return the differences as configured, then every one whose sign an assumption changes.

    Parameters
    ----------
    grid
        What the shorter runs gave.
    titles
        Words for an option, by "NAME.OPTION".
    """
    rows = [
        [variant, *(percent(grid.differences[UNCHANGED, variant, metric]) for metric in METRICS)]
        for variant in grid.variants
    ]
    length = f"{grid.replications} replications of {grid.duration_ns / NS_PER_S:g} s"
    configured = table(f"Difference from {grid.first} ({length})", ["", *(_NAMES[m] for m in METRICS)], rows)
    flips = grid.flips()
    changed = [
        [titles.get(flip.option, flip.option), flip.variant, _NAMES[flip.metric], percent(flip.configured),
         percent(flip.under_option)]
        for flip in flips
    ]  # fmt: skip
    shown = [row if i == 0 or row[0] != changed[i - 1][0] else ["", *row[1:]] for i, row in enumerate(changed)]
    steady = [titles.get(o, o) for o in grid.options if o != UNCHANGED and o not in {flip.option for flip in flips}]
    headers = ["if", "variant", "metric", "now", "then"]
    found: RenderableType = Text("No assumption asked about changes a sign.")
    if changed:
        found = table("Assumptions that would change a sign", headers, shown, left=3, fixed=False)
    return stack(
        configured,
        found,
        Text(f"no sign changes with: {'; '.join(steady)}") if steady and changed else None,
        Text(f"differences below {100 * NOISE:g} % count as none; the grid runs the first case only", style="dim"),
    )


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
