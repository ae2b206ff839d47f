"""The public state machines: what comes with the package passes, and so do the policies under docs/."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from htpsim.experiments.check import check_log
from htpsim.memory import Registry
from htpsim.sched import POLICIES, Sfq, policy_class
from htpsim.sim import simulate
from htpsim.spec import Device
from htpsim.testing import device_machine, guard_machine, random_backlogged, random_scenario, registry_machine

ROOT = Path(__file__).resolve().parents[2]
BRIEF = settings(max_examples=12, stateful_step_count=15, deadline=None, database=None)
LONG = settings(max_examples=400, stateful_step_count=40, deadline=None)
IN_NS = {
    "drr": {"quantum_ns": 7}, "eevdf": {"slice_ns": 5}, "priority": {"ageing_ns": 9},
    "quota": {"period_ns": 25, "borrow": 2},
}  # fmt: skip
EXAMPLES = ("cfs_like:CfsLike", "mlfq:Mlfq", "prema:Prema")


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("docs/policies", "docs/testing"):
        monkeypatch.syspath_prepend(str(ROOT / folder))


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
def test_built_in_policies_pass(policy: str) -> None:
    run_state_machine_as_test(guard_machine(policy, params=IN_NS.get(policy), slots=(1, 2, 3)), settings=BRIEF)


@pytest.mark.verify
@pytest.mark.parametrize("policy", POLICIES)
def test_built_in_policies_pass_for_long(policy: str) -> None:
    run_state_machine_as_test(guard_machine(policy, params=IN_NS.get(policy), slots=(1, 2, 3)), settings=LONG)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_policies_of_the_docs_pass(name: str) -> None:
    promising = type("Promising", (policy_class(name),), {"work_conserving": True})

    run_state_machine_as_test(guard_machine(promising), settings=BRIEF)


@pytest.mark.parametrize("name", [*EXAMPLES, "least_served:LeastServed"])
def test_a_policy_by_module_and_class_is_held_to_the_rules(name: str) -> None:
    for seed in range(12):
        report = check_log(simulate(random_scenario(seed, name, {})))

        assert report.violations == []
        assert "guard-order" in report.skipped


def test_a_promise_is_checked_and_a_policy_that_makes_none_is_not() -> None:
    names = ("least_served:LeastServed", EXAMPLES[0])
    promised = [check_log(simulate(random_backlogged(2, name, {}))) for name in names]

    assert "guard-work" in promised[0].checked
    assert "may leave a slot free" in promised[1].skipped["guard-work"]


@pytest.mark.slow
def test_the_device_passes() -> None:
    run_state_machine_as_test(device_machine(), settings=settings(BRIEF, max_examples=30))


@pytest.mark.slow
def test_a_device_of_ones_own_passes() -> None:
    device = Device(cores=1, vtcm_bytes=8, hvx=4, yield_latency_ns=5, evict_ns=3, restore_ns=2)

    run_state_machine_as_test(device_machine(device), settings=BRIEF)


@pytest.mark.verify
def test_the_device_passes_for_long() -> None:
    run_state_machine_as_test(device_machine(), settings=LONG)


def test_a_registry_behind_an_adapter_passes() -> None:
    class Adapter:
        """What a user would write around a registry of another shape."""

        def __init__(self) -> None:
            self._registry = Registry()

        def __getattr__(self, name: str) -> Any:
            return getattr(self._registry, name)

    run_state_machine_as_test(registry_machine(Adapter), settings=BRIEF)


@pytest.mark.verify
def test_the_registry_passes_for_long() -> None:
    run_state_machine_as_test(registry_machine(), settings=LONG)


def test_test_cases_run_short() -> None:
    for machine in (guard_machine(Sfq), device_machine(), registry_machine()):
        assert machine.TestCase.settings.stateful_step_count == 20
        assert machine.TestCase.settings.deadline is None


def test_the_page_shows_what_is_run() -> None:
    page = (ROOT / "docs" / "testing-your-policy.md").read_text(encoding="utf-8")
    code = (ROOT / "docs" / "testing" / "test_least_served.py").read_text(encoding="utf-8").split('"""', 2)[2].strip()

    assert code in page
    assert len([line for line in code.splitlines() if line.strip()]) <= 10
