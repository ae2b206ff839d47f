from __future__ import annotations

import pytest

from htpsim.errors import IllegalTransition, InvariantError
from htpsim.memory import Outcome, Registry, Role
from htpsim.memory.registry import State

KEY = ("vit", "", 0)
OTHER = ("vit", "", 1)


def ready(*users: str) -> Registry:
    """Return a registry in which the first user owns KEY and the others borrow it."""
    registry = Registry()
    registry.get_or_create(KEY, users[0])
    registry.loaded(KEY)
    for user in users[1:]:
        registry.get_or_create(KEY, user)
    return registry


def refused(registry: Registry, what: str, *args: object) -> str:
    """Return the words of a refusal, having checked that it changed nothing."""
    before = (registry.users(KEY), registry.state(KEY), [registry.role(KEY, u) for u in "abc"], registry.story(KEY))
    with pytest.raises(IllegalTransition) as refusal:
        getattr(registry, what)(*args)
    after = (registry.users(KEY), registry.state(KEY), [registry.role(KEY, u) for u in "abc"], registry.story(KEY))
    assert after == before
    registry.validate()
    return str(refusal.value)


def test_the_first_loads_the_second_waits_and_a_later_one_shares() -> None:
    registry = Registry()

    assert registry.get_or_create(KEY, "a") is Outcome.LOAD
    assert registry.get_or_create(KEY, "b") is Outcome.WAIT
    assert registry.state(KEY) is State.LOADING
    assert registry.users(KEY) == ("a", "b")
    assert registry.loaded(KEY) == ("b",)
    assert registry.get_or_create(KEY, "c") is Outcome.SHARE
    assert [registry.role(KEY, user) for user in "abcd"] == [Role.OWNER, Role.BORROWER, Role.BORROWER, Role.STRANGER]


def test_waiters_wake_in_the_order_in_which_they_came() -> None:
    registry = Registry()
    for user in ("z", "b", "y", "a"):
        registry.get_or_create(KEY, user)

    assert registry.loaded(KEY) == ("b", "y", "a")


def test_keys_have_nothing_to_do_with_each_other() -> None:
    registry = Registry()
    registry.get_or_create(KEY, "a")

    assert registry.get_or_create(OTHER, "a") is Outcome.LOAD
    assert registry.loaded(OTHER) == ()
    assert registry.state(KEY) is State.LOADING


def test_the_context_stays_when_the_owner_leaves_first() -> None:
    registry = ready("a", "b", "c")

    assert registry.release(KEY, "a") is False
    assert registry.state(KEY) is State.READY
    assert registry.users(KEY) == ("b", "c")
    assert registry.get_or_create(KEY, "a") is Outcome.SHARE
    registry.validate()


def test_only_the_last_release_says_unload_and_the_next_caller_loads_anew() -> None:
    registry = ready("a", "b")

    assert [registry.release(KEY, user) for user in "ab"] == [False, True]
    assert registry.state(KEY) is State.ABSENT
    assert registry.get_or_create(KEY, "b") is Outcome.LOAD


def test_a_failed_load_leaves_nothing_and_tells_everyone_the_same() -> None:
    registry = Registry()
    for user in "abc":
        registry.get_or_create(KEY, user)

    assert registry.failed(KEY, "no room") == ("b", "c")
    assert registry.users(KEY) == ()
    assert registry.state(KEY) is State.ABSENT
    assert [registry.failure(KEY, user) for user in "abcd"] == ["no room", "no room", "no room", None]
    registry.validate()


def test_a_failure_is_forgotten_when_its_user_asks_again() -> None:
    registry = Registry()
    for user in "ab":
        registry.get_or_create(KEY, user)
    registry.failed(KEY, "no room")

    assert registry.get_or_create(KEY, "a") is Outcome.LOAD
    assert registry.failure(KEY, "a") is None
    assert registry.failure(KEY, "b") == "no room"


def test_releasing_twice_is_refused_with_the_story() -> None:
    registry = ready("a", "b")
    registry.release(KEY, "b")

    words = refused(registry, "release", KEY, "b")

    for part in (str(KEY), "user 'b'", "'release'", "'stranger'", "share by b: ready -> ready", "release by b"):
        assert part in words


def test_releasing_twice_is_refused_even_when_the_entry_is_gone() -> None:
    registry = ready("a")
    registry.release(KEY, "a")

    assert "last release by a: ready -> absent" in refused(registry, "release", KEY, "a")


@pytest.mark.parametrize("user", ["a", "b"])
def test_nobody_leaves_during_the_load(user: str) -> None:
    registry = Registry()
    for each in "ab":
        registry.get_or_create(KEY, each)

    assert "'release'" in refused(registry, "release", KEY, user)


