"""The answer in short: by how much variants differ, and which assumption would change the sign of that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rich.console import RenderableType
from rich.text import Text

from htpsim.experiments.change import HEADLINES, Change
from htpsim.experiments.compare import BASE, Comparison
from htpsim.experiments.sign_grid import METRICS, NOISE, UNCHANGED, Difference, Flip, SignGrid
from htpsim.report.cells import Footnotes, stack, table
from htpsim.units import NS_PER_S

_NAMES: Final = {path: words for path, (words, _) in HEADLINES.items()}
_SAME: Final = "="
_UNCLEAR: Final = "~"


def percent(share: float, half_width: float = 0.0) -> str:
    """Write a change as a signed percentage, with the half-width of its interval where it has one.

    >>> percent(-0.0561, 0.004), percent(0.261, 0.03), percent(0.0001)
    ('-5.6±0.4', '+26±3', '+0.0')
    """
    decimals = 0 if abs(share) >= 0.1 else 1
    spread = f"±{100 * half_width:,.{decimals}f}" if half_width else ""
    return f"{100 * share:+,.{decimals}f}{spread}"


def short_answer(comparison: Comparison) -> RenderableType | None:
    """Return by how much every variant differs from the first, a table a case; None where there is only one."""
    if len(comparison.variants) < 2:
        return None
    notes = Footnotes()
    parts: list[RenderableType] = []
    for case in comparison.summaries:
        rows = [
            [variant, *(_changed(found, notes) for found in changes.values())]
            for variant, changes in comparison.changes(case).items()
        ]
        title = f"In short: difference from {comparison.baseline} [%]"
        if case != BASE:
            title += f", {comparison.cases[case] or case}"
        parts.append(table(title, ["", *_NAMES.values()], rows))
    replications = min(len(runs) for variants in comparison.summaries.values() for runs in variants.values())
    said = "less is better, but for tokens/s; memory: device DRAM held at the end; "
    said += f"{_SAME}: the very same figure in every replication"
    if replications > 1:
        said += (
            f"; {_UNCLEAR}: {replications} replications cannot tell it from none; ±: half of the 95 % interval of the "
            "difference, replication by replication on the same draws"
        )
    else:
        said += "; one replication cannot tell a difference from chance"
    return stack(*parts, Text(said, style="dim"), *notes.lines())


def _changed(found: Change, notes: Footnotes) -> str:
    mean = found.estimate.mean
    if mean is None:
        return notes.mark(found.estimate.why)
    if found.identical:
        return _SAME
    if found.clear is False:
        return _UNCLEAR
    return percent(mean, found.estimate.half_width or 0.0)


def changes_dict(comparison: Comparison) -> dict[str, Any]:
    """Return the differences from the first variant in JSON form, by case, variant and path of the figure."""
    return {
        case: {
            variant: {
                path: {
                    "share": found.estimate.mean,
                    "half_width": found.estimate.half_width,
                    "bootstrap": None if found.bootstrap is None else [found.bootstrap.low, found.bootstrap.high],
                    "replications": found.estimate.n,
                    "identical": found.identical,
                    "clear": found.clear,
                    "why": found.estimate.why,
                }
                for path, found in changes.items()
            }
            for variant, changes in comparison.changes(case).items()
        }
        for case in comparison.summaries
    }


def grid_cell(difference: Difference, flip: Flip | None) -> str:
    """Write a difference as a signed percentage, 0 where there is none worth the name, with the mark of a flip.

    >>> [grid_cell(Difference(shares), None) for shares in ((-0.06, -0.05), (0.001,), ())]
    ['-5.5 %', '0', 'n/a']
    """
    if difference.share is None:
        return "n/a"
    shown = f"{percent(difference.share)} %" if difference.sign else "0"
    return shown + ("" if flip is None else " !!" if flip.reverses else " !")


def sign_tables(grid: SignGrid, titles: Mapping[str, str]) -> RenderableType:
    """Return which assumption turns a difference round, and then all differences, a table a metric.

    Parameters
    ----------
    grid
        What the shorter runs gave.
    titles
        Words for an option, by "NAME.OPTION".
    """
    flips = {(flip.option, flip.variant, flip.metric): flip for flip in grid.flips()}
    parts: list[RenderableType] = [
        Text("Which assumption would change a sign?", style="bold"),
        *_reversals(grid, titles),
    ]
    for metric in METRICS:
        rows = []
        for option in grid.options:
            cells = [
                grid_cell(grid.differences[option, variant, metric], flips.get((option, variant, metric)))
                for variant in grid.variants
            ]
            rows.append([titles.get(option, option), *cells])
        parts.append(
            table(f"{_NAMES[metric]}, difference from {grid.first}", ["if", *grid.variants], rows, fixed=False)
        )
    said = (
        f"{grid.replications} replication{'s' * (grid.replications != 1)} of {grid.duration_ns / NS_PER_S:g} s of the "
        f"first case, so a hint, not a proof; 0: below {100 * NOISE:g} %, or the replications disagree; !! a sign that "
        "turns round, ! one that vanishes or comes about. See one whole with --option, in the order above: "
        + ", ".join(option for option in grid.options if option != UNCHANGED)
    )
    return stack(*parts, Text(said, style="dim"))


def _reversals(grid: SignGrid, titles: Mapping[str, str]) -> list[Text]:
    """Return a sentence for every metric and variant whose sign some option turns round."""
    found: dict[tuple[str, str], list[Flip]] = {}
    for flip in grid.flips():
        if flip.reverses:
            found.setdefault((flip.metric, flip.variant), []).append(flip)
    if not found:
        return [Text("None of those asked turns one round.")]
    lines = []
    for (metric, variant), flips in found.items():
        configured = grid_cell(grid.differences[UNCHANGED, variant, metric], None)
        options = "; ".join(
            f"{titles.get(flip.option, flip.option)}: {grid_cell(flip.under_option, None)}" for flip in flips
        )
        lines.append(Text(f"{_NAMES[metric]} of {variant}: {configured} as configured, but {options}"))
    return lines


def grid_dict(grid: SignGrid) -> dict[str, Any]:
    """Return the grid in JSON form."""
    return {
        "first": grid.first,
        "duration_ns": grid.duration_ns,
        "replications": grid.replications,
        "differences": [
            {
                "option": option,
                "variant": variant,
                "metric": metric,
                "share": found.share,
                "sign": found.sign,
                "shares": list(found.shares),
            }
            for (option, variant, metric), found in grid.differences.items()
        ],
    }
