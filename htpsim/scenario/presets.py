"""Presets: files of the same format that describe one device or one model of one chip, each figure with its source.

A table with ``preset = "name"`` (of a shipped one, or the path of a file) starts from it and lays its own keys over.
A preset may start from another. Figures of different chips are never mixed: a preset says its ``chip``, and only a
preset of chip ``any``, which may hold nothing but memory terms, goes with all.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, TypeVar

from htpsim.errors import HtpsimError, ScenarioError, nearest
from htpsim.scenario.document import PRESETS, read_toml
from htpsim.scenario.overlay import merge
from htpsim.scenario.sourced import Path as KeyPath
from htpsim.scenario.sourced import Problem
from htpsim.scenario.wording import shown

ANY = "any"
_FOLDERS = {"device": "devices", "model": "models"}
_DEPTH_MAX = 8


def presets() -> dict[str, dict[str, Path]]:
    """Return the shipped presets: kind ("device" or "model") -> name -> file.

    >>> "sa8775p" in presets()["device"]
    True
    """
    return {
        kind: {path.stem: path for path in sorted((PRESETS / folder).glob("*.toml"))}
        for kind, folder in _FOLDERS.items()
    }


K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class Shelf:
    """The presets and converted configuration files of one load, each read once."""

    def __init__(self) -> None:
        self._read: dict[Path, dict[str, Any]] = {}
        self._taken: dict[tuple[Any, Hashable], Any] = {}
        self._shipped = presets()

    def once(self, take: Callable[[K], T], key: K) -> T:
        """Return ``take(key)``, computed the first time only."""
        if (take, key) not in self._taken:
            self._taken[take, key] = take(key)
        found: T = self._taken[take, key]
        return found

    def preset(self, kind: str, own: dict[str, Any], path: KeyPath, problems: list[Problem]) -> dict[str, Any]:
        """Take the key ``preset`` out of the table `own` and return what the preset that it names holds."""
        name = own.pop("preset", None)
        if name is None:
            return {}
        try:
            below = self._load(kind, name, 0)
        except ScenarioError as error:
            problems += [((*path, "preset"), text) for text in error.problems]
            return {}
        chip, given = below.get("chip", ANY), own.get("chip")
        if given is not None and chip not in {ANY, given}:
            text = f"got {shown(given)}, expected '{chip}', the chip of preset '{name}': figures of chips are not mixed"
            problems.append(((*path, "chip"), text))
        return below

    def _load(self, kind: str, name: object, depth: int) -> dict[str, Any]:
        file = self._file(kind, name)
        if depth > _DEPTH_MAX:
            raise ScenarioError(f"got {shown(name)}, expected presets that build on at most {_DEPTH_MAX} others")
        if file not in self._read:
            try:
                self._read[file] = read_toml(file)
            except HtpsimError as error:
                raise ScenarioError(f"got a preset that cannot be read, expected one ({error})") from error
        tree = self._read[file]
        table = tree.get("device") if kind == "device" else _only(tree.get("models"))
        if not isinstance(table, dict):
            where = "[device] table" if kind == "device" else "table [models.NAME], and only one"
            raise ScenarioError(f"got {shown(name)}, expected a file with a {where}")
        own = dict(table)
        if "preset" not in own:
            return own
        below = self._load(kind, own.pop("preset"), depth + 1)
        if below.get("chip", ANY) not in {ANY, own.get("chip")}:
            chips = f"'{own.get('chip')}' and '{below['chip']}'"
            raise ScenarioError(f"got {shown(name)}, which mixes the chips {chips}, expected figures of one chip")
        merged: dict[str, Any] = merge(below, own)
        return merged

    def _file(self, kind: str, name: object) -> Path:
        if isinstance(name, str) and name.endswith(".toml"):
            return Path(name)
        known = self._shipped[kind]
        if isinstance(name, str) and name in known:
            return known[name]
        close = nearest(str(name), known)
        hint = f"; did you mean '{close}'?" if close else f": {', '.join(known)}"
        raise ScenarioError(f"got {shown(name)}, expected the name of a {kind} preset or a .toml file{hint}")


def _only(models: object) -> object:
    return next(iter(models.values())) if isinstance(models, dict) and len(models) == 1 else None


def chip_problems(device: dict[str, Any], models: dict[str, dict[str, Any]]) -> list[Problem]:
    """Return a problem for every model whose figures are of another chip than the device, or than another model."""
    problems: list[Problem] = []
    chip, owner = device.get("chip"), "the device"
    for name, model in models.items():
        own = model.get("chip")
        if own is None:
            continue
        if own == ANY:
            if model.get("graphs") or model.get("prefill") or model.get("decode"):
                text = "got 'any' for a model with service times, expected the chip they were measured on"
                problems.append((("models", name, "chip"), text))
        elif chip in {None, ANY}:
            chip, owner = own, f"model '{name}'"
        elif own != chip:
            text = f"got figures of chip {shown(own)}, expected {shown(chip)} as {owner} has: chips are not mixed"
            problems.append((("models", name, "chip"), text))
    return problems
