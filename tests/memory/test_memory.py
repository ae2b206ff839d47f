from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from htpsim.errors import CapacityError, IllegalTransition, InvariantError, ScenarioError
from htpsim.memory import Memory, kv_shares
from htpsim.memory.memory import State
from htpsim.spec import Context, Device, Graph, Model, constant

GB = 10**9
MB = 10**6


def model(*weights_bytes: int, name: str = "m", **fields: Any) -> Model:
    """Return a model with one context for each number, of so many weight bytes."""
    contexts = tuple(Context(name=f"c{index}", weights_bytes=count) for index, count in enumerate(weights_bytes))
    return Model(name=name, role="other", contexts=contexts, **fields)


def one(*, io_bytes: int = 0, name: str = "m", load: Any = "mmap", kv_bytes: int = 0, **terms: Any) -> Model:
    """Return a model with a single context of the given terms."""
    context = Context(name="c0", io_bytes=io_bytes, **terms)
    return Model(name=name, role="other", contexts=(context,), load=load, kv_bytes=kv_bytes)


def snapshot(memory: Memory) -> object:
    """Return all there is to see of a memory."""
    ledgers: tuple[Any, ...] = ("device", "host", "pd")
    sizes = [(memory.held(ledger), memory.peak(ledger)) for ledger in ledgers]
    return sizes, memory.pds(), memory.core_reserved_bytes(), list(memory.events), list(memory._copies)


def refused(memory: Memory, error: type[Exception], call: Callable[[], object]) -> str:
    """Return the words of a refusal, having checked that it changed nothing."""
    before = snapshot(memory)
    with pytest.raises(error) as refusal:
        call()
    assert snapshot(memory) == before
    memory.validate()
    assert str(type(refusal.value)(*refusal.value.args)) == str(refusal.value)
    return str(refusal.value)


# -- what a copy and its users take


def test_the_terms_of_a_context_and_of_its_users_lie_where_they_belong() -> None:
    terms: dict[str, Any] = {"weights_bytes": 100, "run_list_bytes": 20, "spill_fill_bytes": 7, "vtcm_backup_bytes": 8}
    memory = Memory(Device(model_reserve_bytes=1000))

    (loaded,) = memory.load("vit 0", one(io_bytes=5, file_bytes=130, **terms), 0, (0,), 10)
    memory.attach("vlm0", "vit 0", 50, 20)
    memory.attach("vlm1", "vit 0", 60, 30)

    assert (loaded.name, loaded.copy, loaded.model, loaded.cores, loaded.pds) == ("vit 0/c0", "vit 0", "m", (0,), (0,))
    assert memory.events == [
        (10, "host", "host", "m/c0 mapped", 130),
        (10, "device", "dram", "vit 0 reserve", 1000),
        (10, "device", "dram", "vit 0/c0", 135),
        (10, "pd", "process 0 core 0 pd 0", "vit 0/c0", 135),
        (20, "device", "dram", "vlm0 I/O on vit 0/c0", 5),
        (20, "pd", "process 0 core 0 pd 0", "vlm0 I/O on vit 0/c0", 5),
        (20, "device", "dram", "vlm0 KV on vit 0/c0", 50),
        (20, "pd", "process 0 core 0 pd 0", "vlm0 KV on vit 0/c0", 50),
        (30, "device", "dram", "vlm1 I/O on vit 0/c0", 5),
        (30, "pd", "process 0 core 0 pd 0", "vlm1 I/O on vit 0/c0", 5),
        (30, "device", "dram", "vlm1 KV on vit 0/c0", 60),
        (30, "pd", "process 0 core 0 pd 0", "vlm1 KV on vit 0/c0", 60),
    ]
    assert (memory.held("device"), memory.held("pd"), memory.held("host")) == (1255, 255, 130)
    assert memory.held("device", "dram") == 1255
    assert memory.users("vit 0") == ("vlm0", "vlm1")
    memory.validate()


