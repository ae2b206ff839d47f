"""Each policy with a bound keeps it at one slot under its premise, and comes within a tenth of it where it is tight."""

from __future__ import annotations

import random
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htpsim.experiments.theory.response import Task, edf_schedulable
from htpsim.results.shares import water_fill
from htpsim.sched import POLICIES
from tests.policies.harness import Bench, Client, Trace, drive, longest, widest_from_start, widest_gap

ROUNDING = 0.01
"""Tags are rounded down to 2^-16 ns at each of a few hundred releases."""
LONGEST = 100
GRANTS = 80


@st.composite
def backlogged(draw: st.DrawFn, outstanding: int = 1) -> list[Client]:
    """Draw clients that call again the instant they get their answer."""
    costs = st.lists(st.one_of(st.integers(1, LONGEST), st.sampled_from([1, LONGEST])), min_size=1, max_size=6)
    weights = st.sampled_from([1, 1, 2, 3, 5, 10])
    return [
        Client(tuple(draw(costs)), weight=draw(weights), rank=draw(st.integers(0, 3)), outstanding=outstanding)
        for _ in range(draw(st.integers(2, 5)))
    ]


def note_lags(bench: Bench) -> None:
    """Note what each account is owed: weight x (mean virtual time - its own), in ns."""
    whole = sum(a.weight for a in bench.accounts)
    mean = sum(a.weight * a.run_tag for a in bench.accounts) / whole
    bench.trace.lags.append([a.weight * (mean - a.run_tag) / 65536 for a in bench.accounts])


def pair_bound(clients: list[Client], f: int, m: int) -> float:
    return longest(clients[f]) / clients[f].weight + longest(clients[m]) / clients[m].weight


@given(clients=backlogged(), policy=st.sampled_from(["sfq", "stride"]))
def test_shares_over_any_interval_differ_by_the_longest_calls_over_weight(clients: list[Client], policy: str) -> None:
    trace = drive(policy, clients, grants=GRANTS)

    for f, m in combinations(range(len(clients)), 2):
        assert widest_gap(trace, f, m) <= pair_bound(clients, f, m) + ROUNDING


@given(clients=backlogged())
def test_stride_is_within_one_quantum_of_its_start(clients: list[Client]) -> None:
    trace = drive("stride", clients, grants=GRANTS)

    for f, m in combinations(range(len(clients)), 2):
        allowed = max(longest(c) / c.weight for c in (clients[f], clients[m]))
        assert widest_from_start(trace, f, m) <= allowed + ROUNDING


@given(clients=backlogged(), quantum_ns=st.sampled_from([1, 10, 100, 1000]))
def test_drr_adds_one_quantum(clients: list[Client], quantum_ns: int) -> None:
    trace = drive("drr", clients, grants=GRANTS, quantum_ns=quantum_ns)

    for f, m in combinations(range(len(clients)), 2):
        assert widest_gap(trace, f, m) <= pair_bound(clients, f, m) + quantum_ns


@given(clients=backlogged())
def test_eevdf_owes_nobody_more_than_a_request(clients: list[Client]) -> None:
    trace = drive("eevdf", clients, grants=GRANTS, slice_ns=LONGEST, each_instant=note_lags)

    for lags in trace.lags:
        for client, lag in zip(clients, lags, strict=True):
            assert -longest(client) - ROUNDING <= lag <= LONGEST + ROUNDING


@given(clients=backlogged())
def test_fifo_lets_everybody_else_go_first_once(clients: list[Client]) -> None:
    trace = drive("fifo", clients, grants=GRANTS)

    for served in trace.served:
        assert served.wait_ns <= sum(longest(c) for i, c in enumerate(clients) if i != served.client)


@given(clients=backlogged(), ageing_ns=st.sampled_from([1, 30, 500]))
def test_a_rank_is_worth_its_ageing_and_no_more(clients: list[Client], ageing_ns: int) -> None:
    trace = drive("priority", clients, grants=GRANTS, ageing_ns=ageing_ns)

    highest = max(c.rank for c in clients)
    for served in trace.served:
        others = sum(longest(c) for i, c in enumerate(clients) if i != served.client)
        assert served.wait_ns <= (highest - clients[served.client].rank) * ageing_ns + others


