"""The bounds hold in the engine: closed loops without a pause, path genie, one slot, one core."""

from __future__ import annotations

from dataclasses import replace

import pytest

from htpsim.results.columns import NEVER, Execute
from htpsim.results.log import RunLog
from htpsim.sim import simulate
from htpsim.spec import Arrivals, Context, Distribution, Graph, Guard, Instance, Model, Run, Scenario, constant
from tests.policies.harness import Client, Served, Trace, longest, widest_from_start, widest_gap
from tests.policies.test_bounds import device_time_by_period
from tests.policies.test_faults import loops

US = 1_000
COSTS_NS = ((100 * US, 900 * US), (1_000 * US,), (50 * US, 250 * US, 700 * US))
WEIGHTS = (3, 1, 2)
ROUNDING_NS = 1.0


def backlogged(policy: str, **params: int) -> tuple[RunLog, Trace]:
    """Run three clients of different weights, ranks and costs; return the log and what it says as a trace."""
    scenario = loops(policy, weights=WEIGHTS, duration_ns=150_000 * US)
    clients = tuple(
        replace(
            c,
            guard_priority=k,
            deadline_ns=(k + 1) * 5_000 * US,
            model=replace(
                c.model,
                graphs=(replace(c.model.graphs[0], service=Distribution(kind="sample", sample=COSTS_NS[k])),),
            ),
        )
        for k, c in enumerate(scenario.clients)
    )
    guard = Guard(policy=policy, params=tuple(sorted(params.items())), slots=1)
    log = simulate(replace(scenario, guard=guard, clients=clients), check=True)
    trace = Trace([Client(COSTS_NS[k], weight=WEIGHTS[k], rank=k) for k in range(3)])
    rows = sorted((Execute(*row) for row in log.executes), key=lambda row: row.granted_ns)
    for row in rows:
        if row.finished_ns != NEVER:
            trace.served.append(Served(row.client, row.called_ns, row.granted_ns, row.run_ns))
    return log, trace


def pairs(trace: Trace) -> list[tuple[int, int, list[float]]]:
    each = [longest(c) / c.weight for c in trace.clients]
    return [(f, m, [each[f], each[m]]) for f in range(3) for m in range(f)]


def test_the_clients_are_backlogged() -> None:
    _, trace = backlogged("sfq")

    assert len(trace.served) > 200
    assert sum(s.cost_ns for s in trace.served) == trace.served[-1].released_ns


@pytest.mark.parametrize(
    ("policy", "params", "extra_ns"), [("sfq", {}, 0), ("stride", {}, 0), ("drr", {"quantum_ns": 300 * US}, 300 * US)]
)
def test_shares_differ_by_the_bound_at_most(policy: str, params: dict[str, int], extra_ns: int) -> None:
    _, trace = backlogged(policy, **params)

    for f, m, costs in pairs(trace):
        assert widest_gap(trace, f, m) <= sum(costs) + extra_ns + ROUNDING_NS
        if policy == "stride":
            assert widest_from_start(trace, f, m) <= max(costs) + ROUNDING_NS


def test_eevdf_owes_a_request_at_most() -> None:
    request_ns = 1_000 * US

    _, trace = backlogged("eevdf", slice_ns=request_ns)

    work_ns = [0, 0, 0]
    for s in trace.served:
        work_ns[s.client] += s.cost_ns
        for i, weight in enumerate(WEIGHTS):
            lag_ns = weight * sum(work_ns) / sum(WEIGHTS) - work_ns[i]
            assert -longest(trace.clients[i]) - ROUNDING_NS <= lag_ns <= request_ns + ROUNDING_NS


def test_fifo_and_ageing_bound_every_wait() -> None:
    _, in_turn = backlogged("fifo")
    _, aged = backlogged("priority", ageing_ns=3_000 * US)

    for trace, ageing_ns in ((in_turn, 0), (aged, 3_000 * US)):
        for s in trace.served:
            others_ns = sum(longest(c) for i, c in enumerate(trace.clients) if i != s.client)
            assert s.wait_ns <= (2 - s.client) * ageing_ns + others_ns
    assert {s.client for s in aged.served} == {0, 1, 2}


def test_quota_is_overdrawn_by_one_graph_at_most() -> None:
    period_ns = 10_000 * US

    _, trace = backlogged("quota", period_ns=period_ns, idle_over_budget=1)

    for i, client in enumerate(trace.clients):
        quantum_ns = client.weight * period_ns // sum(WEIGHTS)
        assert max(device_time_by_period(trace, i, period_ns)) <= quantum_ns + longest(client)


def test_lottery_shares_out_grants() -> None:
    _, trace = backlogged("lottery")
    n = len(trace.served)

    for i, weight in enumerate(WEIGHTS):
        p = weight / sum(WEIGHTS)
        assert abs(len(trace.of(i)) - n * p) <= 5 * (n * p * (1 - p)) ** 0.5


@pytest.mark.parametrize("policy", ["sfq", "stride", "drr", "eevdf", "quota", "lottery"])
def test_device_time_follows_weight(policy: str) -> None:
    params = {"lottery": {"compensate": 1}, "quota": {"period_ns": 10_000 * US}}
    _, trace = backlogged(policy, **params.get(policy, {}))

    whole_ns = sum(s.cost_ns for s in trace.served)
    for i, weight in enumerate(WEIGHTS):
        due = weight / sum(WEIGHTS)
        assert trace.work_ns(i) / whole_ns == pytest.approx(due, abs=0.1 if policy == "lottery" else 0.03)


def test_edf_knows_the_deadlines_of_tokens() -> None:
    """Four dialogs decode on one core: the tightest ITL is served whenever it calls, the next tightest in between."""
    step = Graph(name="step", context="c", service=constant(4_000 * US))
    llm = Model(name="llm", role="llm", contexts=(Context(name="c"),), prefill=(step,), decode=(step,))
    instances = tuple(
        Instance(
            name=name,
            llm=llm,
            arrivals=Arrivals(kind="closed", think=constant(0)),
            text_tokens=constant(10),
            output_tokens=constant(200),
            ttft_deadline_ns=itl_ns,
            itl_deadline_ns=itl_ns,
            host_gap_step_ns=1_000 * US,
        )
        for name, itl_ns in (("slack", 300_000 * US), ("tight", 5_000 * US), ("none", None), ("medium", 50_000 * US))
    )
    scenario = Scenario(guard=Guard(policy="edf", slots=1), run=Run(duration_ns=1_000_000 * US), instances=instances)

    tokens = {r[0]: r[11] for r in simulate(scenario, check=True).requests if r[1] == 0}

    assert tokens[1] >= 120
    assert tokens[3] >= 110
    assert 3 <= tokens[0] <= 6
    assert tokens[2] <= 1
