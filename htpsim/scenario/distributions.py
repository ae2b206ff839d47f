"""How a scenario file writes a distribution, and what it becomes.

A plain value is a constant. A table is one of the forms below, told apart by its ``kind`` or, where that is missing,
by the keys that only one form has: ``sample``, ``low`` and ``high``, ``cv``, ``stages``, ``profile``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import GenericAlias
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Strict, Tag, create_model

from htpsim.scenario.quantities import quantity, write
from htpsim.spec import Distribution
from htpsim.spec.distribution import Kind

CONFIG = ConfigDict(extra="forbid", allow_inf_nan=False)

Text = Annotated[str, Strict()]
Number = Annotated[float, Strict()]

KINDS = ("constant", "sample", "uniform", "exponential", "lognormal", "erlang")
_TOLD_BY = {"profile": "profile", "sample": "sample", "low": "uniform", "high": "uniform", "cv": "lognormal"}
_TOLD_BY |= {"stages": "erlang"}
_PROFILE_KEYS = ("profile", "graph", "statistic", "event", "device", "runtime", "precision", "context_length")
LEAF_KEYS = frozenset({"kind", "mean", "cv", "sample", "low", "high", "stages", *_PROFILE_KEYS})
LEAF_SIGNS = frozenset({"mean", "sample", "low", "high", "profile"})
"""Keys of a distribution's table, and those that no other table has."""


class Profile(BaseModel):
    """A service time read from a file that a tool wrote."""

    model_config = CONFIG | ConfigDict(frozen=True)

    profile: Text = Field(description="the file, relative to the scenario file")
    graph: Text | None = Field(None, description="which graph, where the file has several")
    statistic: Text = Field("average", description="average, min or max")
    event: Text | None = Field(None, description="which of the profiler's events; the accelerator's own if not given")
    device: Text | None = Field(None, description="of a perf.yaml: which device")
    runtime: Text | None = Field(None, description="of a perf.yaml: which runtime")
    precision: Text | None = Field(None, description="of a perf.yaml: which precision")
    context_length: Annotated[int, Strict()] | None = Field(
        None, description="of a perf.yaml: which context length [tokens]"
    )


def annotated(kind: Any, *notes: Any) -> Any:
    """Return a type made at run time with annotations for Pydantic."""
    return Annotated[(kind, *notes)]


def several(kind: Any, **limits: Any) -> Any:
    """Return the type of a list, as a tuple, of a type made at run time."""
    return annotated(GenericAlias(tuple, (kind, ...)), Field(**limits))


def _tag(value: object) -> str:
    """Tell which form a value is written in, for Pydantic; bracketed, so that messages can leave it out."""
    if not isinstance(value, dict):
        return "<constant>"
    kind = value.get("kind")
    if kind in KINDS:
        return "<mean>" if kind in {"constant", "exponential"} else f"<{kind}>"
    if kind is None:
        for key, form in _TOLD_BY.items():
            if key in value:
                return f"<{form}>"
    return "<kind>"


@cache
def forms(unit: str) -> dict[str, Any]:
    """Return the forms of a distribution of this unit by tag; a service time may also be a profile."""
    q = quantity(unit)

    def form(name: str, kind: Any, **members: Any) -> type[BaseModel]:
        suffix = {"ns": "Time", "": "Count"}[unit]
        kinds = (kind, ...) if name in {"Mean", "Unknown"} else (kind | None, None)
        return create_model(f"{name}{suffix}", __config__=CONFIG, kind=kinds, **members)

    found: dict[str, Any] = {
        "<constant>": q,
        "<mean>": form("Mean", Literal["constant", "exponential"], mean=(q, ...)),
        "<sample>": form("Sample", Literal["sample"], sample=(several(q, min_length=1), ...)),
        "<uniform>": form("Uniform", Literal["uniform"], low=(q, ...), high=(q, ...)),
        "<lognormal>": form("Lognormal", Literal["lognormal"], mean=(q, ...), cv=(Number, ...)),
        "<erlang>": form("Erlang", Literal["erlang"], mean=(q, ...), stages=(quantity(""), ...)),
        "<kind>": form("Unknown", Literal[KINDS], mean=(q, 0)),
    }
    if unit == "ns":
        found["<profile>"] = Profile
    return found


@cache
def distribution(unit: str) -> Any:
    """Return the Pydantic type of a distribution whose values have this unit."""
    known = forms(unit)

    def tag(value: object) -> str:
        found = _tag(value)
        return found if found in known else "<kind>"

    union: Any = None
    for name, member in known.items():
        tagged = annotated(member, Tag(name))
        union = tagged if union is None else union | tagged
    return annotated(union, Discriminator(tag))


def to_distribution(form: Any, read_profile: Callable[[Profile], int]) -> Distribution:
    """Return the distribution that a validated form means.

    >>> to_distribution(forms("")["<uniform>"](low=1, high=3), lambda profile: 0).kind
    'uniform'
    """
    if isinstance(form, int):
        return Distribution(kind="constant", mean=form)
    if isinstance(form, Profile):
        return Distribution(kind="constant", mean=read_profile(form))
    given = form.model_dump(exclude_none=True)
    kind = cast("Kind", given.pop("kind", None) or _tag(given).strip("<>"))
    return Distribution(kind=kind, **given)


def from_distribution(d: Distribution, unit: str) -> Any:
    """Write a distribution as a scenario file states it; the exact inverse of reading one.

    >>> from_distribution(Distribution(kind="lognormal", mean=300_000_000, cv=0.2), "ns")
    {'kind': 'lognormal', 'mean': '300ms', 'cv': 0.2}
    """
    if d.kind == "constant":
        return write(d.mean, unit)
    table: dict[str, Any] = {"kind": d.kind}
    if d.kind == "sample":
        return table | {"sample": [write(value, unit) for value in d.sample]}
    if d.kind == "uniform":
        return table | {"low": write(d.low, unit), "high": write(d.high, unit)}
    table["mean"] = write(d.mean, unit)
    if d.kind == "lognormal":
        table["cv"] = d.cv
    if d.kind == "erlang":
        table["stages"] = d.stages
    return table