@given(clients=backlogged())
def test_the_highest_rank_waits_for_one_call(clients: list[Client]) -> None:
    top = Client((7, 3), rank=9, think_ns=11)

    trace = drive("priority", [*clients, top], grants=GRANTS)

    for served in trace.of(len(clients)):
        assert served.wait_ns <= max(longest(c) for c in clients)


@given(
    tasks=st.lists(st.tuples(st.integers(1, 8), st.integers(6, 40)), min_size=1, max_size=4),
    slack=st.lists(st.integers(0, 9), min_size=40, max_size=40),
    offsets=st.lists(st.integers(0, 20), min_size=4, max_size=4),
)
def test_edf_meets_every_deadline_of_what_is_schedulable(
    tasks: list[tuple[int, int]], slack: list[int], offsets: list[int]
) -> None:
    if not edf_schedulable([Task(c, t) for c, t in tasks]):
        return

    trace = drive("edf", sporadic(tasks, slack, offsets), grants=10_000)

    assert misses(trace) == 0


def sporadic(tasks: list[tuple[int, int]], slack: list[int], offsets: list[int]) -> list[Client]:
    """Return clients whose calls come at least a period apart."""
    clients = []
    for (cost, period), offset in zip(tasks, offsets, strict=False):
        times, at = [], offset
        for extra in slack:
            times.append(at)
            at += period + extra
        clients.append(Client((cost,), arrivals_ns=tuple(times), deadline_ns=period))
    return clients


def misses(trace: Trace) -> int:
    return sum(s.released_ns > s.called_ns + (trace.clients[s.client].deadline_ns or 0) for s in trace.served)


def test_edf_misses_what_the_condition_refuses() -> None:
    tasks = [(1, 4), (5, 8)]

    assert not edf_schedulable([Task(c, t) for c, t in tasks])
    assert misses(drive("edf", sporadic(tasks, [0] * 4, [1, 0]), grants=100)) > 0
    assert misses(drive("edf", sporadic([(1, 4), (3, 8)], [0] * 4, [1, 0]), grants=100)) == 0