def test_all_that_was_taken_is_given_back_and_the_peak_remains() -> None:
    memory = Memory(Device(model_reserve_bytes=10))
    memory.load("a", one(weights_bytes=100, io_bytes=5), 0, (0,), 0)
    memory.attach("u", "a", 7, 1)
    memory.detach("u", "a", 2)
    memory.unload("a", 3)

    assert [memory.held(ledger) for ledger in ("device", "host", "pd")] == [0, 0, 0]
    assert [memory.peak(ledger) for ledger in ("device", "host", "pd")] == [122, 100, 112]
    assert memory.pds() == {}
    assert memory.core_reserved_bytes() == [0]
    assert sum(delta for *_, delta in memory.events) == 0
    memory.validate()


def test_phi4_vit_context_five_terms() -> None:
    """Predicted: the five terms a public log prints for a phi-4 ViT context sum to what it reserves."""
    terms: dict[str, Any] = {"weights_bytes": 425_721_856, "run_list_bytes": 31_498_496, "io_bytes": 4_882_432}
    vit = one(**terms, spill_fill_bytes=12_320_768, vtcm_backup_bytes=8_388_608)
    memory = Memory(Device())
    memory.load("veg", vit, 0, (0,), 0)
    memory.attach("vlm0", "veg", 0, 0)

    assert vit.contexts[0].reserved_bytes == memory.held("device") == memory.held("pd") == 482_812_160


def test_a_gang_takes_address_space_on_each_core_but_dram_once() -> None:
    memory = Memory(Device(cores=4, topology="gang"))
    (loaded,) = memory.load("a", one(weights_bytes=100, io_bytes=5), 3, (3, 0), 0)
    memory.attach("u", "a", 7, 0)

    assert loaded.places == ("process 3 core 3 pd 0", "process 3 core 0 pd 0")
    assert memory.core_reserved_bytes() == [112, 0, 0, 112]
    assert (memory.held("device"), memory.held("pd"), memory.contexts_loaded(3)) == (112, 224, 1)
    memory.validate()


def test_kv_lies_with_the_decode_contexts_in_equal_parts_the_remainder_in_the_first() -> None:
    graphs = tuple(Graph(name=f"ar1_{index}", context=f"c{index}", service=constant(1)) for index in (1, 2, 2))
    llm = model(10, 10, 10, decode=graphs)
    memory = Memory(Device(pd_bytes=12))
    memory.load("llm", llm, 0, (0,), 0)
    memory.attach("u", "llm", 3, 0)

    assert kv_shares(llm, 3) == (0, 2, 1)
    assert memory.pds()[0, 0] == [
        {"llm/c0": 10},
        {"llm/c1": 10, "u KV on llm/c1": 2},
        {"llm/c2": 10, "u KV on llm/c2": 1},
    ]


def test_kv_of_a_model_without_contexts_lies_in_dram_alone() -> None:
    memory = Memory(Device(dram_budget_bytes=9))
    assert memory.load("llm", Model(name="llm", role="llm", kv_bytes=8), 0, (0,), 0) == ()
    memory.attach("u", "llm", 8, 0)

    assert (memory.held("device"), memory.held("pd")) == (8, 0)
    words = refused(
        memory, CapacityError, lambda: memory.load("x", Model(name="x", role="llm", kv_bytes=2), 0, (0,), 0)
    )
    assert "model 'x', KV cache on 'x'" in words


def test_sharing_weights_between_graph_sets_is_a_matter_of_the_binary() -> None:
    """Prefill and decode graphs of one context reserve its weights once, whatever a run-time config says."""
    graphs = tuple(Graph(name=name, context="c0", service=constant(1)) for name in ("ar1", "ar128"))
    llm = model(100, prefill=graphs[1:], decode=graphs[:1])
    memory = Memory(Device())
    memory.load("llm", llm, 0, (0,), 0)

    assert memory.held("device") == 100


