"""The commands about rules: which policies there are, and whether the simulator agrees with theory."""

from __future__ import annotations

import click

from htpsim.cli.options import as_json as json_option
from htpsim.cli.terminal import progress, show, show_json, working

CHECK_FAILED = 1


@click.command()
@json_option
def policies(as_json: bool) -> None:
    """List the guard policies and their parameters."""
    from htpsim.report.listing import policies_dict, policies_page
    from htpsim.sched.catalogue import policies as cards

    if as_json:
        show_json(policies_dict(cards()))
    else:
        show(policies_page(cards()))


@click.command()
@click.option("--full", is_flag=True, help="Narrow intervals, utilisation up to 0.9; minutes instead of seconds.")
@json_option
def validate(full: bool, as_json: bool) -> None:
    """Hold the simulator to queueing and scheduling theory.

    Prints theory beside simulation; the exit code is 1 where they disagree.
    """
    with working("loading"):
        from htpsim.experiments.theory import validate as ask
        from htpsim.report.listing import missed, validation_dict, validation_page
    with progress("validate") as told:
        results = ask(quick=not full, progress=told)
    if as_json:
        show_json(validation_dict(results))
    else:
        show(validation_page(results))
    if missed(results):
        raise SystemExit(CHECK_FAILED)
