"""One set of slots as it is opened: the records of a lane and of its accounts, before anybody has called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from htpsim.sched.guard import open_account
from htpsim.sched.policy import ACCOUNT_FIELDS, LANE_FIELDS, Policy
from htpsim.spec.records import record_class


def open_lane(
    policy: type[Policy], params: Mapping[str, int], slots: int, accounts: Sequence[tuple[int, int]]
) -> tuple[Any, list[Any]]:
    """Return the records of a lane and of its accounts.

    Parameters
    ----------
    policy
        Which fields they have beside the guard's own.
    params
        Of the policy, all of them, as :func:`~htpsim.sched.policy_params` returns them.
    slots
        How many calls may hold at once.
    accounts
        (weight, rank) of each.

    Examples
    --------
    >>> from htpsim.sched import Fifo
    >>> lane, accounts = open_lane(Fifo, {}, 2, [(4, 0), (1, 0)])
    >>> lane.slots, lane.accounts, lane.weight_sum, accounts[1].weight
    (2, 2, 5, 1)
    """
    lane = record_class("LaneRecord", (*LANE_FIELDS, *policy.lane_fields, *policy.params))()
    account_type = record_class("Account", (*ACCOUNT_FIELDS, *policy.account_fields))
    opened: list[Any] = [account_type() for _ in accounts]
    lane.slots = slots
    lane.accounts = len(accounts)
    lane.weight_sum = sum(weight for weight, _ in accounts)
    for name, value in params.items():
        setattr(lane, name, value)
    for i, (weight, priority) in enumerate(accounts):
        open_account(opened, i, weight, priority)
    return lane, opened
