"""Problems as sentences: which file, which key, what was given, what was expected, what was probably meant."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from htpsim.scenario.distributions import forms
from htpsim.scenario.keys import NAMED_LISTS, Shape, keys_of
from htpsim.scenario.overlay import Patched, is_leaf, is_list_of_tables
from htpsim.scenario.sourced import Path, Problem, is_sourced
from htpsim.scenario.tables import SPEC_OF
from htpsim.scenario.wording import shown, unknown_key, unknown_word
from htpsim.spec import Model

_EXPECTED = {
    "bool_type": "true or false",
    "dict_type": "a table",
    "float_type": "a number",
    "finite_number": "a finite number",
    "int_type": "a whole number",
    "model_type": "a table",
    "model_attributes_type": "a table",
    "string_type": "text",
    "too_short": "at least one value",
    "tuple_type": "a list",
    "string_pattern_mismatch": "a name of letters, digits, '_', '-' and '.'",
}
_SECTIONS = (*SPEC_OF, "models", "instances", "clients")


@dataclass(frozen=True, slots=True)
class Layer:
    """One contribution to a scenario: a file, an overlay in it, or what was set on the command line."""

    label: str
    """What a message calls it: the file's path, or ``--set``."""

    prefix: Path
    """Keys that stand before those of `tree` in the file: ("variants", "genie")."""

    tree: dict[str, Any]


def place(path: Path, layers: Sequence[Layer]) -> str:
    """Return "file: key.path" of the layer that had the last word about `path`."""
    for start in range(len(path), 0, -1):
        for layer in reversed(layers):
            if _mentions(layer.tree, path[:start]):
                return f"{layer.label}: {'.'.join((*layer.prefix, *path))}"
    label = layers[0].label if layers else ""
    return f"{label}: {'.'.join(path)}" if label else ".".join(path)


def _mentions(tree: Any, path: Path) -> bool:
    if not path:
        return True
    if isinstance(tree, Patched):
        return any(_mentions(part, path) for part in (list(tree.items), *tree.patches))
    if is_list_of_tables(tree):
        return any((_named(item, path[0]) and _mentions(item, path[1:])) or _mentions(item, path) for item in tree)
    if isinstance(tree, list):
        return path[0].isdigit() and int(path[0]) < len(tree) and len(path) == 1
    if is_sourced(tree):
        return path[0] in tree or _mentions(tree["value"], path)
    return isinstance(tree, dict) and _table_mentions(tree, path)


def _table_mentions(tree: dict[str, Any], path: Path) -> bool:
    if path[0] in tree:
        return _mentions(tree[path[0]], path[1:])
    groups = [key for key in tree if re.fullmatch(re.escape(key) + r"\d+", path[0])]
    if any(_mentions(tree[key], path[1:]) for key in groups if isinstance(tree[key], dict)):
        return True
    # Plain keys of a patch of a named list apply to every table in it.
    return len(path) > 1 and path[1] in tree and not is_leaf(tree) and _mentions(tree[path[1]], path[2:])


def condense(problems: Iterable[Problem], tree: dict[str, Any]) -> list[Problem]:
    """Return the problems with one that every table of a list has alike told once, without the name of the table."""
    told = list(dict.fromkeys(problems))
    grouped: dict[tuple[Path, str], set[str]] = {}
    starred: dict[Problem, tuple[Path, str] | None] = {}
    sizes: dict[Path, int] = {}
    for path, text in told:
        at = _list_at(path, tree)
        starred[path, text] = None if at is None else ((*path[:at], *path[at + 1 :]), text)
        if at is not None:
            sizes[(*path[:at], *path[at + 1 :])] = len(_at(tree, path[:at]))
            grouped.setdefault(((*path[:at], *path[at + 1 :]), text), set()).add(path[at])
    result: dict[Problem, None] = {}
    for problem in told:
        common = starred[problem]
        whole = common is not None and 1 < sizes[common[0]] == len(grouped[common])
        result[common if common is not None and whole else problem] = None
    return list(result)


def _at(tree: Any, path: Path) -> Any:
    for part in path:
        tree = tree.get(part) if isinstance(tree, dict) else None
    return tree


def _list_at(path: Path, tree: dict[str, Any]) -> int | None:
    """Return the position in a path of the name of a table in a list of named tables."""
    for at in range(1, len(path)):
        if path[at - 1] in NAMED_LISTS and is_list_of_tables(_at(tree, path[:at])):
            return at
    return None


def _named(item: dict[str, Any], name: str) -> bool:
    own = item.get("name")
    if not isinstance(own, str):
        return re.fullmatch(r"(vlm|client)?\d*", name) is not None
    return own == name or ("count" in item and re.fullmatch(re.escape(own) + r"\d+", name) is not None)


def sentences(error: ValidationError, tree: dict[str, Any]) -> Iterator[Problem]:
    """Yield (path, text) for each thing that Pydantic found in `tree`."""
    for found in error.errors(include_url=False):
        loc = found["loc"]
        yield _path(loc, tree), _text(found["type"], found["input"], found.get("ctx", {}), loc, found["msg"])


def _path(loc: Sequence[int | str], tree: Any) -> Path:
    """Return where an error lies: names instead of positions, without the tags of unions."""
    path: list[str] = []
    for part in loc:
        if isinstance(part, str) and part.startswith("<"):
            continue
        if isinstance(part, int):
            tree = tree[part] if isinstance(tree, list | tuple) and part < len(tree) else None
            name = tree.get("name") if isinstance(tree, dict) else None
            path.append(name if isinstance(name, str) else str(part))
            continue
        tree = tree.get(part) if isinstance(tree, dict) else None
        path.append(part)
    return tuple(part for part in path if part != "[key]")


def _text(kind: str, given: object, context: dict[str, Any], loc: Sequence[int | str], message: str) -> str:
    if kind == "value_error":
        return str(context["error"])
    if kind == "missing":
        return f"got nothing, expected {_wanted(loc)}"
    if kind == "extra_forbidden":
        return unknown_key(str(loc[-1]), _valid_keys(loc[:-1]))
    if kind == "literal_error":
        words = re.findall(r"'([^']*)'", context["expected"])
        if isinstance(given, str):
            return unknown_word(given, words)
        return f"got {shown(given)}, expected one of {', '.join(words)}"
    expected = _EXPECTED.get(kind, message[:1].lower() + message[1:])
    return f"got {shown(given)}, expected {expected}"


def _wanted(loc: Sequence[int | str]) -> str:
    if any(part == "<kind>" for part in loc):
        return "one of constant, sample, uniform, exponential, lognormal, erlang"
    if loc[-1] in {"mean", "low", "high", "cv", "stages", "sample"}:
        return "a value, which this kind of distribution needs"
    return {"service": "a time, such as '161ms'", "context": "the name of a context"}.get(str(loc[-1]), "a value")


def _valid_keys(loc: Sequence[int | str]) -> list[str]:
    """Return the keys that the table at `loc` has."""
    spec: type | None = None
    form: type[BaseModel] | None = None
    for i, part in enumerate(loc):
        if isinstance(part, int):
            continue
        if i == 0:
            spec = SPEC_OF.get(part) or NAMED_LISTS.get(part) or (Model if part == "models" else None)
        elif part.startswith("<"):
            form = forms("ns").get(part)
        elif spec is not None and part in keys_of(spec):
            spec = keys_of(spec)[part].type if keys_of(spec)[part].shape in {Shape.TABLE, Shape.TABLES} else spec
    if form is not None:
        return list(form.model_fields)
    return list(keys_of(spec)) if spec is not None else list(_SECTIONS)
