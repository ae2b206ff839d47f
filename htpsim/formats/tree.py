"""A parsed document in which every value knows its line and its place, whatever syntax it was written in.

Readers ask a node for what they expect; a node that holds something else refuses with file, line and place.
``null`` counts as absent, because that is what the tools mean by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn, TypeAlias

from htpsim.errors import FormatError
from htpsim.formats.source import shown
from htpsim.formats.values import Scalar, Value

DEPTH_MAX: Final = 64
"""Deeper nesting is refused: no known format comes near it."""

NODES_MAX: Final = 500_000
"""More values are refused: they would have to be held all at once, and no known file has a tenth of it."""

_KEY_SHOWN: Final = 60
_PLACE_SHOWN: Final = 240
_LISTED: Final = 20

Content: TypeAlias = "Scalar | dict[str, Node] | list[Node] | None"


@dataclass(frozen=True, slots=True)
class Node:
    """One value of a document: a scalar, ``None``, a dict of nodes or a list of nodes."""

    value: Content
    line: int
    where: str
    """The place in the document, such as ``dialog.context.size``; "" for the whole document."""

    file: str

    def refuse(self, expected: str) -> NoReturn:
        """Raise the refusal of this node.

        >>> Node("x", 7, "context.size", "a.json").refuse("a whole number")
        Traceback (most recent call last):
        htpsim.errors.FormatError: a.json:7: got 'x' at context.size, expected a whole number
        """
        place = f" at {self.where}" if self.where else ""
        raise FormatError(f"{self.file}:{self.line}: got {self.described()}{place}, expected {expected}")

    def described(self) -> str:
        """Say in a few words what this node holds."""
        match self.value:
            case None:
                return "null"
            case bool():
                return str(self.value).lower()
            case str():
                return shown(self.value)
            case dict():
                return "an object"
            case list():
                return "a list"
        return str(self.value)

    def members(self) -> dict[str, Node]:
        """Return the members; an absent (null) object has none."""
        if self.value is None:
            return {}
        if not isinstance(self.value, dict):
            self.refuse("an object")
        return self.value

    def items(self) -> list[Node]:
        """Return the items; an absent (null) list has none, and a single value is a list of itself."""
        if self.value is None:
            return []
        return self.value if isinstance(self.value, list) else [self]

    def find(self, *path: str) -> Node | None:
        """Follow keys downwards; ``None`` where one is absent or null.

        >>> root = Node({"a": Node({"b": Node(3, 2, "a.b", "f")}, 2, "a", "f")}, 1, "", "f")
        >>> root.find("a", "b").value, root.find("a", "c")
        (3, None)
        """
        node = self
        for key in path:
            found = node.members().get(key)
            if found is None or found.value is None:
                return None
            node = found
        return node

    def text(self, *path: str) -> Value[str] | None:
        """Return a string."""
        node = self.find(*path)
        if node is None:
            return None
        if not isinstance(node.value, str):
            node.refuse("text in quotes")
        return Value(node.value, "", node.line)

    def flag(self, *path: str) -> Value[bool] | None:
        """Return true or false; 1 and 0 are taken as such."""
        node = self.find(*path)
        if node is None:
            return None
        if not isinstance(node.value, int | float) or node.value not in (0, 1):
            node.refuse("true or false")
        return Value(bool(node.value), "", node.line)

    def whole(self, *path: str, unit: str = "") -> Value[int] | None:
        """Return a whole number; 3.0 is taken as 3, as the tools do."""
        node = self.find(*path)
        if node is None:
            return None
        value = node.value
        if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
            node.refuse("a whole number")
        return Value(int(value), unit, node.line)

    def number(self, *path: str, unit: str = "") -> Value[int | float] | None:
        """Return a number as written, whole or not."""
        node = self.find(*path)
        if node is None:
            return None
        if isinstance(node.value, bool) or not isinstance(node.value, int | float):
            node.refuse("a number")
        return Value(node.value, unit, node.line)

    def count(self, *path: str, unit: str = "") -> Value[int] | None:
        """Return a whole number, zero or above, below 2^63: a size, a count, a time in whole units."""
        found = self.whole(*path, unit=unit)
        if found is not None and not 0 <= found.value < 2**63:
            self._found(*path).refuse("a number from 0 to 2^63")
        return found

    def measured(self, *path: str, unit: str = "") -> Value[int | float] | None:
        """Return a number, zero or above, below 2^63, whole or not."""
        found = self.number(*path, unit=unit)
        if found is not None and not 0 <= found.value < 2**63:
            self._found(*path).refuse("a number from 0 to 2^63")
        return found

    def _found(self, *path: str) -> Node:
        return self.find(*path) or self

    def scalar(self, *path: str, unit: str = "") -> Value[Scalar] | None:
        """Return whatever scalar is there."""
        node = self.find(*path)
        if node is None:
            return None
        if node.value is None or isinstance(node.value, dict | list):
            node.refuse("a single value")
        return Value(node.value, unit, node.line)

    def unread(self, known: set[str] | frozenset[str]) -> Iterator[str]:
        """Yield the places of members that a reader does not know."""
        for key, member in self.members().items():
            if key not in known:
                yield member.where


def below(where: str, key: str | int) -> str:
    """Name the place of a member or item; a long key or place is cut, as each value keeps its own.

    >>> below("devices", 0), below("dialog", "context"), below("", "dialog")
    ('devices[0]', 'dialog.context', 'dialog')
    """
    if len(where) > _PLACE_SHOWN:
        where = "..." + where[-_PLACE_SHOWN // 2 :]
    if isinstance(key, int):
        return f"{where}[{key}]"
    if len(key) > _KEY_SHOWN:
        key = key[: _KEY_SHOWN - 3] + "..."
    return f"{where}.{key}" if where else key


def few(places: Sequence[str]) -> str:
    """List places for a note: the first ones, and how many more there are.

    >>> few(["a", "b.c"]), few([f"k{n}" for n in range(22)])[-13:]
    ('a, b.c', 'k19, 2 others')
    """
    more = len(places) - _LISTED
    return ", ".join(places[:_LISTED]) + (f", {more} others" if more > 0 else "")
