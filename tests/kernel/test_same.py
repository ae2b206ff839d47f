"""The kernel, interpreted, leaves behind what the reference engine does, to the bit, over every feature."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htpsim.errors import HtpsimError
from htpsim.testing.scenarios import random_scenario as small_scenario
from tests.kernel.compare import differences, reference, run_kernel
from tests.sim.spice import pressed, spiced
from tests.sim.strategies import random_scenario

pytestmark = pytest.mark.slow


@given(seed=st.integers(0, 2**32))
def test_over_every_feature(seed: int) -> None:
    assert differences(random_scenario(seed)) == []


@given(seed=st.integers(0, 2**32), replication=st.integers(0, 3))
def test_over_every_policy_and_its_parameters(seed: int, replication: int) -> None:
    try:
        scenario = small_scenario(seed)
    except HtpsimError:
        return

    assert differences(scenario, replication) == []


@given(seed=st.integers(0, 2**32))
def test_over_what_is_off_by_default(seed: int) -> None:
    assert differences(spiced(seed)) == []


def test_stretches_are_in_one_order_in_either_engine() -> None:
    """By graphExecute, begin, end and kind: also those that take no time stand in one order."""
    count = 0
    for seed in range(40):
        for log in (reference(random_scenario(seed)), run_kernel(random_scenario(seed))):
            rows = list(log.slices) if log is not None else []
            assert rows == sorted(rows, key=lambda row: (row[0], row[2], row[3], row[1]))
            count += len(rows)
    assert count > 50


@given(seed=st.integers(0, 2**32))
def test_over_copies_that_come_and_go(seed: int) -> None:
    assert differences(pressed(spiced(seed), seed)) == []
