"""Every shipped scenario, in every way it offers, leaves the same log in either engine; none is left to one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from htpsim.experiments.engine import estimated_executes
from htpsim.kernel import unsupported
from htpsim.scenario import ScenarioFile, load
from htpsim.spec import Scenario
from htpsim.spec.plan import make_plan
from tests.kernel.compare import differences
from tests.scenarios.support import ONE_BY_ONE, SCENARIOS
from tests.scenarios.test_shipped import ways

POLICIES = SCENARIOS.parent / "docs" / "policies"
Way = tuple[str | None, str | None, tuple[str, ...]]
FILES = sorted([*SCENARIOS.rglob("*.toml"), *POLICIES.glob("*.toml")])
EXECUTES = 400
"""About so many graphExecutes of each are compared."""


def short(scenario: Scenario) -> Scenario:
    """Return the scenario without warm-up, cut so that it is run in a moment."""
    run = replace(scenario.run, warmup_ns=0)
    executes = estimated_executes(make_plan(replace(scenario, run=run)))
    return replace(scenario, run=replace(run, duration_ns=int(run.duration_ns * min(1.0, EXECUTES / max(1, executes)))))


def test_they_are_all_here() -> None:
    assert {path.parent.name for path in FILES} == {"scenarios", "field", "live", "workloads", "policies"}
    assert len(FILES) > 50


def same(path: Path, ways_of: Callable[[ScenarioFile], Iterable[Way]]) -> None:
    file = load(path)
    for way in ways_of(file):
        scenario = short(file.resolve(*way).scenario)

        assert unsupported(scenario) == "", way
        assert differences(scenario) == [], way


@pytest.fixture(autouse=True)
def _policies_of_the_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(POLICIES))


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_it_runs_the_same_in_either_engine(path: Path) -> None:
    same(path, lambda file: [(None, next(iter(file.cases), None), ())])


@pytest.mark.slow
@pytest.mark.verify
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_so_it_does_in_every_way_that_it_offers(path: Path) -> None:
    same(path, ways if path.stem not in ONE_BY_ONE else lambda file: [(None, None, ())])
