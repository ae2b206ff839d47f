"""A run without records tells the same as one with them, as far as it tells."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htpsim.kernel import NeedsReference, tally
from htpsim.results.run import RunResult
from htpsim.results.samples import MEASURES, of_client
from htpsim.results.tally import TALLIED, Tally
from htpsim.sim import simulate
from htpsim.sim.loads import load_alone
from htpsim.spec import Run, Scenario
from htpsim.spec.plan import make_plan
from tests.sim.build import PLAIN, UNIFORM, closed, instance, llm, other, vit
from tests.sim.spice import pressed, spiced
from tests.sim.strategies import random_scenario

pytestmark = pytest.mark.slow


def tally_of(scenario: Scenario, *, compiled: bool = False) -> Tally | None:
    plan = make_plan(scenario)
    try:
        return tally(plan, load_alone(plan), compiled=compiled)
    except NeedsReference:
        return None


@given(seed=st.integers(0, 2**32))
def test_counts_and_sums_are_exact_and_quantiles_within_their_bin(seed: int) -> None:
    scenario = pressed(spiced(seed), seed) if seed % 2 else random_scenario(seed)
    found = tally_of(scenario)
    if found is None:
        return
    tables = RunResult(simulate(scenario)).tables
    executes, requests = tables.executes, tables.requests
    for number, (name, client) in enumerate(found.clients.items()):
        mine = tables.returned & (executes["client"] == number)
        assert client.calls == mine.sum(), name
        assert client.guard_wait_ns == executes["guard_wait_ns"][mine].sum()
        assert client.device_wait_ns == executes["device_wait_ns"][mine].sum()
        states = requests["state"][requests["client"] == number]
        assert (client.done, client.dropped, client.refused) == tuple((states == s).sum() for s in (2, 3, 4))
        for measure in TALLIED:
            values = np.sort(of_client(MEASURES[measure](tables), number))
            latency = client.latencies[measure]
            assert (latency.count, latency.total_ns) == (len(values), values.sum()), (name, measure)
            if not len(values):
                assert latency.quantile_ns(50) is None
                continue
            assert (latency.least_ns, latency.most_ns) == (values[0], values[-1])
            for percent in (1, 50, 95, 99, 100):
                low, high = latency.quantile_ns(percent) or (0, 0)
                assert low <= values[max(1, -(-len(values) * percent // 100)) - 1] <= high
                assert high - low <= low / 128


def test_its_memory_does_not_grow_with_time() -> None:
    scenario = Scenario(
        device=PLAIN,
        run=Run(duration_ns=20_000),
        instances=(instance("vlm0", vit=vit(5), llm=llm((3,), (2,)), arrivals=closed(10), output_tokens=UNIFORM),),
        clients=(other("busy", 7, arrivals=closed(5)),),
    )
    plan = make_plan(scenario)
    from htpsim.kernel.engine import run
    from htpsim.kernel.keeping import Keeping
    from htpsim.kernel.layout import Layout
    from htpsim.kernel.store import Store
    from htpsim.sched import policy_class

    sizes = []
    for times in (1, 10):
        longer = replace(plan, scenario=replace(scenario, run=Run(duration_ns=20_000 * times)))
        loaded = load_alone(plan)
        store = Store(Layout(longer, loaded, 0, policy_class("sfq"), keeps=False))
        run(store, Keeping(store, plan, loaded))
        sizes.append((store.state.requests, store.state.rows, len(store.world.requests), len(store.world.heap)))

    assert sizes[0] == sizes[1]
    assert sizes[0][1] == 0
