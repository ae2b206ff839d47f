"""A policy that never grants anybody."""

from __future__ import annotations

from typing import Any

from htpsim.sched import Fifo


class Idle(Fifo):
    """Says that nobody may run yet, for ever."""

    name = "idle"

    @staticmethod
    def pick(lane: Any, accounts: Any, now_ns: int) -> int:
        return -1
