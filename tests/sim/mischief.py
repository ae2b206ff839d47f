"""Policies that do what a user's policy must not, for the tests of what happens then."""

from __future__ import annotations

from typing import Any

from htpsim.sched import Fifo


class Never(Fifo):
    """Grants nobody."""

    name = "never"

    @staticmethod
    def pick(lane: Any, accounts: Any, now_ns: int) -> int:
        return -1


class NeverWithTimer(Never):
    """Grants nobody, and asks again and again."""

    name = "never with timer"

    @staticmethod
    def timer(lane: Any, accounts: Any, now_ns: int) -> int:
        return now_ns + 10


class Once(Fifo):
    """Grants one call, then nobody."""

    name = "once"
    lane_fields = ("granted",)

    @staticmethod
    def pick(lane: Any, accounts: Any, now_ns: int) -> int:
        if lane.granted:
            return -1
        lane.granted = 1
        return Fifo.pick(lane, accounts, now_ns)


class Batch(Fifo):
    """Waits until two wait: odd, but no deadlock while they come."""

    name = "batch"

    @staticmethod
    def pick(lane: Any, accounts: Any, now_ns: int) -> int:
        return Fifo.pick(lane, accounts, now_ns) if lane.waiting > 1 or lane.holders else -1


class Stranger(Fifo):
    """Picks an account with nobody waiting."""

    name = "stranger"

    @staticmethod
    def pick(lane: Any, accounts: Any, now_ns: int) -> int:
        return next((i for i in range(lane.accounts) if not accounts[i].waiting), 99)


class Raises(Fifo):
    """Divides by nothing at a release."""

    name = "raises"

    @staticmethod
    def charge(lane: Any, accounts: Any, i: int, cost_ns: int, now_ns: int) -> None:
        accounts[i].charged_ns += cost_ns // 0


class Stuck(Fifo):
    """Asks for its timer now, for ever."""

    name = "stuck"

    @staticmethod
    def timer(lane: Any, accounts: Any, now_ns: int) -> int:
        return now_ns


class Thief(Fifo):
    """Takes a slot for itself."""

    name = "thief"

    @staticmethod
    def wake(lane: Any, accounts: Any, i: int, now_ns: int) -> None:
        lane.holders = 1
