"""Each policy does what its page says, on traces small enough to follow by hand."""

from __future__ import annotations

from itertools import groupby

import pytest

from htpsim.sched import POLICIES, policies
from tests.policies.harness import Client, Trace, drive


def order(trace: Trace) -> str:
    """Return who was served, as one letter a grant."""
    return "".join("abcdef"[s.client] for s in trace.served)


def test_strict_priority_starves_the_lowest_and_ageing_does_not() -> None:
    clients = [Client((10,), rank=0), Client((10,), rank=2), Client((10,), rank=1)]

    assert order(drive("priority", clients, grants=8)) == "bbbbbbbb"
    assert "a" in order(drive("priority", clients, grants=30, ageing_ns=20))


def test_ageing_orders_by_call_time_less_what_the_rank_is_worth() -> None:
    # Calls at 0 (rank 0) and 25 (rank 1); a rank is worth 30 ns, then 20.
    clients = [
        Client((5,), rank=0, arrivals_ns=(1,)),
        Client((5,), rank=1, arrivals_ns=(25,)),
        Client((40,), rank=9, arrivals_ns=(0,)),
    ]

    assert order(drive("priority", clients, ageing_ns=30)) == "cba"
    assert order(drive("priority", clients, ageing_ns=20)) == "cab"


def test_stride_serves_by_the_least_pass() -> None:
    trace = drive("stride", [Client((10,), weight=3), Client((10,), weight=2), Client((10,), weight=1)], grants=12)

    assert order(trace) == "abcabaabcaba"  # ties go to the lowest index


def test_stride_keeps_a_debt_over_an_absence_and_sfq_forgets_it() -> None:
    """Client a ran 100 ns at 0 and is back at 200, when b and c are backlogged."""
    late = (0, 200, 200, 200)
    clients = [
        Client((100, 10, 10, 10), arrivals_ns=late),
        Client((10,), arrivals_ns=tuple([0] * 60)),
    ]

    after = {p: order(drive(p, clients, grants=60)) for p in ("stride", "sfq")}

    assert after["stride"].rindex("a") >= after["sfq"].rindex("a")


def test_drr_runs_an_account_until_its_deficit_is_used_up() -> None:
    trace = drive("drr", [Client((10,), weight=3), Client((10,), weight=1)], grants=12, quantum_ns=10)

    assert order(trace) == "aaabaaabaaab"


def test_drr_pays_a_debt_with_the_turns_to_come() -> None:
    trace = drive("drr", [Client((100, 10)), Client((10,))], grants=14, quantum_ns=10)

    # After 100 ns for one quantum of 10, a sits out nine turns.
    assert order(trace) == "abbbbbbbbbbab"[:13] + order(trace)[13:]


def test_an_idle_account_of_drr_keeps_no_credit() -> None:
    sleeper = Client((10,), arrivals_ns=(0, 500, 500, 500, 500, 500))
    busy = Client((10,))

    trace = drive("drr", [sleeper, busy], grants=80, quantum_ns=30)

    runs = [len(list(group)) for who, group in groupby(order(trace)) if who == "a"]
    assert max(runs) <= 3


def test_eevdf_serves_the_short_before_the_long_without_giving_them_more() -> None:
    clients = [Client((100,)), Client((10,))]

    trace = drive("eevdf", clients, grants=400, slice_ns=1)

    assert trace.work_ns(0) / trace.work_ns(1) == pytest.approx(1.0, abs=0.1)
    assert order(trace)[1:11] == "b" * 10


def test_an_account_that_was_away_gets_no_credit_from_eevdf_or_sfq() -> None:
    for policy in ("eevdf", "sfq"):
        clients = [Client((10,)), Client((10,), arrivals_ns=tuple([1_000] * 30))]

        trace = drive(policy, clients, grants=150)

        back = order(trace)[100:130]
        assert 14 <= back.count("b") <= 16


def test_the_lottery_repeats_with_its_seed_and_differs_with_another() -> None:
    clients = [Client((10,)), Client((10,))]

    first, again, other = (order(drive("lottery", clients, seed=s)) for s in (4, 4, 5))

    assert first == again
    assert first != other