# -- first fit


def test_published_pd_packing() -> None:
    """Predicted: the documentation's example, contexts in order, first fit, 3.75 GB a PD."""
    sizes = [1_500 * MB, 1_500 * MB, 1_000 * MB, 1_000 * MB, 250 * MB]
    memory = Memory(Device(pd_bytes=3_750 * MB))
    contexts = memory.load("a", model(*sizes), 0, (0,), 0)

    assert [loaded.pds for loaded in contexts] == [(0,), (0,), (1,), (1,), (0,)]
    assert [list(pd.values()) for pd in memory.pds()[0, 0]] == [
        [1_500 * MB, 1_500 * MB, 250 * MB],
        [1_000 * MB, 1_000 * MB],
    ]


def test_processes_and_cores_have_pds_of_their_own() -> None:
    memory = Memory(Device(cores=2, pd_bytes=10))
    for number, (process, core) in enumerate([(0, 0), (0, 1), (1, 0), (0, 0)]):
        memory.load(f"copy {number}", model(8, name=f"m{number}"), process, (core,), 0)

    assert memory.pds() == {
        (0, 0): [{"copy 0/c0": 8}, {"copy 3/c0": 8}],
        (0, 1): [{"copy 1/c0": 8}],
        (1, 0): [{"copy 2/c0": 8}],
    }


def test_a_gap_left_by_an_unload_is_filled_first() -> None:
    memory = Memory(Device(pd_bytes=10))
    for name in ("a", "b"):
        memory.load(name, model(8, name=name), 0, (0,), 0)
    memory.unload("a", 1)
    memory.load("c", model(6, name="c"), 0, (0,), 2)

    assert memory.pds()[0, 0] == [{"c/c0": 6}, {"b/c0": 8}]


def test_a_pd_takes_a_context_only_with_room_for_the_io_and_kv_of_its_first_user() -> None:
    memory = Memory(Device(pd_bytes=10))
    memory.load("a", one(name="a", weights_bytes=5, io_bytes=1, kv_bytes=1), 0, (0,), 0)
    (loaded,) = memory.load("b", one(name="b", weights_bytes=3, io_bytes=1), 0, (0,), 0)
    memory.attach("u", "b", 0, 0)
    memory.attach("u", "a", 1, 0)

    assert loaded.pds == (1,)
    memory.validate()


def test_a_promise_is_neither_held_nor_free_until_its_user_comes() -> None:
    memory = Memory(Device(dram_budget_bytes=12))
    memory.load("a", one(name="a", weights_bytes=5, io_bytes=2, kv_bytes=1), 0, (0,), 0)
    assert memory.held("device") == memory.peak("device") == 5
    assert memory.core_reserved_bytes() == [8]

    words = refused(memory, CapacityError, lambda: memory.load("b", one(name="b", weights_bytes=5), 0, (0,), 0))
    assert "asked 5 B (5 B), held 8 B (8 B), free 4 B (4 B)" in words

    memory.attach("u", "a", 1, 0)
    memory.detach("u", "a", 0)
    memory.load("b", one(name="b", weights_bytes=7), 0, (0,), 0)
    refused(memory, CapacityError, lambda: memory.attach("u", "a", 1, 0))


def test_an_unload_before_any_user_came_ends_the_promise() -> None:
    memory = Memory(Device(dram_budget_bytes=8))
    memory.load("a", one(weights_bytes=5, io_bytes=3), 0, (0,), 0)
    memory.unload("a", 1)

    assert memory.core_reserved_bytes() == [0]
    memory.load("a", one(weights_bytes=8), 0, (0,), 2)
    memory.validate()


# -- limits


