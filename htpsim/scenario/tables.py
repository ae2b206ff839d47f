"""The Pydantic models of a scenario file's tables, made from the spec dataclasses: strict, and nothing unknown."""

from __future__ import annotations

from functools import cache
from types import GenericAlias
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, Strict, WithJsonSchema, create_model

from htpsim.scenario.distributions import CONFIG, Number, Text, annotated, distribution, from_distribution, several
from htpsim.scenario.keys import NAMED_LISTS, SECTIONS, Key, Shape, keys_of, words_of
from htpsim.scenario.quantities import quantity, write
from htpsim.scenario.wording import shown
from htpsim.spec import Distribution, Model, Scenario
from htpsim.units import parse_time

NONE = "none"
"""What a file writes where the spec says None."""

NAMED = frozenset({Model, *NAMED_LISTS.values()})
"""Tables that others refer to by name."""

NAMES = r"^[A-Za-z0-9_][A-Za-z0-9_.\-]*$"

SPEC_OF: dict[str, type] = {name: type(getattr(Scenario(), name)) for name in SECTIONS}
"""Table of a file -> its dataclass."""

Switch = Annotated[bool, Strict()]
Name = Annotated[str, Strict(), Field(pattern=NAMES)]


def _null(value: object) -> object:
    return None if value == NONE else value


def _parameter(value: object) -> int | str:
    """Check one parameter of a policy: a whole number, a switch, or a time, which stays text until the key is known."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str):
        parse_time(value)
        return value
    if isinstance(value, int) and abs(value) < 2**62:
        return value
    raise ValueError(f"got {shown(value)}, expected a whole number, a time such as '100ms', or true or false")


Parameters = dict[
    Name,
    Annotated[Any, BeforeValidator(_parameter), WithJsonSchema({"type": ["integer", "string", "boolean", "object"]})],
]


def _scalar(key: Key, named: bool) -> Any:
    if key.type is int:
        return quantity(key.unit)
    if words_of(key.type):
        return key.type
    if key.key == "name" and named:
        return Name
    return {float: Number, bool: Switch, str: Text}[key.type]


def value_type(key: Key, named: bool) -> Any:
    """Return the Pydantic type of what a key holds, its nullability left aside; `named` tables have a strict name."""
    if key.shape is Shape.SCALAR:
        return _scalar(key, named)
    if key.shape is Shape.DISTRIBUTION:
        return distribution(key.unit)
    if key.shape is Shape.VALUES:
        return several(_scalar(key, named))
    if key.shape is Shape.TABLES:
        return several(table(key.type))
    if key.shape is Shape.TABLE:
        return table(key.type)
    return Text if key.shape is Shape.REFERENCE else Parameters


@cache
def table(spec: type) -> type[BaseModel]:
    """Return the Pydantic model of a table: one member a key; those not given stay unset, so the spec's default holds.

    >>> from htpsim.spec import Device
    >>> table(Device)(yield_latency="1.8ms").yield_latency
    1800000
    """
    members: dict[str, Any] = {}
    for key in keys_of(spec).values():
        kind = value_type(key, spec in NAMED)
        if key.nullable:
            kind = annotated(kind | None, BeforeValidator(_null))
        described = Field(default=... if key.required else _default(key), description=key.text or None)
        members[key.key] = (kind, described)
    if spec is Model:
        members["name"] = (Name | None, None)
    return create_model(spec.__name__, __config__=CONFIG, **members)


def _default(key: Key) -> Any:
    """Return the default as a file would write it; it is shown in the schema and never used."""
    if key.default is None or key.shape in {Shape.TABLE, Shape.TABLES, Shape.PARAMETERS}:
        return None
    if isinstance(key.default, Distribution):
        return from_distribution(key.default, key.unit)
    return write(key.default, key.unit) if key.type is int and key.shape is Shape.SCALAR else key.default


@cache
def document() -> type[BaseModel]:
    """Return the Pydantic model of a whole scenario after overlays, presets and counts have been applied."""
    members: dict[str, Any] = {name: (table(spec), None) for name, spec in SPEC_OF.items()}
    members["models"] = (GenericAlias(dict, (Name, table(Model))), None)
    for name in ("instances", "clients"):
        members[name] = (several(table(NAMED_LISTS[name])), ())
    return create_model("Scenario", __config__=CONFIG, **members)
