"""A policy of one's own, 1 of 3: as Linux's CFS did, in brief.

The account with the least virtual run time is granted. One that comes back after a pause is placed a little before the
others, by at most ``sleeper_credit_ns``, so that who sleeps a lot is served soon when it wakes: what ``sfq`` refuses.

Source: the CFS design notes of the Linux kernel (sched-design-CFS). Bound: no tight one is published.
Use: PYTHONPATH=docs/policies, and in the scenario  guard = { policy = "cfs_like:CfsLike" }
"""

from __future__ import annotations

from typing import Any, ClassVar


class CfsLike:
    """Least virtual run time first, with a credit for sleepers."""

    name: ClassVar[str] = "cfs-like"
    params: ClassVar[dict[str, tuple[int, str]]] = {
        "sleeper_credit_ns": (3_000_000, "device time at weight 1 by which one that slept goes before the others"),
    }
    limits: ClassVar[dict[str, tuple[int, int]]] = {"sleeper_credit_ns": (0, 3_600 * 10**9)}
    lane_fields: ClassVar[tuple[str, ...]] = ("least_run",)
    account_fields: ClassVar[tuple[str, ...]] = ("run", "left_ns")

    @staticmethod
    def wake(lane: Any, accounts: Any, i: int, now_ns: int) -> None:
        """Place an account that was away; one that calls at the instant of its return was not."""
        if accounts[i].held == 0 and accounts[i].left_ns != now_ns:
            accounts[i].run = max(accounts[i].run, lane.least_run - (lane.sleeper_credit_ns << 16))

    @staticmethod
    def pick(lane: Any, accounts: Any, now_ns: int) -> int:
        """Return the waiting account that ran least."""
        best = -1
        for i in range(lane.accounts):
            if accounts[i].waiting and (best < 0 or accounts[i].run < accounts[best].run):
                best = i
        if best >= 0:
            lane.least_run = max(lane.least_run, accounts[best].run)
        return best

    @staticmethod
    def charge(lane: Any, accounts: Any, i: int, cost_ns: int, now_ns: int) -> None:
        """Advance its virtual run time, in 2^-16 ns."""
        accounts[i].run += (cost_ns << 16) // accounts[i].weight
        accounts[i].left_ns = now_ns

    @staticmethod
    def timer(lane: Any, accounts: Any, now_ns: int) -> int:
        """Want no timer."""
        return -1
