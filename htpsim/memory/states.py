"""Where a loaded copy stands, and what moves it: the table of `htpsim.memory.memory`, which documents it."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class State(StrEnum):
    """Where a copy stands."""

    ABSENT = "absent"
    IDLE = "idle"
    USED = "used"
    EXECUTING = "executing"


class Stimulus(StrEnum):
    """What happens to a copy."""

    LOAD = "load"
    ATTACH = "attach"
    DETACH = "detach"
    LAST_DETACH = "last detach"
    BEGIN = "begin"
    END = "end"
    LAST_END = "last end"
    UNLOAD = "unload"


TRANSITIONS: Final = {
    (State.ABSENT, Stimulus.LOAD): State.IDLE,
    (State.IDLE, Stimulus.ATTACH): State.USED,
    (State.IDLE, Stimulus.UNLOAD): State.ABSENT,
    (State.USED, Stimulus.ATTACH): State.USED,
    (State.USED, Stimulus.DETACH): State.USED,
    (State.USED, Stimulus.LAST_DETACH): State.IDLE,
    (State.USED, Stimulus.BEGIN): State.EXECUTING,
    (State.EXECUTING, Stimulus.ATTACH): State.EXECUTING,
    (State.EXECUTING, Stimulus.BEGIN): State.EXECUTING,
    (State.EXECUTING, Stimulus.DETACH): State.EXECUTING,
    (State.EXECUTING, Stimulus.END): State.EXECUTING,
    (State.EXECUTING, Stimulus.LAST_END): State.USED,
}
