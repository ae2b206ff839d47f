"""The command `diff-engines`: run a scenario in both engines and show where they first part."""

from __future__ import annotations

from typing import Any

import click

from htpsim.cli.options import Duration, Given
from htpsim.cli.options import as_json as json_option
from htpsim.cli.terminal import note, show_json, working

SHOWN = 5


@click.command("diff-engines")
@click.argument("scenario")
@click.option("--variant", metavar="NAME", help="Variant of the file; without it, the file as it stands.")
@click.option("--case", metavar="NAME", help="Case of the file.")
@click.option("--option", "options", multiple=True, metavar="NAME.OPTION", help="Option of an assumption; repeatable.")
@click.option("--set", "set_values", multiple=True, metavar="KEY=VALUE", help="Override a value; repeatable.")
@click.option("--for", "duration", type=Duration(), metavar="TIME", help="Measured time, such as 60s.")
@click.option("--seed", type=click.IntRange(0), metavar="N", help="Seed of every draw.")
@click.option("--replication", type=click.IntRange(0), default=0, metavar="K", help="Which repetition; by default 0.")
@json_option
def diff_engines(
    scenario: str, variant: str | None, case: str | None, options: tuple[str, ...], replication: int, as_json: bool,
    **values: Any,
) -> int:  # fmt: skip
    """Show where the two engines part, if they do.

    SCENARIO is the path of a .toml file, or the name of a shipped one (htpsim scenarios). Runs it in the reference
    engine and in the compiled one, and compares every row. Exit code 3 when they differ: that is a fault of htpsim.
    """
    asked = Given(**values, replications=None, workers=None, out=None, as_json=as_json)
    with working("running both engines"):
        from htpsim.experiments.engine_diff import diff_engines as compare
        from htpsim.scenario import load

        spec = load(scenario, set_values=asked.assignments()).resolve(variant, case, options).scenario
        found = compare(spec, replication)
    if as_json:
        show_json({
            "same": found.same,
            "executes": found.executes,
            "partings": [p._asdict() for p in found.partings],
        })  # fmt: skip
    elif found.engines[0] == found.engines[1]:
        note("The compiled engine leaves this run to the reference engine: there is nothing to compare.")
    elif found.same:
        click.echo(f"The engines agree to the bit: {found.executes:,} graphExecutes.")
    else:
        click.echo(f"The engines part at {found.partings[0].at_ns:,} ns; {len(found.partings):,} rows differ.")
        for parting in found.partings[:SHOWN]:
            click.echo(f"{parting.at_ns:,} ns, {parting.table}, {parting.row}:")
            for column, (reference, kernel) in parting.differs.items():
                click.echo(f"  {column}: {reference} in the reference engine, {kernel} in the kernel")
    return 0 if found.same else 3
