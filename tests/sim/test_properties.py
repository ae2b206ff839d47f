"""What must hold of every run, on scenarios over every feature: conservation, causality, limits, no time backwards."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import example, given

from htpsim.results import RunLog
from htpsim.results.columns import (
    DONE,
    DROPPED,
    NEVER,
    PARTS,
    PATH_GENIE,
    QUEUED,
    REFUSED,
    RUNNING,
    SLICES,
    Execute,
    Request,
    Slice,
)
from htpsim.scenario.checks import problems
from htpsim.sim import simulate
from htpsim.spec import PRIORITIES, Scenario
from htpsim.spec.plan import make_plan
from tests.sim.build import executes
from tests.sim.digest import text
from tests.sim.strategies import random_scenario, scenarios, seeded_scenarios

INSTANTS = ("called_ns", "granted_ns", "submitted_ns", "started_ns", "finished_ns", "returned_ns")


@given(scenarios())
def test_generated_scenarios_pass_the_checks_of_scenario_files(scenario: Scenario) -> None:
    assert problems(scenario) == []


@given(seeded_scenarios())
@example(random_scenario(190))
def test_what_holds_of_every_run(scenario: Scenario) -> None:
    log = simulate(scenario, check=True)

    parts_sum(log)
    instants_are_in_order(log)
    requests_are_conserved(log)
    memory_is_conserved(log)
    cores_run_one_thing_at_a_time(log)
    guards_keep_their_slots(log)
    threads_call_one_after_the_other(log)
    nothing_yields_and_resumes_at_once(log)


@pytest.mark.verify
@given(scenarios())
@example(random_scenario(190))
def test_what_holds_of_every_run_at_length(scenario: Scenario) -> None:
    test_what_holds_of_every_run.hypothesis.inner_test(  # type: ignore[attr-defined]
        replace(scenario, run=replace(scenario.run, duration_ns=5_000))
    )


@given(seeded_scenarios())
def test_infinite_bandwidth_is_no_bandwidth_model(scenario: Scenario) -> None:
    device = replace(scenario.device, background_bandwidth=0, core_dram_bandwidth=None)
    without = replace(scenario, device=replace(device, dram_bandwidth=None))
    within = replace(scenario, device=replace(device, dram_bandwidth=2**41))

    assert text(simulate(without)) == text(simulate(within))


@given(seeded_scenarios())
def test_checking_changes_nothing(scenario: Scenario) -> None:
    assert text(simulate(scenario, check=True)) == text(simulate(scenario))


@given(seeded_scenarios())
def test_a_longer_run_begins_like_a_shorter_one(scenario: Scenario) -> None:
    log = simulate(scenario)
    longer = simulate(replace(scenario, run=replace(scenario.run, duration_ns=scenario.run.duration_ns + 137)))
    returned = [row for row in log.executes if Execute._make(row).returned_ns != NEVER]
    plain = [e._replace(released_ns=0) for e in map(Execute._make, longer.executes[: len(returned)])]

    assert plain == [Execute._make(row)._replace(released_ns=0) for row in returned]


def parts_sum(log: RunLog) -> None:
    for e in executes(log):
        parts = [getattr(e, part) for part in PARTS]
        assert min(parts) >= 0
        if e.returned_ns == NEVER:
            continue
        assert sum(parts) == e.returned_ns - e.called_ns
        bandwidth = log.scenario.device.dram_bandwidth or log.scenario.device.core_dram_bandwidth
        assert e.run_ns == e.solo_ns or (bandwidth and e.run_ns > e.solo_ns)
        pieces = [s.end_ns - s.start_ns for s in map(Slice._make, log.slices) if s.execute == e.execute and s.kind == 1]
        assert not pieces or sum(pieces) == e.run_ns


def instants_are_in_order(log: RunLog) -> None:
    for e in executes(log):
        reached = [getattr(e, name) for name in INSTANTS]
        known = [at for at in reached if at != NEVER]
        assert known == sorted(known) == reached[: len(known)]
        assert all(at <= log.end_ns for at in known)
        if e.released_ns != NEVER:
            assert e.released_ns >= e.returned_ns
    numbers = [e.execute for e in executes(log)]
    assert numbers == list(range(len(numbers)))
    called = [e.called_ns for e in executes(log)]
    assert called == sorted(called)
    returned = [Execute._make(row).returned_ns for row in log.executes]
    ended = [at for at in returned if at != NEVER]
    assert ended == sorted(ended) == returned[: len(ended)]


def requests_are_conserved(log: RunLog) -> None:
    states = Counter(Request._make(row).state for row in log.requests)
    assert sum(states[s] for s in (DONE, RUNNING, QUEUED, DROPPED, REFUSED)) == len(log.requests)
    for r in map(Request._make, log.requests):
        assert r.arrived_ns <= log.end_ns
        assert (r.state in (RUNNING, DONE, REFUSED)) == (r.begun_ns != NEVER)
        assert (r.state in (DONE, REFUSED)) == (r.done_ns != NEVER)
        assert r.tokens <= r.output_tokens
        if r.state == DONE and r.client < len(log.scenario.instances) and r.prompt_tokens and r.output_tokens:
            assert r.tokens == r.output_tokens
    yielded = Counter((e.client, e.request) for e in executes(log) if e.token >= 0 and e.returned_ns != NEVER)
    counted = {(r.client, r.request): r.tokens for r in map(Request._make, log.requests) if r.tokens}
    assert counted == dict(yielded)


def memory_is_conserved(log: RunLog) -> None:
    held: Counter[tuple[str, str]] = Counter()
    for event in log.memory:
        held[event.ledger, event.place] += event.delta_bytes
        assert held[event.ledger, event.place] >= 0
    budget = log.scenario.device.dram_budget_bytes
    assert budget is None or held["device", "dram"] <= budget
    assert sum(copy.reserved_bytes for copy in log.copies) <= held["device", "dram"]


def on_the_core(log: RunLog) -> list[tuple[int, int, Execute]]:
    """Return every stretch in which a graphExecute held its cores."""
    pieces: dict[int, list[tuple[int, int]]] = {}
    for s in map(Slice._make, log.slices):
        pieces.setdefault(s.execute, []).append((s.start_ns, s.end_ns))
    found = []
    for e in executes(log):
        if e.started_ns != NEVER:
            end_ns = log.end_ns if e.finished_ns == NEVER else e.finished_ns
            found += [(a, b, e) for a, b in pieces.get(e.execute, [(e.started_ns, end_ns)]) if a < b]
    return found


def cores_run_one_thing_at_a_time(log: RunLog) -> None:
    """Two QNN graphs are never on one core at once, nor is more held than a core has."""
    plan = make_plan(log.scenario)
    graphs = {
        (c.number, g.number): g for c in plan.clients for m in c.models for g in (*m.graphs, *m.prefill, *m.decode)
    }
    cores = log.scenario.device.cores
    stretches = on_the_core(log)
    for core in range(cores):
        here = [
            (a, b, graphs[e.client, e.graph])
            for a, b, e in stretches
            if core in [(e.core + k) % cores for k in range(graphs[e.client, e.graph].width)]
        ]
        for at in {a for a, _, _ in here}:
            together = [g for a, b, g in here if a <= at < b]
            assert sum(g.qnn for g in together) <= 1
            if len(together) > 1:
                assert sum(g.vtcm_bytes for g in together) <= log.scenario.device.vtcm_bytes
                assert sum(g.hvx for g in together) <= log.scenario.device.hvx
                assert sum(g.hmx for g in together) <= log.scenario.device.hmx


def guards_keep_their_slots(log: RunLog) -> None:
    plan = make_plan(log.scenario)
    per_core = log.scenario.guard.slots_per == "core"
    held: dict[tuple[int, int], list[tuple[int, int]]] = {}
    seen: set[tuple[int, int, int]] = set()
    for e in executes(log):
        if e.path != PATH_GENIE or e.granted_ns == NEVER:
            continue
        end_ns = log.end_ns + 1 if e.released_ns == NEVER else e.released_ns
        across = (e.client, e.request, end_ns)
        whole = log.scenario.guard.scope == "request"
        if whole and across in seen:
            continue  # a later graph of a request that holds the slot already
        seen.add(across)
        held.setdefault((plan.clients[e.client].process, e.core if per_core else 0), []).append((e.granted_ns, end_ns))
    for spans in held.values():
        for at in {a for a, _ in spans}:
            assert sum(a <= at < b for a, b in spans) <= plan.slots()


def threads_call_one_after_the_other(log: RunLog) -> None:
    for number in range(len(log.scenario.instances)):
        mine = [e for e in executes(log) if e.client == number]
        assert all(NEVER < before.returned_ns <= after.called_ns for before, after in pairwise(mine))


def nothing_yields_and_resumes_at_once(log: RunLog) -> None:
    """A run that ends is followed by an evict, or by a wait of some length, or by another's run that took no time."""
    no_time_at = {e.started_ns for e in executes(log) if e.started_ns == e.finished_ns}
    stretches: dict[int, list[Slice]] = {}
    for s in map(Slice._make, log.slices):
        stretches.setdefault(s.execute, []).append(s)
    for pieces in stretches.values():
        for one, two in pairwise(pieces):
            assert one.end_ns <= two.start_ns
            if SLICES[one.kind] == "run" and SLICES[two.kind] != "evict":
                assert one.end_ns < two.start_ns or one.end_ns in no_time_at
    assert all(PRIORITIES[e.level] for e in executes(log))
