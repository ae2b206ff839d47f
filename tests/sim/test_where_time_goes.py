"""Where the time of a graphExecute goes: polling, power, the first call, heat, tiers of context, a ViT elsewhere."""

from __future__ import annotations

from dataclasses import replace

import pytest

from htpsim.results import RunResult
from htpsim.results.columns import STAGE_DECODE, STAGE_PREFILL
from htpsim.results.read import summary_of_dict
from htpsim.spec import Arrivals, Context, Device, Distribution, Graph, Guard, Model, constant
from tests.sim.build import PLAIN, executes, graphs, instance, llm, once, other, requests, run, vit


def plain(**given: object) -> Device:
    return replace(PLAIN, **given)  # type: ignore[arg-type]


def tiered(*tiers: tuple[int, int], **given: object) -> Model:
    """An LLM of one decode graph for each (context length, time)."""
    decode = tuple(
        Graph(name=f"cl{tokens}", context="c", service=constant(ns), tier_tokens=tokens) for tokens, ns in tiers
    )
    return Model(
        name="llm", role="llm", contexts=(Context(name="c"),), prefill=graphs(10), decode=decode, ar=4,
        context_tokens=tiers[-1][0], **given,  # type: ignore[arg-type]
    )  # fmt: skip


# --- polling ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("polling_ns", "back_ns"), [(None, 2), (0, 9), (19, 9), (20, 2)])
def test_an_answer_wakes_a_host_that_no_longer_polls(polling_ns: int | None, back_ns: int) -> None:
    wake_ns = 0 if polling_ns is None else 7
    device = plain(rpc_return_ns=2, rpc_polling_ns=polling_ns, rpc_wake_ns=wake_ns)
    (row,) = executes(run(clients=(other("a", 20, arrives=(0,)),), device=device))
    assert (row.finished_ns, row.rpc_return_ns, row.returned_ns) == (20, back_ns, 20 + back_ns)


def test_waiting_for_the_core_uses_up_the_polling_time() -> None:
    device = plain(rpc_polling_ns=30, rpc_wake_ns=7)
    log = run(clients=(other("a", 20, arrives=(0,)), other("b", 20, arrives=(0,))), device=device)
    assert [row.rpc_return_ns for row in executes(log)] == [0, 7]


def test_polling_costs_the_cpu_what_it_polled() -> None:
    device = plain(rpc_polling_ns=15, rpc_wake_ns=7)
    summary = RunResult(run(100, clients=(other("a", 20, 10, arrives=(0,)),), device=device)).summary()
    assert summary.metric("clients.a.costs.polling").value == pytest.approx((15 + 10) / 100)
    assert summary_of_dict(summary.to_dict()).to_dict() == summary.to_dict()


def test_nothing_of_it_is_told_where_it_is_not_modelled() -> None:
    summary = RunResult(run(clients=(other("a", 20, arrives=(0,)),))).summary().to_dict()
    assert "costs" not in summary["clients"]["a"]
    assert not {"cold", "warm", "polling"} & summary["definitions"].keys()


# --- power and first calls -------------------------------------------------------------------------------------------


def test_power_up_is_cold_after_the_timeout_warm_before_it_and_nothing_back_to_back() -> None:
    device = plain(power_up_ns=50, power_up_warm_ns=5, idle_timeout_ns=100)
    log = run(2_000, clients=(other("a", 10, arrives=(0, 60, 100, 206, 307)),), device=device)
    # 0: never used; 60-70 to 75; asked at 100 after 25 idle; at 206 after 91; at 307 after 86.
    assert [row.acquire_ns for row in executes(log)] == [50, 0, 5, 5, 5]
    later = run(2_000, clients=(other("a", 10, arrives=(0, 160, 321)),), device=device)
    assert [row.acquire_ns for row in executes(later)] == [50, 5, 50]  # idle for 100, which is no longer; for 101


def test_the_first_call_of_a_context_costs_extra_and_no_other() -> None:
    log = run(
        clients=(other("a", 10, 10, arrives=(0, 100)), other("b", 10, arrives=(5,))), device=plain(first_call_ns=7)
    )
    assert [(row.client, row.acquire_ns) for row in executes(log)] == [(0, 7), (1, 7), (0, 0), (0, 0), (0, 0)]


def test_who_waits_behind_the_first_call_of_its_context_is_not_first() -> None:
    client = other("a", 10, arrives=(0, 0), outstanding=2)
    assert [row.acquire_ns for row in executes(run(clients=(client,), device=plain(first_call_ns=7)))] == [7, 0]


