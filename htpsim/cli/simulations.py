"""The commands that simulate: `run` one scenario, `compare` its variants."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from htpsim.cli.options import AUTO, Given, refuse_unfit_file, shared
from htpsim.cli.report import write as write_html
from htpsim.cli.terminal import note, progress, show, show_json, working


@click.command()
@click.argument("scenario")
@click.option("--variant", metavar="NAME", help="Variant of the file; without it, the file as it stands.")
@click.option("--case", metavar="NAME", help="Case of the file.")
@click.option("--option", "options", multiple=True, metavar="NAME.OPTION", help="Option of an assumption; repeatable.")
@click.option("--replication", type=click.IntRange(0), metavar="K", help="Run only repetition K, counted from 0.")
@click.option(
    "--trace",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write a trace: JSON lines for .jsonl, Perfetto's for .pftrace, else Chrome trace JSON.",
)
@click.option("--check", is_flag=True, help="Check every rule while it runs; slow.")
@shared
def run(
    scenario: str, variant: str | None, case: str | None, options: tuple[str, ...], replication: int | None,
    trace: Path | None, check: bool, **given: Any,
) -> None:  # fmt: skip
    """Simulate one scenario.

    SCENARIO is the path of a .toml file, or the name of a shipped one (htpsim scenarios).
    """
    asked = Given(**given)
    settings = asked.assignments()
    if replication is not None and asked.replications is not None:
        raise click.UsageError("--replication and --replications: got both, expected one of them")
    if replication is not None and asked.sharpness() is not None:
        raise click.UsageError("--replication and --precision: got both, expected one of them")
    _refuse(asked)
    if trace is not None:
        from htpsim.formats.trace import form_of

        refuse_unfit_file(trace)
        form_of(trace)
    with working("loading"):
        from htpsim.experiments.single import run_one
        from htpsim.report.pages import single_dict, single_page
    settings += _settled(asked, scenario, settings, [variant], [case], options)
    with progress("run") as told:
        single = run_one(
            scenario, variant=variant, case=case, options=options, set_values=settings, replication=replication,
            check=check, precision=asked.sharpness(), workers=asked.workers, progress=told,
        )  # fmt: skip
    if asked.out is not None:
        with working(f"writing {asked.out}"):
            from htpsim.report.directory import write_single

            write_single(single, asked.out, sys.argv)
    if trace is not None:
        with working(f"writing {trace}"):
            from htpsim.formats.trace import next_steps, write_trace

            write_trace(single.trace(), trace)
    if single.log.engine_why:
        note(f"Ran in the reference engine: {single.log.engine_why}.")
    if asked.as_json:
        show_json(single_dict(single))
    else:
        show(single_page(single))
    _tell_where(asked.out)
    if asked.report is not None:
        from htpsim.report.html import from_single

        write_html(from_single(single, sys.argv), asked.report, asked.lang)
    if trace is not None:
        note(f"Written to {trace}: {next_steps(trace)}")


@click.command()
@click.argument("scenario")
@click.option(
    "--variant",
    "variants",
    multiple=True,
    metavar="NAME",
    help="Compare only these; repeatable. The first is what the others are compared with.",
)
@click.option("--case", "cases", multiple=True, metavar="NAME", help="Only these cases; repeatable.")
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="NAME.OPTION",
    help="Option of an assumption that holds throughout; repeatable.",
)
@click.option("--grid/--no-grid", default=True, help="Ask which assumption would change a sign.")
@shared
def compare(
    scenario: str, variants: tuple[str, ...], cases: tuple[str, ...], options: tuple[str, ...], grid: bool, **given: Any
) -> None:  # fmt: skip
    """Set the variants of a scenario side by side.

    All see the same draws. SCENARIO is the path of a .toml file, or the name of a shipped one (htpsim scenarios). Ends
    with the answer in short: by how much each variant differs from the first.
    """
    asked = Given(**given)
    settings = asked.assignments()
    asked.sharpness()
    _refuse(asked)
    with working("loading"):
        from htpsim.experiments.compare import compare as compare_variants
        from htpsim.report.pages import comparison_dict, comparison_page
    settings += _settled(asked, scenario, settings, variants, cases, options)
    with progress("run") as told:
        comparison = compare_variants(
            scenario, set_values=settings, variants=variants, cases=cases, options=options, grid=grid,
            precision=asked.sharpness(), keep_logs=asked.wants_logs(), workers=asked.workers, progress=told,
        )  # fmt: skip
    if asked.out is not None:
        with working(f"writing {asked.out}"):
            from htpsim.report.directory import write_comparison

            write_comparison(comparison, asked.out, sys.argv)
    if asked.as_json:
        show_json(comparison_dict(comparison))
    else:
        show(comparison_page(comparison))
    _tell_where(asked.out)
    if asked.report is not None:
        from htpsim.report.html import from_comparison

        write_html(from_comparison(comparison, sys.argv), asked.report, asked.lang)


def _refuse(asked: Given) -> None:
    """Complain of what cannot be written before any time goes into simulating."""
    if asked.out is not None:
        from htpsim.report.directory import refuse_unfit

        refuse_unfit(asked.out)
    if asked.report is not None:
        refuse_unfit_file(asked.report)


def _settled(
    asked: Given, scenario: str, settings: list[str], variants: Sequence[str | None], cases: Sequence[str | None],
    options: tuple[str, ...],
) -> list[str]:  # fmt: skip
    """Return the warm-up as an assignment where it was left to MSER-5: the longest of all that is run."""
    if asked.warmup != AUTO:
        return []
    with working("looking where it settles"):
        from htpsim.experiments.warmup import common_warm_up
        from htpsim.scenario import load
        from htpsim.scenario.quantities import write

        file = load(scenario, set_values=settings)
        found = common_warm_up(
            file.resolve(variant, case, options).scenario
            for variant in variants or list(file.variants) or [None]
            for case in cases or list(file.cases) or [None]
        )
    note(f"Warm-up by MSER-5: {write(found.length_ns, 'ns')} ({', '.join(f'{k}: {v}' for k, v in found.said.items())})")
    return [f'run.warmup="{found.length_ns}ns"']


def _tell_where(out: Path | None) -> None:
    if out is not None:
        note(f"Written to {out}: start with {out / 'report.txt'} and the .png files beside it.")
