"""The kernel, interpreted, leaves behind what the reference engine does, to the bit, over every feature."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htpsim.errors import HtpsimError
from htpsim.testing.scenarios import random_scenario as small_scenario
from tests.kernel.compare import differences
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


@given(seed=st.integers(0, 2**32))
def test_over_copies_that_come_and_go(seed: int) -> None:
    assert differences(pressed(spiced(seed), seed)) == []
