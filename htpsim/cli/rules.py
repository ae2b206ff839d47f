"""The commands about rules: which policies there are, what theory says, and whether a trace keeps the rules."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from htpsim.cli.options import Duration
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


def trace_files(command: Callable[..., None]) -> Callable[..., None]:
    """Add what the commands that read a trace share."""
    lenient = click.option("--lenient", is_flag=True, help="Leave out lines that cannot be read.")
    files = click.argument("traces", metavar="TRACE...", nargs=-1, required=True, type=click.Path(path_type=Path))
    return files(lenient(json_option(command)))


@click.command()
@trace_files
@click.option("--rule", "rules", multiple=True, metavar="NAME", help="Check only this rule; repeatable.")
@click.option("--slack", type=Duration(), metavar="TIME", help="How far a recording blurs instants, such as 20us.")
def check(traces: tuple[Path, ...], lenient: bool, as_json: bool, rules: tuple[str, ...], slack: str | None) -> None:
    """Check a trace against the rules that must hold.

    TRACE was written by run --trace or recorded around a real guard; of several, one a process say, one is made. The
    exit code is 1 where a rule is broken.
    """
    with working("checking"):
        from htpsim.formats.trace import read_trace
        from htpsim.invariants import check_trace
        from htpsim.report.traces import check_dict, check_page
        from htpsim.units import parse_time

        trace = read_trace(*traces, lenient=lenient)
        report = check_trace(trace, rules or None, slack_ns=0 if slack is None else parse_time(slack))
    if as_json:
        show_json(check_dict(report))
    else:
        show(check_page(report))
    if not report.ok:
        raise SystemExit(CHECK_FAILED)


@click.command("explain-policy")
@trace_files
def explain_policy(traces: tuple[Path, ...], lenient: bool, as_json: bool) -> None:
    """Ask which policy explains the grants of a trace.

    TRACE was written by run --trace or recorded around a real guard; of several, one a process say, one is made.
    """
    with working("reading"):
        from htpsim.formats.trace import read_trace
        from htpsim.invariants import explain
        from htpsim.report.traces import explain_dict, explain_page

        trace = read_trace(*traces, lenient=lenient)
    with progress("explain-policy") as told:
        found = explain(trace, progress=told)
    if as_json:
        show_json(explain_dict(found))
    else:
        show(explain_page(found))
