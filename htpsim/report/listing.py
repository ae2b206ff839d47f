"""Pages about rules rather than runs: the policies there are, and what theory says of the simulator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from htpsim.experiments.theory import OracleResult
from htpsim.report.cells import stack, table
from htpsim.scenario.quantities import write
from htpsim.sched.catalogue import PolicyCard


def policies_page(cards: Sequence[PolicyCard]) -> RenderableType:
    """Return the guard policies that there are: what each does, and its parameters with their defaults."""
    rows = [[card.name, _told(card)] for card in cards]
    said = (
        "Choose with --set guard.policy=quota, set a parameter with --set guard.params.period=50ms; or in a scenario's "
        "[guard]. A policy of your own is a class, named as module:Class. Which rule the real guard follows is not "
        "public: each of these is an assumption."
    )
    return stack(table("Guard policies", ["name", "what it does"], rows, left=2), Text(said, style="dim"))


def _told(card: PolicyCard) -> str:
    lines = [card.summary.replace("``", "")]
    lines += [f"- {setting(name, default)}: {text}" for name, (default, text) in card.params.items()]
    return "\n".join(lines)


def setting(name: str, default: int) -> str:
    """Write a parameter and its default the way a scenario file does.

    >>> setting("period_ns", 100_000_000), setting("borrow", 1)
    ('period = 100ms', 'borrow = 1')
    """
    return f"{name.removesuffix('_ns')} = {write(default, 'ns')}" if name.endswith("_ns") else f"{name} = {default}"


def policies_dict(cards: Sequence[PolicyCard]) -> list[dict[str, Any]]:
    """Return the policies in JSON form, with source, bound, premise and cost."""
    return [
        {
            **{name: value for name, value in asdict(card).items() if name != "params"},
            "params": {name: {"default": default, "text": text} for name, (default, text) in card.params.items()},
        }
        for card in cards
    ]


def validation_page(results: Sequence[OracleResult]) -> RenderableType:
    """Return theory beside simulation, a row each, and how many missed."""
    rows = [
        [
            f"{one.name} [{one.unit}]",
            _figure(one.theory),
            _figure(one.simulated),
            _figure(one.half_width),
            "MISS" if one.verdict == "miss" else one.verdict,
        ]
        for one in results
    ]
    misses = missed(results)
    said = (
        "±: half of the interval in which theory is expected; 99 % over all rows together where chance plays a part, "
        "else how far apart the two may be. The seeds are fixed, so a verdict repeats."
    )
    verdict = f"{len(misses)} of {len(results)} missed" if misses else f"all {len(results)} agree with theory"
    return stack(
        table("Held to theory", ["", "theory", "simulated", "±", ""], rows, fixed=False),
        Text(said, style="dim"),
        Text(verdict, style="bold red" if misses else "bold"),
    )


def missed(results: Sequence[OracleResult]) -> list[str]:
    """Return the names of what the simulator misses."""
    return [one.name for one in results if one.verdict == "miss"]


def _figure(value: float) -> str:
    """Write a figure with four digits, whole ones from there on.

    >>> _figure(0.99992451), _figure(1036.716), _figure(0.0), _figure(2_000_000.0)
    ('0.9999', '1,037', '0', '2,000,000')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 or not value else f"{value:.4g}"


def validation_dict(results: Sequence[OracleResult]) -> dict[str, Any]:
    """Return theory beside simulation in JSON form."""
    return {"missed": missed(results), "results": [asdict(one) for one in results]}
