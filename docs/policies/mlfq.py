"""A policy of one's own, 3 of 3: a multi-level feedback queue, which finds out by itself who is interactive.

Every account begins at the top level. Who uses up the allotment of its level sinks by one; the levels below have
longer allotments and are served only when those above have nothing to run. Every ``boost_ns`` all rise to the top
again, so that nobody starves and who changes its ways is noticed. Weights do nothing.

Source: Corbato, Merwin-Daggett, Daley 1962; the rules as in Arpaci-Dusseau, "Operating Systems: Three Easy Pieces".
Bound: a call waits at most until the next boost and then one round of all; nothing tighter is published.
Use: PYTHONPATH=docs/policies, and in the scenario  guard = { policy = "mlfq:Mlfq" }
"""

from __future__ import annotations

from typing import Any, ClassVar


class Mlfq:
    """The highest level first, first called among equals; who runs a lot sinks."""

    name: ClassVar[str] = "mlfq"
    params: ClassVar[dict[str, tuple[int, str]]] = {
        "levels": (3, "how many levels there are"),
        "allotment_ns": (20_000_000, "device time an account may use at the top level; twice as much at each below"),
        "boost_ns": (1_000_000_000, "how often all rise to the top"),
    }
    limits: ClassVar[dict[str, tuple[int, int]]] = {
        "levels": (1, 16),
        "allotment_ns": (1, 3_600 * 10**9),
        "boost_ns": (1, 3_600 * 10**9),
    }
    lane_fields: ClassVar[tuple[str, ...]] = ()
    account_fields: ClassVar[tuple[str, ...]] = ("level", "used_ns")

    @staticmethod
    def wake(lane: Any, accounts: Any, i: int, now_ns: int) -> None:
        """Keep the level: leaving and coming back does not wash it off."""

    @staticmethod
    def pick(lane: Any, accounts: Any, now_ns: int) -> int:
        """Return the first called of the highest level; 0 is the top."""
        best = -1
        for i in range(lane.accounts):
            if accounts[i].waiting and (
                best < 0
                or accounts[i].level < accounts[best].level
                or (accounts[i].level == accounts[best].level and accounts[i].called_ns < accounts[best].called_ns)
            ):
                best = i
        return best

    @staticmethod
    def charge(lane: Any, accounts: Any, i: int, cost_ns: int, now_ns: int) -> None:
        """Let an account that used up its allotment sink."""
        accounts[i].used_ns += cost_ns
        if accounts[i].used_ns >= lane.allotment_ns << accounts[i].level and accounts[i].level < lane.levels - 1:
            accounts[i].level += 1
            accounts[i].used_ns = 0

    @staticmethod
    def timer(lane: Any, accounts: Any, now_ns: int) -> int:
        """Lift everybody to the top."""
        for i in range(lane.accounts):
            accounts[i].level = 0
            accounts[i].used_ns = 0
        return int(now_ns + lane.boost_ns)