def test_one_context_beyond_a_pd_fails_although_dram_is_free_and_two_halves_fit() -> None:
    """A 6 GB model does not load in one context, but in two that fit a PD each."""
    memory = Memory(Device(pd_bytes=3_750 * MB, dram_budget_bytes=16 * GB))

    words = refused(memory, CapacityError, lambda: memory.load("a", model(6 * GB), 0, (0,), 0))
    assert "context 0 'c0'" in words
    assert "never split" in words
    assert "device.pd_bytes 3,750,000,000 B (3.49 GiB), asked 6,000,000,000 B (5.59 GiB)" in words
    assert [loaded.pds for loaded in memory.load("a", model(3 * GB, 3 * GB), 0, (0,), 0)] == [(0,), (1,)]


def test_no_more_pds_than_a_process_may_open() -> None:
    memory = Memory(Device(pd_bytes=10, pd_count=2))

    words = refused(memory, CapacityError, lambda: memory.load("a", model(7, 8, 4), 0, (0,), 0))

    assert "model 'm', context 2 'c2' of copy 'a'" in words
    assert "of the 2 PDs (device.pd_count) of process 0 on core 0 none has room" in words
    assert "asked 4 B (4 B), held 7 B (7 B), free 3 B (3 B)" in words


def test_eight_parts_unshared_fail_at_the_eighth_and_the_shared_bundle_fits() -> None:
    """Two graph sets without sharing: seven parts fit 5.5 GB, the eighth does not; one shared bundle is half."""
    parts = [count * MB for count in (742, 637, 637, 1020)]
    memory = Memory(Device(dram_budget_bytes=5_500 * MB))

    words = refused(memory, CapacityError, lambda: memory.load("both", model(*parts, *parts), 0, (0,), 0))
    assert "context 7 'c7'" in words
    assert "asked 1,020,000,000 B (973 MiB), held 5,052,000,000 B (4.71 GiB), free 448,000,000 B (427 MiB)" in words
    memory.load("shared", model(*parts), 0, (0,), 0)
    assert memory.held("device") == 3_036 * MB


def test_one_mapping_too_large_fails_before_anything_is_loaded() -> None:
    """A 467 MB weight buffer against a mapping limit of 400 MB, however much memory is free."""
    memory = Memory(Device(mapping_limit_bytes=400 * MB))

    words = refused(memory, CapacityError, lambda: memory.load("a", model(100 * MB, 467 * MB), 0, (0,), 0))

    assert "context 1 'c1'" in words
    assert "device.mapping_limit_bytes 400,000,000 B (381 MiB), asked 467,000,000 B (445 MiB)" in words
    memory.load("a", model(400 * MB), 0, (0,), 0)


def test_the_failing_index_is_named_with_what_is_held_by_then() -> None:
    """Many binaries: limits of one buffer stand apart from totals, and the first that fails is named."""
    memory = Memory(Device(mapping_limit_bytes=1_000 * MB, dram_budget_bytes=16 * GB))
    sizes = [900 * MB, 900 * MB, 1_083_146_928, 900 * MB]

    words = refused(memory, CapacityError, lambda: memory.load("7b", model(*sizes), 0, (0,), 0))
    assert "context 2 'c2'" in words

    tight = Memory(Device(dram_budget_bytes=2_000 * MB))
    words = refused(tight, CapacityError, lambda: tight.load("7b", model(*sizes), 0, (0,), 0))
    assert "context 2 'c2'" in words
    assert "held 1,800,000,000 B" in words
    assert "free 200,000,000 B" in words


def test_no_more_contexts_than_a_process_may_hold() -> None:
    memory = Memory(Device(contexts_per_process=3))
    memory.load("a", model(1, 1), 0, (0,), 0)
    memory.load("b", model(1, 1), 1, (0,), 0)

    words = refused(memory, CapacityError, lambda: memory.load("c", model(1, 1), 0, (0,), 0))

    assert "context 1 'c1'" in words
    assert "device.contexts_per_process 3, asked 1, held 3, free 0" in words


