"""The command that writes the report: one HTML file to send."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from htpsim.cli.options import Duration, Given, lang_option, refuse_unfit_file
from htpsim.cli.terminal import note, progress, working

if TYPE_CHECKING:
    from htpsim.report.html import Material

_OF_A_RUN = ("variants", "cases", "options", "set_values", "duration", "seed", "replications", "workers")


@click.command()
@click.argument("source", metavar="RUN")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=Path("report.html"),
    metavar="FILE",
    help="Where to; by default report.html.",
)
@lang_option
@click.option("--variant", "variants", multiple=True, metavar="NAME", help="Of a scenario: only these; repeatable.")
@click.option("--case", "cases", multiple=True, metavar="NAME", help="Of a scenario: only these cases; repeatable.")
@click.option("--option", "options", multiple=True, metavar="NAME.OPTION", help="Option of an assumption; repeatable.")
@click.option("--grid/--no-grid", default=True, help="Ask which assumption would change a sign.")
@click.option("--set", "set_values", multiple=True, metavar="KEY=VALUE", help="Override a value; repeatable.")
@click.option("--for", "duration", type=Duration(), metavar="TIME", help="Measured time, such as 60s.")
@click.option("--seed", type=click.IntRange(0), metavar="N", help="Seed of every draw.")
@click.option("--replications", type=click.IntRange(1, 1000), metavar="N", help="Independent repetitions.")
@click.option("--workers", type=click.IntRange(1), metavar="N", help="Processes; the results do not depend on it.")
def report(source: str, output: Path, lang: str, grid: bool, **which: Any) -> None:
    """Write a report: one HTML file to open, send or print.

    RUN is a run directory (htpsim run --out, htpsim compare --out), or a scenario, which is compared first: the path
    of a .toml file or the name of a shipped one.
    """  # fmt: skip
    refuse_unfit_file(output)
    if Path(source).is_dir():
        asked = [name for name in _OF_A_RUN if which[name]]
        if asked or not grid:
            raise click.UsageError(
                f"{source} is a run directory: what was run is in it, expected no option but -o, --lang"
            )
        with working(f"reading {source}"):
            from htpsim.report.html import from_directory

            material = from_directory(source)
    else:
        material = compared(source, grid=grid, **which)
    write(material, output, lang)


def compared(
    source: str, *, grid: bool = True, variants: tuple[str, ...] = (), cases: tuple[str, ...] = (),
    options: tuple[str, ...] = (), **asked: Any,
) -> Material:  # fmt: skip
    """Compare the variants of a scenario, and return what a report of it needs."""
    nothing: dict[str, Any] = {"set_values": (), "seed": None, "duration": None, "replications": None, "workers": None}
    given = Given(**nothing | asked, out=None, as_json=False)
    settings = given.assignments()
    with working("loading"):
        from htpsim.experiments.compare import compare
        from htpsim.report.html import from_comparison
    with progress("run") as told:
        comparison = compare(
            source, set_values=settings, variants=variants, cases=cases, options=options,
            grid=grid, workers=given.workers, progress=told,
        )  # fmt: skip
    return from_comparison(comparison, sys.argv)


def write(material: Material, output: Path, lang: str) -> None:
    """Write the report and say where it is."""
    from htpsim.report.html import write_report

    with progress("report") as told:
        write_report(material, output, lang, told=told)
    note(f"Written to {output}: open it in a browser.")
