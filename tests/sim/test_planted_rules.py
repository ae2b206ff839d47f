"""Break each of the rarer rules in the engine, and see the invariants name it on the generated corpus."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from htpsim.device import admission, holding, rates, rules
from htpsim.device.records import FULL_RATE
from htpsim.experiments.trace import trace_of
from htpsim.invariants import check_trace
from htpsim.memory import turns
from htpsim.sim import runtime, simulate
from tests.sim.spice import spiced

SEEDS = 120
"""Scenarios that are tried for one bug."""


def never_throttled(*about: Any) -> None:
    """Let no core slow down."""


def never_woken(dev: Any, job: Any) -> int:
    return int(dev.rpc_return_ns)


def warm_as_cold(dev: Any, core: Any, idle_ns: int) -> int:
    core.cold = 0
    return int(dev.power_up_ns)


def full_rate(dev: Any, jobs: Any, holders: Any) -> None:
    for k in range(dev.holders):
        jobs[holders[k]].top = FULL_RATE


def everybody_at_once(*about: Any) -> bool:
    return True


_may_join = admission.may_join


def any_level(dev: Any, job: Any) -> bool:
    graphs = dev.parallel and job.qnn and dev.taken_qnn and job.pd == dev.taken_pd
    return bool(graphs) or _may_join(dev, job)


BUGS: list[tuple[Any, str, Callable[..., Any], str]] = [
    (rules, "slow_down", never_throttled, "work"),
    (runtime, "return_ns", never_woken, "answers"),
    (holding, "power_up", warm_as_cold, "device-costs"),
    (rates, "share_cores", full_rate, "work"),
    (rates, "set_bandwidth", never_throttled, "work"),
    (turns, "may_begin", everybody_at_once, "adapters"),
    (admission, "may_join", any_level, "core-exclusion"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("where", "name", "bug", "rule"), BUGS, ids=[f"{name}: {rule}" for _, name, _, rule in BUGS])
def test_a_planted_bug_is_named(where: Any, name: str, bug: Callable[..., Any], rule: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(where, name, bug)
        found = (check_trace(trace_of(simulate(spiced(seed)))).counts for seed in range(SEEDS))
        assert any(rule in counts for counts in found)
