"""Numbers with a unit: from the text of a scenario file to integers, and back without losing any."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BeforeValidator, Strict, WithJsonSchema

from htpsim.scenario.wording import LARGEST, shown
from htpsim.units import BYTE_UNITS, RATE_UNITS, TIME_UNITS, parse_bytes, parse_rate, parse_time

PARSERS: dict[str, Callable[[str], int]] = {"ns": parse_time, "bytes": parse_bytes, "bytes_per_s": parse_rate}
"""Unit of a parameter -> how its text is read."""

EXPECTED = {
    "ns": "a time with a unit, such as '1.8ms', or 0",
    "bytes": "a size with a unit, such as '3.5GB' or '3.75GiB', or 0",
    "bytes_per_s": "a rate with a unit, such as '40.3GB/s', or 0",
    "": "a whole number",
}
_WRITTEN = {"ns": ("h", "min", "s", "ms", "us", "ns"), "bytes": ("GiB", "MiB", "KiB", "GB", "MB", "kB", "B")}
_SCALES = {"ns": TIME_UNITS, "bytes": BYTE_UNITS, "bytes_per_s": RATE_UNITS}
_DECIMALS_MAX = 6


def parse(value: object, unit: str) -> int:
    """Read a quantity as a scenario file states it: text with a unit, or a plain 0.

    Raises
    ------
    ValueError
        Saying what was given and what was expected.

    Examples
    --------
    >>> parse("1.8ms", "ns"), parse("3.75GiB", "bytes"), parse(0, "ns"), parse(7, "")
    (1800000, 4026531840, 0, 7)
    """
    if isinstance(value, str) and unit:
        return PARSERS[unit](value)
    whole = isinstance(value, int) and not isinstance(value, bool)
    if isinstance(value, int) and whole and abs(value) < LARGEST and (not unit or value == 0):
        return value
    raise ValueError(f"got {shown(value)}, expected {EXPECTED[unit]}")


def write(value: int, unit: str) -> str | int:
    """Write a quantity so that :func:`parse` gives it back exactly, as briefly as can be.

    >>> write(1_800_000, "ns"), write(425_721_856, "bytes"), write(40_300_000_000, "bytes_per_s"), write(7, "")
    ('1.8ms', '406MiB', '40.3GB/s', 7)
    """
    if not unit or value == 0:
        return value
    per_second = "/s" if unit == "bytes_per_s" else ""
    texts = [f"{value}{'ns' if unit == 'ns' else 'B' + per_second}"]
    for name in _WRITTEN["bytes" if per_second else unit]:
        scale = _SCALES[unit][name + per_second]
        decimals = 0 if name in {"h", "min"} or name.endswith("iB") else _DECIMALS_MAX
        number = Decimal(value) / scale
        if abs(value) >= scale and number == round(number, decimals):
            texts.append(f"{number.normalize():f}{name}{per_second}")
    return min(texts, key=len)


def quantity_schema(unit: str) -> dict[str, Any]:
    """Return the JSON Schema of a quantity as a file states it.

    >>> quantity_schema("")
    {'type': 'integer'}
    """
    if not unit:
        return {"type": "integer"}
    names = "|".join(sorted(_SCALES[unit], key=len, reverse=True))
    pattern = rf"^\s*[+-]?[0-9][0-9_]*(\.[0-9]+)?([eE][+-]?[0-9]+)?\s*({names})\s*$"
    return {"anyOf": [{"type": "string", "pattern": pattern}, {"const": 0}], "description": EXPECTED[unit]}


def quantity(unit: str) -> Any:
    """Return the Pydantic type of an integer with this unit, unit text at the edge."""

    def read(value: object) -> int:
        return parse(value, unit)

    return Annotated[int, Strict(), BeforeValidator(read), WithJsonSchema(quantity_schema(unit))]
