"""The keys of a scenario file, derived from the spec dataclasses: the one source of truth is there.

A value in a file carries its own unit, so a key does not: the field ``yield_latency_ns`` is the key ``yield_latency``,
``dram_bytes`` is ``dram``. Everything else keeps its name.
"""

from __future__ import annotations

import types
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from htpsim.spec import Context, Distribution, Graph, Instance, Model, OtherClient

_SUFFIXES = {"ns": "_ns", "bytes": "_bytes"}

SECTIONS = ("run", "device", "guard", "registry", "runtime")
"""The tables of a file that are one dataclass each."""

NAMED_LISTS: dict[str, type] = {
    "instances": Instance,
    "clients": OtherClient,
    "contexts": Context,
    "graphs": Graph,
    "prefill": Graph,
    "decode": Graph,
}
"""Keys that hold a list of tables with a ``name`` each, which overlays may patch by name."""


class Shape(Enum):
    """What a key holds."""

    SCALAR = "scalar"
    DISTRIBUTION = "distribution"
    TABLE = "table"
    """The table of another dataclass."""
    TABLES = "tables"
    """A list of named tables."""
    VALUES = "values"
    """A list of scalars."""
    REFERENCE = "reference"
    """The name of a table in [models]."""
    PARAMETERS = "parameters"
    """A table of names and whole numbers that the policy knows."""


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a table in a scenario file, and the dataclass field it sets."""

    key: str
    field: str
    shape: Shape
    type: Any
    """int, float, bool, str or a Literal for scalars and values; the dataclass for tables."""
    unit: str
    text: str
    """What it means, in one sentence; "" where the name says it all."""
    nullable: bool
    required: bool
    default: Any


def toml_key(field: str, unit: str) -> str:
    """Return the key of a field.

    >>> toml_key("yield_latency_ns", "ns"), toml_key("dram_bandwidth", "bytes_per_s")
    ('yield_latency', 'dram_bandwidth')
    """
    return field.removesuffix(_SUFFIXES.get(unit, "\0"))


@cache
def keys_of(spec: type) -> types.MappingProxyType[str, Key]:
    """Return the keys of a table, in the order of the dataclass's fields.

    >>> from htpsim.spec import Device
    >>> keys_of(Device)["yield_latency"].field
    'yield_latency_ns'
    """
    hints = get_type_hints(spec)
    found = [_key(f, hints[f.name]) for f in fields(spec)]
    return types.MappingProxyType({key.key: key for key in found})


def _key(f: Field[Any], hint: Any) -> Key:
    described = f.metadata.get("param")
    unit = described.unit if described else ""
    nullable = type(None) in get_args(hint)
    if nullable:
        hint = Union[tuple(a for a in get_args(hint) if a is not type(None))]  # noqa: UP007 - built at run time
    shape, inner = _shape(hint)
    default = f.default
    if default is MISSING and f.default_factory is not MISSING:
        default = f.default_factory()
    return Key(
        key=toml_key(f.name, unit),
        field=f.name,
        shape=shape,
        type=inner,
        unit=unit,
        text=described.text if described else "",
        nullable=nullable,
        required=default is MISSING,
        default=None if default is MISSING else default,
    )


def _shape(hint: Any) -> tuple[Shape, Any]:
    if hint is Distribution:
        return Shape.DISTRIBUTION, hint
    if hint is Model:
        return Shape.REFERENCE, hint
    if is_dataclass(hint):
        return Shape.TABLE, hint
    if get_origin(hint) is tuple:
        inner = get_args(hint)[0]
        if is_dataclass(inner):
            return Shape.TABLES, inner
        if get_origin(inner) is tuple:
            return Shape.PARAMETERS, int
        return Shape.VALUES, inner
    return Shape.SCALAR, hint


def words_of(hint: Any) -> tuple[str, ...]:
    """Return the words a Literal admits, () for any other type."""
    return tuple(str(a) for a in get_args(hint)) if get_origin(hint) is Literal else ()
