"""The tables of the page on the model: every rule and parameter, its mark, its default, where that comes from.

They are made from the specification, so that the page cannot say anything else than the code does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, Final

from htpsim.scenario.distributions import from_distribution
from htpsim.scenario.keys import Key, Shape, keys_of
from htpsim.scenario.quantities import write
from htpsim.spec import (
    Arrivals,
    Context,
    Device,
    Distribution,
    Graph,
    Guard,
    Instance,
    Model,
    OtherClient,
    Registry,
    Run,
    Runtime,
    describe,
)
from htpsim.spec.origins import FIXED, ORIGINS

BEGIN: Final = "<!-- from here on written by htpsim.scenario.modelpage -->"

SECTIONS: Final[tuple[tuple[str, type], ...]] = (
    ("device", Device),
    ("guard", Guard),
    ("registry", Registry),
    ("runtime", Runtime),
    ("models.NAME", Model),
    ("models.NAME.contexts", Context),
    ("models.NAME.graphs, prefill, decode", Graph),
    ("instances", Instance),
    ("clients", OtherClient),
    ("arrivals", Arrivals),
    ("run", Run),
)
"""Tables of a scenario file, and their dataclasses."""


def tables() -> str:
    """Return everything that stands below `BEGIN` on the page.

    >>> tables().splitlines()[1]
    '## Rules without a parameter'
    """
    parts = ["", "## Rules without a parameter", "", *fixed_rules()]
    for section, spec in SECTIONS:
        parts += ["", f"## [{section}]", "", *parameters_of(spec)]
    return "\n".join(parts) + "\n"


def fixed_rules() -> Iterator[str]:
    """Yield the rows of the table of fixed rules."""
    yield from ("| rule | mark | rests on | in |", "| --- | --- | --- | --- |")
    for rule, mark, origin, where in FIXED:
        yield f"| {rule} | {mark} | {origin} | `{where}` |"


def parameters_of(spec: type) -> Iterator[str]:
    """Yield the rows of the table of a dataclass's parameters."""
    yield from (
        "| parameter | mark | default | rule | where the default comes from |",
        "| --- | --- | --- | --- | --- |",
    )
    keys = {key.field: key for key in keys_of(spec).values()}
    for f in fields(spec):
        if "param" not in f.metadata:
            continue
        facts = describe(spec, f.name)
        origin = ORIGINS.get(f"{spec.__name__}.{f.name}", "yours to say")
        default = "required" if keys[f.name].required else f"`{written(keys[f.name])}`"
        yield f"| `{keys[f.name].key}` | {facts.mark} | {default} | {facts.text} | {origin} |"


def written(key: Key) -> str:
    """Return a default as a scenario file would write it."""
    value: Any = key.default
    if value is None:
        return "none"
    if isinstance(value, Distribution):
        value = from_distribution(value, key.unit)
    elif key.shape is Shape.SCALAR and key.type is int:
        value = write(value, key.unit)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {inner}" for name, inner in value.items()) + " }"
    return "[]" if value == () else str(value) or '""'
