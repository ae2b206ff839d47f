"""The guard: who may hold a slot, as rules over records, without a clock.

Theory of operation. A thread that reaches a guarded graphExecute *calls*; the call waits in its account's queue
until the policy picks it and a slot is free, holds the slot from *grant* to *release*, and is then charged. One
call goes through

=========  ==========  =============================================================
state      on          becomes
=========  ==========  =============================================================
(none)     call        WAITING: last in its account's queue; its head wakes the policy
WAITING    grant       HOLDING: only as head, only while the lane has a free slot
HOLDING    release     (none): slot free again, cost charged to the account
=========  ==========  =============================================================

The rules below are that table. `lane` and `accounts` are the records of ``policy``, `calls` any records with
CALL_FIELDS; `j` is a call's position in them. Nothing here knows a policy: its functions are passed in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from htpsim.errors import InvariantError
from htpsim.sched.policy import Records

NOBODY = -1
NOT_WAITING = -2
"""What ``grant`` returns when a policy chose an account with nobody waiting."""

Wake = Callable[[Any, Records, int, int], None]
Pick = Callable[[Any, Records, int], int]
Charge = Callable[[Any, Records, int, int, int], None]


def open_account(accounts: Records, i: int, weight: int, priority: int) -> None:
    """Set up account `i` with its registered weight and rank, with nobody waiting."""
    accounts[i].weight = weight
    accounts[i].priority = priority
    accounts[i].head = NOBODY
    accounts[i].tail = NOBODY


def call(lane: Any, accounts: Records, calls: Records, i: int, j: int, now_ns: int, wake: Wake) -> bool:
    """Queue call `j` on account `i`; tell whether a grant is possible now."""
    made, account = calls[j], accounts[i]
    made.next_call = NOBODY
    made.call_ns = now_ns
    if account.head == NOBODY:
        account.head = j
        account.waiting = 1
        account.called_ns = now_ns
        account.deadline_ns = made.deadline_ns
        lane.waiting += 1
        wake(lane, accounts, i, now_ns)
    else:
        calls[account.tail].next_call = j
    account.tail = j
    return bool(lane.waiting > 0 and lane.holders < lane.slots)


def can_grant(lane: Any) -> bool:
    """Tell whether a slot is free and somebody waits."""
    return bool(lane.waiting > 0 and lane.holders < lane.slots)


def grant(lane: Any, accounts: Records, calls: Records, now_ns: int, pick: Pick, wake: Wake) -> int:
    """Let the policy choose and give the slot; return the call granted, NOBODY, or NOT_WAITING."""
    if not (lane.waiting > 0 and lane.holders < lane.slots):
        return NOBODY
    i = pick(lane, accounts, now_ns)
    if i == NOBODY:
        return NOBODY
    if i < 0 or i >= lane.accounts or accounts[i].waiting == 0:
        return NOT_WAITING
    account = accounts[i]
    j: int = account.head
    follower = calls[j].next_call
    account.head = follower
    account.held += 1
    lane.holders += 1
    if follower == NOBODY:
        account.tail = NOBODY
        account.waiting = 0
        lane.waiting -= 1
    else:
        account.called_ns = calls[follower].call_ns
        account.deadline_ns = calls[follower].deadline_ns
        wake(lane, accounts, i, now_ns)
    return j


def release(lane: Any, accounts: Records, i: int, cost_ns: int, now_ns: int, charge: Charge) -> bool:
    """Give back a slot of account `i` and charge it `cost_ns`; tell whether a grant is possible now."""
    lane.holders -= 1
    accounts[i].held -= 1
    accounts[i].charged_ns += cost_ns
    charge(lane, accounts, i, cost_ns, now_ns)
    return bool(lane.waiting > 0 and lane.holders < lane.slots)


def validate(lane: Any, accounts: Sequence[Any], calls: Records, policy: str) -> None:
    """Raise InvariantError unless lane, accounts and calls agree."""
    if not 0 <= lane.holders <= lane.slots:
        raise InvariantError(f"guard ({policy}): {lane.holders} holders, expected 0 to {lane.slots} (the slots)")
    held = sum(a.held for a in accounts)
    if held != lane.holders:
        raise InvariantError(f"guard ({policy}): accounts hold {held} slots, the lane counts {lane.holders}")
    waiting = sum(a.waiting for a in accounts)
    if waiting != lane.waiting:
        raise InvariantError(f"guard ({policy}): {waiting} accounts wait, the lane counts {lane.waiting}")
    for i, account in enumerate(accounts):
        if account.waiting != (account.head != NOBODY):
            raise InvariantError(f"guard ({policy}): account {i} waiting={account.waiting}, head={account.head}")
        last, j = NOBODY, account.head
        while j != NOBODY:
            last, j = j, calls[j].next_call
        if last != account.tail:
            raise InvariantError(f"guard ({policy}): account {i} ends at call {last}, its tail says {account.tail}")
