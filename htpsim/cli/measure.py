"""The command that measures a model on this machine: `measure`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from htpsim.cli.options import Duration, refuse_unfit_file
from htpsim.cli.options import as_json as json_option
from htpsim.cli.terminal import note, show, show_json, working
from htpsim.errors import HtpsimError, unknown_name
from htpsim.units import parse_time

_FILE = click.Path(path_type=Path)
_DIGITS_MAX = 18
"""Of a whole number on the command line: no size or length has more."""
_BUILTIN = ("vit", "prefill", "decode")
_SIZES = ("blocks", "width", "tokens", "past")


class Numbers(click.ParamType[tuple[int, ...]]):
    """Whole numbers, separated by commas."""

    name = "numbers"

    def convert(
        self, value: str | tuple[int, ...], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """Return the numbers, or complain."""
        if isinstance(value, tuple):
            return value
        try:
            return tuple(int(part) for part in value.split(","))
        except ValueError:
            self.fail(f"got '{value}', expected whole numbers such as 1,2,4", param, ctx)


class Assigned(click.ParamType[tuple[str, int]]):
    """A name with a whole number: NAME=N."""

    name = "assignment"

    def convert(
        self, value: str | tuple[str, int], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        """Return the two, or complain."""
        if isinstance(value, tuple):
            return value
        name, equals, digits = value.rpartition("=")
        if not equals or not name or not (digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS_MAX):
            self.fail(f"got '{value}', expected a name and a whole number such as batch=1", param, ctx)
        return name, int(digits)


@click.command()
@click.argument("model", metavar="[MODEL.onnx]", required=False, type=_FILE)
@click.option("--builtin", metavar="NAME", help="A small model built on the fly: vit, prefill or decode.")
@click.option("--size", "sizes", multiple=True, type=Assigned(), metavar="KEY=N",
              help="Of it: blocks, width, tokens, past; repeatable.")  # fmt: skip
@click.option("--save", type=_FILE, metavar="FILE", help="Of it: keep it, to run the same elsewhere.")
@click.option("--threads", type=Numbers(), default=(1,), metavar="N,N", help="Threads, each measured; by default 1.")
@click.option("--runs", type=click.IntRange(1), default=200, metavar="N", help="Warm runs; a p99 needs 200.")
@click.option("--for", "duration", type=Duration(), default="60s", metavar="TIME",
              help="At most so long, each; by default 60s.")  # fmt: skip
@click.option(
    "--warmup", type=click.IntRange(0), default=5, metavar="N", help="Runs after the first that do not count."
)
@click.option("--dim", "dims", multiple=True, type=Assigned(), metavar="NAME=N",
              help="Length of a dimension that the model leaves open; repeatable.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=1, metavar="N", help="Seed of the inputs.")
@click.option("--operators", type=click.IntRange(0), default=0, metavar="N", help="Profile N further runs by operator.")
@click.option("-o", "--output", type=_FILE, metavar="FILE", help="Write a preset: a .toml with its provenance.")
@click.option("--role", default="other", metavar="NAME", help="Of the preset's model: other or vit.")
@click.option("--image-tokens", type=click.IntRange(0), metavar="N", help="Of a vit: prompt tokens of an image.")
@click.option("--qnn-viewer", type=_FILE, metavar="FILE", help="Statistics in the form of qnn-profile-viewer.")
@click.option("--qnn-csv", type=_FILE, metavar="FILE", help="Profiled runs by operator in the columns of a QNN CSV.")
@json_option
def measure(  # noqa: PLR0913, PLR0917 - a parameter for each option
    model: Path | None, builtin: str | None, sizes: tuple[tuple[str, int], ...], save: Path | None,
    threads: tuple[int, ...], runs: int, duration: str, warmup: int, dims: tuple[tuple[str, int], ...], seed: int,
    operators: int, output: Path | None, role: str, image_tokens: int | None, qnn_viewer: Path | None,
    qnn_csv: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Measure a model in ONNX Runtime on this machine.

    Latency of warm runs, the first run, loading, memory, and signs of noise. With several --threads, a file that is
    written holds the first of them. Needs the extra: pip install "htpsim[measure]".
    """
    _refuse(model, builtin, sizes, save, {"-o": output, "--qnn-viewer": qnn_viewer, "--qnn-csv": qnn_csv}, role)
    if image_tokens is not None and (role != "vit" or output is None):
        raise click.UsageError("--image-tokens: got it alone, expected it with -o FILE.toml --role vit")
    with working("measuring") as told:
        from htpsim.experiments.measured import preset
        from htpsim.formats.writers.measured import measured_csv_lines, measured_viewer_lines
        from htpsim.formats.writers.whole import write_text
        from htpsim.live.measuring import PROFILED, Asked
        from htpsim.live.measuring import measure as run

        given: bytes | Path = model if model is not None else _built(builtin or "", dict(sizes), save)
        asked = Asked(
            threads=threads, runs=runs, at_most_ns=parse_time(duration), warmup=warmup, dims=dict(dims), seed=seed,
            profiled=operators or (PROFILED if qnn_csv is not None else 0),
        )  # fmt: skip
        found = run(given, asked, command=["htpsim", *sys.argv[1:]], told=told)
        first = found.measured[0]
        warned: list[str] = []
        if output is not None:
            made = preset(found, role="vit" if role == "vit" else "other", image_tokens=image_tokens)
            made.write(output)
            warned = [warning for warning in made.warnings if warning not in found.doubts(first)]
        if qnn_viewer is not None:
            write_text(measured_viewer_lines(found.executions(first)), qnn_viewer)
        if qnn_csv is not None:
            write_text(measured_csv_lines(found.executions(first, profiled=True)), qnn_csv)
    if as_json:
        show_json(found.to_dict())
    else:
        from htpsim.report.measured import measured_page

        show(measured_page(found))
    for warning in warned:
        note(f"! {warning}")
    for path in (output, qnn_viewer, qnn_csv, save):
        if path is not None:
            note(f"Written to {path}")


