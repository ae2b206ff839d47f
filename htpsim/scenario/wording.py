"""The words of complaints: what was given as its author would recognise it, what is valid, what was probably meant."""

from __future__ import annotations

import re
from collections.abc import Iterable

from htpsim.errors import nearest, unknown_name

LARGEST = 2**62
"""Whole numbers of a scenario are smaller than this."""


def shown(value: object) -> str:
    """Write a value of a scenario file as its author would recognise it, cut to a readable length.

    >>> shown("3 ms"), shown(True), shown({"a": 1}), shown(1.5)
    ("'3 ms'", 'true', 'a table', '1.5')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, str):
        text = " ".join(value.split()) if value.strip() else value
        return f"'{text if len(text) <= 60 else text[:57] + '...'}'"
    if isinstance(value, int) and abs(value) >= LARGEST:
        return "a whole number of 2^62 or more"
    return "nothing" if value is None else str(value)


def unknown_word(word: str, valid: Iterable[str]) -> str:
    """Word the complaint about a word that is not one of `valid`, for a message that has its place already.

    >>> unknown_word("perodic", ["closed", "periodic"])
    "got 'perodic', expected one of closed, periodic; did you mean 'periodic'?"
    """
    return unknown_name("", word, valid).removeprefix(": ")


def unknown_key(key: str, valid: Iterable[str]) -> str:
    """Word the complaint about a key that a table does not have.

    >>> unknown_key("yield_latency_ns", ["yield_latency", "evict"])
    "got an unknown key, expected one without the unit in its name; did you mean 'yield_latency'?"
    """
    names = sorted(valid)
    stem = re.sub(r"_(ns|us|ms|s|bytes)$", "", key)
    if stem != key and stem in names:
        return f"got an unknown key, expected one without the unit in its name; did you mean '{stem}'?"
    close = nearest(key, names)
    if close:
        return f"got an unknown key, expected a key of this table; did you mean '{close}'?"
    return f"got an unknown key, expected {'one of ' + ', '.join(names) if names else 'none'}"
