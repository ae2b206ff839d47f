"""The command that looks for the choice that keeps its promises at least cost."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from htpsim.cli.options import Duration, Given
from htpsim.cli.options import as_json as json_option
from htpsim.cli.terminal import note, progress, show, show_json, working

CHECK_FAILED = 1


@click.command()
@click.argument("scenario")
@click.option(
    "--vary",
    multiple=True,
    required=True,
    metavar="AXIS",
    help="KEY=a,b,c or KEY=low..high; as in htpsim sweep; repeatable.",
)
@click.option(
    "--keep",
    multiple=True,
    required=True,
    metavar="BOUND",
    help='Bound to keep, such as "itl.p99 <= 80ms"; repeatable.',
)
@click.option("--goal", default="tokens_per_s", metavar="FIGURE", help='What to make best, such as "vit.mean".')
@click.option("--points", type=click.IntRange(1), default=200, metavar="N", help="Points to look at; by default 200.")
@click.option("--finalists", type=click.IntRange(1), default=8, metavar="N", help="Points to run in full.")
@click.option("--search-seed", type=click.IntRange(0), default=0, metavar="N", help="Seed of the search.")
@click.option("--variant", metavar="NAME", help="Variant of the file.")
@click.option("--case", metavar="NAME", help="Case of the file.")
@click.option("--option", "options", multiple=True, metavar="NAME.OPTION", help="Option of an assumption; repeatable.")
@click.option("--set", "set_values", multiple=True, metavar="KEY=VALUE", help="Override a value; repeatable.")
@click.option("--for", "duration", type=Duration(), metavar="TIME", help="Measured time of a full run.")
@click.option("--seed", type=click.IntRange(0), metavar="N", help="Seed of every draw.")
@click.option("--replications", type=click.IntRange(1, 1000), metavar="N", help="Repetitions of a full run.")
@click.option("--workers", type=click.IntRange(1), metavar="N", help="Processes; the results do not depend on it.")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Write page, tables and plots there.")
@json_option
def tune(
    scenario: str, vary: tuple[str, ...], keep: tuple[str, ...], as_json: bool, replications: int | None,
    out: Path | None, **asked: Any,
) -> None:  # fmt: skip
    """Find weights, or anything else, that keep bounds.

    Looks for the points that keep every --keep at the best --goal; shows the front between them, with intervals. Where
    nothing keeps the bounds, it says so, shows the nearest, and the exit code is 1.
    """
    values = {name: asked.pop(name) for name in ("set_values", "duration", "seed")}
    given = Given(**values, replications=replications, workers=None, out=None, as_json=as_json)
    settings = given.assignments()
    if out is not None:
        from htpsim.report.directory import refuse_unfit

        refuse_unfit(out)
    with working("loading"):
        from htpsim.experiments.tune import tune as search
        from htpsim.report.tune import tuned_dict, tuned_page
    with progress("tune") as told:
        tuned = search(scenario, vary, keep, set_values=settings, progress=told, **asked)
    if out is not None:
        with working(f"writing {out}"):
            from htpsim.report.directory import write_tuned

            write_tuned(tuned, out, sys.argv)
    if as_json:
        show_json(tuned_dict(tuned))
    else:
        show(tuned_page(tuned))
    if out is not None:
        note(f"Written to {out}: start with {out / 'report.txt'} and the .png files beside it.")
    if tuned.best is None:
        raise SystemExit(CHECK_FAILED)
