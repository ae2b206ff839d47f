"""Units at the edges: text to integers and back. Inside, time is integer ns and memory integer bytes."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

NS_PER_US = 1_000
NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000

TIME_UNITS = {"ns": 1, "us": NS_PER_US, "µs": NS_PER_US, "ms": NS_PER_MS, "s": NS_PER_S,
              "min": 60 * NS_PER_S, "h": 3600 * NS_PER_S}  # fmt: skip
BYTE_UNITS = {"B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
              "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}  # fmt: skip
RATE_UNITS = {f"{unit}/s": scale for unit, scale in BYTE_UNITS.items()}

_QUANTITY = re.compile(r"^\s*([+-]?[0-9][0-9_]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)\s*(\S+)\s*$")
_LARGEST = 2**62


def _parse(text: str, units: dict[str, int], kind: str) -> int:
    example = {"time": "1.8ms", "size": "3.5GB or 3.75GiB", "rate": "40.3GB/s"}[kind]
    match = _QUANTITY.match(text)
    if match is None or match[2] not in units:
        raise ValueError(f"got '{text}', expected a {kind} with a unit ({', '.join(units)}), such as {example}")
    try:
        value = Decimal(match[1].replace("_", "")) * units[match[2]]
    except InvalidOperation as error:  # pragma: no cover - the pattern admits no such number
        raise ValueError(f"got '{text}', expected a number") from error
    if not abs(value) < _LARGEST:
        raise ValueError(f"got '{text}', expected a {kind} below 2^62 {next(iter(units))}")
    return int(value.to_integral_value(rounding="ROUND_HALF_EVEN"))


def parse_time(text: str) -> int:
    """Read a duration such as ``"1.8ms"`` as integer nanoseconds.

    Raises
    ------
    ValueError
        When the unit is missing or unknown.

    Examples
    --------
    >>> parse_time("1.8ms")
    1800000
    """
    return _parse(text, TIME_UNITS, "time")


def parse_bytes(text: str) -> int:
    """Read a size such as ``"3.75GiB"`` as integer bytes.

    >>> parse_bytes("3.5GB"), parse_bytes("1KiB")
    (3500000000, 1024)
    """
    return _parse(text, BYTE_UNITS, "size")


def parse_rate(text: str) -> int:
    """Read a bandwidth such as ``"40.3GB/s"`` as integer bytes a second.

    >>> parse_rate("40.3GB/s")
    40300000000
    """
    return _parse(text, RATE_UNITS, "rate")


def format_time(ns: float) -> str:
    """Write nanoseconds in the unit a person would choose, with three significant figures.

    >>> format_time(178_800_000), format_time(43_000), format_time(0)
    ('179 ms', '43 us', '0 ms')
    """
    if ns == 0:
        return "0 ms"
    for unit, scale in (("s", NS_PER_S), ("ms", NS_PER_MS), ("us", NS_PER_US)):
        if abs(ns) >= scale:
            return f"{_figures(ns / scale)} {unit}"
    return f"{_figures(ns)} ns"


def format_bytes(count: float) -> str:
    """Write bytes in binary units with three significant figures.

    >>> format_bytes(482_812_160), format_bytes(0)
    ('460 MiB', '0 B')
    """
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if abs(count) >= BYTE_UNITS[unit]:
            return f"{_figures(count / BYTE_UNITS[unit])} {unit}"
    return f"{count:.0f} B"


def _figures(value: float) -> str:
    if abs(value) >= 100:
        return f"{value:.0f}"
    text = f"{value:.3g}"
    return text


def format_ms(ns: float) -> str:
    """Write nanoseconds as milliseconds with one decimal, the form used in tables.

    >>> format_ms(178_800_000)
    '178.8'
    """
    return f"{ns / NS_PER_MS:,.1f}"


def format_gib(count: float) -> str:
    """Write bytes as GiB with two decimals, the form used in tables.

    >>> format_gib(6_335_076_761)
    '5.90'
    """
    return f"{count / BYTE_UNITS['GiB']:,.2f}"
