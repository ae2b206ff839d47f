"""The command that says how many instances fit."""

from __future__ import annotations

from typing import Any

import click

from htpsim.cli.options import as_json as json_option
from htpsim.cli.terminal import progress, show, show_json, working


@click.command()
@click.argument("scenario")
@click.option("--variant", "variants", multiple=True, metavar="NAME", help="Ask only for these; repeatable.")
@click.option("--case", metavar="NAME", help="Case of the file.")
@click.option("--option", "options", multiple=True, metavar="NAME.OPTION", help="Option of an assumption; repeatable.")
@click.option("--set", "set_values", multiple=True, metavar="KEY=VALUE",
              help="Override a value, such as device.dram_budget=8GB; repeatable.")  # fmt: skip
@click.option("--most", type=click.IntRange(1, 1024), default=64, metavar="N", help="Ask no further; by default 64.")
@json_option
def fit(scenario: str, variants: tuple[str, ...], as_json: bool, **asked: Any) -> None:
    """Ask how many instances fit in memory.

    For every variant: how many, which limit refuses the next, what one more would need, and how they are packed; from
    the loading alone, so it takes seconds. The instances of the scenario are the pattern that is repeated. SCENARIO is
    the path of a .toml file, or the name of a shipped one.
    """
    with working("loading"):
        from htpsim.experiments.fit import fit as ask
        from htpsim.report.fit import fit_dict, fit_page
    with progress("fit") as told:
        fits = ask(scenario, variants=variants or None, progress=told, **asked)
    if as_json:
        show_json(fit_dict(fits))
    else:
        show(fit_page(fits))
