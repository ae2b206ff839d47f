"""The command line: a thin shell that reads options, calls the library and prints what it returns.

Exit codes: 0 all well; 1 a check failed; 2 bad input or usage; 3 an invariant broke; 130 interrupted.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from htpsim.errors import HtpsimError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from htpsim.experiments.runner import Progress

SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(context_settings=SETTINGS)
@click.version_option(package_name="htpsim", message="htpsim %(version)s")
def cli() -> None:
    """Simulate how several vision-language models share one Hexagon NPU.

    Start with:  htpsim scenarios   then   htpsim compare vit_migration
    """


def main() -> None:
    """Run the command line and leave with its exit code."""
    try:
        code = cli.main(standalone_mode=False)
    except click.exceptions.Abort:
        code = 130
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except HtpsimError as error:
        click.echo(f"htpsim: {error}", err=True)
        code = error.exit_code
    except (OSError, UnicodeError) as error:
        click.echo(f"htpsim: {error}", err=True)
        code = 2
    sys.exit(code if isinstance(code, int) else 0)


def _show(page: RenderableType) -> None:
    """Print to the terminal, in colour only where it is one and NO_COLOR is not set."""
    from htpsim.report.cells import console

    console().print(page)


def _show_json(value: object) -> None:
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


@contextmanager
def _progress(title: str) -> Iterator[Progress | None]:
    """Show a bar on standard error while runs are under way; nothing where that is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from htpsim.report.cells import console

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        job = bar.add_task(title, total=None)

        def update(done: int, total: int, what: str) -> None:
            bar.update(job, completed=done, total=total, description=f"{title}: {what}")

        yield update


def _options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that `run` and `compare` share."""
    for option in (
        click.option("--set", "set_values", multiple=True, metavar="KEY=VALUE", help="Override a value; repeatable."),
        click.option("--seed", type=int, help="Seed of every draw."),
        click.option("--for", "duration", metavar="TIME", help="Measured time, such as 60s."),
        click.option("--replications", type=click.IntRange(1, 1000), help="Independent repetitions."),
        click.option("--workers", type=click.IntRange(1), help="Processes; the results do not depend on it."),
        click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Write a run directory."),
        click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables."),
    ):
        command = option(command)
    return command


def _settings(
    set_values: tuple[str, ...], seed: int | None, duration: str | None, replications: int | None
) -> list[str]:
    """Return all overrides as assignments."""
    settings = list(set_values)
    for key, value in (("seed", seed), ("replications", replications)):
        if value is not None:
            settings.append(f"run.{key}={value}")
    if duration is not None:
        settings.append(f'run.duration="{duration}"')
    return settings


@cli.command()
@click.argument("scenario")
@click.option("--variant", help="Variant of the file.")
@click.option("--case", help="Case of the file.")
@click.option("--option", "options", multiple=True, metavar="NAME.OPTION", help="Option of an assumption; repeatable.")
@click.option("--check/--no-check", default=False, help="Validate every state machine after every action.")
@_options
def run(
    scenario: str, variant: str | None, case: str | None, options: tuple[str, ...], check: bool, **given: Any
) -> None:
    """Run one SCENARIO: the path of a .toml file, or a shipped one's name."""
    from htpsim.experiments.single import run_one
    from htpsim.report.pages import single_page

    settings = _settings(given["set_values"], given["seed"], given["duration"], given["replications"])
    with _progress("running") as progress:
        single = run_one(
            scenario, variant=variant, case=case, options=options, set_values=settings, check=check,
            workers=given["workers"], progress=progress,
        )  # fmt: skip
    if given["out"] is not None:
        from htpsim.report.directory import write_single

        write_single(single, given["out"], sys.argv)
    if given["as_json"]:
        _show_json([summary.to_dict() for summary in single.summaries])
        return
    _show(single_page(single))
    _tell_where(given["out"])


@cli.command()
@click.argument("scenario")
@click.option(
    "--variant", "variants", multiple=True, help="Compare only these; repeatable, the first is the reference."
)
@click.option("--case", "cases", multiple=True, help="Only these cases; repeatable.")
@click.option("--grid/--no-grid", default=True, help="Ask which assumption would change a sign.")
@_options
def compare(scenario: str, variants: tuple[str, ...], cases: tuple[str, ...], grid: bool, **given: Any) -> None:
    """Compare the variants of a SCENARIO on the same draws."""
    from htpsim.experiments.compare import compare as compare_variants
    from htpsim.report.pages import comparison_dict, comparison_page

    settings = _settings(given["set_values"], given["seed"], given["duration"], given["replications"])
    with _progress("comparing") as progress:
        comparison = compare_variants(
            scenario, set_values=settings, variants=variants, cases=cases, grid=grid,
            keep_logs=given["out"] is not None, workers=given["workers"], progress=progress,
        )  # fmt: skip
    if given["out"] is not None:
        from htpsim.report.directory import write_comparison

        write_comparison(comparison, given["out"], sys.argv)
    if given["as_json"]:
        _show_json(comparison_dict(comparison))
        return
    _show(comparison_page(comparison))
    _tell_where(given["out"])


def _tell_where(out: Path | None) -> None:
    if out is not None:
        click.echo(f"\nWritten to {out}/ : start with {out / 'report.txt'} and the .png files beside it.")


@cli.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--format", "format_name", help="Name of the format; by default it is recognised from the content.")
@click.option("--lenient", is_flag=True, help="Read also what people retyped or reworded.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def inspect(file: Path, format_name: str | None, lenient: bool, as_json: bool) -> None:
    """Read a FILE of the ecosystem's tools: profiling logs, perf.yaml, genie and HTP configs."""
    from htpsim.formats import read

    report = read(file, format=format_name, lenient=lenient)
    if as_json:
        _show_json(report.to_json())
        return
    from htpsim.report.text import inspect_table

    _show(inspect_table(report))


@cli.command()
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="File to write; else print it.")
def schema(output: Path | None) -> None:
    """Print the JSON Schema of scenario files; name it in a file's first line: #:schema ./scenario.schema.json."""
    from htpsim.scenario import json_schema

    if output is None:
        _show_json(json_schema())
        return
    output.write_text(json.dumps(json_schema(), indent=2) + "\n", encoding="utf-8")
    click.echo(f"Written to {output}")


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def scenarios(as_json: bool) -> None:
    """List the scenarios that are shipped, with the question each answers."""
    from htpsim.report.pages import scenarios_page
    from htpsim.scenario import load, shipped

    files = {name: load(path) for name, path in shipped().items()}
    if as_json:
        _show_json({name: {"title": f.title, "question": f.question} for name, f in files.items()})
        return
    _show(scenarios_page(files))
