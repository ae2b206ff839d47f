"""What registry, ledgers, loads and turns say of a refusal or of damage, to the letter: a reader has nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from htpsim.errors import CapacityError, IllegalTransition, InvariantError, ScenarioError
from htpsim.memory import Memory
from htpsim.memory.ledger import Ledgers, Taking
from htpsim.memory.loading import Loading
from htpsim.memory.registry import Registry, Role
from htpsim.memory.turns import AT_IT, AWAY, IN_LINE, Turns
from htpsim.spec import Context, Device, Model

KEY = ("vit", "", 0)
ABOUT = "registry key ('vit', '', 0)"
STORY = "(story: load by a: absent -> loading; wait by b: loading -> loading)"


def asked() -> Registry:
    """One loads, one waits."""
    registry = Registry()
    registry.get_or_create(KEY, "a")
    registry.get_or_create(KEY, "b")
    return registry


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda r: r.loaded(KEY, "b"),
            f"{ABOUT}: got 'loaded' in state 'loading', no load by 'b' is in flight {STORY}",
        ),
        (
            lambda r: r.loaded(("llm",)),
            "registry key ('llm',): got 'loaded' in state 'absent', no load is in flight (story: nothing happened yet)",
        ),
        (
            lambda r: r.get_or_create(KEY, "a"),
            f"{ABOUT}, user 'a': got 'wait' in state 'loader', expected loaded or failed {STORY}",
        ),
        (
            lambda r: r.release(KEY, "b"),
            f"{ABOUT}, user 'b': got 'release' in state 'waiter', expected loaded or failed {STORY}",
        ),
        (lambda r: r.copy_number(KEY, "c"), f"{ABOUT}, user 'c': has no copy {STORY}"),
    ],
    ids=["not the loader", "no load", "has it", "still waits", "a stranger"],
)
def test_a_refusal_names_key_user_state_and_story(call: Callable[[Registry], object], words: str) -> None:
    registry = asked()

    with pytest.raises(IllegalTransition) as refusal:
        call(registry)

    assert str(refusal.value) == words
    assert (registry.users(KEY), registry.role(KEY, "a"), registry.role(KEY, "b")) == (
        ("a", "b"), Role.LOADER, Role.WAITER,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda r: r._copies.update({KEY: []}), f"{ABOUT}: has copies []"),
        (lambda r: r._copies[KEY].append(r._copies[KEY][0]), f"{ABOUT}: has copies [0, 0]"),
        (
            lambda r: r._failures.update({(KEY, "b"): "no room"}),
            f"{ABOUT}: a user counts twice or was told of a failure: ('a', 'b')",
        ),
        (lambda r: r._copies[KEY][0].roles.pop("a"), f"{ABOUT}: copy 0 is loading with "),
        (lambda r: r._copies[KEY][0].executing.update(a=1), f"{ABOUT}: copy 0 is loading with "),
        (lambda r: setattr(r, "waits_for_load", False), f"{ABOUT}: copy 0 is loading with "),
    ],
    ids=["no copy", "two of one number", "told of a failure", "no loader", "executes early", "should not wait"],
)
def test_damage_to_a_registry_is_found_and_named(damage: Callable[[Registry], object], words: str) -> None:
    registry = asked()
    registry.validate()
    damage(registry)

    with pytest.raises(InvariantError) as found:
        registry.validate()

    assert str(found.value).startswith(words)


def test_damage_to_ledgers_is_found_and_named() -> None:
    ledgers = Ledgers()
    ledgers.take(3, Taking("host", "host", "file", 5))
    with pytest.raises(InvariantError, match=r"^host ledger, host: file gives 6 B of 5 B$"):
        ledgers.give(3, Taking("host", "host", "file", 6))
    with pytest.raises(InvariantError, match=r"^memory: change at 2 ns after one at 3 ns$"):
        ledgers.take(2, Taking("host", "host", "file", 5))
    ledgers.validate()

    ledgers._totals["host"] = 6
    with pytest.raises(InvariantError, match=r"^host ledger: held 5, total 6, peak 5$"):
        ledgers.validate()
    ledgers.events.append((3, "host", "host", "file", 1))
    with pytest.raises(InvariantError, match=r"^memory events sum to .*'file': 6.*, held is .*'file': 5.*[^X]$"):
        ledgers.validate()


def test_damage_to_loads_is_found_and_named() -> None:
    loading = Loading(10)
    loading.start(4, 2, 7)
    loading.validate()
    with pytest.raises(InvariantError, match=r"^loading: asked about 6 ns after 7 ns$"):
        loading.finish(6)
    loading._left[4] = -1
    with pytest.raises(InvariantError, match=r"^load 4: -1 byte-ns left at bandwidth 10$"):
        loading.validate()
    untimed = Loading(None)
    untimed._left[5] = 1
    with pytest.raises(InvariantError, match=r"^load 5: 1 byte-ns left at bandwidth None$"):
        untimed.validate()


def test_turns_refuse_to_the_letter() -> None:
    turns = Turns(switches_graphs=True)
    turns.ask("a", "x")
    turns.ask("b", "x")
    turns.validate()
    for user in "ab":
        with pytest.raises(IllegalTransition) as again:
            turns.ask(user, "x")
        assert str(again.value) == f"turns: got 'ask' of '{user}', which has or awaits one, expected 'leave'"
    with pytest.raises(IllegalTransition) as early:
        turns.leave("b")
    assert str(early.value) == "turns: got 'leave' of 'b', which has no turn, expected 'ask'"

    first, second = turns._takers
    second.standing = AT_IT
    with pytest.raises(InvariantError, match=r"^turns: \{'a': 'x', 'b': 'x'\} have one at the same time$"):
        turns.validate()
    turns._record.switches_graphs = 0
    turns.validate()
    second.adapter = 0
    with pytest.raises(InvariantError, match=r"^turns: \{'a': 'x', 'b': ''\} have one at the same time$"):
        turns.validate()
    first.standing, second.standing = AWAY, IN_LINE
    with pytest.raises(InvariantError, match=r"^turns: \[\('b', ''\)\] wait, and nobody has one$"):
        turns.validate()


def test_a_copy_refuses_to_the_letter() -> None:
    memory = Memory(Device())
    memory.load("x", Model(name="m", role="other", contexts=(Context(name="c", weights_bytes=4),)), 0, (0,), 0)
    for user in ("a", "b"):
        memory.attach(user, "x", 0, 0)
    story = "(story: load by x: absent -> idle; attach by a: idle -> used; attach by b: used -> used)"
    refusals: list[tuple[Callable[[], object], str]] = [
        (lambda: memory.attach("a", "x", 0, 0), "got 'attach' in state 'used', 'a' is attached"),
        (lambda: memory.detach("c", "x", 0), "got 'detach' in state 'used', 'c' is not attached"),
        (lambda: memory.begin_execute("x", "c"), "got 'begin' in state 'used', 'c' is not attached"),
    ]
    executing: list[tuple[Callable[[], object], str]] = [
        (lambda: memory.end_execute("x", "b"), "got 'last end' in state 'executing', no graph of 'b' executes"),
        (
            lambda: memory.detach("a", "x", 0),
            "got 'detach' in state 'executing', nothing is freed while a graph executes",
        ),
    ]
    for call, words in refusals:
        with pytest.raises(IllegalTransition) as refusal:
            call()
        assert str(refusal.value) == f"copy 'x': {words} {story}"
    memory.begin_execute("x", "a")
    for call, words in reversed(executing):
        with pytest.raises(IllegalTransition) as refusal:
            call()
        assert str(refusal.value) == f"copy 'x': {words} {story}"


def test_memory_may_be_as_full_as_its_limits_and_no_fuller() -> None:
    memory = Memory(Device())
    parts = tuple(Context(name=name, weights_bytes=4) for name in "cd")
    memory.load("x", Model(name="m", role="other", contexts=parts), 0, (0,), 0)
    memory.device = Device(contexts_per_process=2, pd_count=1)
    memory.validate()

    memory.device = Device(contexts_per_process=1, pd_count=1)
    with pytest.raises(InvariantError, match=r"^process 0: holds 2 contexts$"):
        memory.validate()
    memory.device = Device(pd_count=0)
    with pytest.raises(InvariantError, match=r"^more PDs than 0 are open: \{\(0, 0\): 1\}$"):
        memory.validate()


def test_one_name_for_two_files_is_refused_to_the_letter() -> None:
    memory = Memory(Device())
    small, large = (
        Model(name="m", role="other", contexts=(Context(name="c", weights_bytes=size),), load="mmap") for size in (4, 5)
    )
    memory.load("x", small, 0, (0,), 0)

    with pytest.raises(ScenarioError) as refusal:
        memory.load("y", large, 0, (0,), 0)

    assert str(refusal.value) == (
        "model 'm', context 0 'c' of copy 'y': its file has 5 B, but a model of that name is mapped with 4 B; "
        "models with one name must be the same files"
    )


def test_a_kv_cache_without_contexts_is_named() -> None:
    model = Model(name="m", role="llm", kv_bytes=9)

    with pytest.raises(
        CapacityError, match=r"^model 'm', KV cache on 'x': no room in dram: device\.dram_budget_bytes 8 B"
    ):
        Memory(Device(dram_budget_bytes=8)).load("x", model, 0, (0,), 0)


def test_the_peak_of_init_stands_in_the_ledger_under_its_context() -> None:
    memory = Memory(Device())
    part = Context(name="c", weights_bytes=4, load_bytes=3)
    memory.load("x", Model(name="m", role="other", contexts=(part,)), 0, (0,), 0)

    assert {(ledger, item): count for _, ledger, _, item, count in memory.events if count == 3} == {
        ("device", "x/c init"): 3,
        ("pd", "x/c init"): 3,
    }


def test_all_users_and_one_not_named_may_execute_at_once() -> None:
    memory = Memory(Device())
    memory.load("x", Model(name="m", role="other"), 0, (0,), 0)
    memory.attach("a", "x", 0, 0)
    for user in ("a", ""):
        memory.begin_execute("x", user)
        memory.validate()
