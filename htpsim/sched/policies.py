"""The built-in policies: ``fifo``, ``priority``, ``sfq`` and ``quota``.

Ties always go to the account with the lowest index, so that no choice depends on the history of a container.
``Fifo`` keeps no tags and wants no timer; the others replace what they do differently.
"""

from __future__ import annotations

from typing import Any, ClassVar

from htpsim.sched.policy import VIRTUAL_SCALE, Policy, Records


class Fifo:
    """First called, first granted; weights do nothing.

    Bound: a call waits for at most every other account's head once. Cost: one pass over the accounts.
    """

    name: ClassVar[str] = "fifo"
    params: ClassVar[dict[str, tuple[int, str]]] = {}
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
    """The highest ``guard_priority`` first, first called among equals; strict, so the lowest may starve.

    Bound: the highest waits for one graphExecute a slot (it is never interrupted). Cost: one pass.
    """

    name: ClassVar[str] = "priority"
    params: ClassVar[dict[str, tuple[int, str]]] = {}
    lane_fields: ClassVar[tuple[str, ...]] = ()
    account_fields: ClassVar[tuple[str, ...]] = ()

    @staticmethod
    def pick(lane: Any, accounts: Records, now_ns: int) -> int:
        """Return the account of highest rank whose head was called first."""
        best = -1
        for i in range(lane.accounts):
            if accounts[i].waiting and (
                best < 0
                or accounts[i].priority > accounts[best].priority
                or (
                    accounts[i].priority == accounts[best].priority and accounts[i].called_ns < accounts[best].called_ns
                )
            ):
                best = i
        return best


class Sfq(Fifo):
    """Start-time fair queueing (Goyal, Vin, Cheng 1996); with D slots, SFQ(D).

    On a call S = max(V, F); the least (S, account) is granted and V = max(V, S); at release F = max(F, S) +
    cost / weight, in units of 2^-16 ns. Bound at one slot, while both are backlogged: two accounts' device time
    over weight differ by at most the sum of their longest graphExecutes over weight. An account that is not always
    waiting is not backlogged and is given no credit for its absence. Cost: one pass.
    """

    name: ClassVar[str] = "sfq"
    params: ClassVar[dict[str, tuple[int, str]]] = {}
    lane_fields: ClassVar[tuple[str, ...]] = ("virtual_time",)
    account_fields: ClassVar[tuple[str, ...]] = ("start_tag", "finish_tag")

    @staticmethod
    def wake(lane: Any, accounts: Records, i: int, now_ns: int) -> None:
        """Give the head its start tag."""
        accounts[i].start_tag = max(lane.virtual_time, accounts[i].finish_tag)

    @staticmethod
    def pick(lane: Any, accounts: Records, now_ns: int) -> int:
        """Return the account with the least start tag and advance the lane's virtual time to it."""
        best = -1
        for i in range(lane.accounts):
            if accounts[i].waiting and (best < 0 or accounts[i].start_tag < accounts[best].start_tag):
                best = i
        if best >= 0:
            lane.virtual_time = max(lane.virtual_time, accounts[best].start_tag)
            accounts[best].finish_tag = max(accounts[best].finish_tag, accounts[best].start_tag)
        return best

    @staticmethod
    def charge(lane: Any, accounts: Records, i: int, cost_ns: int, now_ns: int) -> None:
        """Advance the account's finish tag; a head that already waits is tagged anew by it."""
        accounts[i].finish_tag += (cost_ns << VIRTUAL_SCALE) // accounts[i].weight
        if accounts[i].waiting:
            accounts[i].start_tag = max(accounts[i].start_tag, accounts[i].finish_tag)


class Quota(Fifo):
    """A budget of device time a period, in proportion to weight.

    At each period's start an account's budget becomes its quantum, weight / sum of weights x period x slots, less
    what it overdrew; what it left unused lapses. Among waiting accounts with budget left the first called is
    granted. If all have overdrawn, the least overdraft runs, or with ``idle_over_budget`` nobody does until the
    next period. Every one of these choices is assumed. Bound: device time in a period is at most the quantum plus
    one graphExecute a slot, while somebody within budget waits. Cost: one pass.
    """

    name: ClassVar[str] = "quota"
    params: ClassVar[dict[str, tuple[int, str]]] = {
        "period_ns": (100_000_000, "length of a period"),
        "carry_over_periods": (0, "how many periods' unused budget an account may keep"),
        "idle_over_budget": (0, "1: nobody runs while all who wait have overdrawn"),
    }
    lane_fields: ClassVar[tuple[str, ...]] = ()
    account_fields: ClassVar[tuple[str, ...]] = ("budget_ns",)

    @staticmethod
    def pick(lane: Any, accounts: Records, now_ns: int) -> int:
        """Return the first called within budget, else the least overdrawn, else nobody."""
        best = -1
        for i in range(lane.accounts):
            within = accounts[i].waiting and accounts[i].budget_ns > 0
            if within and (best < 0 or accounts[i].called_ns < accounts[best].called_ns):
                best = i
        if best >= 0 or lane.idle_over_budget:
            return best
        for i in range(lane.accounts):
            if accounts[i].waiting and (best < 0 or accounts[i].budget_ns > accounts[best].budget_ns):
                best = i
        return best

    @staticmethod
    def charge(lane: Any, accounts: Records, i: int, cost_ns: int, now_ns: int) -> None:
        """Draw the cost from the account's budget."""
        accounts[i].budget_ns -= cost_ns

    @staticmethod
    def timer(lane: Any, accounts: Records, now_ns: int) -> int:
        """Begin a period: renew every budget."""
        for i in range(lane.accounts):
            quantum = accounts[i].weight * lane.period_ns * lane.slots // lane.weight_sum
            kept = min(accounts[i].budget_ns, quantum * lane.carry_over_periods)
            accounts[i].budget_ns = quantum + kept
        next_ns: int = now_ns + lane.period_ns
        return next_ns


POLICIES: dict[str, type[Policy]] = {"fifo": Fifo, "priority": Priority, "quota": Quota, "sfq": Sfq}
"""The built-in policies by name; read only."""
