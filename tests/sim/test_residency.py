"""Copies that are unloaded and loaded again: for each request, or to make room; what it costs, and who is spared."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htpsim.experiments.trace import trace_of
from htpsim.invariants import check_trace
from htpsim.invariants.trace import NOWHERE
from htpsim.results import RunLog
from htpsim.sim import simulate
from htpsim.spec import Arrivals, Device, Guard, Instance, Registry, Runtime, Scenario
from tests.sim.build import PLAIN, executes, instance, llm, requests, run, vit
from tests.sim.spice import pressed
from tests.sim.strategies import random_scenario

BYTE_A_NS = 10**9
SLOW = replace(PLAIN, load_bandwidth=BYTE_A_NS)
ROOM = Runtime(make_room="idle")
BOTH = Registry(vit=True)


def at(*times_ns: int) -> Arrivals:
    return Arrivals(kind="replay", times_ns=times_ns)


def vlm(name: str = "a", weights: int = 40, **given: Any) -> Instance:
    models = {"vit": vit(30, weights=weights), "llm": llm((10,), (5,), weights=60)}
    return instance(name, **{**models, **given})


def device_bytes(log: RunLog) -> list[tuple[int, int]]:
    """Return (time, bytes held from then on) in device DRAM."""
    held, seen = 0, {}
    for event in log.memory:
        if event.ledger == "device":
            held += event.delta_bytes
            seen[event.time_ns] = held
    return list(seen.items())


def loads(log: RunLog, *roles: str) -> list[tuple[str, str, int, int]]:
    chosen = [load for load in log.loads if not roles or load.role in roles]
    return [(log.clients[x.client], x.model, x.start_ns - log.ready_ns, x.end_ns - log.ready_ns) for x in chosen]


def is_sound(log: RunLog) -> None:
    report = check_trace(trace_of(log))
    assert report.ok, report


def test_a_vit_of_the_request_lowers_the_peak_and_pays_its_load_each_time() -> None:
    device = replace(SLOW, dram_budget_bytes=60)
    log = run(instances=(vlm(vit_residency="request", arrivals=at(200, 500)),), device=device)
    assert max(held for _, held in device_bytes(log)) == 60
    assert log.failed == {"a": log.failed["a"]}  # beside the LLM the ViT finds no room
    log = run(instances=(vlm(vit_residency="request", arrivals=at(200, 500)),), device=SLOW)
    is_sound(log)
    assert loads(log, "owner")[2:] == [("a", "vit", 100, 140), ("a", "vit", 400, 440)]
    assert [request.vit_done_ns - request.begun_ns for request in requests(log)] == [70, 70]  # 40 to load, 30 to run
    assert device_bytes(log)[-1][1] == 60
    stays = run(instances=(vlm(arrivals=at(200, 500)),), device=SLOW)
    assert [request.vit_done_ns - request.begun_ns for request in requests(stays)] == [30, 30]


def test_idle_copies_make_room_and_come_back_when_needed() -> None:
    device = replace(SLOW, dram_budget_bytes=70)
    log = run(2_000, instances=(vlm(arrivals=at(200, 800)),), device=device, runtime=ROOM)
    is_sound(log)
    assert not log.failed
    assert max(held for _, held in device_bytes(log)) <= 70
    # The LLM's load unloads the ViT; each request then needs the ViT, whose load unloads the LLM, and so on.
    assert [entry[1] for entry in loads(log, "owner")] == ["vit", "llm", "vit", "llm", "vit", "llm"]
    assert [entry[1] for entry in loads(log, "unloaded")] == ["vit", "llm", "vit", "llm", "vit"]
    first, _ = requests(log)
    assert first.first_token_ns - first.begun_ns == 40 + 30 + 60 + 10


def test_by_default_what_does_not_fit_fails_and_nothing_is_unloaded() -> None:
    log = run(2_000, instances=(vlm(arrivals=at(200)),), device=replace(SLOW, dram_budget_bytes=70))
    assert "dram_budget_bytes" in log.failed["a"]
    assert not loads(log, "unloaded")


def test_the_least_recently_used_goes_first() -> None:
    def one(name: str, *times_ns: int) -> Instance:
        return instance(name, vit=vit(30, name=f"vit {name}", weights=40), arrivals=at(*times_ns))

    device = replace(SLOW, dram_budget_bytes=80)
    fleet = (one("a", 300), one("b", 200), replace(one("c", 400)))
    log = run(2_000, instances=fleet, device=device, runtime=ROOM)
    is_sound(log)
    at_run = [(name, start) for name, _, start, _ in loads(log, "unloaded") if start >= 0]
    assert at_run[-1][0] == "b"  # used at 200; a was at 300


def test_what_executes_is_never_unloaded_and_who_needs_room_waits() -> None:
    def one(name: str, at_ns: int) -> Instance:
        return instance(name, vit=vit(100, name=f"vit {name}", weights=40), arrivals=at(at_ns))

    device = replace(SLOW, cores=1, dram_budget_bytes=40)
    log = run(2_000, instances=(one("a", 200), one("b", 210)), device=device, runtime=ROOM)
    is_sound(log)
    a, b = (row for row in executes(log))
    assert b.called_ns >= a.returned_ns + 40  # a's ViT was in use; then b's was loaded in its place
    assert not log.failed


def test_a_model_that_could_never_fit_fails_and_drives_nobody_out() -> None:
    big = instance("big", vit=vit(10, name="big vit", weights=500), arrivals=at(100))
    log = run(instances=(vlm(arrivals=at(0)), big), device=replace(SLOW, dram_budget_bytes=200), runtime=ROOM)
    assert list(log.failed) == ["big"]
    assert not loads(log, "unloaded")


def test_an_llm_in_a_dialog_keeps_its_cache_and_its_place() -> None:
    device = replace(SLOW, dram_budget_bytes=110)
    talk = vlm("a", llm=llm((10,), (5,), weights=60, kv_bytes=10), dialog_turns=2, arrivals=at(200, 600))
    talk = replace(talk, vit=None)
    other = instance("b", vit=vit(30, weights=50), arrivals=at(400))
    log = run(2_000, instances=(talk, other), device=device, runtime=ROOM)
    is_sound(log)
    unloaded_ns = [
        log.ready_ns + start for _, model, start, _ in loads(log, "unloaded") if model == "llm" and start > 0
    ]
    assert unloaded_ns == [requests(log)[1].done_ns]  # b, which came at 400, waited for the end of the dialog


def test_two_that_wait_for_each_others_dialogs_do_not_wait_for_ever() -> None:
    def one(name: str) -> Instance:
        models = {
            "vit": vit(30, name=f"vit {name}", weights=40),
            "llm": replace(llm((10,), (5,), weights=60), name=name),
        }
        return instance(name, **models, dialog_turns=9, arrivals=at(300, 900, 1_500))

    device = replace(SLOW, dram_budget_bytes=130, pd_bytes=1_000)
    log = run(4_000, instances=(one("a"), one("b")), device=device, runtime=ROOM)
    is_sound(log)
    assert len(log.failed) == 1  # the last to find that all others wait as well
    survivor = next(n for n, name in enumerate(log.clients) if name not in log.failed)
    assert all(request.done_ns > 0 for request in requests(log) if request.client == survivor)


def test_who_began_to_serve_counts_in_the_sum_of_weights_though_it_fails_later() -> None:
    device = replace(SLOW, dram_budget_bytes=60)
    fleet = (vlm("a", weight=3, vit_residency="request", arrivals=at(200)), vlm("b", vit=None, arrivals=at(100, 300)))
    never = replace(vlm("c", vit=vit(30, name="c vit", weights=500), weight=5), process=1)
    guard = Guard(policy="quota", params=(("period_ns", 7),), slots=1)
    log = run(instances=(*fleet, never), device=device, guard=guard)
    is_sound(log)
    assert list(log.failed) == ["a", "c"]
    assert trace_of(log).guard.weight_sums == ((0, NOWHERE, 3 + 1),)


def test_a_call_that_another_gives_way_to_is_made_after_that_others_return() -> None:
    """Both answer on one copy with an adapter of their own: "a", of the lower number, begins when "b" has ended."""
    registry = Registry(adapters="turns")
    late, early = (vlm(name, vit=None, adapter=name, arrivals=at(at_ns)) for name, at_ns in (("a", 5), ("b", 0)))
    log = run(instances=(late, early), guard=Guard(policy="eevdf", slots=1), registry=registry)
    is_sound(log)
    then_ns = requests(log)[1].done_ns
    at_turn = [(event.kind, event.execute) for event in trace_of(log).events if event.time_ns == then_ns]
    assert at_turn[:5] == [("finish", 1), ("return", 1), ("release", 1), ("call", 2), ("grant", 2)]


def test_so_it_is_where_the_slot_is_held_over_a_pause() -> None:
    late, early = vlm("a", vit=None, adapter="a", arrivals=at(5)), vlm("b", vit=None, adapter="b", arrivals=at(0))
    late, early = replace(late, host_gap_step_ns=7), replace(early, host_gap_step_ns=7)
    guard = Guard(policy="eevdf", slots=1, gap_inside=True)
    log = run(instances=(late, early), guard=guard, registry=Registry(adapters="turns"))
    is_sound(log)
    then_ns = requests(log)[1].done_ns + 7
    at_turn = [(event.kind, event.execute) for event in trace_of(log).events if event.time_ns == then_ns]
    assert at_turn[:3] == [("release", 1), ("call", 2), ("grant", 2)]


def test_users_of_a_shared_copy_lose_it_together_and_find_it_again_together() -> None:
    device = replace(SLOW, dram_budget_bytes=70)
    fleet = (vlm("a", arrivals=at(300)), vlm("b", arrivals=at(600)))
    log = run(3_000, instances=fleet, device=device, runtime=ROOM, registry=BOTH)
    is_sound(log)
    assert not log.failed
    assert all(request.done_ns > 0 for request in requests(log))


def test_a_leak_stops_the_instance_after_as_many_loads_as_the_division_says() -> None:
    device = replace(SLOW, dram_budget_bytes=60 + 40 + 35, leak_bytes=10)
    log = run(4_000, instances=(vlm(vit_residency="request", arrivals=at(*range(200, 3_000, 300))),), device=device)
    # Beside LLM and ViT 35 B are free: the load to show that it fits and two more leak 10 B each, the fifth fails.
    vits = [entry for entry in loads(log, "owner") if entry[1] == "vit"]
    assert len(vits) == 4
    assert "dram_budget_bytes" in log.failed["a"]


@pytest.mark.slow
@given(st.integers(0, 2**32))
def test_no_rule_is_broken_under_pressure(seed: int) -> None:
    is_sound(simulate(pressed(random_scenario(seed), seed), check=True))


def test_the_corpus_does_press() -> None:
    unloads = [
        sum(load.role == "unloaded" for load in simulate(pressed(random_scenario(seed), seed)).loads)
        for seed in range(25)
    ]
    assert sum(count > 1 for count in unloads) > 5


def test_nothing_is_unloaded_where_everything_fits() -> None:
    scenario = Scenario(device=Device(), runtime=ROOM, instances=(vlm(),))
    assert not [load for load in simulate(scenario).loads if load.role == "unloaded"]


@pytest.mark.parametrize("until_ns", [1_000, 203])
def test_what_is_loaded_again_makes_its_first_call_again(until_ns: int) -> None:
    """Also where the run ends amid it: from the log alone a checker then knows that the core was being acquired."""
    fleet = (instance("a", vit=vit(30, 30, weights=40), vit_residency="request", arrivals=at(0, 200)),)
    log = run(until_ns, instances=fleet, device=replace(SLOW, first_call_ns=7))
    is_sound(log)
    paid = [row.acquire_ns for row in executes(log)]
    assert paid == ([7, 0, 7, 0] if until_ns == 1_000 else [7, 0, 0])


def test_one_that_finds_no_room_in_the_instant_in_which_all_have_loaded_keeps_what_it_has() -> None:
    device = replace(PLAIN, dram_budget_bytes=100)
    first = vlm(vit_residency="request", arrivals=at(0))
    log = run(instances=(first, instance("b", vit=vit(30, name="vit b", weights=40), arrivals=at(0))), device=device)
    is_sound(log)
    assert log.ready_ns == 0
    assert list(log.failed) == ["a"]
    assert device_bytes(log)[-1] == (0, 100)