def test_host_budget_limits_file_copies() -> None:
    memory = Memory(Device(host_budget_bytes=10))
    memory.load("a", one(name="a", weights_bytes=6, load="read"), 0, (0,), 0)

    words = refused(memory, CapacityError, lambda: memory.load("b", one(name="b", weights_bytes=5), 0, (0,), 0))

    assert "no room in host: device.host_budget_bytes 10 B (10 B), asked 5 B (5 B), held 6 B" in words


def test_a_reserve_that_does_not_fit_is_named() -> None:
    memory = Memory(Device(model_reserve_bytes=11, dram_budget_bytes=10))

    assert "reserve of 'a'" in refused(memory, CapacityError, lambda: memory.load("a", model(), 0, (0,), 0))


def test_a_user_whose_io_or_kv_does_not_fit_is_refused_whole() -> None:
    memory = Memory(Device(pd_bytes=20))
    memory.load("a", one(weights_bytes=10, io_bytes=3), 0, (0,), 0)
    memory.attach("u", "a", 2, 0)

    words = refused(memory, CapacityError, lambda: memory.attach("v", "a", 3, 0))

    assert "model 'm', user 'v', v KV on a/c0: no room in process 0 core 0 pd 0" in words
    assert "device.pd_bytes 20 B (20 B), asked 3 B (3 B), held 18 B (18 B), free 2 B (2 B)" in words
    memory.attach("v", "a", 2, 0)


def test_reloads_as_fast_as_they_come_never_exceed_the_limit_or_free_too_much() -> None:
    memory = Memory(Device(dram_budget_bytes=60 * GB, pd_bytes=60 * GB))
    a, b = model(23 * GB, name="a"), model(29 * GB, name="b")
    for turn in range(5):
        memory.load("a", a, 0, (0,), turn)
        memory.load("b", b, 0, (0,), turn)
        refused(memory, CapacityError, lambda turn=turn: memory.load("c", a, 0, (0,), turn))  # type: ignore[misc]
        memory.unload("a", turn)
        memory.unload("b", turn)
        assert memory.held("device") == 0

    assert memory.peak("device") == 52 * GB
    memory.validate()


# -- file copies


def file_and_io_bytes(memory: Memory) -> int:
    """Return what N sessions cost a host that runs the weights from their file copy: file copies plus users' I/O.

    File copies are the whole host ledger; I/O is what users hold in device DRAM. The loaded contexts themselves are
    left out, as the ledgers are not to be added up: in this view the file copy stands for them.
    """
    io_bytes = sum(delta for _, ledger, _, item, delta in memory.events if ledger == "device" and " I/O on " in item)
    return memory.held("host") + io_bytes


@pytest.mark.parametrize(("load", "expected_bytes"), [("read", 13_200 * MB), ("mmap", 4_200 * MB)])
def test_n_sessions_hold_n_file_copies_when_read_and_one_when_mapped(load: str, expected_bytes: int) -> None:
    """Four sessions with 3 GB weights and 0.3 GB I/O: N (w + io) read, w + N io mapped."""
    memory = Memory(Device())
    for session in range(4):
        memory.load(f"copy {session}", one(weights_bytes=3 * GB, io_bytes=300 * MB, load=load), 0, (0,), 0)
        memory.attach(f"vlm{session}", f"copy {session}", 0, 0)

    assert file_and_io_bytes(memory) == expected_bytes
    assert memory.held("device") == 13_200 * MB, "mapping a file does not share what is loaded from it"


def test_n_users_of_one_copy_hold_its_weights_once() -> None:
    """The same arithmetic in the device ledger, where the registry and not the mapping decides it."""
    memory = Memory(Device(pd_bytes=4_200 * MB))
    memory.load("shared", one(weights_bytes=3 * GB, io_bytes=300 * MB), 0, (0,), 0)
    for user in range(4):
        memory.attach(f"vlm{user}", "shared", 0, 0)

    assert memory.held("device") == memory.held("pd") == 4_200 * MB


