"""A policy that looks at deadlines: ``edf``."""

from __future__ import annotations

from typing import Any, ClassVar

from htpsim.sched.basic import Fifo
from htpsim.sched.policy import Records


class Edf(Fifo):
    """The nearest deadline first, first called among equals; a call without a deadline comes last.

    A call's deadline is its request's arrival + ``ttft_deadline`` for the ViT and the prefill, the last token +
    ``itl_deadline`` for a decode step, and a job's arrival + ``deadline`` for another client. Weights do nothing.

    Source: Liu, Layland 1973; not interrupted: Jeffay, Stanat, Martel 1991.
    Bound: every deadline is met if the utilisation is at most 1 and, with periods T sorted, C_i + sum over shorter T_j
    of floor((L - 1) / T_j) C_j <= L for every i and T_1 < L < T_i (for whole numbers).
    Premise: one slot, deadlines equal to periods, arrivals at least a period apart. Exact if they may come at any time.
    Cost: one pass over the accounts a grant.
    """

    name: ClassVar[str] = "edf"

    @staticmethod
    def pick(lane: Any, accounts: Records, now_ns: int) -> int:
        """Return the account whose head has the nearest deadline."""
        best = -1
        for i in range(lane.accounts):
            if accounts[i].waiting and (
                best < 0
                or accounts[i].deadline_ns < accounts[best].deadline_ns
                or (
                    accounts[i].deadline_ns == accounts[best].deadline_ns
                    and accounts[i].called_ns < accounts[best].called_ns
                )
            ):
                best = i
        return best
