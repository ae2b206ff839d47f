"""Tokens a second, whose definition changed: n tokens in t seconds are n/t in older releases and (n-1)/t in newer ones.

libGenie 1.1.0 to 1.17.0 print n/t; 1.19.0 prints (n-1)/t, because the first token comes with the prompt. Both were
verified by arithmetic on public files; what releases in between print is not known.
"""

from __future__ import annotations

import re
from typing import Final

ALL: Final = "n/t"
WITHOUT_FIRST: Final = "(n-1)/t"

_LAST_ALL: Final = (1, 17)
_FIRST_WITHOUT: Final = (1, 19)
_VERSION: Final = re.compile(r"(\d{1,4})\.(\d{1,4})\b", re.ASCII)
_NEAR: Final = 0.01
"""A service prints seconds with two decimals."""

_WHOLE: Final = 0.02


def definition(tokens: int, seconds: float, rate: float) -> str | None:
    """Return which definition a stated rate follows; ``None`` when neither, or both alike.

    >>> definition(10, 0.61, 14.75), definition(200, 5.191579, 38.52525), definition(64, 0.9, 68.8)
    ('(n-1)/t', 'n/t', None)
    """
    if seconds <= 0 or rate <= 0 or tokens < 1:
        return None
    errors = {ALL: abs(tokens / seconds / rate - 1), WITHOUT_FIRST: abs((tokens - 1) / seconds / rate - 1)}
    best = min(errors, key=lambda name: errors[name])
    other = max(errors.values())
    # Times are printed rounded: the better one must be much better, or it is chance.
    return best if errors[best] < _NEAR and errors[best] < other / 4 else None


def agrees(tokens: int, seconds: float, rate: float) -> bool:
    """Say whether a stated rate follows either definition, within 1 %.

    >>> agrees(200, 5.191579, 38.52525), agrees(64, 0.9, 68.8)
    (True, False)
    """
    if seconds <= 0 or rate <= 0 or tokens < 1:
        return False
    return min(abs(count / seconds / rate - 1) for count in (tokens, tokens - 1)) < _NEAR


def of_version(version: str | None) -> str | None:
    """Return which definition a libGenie prints; ``None`` where it is not known.

    >>> of_version("1.1.0"), of_version("1.19.0"), of_version("1.18.0"), of_version(None)
    ('n/t', '(n-1)/t', None, None)
    """
    found = _VERSION.match(version or "")
    if found is None:
        return None
    number = (int(found[1]), int(found[2]))
    if number <= _LAST_ALL:
        return ALL
    return WITHOUT_FIRST if number >= _FIRST_WITHOUT else None


def tokens_of(rate: float, seconds: float, rule: str | None) -> int | None:
    """Return how many tokens a rate and a time imply; ``None`` when the rule is unknown or the result not whole.

    >>> tokens_of(86.70771, 0.196067, ALL), tokens_of(12.152884, 0.740568, ALL), tokens_of(14.75, 0.61, WITHOUT_FIRST)
    (17, 9, 10)
    """
    count = rate * seconds
    if rule is None or not 0 < count < 2**31 or abs(count - round(count)) > _WHOLE:
        return None
    return round(count) + (rule == WITHOUT_FIRST)