@given(clients=backlogged(), period_ns=st.integers(50, 2000), borrow=st.integers(0, 1))
def test_quota_is_overdrawn_by_one_call_at_most(clients: list[Client], period_ns: int, borrow: int) -> None:
    trace = drive("quota", clients, grants=GRANTS, period_ns=period_ns, borrow=borrow, idle_over_budget=1)

    whole = sum(c.weight for c in clients)
    for i, client in enumerate(clients):
        quantum = max(1, client.weight * period_ns // whole)
        for used in device_time_by_period(trace, i, period_ns):
            assert used <= quantum + longest(client)


def device_time_by_period(trace: Trace, i: int, period_ns: int) -> list[int]:
    """Return the device time of a client in each period."""
    periods = trace.served[-1].released_ns // period_ns + 1
    used = [0] * periods
    for s in trace.of(i):
        for k in range(s.granted_ns // period_ns, periods):
            used[k] += max(0, min(s.released_ns, (k + 1) * period_ns) - max(s.granted_ns, k * period_ns))
    return used


@given(clients=backlogged(), calls=st.integers(1, 40))
def test_a_quota_of_calls_counts_calls(clients: list[Client], calls: int) -> None:
    period_ns = 1_000

    trace = drive("quota", clients, grants=GRANTS, unit=1, calls=calls, period_ns=period_ns, idle_over_budget=1)

    whole = sum(c.weight for c in clients)
    for i, client in enumerate(clients):
        quantum = max(1, client.weight * calls // whole)
        granted = [s.granted_ns // period_ns for s in trace.of(i)]
        assert max(granted.count(k) for k in granted) <= quantum + 1


@pytest.mark.parametrize("seed", range(5))
def test_lottery_grants_are_binomial(seed: int) -> None:
    weights, grants = (5, 3, 2), 3_000

    trace = drive("lottery", [Client((10, 70), weight=w) for w in weights], grants=grants, seed=seed)

    for i, weight in enumerate(weights):
        p = weight / sum(weights)
        # Five standard deviations, for fifteen numbers that were drawn once and for all.
        assert abs(len(trace.of(i)) - grants * p) <= 5 * (grants * p * (1 - p)) ** 0.5


def test_compensation_turns_shares_of_grants_into_shares_of_time() -> None:
    clients = [Client((10,), weight=1), Client((90,), weight=1)]

    by_grants = drive("lottery", clients, grants=4_000)
    by_time = drive("lottery", clients, grants=4_000, compensate=1)

    assert share(by_grants, 0) == pytest.approx(0.1, rel=0.1)
    assert share(by_time, 0) == pytest.approx(0.5, rel=0.1)


def share(trace: Trace, i: int) -> float:
    return trace.work_ns(i) / sum(s.cost_ns for s in trace.served)


# --- tight: a trace within a tenth of the bound --------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["sfq", "stride"])
def test_the_bound_of_the_fair_policies_is_tight(policy: str) -> None:
    clients = [Client((10,), weight=3), Client((1,), weight=3)]

    reached = widest_gap(drive(policy, clients, grants=40), 0, 1)

    assert 0.9 * pair_bound(clients, 0, 1) <= reached <= pair_bound(clients, 0, 1) + ROUNDING


def test_one_quantum_of_stride_is_tight() -> None:
    assert widest_from_start(drive("stride", [Client((100,)), Client((100,))], grants=9), 0, 1) == 100


def test_the_bound_of_drr_is_tight() -> None:
    clients = [Client((1, 100, 100), weight=3), Client((100,), weight=3)]

    reached = widest_gap(drive("drr", clients, grants=40, quantum_ns=1), 0, 1)

    assert reached >= 0.9 * (pair_bound(clients, 0, 1) + 1)


def test_both_ends_of_the_lag_of_eevdf_are_tight() -> None:
    owed = drive(
        "eevdf", [Client((1,), weight=50), Client((100, 100, 1))], grants=40, slice_ns=100, each_instant=note_lags
    )
    owing = drive("eevdf", [Client((100,)), Client((1,), weight=50)], grants=40, slice_ns=100, each_instant=note_lags)

    assert max(max(lags) for lags in owed.lags) >= 90
    assert min(lags[0] for lags in owing.lags) <= -90


def test_the_waits_of_fifo_and_priority_are_tight() -> None:
    fifo = drive("fifo", [Client((10,)), Client((20,)), Client((30,))], grants=20)
    high = drive("priority", [Client((100,), rank=0), Client((5,), rank=1, think_ns=1)], grants=20)
    aged = drive("priority", [Client((10,), rank=0), Client((10,), rank=5)], grants=60, ageing_ns=20)

    assert max(s.wait_ns for s in fifo.of(0)) == 50
    assert max(s.wait_ns for s in high.of(1)) >= 90
    assert max(s.wait_ns for s in aged.of(0)) >= 0.9 * (5 * 20 + 10)


def test_the_overdraft_of_quota_is_tight() -> None:
    clients = [Client((99,)), Client((1,))]

    trace = drive("quota", clients, grants=60, period_ns=200, borrow=0, idle_over_budget=1)

    assert max(device_time_by_period(trace, 0, 200)) >= 0.9 * (100 + 99)


# --- several slots ------------------------------------------------------------------------------------------------


@given(slots=st.integers(2, 4), data=st.data(), policy=st.sampled_from(["sfq", "stride"]))
def test_with_d_slots_shares_differ_by_d_plus_1_times_as_much(slots: int, data: st.DataObject, policy: str) -> None:
    clients = data.draw(backlogged(outstanding=slots + 1))

    trace = drive(policy, clients, grants=GRANTS, slots=slots)

    for f, m in combinations(range(len(clients)), 2):
        assert widest_gap(trace, f, m) <= (slots + 1) * pair_bound(clients, f, m) + ROUNDING


# How far from the water-filled share a policy may be with one call outstanding a client. SFQ forgets what a client was
# owed while it ran, a turn of DRR ends while its client runs, and a quota ends with its period.
NEAR_WATER = {"stride": 0.02, "eevdf": 0.02, "sfq": 0.06, "drr": 0.2, "quota": 0.25, "lottery": 0.25}


@pytest.mark.parametrize("policy", sorted(NEAR_WATER))
@pytest.mark.parametrize(("weights", "slots"), [((4, 1, 1), 2), ((8, 4, 2, 1), 2), ((8, 4, 2, 1), 3), ((1, 1, 1), 2)])
def test_with_slots_shares_are_those_of_water(policy: str, weights: tuple[int, ...], slots: int) -> None:
    clients = [Client((20 + 7 * i, 90 - 5 * i, 50), weight=w) for i, w in enumerate(weights)]
    params = {"drr": {"quantum_ns": 50}, "eevdf": {"slice_ns": 100}, "quota": {"period_ns": 10_000}}.get(policy, {})

    trace = drive(policy, clients, grants=3_000, slots=slots, **params)

    held = [trace.work_ns(i) / trace.served[-1].granted_ns for i in range(len(clients))]
    fair = water_fill([1.0] * len(clients), weights, slots)
    for got, due in zip(held, fair, strict=True):
        assert abs(got - due) <= NEAR_WATER[policy]


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_as_many_slots_as_clients_leave_nothing_to_decide(policy: str) -> None:
    clients = [Client((20,), weight=9), Client((20,), weight=1)]

    trace = drive(policy, clients, slots=2, grants=200)

    assert all(s.wait_ns == 0 for s in trace.served)
    assert trace.work_ns(0) == trace.work_ns(1)


def test_a_client_that_pauses_gets_less_than_its_weight_says() -> None:
    """The premise matters: a dialog with a gap between its calls is not backlogged."""
    for policy in ("sfq", "stride", "drr", "eevdf"):
        trace = drive(policy, [Client((10,), weight=4, think_ns=10), Client((10,), weight=1)], grants=400)

        assert share(trace, 0) < 0.55


# --- what holds for all -------------------------------------------------------------------------------------------


@st.composite
def streams(draw: st.DrawFn) -> list[Client]:
    """Draw clients whose calls come when they will, and end."""
    chance = random.Random(draw(st.integers(0, 2**32)))
    return [
        Client(
            tuple(chance.choice([0, 1, 7, 40]) + 1 for _ in range(30)),
            weight=chance.randint(1, 5),
            rank=chance.randint(0, 2),
            arrivals_ns=tuple(sorted(chance.randrange(600) for _ in range(30))),
            deadline_ns=chance.choice([None, 5, 50]),
        )
        for _ in range(draw(st.integers(1, 4)))
    ]


@given(clients=streams(), policy=st.sampled_from(sorted(POLICIES)), variant=st.integers(0, 1))
def test_work_is_conserved_in_any_order(clients: list[Client], policy: str, variant: int) -> None:
    """Sum of service x wait over busy periods is the same for every order that never idles and never interrupts."""
    params = {"priority": {"ageing_ns": 20}, "quota": {"borrow": 2, "period_ns": 90}, "lottery": {"compensate": 1}}
    wanted = drive("fifo", clients, grants=10_000)

    trace = drive(policy, clients, grants=10_000, **(params.get(policy, {}) if variant else {}))

    assert len(trace.served) == sum(len(c.arrivals_ns or ()) for c in clients)
    assert weighed(trace) == weighed(wanted)
    assert busy_until(trace) == busy_until(wanted)


def weighed(trace: Trace) -> int:
    return sum(s.cost_ns * s.wait_ns for s in trace.served)


def busy_until(trace: Trace) -> int:
    return max(s.released_ns for s in trace.served)


@given(clients=backlogged(outstanding=3), policy=st.sampled_from(sorted(POLICIES)))
def test_calls_of_an_account_are_granted_in_order(clients: list[Client], policy: str) -> None:
    trace = drive(policy, clients, grants=60, slots=2)

    for i in range(len(clients)):
        called = [s.called_ns for s in trace.of(i)]
        assert called == sorted(called)


@given(clients=backlogged(), policy=st.sampled_from(sorted(set(POLICIES) - {"priority", "edf", "fifo"})))
def test_policies_of_weight_starve_nobody(clients: list[Client], policy: str) -> None:
    params = {"drr": {"quantum_ns": 50}, "quota": {"period_ns": 1_000}, "eevdf": {"slice_ns": LONGEST}}

    trace = drive(policy, clients, grants=700, **params.get(policy, {}))

    assert {s.client for s in trace.served} == set(range(len(clients)))
