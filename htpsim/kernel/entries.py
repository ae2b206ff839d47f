"""The functions of the loop as they are called from outside compiled code: with the address of a world."""

from __future__ import annotations

from typing import Any

from htpsim.kernel import loop

advance, close_run, note_in_flight, open_run = loop.advance, loop.close_run, loop.note_in_flight, loop.open_run


def world_at(address: Any) -> Any:
    """Return a world itself; compiled code has another function in this place, which takes an address for one."""
    return address


def enter_open_run(address: Any) -> None:
    """Begin a run."""
    open_run(world_at(address))


def enter_advance(address: Any) -> int:
    """Go on with it."""
    return advance(world_at(address))


def enter_close_run(address: Any) -> None:
    """End it."""
    close_run(world_at(address))


def enter_note_in_flight(address: Any, j: int) -> None:
    """Write the row of a graphExecute that its end cuts short."""
    note_in_flight(world_at(address), j)
