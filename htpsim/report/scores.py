"""A score as a table: measured beside simulated, the error, and what could not be compared and why."""

from __future__ import annotations

from typing import Final

from rich.console import RenderableType
from rich.text import Text

from htpsim.experiments.score import Compared, Score
from htpsim.report.cells import stack, table
from htpsim.results.metric import NOT_AVAILABLE

LISTED_MAX: Final = 12


def score_page(score: Score) -> RenderableType:
    """Return the table of a score, and what it comes to in words below it."""
    rows = [_row(row, score) for row in score.rows]
    head = Text.assemble(("Measured   ", "bold"), score.measured, ("\nSimulated  ", "bold"), score.simulated)
    return stack(head, table("", ["", "measured", "simulated", "error"], rows), *_below(score))


def _row(row: Compared, score: Score) -> list[str]:
    error = NOT_AVAILABLE if row.error is None else f"{100 * row.error:+.2f} %"
    missed = score.within is not None and row.misses(score.within)
    return [row.name, str(row.measured), str(row.simulated), f"{error} !" if missed else error]


def _below(score: Score) -> list[Text]:
    lines = []
    if score.within is not None:
        allowed = f"{100 * score.within:g} %"
        missed = score.missed
        if missed:
            lines.append(
                Text(f"{len(missed)} of {len(score.rows)} figures are off by more than {allowed}", style="red")
            )
        else:
            lines.append(Text(f"All {len(score.rows)} figures are within {allowed}", style="green"))
    for title, names in (("measured", score.only_measured), ("simulated", score.only_simulated)):
        if names:
            shown = ", ".join(names[:LISTED_MAX]) + (" ..." if len(names) > LISTED_MAX else "")
            lines.append(Text(f"only {title}: {shown}", style="dim"))
    lines += [Text(f"{name}: withheld, {why}", style="dim") for name, why in score.withheld[:LISTED_MAX]]
    return lines
