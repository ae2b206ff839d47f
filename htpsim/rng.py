"""Addressed random draws: every draw has an address, none has a history.

A draw is a pure function of (seed, replication, client, purpose, index). A policy change can therefore never
shift another draw, and any engine, in any order of events, sees the same numbers. The mixing is splitmix64
(Steele, Lea, Flood 2014), integer only, so Python, NumPy and compiled code agree to the bit.

Distributions enter an engine as integer quantile tables: a draw is ``table[(hash >> 32) * len(table) >> 32]``.
"""

from __future__ import annotations

import zlib
from typing import Final

import numpy as np
import numpy.typing as npt

_MASK: Final = (1 << 64) - 1
_GOLDEN: Final = 0x9E3779B97F4A7C15
_MIX_1: Final = 0xBF58476D1CE4E5B9
_MIX_2: Final = 0x94D049BB133111EB
TABLE_SIZE: Final = 1 << 16


def mix(value: int) -> int:
    """Return the splitmix64 output for a 64-bit state.

    >>> hex(mix(0))
    '0xe220a8397b1dcdaf'
    """
    value = (value + _GOLDEN) & _MASK
    value = ((value ^ (value >> 30)) * _MIX_1) & _MASK
    value = ((value ^ (value >> 27)) * _MIX_2) & _MASK
    return value ^ (value >> 31)


def stream_key(seed: int, replication: int, client: str, purpose: str) -> int:
    """Return the 64-bit key of one stream of draws; names, not positions, address the client.

    >>> stream_key(1, 0, "vlm0", "vit") == stream_key(1, 0, "vlm0", "vit")
    True
    """
    key = mix(seed & _MASK)
    key = mix(key ^ (replication & _MASK))
    key = mix(key ^ zlib.crc32(client.encode()))
    return mix(key ^ (zlib.crc32(purpose.encode()) << 32))


def draw(key: int, index: int) -> int:
    """Return the 32-bit uniform draw number `index` of the stream `key`.

    >>> 0 <= draw(stream_key(1, 0, "vlm0", "vit"), 7) < 2**32
    True
    """
    return mix(key ^ index) >> 32


def draws(key: int, first: int, count: int) -> npt.NDArray[np.uint64]:
    """Return `count` consecutive draws, equal one by one to :func:`draw`; shape (count,), 32-bit values.

    >>> k = stream_key(3, 1, "vlm1", "decode")
    >>> [int(x) for x in draws(k, 5, 2)] == [draw(k, 5), draw(k, 6)]
    True
    """
    state = (np.uint64(key) ^ np.arange(first, first + count, dtype=np.uint64)) + np.uint64(_GOLDEN)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(_MIX_1)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(_MIX_2)
    mixed: npt.NDArray[np.uint64] = (state ^ (state >> np.uint64(31))) >> np.uint64(32)
    return mixed


def pick(uniform: int, size: int) -> int:
    """Map a 32-bit draw to a table position, 0 <= position < size.

    >>> pick(2**32 - 1, 10), pick(0, 10)
    (9, 0)
    """
    return uniform * size >> 32
