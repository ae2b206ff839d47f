"""What a calibration found, as a table: each value, how many measurements it rests on, where it stands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from htpsim.experiments.calibrate import Calibration
from htpsim.report.cells import NONE, stack, table

_LINES: Final = re.compile(r".*?:\d+(?:-\d+)?(?= |;|$)")


def calibration_page(calibration: Calibration) -> RenderableType:
    """Return the values with their sources, below them what a reader should know."""
    rows = list(_rows(calibration))
    made = table("Calibrated", ["value", "where it stands", "n"], rows, left=2) if rows else None
    return stack(made, *(Text(f"! {warning}", style="yellow") for warning in calibration.warnings))


def _rows(calibration: Calibration) -> Iterator[tuple[str, str, str]]:
    """Yield the rows, those of one table of the scenario below its name."""
    above = ""
    for key, leaf in calibration.values:
        place, _, name = key.rpartition(".")
        if place != above:
            yield place, "", ""
            above = place
        yield f"  {name} = {leaf.shown or leaf.value}", _place(leaf.source), NONE if leaf.n is None else f"{leaf.n:,}"


def _place(source: str) -> str:
    """Return file and lines; what stands there, and why it was taken, is in the scenario file.

    >>> _place("a log.txt:12-90 execute of vit; n = 7"), _place("given by hand")
    ('a log.txt:12-90', 'given by hand')
    """
    found = _LINES.match(source)
    return found[0] if found else source.partition("; ")[0]
