"""What the functions of a guard and its policies leave in the records, worked out beside them in plain arithmetic."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import floor
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from htpsim.errors import InvariantError, ScenarioError
from htpsim.sched import POLICIES, Fifo, guard, policy_class, policy_params
from htpsim.sched.budget import borrow_from_idle, can_borrow
from htpsim.sched.catalogue import policy_card
from htpsim.sched.fair import active_weight, mean_run_tag
from htpsim.sched.policy import ACCOUNT_FIELDS, CALL_FIELDS, LANE_FIELDS, VIRTUAL_SCALE
from htpsim.sched.select import policy_faults
from htpsim.sched.watch import watched


def record(fields: tuple[str, ...], **given: int) -> Any:
    return SimpleNamespace(**{**dict.fromkeys(fields, 0), **given})


ACCOUNT = st.tuples(st.integers(1, 4), st.booleans(), st.integers(0, 2), st.integers(0, 10**6))


@given(st.lists(ACCOUNT, min_size=1, max_size=4), st.integers(-1, 3))
def test_the_mean_of_eevdf_is_that_of_the_active_by_weight(rows: list[tuple[int, bool, int, int]], also: int) -> None:
    accounts = [SimpleNamespace(weight=w, waiting=int(waits), held=held, run_tag=tag) for w, waits, held, tag in rows]
    active = [a for i, a in enumerate(accounts) if a.waiting or a.held or i == also]
    weight = sum(a.weight for a in active)
    lane = SimpleNamespace(accounts=len(accounts))

    assert active_weight(lane, accounts, also) == weight
    mean = Fraction(sum(a.weight * a.run_tag for a in active), weight) if active else 0
    assert mean_run_tag(lane, accounts, also) == floor(mean)


def test_stride_advances_by_cost_over_weight_and_the_lane_by_cost_over_the_active_weights() -> None:
    stride = policy_class("stride")
    fields = (*ACCOUNT_FIELDS, *stride.account_fields)
    lane = record((*LANE_FIELDS, *stride.lane_fields), accounts=3, global_pass=5)
    accounts = [record(fields, weight=2), record(fields, weight=3, waiting=1), record(fields, weight=7)]

    stride.charge(lane, accounts, 0, 31, 0)

    assert lane.global_pass == 5 + (31 << VIRTUAL_SCALE) // 5
    assert accounts[0].pass_tag == 31 << VIRTUAL_SCALE - 1
    assert accounts[0].remain == accounts[0].pass_tag - lane.global_pass
    stride.wake(lane, accounts, 0, 0)
    assert accounts[0].pass_tag == 31 << VIRTUAL_SCALE - 1


def test_a_quota_is_lent_by_the_idle_in_order_and_no_more_than_is_missing() -> None:
    lane = SimpleNamespace(accounts=6)
    budgets = [4, -10, 9, 9, 1, 20]
    accounts = [SimpleNamespace(budget=budget, waiting=0, held=0) for budget in budgets]
    accounts[2].waiting = accounts[3].held = 1

    borrow_from_idle(lane, accounts, 1)

    assert [account.budget for account in accounts] == [0, 0, 9, 9, 0, 15]


def test_call_and_release_tell_whether_a_grant_is_possible() -> None:
    fifo = policy_class("fifo")
    lane = record(LANE_FIELDS, slots=1, accounts=2)
    accounts = [record(ACCOUNT_FIELDS) for _ in range(2)]
    calls = [record(CALL_FIELDS) for _ in range(2)]
    for i in range(2):
        guard.open_account(accounts, i, 1, 0)

    assert guard.call(lane, accounts, calls, 0, 0, 0, fifo.wake)
    assert guard.grant(lane, accounts, calls, 0, fifo.pick, fifo.wake) == 0
    assert not guard.call(lane, accounts, calls, 1, 1, 1, fifo.wake)
    assert not guard.can_grant(lane)
    assert guard.grant(lane, accounts, calls, 1, fifo.pick, fifo.wake) == guard.NOBODY
    assert guard.release(lane, accounts, 0, 9, 9, fifo.charge)
    assert guard.grant(lane, accounts, calls, 9, fifo.pick, fifo.wake) == 1
    assert not guard.release(lane, accounts, 1, 9, 18, fifo.charge)
    guard.call(lane, accounts, calls, 1, 0, 20, fifo.wake)
    guard.grant(lane, accounts, calls, 20, fifo.pick, fifo.wake)
    guard.release(lane, accounts, 1, 4, 24, fifo.charge)
    assert [account.charged_ns for account in accounts] == [9, 13]


@given(
    st.lists(st.tuples(st.integers(1, 3), st.booleans(), st.integers(-9, 0)), min_size=1, max_size=4),
    st.integers(1, 3),
    st.integers(0, 4),
)
@example([(1, True, -1)], 1, 0)
@example([(1, True, -2), (3, False, -9), (1, True, -3)], 1, 2)
def test_drr_skips_rounds_at_once_and_ends_where_one_by_one_would(
    rows: list[tuple[int, bool, int]], quantum_ns: int, next_turn: int
) -> None:
    drr = policy_class("drr")
    fields = (*ACCOUNT_FIELDS, *drr.account_fields)
    accounts = [record(fields, weight=w, waiting=int(waits), deficit_ns=deficit) for w, waits, deficit in rows]
    lane = record((*LANE_FIELDS, *drr.lane_fields), accounts=len(rows), quantum_ns=quantum_ns, next_turn=next_turn)
    deficits, wanted, turn = [deficit for _, _, deficit in rows], -1, next_turn
    while wanted < 0 and any(waits for _, waits, _ in rows):
        i = turn % len(rows)
        turn += 1
        if rows[i][1]:
            deficits[i] += rows[i][0] * quantum_ns
            wanted = i if deficits[i] > 0 else -1

    assert drr.pick(lane, accounts, 0) == wanted
    assert [account.deficit_ns for account in accounts] == deficits
    assert [account.in_turn for account in accounts] == [int(i == wanted) for i in range(len(rows))]
    assert lane.next_turn == (wanted + 1 if wanted >= 0 else next_turn)


def test_of_several_open_turns_drr_serves_the_first_account() -> None:
    drr = policy_class("drr")
    fields = (*ACCOUNT_FIELDS, *drr.account_fields)
    lane = record((*LANE_FIELDS, *drr.lane_fields), accounts=3, quantum_ns=1)
    for open_turns in ((0, 1), (0, 2), (1, 2), (0, 1, 2)):
        accounts = [record(fields, weight=1, waiting=1, in_turn=int(i in open_turns)) for i in range(3)]

        assert drr.pick(lane, accounts, 0) == open_turns[0]
        assert lane.next_turn == 0


@pytest.mark.parametrize(
    ("table", "field", "value", "complaint"),
    [
        ("lane", "holders", 3, "3 holders, expected 0 to 2 (the slots)"),
        ("lane", "holders", -1, "-1 holders, expected 0 to 2 (the slots)"),
        ("lane", "holders", 2, "accounts hold 1 slots, the lane counts 2"),
        ("lane", "waiting", 2, "1 accounts wait, the lane counts 2"),
        ("account", "head", guard.NOBODY, "account 0 waiting=1, head=-1"),
        ("account", "tail", guard.NOBODY, "account 0 ends at call 2, its tail says -1"),
    ],
)
def test_damage_to_a_guard_is_found_and_named(table: str, field: str, value: int, complaint: str) -> None:
    lane = record(LANE_FIELDS, slots=2, holders=1, waiting=1, accounts=2)
    accounts = [record(ACCOUNT_FIELDS, held=1, waiting=1, head=1, tail=2), record(ACCOUNT_FIELDS, head=-1, tail=-1)]
    calls = [record(CALL_FIELDS, next_call=following) for following in (guard.NOBODY, 2, guard.NOBODY)]
    guard.validate(lane, accounts, calls, "p")
    setattr(lane if table == "lane" else accounts[0], field, value)

    with pytest.raises(InvariantError) as found:
        guard.validate(lane, accounts, calls, "p")

    assert str(found.value) == f"guard (p): {complaint}"


def test_a_policy_that_says_nothing_of_itself_has_an_empty_card() -> None:
    card = policy_card(type("Silent", (Fifo,), {"__doc__": "One line."}))

    assert card.summary == "One line."
    assert (card.source, card.bound, card.premise, card.cost) == ("", "", "", "")


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_nobody_is_picked_where_nobody_waits(name: str) -> None:
    policy = POLICIES[name]
    lane = record((*LANE_FIELDS, *policy.lane_fields), accounts=2, slots=1, weight_sum=2)
    for parameter, (default, _) in policy.params.items():
        setattr(lane, parameter, default)
    accounts = [record((*ACCOUNT_FIELDS, *policy.account_fields), weight=1) for _ in range(2)]

    assert policy.pick(lane, accounts, 0) == guard.NOBODY


def test_what_a_users_policy_raises_is_told_with_file_and_line() -> None:
    def pick(lane: Any, accounts: Any, now_ns: int) -> int:
        raise ValueError("bad")

    broken = watched(type("Broken", (Fifo,), {"name": "broken", "pick": staticmethod(pick)}))

    with pytest.raises(InvariantError) as found:
        broken.pick(None, [], 7)

    line = pick.__code__.co_firstlineno + 1
    assert str(found.value) == f"policy broken: pick raised ValueError at 7 ns: bad ({__file__}, line {line})"


def test_an_unknown_policy_is_refused_with_what_else_there_is() -> None:
    with pytest.raises(
        ScenarioError, match=r"^guard\.policy: .*'sfqq'.*[^X] \(or a class of your own: module:Class\)$"
    ):
        policy_class("sfqq")


def test_a_card_says_what_the_docstring_says() -> None:
    text = "One\n    line.\n\n    More.\n\n    Source: a\n    b.\n    Bound: c.\n    Premise: d.\n    Cost: e.\n    "
    card = policy_card(type("Said", (Fifo,), {"__doc__": text, "name": "said", "params": {"n": (1, "text")}}))

    assert (card.name, card.summary, card.params) == ("said", "One line.", {"n": (1, "text")})
    assert (card.source, card.bound, card.premise, card.cost) == ("a b.", "c.", "d.", "e.")


def test_bad_parameters_are_told_to_the_letter() -> None:
    with pytest.raises(ScenarioError) as caught:
        policy_params(policy_class("priority"), [("ageing_ns", -1), ("age_ns", 1), ("zzzz", 1), ("ageing_ns", 0)])
    with pytest.raises(ScenarioError) as of_fifo:
        policy_params(Fifo, [("zzzz", 1)])

    assert caught.value.problems == (
        "guard.params.ageing_ns: got -1, policy priority expects 0 to 3600000000000",
        "guard.params.age_ns: policy priority has no such parameter (it has: ageing_ns); did you mean 'ageing_ns'?",
        "guard.params.zzzz: policy priority has no such parameter (it has: ageing_ns)",
    )
    assert of_fifo.value.problems == ("guard.params.zzzz: policy fifo has no such parameter (it has: none)",)


def test_what_is_no_function_of_a_policy_is_told_to_the_letter() -> None:
    odd = type("Odd", (Fifo,), {"pick": 3, "timer": staticmethod(lambda lane: -1)})

    assert policy_faults(type("Odder", (Fifo,), {"params": 7})) == [
        "params: got 7, expected a dict of name: (default, text)"
    ]
    assert policy_faults(type("Oddest", (Fifo,), {"lane_fields": 7})) == [
        "lane_fields: got 7, expected a tuple of names"
    ]
    assert policy_faults(odd) == [
        "pick: got 3, expected a static function of lane, accounts, now_ns",
        "timer: takes 1 arguments, expected 3: (lane, accounts, now_ns)",
    ]


def test_only_the_idle_with_budget_left_can_lend() -> None:
    for waiting, held, budget in product((0, 1), (0, 1), (-1, 0, 1)):
        accounts = [SimpleNamespace(waiting=waiting, held=held, budget=budget)]
        assert can_borrow(SimpleNamespace(accounts=1), accounts) == (not waiting and not held and budget > 0)


@pytest.mark.parametrize("idle_over_budget", [0, 1])
def test_within_its_budget_the_first_called_goes_before_the_richer(idle_over_budget: int) -> None:
    quota = policy_class("quota")
    fields = (*ACCOUNT_FIELDS, *quota.account_fields)
    lane = record((*LANE_FIELDS, *quota.params), accounts=3, idle_over_budget=idle_over_budget)
    for first, (a, b) in {0: (1, 2), 1: (2, 1)}.items():
        accounts = [record(fields, waiting=1, budget=budget, called_ns=at) for budget, at in ((1, a), (9, b), (0, 0))]
        assert quota.pick(lane, accounts, 5) == first
    for account in accounts:
        account.budget = -account.called_ns
    assert quota.pick(lane, accounts, 5) == (guard.NOBODY if idle_over_budget else 2)


def test_where_nobody_is_eligible_eevdf_serves_the_nearest_to_it_of_the_lowest_number() -> None:
    eevdf = policy_class("eevdf")
    fields = (*ACCOUNT_FIELDS, *eevdf.account_fields)
    lane = record((*LANE_FIELDS, *eevdf.lane_fields), accounts=4, slice_ns=1)
    tags = (0, 9, 8, 8)
    accounts = [record(fields, weight=1, waiting=int(i > 0), run_tag=tag) for i, tag in enumerate(tags)]
    accounts[0].held, accounts[0].weight = 1, 9

    assert eevdf.pick(lane, accounts, 0) == 2


def test_deadlines_of_eevdf_are_whole_and_equal_ones_go_by_number() -> None:
    eevdf = policy_class("eevdf")
    fields = (*ACCOUNT_FIELDS, *eevdf.account_fields)
    lane = record((*LANE_FIELDS, *eevdf.lane_fields), accounts=3, slice_ns=1)
    third = (1 << VIRTUAL_SCALE) // 3
    accounts = [
        record(fields, weight=3, waiting=1, run_tag=(1 << VIRTUAL_SCALE) - third),
        record(fields, weight=1, waiting=1),
        record(fields, weight=9, held=1, run_tag=1 << 30),
    ]

    assert eevdf.pick(lane, accounts, 0) == 0


@pytest.mark.parametrize(("cost_ns", "remembered_ns"), [(0, 1), (1, 1), (2, 2)])
def test_the_lottery_remembers_a_cost_of_at_least_a_nanosecond(cost_ns: int, remembered_ns: int) -> None:
    lane, accounts = SimpleNamespace(latest_cost_ns=0), [SimpleNamespace(last_cost_ns=0)]

    policy_class("lottery").charge(lane, accounts, 0, cost_ns, 0)

    assert (lane.latest_cost_ns, accounts[0].last_cost_ns) == (remembered_ns, remembered_ns)