def test_edf_serves_the_nearest_deadline_and_those_without_last() -> None:
    clients = [
        Client((5,), arrivals_ns=(0, 1)),
        Client((5,), arrivals_ns=(2,), deadline_ns=100),
        Client((5,), arrivals_ns=(3,), deadline_ns=10),
    ]

    assert order(drive("edf", clients)) == "acba"


def quota(clients: list[Client], grants: int, **params: int) -> str:
    return order(drive("quota", clients, grants=grants, period_ns=100, **params))


def test_a_quota_of_device_time_shares_out_each_period() -> None:
    clients = [Client((10,), weight=3), Client((10,), weight=1)]

    # First called first within budget: 75 and 25 ns, each overdrawn by what its last call leaves over.
    assert quota(clients, 10) == "ababababaa"[:5] + quota(clients, 10)[5:]
    assert quota(clients, 1_000).count("a") == pytest.approx(750, abs=10)


def test_a_quota_of_calls_shares_out_calls() -> None:
    trace = quota([Client((1,), weight=3), Client((9,), weight=1)], 16, unit=1, calls=4, idle_over_budget=1)

    assert [sorted(trace[i : i + 4]) for i in range(0, 16, 4)] == [list("aaab")] * 4


def test_unused_budget_lapses_unless_it_is_carried_over() -> None:
    # a is away for four periods, then wants 20 calls at once; b is always there.
    clients = [Client((10,), arrivals_ns=tuple([400] * 20)), Client((10,))]

    lapsed, kept = (quota(clients, 80, carry_over_periods=k, idle_over_budget=1) for k in (0, 3))

    assert kept[kept.index("a") :].startswith("a" * 20)
    assert lapsed[lapsed.index("a") :].startswith("aaaaabbbb")


def test_an_overdraft_is_repaid_or_forgiven() -> None:
    clients = [Client((80,)), Client((10,))]

    repaid, forgiven = (drive("quota", clients, grants=200, period_ns=100, borrow=b) for b in (1, 0))

    assert repaid.work_ns(0) / repaid.work_ns(1) == pytest.approx(1.0, abs=0.1)
    assert forgiven.work_ns(0) > 1.2 * forgiven.work_ns(1)


def test_a_borrower_draws_on_those_who_have_nothing_to_run() -> None:
    # Three equal weights, the third never calls: its third of the period is there to be lent.
    clients = [Client((30,)), Client((10,)), Client((10,), arrivals_ns=())]

    lent, own = (drive("quota", clients, grants=300, period_ns=90, borrow=b, idle_over_budget=1) for b in (2, 1))

    assert busy_share(own) == pytest.approx(2 / 3, abs=0.02)
    assert busy_share(lent) == pytest.approx(1.0, abs=0.02)


def busy_share(trace: Trace) -> float:
    return sum(s.cost_ns for s in trace.served) / trace.served[-1].released_ns


def test_idle_over_budget_leaves_the_core_idle() -> None:
    clients = [Client((10,), weight=1), Client((10,), weight=1, arrivals_ns=())]

    idle = drive("quota", clients, grants=50, period_ns=100, idle_over_budget=1)
    busy = drive("quota", clients, grants=50, period_ns=100)

    assert busy_share(idle) == pytest.approx(0.5, abs=0.1)
    assert busy_share(busy) == 1.0


# --- the list -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("card", policies(), ids=lambda card: card.name)
def test_every_policy_says_what_it_is(card: object) -> None:
    for part in ("summary", "source", "bound", "premise", "cost"):
        assert getattr(card, part), part
    assert len(getattr(card, "summary")) <= 120  # noqa: B009


@pytest.mark.parametrize("policy", POLICIES.values(), ids=lambda policy: policy.name)
def test_every_parameter_has_limits_that_hold_its_default(policy: object) -> None:
    params, limits = getattr(policy, "params"), getattr(policy, "limits")  # noqa: B009

    assert set(params) == set(limits)
    for name, (default, text) in params.items():
        least, greatest = limits[name]
        assert least <= default <= greatest
        assert text
