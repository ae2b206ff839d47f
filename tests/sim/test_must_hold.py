"""What must hold at every instant of every run: bandwidth, utilisation, time, and what counts as a pre-emption."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from htpsim.device import rules
from htpsim.device.records import FULL_RATE, RUNNING, WORK_SCALE
from htpsim.experiments.trace import trace_of
from htpsim.results import RunResult
from htpsim.results.columns import Execute
from htpsim.sim import simulate
from htpsim.spec import Scenario
from htpsim.spec.plan import make_plan
from tests.sim.digest import digest
from tests.sim.spice import spiced
from tests.sim.strategies import random_scenario

SEEDS = st.integers(0, 2**32)


class Watch:
    """Looks at all that draws bandwidth whenever rates were shared out."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.share, self.seen, self.short = rules.share_rates, 0, 0
        patch.setattr(rules, "share_rates", self)

    def __call__(self, dev: Any, jobs: Any, holders: Any, now_ns: int) -> None:
        self.share(dev, jobs, holders, now_ns)
        drawing = [jobs[holders[k]] for k in range(dev.holders)]
        drawing = [job for job in drawing if job.state == RUNNING and job.demand]
        self.seen += len(drawing) > 1
        self.short += any(job.rate < job.top for job in drawing)
        assert all(1 <= job.rate <= FULL_RATE for job in drawing)
        # One that gets next to nothing still does the least that can be counted; here nobody does.
        assert all(job.rate > 1 for job in drawing)
        if dev.bandwidth:
            assert sum(job.demand * job.rate for job in drawing) <= dev.bandwidth << WORK_SCALE
        for core in range(dev.cores if dev.core_bandwidth else 0):
            here = [job for job in drawing if job.cores >> core & 1]
            assert sum(job.demand * job.rate // job.width for job in here) <= dev.core_bandwidth << WORK_SCALE


@pytest.mark.slow
@pytest.mark.parametrize("make", [random_scenario, spiced])
def test_no_limit_of_bandwidth_is_ever_exceeded(make: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        watch = Watch(patch)
        for seed in range(60):
            simulate(make(seed))
    assert watch.seen > 100  # several drew at once, and
    assert watch.short > 100  # somebody had less than it asked for


@pytest.mark.slow
@given(SEEDS)
def test_with_bandwidth_without_end_a_run_is_what_it_is_without_the_model(seed: int) -> None:
    scenario = spiced(seed)

    def at(bandwidth: int | None) -> Scenario:
        given = {"background_bandwidth": 0, "background_on_ns": 0, "background_off_ns": 0}
        return replace(
            scenario,
            device=replace(scenario.device, dram_bandwidth=bandwidth, core_dram_bandwidth=bandwidth, **given),
        )

    endless, none = at(1 << 40), at(None)
    # A graph that takes no time and reads bytes takes the least time that can be counted, at any bandwidth.
    assume(times_alone(endless) == times_alone(none))
    assert digest(simulate(endless)) == digest(simulate(none))


def times_alone(scenario: Scenario) -> list[list[int]]:
    models = [model for client in make_plan(scenario).clients for model in client.models]
    return [graph.solo_ns.tolist() for model in models for graph in model.all_graphs]


@pytest.mark.slow
@given(SEEDS)
def test_no_core_is_overused_no_time_goes_back_and_who_stays_was_not_preempted(seed: int) -> None:
    log = simulate(spiced(seed))
    events = trace_of(log).events
    rows = list(map(Execute._make, log.executes))

    assert all((core.utilisation.value or 0) <= 1 for core in RunResult(log).summary().cores.values())
    for row in rows:
        instants = [row.called_ns, row.granted_ns, row.submitted_ns, row.started_ns, row.finished_ns, row.returned_ns]
        come = [at_ns for at_ns in instants if at_ns >= 0]
        assert come == sorted(come)
    times = [event.time_ns for event in events]
    assert times == sorted(times)
    calls = [event.execute for event in events if event.kind == "call"]
    assert calls == sorted(calls)  # as they were made, within an instant too
    yielded: dict[int, int] = {}
    evictions: dict[int, int] = {}
    for event in events:
        if event.kind == "yield":
            yielded[event.execute] = event.time_ns
        elif event.kind == "freed":
            evictions[event.execute] = evictions.get(event.execute, 0) + 1
        elif event.kind == "resume":
            assert event.time_ns > yielded[event.execute]  # nothing yields and resumes in one instant
    assert {row.execute: row.evictions for row in rows if row.evictions} == evictions
