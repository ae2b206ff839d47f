"""The group of commands, and the one place where an error becomes a message and an exit code."""

from __future__ import annotations

import io
import sys
import traceback
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from htpsim.cli.blame import blame
from htpsim.cli.calibrate import calibrate
from htpsim.cli.completion import complete_names, completion
from htpsim.cli.diff_engines import diff_engines
from htpsim.cli.doctor import doctor
from htpsim.cli.export import export
from htpsim.cli.files import inspect, scenarios, schema
from htpsim.cli.fit import fit
from htpsim.cli.imports import import_file
from htpsim.cli.live import live
from htpsim.cli.measure import measure
from htpsim.cli.options import quiet_option
from htpsim.cli.report import report
from htpsim.cli.rules import check, explain_policy, policies, validate
from htpsim.cli.score import score
from htpsim.cli.sensitivity import sensitivity
from htpsim.cli.simulations import compare, run
from htpsim.cli.sweep import sweep
from htpsim.cli.terminal import reader_may_leave
from htpsim.cli.tune import tune
from htpsim.errors import HtpsimError

HELP = ["-h", "--help"]
SETTINGS = {"help_option_names": HELP, "max_content_width": 80}
BAD_INPUT = 2
OWN_FAULT = 3
INTERRUPTED = 130


class Commands(click.Group):
    """The group of commands: whatever prints, help included, may lose its reader."""

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Read the command line; this is where the group prints its help."""
        with reader_may_leave():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        with reader_may_leave():
            return super().invoke(ctx)


@click.group(cls=Commands, context_settings=SETTINGS)
@click.version_option(package_name="htpsim", message="htpsim %(version)s")
def cli() -> None:
    """Simulate how several vision-language models share one Hexagon NPU.

    Start with:  htpsim scenarios   then   htpsim compare vit_migration

    Exit codes: 0 all well; 1 a check failed; 2 bad input; 3 an invariant broke; 130 interrupted.
    """


for command in (
    *(run, live, compare, sweep, sensitivity, tune, report, blame, fit),
    *(scenarios, calibrate, measure, score, inspect, import_file, export, schema),
    *(policies, check, explain_policy, validate, diff_engines),
    *(doctor, completion),
):
    command.params.append(quiet_option())
    cli.add_command(command)
complete_names(cli)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line, by default that of this process, and leave with its exit code."""
    _forgive_characters()
    sys.exit(_outcome(arguments))


def _forgive_characters() -> None:
    """Let a terminal that lacks a character, or a file name that is no text, print as "?" instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _outcome(arguments: Sequence[str] | None) -> int:
    """Run the command and return its exit code, the message of an error printed."""
    try:
        code = cli.main(arguments, standalone_mode=False)
    except click.exceptions.Abort:
        click.echo("htpsim: interrupted", err=True)
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except HtpsimError as error:
        return _told(str(error), error.exit_code)
    except FileNotFoundError as error:
        return _told(f"{error.filename}: got no such file, expected one that can be read", BAD_INPUT)
    except OSError as error:
        where = f"{error.filename}: " if error.filename is not None else ""
        return _told(f"{where}{(error.strerror or str(error)).lower()}", BAD_INPUT)
    except MemoryError:
        return _told("out of memory; try --workers 1, or a shorter --for", BAD_INPUT)
    except Exception:  # a fault of ours; where it happened is what a report needs
        traceback.print_exc()
        return _told("the above is a fault of htpsim, not of your input; please report it", OWN_FAULT)
    return code if isinstance(code, int) else 0


def _told(text: str, code: int) -> int:
    click.echo(f"htpsim: {text}", err=True)
    return code
