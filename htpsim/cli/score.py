"""The command that holds a simulation to a measurement: `score`."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from pathlib import Path

import click

from htpsim.cli.options import as_json as json_option
from htpsim.cli.terminal import show, show_json, working

MISSED = 1
LARGEST = 100


class Percent(click.ParamType[float]):
    """A part of a whole, written as "5%" or "0.05"; becomes 0.05."""

    name = "percent"

    def convert(self, value: str | float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the part as a number, and complain of what is none."""
        text = str(value).strip()
        try:
            number = Decimal(text.removesuffix("%").strip())
        except InvalidOperation:
            self.fail(f"got '{value}', expected a part such as 5% or 0.05", param, ctx)
        part = number / 100 if text.endswith("%") else number
        if not (part.is_finite() and 0 <= part < LARGEST):
            self.fail(f"got '{value}', expected a part from 0 such as 5%", param, ctx)
        if not text.endswith("%") and part >= 1:
            self.fail(f"got '{value}', expected a part of one such as 0.05, or '{value}%'", param, ctx)
        return float(part)


@click.command()
@click.argument("measured", type=click.Path(path_type=Path))
@click.argument("simulated", type=click.Path(path_type=Path))
@click.option("--within", type=Percent(), metavar="PART", help="Largest error that is no miss, such as 5%.")
@click.option("--metric", "metrics", multiple=True, metavar="PATTERN", help="Only such figures, as itl.*; repeatable.")
@click.option("--client", metavar="NAME", help="Only this client's calls, where clients are told apart.")
@json_option
def score(
    measured: Path, simulated: Path, within: float | None, metrics: tuple[str, ...], client: str | None, as_json: bool
) -> None:  # fmt: skip
    """Compare a simulation with a measurement.

    Each is a log of a real tool, a run directory (htpsim run --out), a records.csv or a trace. Shows every figure that
    both have with its error; with --within the exit code is 1 where one is off by more.
    """
    with working("comparing"):
        from htpsim.experiments.score import score as compare

        found = compare(measured, simulated, within=within, metrics=metrics, client=client)
    if as_json:
        show_json(found.to_dict())
    else:
        from htpsim.report.scores import score_page

        show(score_page(found))
    if not found.ok:
        raise SystemExit(MISSED)
