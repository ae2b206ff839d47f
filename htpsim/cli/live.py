"""The command that runs a scenario for real: `live`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from htpsim.cli.options import Duration, as_json, refuse_unfit_file
from htpsim.cli.terminal import note, progress, show, show_json, working


@click.command()
@click.argument("scenario")
@click.option("--variant", metavar="NAME", help="Variant of the file; without it, the file as it stands.")
@click.option("--case", metavar="NAME", help="Case of the file.")
@click.option("--option", "options", multiple=True, metavar="NAME.OPTION", help="Option of an assumption; repeatable.")
@click.option("--set", "set_values", multiple=True, metavar="KEY=VALUE", help="Override a value; repeatable.")
@click.option("--for", "duration", type=Duration(), metavar="TIME", help="Measured time, such as 30s.")
@click.option("--replication", type=click.IntRange(0), default=0, metavar="K", help="Draws of repetition K, from 0.")
@click.option(
    "--work",
    type=click.Choice(["onnx", "timed"]),
    default="onnx",
    help="What graphs do: sessions of ONNX Runtime, or only take their time.",
)
@click.option("--check", is_flag=True, help="Check every rule, in the guard as it goes and in the trace.")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Write a run directory.")
@click.option("--trace", type=click.Path(path_type=Path), metavar="FILE", help="Write a trace, as htpsim run does.")
@as_json
def live(
    scenario: str, set_values: tuple[str, ...], duration: str | None, work: str, out: Path | None, trace: Path | None,
    as_json: bool, **chosen: Any,
) -> None:  # fmt: skip
    """Run a scenario on real threads.

    Cores, guard, registry and instances become threads, locks and sessions on
    this machine's processors; what they leave is what a simulated run leaves.
    SCENARIO states the shape of its models (see live/four_threads), or takes only
    its time with --work timed. What threads cannot do is refused by name.
    """
    settings = list(set_values)
    if duration is not None:
        if any(each.partition("=")[0].strip() == "run.duration" for each in set_values):
            raise click.UsageError("--for and --set run.duration: got both, expected one of them")
        settings.append(f'run.duration="{duration}"')
    if out is not None:
        from htpsim.report.directory import refuse_unfit

        refuse_unfit(out)
    if trace is not None:
        from htpsim.formats.trace import form_of

        refuse_unfit_file(trace)
        form_of(trace)
    with working("loading"):
        from htpsim.live.runs import bench_of, live_one
        from htpsim.report.pages import single_dict, single_page
    with progress("live") as told:
        part = None if told is None else lambda share: told(share, 1, scenario)
        single, ran = live_one(scenario, set_values=settings, bench=bench_of(work), progress=part, **chosen)
    if out is not None:
        from htpsim.report.directory import write_single

        write_single(single, out, sys.argv)
    if trace is not None:
        from htpsim.formats.trace import next_steps, write_trace

        write_trace(single.trace(), trace)
    if as_json:
        show_json(single_dict(single))
    else:
        show(single_page(single))
    note(f"Ran on {ran.threads} threads: {ran.machine}; loading added {ran.resident_bytes / 1e6:.0f} MB")
    if out is not None:
        note(f"Written to {out}: start with {out / 'report.txt'} and the .png files beside it.")
    if trace is not None:
        note(f"Written to {trace}: {next_steps(trace)}")
