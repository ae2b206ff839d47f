"""Repeated measurements of one thing, and the one figure that a scenario takes from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Final

from htpsim.errors import FormatError, nearest, unknown_name
from htpsim.formats.tree import few
from htpsim.formats.values import ServiceQuery

_NAMED_MAX: Final = 60
_COMPARED_MAX: Final = 5000
STATISTICS: Final = ("average", "median", "min", "max")


def mean_ns(counts: Mapping[int, int]) -> int:
    """Return the mean of values with their counts [ns]; exact, rounded half to even.

    >>> mean_ns({10: 1, 11: 1}), mean_ns({7: 3})
    (10, 7)
    """
    total = sum(value * count for value, count in counts.items())
    return round(Fraction(total, sum(counts.values())))


def median_ns(counts: Mapping[int, int]) -> int:
    """Return the median of values with their counts [ns]; between the two middle ones where there are two.

    >>> median_ns({1: 1, 2: 1, 10: 1}), median_ns({1: 2, 4: 2})
    (2, 2)
    """
    size = sum(counts.values())
    middle: list[int] = []
    passed = 0
    for value in sorted(counts):
        passed += counts[value]
        while len(middle) < 2 and passed > (size - 1 + len(middle)) // 2:
            middle.append(value)
    return round(Fraction(sum(middle), 2))


def statistic_ns(values: Sequence[int], statistic: str, where: str) -> int:
    """Reduce samples to one figure [ns].

    Parameters
    ----------
    values
        At least one.
    statistic
        One of :data:`STATISTICS`.
    where
        Said in a refusal, such as "file:line".

    Raises
    ------
    FormatError
        When the statistic is unknown, or the figure is zero: nothing takes no time.

    Examples
    --------
    >>> [statistic_ns((1, 2, 9), name, "a.csv:1") for name in STATISTICS]
    [4, 2, 1, 9]
    """
    counts: dict[int, int] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    return statistic_of(counts, statistic, where)


def statistic_of(counts: Mapping[int, int], statistic: str, where: str) -> int:
    """Reduce values with their counts to one figure [ns]; refuses as :func:`statistic_ns` does.

    >>> statistic_of({5: 2, 8: 1}, "max", "a.log:1")
    8
    """
    reducers: dict[str, Callable[[Mapping[int, int]], int]] = {
        "average": mean_ns,
        "median": median_ns,
        "min": min,
        "max": max,
    }
    if statistic not in reducers:
        raise FormatError(unknown_name(f"{where}: statistic", statistic, STATISTICS))
    found = reducers[statistic](counts)
    if found <= 0:
        raise FormatError(f"{where}: got {found} ns, expected a time above zero")
    return found


def refuse_selectors(file: str, query: ServiceQuery, *allowed: str) -> None:
    """Refuse what selects a row of a table of many devices: a log is of one run on one device.

    Parameters
    ----------
    file
        The name, for the message.
    query
        What was asked.
    allowed
        The selectors that mean something here.

    Raises
    ------
    FormatError
        Names the first that was given in vain.

    Examples
    --------
    >>> refuse_selectors("a.csv", ServiceQuery(device="x"))
    Traceback (most recent call last):
    htpsim.errors.FormatError: a.csv: got device 'x', expected none: this is a log of one run on one device
    """
    for name in ("device", "runtime", "precision", "context_length"):
        given = getattr(query, name)
        if given is not None and name not in allowed:
            raise FormatError(f"{file}: got {name} '{given}', expected none: this is a log of one run on one device")


def choose(where: str, kind: str, name: str | None, names: Sequence[str]) -> str:
    """Return the one of `names` that is meant; it may be left out where there is only one.

    Raises
    ------
    FormatError
        When nothing fits, with the nearest name, or several do.

    Examples
    --------
    >>> choose("a.csv:1", "graph", None, ["vit"])
    'vit'
    """
    if name is None and len(names) == 1:
        return names[0]
    if not names:
        raise FormatError(f"{where}: {kind}: got {name or 'none'}, expected one, but the file holds none")
    if name is None:
        raise FormatError(f"{where}: {kind}: got none, expected one of {few(names)}")
    if name not in names and len(names) > _NAMED_MAX:
        close = nearest(name, names[:_COMPARED_MAX])
        hint = f"; did you mean '{close}'?" if close else ""
        raise FormatError(f"{where}: {kind}: got '{name}', expected one of {few(names)}{hint}")
    if name not in names:
        raise FormatError(unknown_name(f"{where}: {kind}", name, names))
    return name
