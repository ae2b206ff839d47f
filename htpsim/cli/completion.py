"""Completion in the shell: the command that prints the script, and the names that are offered."""

from __future__ import annotations

import os

import click
from click.shell_completion import CompletionItem, get_completion_class, split_arg_string

from htpsim.errors import HtpsimError

SHELLS = ("bash", "zsh", "fish")
PROGRAM, VARIABLE = "htpsim", "_HTPSIM_COMPLETE"
NAMED = {"variant": "variants", "variants": "variants", "case": "cases", "cases": "cases"}
"""Parameters that name a part of a scenario, and the attribute of the file that lists them."""


def scenario_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Offer the shipped scenarios and the .toml files that begin so."""
    from htpsim.scenario.document import shipped

    names = [CompletionItem(name) for name in shipped() if name.startswith(incomplete)]
    return names or [CompletionItem(incomplete, type="file")]


def part_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Offer the variants or cases of the scenario that stands on the command line; none where it cannot be read."""
    from htpsim.scenario import load

    scenario = ctx.params.get("scenario") or _scenario_on_the_line()
    if not scenario:
        return []
    try:
        offered: dict[str, object] = getattr(load(scenario), NAMED[param.name or ""])
    except (HtpsimError, OSError):  # a half-written file is no reason to write into somebody's prompt
        return []
    return [CompletionItem(name) for name in offered if name.startswith(incomplete)]


def _scenario_on_the_line() -> str | None:
    """Return the word that names a scenario: Click has read no further than the option that is being completed."""
    from htpsim.scenario.document import shipped

    names = shipped()
    words = split_arg_string(os.environ.get("COMP_WORDS", ""))[2:]
    return next((word for word in words if word in names or word.endswith(".toml")), None)


def complete_names(group: click.Group) -> None:
    """Let every command offer scenarios where it asks for one, and its variants and cases."""
    for command in group.commands.values():
        own = {param.name: param for param in command.params}
        if "scenario" not in own:
            continue
        for name, param in own.items():
            if name == "scenario":
                param._custom_shell_complete = scenario_names
            elif name in NAMED:
                param._custom_shell_complete = part_names


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that completes commands, options and names.

    \b
    bash:  htpsim completion bash > ~/.htpsim-completion.bash
           echo 'source ~/.htpsim-completion.bash' >> ~/.bashrc
    zsh:   htpsim completion zsh > ~/.htpsim-completion.zsh
           echo 'source ~/.htpsim-completion.zsh' >> ~/.zshrc
    fish:  htpsim completion fish > ~/.config/fish/completions/htpsim.fish

    Then open a new shell. Scenarios, variants and cases complete, too.
    """
    found = get_completion_class(shell)
    assert found is not None
    made = found(ctx.find_root().command, {}, PROGRAM, VARIABLE)
    click.echo(made.source_template % made.source_vars())
