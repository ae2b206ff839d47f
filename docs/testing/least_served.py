"""A policy of one's own, to be tested: whoever was served least for its weight goes next."""

from __future__ import annotations

from typing import Any, ClassVar


class LeastServed:
    """The waiting account with the least device time over weight; an absence is made up for in full."""

    name: ClassVar[str] = "least-served"
    params: ClassVar[dict[str, tuple[int, str]]] = {}
    lane_fields: ClassVar[tuple[str, ...]] = ()
    account_fields: ClassVar[tuple[str, ...]] = ()
    work_conserving: ClassVar[bool] = True  # a promise: no slot is free while a call waits

    @staticmethod
    def wake(lane: Any, accounts: Any, i: int, now_ns: int) -> None:
        """Keep no tag."""

    @staticmethod
    def pick(lane: Any, accounts: Any, now_ns: int) -> int:
        """Return the account that was charged least for its weight; the guard itself keeps that sum."""
        best = -1
        for i in range(lane.accounts):
            if accounts[i].waiting and (
                best < 0
                or accounts[i].charged_ns * accounts[best].weight < accounts[best].charged_ns * accounts[i].weight
            ):
                best = i
        return best

    @staticmethod
    def charge(lane: Any, accounts: Any, i: int, cost_ns: int, now_ns: int) -> None:
        """Keep no account."""

    @staticmethod
    def timer(lane: Any, accounts: Any, now_ns: int) -> int:
        """Want no timer."""
        return -1
