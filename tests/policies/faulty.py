"""Policies as users might get them wrong, each with one fault."""

from __future__ import annotations

from typing import Any, ClassVar

from htpsim.sched import Fifo


class RaisesInWake(Fifo):
    name: ClassVar[str] = "raises-in-wake"

    @staticmethod
    def wake(lane: Any, accounts: Any, i: int, now_ns: int) -> None:
        accounts[i].no_such_field += 1


class RaisesInPick(Fifo):
    name: ClassVar[str] = "raises-in-pick"

    @staticmethod
    def pick(lane: Any, accounts: Any, now_ns: int) -> int:
        return int(1 / (lane.waiting - lane.waiting))


class RaisesInCharge(Fifo):
    name: ClassVar[str] = "raises-in-charge"

    @staticmethod
    def charge(lane: Any, accounts: Any, i: int, cost_ns: int, now_ns: int) -> None:
        raise KeyError("weights")


class RaisesInTimer(Fifo):
    name: ClassVar[str] = "raises-in-timer"

    @staticmethod
    def timer(lane: Any, accounts: Any, now_ns: int) -> int:
        raise RuntimeError("no clock")


class PicksNothing(Fifo):
    name: ClassVar[str] = "picks-nothing"

    @staticmethod
    def pick(lane: Any, accounts: Any, now_ns: int) -> int:
        pass  # type: ignore[empty-body]


class PicksNobodyWaiting(Fifo):
    name: ClassVar[str] = "picks-nobody-waiting"

    @staticmethod
    def pick(lane: Any, accounts: Any, now_ns: int) -> int:
        return 1


class PicksBeyond(Fifo):
    name: ClassVar[str] = "picks-beyond"

    @staticmethod
    def pick(lane: Any, accounts: Any, now_ns: int) -> int:
        return int(lane.accounts)


class NeverGrants(Fifo):
    name: ClassVar[str] = "never-grants"

    @staticmethod
    def pick(lane: Any, accounts: Any, now_ns: int) -> int:
        return -1


class StandsStill(Fifo):
    name: ClassVar[str] = "stands-still"

    @staticmethod
    def timer(lane: Any, accounts: Any, now_ns: int) -> int:
        return now_ns


class OwnParams(Fifo):
    name: ClassVar[str] = "own-params"
    params: ClassVar[dict[str, tuple[int, str]]] = {"patience": (3, "how long")}
    limits: ClassVar[dict[str, tuple[int, int]]] = {"patience": (1, 9)}


class TakesAField(Fifo):
    name: ClassVar[str] = "takes-a-field"
    lane_fields: ClassVar[tuple[str, ...]] = ("slots",)


class OneName(Fifo):
    name: ClassVar[str] = "one-name"
    account_fields: ClassVar[tuple[str, ...]] = "tag"  # type: ignore[assignment]


class NoPolicy:
    """Nothing of the interface."""
