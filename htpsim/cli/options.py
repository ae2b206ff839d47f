"""The options that commands share, and what a contradiction among them is told."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from htpsim.cli.terminal import QUIET
from htpsim.errors import HtpsimError
from htpsim.units import parse_time

if TYPE_CHECKING:
    from htpsim.experiments.precision import Precision

Command = TypeVar("Command", bound=Callable[..., Any])


class Duration(click.ParamType[str]):
    """A time with a unit, above zero; kept as it was written."""

    name = "time"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text when it is a time, and complain otherwise."""
        try:
            length_ns = parse_time(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if length_ns <= 0:
            self.fail(f"got '{value}', expected a time above zero", param, ctx)
        return value


class Percent(click.ParamType[float]):
    """A share above zero, written as a percentage."""

    name = "percent"

    def convert(self, value: str | float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the share of one, or complain."""
        try:
            share = float(str(value).removesuffix("%")) / 100
        except ValueError:
            share = 0.0
        if not 0 < share <= 1:
            self.fail(f"got '{value}', expected a percentage above 0 % and up to 100 %", param, ctx)
        return share


AUTO = "auto"


class WarmUpTime(click.ParamType[str]):
    """A time with a unit, 0, or the word that lets MSER-5 decide."""

    name = "time or auto"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text when it is one of them, and complain otherwise."""
        if value != AUTO:
            try:
                parse_time(value)
            except ValueError as error:
                self.fail(f"{error}, or auto", param, ctx)
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What was asked of `run` or `compare` alike."""

    set_values: tuple[str, ...]
    seed: int | None
    duration: str | None
    replications: int | None
    workers: int | None
    out: Path | None
    as_json: bool
    report: Path | None = None
    lang: str = "en"
    precision: float | None = None
    budget: int | None = None
    engine: str | None = None
    warmup: str | None = None

    def sharpness(self) -> Precision | None:
        """Return how narrow the intervals are to be, where that was asked.

        Raises
        ------
        click.UsageError
            When a budget was given for nothing.
        """
        if self.precision is None:
            if self.budget is not None:
                raise click.UsageError("--budget: got it without --precision, which it limits")
            return None
        from htpsim.experiments.precision import BUDGET, Precision

        return Precision(self.precision, self.budget or BUDGET)

    def wants_logs(self) -> bool:
        """Return whether anything is written that needs the records of the runs."""
        return self.out is not None or self.report is not None

    def assignments(self) -> list[str]:
        """Return all overrides as assignments.

        Raises
        ------
        click.UsageError
            When an option and an assignment set the same value.
        """
        settings = list(self.set_values)
        words = {"duration": self.duration, "engine": self.engine, "warmup": self.warmup}
        own: dict[str, str | int | None] = {key: None if word is None else f'"{word}"' for key, word in words.items()}
        if self.warmup == AUTO:
            own["warmup"] = None
        own |= {"seed": self.seed, "replications": self.replications}
        names = {key: f"--{key}" for key in own} | {"duration": "--for"}
        keys = {assignment.partition("=")[0].replace(" ", "") for assignment in self.set_values}
        for key, value in own.items():
            if value is not None and f"run.{key}" in keys:
                raise click.UsageError(f"{names[key]} and --set run.{key}: got both, expected one of them")
            if value is not None:
                settings.append(f"run.{key}={value}")
        return settings


def shared(command: Command) -> Command:
    """Add the options that `run` and `compare` share; they come as the fields of `Given`."""
    for option in reversed((
        click.option("--set", "set_values", multiple=True, metavar="KEY=VALUE",
                     help="Override a value, such as guard.slots_per=core; repeatable."),
        click.option("--for", "duration", type=Duration(), metavar="TIME", help="Measured time, such as 60s."),
        click.option("--warmup", type=WarmUpTime(), metavar="TIME",
                     help="Time before the measured one; auto: as MSER-5 finds."),
        click.option("--seed", type=click.IntRange(0), metavar="N", help="Seed of every draw."),
        click.option("--replications", type=click.IntRange(1, 1000), metavar="N", help="Independent repetitions."),
        click.option("--precision", type=Percent(), metavar="P%",
                     help="Add repetitions until every interval is as narrow."),
        click.option("--budget", type=click.IntRange(1, 1000), metavar="N",
                     help="Repetitions that --precision may cost; by default 30."),
        click.option("--workers", type=click.IntRange(1), metavar="N",
                     help="Processes; the results do not depend on it."),
        click.option("--engine", type=click.Choice(("auto", "reference", "kernel")),
                     help="Which engine runs it; all leave the same."),
        click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Write a run directory."),
        click.option("--report", type=click.Path(path_type=Path), metavar="FILE", help="Write an HTML report."),
        lang_option,
        as_json,
    )):  # fmt: skip
        command = option(command)
    return command


def refuse_unfit_file(path: Path) -> None:
    """Raise unless a file can be written there: asked before the work, not after.

    Raises
    ------
    HtpsimError
        When it is a folder, or its folder is missing or cannot be written to.
    """
    if path.is_dir():
        raise HtpsimError(f"{path}: got a folder, expected the name of a file to write")
    if not path.absolute().parent.is_dir():
        raise HtpsimError(f"{path}: got a file in no folder that exists, expected one in {path.parent} after making it")
    if not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
        raise HtpsimError(f"{path}: cannot be written to, expected a place of your own")


lang_option = click.option(
    "--lang", type=click.Choice(["en", "zh"]), default="en", help="Language of the report; by default en."
)


def quiet_option() -> click.Option:
    """Return the option that every command has: say nothing beside the result; errors are still told."""

    def remember(ctx: click.Context, param: click.Parameter, value: bool) -> None:
        ctx.meta[QUIET] = value

    return click.Option(
        ["-q", "--quiet"], is_flag=True, expose_value=False, callback=remember, help="No notes, no progress."
    )


as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
