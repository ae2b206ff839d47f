"""Which policy explains a trace: the one that made it, and no other where they differ."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from htpsim.experiments.explain import explain_policy
from htpsim.formats.trace import write_trace
from htpsim.invariants import Trace, explain
from htpsim.invariants.explain import Recorded, _Replay, grid
from htpsim.invariants.spans import History
from htpsim.sched import POLICIES, guard
from htpsim.testing import random_backlogged, random_scenario, trace_scenario
from tests.invariants.hand import fifo, guarded, trace


@pytest.mark.parametrize("policy", POLICIES)
def test_the_policy_that_made_the_grants_explains_all_of_them(policy: str) -> None:
    choices = 0
    for seed in range(6):
        for scenario in (random_backlogged(seed, policy), random_scenario(seed, policy)):
            found = explain(trace_scenario(scenario), {policy: POLICIES[policy]})
            choices += found.choices
            assert all(fit.made == found.choices for fit in found.fits)
            assert found.unexplained == [] or not found.fits

    assert choices > 50


def test_another_policy_explains_less() -> None:
    for made in ("sfq", "lottery", "priority"):
        fits = explain(trace_scenario(random_backlogged(4, made, slots=1))).fits

        assert fits[0].policy == made
        assert fits[0].made > fits[-1].made


def test_the_simplest_of_several_is_named() -> None:
    """First come, first served, with equal weights: several policies would have done the same."""
    found = explain(trace(*[guarded(n, 10 * n, 10 * n + 10) for n in range(6)], guard=fifo(1, *[1] * 6)))

    assert found.fits[0].policy == "fifo"
    assert found.fits[0].made == found.choices == 4
    assert {"edf", "priority"}.isdisjoint(fit.policy for fit in found.fits)


def test_a_grant_that_no_policy_makes_is_listed() -> None:
    """Account 2, the last to come and the dearest, is granted first, again and again."""
    calls = {n: {"handle": f"h{n % 3}"} for n in range(12)}
    order = [0, 2, 5, 8, 11, 1, 3, 4, 6, 7, 9, 10]
    returns = {number: 10 * place + 10 for place, number in enumerate(order)}
    made = trace(*[guarded(n, returns[n] - 10, returns[n]) for n in range(12)], calls=calls, guard=fifo(1, 1, 1, 1))

    found = explain(made)

    assert found.fits[0].made < found.choices
    missed = set.intersection(*(set(fit.missed) for fit in found.fits))
    assert {grant.execute for grant in found.unexplained} == missed
    assert missed
    first = found.unexplained[0]
    assert first.account == "h2"
    assert len(first.waiting) > 1


class Plain(_Replay):
    """A replay that asks a copy of everything whom it would choose, and then makes the recorded grant."""

    def grant(self, granted: Sequence[tuple[int, int]], now_ns: int) -> None:
        remaining = list(granted)
        while remaining:
            choice = self.policy.pick(deepcopy(self.lane), deepcopy(self.accounts), now_ns)
            found = [each for each in remaining if each[0] == choice] or remaining
            account, execute = found[0]
            remaining.remove(found[0])
            pick = self.policy.pick if account == choice else self.forced(account)
            if account != choice and execute in self.choices:
                self.missed.add(execute)
            guard.grant(self.lane, self.accounts, self.calls, now_ns, pick, self.policy.wake)


def note(told: list[tuple[float, int, str]], *each: Any) -> None:
    told.append(each)


@pytest.mark.slow
@pytest.mark.parametrize("made", ["quota", "lottery", "drr"])
def test_no_short_cut_changes_an_answer(made: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither giving up a replay nor picking without a copy: every point of the grid, played out, says the same."""
    for seed in (1, 4, 6):
        recorded = trace_scenario(random_backlogged(seed, made, slots=None))
        history = History(recorded)
        lanes = [Recorded(history, lane) for lane in history.guard_events]
        told: list[tuple[float, int, str]] = []
        quick = explain(recorded, {made: POLICIES[made]}, progress=partial(note, told))
        choices = {grant.execute for lane in lanes for grant in lane.grants() if len(grant.waiting) > 1}
        points = list(grid(POLICIES[made], dict(recorded.guard.params)))
        with monkeypatch.context() as patch:
            patch.setattr(import_module("htpsim.invariants.explain"), "_Replay", Plain)
            missed = [
                set().union(*(lane.missed_by(POLICIES[made], each, "", choices, len(choices) + 1) for lane in lanes))
                for each in points
            ]

        assert quick.fits[0].missed == min(missed, key=len)
        assert [done for done, _, _ in told] == list(range(len(points)))
        assert {total for _, total, _ in told} == {len(points)}


def test_where_there_was_no_choice_there_is_nothing_to_explain() -> None:
    assert explain(Trace()).note == "no call passes a guard"
    alone = explain(trace(guarded(0, 0, 5), guarded(6, 6, 9)))
    assert (alone.grants, alone.choices, alone.fits) == (2, 0, [])
    assert "in line together" in alone.note


def test_weights_may_be_ranks() -> None:
    """Strict priority by weight: the fork's weights may be nothing else."""
    calls = {n: {"weight": weight, "handle": f"h{n}"} for n, weight in enumerate((1, 2, 5, 3))}
    granted = {0: 0, 2: 10, 3: 20, 1: 30}
    made = trace(*[guarded(n, granted[n], granted[n] + 10) for n in range(4)], calls=calls)

    found = explain(made)

    best = next(fit for fit in found.fits if fit.policy == "priority")
    assert (best.ranks, best.made) == ("weight", found.choices)


def test_a_file_is_explained_in_rows(tmp_path: Path) -> None:
    write_trace(trace_scenario(random_backlogged(3, "sfq")), tmp_path / "x.jsonl")

    report = explain_policy(tmp_path / "x.jsonl")

    assert report.headline.startswith("sfq")
    assert "100.0%" in report.headline
    assert report.rows()[0][:2] == ("sfq", "defaults")
    assert len(report.rows()) == len(report.explanation.fits)
    assert report.unexplained_rows() == []
    assert report.to_dict()["policies"][0]["policy"] == "sfq"


def test_a_file_without_a_guard_says_so(tmp_path: Path) -> None:
    write_trace(Trace(source="x"), tmp_path / "x.jsonl")

    assert explain_policy(tmp_path / "x.jsonl").headline.endswith("no call passes a guard")
