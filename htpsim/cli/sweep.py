"""The command that runs a scenario at many points."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from htpsim.cli.options import Duration, Given, refuse_unfit_file
from htpsim.cli.options import as_json as json_option
from htpsim.cli.terminal import note, progress, show, show_json, working


@click.command()
@click.argument("scenario")
@click.option(
    "--vary",
    multiple=True,
    metavar="AXIS",
    help="KEY=a,b,c or KEY=low..high/steps; also variant=, case=, option=; repeatable.",
)
@click.option(
    "--design",
    type=click.Choice(["grid", "list", "lhs", "sobol"]),
    default="grid",
    help="Every combination, side by side, or a sample.",
)
@click.option("--points", type=click.IntRange(0), default=0, metavar="N", help="Points of a sample.")
@click.option("--sample-seed", type=click.IntRange(0), default=0, metavar="N", help="Seed of a sample.")
@click.option("--metric", "metrics", multiple=True, metavar="PATH", help="Figure to keep; repeatable.")
@click.option("--variant", metavar="NAME", help="Variant of the file.")
@click.option("--case", metavar="NAME", help="Case of the file.")
@click.option("--option", "options", multiple=True, metavar="NAME.OPTION", help="Option of an assumption; repeatable.")
@click.option("--set", "set_values", multiple=True, metavar="KEY=VALUE", help="Override a value; repeatable.")
@click.option("--for", "duration", type=Duration(), metavar="TIME", help="Measured time, such as 60s.")
@click.option("--seed", type=click.IntRange(0), metavar="N", help="Seed of every draw.")
@click.option("--replications", type=click.IntRange(1, 1000), metavar="N", help="Repetitions of each point.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="STORE",
    help="Keep what is found in this file; the same command goes on with it.",
)
@click.option(
    "--table", "table_file", type=click.Path(path_type=Path), metavar="FILE", help="Write the table: .csv or .parquet."
)
@click.option("--workers", type=click.IntRange(1), metavar="N", help="Processes; the results do not depend on it.")
@click.option("--cluster", metavar="ADDRESS", help="Dask scheduler to use instead, such as tcp://127.0.0.1:8786.")
@json_option
def sweep(
    scenario: str, vary: tuple[str, ...], metrics: tuple[str, ...], out: Path | None, table_file: Path | None,
    as_json: bool, **asked: Any,
) -> None:  # fmt: skip
    """Run a scenario at many points.

    A grid, a list, a Latin hypercube or a Sobol sample over any keys of the file. With --out, what is found is kept as
    it comes: stop it at any moment, and the same command goes on without a point lost or done twice.
    """
    values = {name: asked.pop(name) for name in ("set_values", "duration", "seed")}
    settings = Given(**values, replications=None, workers=None, out=None, as_json=as_json).assignments()
    for file in (out, table_file):
        if file is not None:
            refuse_unfit_file(file)
    with working("loading"):
        from htpsim.experiments.sweep import sweep as run
        from htpsim.experiments.sweep.drive import METRICS
        from htpsim.report.sweep import sweep_dict, sweep_page
    with progress("sweep") as told:
        found = run(scenario, vary, metrics=metrics or METRICS, set_values=settings, out=out, progress=told, **asked)
    if table_file is not None:
        found.export(table_file)
        note(f"Written to {table_file}")
    if as_json:
        show_json(sweep_dict(found))
    else:
        show(sweep_page(found))
