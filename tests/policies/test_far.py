"""However long a run is, no tag of ``sfq`` leaves its 64 bits, and what is taken off all of them changes no grant."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htpsim.sched import POLICIES, Sfq, fair
from htpsim.sched import guard as rules
from htpsim.sched.policy import ACCOUNT_FIELDS, CALL_FIELDS, LANE_FIELDS, LONGEST_NS, NO_DEADLINE, VIRTUAL_FAR
from htpsim.spec.limits import FOR_EVER
from htpsim.spec.records import record_class

ACCOUNTS, STEPS, LONGEST = 5, 400, 60


def play(seed: int, slots: int) -> tuple[list[int], list[int]]:
    """Call, grant and release at random, one call of all is held for long; return the grants, and all tags met."""
    chance = random.Random(seed)
    lane = record_class("lane", (*LANE_FIELDS, *Sfq.lane_fields))()
    accounts = [record_class("account", (*ACCOUNT_FIELDS, *Sfq.account_fields))() for _ in range(ACCOUNTS)]
    calls = [record_class("call", CALL_FIELDS)() for _ in range(STEPS)]
    lane.slots, lane.accounts = slots, ACCOUNTS
    for i in range(ACCOUNTS):
        rules.open_account(accounts, i, chance.randrange(1, 4), 0)
    granted: list[int] = []
    tags: list[int] = []
    holding: list[int] = []
    for j in range(STEPS):
        calls[j].deadline_ns = NO_DEADLINE
        rules.call(lane, accounts, calls, chance.randrange(ACCOUNTS), j, j, Sfq.wake)
        while len(holding) > 1 and (lane.holders == slots or chance.random() < 0.6):
            at = chance.randrange(1 if j < STEPS // 2 else 0, len(holding))
            rules.release(lane, accounts, holding.pop(at), chance.randrange(1, LONGEST), j, Sfq.charge)
            tags += [t for a in accounts for t in (a.start_tag, a.finish_tag)]
        while rules.can_grant(lane):
            held = [a.held for a in accounts]
            granted.append(rules.grant(lane, accounts, calls, j, Sfq.pick, Sfq.wake))
            holding += [i for i, a in enumerate(accounts) if a.held > held[i]]
    return granted, tags


@given(seed=st.integers(0, 2**32), slots=st.integers(2, 4))
def test_taking_what_has_passed_off_all_tags_changes_no_grant(seed: int, slots: int) -> None:
    granted, tags = play(seed, slots)
    far = 1 << 23  # no less: charges of all slots at once must stay below twice that
    assert max(tags) > 4 * far  # so that it happens several times below

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fair, "VIRTUAL_FAR", far)
        again, nearer = play(seed, slots)

    assert again == granted
    assert min(nearer) >= -2 * far
    assert max(nearer) < 3 * far


def test_the_longest_charges_fit_beside_it() -> None:
    account: Any = record_class("account", (*ACCOUNT_FIELDS, *Sfq.account_fields))()
    lane: Any = record_class("lane", (*LANE_FIELDS, *Sfq.lane_fields))()
    lane.accounts = account.weight = 1
    account.finish_tag = lane.virtual_time = VIRTUAL_FAR - 1
    for _ in range(16):
        Sfq.charge(lane, [account], 0, 1 << 62, 0)

    assert account.finish_tag == VIRTUAL_FAR - 1 + 16 * (LONGEST_NS << 16) < 1 << 63


def test_beginning_anew_keeps_every_distance_that_may_count() -> None:
    lane: Any = record_class("lane", (*LANE_FIELDS, *Sfq.lane_fields))()
    accounts: Any = [record_class("account", (*ACCOUNT_FIELDS, *Sfq.account_fields))() for _ in range(6)]
    waiting, holding, long_held, away, behind, charged = accounts
    lane.accounts, lane.virtual_time = len(accounts), VIRTUAL_FAR
    waiting.waiting, waiting.start_tag, waiting.finish_tag = 1, VIRTUAL_FAR + 5, VIRTUAL_FAR + 3
    holding.held, holding.finish_tag = 1, VIRTUAL_FAR - 7
    long_held.held, long_held.finish_tag = 1, -2 * VIRTUAL_FAR
    away.finish_tag, behind.finish_tag = VIRTUAL_FAR + 9, VIRTUAL_FAR - 100
    charged.weight = 1

    Sfq.charge(lane, accounts, 5, 0, 0)

    assert lane.virtual_time == 0
    assert [account.start_tag for account in accounts] == [5, 0, 0, 0, 0, 0]
    assert [account.finish_tag for account in accounts] == [3, -7, -2 * VIRTUAL_FAR, 9, 0, 0]


def test_policies_without_end_are_policies() -> None:
    assert POLICIES.keys() > FOR_EVER
    assert {name for name, policy in POLICIES.items() if name not in FOR_EVER} == {"stride", "eevdf"}
