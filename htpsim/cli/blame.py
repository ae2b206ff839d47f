"""The command that says who made a token slow."""

from __future__ import annotations

from typing import Any

import click

from htpsim.cli.options import Duration, Given, Percent
from htpsim.cli.options import as_json as json_option
from htpsim.cli.terminal import progress, show, show_json, working


class TokenName(click.ParamType[tuple[str, int, int]]):
    """CLIENT:REQUEST:TOKEN."""

    name = "token"

    def convert(
        self, value: str | tuple[str, int, int], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int, int]:
        """Return its three parts, or complain."""
        if isinstance(value, tuple):
            return value
        client, _, numbers = value.partition(":")
        request, _, token = numbers.partition(":")
        if not (client and request.isdecimal() and token.isdecimal()):
            self.fail(f"got '{value}', expected CLIENT:REQUEST:TOKEN, such as vlm0:3:17", param, ctx)
        return client, int(request), int(token)


@click.command()
@click.argument("scenario")
@click.option("--variant", metavar="NAME", help="Variant of the file; without it, the file as it stands.")
@click.option("--case", metavar="NAME", help="Case of the file.")
@click.option("--option", "options", multiple=True, metavar="NAME.OPTION", help="Option of an assumption; repeatable.")
@click.option("--replication", type=click.IntRange(0), default=0, metavar="K", help="Repetition, counted from 0.")
@click.option("--metric", type=click.Choice(["itl", "ttft"]), default="itl", help="Which delay to take apart.")
@click.option("--slowest", type=Percent(), default="1%", metavar="P%", help="How much of the slow end; by default 1%.")
@click.option("--client", "clients", multiple=True, metavar="NAME", help="Only tokens of this instance; repeatable.")
@click.option("--token", type=TokenName(), metavar="C:R:T", help="One token: client, request, number; 0 is the first.")
@click.option("--set", "set_values", multiple=True, metavar="KEY=VALUE", help="Override a value; repeatable.")
@click.option("--for", "duration", type=Duration(), metavar="TIME", help="Measured time, such as 60s.")
@click.option("--seed", type=click.IntRange(0), metavar="N", help="Seed of every draw.")
@json_option
def blame(
    scenario: str, metric: str, slowest: float, clients: tuple[str, ...], token: tuple[str, int, int] | None,
    as_json: bool, **which: Any,
) -> None:  # fmt: skip
    """Say who made a token slow.

    Takes apart the slowest gaps between tokens (or first tokens): what they waited for, whose graph it was, on which
    path; and shows who delayed whom over the run. SCENARIO is the path of a .toml file, or the name of a shipped one.
    """
    if token is not None and clients:
        raise click.UsageError("--token and --client: got both, expected one of them")
    values = {name: which.pop(name) for name in ("set_values", "duration", "seed")}
    settings = Given(**values, replications=None, workers=1, out=None, as_json=as_json).assignments()
    with working("loading"):
        from htpsim.experiments.single import run_one
        from htpsim.report.blame import blame_dict, blame_page
        from htpsim.results.delays import delay_of, named_token, slowest_tokens
    with progress("run") as told:
        single = run_one(scenario, set_values=settings, workers=1, progress=told, **which)
    with working("asking"):
        blamed = single.result.blame
        keys = [named_token(blamed, *token)] if token else slowest_tokens(blamed, metric, slowest, clients)
        delays = [delay_of(blamed, key) for key in keys]
        if token:
            metric = "itl" if token[2] else "ttft"
        of = ":".join(map(str, token)) if token else f"the slowest {100 * slowest:g} %"
    if as_json:
        show_json(blame_dict(blamed, metric, delays))
    else:
        show(blame_page(blamed, metric, delays, of=of))
