"""No rule is broken by any run of the engine, under any policy; and the bounds that are checked are reached."""

from __future__ import annotations

from collections import Counter

import pytest

from htpsim.experiments.check import check_log
from htpsim.invariants import RULES, check_trace
from htpsim.invariants.shares import BOUNDED, backlogs, service, together, worst_gap
from htpsim.invariants.spans import History
from htpsim.sched import POLICIES
from htpsim.sim import simulate
from htpsim.testing import random_backlogged, random_scenario, trace_scenario
from tests.sim.spice import spiced

MANY = 10_000  # traces a policy


def violations(seeds: range, policy: str) -> tuple[Counter[str], int]:
    """Return which rules runs of generated scenarios break, from which seed on, and how many traces were checked."""
    found: Counter[str] = Counter()
    traces = 0
    for seed in seeds:
        report = check_log(simulate(random_scenario(seed, policy)))
        found += Counter(f"{rule}, first at seed {seed}" for rule in report.counts)
        traces += bool(report.checked)
    return found, traces


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
def test_no_run_breaks_a_rule(policy: str) -> None:
    assert violations(range(40), policy) == (Counter(), 40)


@pytest.mark.verify
@pytest.mark.parametrize("policy", POLICIES)
def test_no_run_of_very_many_breaks_a_rule(policy: str, capsys: pytest.CaptureFixture[str]) -> None:
    found, traces = violations(range(MANY), policy)

    with capsys.disabled():
        print(f" {policy}: {traces:,} generated traces checked")
    assert (found, traces) == (Counter(), 10_000)


@pytest.mark.parametrize("policy", POLICIES)
def test_no_backlogged_run_breaks_a_rule(policy: str) -> None:
    for seed in range(8):
        report = check_trace(trace_scenario(random_backlogged(seed, policy, slots=None)))

        assert report.violations == []


@pytest.mark.verify
@pytest.mark.parametrize("policy", POLICIES)
def test_no_backlogged_run_of_many_breaks_a_rule(policy: str) -> None:
    for seed in range(2_000):
        report = check_trace(trace_scenario(random_backlogged(seed, policy, slots=None if seed % 2 else 1)))

        assert report.violations == []


def test_every_rule_is_checked_by_some_generated_run() -> None:
    checked = {name for seed in range(20) for name in check_log(simulate(random_scenario(seed))).checked}
    checked |= set(check_trace(trace_scenario(random_backlogged(0, "sfq"))).checked)
    checked |= {name for seed in range(20) for name in check_log(simulate(spiced(seed))).checked}

    assert checked == set(RULES)


def closest(policy: str, seeds: range) -> float:
    """Return the largest share of the bound on shares that a backlogged run under a policy reaches."""
    best = 0.0
    for seed in seeds:
        trace = trace_scenario(random_backlogged(seed, policy))
        history = History(trace)
        extra = dict(trace.guard.params).get(BOUNDED[policy], 0)
        for lane in history.guard_events:
            accounts = list(backlogs(history, lane).values())
            for i, one in enumerate(accounts):
                for two in accounts[:i]:
                    both = one.weight * two.weight
                    bound = one.longest_ns * two.weight + two.longest_ns * one.weight + extra * both
                    gaps = [worst_gap(service(one, two), *stretch)[0] for stretch in together(one, two)]
                    best = max(best, max(gaps, default=0) / max(1, bound))
    return best


@pytest.mark.slow
@pytest.mark.parametrize("policy", BOUNDED)
def test_the_bound_is_reached_within_a_tenth(policy: str) -> None:
    """A bound that no run comes near would be no test of anything."""
    assert 0.9 <= closest(policy, range(60)) <= 1.0001
