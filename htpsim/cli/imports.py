"""The command that makes a scenario of a configuration that a tool of the ecosystem reads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from htpsim.cli.options import refuse_unfit_file
from htpsim.cli.terminal import note
from htpsim.units import parse_time

if TYPE_CHECKING:
    from htpsim.scenario.imported import ModelSources


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="SCENARIO",
    required=True,
    help="The scenario file to write.",
)
@click.option("--time", "times", multiple=True, metavar="MODEL=TIME", help="Time of an execution alone, such as 5ms.")
@click.option("--profile", "profiles", multiple=True, metavar="MODEL=FILE[#GRAPH]", help="A measurement with its time.")
@click.option(
    "--binary",
    "binaries",
    multiple=True,
    metavar="MODEL=JSON",
    help="Its memory, from qnn-context-binary-utility --json_file.",
)
@click.option("--preset", metavar="NAME", help="The device, by the name of its preset.")
def import_file(
    file: Path,
    output: Path,
    times: tuple[str, ...],
    profiles: tuple[str, ...],
    binaries: tuple[str, ...],
    preset: str | None,
) -> None:
    """Make a scenario of a configuration.

    FILE is a configuration of qnn-throughput-net-run: each of its threads on the HTP becomes a client. What it does not
    say, how long an execution takes and what a model reserves, comes from the options, or is assumed and marked so.
    """
    refuse_unfit_file(output)
    sources = _sources(times, profiles, binaries)
    from htpsim.scenario.imported import import_throughput

    for text in import_throughput(file, output, sources, preset):
        note(f"! {text}")
    note(f"Written to {output}")


def _sources(times: tuple[str, ...], profiles: tuple[str, ...], binaries: tuple[str, ...]) -> dict[str, ModelSources]:
    from htpsim.scenario.imported import ModelSources

    found: dict[str, ModelSources] = {}
    for option, given in (("--time", times), ("--profile", profiles), ("--binary", binaries)):
        for text in given:
            model, value = _pair(option, text)
            known = found.get(model, ModelSources())
            if option == "--time":
                known = replace(known, time_ns=_time_ns(text, value))
            elif option == "--profile":
                path, _, graph = value.partition("#")
                known = replace(known, profile=Path(path), graph=graph or None)
            else:
                known = replace(known, binary=Path(value))
            if known.time_ns is not None and known.profile is not None:
                raise click.UsageError(f"--time and --profile of {model}: got both, expected one of them")
            found[model] = known
    return found


def _pair(option: str, text: str) -> tuple[str, str]:
    model, equals, value = text.rpartition("=") if option == "--time" else text.partition("=")
    if not equals or not model or not value:
        raise click.UsageError(f"{option}: got '{text}', expected MODEL=VALUE")
    return model, value


def _time_ns(text: str, value: str) -> int:
    try:
        time_ns = parse_time(value)
    except ValueError as error:
        raise click.UsageError(f"--time {text}: {error}") from error
    if time_ns <= 0:
        raise click.UsageError(f"--time: got '{text}', expected a time above zero")
    return time_ns
