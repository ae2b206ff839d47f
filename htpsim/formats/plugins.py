"""Formats that other packages bring along, found by the entry point group ``htpsim.formats``.

A package names its format in its own ``pyproject.toml``; nothing in htpsim changes, and nothing is registered by an
import. One that cannot be loaded is left out and said, so it never keeps a file of another format from being read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import Final

from htpsim.formats.form import Format

GROUP: Final = "htpsim.formats"


@dataclass(frozen=True, slots=True)
class Plugins:
    """The formats of other packages by name, and what is to be said of those that could not be loaded."""

    formats: Mapping[str, Format]
    faults: tuple[str, ...]


@cache
def plugins() -> Plugins:
    """Load the formats of all installed packages, once a process.

    >>> isinstance(plugins().faults, tuple)
    True
    """
    return loaded(tuple(entry_points(group=GROUP)))


def loaded(points: tuple[EntryPoint, ...]) -> Plugins:
    """Load entry points; whatever goes wrong with one of them is a fault, not an error.

    >>> loaded((EntryPoint("toy", "no_such_module:FORMAT", GROUP),)).faults
    ("the format 'toy' of no_such_module:FORMAT cannot be loaded (No module named 'no_such_module')",)
    """
    formats: dict[str, Format] = {}
    faults: list[str] = []
    for point in sorted(points, key=lambda point: (point.name, point.value)):
        said = f"the format '{point.name}' of {point.value}"
        try:
            found = point.load()
        except Exception as error:  # code of other people, at import
            faults.append(f"{said} cannot be loaded ({error})")
            continue
        if not isinstance(found, Format):
            faults.append(f"{said} is a {type(found).__name__}, not a Format")
        elif found.name in formats:
            faults.append(f"{said} has the name '{found.name}', which another one has already")
        else:
            formats[found.name] = found
    return Plugins(MappingProxyType(formats), tuple(faults))
