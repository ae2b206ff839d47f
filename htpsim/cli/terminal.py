"""What reaches the terminal: pages and JSON on standard output, progress on standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import RenderableType

    from htpsim.experiments.runner import Progress

QUIET = "htpsim.quiet"
"""Where a command keeps that it was asked to be quiet, in the `meta` of its context."""
READER_GONE = 141
"""What a shell shows for a program that wrote to a pipe that nobody reads: 128 + SIGPIPE."""


def show(page: RenderableType) -> None:
    """Print a page: in colour on a terminal where NO_COLOR is not set, as plain text elsewhere."""
    from htpsim.report.cells import console, to_text

    made = console()
    if made.is_terminal:
        made.print(page)
    else:
        click.echo(to_text(page, made.width), nl=False)


def show_json(value: object) -> None:
    """Print JSON in the form that run directories use."""
    from htpsim.results.write import json_text

    click.echo(json_text(value), nl=False)


@contextmanager
def reader_may_leave() -> Iterator[None]:
    """Where nobody reads what is printed any more (``| head``), leave without a word.

    It goes inside Click's own handling, which would leave with 1: that a check failed.
    """
    try:
        yield
    except BrokenPipeError:
        # What is still buffered has nowhere to go; without this, Python would complain of it on leaving.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(READER_GONE) from None


def note(text: str) -> None:
    """Tell something that is no result, on standard error, unless the command is to be quiet."""
    if not _quiet():
        click.echo(text, err=True)


def _quiet() -> bool:
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(QUIET))


@contextmanager
def progress(title: str) -> Iterator[Progress | None]:
    """Show a bar on standard error while runs are under way; nothing where that is not a terminal, or with -q."""
    if _quiet() or not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    from htpsim.report.cells import console

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        job = bar.add_task(title, total=None)

        def update(done: float, total: int, what: str) -> None:
            bar.update(job, completed=done, total=total, description=f"{title} {int(done)} of {total}: {what}")

        yield update


@contextmanager
def working(title: str) -> Iterator[Callable[[str], None]]:
    """Show on a terminal that something without a measure of progress is under way; nothing with -q.

    What it gives changes the title.
    """
    if _quiet() or not sys.stderr.isatty():
        yield lambda _: None
        return
    from htpsim.report.cells import console

    with console(stderr=True).status(title) as status:
        yield status.update
