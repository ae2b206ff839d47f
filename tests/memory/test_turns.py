"""Turns at a copy, against what they promise: order, one adapter at a time, nobody forgotten."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htpsim.errors import IllegalTransition, InvariantError
from htpsim.memory import Turns
from htpsim.memory.turns import AWAY


def test_users_of_one_adapter_join_once_it_is_applied() -> None:
    turns = Turns(switches_graphs=False)
    assert turns.ask("a", "x")
    assert not turns.ask("b", "x")  # it is not applied yet
    assert turns.settle() == ("b",)
    assert turns.ask("c", "x")


def test_nobody_goes_past_one_who_waits() -> None:
    turns = Turns(switches_graphs=False)
    assert turns.ask("a", "")
    assert turns.settle() == ()
    assert not turns.ask("b", "x")
    assert not turns.ask("c", "")
    assert turns.leave("a") == ("b",)
    assert turns.leave("b") == ("c",)


def test_with_graph_switching_a_turn_is_one_users() -> None:
    turns = Turns(switches_graphs=True)
    assert turns.ask("a", "")
    assert turns.settle() == ()
    assert not turns.ask("b", "")
    assert turns.leave("a") == ("b",)


def test_a_copy_begins_with_its_first_graphs_and_no_adapter() -> None:
    turns = Turns(switches_graphs=True)
    assert turns.needs("", 0) == (False, False)
    assert turns.needs("x", 1) == (True, True)
    assert turns.needs("x", 1) == (False, False)
    assert Turns(switches_graphs=False).needs("", 1) == (False, False)


def test_asking_twice_and_leaving_without_a_turn_are_refused() -> None:
    turns = Turns(switches_graphs=False)
    turns.ask("a", "x")
    turns.ask("b", "y")
    for user in ("a", "b"):
        with pytest.raises(IllegalTransition, match=f"got 'ask' of '{user}'"):
            turns.ask(user, "x")
    with pytest.raises(IllegalTransition, match="got 'leave' of 'b'"):
        turns.leave("b")


@given(
    st.booleans(),
    st.lists(st.tuples(st.sampled_from(("ask", "leave", "settle")), st.integers(0, 4), st.integers(0, 2)), max_size=60),
)
def test_whoever_asks_is_served_in_order_and_only_with_its_like(
    switches: bool, steps: list[tuple[str, int, int]]
) -> None:
    turns, at_it, line = Turns(switches_graphs=switches), {}, []
    asked: list[str] = []
    served: list[str] = []
    for kind, number, adapter in steps:
        user, now = f"u{number}", ()
        if kind == "ask" and user not in at_it and user not in [other for other, _ in line]:
            line.append((user, adapter))
            asked.append(user)
            now = (user,) if turns.ask(user, str(adapter)) else ()
        elif kind == "leave" and user in at_it:
            del at_it[user]
            now = turns.leave(user)
        elif kind == "settle" and at_it:
            now = turns.settle()
        for who in now:
            assert line[0][0] == who
            at_it[who] = line.pop(0)[1]
            served.append(who)
        turns.validate()
        assert len(set(at_it.values())) <= 1
        assert len(at_it) <= 1 or not switches
        assert at_it or not line  # nobody waits for nobody
    assert served == asked[: len(served)]


def test_who_waits_for_nobody_is_found() -> None:
    turns = Turns(switches_graphs=False)
    assert (turns.ask("a", "x"), turns.ask("b", "y")) == (True, False)
    turns._takers[0].standing = AWAY
    with pytest.raises(InvariantError, match=r"\[\('b', 'y'\)\] wait, and nobody has one"):
        turns.validate()
