"""docs/field-reports.md, written from the reports and what htpsim says.

Write it anew, from the folder of the repository, with ``python -m tests.field.page``.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path

from tests.field.memory import MEMORY
from tests.field.report import Figure, Report
from tests.field.timing import TIMING
from tests.scenarios.support import SCENARIOS

REPORTS = tuple(sorted((*TIMING, *MEMORY), key=lambda report: report.number))
PAGE = SCENARIOS.parent / "docs" / "field-reports.md"
HEAD = """\
# Reports of the field, rebuilt

What others measured on NPUs and published, and what htpsim says about the same set-up.
Each report is a scenario of `scenarios/field`, small enough to read in a minute; `htpsim compare field/NAME` runs it.
A test holds every figure of this page to what a run gives, and every run to arithmetic.

**Fitted** means that a parameter of the scenario was chosen so that this figure comes out.
It shows that the model can express the report, and nothing else.
**Predicted** means that it follows, without a choice made for it.
Where nothing was published the column is empty: what is predicted there is what to measure to prove the model wrong.
Several reports are of other hardware than a Hexagon NPU; they are here for the form of the effect, not for its size.
The numbers of the reports are those of the collection they come from, which has gaps.
What cannot be expressed, and why, is in [limits.md](limits.md).

"""


def shown(value: float | str | None) -> str:
    """Return a value as the table has it."""
    if value is None:
        return ""
    return value if isinstance(value, str) else f"{round(value, 3):,g}" if abs(value) < 1e4 else f"{value:,.0f}"


def error(figure: Figure, said: float | str) -> float | None:
    """Return how far off the published number htpsim is, as a share of it; None where there is none."""
    if isinstance(said, str) or not isinstance(figure.published, int | float) or figure.published == 0:
        return None
    return said / figure.published - 1


def rows(report: Report) -> Iterator[str]:
    """Yield the table rows of a report; the first names it and its source."""
    for index, figure in enumerate(report.figures):
        said = figure.said(report.runs)
        off = error(figure, said)
        name = f"[{report.number}](../scenarios/field/{report.scenario}.toml)" if index == 0 else ""
        source = "; ".join(filter(None, (report.source, report.remark))) if index == 0 else ""
        percent = "" if off is None else f"{100 * off:+.1f} %".replace("+0.0 %", "0").replace("-0.0 %", "0")
        cells = [name, figure.what, shown(figure.published), shown(said), percent, figure.kind, source]
        yield "| " + " | ".join(cells) + " |"


def summing_up() -> str:
    """Return how many figures there are, and how far off the predicted ones."""
    figures = [(report, figure) for report in REPORTS for figure in report.figures]
    predicted = [(r, f) for r, f in figures if f.kind == "predicted"]
    errors = sorted(
        (abs(off), report.number)
        for report, figure in predicted
        if (off := error(figure, figure.said(report.runs))) is not None
    )
    sizes = [size for size, _ in errors]
    bad = dict.fromkeys(number for size, number in errors if size > 0.1)
    return (
        f"{len(REPORTS)} reports, {len(figures)} figures: {len(figures) - len(predicted)} fitted, "
        f"{len(predicted)} predicted.\n"
        f"Of the predicted ones {len(errors)} have a published number; half of them are within "
        f"{100 * statistics.median(sizes):.1f} % of it.\n"
        f"More than 10 % off: {', '.join(sorted(bad))}, each because something is at work that the model leaves out, "
        "as the table says.\n"
    )


def page() -> str:
    """Return the whole page."""
    table = [
        "| report | what | published | htpsim | error | kind | source, and what to know |",
        "| --- | --- | ---: | ---: | ---: | --- | --- |",
        *(row for report in REPORTS for row in rows(report)),
    ]
    return HEAD + summing_up() + "\n" + "\n".join(table) + "\n"


def main(path: Path = PAGE) -> None:
    """Write the page."""
    path.write_text(page(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
