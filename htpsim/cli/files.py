"""The commands about files: what there is to run, what a file of the ecosystem says, how a scenario is written."""

from __future__ import annotations

from pathlib import Path

import click

from htpsim.cli.options import as_json as json_option
from htpsim.cli.options import refuse_unfit_file
from htpsim.cli.terminal import note, show, show_json, working
from htpsim.errors import HtpsimError


@click.command()
@json_option
def scenarios(as_json: bool) -> None:
    """List the shipped scenarios and what each answers."""
    with working("reading"):
        from htpsim.report.pages import scenarios_dict, scenarios_page
        from htpsim.scenario import ScenarioFile, load, shipped

        files: dict[str, ScenarioFile] = {}
        faults: dict[str, str] = {}
        for name, path in shipped().items():
            try:
                files[name] = load(path)
            except HtpsimError as error:
                faults[name] = str(error).splitlines()[0]
    if as_json:
        show_json(scenarios_dict(files, faults))
    else:
        show(scenarios_page(files, faults))


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--format", "format_name", metavar="NAME", help="Format; by default the content decides.")
@click.option("--lenient", is_flag=True, help="Read also what people retyped or reworded.")
@json_option
def inspect(file: Path, format_name: str | None, lenient: bool, as_json: bool) -> None:
    """Read a file of a real tool.

    FILE is what a tool writes or reads: profiles of qnn-profile-viewer, qnn-net-run, Genie, ONNX Runtime or SNPE,
    traces, console logs, an AI Hub perf.yaml, configurations of Genie, of the HTP backend or of a throughput test, what
    a context binary holds. The content says which; a name that is none lists them all.
    """
    from htpsim.formats import read

    report = read(file, format=format_name, lenient=lenient)
    if as_json:
        show_json(report.to_json())
        return
    from htpsim.report.text import inspect_table

    show(inspect_table(report))


@click.command()
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write it there; else print it.")
def schema(output: Path | None) -> None:
    """Print the JSON Schema of scenario files.

    An editor completes and checks a scenario by it, once the scenario's first
    line names it:  #:schema ./scenario.schema.json
    """
    if output is not None:
        refuse_unfit_file(output)
    from htpsim.scenario import json_schema

    if output is None:
        show_json(json_schema())
        return
    from htpsim.results.write import json_text

    output.write_text(json_text(json_schema()), encoding="utf-8", newline="\n")
    note(f"Written to {output}")
