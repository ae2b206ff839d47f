"""Copies, processes, cores: who shares what, where it runs, what loading and failing to load does to the others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htpsim.errors import IllegalTransition
from htpsim.results import RunLog
from htpsim.results.columns import NEVER
from htpsim.sim import Simulation
from htpsim.spec import Guard, Instance, Registry, Run, Runtime, Scenario, constant
from tests.sim.build import PLAIN, closed, executes, instance, llm, once, other, requests, run, spans, vit
from tests.sim.strategies import seeded_scenarios

TWO = replace(PLAIN, cores=2)


def vlms(count: int, **given: Any) -> tuple[Instance, ...]:
    return tuple(instance(f"vlm{n}", **given) for n in range(count))


def test_back_to_back_vits_one_shared_copy_halves_the_throughput() -> None:
    """Two loops of a 10 ns ViT on two cores: a copy a core runs both at once, one copy a process runs one."""
    loops = vlms(2, vit=vit(10, weights=100), arrivals=closed(0))
    per_core = run(1_000, device=TWO, instances=loops, registry=Registry(vit=True, vit_copies="per-core"))
    shared = run(1_000, device=TWO, instances=loops, registry=Registry(vit=True, vit_copies="per-process"))

    done = [sum(e.finished_ns != NEVER for e in executes(log)) for log in (per_core, shared)]
    assert done == [200, 100]
    assert [sum(c.reserved_bytes for c in log.copies) for log in (per_core, shared)] == [200, 100]


def test_one_context_is_one_queue_wherever_its_users_sit() -> None:
    """Both instances of a shared copy queue on the first one's core; the other core idles."""
    log = run(100, device=TWO, instances=vlms(2, vit=vit(10)), registry=Registry(vit=True, vit_copies="per-process"))

    assert [(e.core, e.copy, e.started_ns) for e in executes(log)] == [(0, 0, 0), (0, 0, 10)]


def test_placement_by_instance_by_load_and_by_number() -> None:
    def cores(placement: str, weights: tuple[int, ...]) -> list[int]:
        made = tuple(
            instance(f"v{n}", vit=vit(1, name=f"m{n}", weights=w, placement=placement)) for n, w in enumerate(weights)
        )
        return [load.core for load in run(10, device=TWO, instances=made).loads]

    assert cores("by-instance", (9, 9, 9)) == [0, 1, 0]
    assert cores("least-loaded", (9, 3, 3, 3, 3)) == [0, 1, 1, 1, 0]
    assert cores("1", (9, 9)) == [1, 1]


def test_two_processes_share_neither_registry_nor_guard() -> None:
    loops = tuple(
        replace(i, process=n)
        for n, i in enumerate(vlms(2, llm=llm((10,), (10,), weights=50), output_tokens=constant(1)))
    )
    one = run(100, device=TWO, guard=Guard(slots=1), instances=tuple(replace(i, process=0) for i in loops),
              registry=Registry(llm_copies="per-process"))  # fmt: skip
    two = run(100, device=TWO, guard=Guard(slots=1), instances=loops, registry=Registry(llm_copies="per-process"))

    assert spans(one) == [(0, 0, 10), (1, 10, 20)]
    assert spans(two) == [(0, 0, 10), (1, 0, 10)]
    assert [load.role for load in one.loads] == ["owner", "borrower"]
    assert [load.role for load in two.loads] == ["owner", "owner"]


def test_slots_a_process_ignore_where_a_context_is_pinned() -> None:
    """Two slots, contexts on cores 0, 0, 1: both holders sit on core 0, core 1 idles, unless slots are a core's."""
    clients = tuple(
        other(n, 10, arrives=(0,), path="genie", placement=core) for n, core in (("a", "0"), ("b", "0"), ("c", "1"))
    )

    assert spans(run(device=TWO, guard=Guard(slots_per="process"), clients=clients)) == [
        (0, 0, 10),
        (1, 10, 20),
        (2, 10, 20),
    ]
    assert spans(run(device=TWO, guard=Guard(slots_per="core"), clients=clients)) == [
        (0, 0, 10),
        (2, 0, 10),
        (1, 10, 20),
    ]


def test_each_core_has_a_virtual_time_of_its_own() -> None:
    """4:1 on core 0 stays 4:1 although core 1's client runs far ahead; one clock for both would not keep it."""
    clients = (
        other("four", 10, path="genie", weight=4, placement="0", arrivals=closed(0)),
        other("one", 10, path="genie", weight=1, placement="0", arrivals=closed(0)),
        other("alone", 10, path="genie", weight=1, placement="1", arrivals=closed(0)),
    )
    log = run(10_000, device=TWO, guard=Guard(slots_per="core", policy="sfq"), clients=clients)

    done = [sum(e.client == n and e.finished_ns != NEVER for e in executes(log)) for n in range(3)]
    assert done == [800, 200, 1_000]


