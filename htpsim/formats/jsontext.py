"""JSON with line numbers, because a refusal must name the line and the standard library keeps none.

Strict on purpose (RFC 8259): no comments, no trailing commas, no NaN, each key once, limited depth. Strings are
decoded by the standard library.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_left
from typing import Final, NoReturn

from htpsim.errors import FormatError
from htpsim.formats.source import Source, shown
from htpsim.formats.tree import DEPTH_MAX, NODES_MAX, Content, Node, below

_SPACE: Final = re.compile(r"[ \t\n]*")
# Possessive, so that a string of any length takes no memory.
_STRING: Final = re.compile(r'"[^"\\\x00-\x1f]*+(?:\\.[^"\\\x00-\x1f]*+)*+"')
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?(?![\w.])")
_WORD: Final = re.compile(r"[-+]?[A-Za-z_][\w.]*")
_CONSTANTS: Final = {"true": True, "false": False, "null": None}
_NOT_FINITE: Final = {"nan", "inf", "infinity"}
_DIGITS_MAX: Final = 300
_END: Final = "the end of the file"


def parse(source: Source, expected: str = "a JSON document") -> Node:
    """Parse a whole file.

    Parameters
    ----------
    source
        The text.
    expected
        What the caller wants of the file; said when it is empty.

    Raises
    ------
    FormatError
        At the first character that is not JSON, with line and column.

    Examples
    --------
    >>> from htpsim.formats.source import from_text
    >>> parse(from_text("a.json", '{"dialog":\\n {"size": 4096}}')).whole("dialog", "size")
    Value(value=4096, unit='', line=2)
    """
    if not source.text.strip():
        raise source.error(1, "an empty file", expected)
    parser = Parser(source)
    root, position = parser.value(0, "", 0)
    position = parser.skip(position)
    if position < len(source.text):
        parser.refuse(position, "the end of the file after the document")
    return root


class Parser:
    """One pass over one text; `value` and `string` return what is there and the position behind it.

    >>> from htpsim.formats.source import from_text
    >>> node, position = Parser(from_text("a.json", '[1, {"x": 2}]')).value(4, "second", 1)
    >>> node.whole("x").value, position
    (2, 12)
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.text = source.text
        self.nodes = 0
        self.breaks = [match.start() for match in re.finditer("\n", source.text)]

    def line(self, position: int) -> int:
        """Return the number of the line of a position."""
        return bisect_left(self.breaks, position) + 1

    def column(self, position: int) -> int:
        """Return the column of a position, from 1."""
        line = self.line(position)
        return position - (self.breaks[line - 2] if line > 1 else -1)

    def skip(self, position: int) -> int:
        """Return the next position that is not space."""
        match = _SPACE.match(self.text, position)
        return match.end() if match else position

    def refuse(self, position: int, expected: str, got: str = "") -> NoReturn:
        """Raise the refusal of a position; by default with what stands there."""
        if not got:
            rest = self.text[position : position + 80].split("\n")[0]
            got = _END if position >= len(self.text) else shown(rest) if rest else "the end of the line"
        if position >= len(self.text):
            position = len(self.text.rstrip())
        place = f"{self.source.name}:{self.line(position)}:{self.column(position)}"
        raise FormatError(f"{place}: got {got}, expected {expected}")

    def value(self, position: int, where: str, depth: int) -> tuple[Node, int]:
        """Read the value at or behind a position; `depth` counts the levels around it."""
        position = self.skip(position)
        if depth > DEPTH_MAX:
            self.refuse(position, f"at most {DEPTH_MAX} levels of nesting", "a deeper one")
        self.nodes += 1
        if self.nodes > NODES_MAX:
            self.refuse(position, f"at most {NODES_MAX} values", "one more")
        start = position
        content: Content
        match self.text[position : position + 1]:
            case "{":
                content, position = self._object(position, where, depth)
            case "[":
                content, position = self._array(position, where, depth)
            case '"':
                content, position = self.string(position)
            case _:
                content, position = self._plain(position)
        return Node(content, self.line(start), where, self.source.name), position

    def _object(self, start: int, where: str, depth: int) -> tuple[dict[str, Node], int]:
        members: dict[str, Node] = {}
        position = self.skip(start + 1)
        if self.text[position : position + 1] == "}":
            return members, position + 1
        while True:
            position = self.skip(position)
            if self.text[position : position + 1] != '"':
                self.refuse(position, f"a key in quotes{self._opened(position, start)}")
            key_at = position
            key, position = self.string(position)
            if key in members:
                first = members[key].line
                self.refuse(key_at, "each key once", f"a second key {shown(key)} (the first is in line {first})")
            position = self.skip(position)
            if self.text[position : position + 1] != ":":
                self.refuse(position, f"':' after {shown(key)}")
            members[key], position = self.value(position + 1, below(where, key), depth + 1)
            position = self.skip(position)
            mark = self.text[position : position + 1]
            if mark == "}":
                return members, position + 1
            if mark != ",":
                self.refuse(position, f"',' or '}}'{self._opened(position, start)}")
            position += 1

    def _array(self, start: int, where: str, depth: int) -> tuple[list[Node], int]:
        items: list[Node] = []
        position = self.skip(start + 1)
        if self.text[position : position + 1] == "]":
            return items, position + 1
        while True:
            item, position = self.value(position, below(where, len(items)), depth + 1)
            items.append(item)
            position = self.skip(position)
            mark = self.text[position : position + 1]
            if mark == "]":
                return items, position + 1
            if mark != ",":
                self.refuse(position, f"',' or ']'{self._opened(position, start)}")
            position += 1

    def _opened(self, position: int, start: int) -> str:
        """Say where the open bracket is, when its closing one is missing at the end of the file."""
        return f" for the bracket opened in line {self.line(start)}" if position >= len(self.text) else ""

    def string(self, position: int) -> tuple[str, int]:
        """Read the string at a position."""
        match = _STRING.match(self.text, position)
        if match is None:
            self.refuse(position, "a string that ends in its own line, with '\\n' and '\\t' for breaks and tabs")
        try:
            text: str = json.loads(match[0])
            text.encode()
        except UnicodeEncodeError:
            self.refuse(position, "both halves of a surrogate pair")
        except ValueError:
            self.refuse(position, "only the escapes of JSON; a backslash in a path is written twice")
        return text, match.end()

    def _plain(self, position: int) -> tuple[Content, int]:
        match = _NUMBER.match(self.text, position)
        if match is not None:
            return self._number(match), match.end()
        match = _WORD.match(self.text, position)
        word = match[0] if match else ""
        if match is None or word not in _CONSTANTS:
            limit = "a finite number" if word.lower().lstrip("+-") in _NOT_FINITE else "a value"
            self.refuse(position, f"{limit}; text stands in quotes, placeholders are filled in, comments left out")
        return _CONSTANTS[word], match.end()

    def _number(self, match: re.Match[str]) -> int | float:
        if len(match[0]) > _DIGITS_MAX:
            self.refuse(match.start(), f"a number of at most {_DIGITS_MAX} digits")
        if match[1] is None and match[2] is None:
            return int(match[0])
        value = float(match[0])
        if not math.isfinite(value):
            self.refuse(match.start(), "a number below 1e308")
        return value
