"""The commands about rules: which policies there are, what theory says, and whether a trace keeps the rules."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import click

from htpsim.cli.options import Duration
from htpsim.cli.options import as_json as json_option
from htpsim.cli.terminal import progress, show, show_json, working

CHECK_FAILED = 1

SlotsPer = Literal["process", "core"]


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


def trace_files(command: Callable[..., None]) -> Callable[..., None]:
    """Add what the commands that read a trace share."""
    lenient = click.option("--lenient", is_flag=True, help="Leave out lines that cannot be read.")
    slots = click.option(
        "--slots", type=click.IntRange(1), metavar="N", help="Slots of the guard, where TRACE is silent."
    )
    slots_per = click.option("--slots-per", type=click.Choice(["process", "core"]), help="What they are counted by.")
    files = click.argument("traces", metavar="TRACE...", nargs=-1, required=True, type=click.Path(path_type=Path))
    return files(slots(slots_per(lenient(json_option(command)))))


@click.command()
@trace_files
@click.option("--rule", "rules", multiple=True, metavar="NAME", help="Check only this rule; repeatable.")
@click.option("--policy", metavar="NAME", help="Policy of the guard, where TRACE is silent.")
@click.option(
    "--slack",
    type=Duration(),
    metavar="TIME",
    help="How far instants are blurred, such as 20us; by default 1ms for a recording.",
)
def check(
    traces: tuple[Path, ...], slots: int | None, slots_per: SlotsPer | None, lenient: bool, as_json: bool,
    rules: tuple[str, ...], policy: str | None, slack: str | None,
) -> None:  # fmt: skip
    """Check a trace against the rules that must hold.

    TRACE was written by run --trace or recorded around a real guard; of several, one a process say, one is made. The
    exit code is 1 where a rule is broken.
    """
    with working("checking"):
        from htpsim.experiments.check import check_file
        from htpsim.report.traces import check_dict, check_page
        from htpsim.units import parse_time

        report = check_file(
            *traces, rules=rules or None, policy=policy, slots=slots, slots_per=slots_per,
            slack_ns=None if slack is None else parse_time(slack), lenient=lenient,
        ).report  # fmt: skip
    if as_json:
        show_json(check_dict(report))
    else:
        show(check_page(report))
    if not report.ok:
        raise SystemExit(CHECK_FAILED)


@click.command("explain-policy")
@trace_files
def explain_policy(
    traces: tuple[Path, ...], slots: int | None, slots_per: SlotsPer | None, lenient: bool, as_json: bool
) -> None:
    """Ask which policy explains the grants of a trace.

    TRACE was written by run --trace or recorded around a real guard; of several, one a process say, one is made.
    """
    with working("reading"):
        from htpsim.experiments.check import declared
        from htpsim.formats.trace import read_trace
        from htpsim.invariants import explain
        from htpsim.report.traces import explain_dict, explain_page

        trace = declared(read_trace(*traces, lenient=lenient), slots=slots, slots_per=slots_per)
    with progress("explain-policy") as told:
        found = explain(trace, progress=told)
    if as_json:
        show_json(explain_dict(found))
    else:
        show(explain_page(found))
