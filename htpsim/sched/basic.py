"""Policies that look at no weight: ``fifo`` and ``priority``.

Ties always go to the account with the lowest index, so that no choice depends on the history of a container.
``Fifo`` keeps no tags and wants no timer; the other policies replace what they do differently.
"""

from __future__ import annotations

from typing import Any, ClassVar

from htpsim.sched.policy import HOUR_NS, Records


class Fifo:
    """First called, first granted; weights do nothing.

    Source: any text on queues; the order in which equals reach a context's own queue.
    Bound: a call waits for at most one call of every other account, the one that runs included.
    Premise: one slot, one call outstanding an account. Tight.
    Cost: one pass over the accounts a grant.
    """

    name: ClassVar[str] = "fifo"
    params: ClassVar[dict[str, tuple[int, str]]] = {}
    limits: ClassVar[dict[str, tuple[int, int]]] = {}
    lane_fields: ClassVar[tuple[str, ...]] = ()
    account_fields: ClassVar[tuple[str, ...]] = ()

    @staticmethod
    def wake(lane: Any, accounts: Records, i: int, now_ns: int) -> None:
        """Keep no tag."""

    @staticmethod
    def pick(lane: Any, accounts: Records, now_ns: int) -> int:
        """Return the account whose head was called first."""
        best = -1
        for i in range(lane.accounts):
            if accounts[i].waiting and (best < 0 or accounts[i].called_ns < accounts[best].called_ns):
                best = i
        return best

    @staticmethod
    def charge(lane: Any, accounts: Records, i: int, cost_ns: int, now_ns: int) -> None:
        """Keep no account."""

    @staticmethod
    def timer(lane: Any, accounts: Records, now_ns: int) -> int:
        """Want no timer."""
        return -1


class Priority(Fifo):
    """The highest ``guard_priority`` first, first called among equals; strict unless ``ageing_ns`` is set.

    With ageing, a rank is worth ``ageing_ns`` of waiting: a call goes before every call of a rank r higher that is made
    more than r x ``ageing_ns`` after it, so nobody starves.

    Source: Cobham 1954; ageing as in Kleinrock's delay-dependent priorities (1964), all rising at the same speed.
    Bound: the highest rank waits for one call of a lower one (a graphExecute is never interrupted) and one of each
    equal; with ageing, rank p waits at most (highest rank - p) x ageing_ns and then one call of every other account.
    Premise: one slot, one call outstanding an account. Tight.
    Cost: one pass over the accounts a grant.
    """

    name: ClassVar[str] = "priority"
    params: ClassVar[dict[str, tuple[int, str]]] = {
        "ageing_ns": (0, "waiting that makes up for one rank; 0: strict, the lowest may starve"),
    }
    limits: ClassVar[dict[str, tuple[int, int]]] = {"ageing_ns": (0, HOUR_NS)}

    @staticmethod
    def pick(lane: Any, accounts: Records, now_ns: int) -> int:
        """Return the account of highest rank, waiting counted in, whose head was called first."""
        best = -1
        for i in range(lane.accounts):
            if accounts[i].waiting and (best < 0 or outranks(lane, accounts, i, best)):
                best = i
        return best


def outranks(lane: Any, accounts: Records, i: int, best: int) -> bool:
    """Tell whether account `i` goes before `best`, of a lower index."""
    higher = accounts[i].priority - accounts[best].priority
    later_ns = accounts[i].called_ns - accounts[best].called_ns
    if lane.ageing_ns == 0:
        return bool(higher > 0 or (higher == 0 and later_ns < 0))
    ahead_ns = higher * lane.ageing_ns - later_ns
    return bool(ahead_ns > 0 or (ahead_ns == 0 and higher > 0))