def test_a_quota_counts_the_weights_of_those_who_can_call_there() -> None:
    """Each core's one client has the whole period of that core, whatever the others weigh; nobody is held back."""
    clients = tuple(
        other(n, 10, path="genie", weight=w, placement=core, arrivals=closed(0))
        for n, w, core in (("a", 9, "0"), ("b", 1, "1"))
    )
    guard = Guard(slots_per="core", policy="quota", params=(("period_ns", 100), ("idle_over_budget", 1)))
    log = run(1_000, device=TWO, guard=guard, clients=clients)

    late = [e for e in executes(log) if e.called_ns >= 100]
    assert {e.client for e in late} == {0, 1}
    assert max(e.guard_wait_ns for e in late) == 0


def test_loads_share_the_bandwidth() -> None:
    """100 and 300 bytes at 1 byte/ns: shared until 200, then alone until 400."""
    clients = (other("a", 1, weights=100), other("b", 1, weights=300))
    log = run(10, device=replace(PLAIN, load_bandwidth=10**9), clients=clients)

    assert [(load.client, load.start_ns, load.end_ns) for load in log.loads] == [(0, 0, 200), (1, 0, 400)]
    assert log.ready_ns == 400


def test_a_second_caller_waits_for_the_load_in_flight() -> None:
    loops = vlms(2, vit=vit(1, weights=100))
    device = replace(PLAIN, load_bandwidth=10**9)
    waits = run(10, device=device, instances=loops, registry=Registry(vit=True))
    loads = run(10, device=device, instances=loops, registry=Registry(vit=True, waits_for_load=False))

    assert [(load.role, load.end_ns) for load in waits.loads] == [("owner", 100), ("borrower", 100)]
    assert [(load.role, load.end_ns) for load in loads.loads] == [("owner", 200), ("owner", 200)]
    assert len({copy.name for copy in loads.copies}) == 2


def test_what_does_not_fit_names_the_limit_and_the_others_go_on() -> None:
    device = replace(PLAIN, dram_budget_bytes=150)
    log = run(100, device=device, clients=(other("big", 10, weights=200), other("small", 10, weights=90, arrives=(5,))))

    assert set(log.failed) == {"big"}
    assert "dram_budget_bytes" in log.failed["big"]
    assert [(load.role, load.core) for load in log.loads] == [("failed", -1), ("owner", 0)]
    assert spans(log) == [(1, 5, 15)]
    assert sum(event.delta_bytes for event in log.memory if event.ledger == "device") == 90


def test_a_failed_load_gives_back_what_was_held_and_wakes_those_who_waited() -> None:
    """Both instances find room for the ViT, neither for the LLM: the ViT goes too, and both say why."""
    device = replace(PLAIN, dram_budget_bytes=100, load_bandwidth=10**9)
    log = run(100, device=device, instances=vlms(2, vit=vit(1, weights=60), llm=llm((1,), (1,), weights=70)),
              registry=Registry(vit=True))  # fmt: skip

    assert set(log.failed) == {"vlm0", "vlm1"}
    assert len(set(log.failed.values())) <= 2
    assert sum(event.delta_bytes for event in log.memory) == 0
    assert log.executes == []
    assert [copy.users for copy in log.copies] == [0]


def test_a_copy_that_nobody_uses_any_more_keeps_its_row() -> None:
    """a's LLM does not fit, so its own ViT goes; b's ViT is the second context of the device, and of the log."""
    device = replace(PLAIN, dram_budget_bytes=100, load_bandwidth=10**9)
    a = instance("a", vit=vit(1, weights=20), llm=llm((1,), (1,), weights=90))
    b = instance("b", vit=vit(7, weights=20))
    log = run(100, device=device, instances=(a, b))

    assert set(log.failed) == {"a"}
    assert [(copy.name, copy.users, copy.reserved_bytes) for copy in log.copies] == [
        ("vit of a/c", 0, 0),
        ("vit of b/c", 1, 20),
    ]
    assert [e.copy for e in executes(log)] == [1]