def test_users_of_one_copy_share_its_pd_so_that_copies_may_fit_where_sharing_does_not() -> None:
    memory = Memory(Device(pd_bytes=3_500 * MB))
    memory.load("shared", one(weights_bytes=3 * GB, io_bytes=300 * MB), 0, (0,), 0)
    memory.attach("vlm0", "shared", 0, 0)

    assert "pd 0" in refused(memory, CapacityError, lambda: memory.attach("vlm1", "shared", 0, 0))


def test_a_page_cache_copy_is_one_for_all_processes_and_stays_for_the_last() -> None:
    memory = Memory(Device())
    for process in (0, 1):
        memory.load(f"copy {process}", one(weights_bytes=9), process, (0,), 0)
    assert memory.held("host") == 9

    memory.unload("copy 0", 1)
    assert memory.held("host") == 9
    memory.unload("copy 1", 2)
    assert memory.held("host") == 0


def test_a_heap_copy_goes_with_its_load() -> None:
    memory = Memory(Device())
    for number in (0, 1):
        memory.load(f"copy {number}", one(weights_bytes=9, load="read"), 0, (0,), 0)
    memory.unload("copy 0", 1)

    assert (memory.peak("host"), memory.held("host")) == (18, 9)


def test_one_name_for_two_files_is_refused() -> None:
    memory = Memory(Device())
    memory.load("a", one(weights_bytes=9), 0, (0,), 0)

    words = refused(memory, ScenarioError, lambda: memory.load("b", one(weights_bytes=10), 0, (0,), 0))

    assert "its file has 10 B, but a model of that name is mapped with 9 B" in words


# -- the state machine


def used() -> Memory:
    """Return a memory in which two users share a copy."""
    memory = Memory(Device())
    memory.load("a", one(weights_bytes=10, io_bytes=1), 0, (0,), 0)
    for user in ("u", "v"):
        memory.attach(user, "a", 0, 0)
    return memory


@pytest.mark.parametrize(
    ("what", "args", "words"),
    [
        ("load", ("a", model(1), 0, (0,), 1), "'load' in state 'used'"),
        ("attach", ("u", "a", 0, 1), "'u' is attached"),
        ("attach", ("u", "b", 0, 1), "copy 'b': got 'attach' in state 'absent'"),
        ("detach", ("w", "a", 1), "'w' is not attached"),
        ("detach", ("u", "b", 1), "'detach' in state 'absent'"),
        ("unload", ("a", 1), "'unload' in state 'used'"),
        ("unload", ("b", 1), "'unload' in state 'absent'"),
        ("begin_execute", ("a", "w"), "'w' is not attached"),
        ("begin_execute", ("b",), "'begin' in state 'absent'"),
        ("end_execute", ("a",), "'end' in state 'used'"),
        ("end_execute", ("b",), "'end' in state 'absent'"),
    ],
)
def test_what_a_used_copy_refuses(what: str, args: tuple[object, ...], words: str) -> None:
    memory = used()

    told = refused(memory, IllegalTransition, lambda: getattr(memory, what)(*args))

    assert words in told
    assert "attach by v: used -> used" in told or "copy 'b'" in told


def test_nothing_is_freed_while_a_graph_executes() -> None:
    memory = used()
    memory.begin_execute("a", "u")
    memory.begin_execute("a", "u")

    assert "'unload' in state 'executing'" in refused(memory, IllegalTransition, lambda: memory.unload("a", 1))
    assert "nothing is freed" in refused(memory, IllegalTransition, lambda: memory.detach("u", "a", 1))
    assert "no graph of 'v'" in refused(memory, IllegalTransition, lambda: memory.end_execute("a", "v"))
    memory.detach("v", "a", 1)
    memory.end_execute("a", "u")
    refused(memory, IllegalTransition, lambda: memory.detach("u", "a", 1))
    memory.end_execute("a", "u")
    memory.detach("u", "a", 1)
    assert memory.state("a") is State.IDLE


