"""What a load takes only while it lasts, what an unload keeps, and what a binary built without sharing weighs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from htpsim.errors import CapacityError
from htpsim.memory import Memory
from htpsim.spec import Context, Device, Graph, Model, constant

CONTEXT = Context(name="c", weights_bytes=40, io_bytes=2, load_bytes=7)
VIT = Model(name="vit", role="vit", contexts=(CONTEXT,))


def test_the_peak_of_init_is_held_until_the_load_has_ended() -> None:
    memory = Memory(Device())
    memory.load("a", VIT, 0, (0,), now_ns=0)
    assert (memory.held("device"), memory.held("pd")) == (47, 47)
    memory.validate()
    memory.loaded("a", 5)
    assert (memory.held("device"), memory.held("pd"), memory.peak("device")) == (40, 40, 47)
    memory.validate()
    memory.unload("a", 9)
    assert memory.held("device") == 0


def test_a_load_fails_that_only_its_peak_has_no_room_for() -> None:
    Memory(Device(dram_budget_bytes=49)).load("a", VIT, 0, (0,), now_ns=0)
    with pytest.raises(CapacityError, match="asked 49 B"):
        Memory(Device(dram_budget_bytes=48)).load("a", VIT, 0, (0,), now_ns=0)


@pytest.mark.parametrize(
    ("given", "loading", "loaded"),
    [
        ({}, 40, 40),
        ({"file_kept": False}, 40, 0),
        ({"read_budget_bytes": 16}, 16, 0),
        ({"read_budget_bytes": 99}, 40, 0),
    ],
    ids=["kept", "freed", "read in pieces", "a budget beyond the file"],
)
def test_what_is_read_is_on_the_heap_for_as_long_as_it_is_said(
    given: dict[str, int], loading: int, loaded: int
) -> None:
    memory = Memory(Device())
    memory.load("a", replace(VIT, load="read", **given), 0, (0,), now_ns=0)  # type: ignore[arg-type]
    assert memory.held("host") == loading
    memory.loaded("a", 1)
    assert memory.held("host") == loaded
    memory.validate()


def test_reading_in_pieces_needs_room_for_one_piece() -> None:
    model = replace(VIT, load="read", read_budget_bytes=16)
    Memory(Device(host_budget_bytes=16)).load("a", model, 0, (0,), now_ns=0)
    with pytest.raises(CapacityError, match="host_budget_bytes"):
        Memory(Device(host_budget_bytes=15)).load("a", model, 0, (0,), now_ns=0)


def test_four_sessions_read_four_copies_and_map_one() -> None:
    # Public threads: a session that reads has a heap copy of its own, those that map share the page cache.
    gb = 10**9
    model = Model(name="m", role="other", contexts=(Context(name="c", weights_bytes=3 * gb, io_bytes=gb // 10 * 3),))
    for load, host in (("read", 12 * gb), ("mmap", 3 * gb)):
        memory = Memory(Device(pd_count=9))
        for n in range(4):
            memory.load(f"m {n}", replace(model, load=load), n, (0,), now_ns=0)  # type: ignore[arg-type]
            memory.attach(f"user {n}", f"m {n}", 0, now_ns=0)
        assert memory.held("host") == host
        assert memory.held("device") == 4 * (3 * gb + gb // 10 * 3)  # the ledgers are never added up


def test_a_leak_fails_the_load_that_the_division_says() -> None:
    # A public thread: 3 GB free, 200 MB lost a cycle. The n-th load fails at n = floor(free / leak) + 1.
    mb = 10**6
    model = Model(name="m", role="other", contexts=(Context(name="c", weights_bytes=400 * mb),))
    free, leak = 3_000 * mb, 200 * mb
    memory = Memory(Device(dram_budget_bytes=free + 400 * mb - 1, leak_bytes=leak))
    for cycle in range(15):
        memory.load("m", model, 0, (0,), now_ns=cycle)
        memory.unload("m", now_ns=cycle)
        memory.validate()
        assert memory.held("device") == (cycle + 1) * leak
    with pytest.raises(CapacityError, match="dram_budget_bytes"):
        memory.load("m", model, 0, (0,), now_ns=99)


def test_a_binary_built_without_sharing_brings_its_weights_for_each_set() -> None:
    def graph(name: str, tier: int = 0) -> Graph:
        return Graph(name=name, context="c", service=constant(1), tier_tokens=tier)

    context = Context(name="c", weights_bytes=742, file_bytes=750)
    model = Model(name="m", role="llm", contexts=(context,), prefill=(graph("ar128"),), decode=(graph("ar1"),))
    assert model.as_built() == model
    (apart,) = replace(model, weight_sharing=False).as_built().contexts
    assert (apart.weights_bytes, apart.binary_bytes) == (1484, 1500)
    tiers = replace(model, decode=(graph("cl1", 1), graph("cl2", 2)), weight_sharing=False)
    assert tiers.as_built().contexts[0].weights_bytes == 3 * 742
