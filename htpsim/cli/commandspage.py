"""The reference of the command line: every command, argument and option, made from the commands themselves."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Final

import click

from htpsim.cli.app import HELP, cli
from htpsim.cli.shapes import ANY, EXIT_CODES, JSON, WRITES

_HEAD: Final = """\
# Commands

This page is written by the code (`htpsim.cli.commandspage`); a test holds it to that, and another runs every command.

`htpsim COMMAND --help` has the same in the terminal. Results go to standard output, everything else (progress, notes
on what was written, errors) to standard error. Tables fit 80 columns; colour comes only on a terminal where `NO_COLOR`
is not set. `SCENARIO` is the path of a `.toml` file or the name of a shipped one.

| option of every command | meaning |
| --- | --- |
{shared}

## Exit codes

| code | meaning |
| ---: | --- |
{codes}

## JSON

With `--json` a command prints one document instead of tables: times in nanoseconds, sizes in bytes, shares of one.
Each command below lists the keys at its top. Commands without `--json` print no table:

{writes}
"""


def page() -> str:
    """Return the whole page.

    >>> page().splitlines()[0]
    '# Commands'
    """
    common = (*_common(), ("`-h`, `--help`", "say what the command does and which options it has, and leave"))
    codes = "\n".join(f"| {code} | {text} |" for code, text in EXIT_CODES.items())
    writes = "\n".join(f"- `{name}` leaves {text}." for name, text in WRITES.items())
    shared = "\n".join(f"| {names} | {text} |" for names, text in common)
    parts = [_HEAD.format(shared=shared, codes=codes, writes=writes)]
    for name, command in cli.commands.items():
        parts += [f"## {name}", "", *_command(name, command), ""]
    return "\n".join(parts).rstrip() + "\n"


def _common() -> Iterator[tuple[str, str]]:
    """Yield the options that every command has."""
    each = [{str(param.opts): param for param in command.params} for command in cli.commands.values()]
    for opts, param in each[0].items():
        if all(opts in other for other in each[1:]) and isinstance(param, click.Option):
            yield ", ".join(f"`{name}`" for name in param.opts), _help(param)


def _command(name: str, command: click.Command) -> Iterator[str]:
    # A command keeps the help option that it is first asked with, so that it must be asked as the program does.
    context = click.Context(command, info_name=f"htpsim {name}", help_option_names=HELP)
    usage = command.get_usage(context).removeprefix("Usage: ")
    yield from ("```text", " ".join(usage.split()), "```", "")
    yield from _paragraphs(inspect.cleandoc(command.help or ""))
    common = {names for names, _ in _common()}
    rows = [row for param in command.params if isinstance(param, click.Option) and (row := _option(param))]
    rows = [row for row in rows if row[0].partition(" ")[0] not in {names.partition(" ")[0] for names in common}]
    if rows:
        yield from ("| option | takes | default | meaning |", "| --- | --- | --- | --- |")
        yield from ("| " + " | ".join(row) + " |" for row in rows)
        yield ""
    if name in JSON:
        one = "a list of documents with" if name == "policies" else "a document with"
        yield from (f"`--json`: {one}", "", "| key | holds |", "| --- | --- |")
        for key, text in JSON[name].items():
            yield f"| {'each name' if key == ANY else f'`{key}`'} | {text} |"


def _paragraphs(text: str) -> Iterator[str]:
    """Yield the text of a command; what is not to be wrapped stays as it is, in a block."""
    for paragraph in text.split("\n\n"):
        if paragraph.startswith("\b"):
            yield from ("```text", *paragraph.splitlines()[1:], "```", "")
        else:
            yield from (" ".join(paragraph.split()), "")


def _option(param: click.Option) -> tuple[str, ...] | None:
    if param.hidden:
        return None
    names = ", ".join(f"`{name}`" for name in (*param.opts, *param.secondary_opts))
    return names, _takes(param), _default(param), _help(param)


def _help(param: click.Option) -> str:
    return (param.help or "").removesuffix(".")


def _takes(param: click.Option) -> str:
    if param.is_flag:
        return ""
    if isinstance(param.type, click.Choice):
        return ", ".join(f"`{choice}`" for choice in param.type.choices)
    limits = ""
    if isinstance(param.type, click.IntRange):
        least, most = param.type.min, param.type.max
        limits = f" from {least}" + ("" if most is None else f" to {most}")
    return f"{param.metavar or param.type.name}{limits}" + (", repeatable" if param.multiple else "")


def _default(param: click.Option) -> str:
    if param.required:
        return "required"
    if param.is_flag:
        return "on" if param.default is True and param.secondary_opts else "off"
    plain = isinstance(param.default, str | int | float) and not isinstance(param.default, bool)
    return f"`{param.default}`" if plain and not param.multiple else ""
