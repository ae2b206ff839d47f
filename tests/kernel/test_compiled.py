"""The compiled engine leaves what the reference engine does; what it is compiled from decides what it is found by."""

from __future__ import annotations

import types
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from htpsim.device import rules
from htpsim.device.records import NOBODY
from htpsim.kernel import NeedsReference, compiled, guarding, loop, simulate, tally
from htpsim.kernel.binding import Binder, Stand
from htpsim.kernel.shapes import FULL, PLAIN, Shape
from htpsim.sched import POLICIES, Drr, Edf, Fifo, Sfq, policy_class
from htpsim.sim.loads import load_alone
from htpsim.spec import Guard, Scenario
from htpsim.spec.plan import make_plan
from htpsim.testing.scenarios import random_scenario as small_scenario
from tests.kernel.compare import differences
from tests.kernel.simple import simple
from tests.kernel.test_engines import SCENARIO
from tests.sim.spice import pressed, spiced
from tests.sim.strategies import random_scenario

SEEDS = range(60)
MORE = range(60, 400)
EVERYTHING = Shape(FULL, keeps=True)
needs_numba = pytest.mark.skipif(not compiled.can_compile(), reason="Numba is missing, or may not compile")


def under(policy: str, seed: int) -> Scenario:
    """Return a scenario under a policy, with its parameters' defaults; two of three with what is off by default."""
    scenario = spiced(seed) if seed % 3 else random_scenario(seed)
    if seed % 3 == 1:
        scenario = pressed(scenario, seed)
    return policed(scenario, policy)


def policed(scenario: Scenario, policy: str) -> Scenario:
    return replace(scenario, guard=replace(scenario.guard, policy=policy, params=()))


def figures(scenario: Scenario, *, compiled: bool) -> object:
    """Return everything that a run without records tells, or nothing where it is left to the reference engine."""
    plan = make_plan(scenario)
    try:
        found = tally(plan, load_alone(plan), compiled=compiled)
    except NeedsReference:
        return None
    clients = [
        (asdict(c) | {"latencies": [(asdict(each) | {"bins": each.bins.tolist()}) for each in c.latencies.values()]})
        for c in found.clients.values()
    ]
    return found.executes, found.end_ns, clients


@needs_numba
@pytest.mark.slow
def test_compiled_for_the_default_policy_over_every_feature() -> None:
    for seed in SEEDS:
        assert differences(under("sfq", seed), compiled=True) == [], seed


@needs_numba
@pytest.mark.slow
@pytest.mark.parametrize("shared", [False, True])
def test_compiled_for_fewer_features(shared: bool) -> None:
    for seed in SEEDS:
        assert differences(policed(simple(seed, shared=shared), "sfq"), compiled=True) == [], seed


@needs_numba
@pytest.mark.slow
def test_compiled_without_records() -> None:
    for seed in SEEDS:
        scenario = policed(simple(seed, shared=False), "sfq")
        assert figures(scenario, compiled=True) == figures(scenario, compiled=False), seed


@needs_numba
@pytest.mark.slow
@pytest.mark.verify
@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_compiled_without_records_for_every_policy(policy: str) -> None:
    for seed in SEEDS:
        for scenario in (simple(seed, shared=False), simple(seed, shared=True), under(policy, seed)):
            compared = policed(scenario, policy)
            assert figures(compared, compiled=True) == figures(compared, compiled=False), seed


@needs_numba
@pytest.mark.slow
@pytest.mark.verify
def test_a_users_policy_that_compiles_runs_compiled() -> None:
    scenario = replace(SCENARIO, guard=Guard(policy="tests.kernel.policies:Latest"))

    assert differences(scenario, compiled=True) == []


@needs_numba
@pytest.mark.slow
@pytest.mark.verify
@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_compiled_for_every_policy(policy: str) -> None:
    for seed in (*SEEDS, *MORE):
        assert differences(under(policy, seed), compiled=True) == [], seed
        for shared in (False, True):
            assert differences(policed(simple(seed, shared=shared), policy), compiled=True) == [], seed
        if small_scenario(seed).guard.policy == policy:
            assert differences(small_scenario(seed), compiled=True) == [], seed


@needs_numba
@pytest.mark.slow
@pytest.mark.verify
def test_a_users_policy_that_fails_as_it_runs_is_left_to_the_reference_engine() -> None:
    plan = make_plan(replace(SCENARIO, guard=Guard(policy="tests.kernel.policies:Divides")))

    with pytest.raises(NeedsReference):
        simulate(plan, load_alone(plan), compiled=True)


@needs_numba
@pytest.mark.slow
@pytest.mark.verify
def test_a_users_policy_that_does_not_compile_is_left_to_the_reference_engine_with_the_reason() -> None:
    plan = make_plan(replace(SCENARIO, guard=Guard(policy="tests.kernel.policies:Formats")))

    with pytest.raises(NeedsReference, match="policy formats cannot be compiled: "):
        simulate(plan, load_alone(plan), compiled=True)


def digest(instead: dict[tuple[str, str], object]) -> str:
    return Binder(instead).digest(loop.advance)


def test_a_change_in_any_function_that_is_reached_has_another_name() -> None:
    pick = (guarding.__name__, "pick")
    far = (rules.__name__, "free_cores")

    def free_cores(dev, cores, jobs, holders, j, now_ns):  # type: ignore[no-untyped-def]
        dev.holders -= 1

    assert digest({}) == digest({pick: Fifo.pick})
    assert len({digest({}), digest({pick: Edf.pick}), digest({pick: Sfq.pick}), digest({far: free_cores})}) == 4


def test_so_has_a_change_in_a_constant() -> None:
    assert digest({}) != digest({(loop.__name__, "NOBODY"): Stand("NOBODY=-2", -2)})
    assert digest({}) != digest({(loop.__name__, "NOBODY"): NOBODY - 1})


def test_policies_with_other_fields_have_other_names_though_they_share_functions() -> None:
    wider = type("Wider", (Fifo,), {"account_fields": ("more",)})

    assert compiled.digest(wider, EVERYTHING) != compiled.digest(Fifo, EVERYTHING)
    assert compiled.digest(Fifo, Shape(PLAIN, keeps=True)) != compiled.digest(Fifo, EVERYTHING)
    assert compiled.layout_of(Drr) != compiled.layout_of(Fifo)
    assert compiled.layout_of(policy_class("tests.kernel.policies:Nobody")).endswith("checked")


def test_the_folder_is_named_by_the_sources(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    compiled.cache_folder.cache_clear()
    before = compiled.cache_folder()
    assert before.parent == tmp_path
    for source in compiled.SOURCES:
        assert (Path(compiled.__file__).parents[1] / source).exists(), source
    monkeypatch.setattr(compiled, "USER_OPTIONS", {**compiled.USER_OPTIONS, "error_model": "numpy"})
    compiled.cache_folder.cache_clear()

    assert compiled.cache_folder() != before
    monkeypatch.undo()
    compiled.cache_folder.cache_clear()


def test_a_function_is_bound_once_and_its_original_stays_as_it_is() -> None:
    binder = Binder({(guarding.__name__, "pick"): Edf.pick})
    bound = binder.bind(loop.take_turn)

    assert isinstance(bound, types.FunctionType)
    assert binder.bind(loop.take_turn) is bound
    assert bound.__globals__["make_grant"].__globals__["pick"].__code__ is Edf.pick.__code__
    assert loop.take_turn.__globals__["make_grant"].__globals__["pick"] is Fifo.pick
