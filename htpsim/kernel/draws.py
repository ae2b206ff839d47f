"""Addressed draws, equal one by one to those of ``htpsim.rng``, in signed integers that wrap."""

from __future__ import annotations

from typing import Any

from htpsim.sched.lottery import mixed

LOW_32 = (1 << 32) - 1


def drawn_entry(key: int, index: int, count: int) -> int:
    """Return which of `count` entries of a table draw number `index` of a stream picks.

    >>> from htpsim.rng import draw, pick, stream_key
    >>> key = stream_key(1, 0, "vlm0", "vit")
    >>> drawn_entry(key, 5, 100) == pick(draw(key, 5), 100)
    True
    """
    if count == 1:
        return 0
    return (mixed(key ^ index) >> 32 & LOW_32) * count >> 32


def drawn(w: Any, key: int, index: int, first: int, count: int) -> int:
    """Return draw number `index` of a distribution whose table begins at `first` of the values."""
    value: int = w.values[first + drawn_entry(key, index, count)]
    return value


def expect(w: Any, j: int, key: int, index: int) -> None:
    """Take note of what graphExecute comes next: nothing to do; compiled code has `fetch_ahead` in this place."""


def fetch_ahead(w: Any, j: int, key: int, index: int) -> None:
    """Have the time of job `j` fetched from memory while others execute: tables are larger than the nearest cache."""
    job = w.jobs[j]
    if job.value_count > 1:
        entry = drawn_entry(key, index + job.draw, job.value_count)
        fetch(w.values, job.first_value + entry)
        if w.dev.shares:
            fetch(w.values, job.first_demand + entry)


def fetch(table: Any, place: int) -> None:
    """Have a place of a table fetched from memory; nothing that interpreted code could do."""