def test_nothing_is_freed_while_a_graph_executes() -> None:
    registry = ready("a", "b")
    for _ in range(2):
        registry.begin_execute(KEY, "a")

    assert "nothing is freed while a graph executes, and 2 of 'a' do" in refused(registry, "release", KEY, "a")
    assert registry.release(KEY, "b") is False
    registry.end_execute(KEY, "a")
    refused(registry, "release", KEY, "a")
    registry.end_execute(KEY, "a")
    assert registry.release(KEY, "a") is True


@pytest.mark.parametrize(
    ("what", "args", "words"),
    [
        ("get_or_create", (KEY, "a"), "'share' in state 'owner'"),
        ("get_or_create", (KEY, "b"), "'share' in state 'borrower'"),
        ("loaded", (KEY,), "no load is in flight"),
        ("failed", (KEY, "why"), "no load is in flight"),
        ("release", (KEY, "c"), "'release' in state 'stranger'"),
        ("begin_execute", (KEY, "c"), "'begin' in state 'stranger'"),
        ("end_execute", (KEY, "c"), "'end' in state 'stranger'"),
        ("end_execute", (KEY, "a"), "no graph of it executes"),
        ("copy_number", (KEY, "c"), "has no copy"),
    ],
)
def test_what_a_ready_copy_refuses(what: str, args: tuple[object, ...], words: str) -> None:
    assert words in refused(ready("a", "b"), what, *args)


@pytest.mark.parametrize(
    ("what", "args", "words"),
    [
        ("get_or_create", (KEY, "a"), "'wait' in state 'loader'"),
        ("get_or_create", (KEY, "b"), "'wait' in state 'waiter'"),
        ("begin_execute", (KEY, "a"), "'begin' in state 'loader'"),
        ("end_execute", (KEY, "b"), "'end' in state 'waiter'"),
        ("loaded", (KEY, "b"), "no load by 'b' is in flight"),
        ("loaded", (OTHER,), "in state 'absent'"),
    ],
)
def test_what_a_loading_copy_refuses(what: str, args: tuple[object, ...], words: str) -> None:
    registry = Registry()
    for user in "ab":
        registry.get_or_create(KEY, user)

    assert words in refused(registry, what, *args)


def test_without_waiting_a_second_caller_loads_a_copy_of_its_own() -> None:
    registry = Registry(waits_for_load=False)

    assert [registry.get_or_create(KEY, user) for user in "ab"] == [Outcome.LOAD, Outcome.LOAD]
    assert [registry.copy_number(KEY, user) for user in "ab"] == [0, 1]
    assert registry.loaded(KEY, "b") == ()
    assert [registry.role(KEY, user) for user in "ab"] == [Role.LOADER, Role.OWNER]
    assert registry.get_or_create(KEY, "c") is Outcome.SHARE
    assert registry.copy_number(KEY, "c") == 1
    assert registry.loaded(KEY) == ()
    registry.validate()

    assert registry.release(KEY, "b") is False
    assert registry.release(KEY, "a") is True
    assert registry.release(KEY, "c") is True
    assert registry.state(KEY) is State.ABSENT


def test_without_waiting_one_failed_load_leaves_the_other() -> None:
    registry = Registry(waits_for_load=False)
    for user in "ab":
        registry.get_or_create(KEY, user)

    assert registry.failed(KEY, "no room", "a") == ()
    assert registry.users(KEY) == ("b",)
    assert registry.failure(KEY, "b") is None
    assert registry.get_or_create(KEY, "a") is Outcome.LOAD
    assert registry.copy_number(KEY, "a") == 2
    registry.validate()


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda copies: copies[0].roles.clear(), id="no users"),
        pytest.param(lambda copies: copies[0].roles.update(a=Role.WAITER), id="waiter of a ready copy"),
        pytest.param(lambda copies: copies[0].roles.update(b=Role.OWNER), id="two owners"),
        pytest.param(lambda copies: copies[0].executing.update(x=1), id="a stranger executes"),
        pytest.param(lambda copies: copies[0].executing.update(a=0), id="executes zero graphs"),
        pytest.param(lambda copies: setattr(copies[0], "state", State.LOADING), id="loading without loader"),
        pytest.param(lambda copies: copies.append(copies[0]), id="two copies"),
        pytest.param(lambda copies: copies.clear(), id="entry without copies"),
    ],
)
def test_validate_finds_damage(damage: object) -> None:
    registry = ready("a", "b")
    registry.validate()
    damage(registry._copies[KEY])  # type: ignore[operator]

    with pytest.raises(InvariantError, match="registry key"):
        registry.validate()
