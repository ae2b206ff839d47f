"""Policies that change what they must not: how many may hold a slot."""

from __future__ import annotations

from typing import Any

from htpsim.sched import Fifo


class Shrinks(Fifo):
    """Takes away a slot for every call that it grants, while that call holds one."""

    name = "shrinks"

    @staticmethod
    def pick(lane: Any, accounts: Any, now_ns: int) -> int:
        picked = Fifo.pick(lane, accounts, now_ns)
        if lane.slots > 1:
            lane.slots -= 1
        return picked


class Revokes(Fifo):
    """Grants two calls two slots, and takes one of the slots away when the second is granted."""

    name = "revokes"

    @staticmethod
    def pick(lane: Any, accounts: Any, now_ns: int) -> int:
        if lane.holders == 1:
            lane.slots = 1
        return Fifo.pick(lane, accounts, now_ns)
