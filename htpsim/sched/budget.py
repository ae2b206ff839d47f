"""A policy of budgets: ``quota``, the word the source documents use, with everything they leave open as a parameter."""

from __future__ import annotations

from typing import Any, ClassVar

from htpsim.sched.basic import Fifo
from htpsim.sched.policy import HOUR_NS, Records

DEVICE_TIME, CALLS = range(2)
FORGIVEN, REPAID, LENT = range(3)


class Quota(Fifo):
    """A budget a period, in proportion to weight; among those within budget, the first called is granted.

    Each period an account's budget becomes its quantum, weight / sum of weights x (period or calls) x slots. If all who
    wait have overdrawn, the least overdraft runs, or with ``idle_over_budget`` nobody does until the next period. What
    is not used lapses unless it may be carried over. Every one of these choices is assumed, and they swing the result.

    Source: the documents' word "quota"; the form is that of a deferrable server (Strosnider, Lehoczky, Sha 1995).
    Bound: in a period an account gets at most its quantum plus one graphExecute a slot (or calls: one a slot).
    Premise: no carry-over, no lending, and idle_over_budget = 1 or somebody within budget always waits. Tight.
    Cost: one pass a grant, two when all have overdrawn; one a period.
    """

    name: ClassVar[str] = "quota"
    params: ClassVar[dict[str, tuple[int, str]]] = {
        "unit": (DEVICE_TIME, "what a budget counts; 0: device time, 1: calls"),
        "period_ns": (100_000_000, "length of a period"),
        "calls": (100, "calls a period and slot that are shared out, with unit 1"),
        "carry_over_periods": (0, "how many periods' unused budget an account may keep"),
        "borrow": (
            REPAID,
            "who covers an overdraft; 0: nobody, it is forgiven at the next period, 1: the account's next budgets, "
            "2: first the budgets of accounts that have nothing to run, on which one without budget may also run",
        ),
        "idle_over_budget": (0, "1: nobody runs while all who wait have overdrawn"),
    }
    limits: ClassVar[dict[str, tuple[int, int]]] = {
        "unit": (DEVICE_TIME, CALLS),
        "period_ns": (1, HOUR_NS),
        "calls": (1, 1 << 32),
        "carry_over_periods": (0, 1 << 16),
        "borrow": (FORGIVEN, LENT),
        "idle_over_budget": (0, 1),
    }
    account_fields: ClassVar[tuple[str, ...]] = ("budget",)

    @staticmethod
    def pick(lane: Any, accounts: Records, now_ns: int) -> int:
        """Return the first called within budget, else the least overdrawn if it may run, else nobody."""
        best = -1
        for i in range(lane.accounts):
            if (
                accounts[i].waiting
                and accounts[i].budget > 0
                and (best < 0 or accounts[i].called_ns < accounts[best].called_ns)
            ):
                best = i
        if best >= 0 or (lane.idle_over_budget and not (lane.borrow == LENT and can_borrow(lane, accounts))):
            return best
        for i in range(lane.accounts):
            if accounts[i].waiting and (best < 0 or accounts[i].budget > accounts[best].budget):
                best = i
        return best

    @staticmethod
    def charge(lane: Any, accounts: Records, i: int, cost_ns: int, now_ns: int) -> None:
        """Draw the cost from the account's budget, and what is missing from idle lenders."""
        accounts[i].budget -= 1 if lane.unit == CALLS else cost_ns
        if lane.borrow == LENT and accounts[i].budget < 0:
            borrow_from_idle(lane, accounts, i)

    @staticmethod
    def timer(lane: Any, accounts: Records, now_ns: int) -> int:
        """Begin a period: renew every budget."""
        for i in range(lane.accounts):
            amount = lane.calls if lane.unit == CALLS else lane.period_ns
            quantum = max(1, accounts[i].weight * amount * lane.slots // lane.weight_sum)
            kept = min(accounts[i].budget, quantum * lane.carry_over_periods)
            if lane.borrow == FORGIVEN:
                kept = max(kept, 0)
            accounts[i].budget = quantum + kept
        next_ns: int = now_ns + lane.period_ns
        return next_ns


def can_borrow(lane: Any, accounts: Records) -> bool:
    """Tell whether an account with nothing waiting or running has budget left."""
    for k in range(lane.accounts):
        if not accounts[k].waiting and accounts[k].held == 0 and accounts[k].budget > 0:
            return True
    return False


def borrow_from_idle(lane: Any, accounts: Records, i: int) -> None:
    """Cover the overdraft of account `i` from accounts with budget left and nothing waiting or running, in order."""
    for k in range(lane.accounts):
        if not accounts[k].waiting and accounts[k].held == 0 and k != i and accounts[k].budget > 0:
            lent = min(accounts[k].budget, -accounts[i].budget)
            accounts[k].budget -= lent
            accounts[i].budget += lent
