"""Planted bugs: whatever is broken, a rule says so by name; what is not broken, no rule complains of."""

from __future__ import annotations

from collections import Counter

import pytest

from htpsim.errors import HtpsimError
from htpsim.experiments.check import check_log
from htpsim.scenario import problems
from htpsim.sim import simulate
from htpsim.spec import Scenario
from tests.quality.corpus import CRAFTED, scenarios
from tests.quality.plants import BUGS, Bug


def found(scenario: Scenario) -> Counter[str]:
    """Return the rules that do not hold in a run of a scenario."""
    try:
        return check_log(simulate(scenario)).counts
    except HtpsimError as error:  # a broken engine may notice it first; that names no rule
        return Counter({f"{type(error).__name__}: {error}": 1})


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_rule_finds_it(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: Counter[str] = Counter()
    cases = list(scenarios(bug.kind))

    bug.plant(monkeypatch)
    for scenario in cases:
        seen += found(scenario)
        if seen.keys() & set(bug.rules):
            break

    assert seen.keys() & set(bug.rules), f"{bug.name}: expected {bug.rules}, found {dict(seen)}"


@pytest.mark.parametrize("name", CRAFTED)
def test_nothing_is_found_where_nothing_is_planted(name: str) -> None:
    for scenario in scenarios(name):
        assert problems(scenario) == []
        assert found(scenario) == Counter()


def test_there_are_enough_bugs() -> None:
    assert len({bug.name for bug in BUGS}) == len(BUGS) >= 40