def _refuse(
    model: Path | None, builtin: str | None, sizes: tuple[tuple[str, int], ...], save: Path | None,
    outputs: dict[str, Path | None], role: str,
) -> None:  # fmt: skip
    """Raise for what contradicts itself, before anything is measured."""
    if (model is None) == (builtin is None):
        got = "neither MODEL nor --builtin" if model is None else "both MODEL and --builtin"
        raise click.UsageError(f"got {got}, expected one of them")
    if model is not None and (sizes or save is not None):
        raise click.UsageError(f"{'--size' if sizes else '--save'}: got it with MODEL, expected it with --builtin only")
    if builtin is not None and builtin not in _BUILTIN:
        raise HtpsimError(unknown_name("--builtin", builtin, _BUILTIN))
    for name, _ in sizes:
        if name not in _SIZES:
            raise HtpsimError(unknown_name("--size", name, _SIZES))
    if role not in ("other", "vit"):
        raise HtpsimError(unknown_name("--role", role, ("other", "vit")))
    if outputs["-o"] is not None and outputs["-o"].suffix != ".toml":
        raise click.UsageError(f"-o: got '{outputs['-o']}', expected a .toml file, the only kind that is a preset")
    named = [path for path in (*outputs.values(), save) if path is not None]
    for path in named:
        refuse_unfit_file(path)
    if len({path.resolve() for path in named}) < len(named):
        raise click.UsageError("got one file for two results, expected a file for each")
    if model is not None and model.resolve() in {path.resolve() for path in named}:
        raise click.UsageError(f"got {model} as the model and as a result, expected another file for the result")


def _built(name: str, sizes: dict[str, int], save: Path | None) -> bytes:
    from htpsim.formats.writers.whole import whole_file
    from htpsim.live.models import build

    made = build(name, **sizes)
    if save is not None:
        with whole_file(save) as unfinished:
            unfinished.write_bytes(made)
    return made
