"""A policy of one's own, 2 of 3: PREMA's tokens, without its pre-emption (a guard cannot interrupt a graphExecute).

Whoever waits earns tokens: its weight, times how often its call would have fitted into its wait. Those whose tokens
reach a threshold are candidates, and the shortest of the candidates is granted, so that a short step goes first until a
long one has waited too long. The length is not known beforehand; that of the account's last call stands for it.

Source: Choi, Rhu, "PREMA: a predictive multi-task scheduling algorithm for preemptible NPUs", HPCA 2020.
Bound: none is published. A waiting account's tokens grow for ever, so it becomes the threshold itself and is granted.
Use: PYTHONPATH=docs/policies, and in the scenario  guard = { policy = "prema:Prema" }
"""

from __future__ import annotations

from typing import Any, ClassVar

SCALE = 1 << 10


def tokens_of(accounts: Any, i: int, now_ns: int) -> int:
    """Return the tokens of a waiting account, in 1/1024: weight x (1 + time waited / length of its last call)."""
    length_ns = max(1, accounts[i].last_ns)
    slowdown = SCALE + (now_ns - accounts[i].called_ns) * SCALE // length_ns
    return int(accounts[i].weight * slowdown)


class Prema:
    """The shortest of those that have waited long enough for their weight."""

    name: ClassVar[str] = "prema"
    params: ClassVar[dict[str, tuple[int, str]]] = {
        "threshold_percent": (50, "candidates have at least this share of the most tokens anybody has"),
    }
    limits: ClassVar[dict[str, tuple[int, int]]] = {"threshold_percent": (1, 100)}
    lane_fields: ClassVar[tuple[str, ...]] = ()
    account_fields: ClassVar[tuple[str, ...]] = ("last_ns",)

    @staticmethod
    def wake(lane: Any, accounts: Any, i: int, now_ns: int) -> None:
        """Keep nothing: tokens follow from the time of the call."""

    @staticmethod
    def pick(lane: Any, accounts: Any, now_ns: int) -> int:
        """Return the candidate whose last call was shortest."""
        most = 0
        for i in range(lane.accounts):
            if accounts[i].waiting:
                most = max(most, tokens_of(accounts, i, now_ns))
        best = -1
        for i in range(lane.accounts):
            if not accounts[i].waiting or tokens_of(accounts, i, now_ns) * 100 < most * lane.threshold_percent:
                continue
            if best < 0 or accounts[i].last_ns < accounts[best].last_ns:
                best = i
        return best

    @staticmethod
    def charge(lane: Any, accounts: Any, i: int, cost_ns: int, now_ns: int) -> None:
        """Remember how long the call was."""
        accounts[i].last_ns = cost_ns

    @staticmethod
    def timer(lane: Any, accounts: Any, now_ns: int) -> int:
        """Want no timer."""
        return -1