def test_cold_and_warm_requests_have_percentiles_of_their_own() -> None:
    ms = 10**6
    device = plain(power_up_ns=55 * ms, idle_timeout_ns=300 * ms)
    busy = tuple(range(0, 40 * 100 * ms, 100 * ms))  # every 100 ms: never idle for long
    pauses = tuple(range(5_000 * ms, 15_000 * ms, 1_000 * ms))
    client = other("a", 25 * ms, arrives=busy + pauses)
    result = RunResult(run(16_000 * ms, clients=(client,), device=device))
    assert summary_of_dict(result.summary().to_dict()).to_dict() == result.summary().to_dict()
    costs = result.summary().clients["a"].costs
    assert result.summary().metric("clients.a.costs.cold.p50").value == 80 * ms
    assert result.summary().metric("clients.a.costs.warm.p50").value == 25 * ms
    assert [costs[name].mean.n for name in ("cold", "warm")] == [11, 39]  # type: ignore[union-attr]
    assert any("11 of 50 requests found their core powered down" in note for note in result.summary().notes)


def test_a_first_call_is_not_taken_for_a_cold_core() -> None:
    device = plain(power_up_ns=50, first_call_ns=50, idle_timeout_ns=1_000)
    first, second = other("a", 10, arrives=(0,)), other("b", 10, arrives=(200,))
    costs = RunResult(run(clients=(first, second), device=device)).summary().clients
    assert costs["a"].costs["cold"].mean.n == 1  # type: ignore[union-attr]
    assert costs["b"].costs["cold"].mean.n == 0  # type: ignore[union-attr]


# --- heat ------------------------------------------------------------------------------------------------------------


def test_a_core_slows_down_once_it_was_busy_for_long_enough() -> None:
    device = plain(throttle_after_ns=20, throttle_speed=0.5)
    log = run(clients=(other("a", 10, arrives=(0, 100, 200, 300)),), device=device)
    assert [row.run_ns for row in executes(log)] == [10, 10, 20, 20]
    assert {row.solo_ns for row in executes(log)} == {10}  # what it would have taken on a cool core


def test_a_core_cools_down_when_it_rests_for_long_enough() -> None:
    device = plain(throttle_after_ns=10, throttle_speed=0.5, throttle_rest_ns=90)
    log = run(clients=(other("a", 10, arrives=(0, 99, 208, 318)),), device=device)
    assert [row.run_ns for row in executes(log)] == [10, 20, 20, 10]  # idle for 89, for 89, for 90


