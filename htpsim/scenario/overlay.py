"""Laying one table over another, and lists of named tables: ``count``, spread values, patches by name.

Merging. A table over a table merges key by key, to any depth; anything else replaces what lay beneath. Two kinds of
tables are replaced whole, because half of one and half of another means nothing: a distribution, and a value with
its source. A table over a list of tables (``[variants.x.instances]`` over ``[[instances]]``) is a *patch*: it waits,
with those before it, until the list is expanded.

Expanding. A group with ``count = 4`` and ``name = "vlm"`` becomes vlm0 to vlm3; a list given for a key that holds one
value is spread over them, one each. Then the patches apply in order, each in three steps: its plain keys to every
table (a list is spread over all), its tables named after a group to the group, its tables named after one to that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from htpsim.errors import nearest
from htpsim.scenario.distributions import LEAF_KEYS, LEAF_SIGNS
from htpsim.scenario.keys import Key, Shape
from htpsim.scenario.sourced import is_sourced
from htpsim.scenario.wording import shown

COUNT_MAX = 1_000
DEFAULT_NAMES = {"instances": "vlm", "clients": "client"}

Table = dict[str, Any]
Keys = Mapping[str, Key]
Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Patched:
    """A list of named tables with the patches that wait for its expansion, oldest first."""

    items: tuple[Table, ...]
    patches: tuple[Table, ...]


@dataclass(slots=True)
class _Item:
    group: str
    name: str
    table: Table


@dataclass(frozen=True, slots=True)
class Expansion:
    """The tables of a list with their names, and what was wrong, as (path, text)."""

    tables: list[Table] = field(default_factory=list)
    problems: list[tuple[Path, str]] = field(default_factory=list)


def is_leaf(value: object) -> bool:
    """Tell whether a table is replaced whole: a sourced value or a distribution.

    >>> is_leaf({"mean": "1s", "kind": "exponential"}), is_leaf({"kind": "poisson", "period": "1s"})
    (True, False)
    """
    if not isinstance(value, dict):
        return True
    if is_sourced(value):
        return True
    flat = not any(isinstance(inner, dict | Patched) for inner in value.values())
    return flat and LEAF_KEYS.issuperset(value) and not LEAF_SIGNS.isdisjoint(value)


def is_list_of_tables(value: object) -> bool:
    """Tell whether a value is what ``[[...]]`` writes."""
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


def merge(under: Any, over: Any) -> Any:
    """Lay `over` over `under`; neither is changed.

    >>> merge({"a": {"x": 1, "y": 2}, "b": 3}, {"a": {"y": 5}})
    {'a': {'x': 1, 'y': 5}, 'b': 3}
    """
    if is_leaf(over):
        return over
    if isinstance(under, Patched):
        return Patched(under.items, (*under.patches, over))
    if is_list_of_tables(under):
        return Patched(tuple(under), (over,))
    if is_leaf(under):
        return over
    merged = dict(under)
    for key, value in over.items():
        merged[key] = merge(under[key], value) if key in under else value
    return merged


def expand(value: Any, keys: Keys, path: Path) -> Expansion:
    """Return the tables that a list of named tables stands for.

    Parameters
    ----------
    value
        A list of tables or a :class:`Patched`.
    keys
        The keys that such a table has.
    path
        Where the list stands; its last part is the list's own key.

    Examples
    --------
    >>> from htpsim.scenario.keys import keys_of
    >>> from htpsim.spec import Instance
    >>> expand([{"count": 2, "weight": [4, 1]}], keys_of(Instance), ("instances",)).tables
    [{'name': 'vlm0', 'weight': 4}, {'name': 'vlm1', 'weight': 1}]
    """
    result = Expansion()
    patched = value if isinstance(value, Patched) else Patched(tuple(value), ())
    items: list[_Item] = []
    for group in _counted(patched, keys, path, result):
        items += _members(group, keys, path, result)
    _refuse_doubles(items, path, result)
    for patch in patched.patches:
        _apply(patch, items, keys, path, result)
    result.tables.extend(item.table for item in items)
    return result


def _counted(patched: Patched, keys: Keys, path: Path, result: Expansion) -> Iterator[Table]:
    """Yield the groups with the count that the last patch gave them."""
    named = [dict(group) for group in patched.items]
    for group in named:
        group.setdefault("name", DEFAULT_NAMES.get(path[-1]))
    for patch in patched.patches:
        for group in named:
            own = patch.get(group["name"]) if isinstance(group["name"], str) else None
            if isinstance(own, dict) and "count" in own and group["name"] not in keys:
                group["count"] = own["count"]
        if "count" in patch and len(named) == 1:
            named[0]["count"] = patch["count"]
        elif "count" in patch:
            names = ", ".join(str(group["name"]) for group in named)
            result.problems.append(((*path, "count"), f"got a count for {len(named)} groups, expected one of {names}"))
    yield from named


def _members(group: Table, keys: Keys, path: Path, result: Expansion) -> Iterable[_Item]:
    name, count = group["name"], group.get("count")
    if "count" not in group:
        label = name if isinstance(name, str) else ""
        yield _Item(label, label, {key: value for key, value in group.items() if value is not None})
        return
    where = (*path, name, "count") if isinstance(name, str) else (*path, "count")
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= COUNT_MAX:
        result.problems.append((where, f"got {shown(count)}, expected a whole number from 1 to {COUNT_MAX}"))
        return
    if not isinstance(name, str):
        result.problems.append((where, f"got the name {shown(name)}, expected text that the numbers can follow"))
        return
    plain = {key: value for key, value in group.items() if key not in {"name", "count"}}
    for i, table in enumerate(spread(plain, count, keys, (*path, name), result)):
        yield _Item(name, f"{name}{i}", {"name": f"{name}{i}"} | table)


def _refuse_doubles(items: list[_Item], path: Path, result: Expansion) -> None:
    seen: set[str] = set()
    for item in items:
        if item.name and item.name in seen:
            result.problems.append(((*path, item.name), "got this name twice, expected a name of its own"))
        seen.add(item.name)


def _apply(patch: Table, items: list[_Item], keys: Keys, path: Path, result: Expansion) -> None:
    names, groups = {item.name for item in items}, {item.group for item in items}
    known = names | groups
    tables = {key: value for key, value in patch.items() if key in known and key not in keys}
    plain = {key: value for key, value in patch.items() if key not in tables and key != "count"}
    for key, value in list(plain.items()):
        if key not in keys and isinstance(value, dict) and not is_leaf(value):
            close = nearest(key, [*known, *keys])
            hint = f"; did you mean '{close}'?" if close else ""
            result.problems.append(
                ((*path, key), f"got '{key}', expected a key or one of {', '.join(sorted(known))}{hint}")
            )
            del plain[key]
    _lay(plain, items, keys, path, result)
    for key, value in tables.items():
        if not isinstance(value, dict):
            result.problems.append(((*path, key), f"got {shown(value)}, expected a table"))
            continue
        own = {inner: given for inner, given in value.items() if inner != "count"}
        members = [item for item in items if item.group == key] if key in groups else []
        _lay(own, members or [item for item in items if item.name == key], keys, (*path, key), result)


def _lay(patch: Table, items: list[_Item], keys: Keys, path: Path, result: Expansion) -> None:
    for item, table in zip(items, spread(patch, len(items), keys, path, result), strict=True):
        item.table = merge(item.table, table)


def spread(patch: Table, count: int, keys: Keys, path: Path, result: Expansion) -> list[Table]:
    """Return `count` copies of a table, in which a list given for a key that holds one value has become one value."""
    copies: list[Table] = [{} for _ in range(count)]
    for key, value in patch.items():
        for copy, own in zip(copies, _each(value, count, keys.get(key), (*path, key), result), strict=True):
            copy[key] = own
    return copies


def _each(value: Any, count: int, key: Key | None, path: Path, result: Expansion) -> list[Any]:
    from htpsim.scenario.keys import keys_of

    if key is None or key.shape in {Shape.TABLES, Shape.PARAMETERS}:
        return [value] * count
    if is_sourced(value):
        return [value | {"value": inner} for inner in _each(value["value"], count, key, path, result)]
    if key.shape is Shape.TABLE and isinstance(value, dict):
        return list(spread(value, count, keys_of(key.type), path, result))
    spreads = isinstance(value, list) and (key.shape is not Shape.VALUES or any(isinstance(v, list) for v in value))
    if not spreads:
        return [value] * count
    if len(value) != count:
        result.problems.append((path, f"got {len(value)} values, expected {count}, one each, or a single one for all"))
        return [value[0] if value else None] * count
    return list(value)
