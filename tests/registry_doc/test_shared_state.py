"""What two users of one copy may share and what not, over every order of their steps: I/O buffers, adapters."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.registry_doc.interleave import ACQUIRE, RELEASE, Step, orders

USERS = ("a", "b")


def images_got(order: Sequence[Step], *, own_io: bool) -> dict[str, str]:
    """Return whose image each user reads the embedding of: it writes, executes and reads at its I/O buffer."""
    inputs: dict[str, str] = {}
    outputs: dict[str, str] = {}
    got = {}
    for user, what in order:
        buffer = user if own_io else "the one of the copy"
        if what == "write":
            inputs[buffer] = user
        elif what == "execute":
            outputs[buffer] = inputs[buffer]
        elif what == "read":
            got[user] = outputs[buffer]
    return got


def adapters_run(order: Sequence[Step]) -> dict[str, str]:
    """Return whose adapter each user's graph ran with: a copy has one, that which was applied last."""
    applied, ran = "", {}
    for user, what in order:
        if what == "apply":
            applied = user
        elif what == "execute":
            ran[user] = applied
    return ran


def wrong(results: list[dict[str, str]]) -> int:
    """Count the orders in which a user got what was another's."""
    assert results
    assert all(len(result) == len(USERS) for result in results)
    return sum(any(user != whose for user, whose in result.items()) for result in results)


AROUND_EXECUTE = ["write", ACQUIRE, "execute", RELEASE, "read"]
AROUND_ALL = [ACQUIRE, "write", "execute", "read", RELEASE]


@pytest.mark.parametrize("steps", [AROUND_EXECUTE, AROUND_ALL])
def test_with_io_of_its_own_every_user_reads_its_own_image(steps: list[str]) -> None:
    assert wrong([images_got(order, own_io=True) for order in orders(dict.fromkeys(USERS, steps))]) == 0


def test_with_one_io_for_the_copy_a_guard_around_execute_does_not_keep_images_apart() -> None:
    """The planted fault: a borrower that uses the I/O table of whoever loaded. A guard with one slot does not help."""
    found = [images_got(order, own_io=False) for order in orders(dict.fromkeys(USERS, AROUND_EXECUTE))]

    assert wrong(found) > len(found) / 2
    assert {"a": "b", "b": "b"} in found


def test_with_one_io_for_the_copy_only_a_guard_around_all_of_it_would() -> None:
    found = [images_got(order, own_io=False) for order in orders(dict.fromkeys(USERS, AROUND_ALL))]

    assert (len(found), wrong(found)) == (2, 0), "one after the other"


def test_an_adapter_applied_before_the_guard_may_run_under_the_graph_of_another() -> None:
    """The planted fault: apply, then wait for the guard, then execute with what somebody else has applied since."""
    steps = ["apply", ACQUIRE, "execute", RELEASE]
    found = [adapters_run(order) for order in orders(dict.fromkeys(USERS, steps))]

    assert wrong(found) > 0
    assert {"a": "b", "b": "b"} in found


def test_an_adapter_applied_while_the_guard_is_held_is_the_one_that_runs() -> None:
    steps = [ACQUIRE, "apply", "execute", RELEASE]

    assert wrong([adapters_run(order) for order in orders(dict.fromkeys(USERS, steps))]) == 0


def test_with_a_second_slot_not_even_that_is_enough() -> None:
    """Only a copy each, that is, an adapter in the key, is right under every guard."""
    steps = [ACQUIRE, "apply", "execute", RELEASE]

    assert wrong([adapters_run(order) for order in orders(dict.fromkeys(USERS, steps), slots=2)]) > 0