def test_a_throttled_graph_draws_its_bytes_the_more_slowly() -> None:
    gb = 10**9
    model = Model(name="m", role="other", contexts=(Context(name="c"),), graphs=graphs(100, dram_bytes=100))
    client = replace(other("a", 1, arrives=(0,)), model=model)
    one = plain(dram_bandwidth=gb // 2, throttle_after_ns=0, throttle_speed=0.5)
    (row,) = executes(run(clients=(client,), device=one))
    assert row.run_ns == 200  # at half speed it asks for half the bandwidth, and has it
    (row,) = executes(run(clients=(client,), device=plain(dram_bandwidth=gb // 2)))
    assert row.run_ns == 200  # as a cool one that is short of bandwidth


# --- traffic of others -----------------------------------------------------------------------------------------------


def test_background_traffic_in_bursts_slows_what_runs_meanwhile() -> None:
    gb = 10**9
    model = Model(name="m", role="other", contexts=(Context(name="c"),), graphs=graphs(100, dram_bytes=100))
    client = replace(other("a", 1, arrives=(0,)), model=model)
    device = plain(dram_bandwidth=gb, background_bandwidth=gb // 2, background_on_ns=40, background_off_ns=30)
    # Half speed to 40, full to 70, half to 110, full from 110 on: 20 + 30 + 20 + 30.
    (row,) = executes(run(clients=(client,), device=device))
    assert row.finished_ns == 140


# --- tiers of context ------------------------------------------------------------------------------------------------


def test_decode_takes_the_graphs_of_the_least_context_that_holds_its_tokens() -> None:
    model = tiered((8, 20), (10, 30), (16, 40))
    log = run(instances=(instance("v", llm=model, text_tokens=constant(6), output_tokens=constant(8)),))
    decode = [row for row in executes(log) if row.stage == STAGE_DECODE]
    # Tokens 7 and 8 of the context fit 8, the next two 10, the rest 16.
    assert [row.run_ns for row in decode] == [20, 20, 30, 30, 40, 40, 40]
    assert [log.graphs[row.graph] for row in decode][::3] == ["llm/cl8", "llm/cl10", "llm/cl16"]
    assert [row.token for row in decode] == [1, 2, 3, 4, 5, 6, 7]
    assert "llm: has graphs for 3 context lengths" in log.notes[0]  # what bytes cannot decide


def test_tokens_of_earlier_turns_count() -> None:
    model = tiered((8, 20), (64, 40))
    arrivals = Arrivals(kind="replay", times_ns=(0, 1))
    spec = instance(
        "v", llm=model, text_tokens=constant(2), output_tokens=constant(3), dialog_turns=2, arrivals=arrivals
    )
    decode = [row for row in executes(run(instances=(spec,))) if row.stage == STAGE_DECODE]
    assert [row.run_ns for row in decode] == [20, 20, 20, 40]  # 5 + 2 + 1 = 8 tokens still fit


def test_prefill_has_tiers_too_and_the_longest_takes_what_no_tier_holds() -> None:
    prefill = tuple(Graph(name=f"cl{n}", context="c", service=constant(n), tier_tokens=n) for n in (8, 10))
    model = replace(tiered((10, 5)), prefill=prefill)
    log = run(instances=(instance("v", llm=model, text_tokens=constant(9), output_tokens=constant(1)),))
    assert [row.run_ns for row in executes(log) if row.stage == STAGE_PREFILL] == [8, 8, 10]


def test_tiers_move_no_draw() -> None:
    spread = Distribution(kind="sample", sample=(10, 20, 30, 40))

    def decode(tiers: tuple[int, ...]) -> list[int]:
        graphs = tuple(
            Graph(name=f"g{part} of {n}", context="c", service=spread, tier_tokens=n) for n in tiers for part in (0, 1)
        )
        model = replace(tiered((64, 1)), decode=graphs)
        log = run(5_000, instances=(instance("v", llm=model, output_tokens=constant(30)),))
        return [row.solo_ns for row in executes(log) if row.stage == STAGE_DECODE]

    assert decode((64,)) == decode((7, 20, 64))
    assert len(set(decode((64,)))) > 1


# --- a ViT elsewhere -------------------------------------------------------------------------------------------------


def test_a_vit_on_the_host_never_meets_the_device() -> None:
    spec = instance("v", vit=vit(100, weights=40), llm=llm((10,), (5,)), vit_path="host", images=constant(2))
    log = run(instances=(spec,), clients=(other("o", 50, arrives=(120,)),))
    assert [(row.client, row.started_ns) for row in executes(log)] == [(1, 120), (0, 200), (0, 210)]
    (request, _) = requests(log)
    assert (request.vit_done_ns, request.first_token_ns) == (200, 210)
    assert [load.core for load in log.loads if load.model == "vit"] == [-1]
    assert {event.ledger for event in log.memory if "vit" in event.item} == {"host"}
    assert not any(copy.role == "vit" for copy in log.copies)
    assert RunResult(log).summary().clients["v"].vit.max.value == 200


# --- a thread for the ViT --------------------------------------------------------------------------------------------


def test_the_vit_of_the_next_request_runs_beside_the_llm_of_this_one() -> None:
    arrivals = Arrivals(kind="replay", times_ns=(0, 0, 0))
    spec = instance(
        "v", vit=vit(30, placement="1"), llm=llm((40,), (5,), placement="0"), vit_thread="own", arrivals=arrivals
    )
    log = run(instances=(spec,), device=plain(cores=2))
    rows = [(row.core, row.request, row.started_ns, row.finished_ns) for row in executes(log)]
    assert [row for row in rows if row[0] == 1] == [(1, 0, 0, 30), (1, 1, 30, 60), (1, 2, 75, 105)]
    assert [row[2:] for row in rows if row[0] == 0] == [
        (30, 70),
        (70, 75),
        (75, 115),
        (115, 120),
        (120, 160),
        (160, 165),
    ]
    assert [request.begun_ns for request in requests(log)] == [0, 30, 75]  # one ahead, never two
    same = run(instances=(replace(spec, vit_thread="same"),), device=plain(cores=2))
    assert [request.done_ns for request in requests(log)] == [75, 120, 165]
    assert [request.done_ns for request in requests(same)] == [75, 150, 225]


def test_a_thread_of_the_vits_own_carries_no_dialog_handle() -> None:
    spec = instance("v", vit=vit(30), llm=llm((40,), (5,)), vit_path="genie", vit_thread="own", arrivals=once(0))
    log = run(instances=(spec,), guard=Guard(unregistered="bypass"))
    assert [row.path for row in executes(log)] == [2, 0, 0]
    log = run(instances=(replace(spec, weight=5),), guard=Guard(default_weight=3))
    assert [row.weight for row in executes(log)] == [3, 5, 5]