def test_an_owner_that_goes_leaves_the_copy_to_its_borrower() -> None:
    device = replace(PLAIN, dram_budget_bytes=100, load_bandwidth=10**9)
    a = instance("a", vit=vit(1, weights=20), llm=llm((1,), (1,), weights=90))
    b = instance("b", vit=vit(1, weights=20))
    log = run(100, device=device, instances=(a, b), registry=Registry(vit=True))

    assert set(log.failed) == {"a"}
    assert [(load.client, load.role) for load in log.loads] == [(0, "owner"), (0, "failed"), (1, "borrower")]
    assert [(copy.users, copy.reserved_bytes) for copy in log.copies] == [(1, 20)]
    assert spans(log) == [(1, 20, 21)]


@pytest.mark.parametrize(("on_throw", "started"), [("fail", []), ("fallback", ["vlm0"])])
def test_the_wrapper_that_throws(on_throw: str, started: list[str]) -> None:
    log = run(100, instances=vlms(1, vit=vit(10), vit_path="genie", llm=llm((1,), (1,))),
              runtime=Runtime(embedding_raw_apis=False, on_throw=on_throw), registry=Registry(vit=True))  # fmt: skip

    assert [name for name in log.clients if name not in log.failed] == started
    if started:
        assert "fell back" in log.notes[0]
        assert (executes(log)[0].path, executes(log)[0].account) == (1, -1)
        assert log.loads[0].copy == "vit of vlm0"
        assert log.accounts == ["process 0/vlm0"]
    else:
        assert "throws at creation" in log.failed["vlm0"]
        assert log.accounts == []


def test_an_instance_that_failed_has_no_share_of_a_quota() -> None:
    """Its weight would leave the other a tenth of each period, with nobody to use the rest."""
    device = replace(PLAIN, dram_budget_bytes=100)
    clients = (
        other("big", 10, weights=200, path="genie", weight=9, arrivals=closed(0)),
        other("small", 10, path="genie", weight=1, arrivals=closed(0)),
    )
    guard = Guard(policy="quota", params=(("period_ns", 100), ("idle_over_budget", 1)))
    log = run(1_000, device=device, guard=guard, clients=clients)

    assert max(e.guard_wait_ns for e in executes(log) if e.called_ns >= 100) == 0


def test_nothing_is_freed_while_a_graph_executes() -> None:
    simulation = Simulation(Scenario(instances=vlms(1, vit=vit(50)), run=Run(duration_ns=20)), check=True)
    simulation.run()
    loader = simulation.loader

    with pytest.raises(IllegalTransition, match="nothing is freed while a graph executes"):
        loader.memory.detach("vlm0", loader.copies[0].name, 20)


PLACED = seeded_scenarios().map(
    lambda s: replace(
        s,
        device=replace(s.device, arch="v69", load_bandwidth=None, dram_budget_bytes=None, pd_bytes=10**6, pd_count=40,
                       contexts_per_process=None),
        instances=tuple(
            replace(
                i, vit_priority="NORMAL", llm_priority="NORMAL",
                vit=i.vit and replace(i.vit, placement="by-instance"),
                llm=i.llm and replace(i.llm, placement="by-instance"),
            )
            for i in s.instances
        ),
        clients=tuple(replace(c, model=replace(c.model, placement="by-instance")) for c in s.clients),
        registry=Registry(llm_copies="per-core", vit_copies="per-core"),
    )
)  # fmt: skip


def timestamps(log: RunLog) -> list[tuple[int, ...]]:
    """Everything about time in a log: rows without the copy they ran on."""
    return [tuple(e._replace(copy=0)) for e in executes(log)] + log.requests + log.slices


@given(PLACED, st.booleans())
def test_under_copies_a_core_the_registry_changes_bytes_and_no_timestamp(scenario: Scenario, llm_shared: bool) -> None:
    """The premise: copies a core, placement by instance, equal priority, instant loading, one client at a time.

    Where another client may run beside a graph, one that fits can overtake one that does not, but not in one FIFO.
    """
    off = replace(scenario, registry=replace(scenario.registry, vit=False, llm=llm_shared))
    on = replace(scenario, registry=replace(scenario.registry, vit=True, llm=llm_shared))
    logs = [Simulation(s, check=True).run() for s in (off, on)]

    assert timestamps(logs[0]) == timestamps(logs[1])
    if logs[0].loads != logs[1].loads:
        held = [sum(e.delta_bytes for e in log.memory if e.ledger == "device") for log in logs]
        assert held[1] <= held[0]


def test_requests_of_an_instance_that_failed_stay_queued() -> None:
    device = replace(PLAIN, dram_budget_bytes=10)
    log = run(100, device=device, instances=(instance("a", vit=vit(1, weights=50), arrivals=once(3)),))

    assert [(r.state, r.begun_ns) for r in requests(log)] == [(0, NEVER)]