def test_a_graph_of_nobody_named_keeps_everyone() -> None:
    memory = used()
    memory.begin_execute("a")

    for user in ("u", "v"):
        words = refused(memory, IllegalTransition, lambda user=user: memory.detach(user, "a", 1))  # type: ignore[misc]
        assert "nothing is freed" in words
    memory.end_execute("a")
    memory.detach("u", "a", 1)
    memory.validate()


def test_nobody_executes_on_a_copy_without_users() -> None:
    memory = Memory(Device())
    memory.load("a", model(1), 0, (0,), 0)

    assert "'begin' in state 'idle'" in refused(memory, IllegalTransition, lambda: memory.begin_execute("a"))


def test_time_does_not_go_back() -> None:
    memory = used()
    memory.detach("u", "a", 9)

    with pytest.raises(InvariantError, match="8 ns after one at 9 ns"):
        memory.detach("v", "a", 8)
    assert memory.users("a") == ("v",)


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda m: m.events.pop(), id="a lost event"),
        pytest.param(lambda m: m._copies.clear(), id="a forgotten copy"),
        pytest.param(lambda m: m._copies["a"].users.pop("u"), id="a forgotten user"),
        pytest.param(lambda m: m._copies["a"].executing.update(u=1), id="a graph nobody noted"),
        pytest.param(lambda m: m._room.promised.update({("pd", "x"): 1}), id="a promise to nobody"),
        pytest.param(lambda m: m._ledgers._totals.update(pd=1), id="a wrong total"),
        pytest.param(lambda m: m._ledgers._peaks.update(device=1), id="a peak below what is held"),
    ],
)
def test_validate_finds_damage(damage: Callable[[Memory], object]) -> None:
    memory = used()
    memory.validate()
    damage(memory)

    with pytest.raises(InvariantError):
        memory.validate()


@pytest.mark.parametrize(
    "limits",
    [
        {"dram_budget_bytes": 11},
        {"pd_bytes": 11},
        {"host_budget_bytes": 9},
        {"contexts_per_process": 0},
        {"pd_count": 0},
    ],
    ids=str,
)
def test_validate_finds_more_than_a_limit(limits: dict[str, Any]) -> None:
    memory = used()
    memory.device = memory._room.device = Device(**limits)

    with pytest.raises(InvariantError):
        memory.validate()


def test_each_model_has_protection_domains_of_its_own() -> None:
    memory = Memory(Device(pd_bytes=10, pd_count=2))
    memory.load("vit", model(2, name="vit"), 0, (0,), now_ns=0)
    memory.load("llm", model(3, 3, name="llm"), 0, (0,), now_ns=0)

    assert [list(pd) for pd in memory.pds()[0, 0]] == [["vit/c0"], ["llm/c0", "llm/c1"]]

    said = refused(memory, CapacityError, lambda: memory.load("asr", model(1, name="asr"), 0, (0,), now_ns=1))
    assert "each holds another model (device.pd_rule by-model): device.pd_count 2" in said


def test_any_model_shares_a_protection_domain_when_the_rule_says_so() -> None:
    memory = Memory(Device(pd_bytes=10, pd_rule="any"))
    memory.load("vit", model(2, name="vit"), 0, (0,), now_ns=0)
    memory.load("llm", model(3, 3, name="llm"), 0, (0,), now_ns=0)

    assert [list(pd) for pd in memory.pds()[0, 0]] == [["vit/c0", "llm/c0", "llm/c1"]]


def test_a_protection_domain_is_any_models_again_once_it_is_empty() -> None:
    memory = Memory(Device(pd_bytes=10, pd_count=1))
    memory.load("vit", model(2, name="vit"), 0, (0,), now_ns=0)
    memory.unload("vit", now_ns=1)

    assert memory.load("llm", model(3, name="llm"), 0, (0,), now_ns=2)[0].pds == (0,)
