"""A core that has been busy for long stretches the work that starts on it, whose bytes then come the more slowly."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from htpsim.device.holding import slow_down
from htpsim.device.records import FULL_RATE


def slowed(now_ns: int, work_ns: int = 10, demand: int = 0, stretch: int = 1500) -> Any:
    """Return a job that starts on a core busy for 30 ns before, and since 100, throttled after 50."""
    cores = [SimpleNamespace(busy_ns=0, busy_since_ns=now_ns), SimpleNamespace(busy_ns=30, busy_since_ns=100)]
    job = SimpleNamespace(core=1, work=work_ns * FULL_RATE, left=0, demand=demand)
    slow_down(SimpleNamespace(throttle_after_ns=50, throttle_stretch=stretch), cores, job, now_ns)
    return job


def test_a_core_is_throttled_from_the_very_instant() -> None:
    assert slowed(119).work == 10 * FULL_RATE
    assert slowed(120).work == slowed(120).left == 15 * FULL_RATE


@pytest.mark.parametrize("demand", [1, 2, 999, 1007, 1500, 123_456_789])
@pytest.mark.parametrize("stretch", [1001, 1500, 3000])
def test_work_and_demand_are_stretched_alike(demand: int, stretch: int) -> None:
    job = slowed(120, 7, demand, stretch)

    assert job.work == 7 * stretch // 1000 * FULL_RATE
    assert job.demand == max(1, demand * 1000 // stretch)


def test_who_asks_for_no_bandwidth_still_asks_for_none() -> None:
    assert slowed(120).demand == 0
