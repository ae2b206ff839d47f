"""The command that asks which assumption moves an answer."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from htpsim.cli.options import Duration, Given
from htpsim.cli.options import as_json as json_option
from htpsim.cli.terminal import note, progress, show, show_json, working


@click.command()
@click.argument("scenario")
@click.option("--variant", "variants", multiple=True, metavar="NAME",
              help="The first is what the others are compared with; by default the first two that differ.")  # fmt: skip
@click.option("--case", metavar="NAME", help="Case of the file.")
@click.option("--option", "options", multiple=True, metavar="NAME.OPTION", help="Option of an assumption; repeatable.")
@click.option("--only", multiple=True, metavar="KEY", help="Vary only this parameter; repeatable.")
@click.option("--set", "set_values", multiple=True, metavar="KEY=VALUE", help="Override a value; repeatable.")
@click.option("--for", "duration", type=Duration(), metavar="TIME", help="Measured time, of which a quarter is run.")
@click.option("--seed", type=click.IntRange(0), metavar="N", help="Seed of every draw.")
@click.option("--workers", type=click.IntRange(1), metavar="N", help="Processes; the results do not depend on it.")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Write page, tables and plots there.")
@json_option
def sensitivity(scenario: str, variants: tuple[str, ...], as_json: bool, out: Path | None, **asked: Any) -> None:
    """Ask which assumption moves an answer.

    Varies every parameter that is not known over its range, one at a time, and shows what that does to the difference
    between two variants: a tornado, what turns the answer round, and from which value on.
    """
    values = {name: asked.pop(name) for name in ("set_values", "duration", "seed")}
    settings = Given(**values, replications=None, workers=None, out=None, as_json=as_json).assignments()
    if out is not None:
        from htpsim.report.directory import refuse_unfit

        refuse_unfit(out)
    with working("loading"):
        from htpsim.experiments.sensitivity import sensitivity as ask
        from htpsim.report.sensitivity import sensitivity_dict, sensitivity_page
    with progress("sensitivity") as told:
        found = ask(scenario, variants=variants or None, set_values=settings, progress=told, **asked)
    if out is not None:
        with working(f"writing {out}"):
            from htpsim.report.directory import write_sensitivity

            write_sensitivity(found, out, sys.argv)
    if as_json:
        show_json(sensitivity_dict(found))
    else:
        show(sensitivity_page(found))
    if out is not None:
        note(f"Written to {out}: start with {out / 'report.txt'} and the .png files beside it.")
