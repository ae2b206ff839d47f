"""From merged layers to one plain tree: presets filled in, lists expanded, sources taken out and kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from htpsim.errors import ScenarioError
from htpsim.scenario.complain import Layer
from htpsim.scenario.configs import device_table, model_table, vtcm_table
from htpsim.scenario.keys import NAMED_LISTS, Shape, keys_of
from htpsim.scenario.overlay import Patched, expand, merge
from htpsim.scenario.presets import Shelf, chip_problems
from htpsim.scenario.sourced import Path, Problem, SourcedValue, condensed, unwrap
from htpsim.scenario.wording import shown
from htpsim.spec import Model

_MODEL_LISTS = tuple(key.key for key in keys_of(Model).values() if key.shape is Shape.TABLES)
_REFERENCES = ("vit", "llm", "model")

Read = Callable[[str], dict[str, Any]]


@dataclass(slots=True)
class Assembled:
    """A scenario as one plain tree of TOML values, ready to be validated."""

    tree: dict[str, Any] = field(default_factory=dict)
    found: list[SourcedValue] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def sources(self, measured: Sequence[SourcedValue]) -> tuple[SourcedValue, ...]:
        """Return where the figures come from, those `measured` by files included, those of unused models left out."""
        used = referenced(self.tree)
        known = {value.key for value in measured}
        kept = [value for value in self.found if value.key not in known and _is_used(value.key, used)]
        return condensed([*kept, *measured], NAMED_LISTS)


def _is_used(key: str, used: set[str]) -> bool:
    return not key.startswith("models.") or key.split(".")[1] in used


def referenced(tree: dict[str, Any]) -> set[str]:
    """Return the names of the models that instances and clients use."""
    lists = [tree[name] for name in ("instances", "clients") if isinstance(tree.get(name), list)]
    users = [user for users in lists for user in users if isinstance(user, dict)]
    return {user[key] for user in users for key in _REFERENCES if isinstance(user.get(key), str)}


def assemble(layers: Iterable[Layer], shelf: Shelf) -> Assembled:
    """Merge the layers, the most basic first, and return the tree they make."""
    merged: dict[str, Any] = {}
    for layer in layers:
        merged = merge(merged, layer.tree)
    result = Assembled()
    tree = dict(merged)
    sizes = _vtcm(_table(tree.get("device")), shelf)
    if isinstance(tree.get("device"), dict):
        tree["device"] = _device(tree["device"], shelf, result.problems)
    if isinstance(tree.get("models"), dict):
        tree["models"] = {
            name: _with_vtcm(_model(table, ("models", name), shelf, result.problems), sizes)
            if isinstance(table, dict)
            else table
            for name, table in tree["models"].items()
        }
    for name in ("instances", "clients"):
        if name in tree:
            tree[name] = _list(tree[name], (name,), result.problems)
    result.tree = unwrap(tree, (), result.found, result.problems)
    _take_chips(result)
    return result


def _device(table: dict[str, Any], shelf: Shelf, problems: list[Problem]) -> dict[str, Any]:
    path: Path = ("device",)
    own = dict(table)
    below = shelf.preset("device", own, path, problems)
    stated = _stated(own, "htp_backend_ext", device_table, path, shelf, problems)
    device: dict[str, Any] = merge(merge(below, stated), own)
    return device


def _vtcm(device: dict[str, Any], shelf: Shelf) -> dict[str, Any]:
    """Return the VTCM of each graph that the device's configuration file names; its faults are told elsewhere."""
    file = device.get("htp_backend_ext")
    try:
        return dict(shelf.once(vtcm_table, file)) if isinstance(file, str) else {}
    except ScenarioError:
        return {}


def _with_vtcm(model: dict[str, Any], sizes: dict[str, Any]) -> dict[str, Any]:
    """Return a model whose graphs hold the VTCM that a configuration file states, unless they say themselves."""
    lists = {key: model[key] for key in _MODEL_LISTS if isinstance(model.get(key), list)} if sizes else {}
    return model | {key: [_sized(graph, sizes) for graph in graphs] for key, graphs in lists.items()}


def _sized(graph: Any, sizes: dict[str, Any]) -> Any:
    name = graph.get("name") if isinstance(graph, dict) else None
    return {"vtcm": sizes[name]} | graph if isinstance(name, str) and name in sizes and "service" in graph else graph


def _model(table: dict[str, Any], path: Path, shelf: Shelf, problems: list[Problem]) -> dict[str, Any]:
    own = dict(table)
    below = shelf.preset("model", own, path, problems)
    stated = _stated(own, "genie_config", model_table, path, shelf, problems)
    named = stated.pop("contexts", None)
    if named and "contexts" not in below:
        below = below | {"contexts": named}
    model: dict[str, Any] = merge(merge(below, stated), own)
    for key in _MODEL_LISTS:
        if key in model:
            model[key] = _list(model[key], (*path, key), problems)
    contexts = model.get("contexts")
    if named and isinstance(contexts, list) and len(contexts) != len(named):
        text = (
            f"got a file that names {len(named)} context binaries, expected {len(contexts)}, the contexts of this model"
        )
        problems.append(((*path, "genie_config"), text))
    return model


def _stated(
    own: dict[str, Any], key: str, read: Read, path: Path, shelf: Shelf, problems: list[Problem]
) -> dict[str, Any]:
    """Take the key of a configuration file out of `own` and return what that file states."""
    file = own.pop(key, None)
    if file is None:
        return {}
    if not isinstance(file, str):
        problems.append(((*path, key), f"got {shown(file)}, expected the path of a file"))
        return {}
    try:
        return dict(shelf.once(read, file))
    except ScenarioError as error:
        problems += [((*path, key), text) for text in error.problems]
        return {}


def _list(value: Any, path: Path, problems: list[Problem]) -> Any:
    """Return a list of named tables expanded; what is no such list is left for the validation to refuse."""
    if not isinstance(value, Patched):
        if isinstance(value, dict):
            problems.append((path, f"got a table, expected a list of tables, [[{'.'.join(path)}]], for it to change"))
            return []
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            return value
    expansion = expand(value, keys_of(NAMED_LISTS[path[-1]]), path)
    problems += expansion.problems
    return expansion.tables


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _take_chips(result: Assembled) -> None:
    """Check that no chips are mixed, and leave the chip as the device's name."""
    device, models = _table(result.tree.get("device")), _table(result.tree.get("models"))
    used = referenced(result.tree)
    tables = {name: table for name, table in models.items() if isinstance(table, dict)}
    result.problems += chip_problems(device, {name: table for name, table in tables.items() if name in used})
    chip = device.pop("chip", None)
    if isinstance(chip, str):
        device.setdefault("name", chip)
    elif chip is not None:
        result.problems.append((("device", "chip"), f"got {shown(chip)}, expected the name of a chip"))
    for table in tables.values():
        table.pop("chip", None)
