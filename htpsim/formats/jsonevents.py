"""Large JSON whose bulk is a list of events: the events one after another and fast, all else with line numbers.

A trace has a hundred thousand events of one shape. They are decoded by the standard library's scanner, each on its
own, so that only one is held and a file cut in the middle gives all that came before. Checked as strictly as by
:mod:`htpsim.formats.jsontext`: each key once, finite numbers, limited nesting. An event knows its index and the line
on which it starts.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from htpsim.errors import FormatError
from htpsim.formats.jsontext import Parser
from htpsim.formats.source import Source, shown
from htpsim.formats.tree import DEPTH_MAX, Node, below

_DIGITS_MAX: Final = 300
# What may stand at the very end of a file that was cut: a string without its end, or a word or number.
# Possessive, so that a string of any length takes no memory.
_CUT: Final = re.compile(r'(?:"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+\\?|[\w.+-]*+)\Z')


@dataclass(frozen=True, slots=True)
class Event:
    """One object of the list, with its place."""

    members: dict[str, Any]
    where: str
    line: int
    """The line on which it starts."""

    file: str

    def refuse(self, key: str, expected: str) -> NoReturn:
        """Raise the refusal of a member.

        >>> Event({"dur": "x"}, "traceEvents[3]", 9, "a.json").refuse("dur", "a number")
        Traceback (most recent call last):
        htpsim.errors.FormatError: a.json:9: got 'x' at traceEvents[3].dur, expected a number
        """
        value = self.members.get(key)
        kinds = {dict: "an object", list: "a list", type(None): "nothing", bool: str(value).lower()}
        got = shown(value) if isinstance(value, str) else kinds.get(type(value), str(value))
        raise FormatError(f"{self.file}:{self.line}: got {got} at {below(self.where, key)}, expected {expected}")

    def inner(self, key: str) -> Event:
        """Return a member that is an object; an absent one is empty."""
        value = self.members.get(key)
        if value is None:
            value = {}
        if not isinstance(value, dict):
            self.refuse(key, "an object")
        return Event(value, below(self.where, key), self.line, self.file)

    def text(self, key: str) -> str | None:
        """Return a string."""
        value = self.members.get(key)
        if value is None:
            return None
        if not isinstance(value, str):
            self.refuse(key, "text in quotes")
        try:
            value.encode()
        except UnicodeEncodeError:
            self.refuse(key, "both halves of a surrogate pair")
        return value

    def whole(self, key: str) -> int | None:
        """Return a whole number, zero or above, below 2^63; 3.0 is taken as 3."""
        value = self.members.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
            self.refuse(key, "a whole number")
        if not 0 <= value < 2**63:
            self.refuse(key, "a number from 0 to 2^63")
        return int(value)

    def number(self, key: str) -> float | None:
        """Return a number, zero or above, below 2^63."""
        value = self.members.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.refuse(key, "a number")
        if not 0 <= value < 2**63:
            self.refuse(key, "a number from 0 to 2^63")
        return float(value)

    def needed(self, key: str) -> int:
        """Return a whole number that must be there."""
        value = self.whole(key)
        if value is None:
            self.refuse(key, "a whole number")
        return value


class _Refused(ValueError):
    """What the scanner found and what it expected; raised through the scanner, so without a place."""

    def __init__(self, got: str, expected: str) -> None:
        super().__init__(got, expected)
        self.got = got
        self.expected = expected


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _Refused(f"a second key {shown(key)}", "each key once")
            seen.add(key)
    return members


def _whole(digits: str) -> int:
    if len(digits) > _DIGITS_MAX:
        raise _Refused(shown(digits), f"a number of at most {_DIGITS_MAX} digits")
    return int(digits)


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise _Refused(shown(digits), "a number below 1e308")
    return value


def _constant(word: str) -> NoReturn:
    raise _Refused(shown(word), "a finite number")


class Cursor:
    """Reads a document from front to back: `members` of the object at hand, and of each value a `node` or its `events`.

    Examples
    --------
    >>> from htpsim.formats.source import from_text
    >>> cursor = Cursor(from_text("a.json", '{"unit": "us", "traceEvents": [{"dur": 5}, {"du'), "a trace")
    >>> for key in cursor.members():
    ...     if key == "unit":
    ...         print(cursor.node(key).value)
    ...     elif key == "traceEvents":
    ...         print([event.whole("dur") for event in cursor.events(key)], cursor.truncated)
    us
    [5] True
    """

    def __init__(self, source: Source, expected: str) -> None:
        if not source.text.strip():
            raise source.error(1, "an empty file", expected)
        self.truncated = False
        """Whether the text ends within a list of events, or behind it without its closing brackets."""

        self._source = source
        self._text = source.text
        self._parser = Parser(source)
        self._end = len(source.text.rstrip())
        self._line_at = (0, 1)
        self._position = self._parser.skip(0)
        self._listed = False
        self._decoder = json.JSONDecoder(
            object_pairs_hook=_once, parse_int=_whole, parse_float=_finite, parse_constant=_constant
        )

    @property
    def mark(self) -> str:
        """The character at hand: ``{`` before an object, ``[`` before a list; "" at the end."""
        return self._text[self._position : self._position + 1]

    def members(self) -> Iterator[str]:
        """Yield the keys of the object at hand; a value that is not read before the next key is skipped.

        Raises
        ------
        FormatError
            At what is no JSON; at the end of the text unless a list of events was read before.
        """
        if self.mark != "{":
            self._parser.refuse(self._position, "an object")
        seen: set[str] = set()
        self._position = self._parser.skip(self._position + 1)
        while self.mark != "}":
            if self._cut("a key in quotes"):
                return
            at = self._position
            if self._listed and _CUT.match(self._text, at, self._end):
                self.truncated = True
                return
            key, self._position = self._parser.string(at)
            if key in seen:
                self._parser.refuse(at, "each key once", f"a second key {shown(key)}")
            seen.add(key)
            self._position = self._parser.skip(self._position)
            if self._cut(f"':' after {shown(key)}"):
                return
            self._expect(":", f"':' after {shown(key)}")
            if self._cut("a value"):
                return
            before = self._position
            yield key
            if self._position == before:
                self._skip_value()
            if self.truncated or self._cut("',' or '}'"):
                return
            if self.mark == "}":
                break
            self._expect(",", "',' or '}'")
            if self.mark == "}":
                self._parser.refuse(self._position, "a key in quotes")
        self._position = self._parser.skip(self._position + 1)

    def node(self, where: str) -> Node:
        """Read the value at hand with line numbers for each of its values; null where the text ends within it."""
        if self._listed:
            start = self._position
            self._decode()
            if self.truncated:
                return Node(None, self._line(start), where, self._source.name)
            self._position = start
        node, position = self._parser.value(self._position, where, 1)
        self._position = self._parser.skip(position)
        return node

    def events(self, where: str) -> Iterator[Event]:
        """Yield the objects of the list at hand; the last one is left out where the text ends within it.

        Raises
        ------
        FormatError
            At what is no JSON, and at an item that is no object.
        """
        if self.mark != "[":
            self._parser.refuse(self._position, "a list of events")
        self._listed = True
        self._position = self._parser.skip(self._position + 1)
        index = 0
        while self.mark != "]":
            start = self._position
            value = self._decode()
            if self.truncated:
                return
            if not isinstance(value, dict):
                self._parser.refuse(start, f"an object at {below(where, index)}")
            yield Event(value, below(where, index), self._line(start), self._source.name)
            index += 1
            if self._cut("',' or ']'"):
                return
            if self.mark == "]":
                break
            self._expect(",", "',' or ']'")
            if self.mark == "]":
                self._parser.refuse(self._position, "an event after ','")
        self._position = self._parser.skip(self._position + 1)

    def finish(self) -> None:
        """Refuse what stands behind the document."""
        if not self.truncated and self._position < self._end:
            self._parser.refuse(self._position, "the end of the file after the document")

    def _line(self, position: int) -> int:
        """Count on from the last position asked for; positions only grow."""
        at, line = self._line_at
        self._line_at = (position, line + self._text.count("\n", at, position))
        return self._line_at[1]

    def _expect(self, mark: str, expected: str) -> None:
        if self.mark != mark:
            self._parser.refuse(self._position, expected)
        self._position = self._parser.skip(self._position + 1)

    def _cut(self, expected: str) -> bool:
        """Say whether the text ends here, which is a truncation behind events and an error before them."""
        if self._position < self._end:
            return False
        if not self._listed:
            self._parser.refuse(self._position, expected)
        self.truncated = True
        return True

    def _skip_value(self) -> None:
        self._decode()

    def _decode(self) -> Any:
        """Decode the value at hand without line numbers; sets `truncated` where the text ends within it."""
        start = self._position
        value: Any = None
        try:
            value, end = self._decoder.raw_decode(self._text, start)
        except RecursionError:
            self._parser.refuse(start, f"at most {DEPTH_MAX} levels of nesting", "a deeper one")
        except json.JSONDecodeError as error:
            if self._listed and _CUT.match(self._text, min(error.pos, self._end), self._end):
                self.truncated = True
                return None
            self._parser.refuse(error.pos, _WORDS.get(error.msg, "a JSON value"))
        except _Refused as error:
            self._parser.refuse(start, error.expected, f"{error.got} in the value that starts here")
        brackets = self._text.count("{", start, end) + self._text.count("[", start, end)
        if brackets > DEPTH_MAX and _deeper(value, DEPTH_MAX):
            self._parser.refuse(start, f"at most {DEPTH_MAX} levels of nesting", "a deeper one")
        self._position = self._parser.skip(end)
        return value


_WORDS: Final = {
    "Expecting property name enclosed in double quotes": "a key in quotes",
    "Expecting ':' delimiter": "':' after a key",
    "Expecting ',' delimiter": "',' or a closing bracket",
    "Unterminated string starting at": "a string that ends in its own line",
    "Invalid control character at": "a string that ends in its own line",
}
"""The scanner's messages in the words of the other readers."""


def _deeper(value: Any, limit: int) -> bool:
    """Say whether lists and objects nest deeper than `limit`."""
    level = [value]
    for _ in range(limit):
        level = [
            item
            for held in level
            if isinstance(held, dict | list)
            for item in (held.values() if isinstance(held, dict) else held)
        ]
        if not level:
            return False
    return any(isinstance(item, dict | list) for item in level)
