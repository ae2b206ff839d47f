"""The part of a scenario file that is not simulated: title, question, and the overlays it offers, by name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from htpsim.scenario.complain import Layer
from htpsim.scenario.keys import SECTIONS
from htpsim.scenario.wording import shown, unknown_key

OVERLAYS = ("variants", "cases", "assumptions")
PARTS = (*SECTIONS, "models", "instances", "clients")
TOP_KEYS = ("title", "question", "extends", *PARTS, *OVERLAYS)
_NAME = re.compile(r"[A-Za-z0-9_-]+")

Address = tuple[str, ...]
"""Of an overlay: ("variants", NAME), ("cases", NAME) or ("assumptions", NAME, OPTION)."""


Choice = tuple[str | None, str | None, tuple[str, ...]]
"""Variant, case, options."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A named overlay: what it is called in tables, and what it means."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Assumption:
    """A named set of overlays that are the options of one open question."""

    title: str
    text: str
    options: dict[str, Variant]


@dataclass(slots=True)
class Outline:
    """What the layers of one scenario say beside the simulated parts; `problems` are whole lines."""

    words: dict[Address, str] = field(default_factory=dict)
    """Texts by place: ("title",), ("variants", NAME, "text")."""

    base: list[Layer] = field(default_factory=list)
    overlays: dict[Address, list[Layer]] = field(default_factory=dict)
    assumptions: dict[str, None] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def variant(self, *address: str) -> Variant:
        """Return the title (the name, where none is given) and the text at an address."""
        return Variant(self.words.get((*address, "title"), address[-1]), self.words.get((*address, "text"), ""))

    def named(self, kind: str) -> dict[str, Variant]:
        """Return the overlays of a kind by name, in the order of the files."""
        return {address[1]: self.variant(*address) for address in self.overlays if address[0] == kind}

    def options(self) -> dict[str, Assumption]:
        """Return the assumptions by name with their options."""
        found = {}
        for name in self.assumptions:
            own = self.variant("assumptions", name)
            options = {a[2]: self.variant(*a) for a in self.overlays if a[:2] == ("assumptions", name)}
            found[name] = Assumption(own.title, own.text, options)
        return found


def outline(layers: Sequence[Layer], last: Layer) -> Outline:
    """Sort what the files of a chain say, and after them what was set on the command line."""
    result = Outline()
    for layer in (*layers, last):
        _top(layer, result)
    if result.base:
        # What is set on the command line has the last word, also over variants: it is laid on apart.
        result.base.pop()
    return result


def _top(layer: Layer, result: Outline) -> None:
    parts = {}
    for key, value in layer.tree.items():
        if key in PARTS:
            parts[key] = value
        elif key in {"title", "question"}:
            _word(layer, (key,), value, result, one_line=key == "question")
        elif key in OVERLAYS:
            for address, overlay in _tables(layer, (key,), value, result):
                _overlay(layer, address, overlay, result)
        else:
            valid = [known for known in TOP_KEYS if known != key]
            result.problems.append(f"{layer.label}: {key}: {unknown_key(key, valid)}")
    result.base.append(Layer(layer.label, (), parts))


def _tables(layer: Layer, path: Address, value: Any, result: Outline) -> Iterable[tuple[Address, Any]]:
    if not isinstance(value, dict):
        result.problems.append(f"{layer.label}: {path[-1]}: got {shown(value)}, expected tables [{path[-1]}.NAME]")
        return
    for name, table in value.items():
        if not _NAME.fullmatch(name):
            place = f"{layer.label}: {'.'.join(path)}"
            result.problems.append(f"{place}: got the name {shown(name)}, expected letters, digits, '_' and '-'")
        else:
            yield (*path, name), table


def _overlay(layer: Layer, address: Address, value: Any, result: Outline) -> None:
    place = f"{layer.label}: {'.'.join(address)}"
    if not isinstance(value, dict):
        result.problems.append(f"{place}: got {shown(value)}, expected a table")
        return
    own = {}
    for key, inner in value.items():
        if key in {"title", "text"} and not isinstance(inner, dict):
            _word(layer, (*address, key), inner, result)
        else:
            own[key] = inner
    if address[0] == "assumptions" and len(address) == 2:
        result.assumptions[address[1]] = None
        for option, overlay in _tables(layer, address, own, result):
            _overlay(layer, option, overlay, result)
        return
    for key in [key for key in own if key not in PARTS]:
        result.problems.append(f"{place}.{key}: {unknown_key(key, ('title', 'text', *PARTS))}")
        del own[key]
    result.overlays.setdefault(address, []).append(Layer(layer.label, address, own))


def _word(layer: Layer, path: Address, value: Any, result: Outline, one_line: bool = False) -> None:
    place = f"{layer.label}: {'.'.join(path)}"
    if not isinstance(value, str):
        result.problems.append(f"{place}: got {shown(value)}, expected text")
    elif one_line and "\n" in value.strip():
        result.problems.append(f"{place}: got several lines, expected one")
    else:
        result.words[path] = value.strip()


def choices(outline: Outline) -> Iterator[Choice]:
    """Yield (variant, case, options) of each overlay by itself upon the base."""
    for address in outline.overlays:
        if address[0] == "variants":
            yield address[1], None, ()
        elif address[0] == "cases":
            yield None, address[1], ()
        else:
            yield None, None, (".".join(address[1:]),)
