"""The command that makes a scenario from what real tools wrote: `calibrate`."""

from __future__ import annotations

from pathlib import Path

import click

from htpsim.cli.options import as_json as json_option
from htpsim.cli.options import lang_option, refuse_unfit_file
from htpsim.cli.terminal import note, show, show_json, working

_FILE = click.Path(path_type=Path)


@click.command()
@click.argument("files", metavar="[FILE]...", nargs=-1, type=_FILE)
@click.option("-o", "--output", type=_FILE, metavar="FILE", help="Write the scenario there; else print it.")
@click.option(
    "--vit",
    multiple=True,
    type=_FILE,
    metavar="FILE",
    help="Profile or binary facts of the ViT; repeatable. A legacy ViT is in no genie_config.",
)
@click.option("--instances", type=click.IntRange(1, 1000), default=1, metavar="N", help="VLMs in the scenario.")
@click.option("--sizes", type=_FILE, metavar="FILE", help="TOML table of bytes that no log states: [vit] weights = ...")
@click.option(
    "--bytes",
    "nbytes",
    multiple=True,
    metavar="KEY=SIZE",
    help="The same by hand, such as vit.weights=406MiB; repeatable.",
)
@click.option("--image-tokens", type=click.IntRange(0), metavar="N", help="Prompt tokens that one image becomes.")
@click.option("--as-recorded", is_flag=True, help="The one run of a verbose log, to score it against the log.")
@click.option("--method", default="auto", metavar="NAME",
              help="How service times are modelled: auto, constant, sample or fit.")  # fmt: skip
@click.option("--statistic", default="average", metavar="NAME", help="What a constant is: average or median.")
@click.option("--component", metavar="NAME", help="Of a perf.yaml: which component.")
@click.option("--device", metavar="NAME", help="Of a perf.yaml: which device.")
@click.option("--runtime", metavar="NAME", help="Of a perf.yaml: which runtime.")
@click.option("--precision", metavar="NAME", help="Of a perf.yaml: which precision.")
@click.option("--report", type=_FILE, metavar="FILE", help="Compare its variants too, and write an HTML report.")
@lang_option
@json_option
def calibrate(  # noqa: PLR0913, PLR0917 - a parameter for each option
    files: tuple[Path, ...], output: Path | None, vit: tuple[Path, ...], instances: int, sizes: Path | None,
    nbytes: tuple[str, ...], image_tokens: int | None, as_recorded: bool, method: str, statistic: str,
    component: str | None, device: str | None, runtime: str | None, precision: str | None,
    report: Path | None, lang: str, as_json: bool,
) -> None:  # fmt: skip
    """Make a scenario from logs, profiles and configurations.

    FILE is whatever a real tool wrote: a console log of Genie, profiles of graphs, genie_config.json,
    htp_backend_ext_config.json, an AI Hub perf.yaml. Every value in the scenario names its file and line.
    """
    if not files and not vit:
        raise click.UsageError("got no file, expected at least one FILE or --vit FILE")
    if report is not None and output is None:
        raise click.UsageError("--report: got no -o FILE, expected one: the report names the scenario that it shows")
    for written in (output, report):
        if written is not None:
            refuse_unfit_file(written)
    with working("calibrating"):
        from htpsim.experiments.calibrate import calibrate as from_files

        found = from_files(
            files, vit=vit, instances=instances, sizes=sizes, nbytes=nbytes, image_tokens=image_tokens,
            as_recorded=as_recorded, method=method, statistic=statistic, component=component, device=device,
            runtime=runtime, precision=precision,
        )  # fmt: skip
        if output is not None:
            found.write(output)
        else:
            found.check()
    if as_json:
        show_json(found.to_dict())
    elif output is None:
        click.echo(found.to_toml(), nl=False)
        return
    else:
        from htpsim.report.calibration import calibration_page

        show(calibration_page(found))
    if output is not None:
        note(f"Written to {output}: htpsim run {output}")
    if report is not None:
        from htpsim.cli.report import compared, write

        write(compared(str(output)), report, lang)
