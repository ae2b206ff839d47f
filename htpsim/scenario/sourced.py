"""Values that say where they come from: ``{ value = "161ms", source = "...", mark = "measured" }``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

from htpsim.errors import nearest
from htpsim.scenario.wording import shown, unknown_word

MARKS: Final = ("measured", "derived", "assumed")
_KEYS: Final = ("value", "source", "mark")

Path = tuple[str, ...]
Problem = tuple[Path, str]


@dataclass(frozen=True, slots=True)
class SourcedValue:
    """One figure of a scenario and what it rests on."""

    key: str
    """Dotted path in the scenario; `*` stands for every table of a list that has the same."""

    value: str
    """As it was written."""

    mark: Literal["measured", "derived", "assumed"]
    source: str


def is_sourced(value: object) -> bool:
    """Tell whether a table is a value with its source.

    >>> is_sourced({"value": "1s", "source": "a log"}), is_sourced({"value": 3})
    (True, False)
    """
    return isinstance(value, dict) and "value" in value and ("source" in value or "mark" in value)


def unwrap(value: Any, path: Path, found: list[SourcedValue], problems: list[Problem]) -> Any:
    """Return `value` with every sourced value in it replaced by the value itself, noting source and problems."""
    if is_sourced(value):
        problems += [((*path, *where), text) for where, text in _faults(value)]
        if value.get("mark") in MARKS and isinstance(value.get("source"), str):
            found.append(SourcedValue(".".join(path), written(value["value"]), value["mark"], value["source"]))
        return unwrap(value["value"], path, found, problems)
    if isinstance(value, dict):
        return {key: unwrap(inner, (*path, key), found, problems) for key, inner in value.items()}
    if isinstance(value, list):
        return [unwrap(inner, (*path, _name(inner, i)), found, problems) for i, inner in enumerate(value)]
    return value


def _name(item: Any, index: int) -> str:
    name = item.get("name") if isinstance(item, dict) else None
    return name if isinstance(name, str) else str(index)


def _faults(table: dict[str, Any]) -> Iterator[Problem]:
    source, mark = table.get("source"), table.get("mark")
    if not isinstance(source, str) or not source.strip():
        yield ("source",), f"got {shown(source)}, expected where the value comes from"
    if not isinstance(mark, str):
        yield ("mark",), f"got {shown(mark)}, expected one of {', '.join(MARKS)}"
    elif mark not in MARKS:
        yield ("mark",), unknown_word(mark, MARKS)
    if is_sourced(table["value"]):
        yield ("value",), "got a sourced value within another, expected a value"
    for key in table:
        if key not in _KEYS:
            close = nearest(key, _KEYS)
            yield (
                (key,),
                "got an unknown key, expected value, source, mark" + (f"; did you mean '{close}'?" if close else ""),
            )


def written(value: Any) -> str:
    """Write a value on one line, much as TOML does.

    >>> written({"mean": "1s", "cv": 0.2}), written("161ms"), written(True)
    ('{ mean = "1s", cv = 0.2 }', '161ms', 'true')
    """
    return value if isinstance(value, str) else _written(value)


def _written(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_written(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_written(inner) for inner in value) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return str(value).lower() if isinstance(value, bool) else str(value)


def condensed(values: Iterable[SourcedValue], lists: Iterable[str]) -> tuple[SourcedValue, ...]:
    """Return the values with those that a whole list of tables shares told once, under `*`.

    >>> same = [SourcedValue(f"models.llm.decode.part{i}.dram", "1GB", "assumed", "a guess") for i in range(3)]
    >>> [value.key for value in condensed(same, ["decode"])]
    ['models.llm.decode.*.dram']
    """
    pattern = re.compile(rf"(^|\.)({'|'.join(lists)})\.[^.]+\.")
    grouped: dict[SourcedValue, list[SourcedValue]] = {}
    for value in dict.fromkeys(values):
        starred = pattern.sub(r"\1\2.*.", value.key)
        grouped.setdefault(SourcedValue(starred, value.value, value.mark, value.source), []).append(value)
    whole = {starred.key for starred in grouped if sum(other.key == starred.key for other in grouped) == 1}
    result: list[SourcedValue] = []
    for common, members in grouped.items():
        result += [common] if common.key in whole and len(members) > 1 else members
    return tuple(result)
