"""The functions of the loop as they are called from outside compiled code: one, with the address of a world."""

from __future__ import annotations

from typing import Any

from htpsim.kernel import loop

advance, close_run, note_in_flight, open_run = loop.advance, loop.close_run, loop.note_in_flight, loop.open_run

OPEN, ADVANCE, CLOSE, NOTE = range(4)


def world_at(address: Any) -> Any:
    """Return a world itself; compiled code has another function in this place, which takes an address for one."""
    return address


def enter(address: Any, what: int, j: int) -> int:
    """Begin a run, go on with it, end it, or write the row of graphExecute `j`, which its end cuts short."""
    w = world_at(address)
    if what == ADVANCE:
        return advance(w)
    if what == OPEN:
        open_run(w)
    elif what == CLOSE:
        close_run(w)
    else:
        note_in_flight(w, j)
    return 0
