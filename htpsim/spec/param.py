"""How a parameter says what it rests on: a mark, a unit, a sentence, and the range worth varying."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import Field, dataclass, field, fields, is_dataclass
from typing import Any, Final, Literal

Mark = Literal["seed", "doc", "measured", "assumed", "choice"]
"""What a rule rests on. ``choice`` is the user's own decision (a workload, a length), not a claim about the machine."""

MARKS: Final = ("seed", "doc", "measured", "assumed", "choice")


@dataclass(frozen=True, slots=True)
class Param:
    """The facts about one parameter, kept in its dataclass field's metadata."""

    mark: Mark
    """What the rule and its default rest on."""
    text: str
    """One sentence: what it means, and for an assumption why this default."""
    unit: str
    """"ns", "bytes", "bytes_per_s", "" for a plain number or word."""
    vary: tuple[object, ...]
    """Other values worth trying in a sensitivity analysis."""


def param(mark: Mark, text: str, *, default: Any = ..., unit: str = "", vary: tuple[object, ...] = ()) -> Any:
    """Declare a dataclass field with its mark; without `default` the field is required.

    >>> @dataclass(frozen=True)
    ... class Guard:
    ...     slots: int = param("assumed", "holders at once", default=1, vary=(1, 2))
    >>> describe(Guard, "slots").vary
    (1, 2)
    """
    metadata = {"param": Param(mark, text, unit, vary)}
    if default is ...:
        return field(metadata=metadata)
    return field(default=default, metadata=metadata)


def describe(spec: type, name: str) -> Param:
    """Return the facts about the parameter `name` of the dataclass `spec`."""
    return next(_param(f) for f in fields(spec) if f.name == name)


def parameters(spec: object, prefix: str = "") -> Iterator[tuple[str, Param, object]]:
    """Walk a spec and yield (dotted name, facts, value) of every parameter in it, depth first.

    >>> @dataclass(frozen=True)
    ... class Guard:
    ...     slots: int = param("assumed", "holders at once", default=1)
    >>> [(name, value) for name, _, value in parameters(Guard(), "guard")]
    [('guard.slots', 1)]
    """
    if not is_dataclass(spec):
        return
    for f in fields(spec):
        name = f"{prefix}.{f.name}" if prefix else f.name
        value = getattr(spec, f.name)
        if "param" in f.metadata:
            yield name, _param(f), value
        elif is_dataclass(value):
            yield from parameters(value, name)
        elif isinstance(value, tuple) and value and is_dataclass(value[0]):
            for item in value:
                yield from parameters(item, f"{name}.{getattr(item, 'name', '?')}")


def _param(f: Field[Any]) -> Param:
    found = f.metadata["param"]
    assert isinstance(found, Param)
    return found
