"""The command that writes a run, or a recorded trace, for the tools one already uses."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click

from htpsim.cli.options import refuse_unfit_file
from htpsim.cli.terminal import note, working
from htpsim.errors import HtpsimError


@click.command()
@click.argument("source", type=click.Path(path_type=Path))
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), metavar="FILE", help="Where to.")
@click.option("--as", "form", metavar="FORM", help="Form; by default the end of FILE decides.")
@click.option("--client", metavar="NAME", help="For QNN forms: only what this instance or client called.")
@click.option("--table", metavar="NAME", help="For tables: requests, tokens, memory ...; by default executes.")
def export(source: Path, output: Path, form: str | None, client: str | None, table: str | None) -> None:
    """Write a run for another tool.

    SOURCE is a run directory (htpsim run --out), or a trace that htpsim or your
    recorder wrote; a trace can become another trace only.

    \b
    FORM           FILE       what it is
    chrome         .json      Chrome trace JSON, for a trace viewer
    perfetto       .pftrace   the same in Perfetto's own format
    lines          .jsonl     the same as JSON lines, for htpsim check
    qnn-viewer     .txt       statistics as qnn-profile-viewer prints them
    qnn-csv        .csv       executions in the columns of a QNN CSV
    genie-profile             loading and queries as a Genie profile
    table          .parquet   a table of the run; CSV with --as table
    """
    refuse_unfit_file(output)
    with working("loading"):
        from htpsim.experiments.opened import open_run
        from htpsim.experiments.trace_export import export as write
        from htpsim.experiments.trace_export import form_of
        from htpsim.formats.trace import read_trace

    form_of(output, form)
    if (source / "runs").is_dir():
        runs = ", ".join(sorted(path.name for path in (source / "runs").iterdir())[:6])
        raise HtpsimError(f"{source}: got a comparison, expected one of the runs in {source / 'runs'}: {runs}")
    with working(f"reading {source}"):
        run = open_run(source) if source.is_dir() else read_trace(source)
    with working(f"writing {output}"):
        write(run, output, form, client=client, table=table, replay=shlex.join(["htpsim", *sys.argv[1:]]))
    note(f"Written to {output}")
