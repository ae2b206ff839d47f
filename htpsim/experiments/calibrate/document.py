"""A calibrated scenario as TOML: every value with its source, warnings on top. The same input gives the same bytes."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from htpsim.experiments.calibrate.leaf import Leaf

WIDTH: Final = 118
_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


def toml_text(tree: Mapping[str, Any], head: Sequence[str] = ()) -> str:
    """Return a tree of tables as TOML, with comment lines on top.

    >>> print(toml_text({"title": "t", "device": {"cores": Leaf(value=2, mark="measured", source="a.json:3")}}), end="")
    title = "t"
    <BLANKLINE>
    [device]
    cores = { value = 2, mark = "measured", source = "a.json:3" }
    """
    lines = [line for text in head for line in _comment(text)]
    body = list(_table(tree, ()))
    return "\n".join([*lines, *(body[1:] if body and not body[0] else body)]) + "\n"


def _comment(text: str) -> list[str]:
    """Return a text as comment lines; control characters, which a comment may not hold, become spaces."""
    clean = "".join(c if c.isprintable() else " " for c in text)
    return [f"# {line}" for line in textwrap.wrap(clean, WIDTH, subsequent_indent="  ")]


def _table(table: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    """Yield the lines of a table: its own values, then the tables within it."""
    inner = {key: value for key, value in table.items() if _is_table(value) or _is_list(value)}
    own = {key: value for key, value in table.items() if key not in inner}
    if path and (own or not inner):
        yield ""
        yield f"[{_dotted(path)}]"
    for key, value in own.items():
        yield f"{_key(key)} = {written(value)}"
    for key, value in inner.items():
        if _is_table(value):
            yield from _table(value, (*path, key))
            continue
        for item in value:
            yield ""
            yield f"[[{_dotted((*path, key))}]]"
            for name, member in item.items():
                yield f"{_key(name)} = {written(member)}"


def _is_table(value: object) -> bool:
    """Tell whether a value gets a heading: small tables of plain values stay on one line."""
    return isinstance(value, Mapping) and any(isinstance(inner, Mapping | Leaf) or _is_list(inner)
                                              for inner in value.values())  # fmt: skip


def _is_list(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, Mapping) for item in value)


def written(value: Any) -> str:
    """Write a value on one line.

    >>> written({"sample": ["1ms", "2ms"]}), written(True), written(3)
    ('{ sample = ["1ms", "2ms"] }', 'true', '3')
    """
    if isinstance(value, Leaf):
        return f"{{ value = {written(value.value)}, mark = {_text(value.mark)}, source = {_text(value.source)} }}"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {written(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(written(inner) for inner in value) + "]"
    if isinstance(value, str):
        return _text(value)
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _text(text: str) -> str:
    """Write text in quotes: JSON's escapes are TOML's, but for DEL and what stands for no character."""
    escaped = json.dumps(text.encode("utf-8", "replace").decode("utf-8"), ensure_ascii=False)
    return escaped.replace("\x7f", "\\u007f")


def _key(key: str) -> str:
    return key if key and _PLAIN.issuperset(key) else _text(key)


def _dotted(path: tuple[str, ...]) -> str:
    return ".".join(_key(part) for part in path)


def leaves(tree: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Leaf]]:
    """Yield every value that has a source, with its dotted key."""
    if isinstance(tree, Leaf):
        yield ".".join(path), tree
    elif isinstance(tree, Mapping):
        for key, value in tree.items():
            yield from leaves(value, (*path, key))
    elif isinstance(tree, list):
        for item in tree:
            yield from leaves(item, (*path, str(item["name"])) if isinstance(item, Mapping) else path)
