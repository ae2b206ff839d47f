"""Every built-in policy compiles, and chooses over record arrays what it chooses over Python objects."""

from __future__ import annotations

import random
import types
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from htpsim.rng import mix
from htpsim.sched import POLICIES, Policy, policy_params
from htpsim.sched import guard as rules
from htpsim.sched.lottery import addressed_draw
from htpsim.sched.policy import ACCOUNT_FIELDS, CALL_FIELDS, LANE_FIELDS, NO_DEADLINE
from htpsim.spec.records import record_class, record_dtype

numba = pytest.importorskip("numba", exc_type=ImportError)

pytestmark = [pytest.mark.slow]
# Compiling takes seconds; the policies that do most with integers stand for all in the default run.
IN_DEFAULT_RUN = ("lottery", "quota")
ACCOUNTS, STEPS = 4, 120
PARAMS: dict[str, list[tuple[str, int]]] = {
    "priority": [("ageing_ns", 50)],
    "drr": [("quantum_ns", 7)],
    "lottery": [("compensate", 1)],
    "eevdf": [("slice_ns", 30)],
    "quota": [("period_ns", 200), ("borrow", 2)],
}
OTHER_PARAMS: dict[str, list[tuple[str, int]]] = {
    "priority": [],
    "quota": [("period_ns", 150), ("unit", 1), ("calls", 5), ("idle_over_budget", 1), ("borrow", 0)],
}


@cache
def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function and, in its globals, the functions it calls."""
    names = {
        name: compiled(value) if isinstance(value, types.FunctionType) else value
        for name, value in function.__globals__.items()
        if name in function.__code__.co_names
    }
    return numba.njit(types.FunctionType(function.__code__, {**names, "__builtins__": __builtins__}))


def records(policy: type[Policy], params: list[tuple[str, int]], as_arrays: bool) -> tuple[Any, Any, Any]:
    """Return lane, accounts and calls, as objects or as record arrays."""
    lane_fields = (*LANE_FIELDS, *policy.lane_fields, *policy.params)
    tables = ((lane_fields, 1), ((*ACCOUNT_FIELDS, *policy.account_fields), ACCOUNTS), (CALL_FIELDS, STEPS))
    if as_arrays:
        lanes, accounts, calls = (np.zeros(n, dtype=record_dtype(f)).view(np.recarray) for f, n in tables)
    else:
        lanes, accounts, calls = ([record_class("R", f)() for _ in range(n)] for f, n in tables)
    lane = lanes[0]
    lane.slots, lane.accounts, lane.weight_sum = 2, ACCOUNTS, 1 + 2 + 3 + 4
    for name, value in policy_params(policy, params).items():
        setattr(lane, name, value)
    for i in range(ACCOUNTS):
        rules.open_account(accounts, i, i + 1, i % 3)
    return lane, accounts, calls


def play(policy: type[Policy], state: tuple[Any, Any, Any], run: Callable[[Any], Any]) -> list[int]:
    """Call, grant and release at random with three functions made ready by `run`; return every grant."""
    lane, accounts, calls = state
    wake, pick, charge, timer = (run(f) for f in (policy.wake, policy.pick, policy.charge, policy.timer))
    chance = random.Random(5)
    granted, holding, now_ns, due_ns = [], [], 0, 0
    for j in range(STEPS):
        now_ns += chance.randrange(30)
        if 0 <= due_ns <= now_ns:
            due_ns = timer(lane, accounts, now_ns)
        calls[j].deadline_ns = now_ns + chance.randrange(200) if j % 4 else NO_DEADLINE
        rules.call(lane, accounts, calls, chance.randrange(ACCOUNTS), j, now_ns, wake)
        while holding and (lane.holders == lane.slots or chance.random() < 0.4):
            rules.release(lane, accounts, holding.pop(0), chance.randrange(1, 60), now_ns, charge)
        while rules.can_grant(lane):
            held = [int(a.held) for a in accounts]
            j_granted = rules.grant(lane, accounts, calls, now_ns, pick, wake)
            granted.append(int(j_granted))
            if j_granted == rules.NOBODY:
                break
            holding += [i for i, a in enumerate(accounts) if a.held > held[i]]
    return granted


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n in IN_DEFAULT_RUN else [pytest.mark.verify]) for n in POLICIES]
)
def test_compiled_text_makes_the_same_grants(name: str) -> None:
    policy = POLICIES[name]
    for params in (PARAMS.get(name, []), OTHER_PARAMS.get(name)):
        if params is None:
            continue

        interpreted = play(policy, records(policy, params, as_arrays=False), lambda f: f)
        in_machine_code = play(policy, records(policy, params, as_arrays=True), compiled)

        assert interpreted == in_machine_code
        assert len(set(interpreted)) > STEPS // 2


def test_the_draws_of_the_lottery_are_splitmix64_in_both() -> None:
    draw = compiled(addressed_draw)

    for seed in (0, 1, 2**62 - 1, 123_456_789_012):
        for number in (0, 1, 77, 2**40):
            expected = mix(mix(seed) ^ number) >> 1

            assert addressed_draw(seed, number) == expected
            assert draw(seed, number) == expected
