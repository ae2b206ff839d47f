"""Which assumption moves an answer: a tornado in characters, what turns round, and from where on."""

from __future__ import annotations

from typing import Any, Final

from rich.console import RenderableType
from rich.text import Text

from htpsim.experiments.change import HEADLINES
from htpsim.experiments.sensitivity import Effect, Sensitivity
from htpsim.experiments.sign_grid import METRICS
from htpsim.report.cells import NONE, stack, table
from htpsim.report.verdict import percent
from htpsim.units import NS_PER_S

ROWS: Final = 8
"""Settings of a tornado; the weaker ones are counted."""
BAR: Final = 11
"""Characters of a bar to one side."""
LEAST: Final = 0.0005
"""A move below this share is none."""


def sensitivity_page(found: Sensitivity) -> RenderableType:
    """Return a tornado for every answer, then what turns round."""
    parts: list[RenderableType | None] = [Text(found.title, style="bold")]
    parts += [_tornado(found, metric, variant) for variant in found.variants for metric in METRICS]
    parts += [Text("Which assumption turns an answer round?", style="bold"), *_flips(found)]
    parts += [Text(f"! {name} cannot be run: {why}", style="yellow") for name, why in found.refused.items()]
    runs = f"{found.replications} replication{'s' * (found.replications != 1)} of {found.duration_ns / NS_PER_S:g} s"
    said = f"one parameter at a time, {runs}, on the same draws: a hint where to look, not a proof"
    return stack(*parts, Text(said, style="dim"))


def _tornado(found: Sensitivity, metric: str, variant: str) -> RenderableType:
    effects = found.of(metric, variant)
    strong = [effect for effect in effects if abs(effect.move or 0.0) >= LEAST]
    largest = max((abs(effect.move or 0.0) for effect in strong), default=0.0)
    rows = [
        [str(effect.setting), _share(effect.configured.share), _share(effect.changed.share), _bar(effect, largest)]
        for effect in strong[:ROWS]
    ]
    words = HEADLINES[metric][0]
    of = f"{words} of {variant or 'the scenario'}, difference from {found.first or 'as configured'} [%]"
    rest = len(effects) - len(rows)
    if rest:
        others = f"{rest} {'more ' * bool(rows)}setting{'s' * (rest > 1)}"
        weaker = others if len(strong) > ROWS else f"{others} {'do' if rest > 1 else 'does'} nothing"
        rows.append([weaker, NONE, NONE, ""])
    made = table(of, ["if", "configured", "then", "move"], rows, fixed=False)
    made.columns[-1].justify = "left"  # to the right, the blanks after a bar would be dropped and its line moved
    return made


def _share(share: float | None) -> str:
    return NONE if share is None else percent(share)


def _bar(effect: Effect, largest: float) -> str:
    """Draw a move to the left or right of a line, with a mark where the sign turns round."""
    move = effect.move or 0.0
    length = max(1, round(BAR * abs(move) / largest)) if largest else 0
    left, right = ("█" * length, "") if move < 0 else ("", "█" * length)
    return f"{left:>{BAR}}│{right:<{BAR}}" + (" !!" if effect.flips else "   ")


def _flips(found: Sensitivity) -> list[RenderableType]:
    """Return a sentence for every answer that a setting turns round, and from where on."""
    lines: list[RenderableType] = []
    for effect in found.flips():
        words = HEADLINES[effect.metric][0]
        line = (
            f"{words} of {effect.variant}: {_share(effect.configured.share)} % as configured, but "
            f"{_share(effect.changed.share)} % if {effect.setting} ({effect.setting.mark})"
        )
        for at in found.thresholds:
            if (at.key, at.variant, at.metric) == (effect.setting.key, effect.variant, effect.metric):
                line += f"; it turns between {at.keeps} and {at.turns}"
        lines.append(Text(line))
    return lines or [Text("None of those tried.")]


def sensitivity_dict(found: Sensitivity) -> dict[str, Any]:
    """Return every effect in JSON form; shares of the first variant's figure."""
    return {
        "title": found.title,
        "first": found.first,
        "duration_ns": found.duration_ns,
        "replications": found.replications,
        "effects": [
            {
                "key": effect.setting.key, "value": effect.setting.value.strip('"'), "mark": effect.setting.mark,
                "text": effect.setting.text, "variant": effect.variant, "metric": effect.metric,
                "configured": effect.configured.share, "changed": effect.changed.share, "move": effect.move,
                "flips": effect.flips,
            }
            for effect in found.effects
        ],
        "thresholds": [
            {"key": at.key, "variant": at.variant, "metric": at.metric, "keeps": at.keeps, "turns": at.turns}
            for at in found.thresholds
        ],
        "refused": found.refused,
    }  # fmt: skip
