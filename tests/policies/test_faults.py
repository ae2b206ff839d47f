"""A wrong policy ends in one clear error that names it, never in a traceback of ours and never in a hang."""

from __future__ import annotations

import pytest

from htpsim.errors import HtpsimError, InvariantError, ScenarioError
from htpsim.sched import Fifo, policy_class, policy_params, watched
from htpsim.sim import simulate
from htpsim.spec import Arrivals, Context, Graph, Guard, Model, OtherClient, Run, Scenario, constant
from tests.policies import faulty

HERE = "tests.policies.faulty"


def loops(policy: str, weights: tuple[int, ...] = (1, 1), late_ns: int = 0, **run: int) -> Scenario:
    """Return clients that call again the instant they return, at one slot of one core; the last begins `late_ns`."""
    clients = []
    for k, weight in enumerate(weights):
        graph = Graph(name="g", context="c", service=constant(1_000_000 * (k + 1)))
        model = Model(name=f"m{k}", role="other", contexts=(Context(name="c"),), graphs=(graph,))
        clients.append(
            OtherClient(
                name=f"client{k}",
                model=model,
                path="genie",
                weight=weight,
                arrivals=Arrivals(kind="closed", think=constant(0), offset_ns=late_ns if k + 1 == len(weights) else 0),
            )
        )
    return Scenario(
        guard=Guard(policy=policy, slots=1),
        run=Run(**{"duration_ns": 50_000_000, **run}),
        clients=tuple(clients),
    )


@pytest.mark.parametrize(
    ("fault", "function", "cause"),
    [
        ("RaisesInWake", "wake", "AttributeError"),
        ("RaisesInPick", "pick", "ZeroDivisionError"),
        ("RaisesInCharge", "charge", "KeyError"),
        ("RaisesInTimer", "timer", "RuntimeError"),
    ],
)
def test_a_policy_that_raises_is_named_with_its_function(fault: str, function: str, cause: str) -> None:
    with pytest.raises(InvariantError) as caught:
        simulate(loops(f"{HERE}:{fault}"))

    text = str(caught.value)
    assert f"policy {getattr(faulty, fault).name}: {function} raised {cause}" in text
    assert " ns: " in text
    assert "faulty.py, line" in text


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("PicksNothing", "pick returned None"),
        ("PicksNobodyWaiting", "nobody waiting"),
        ("PicksBeyond", "nobody waiting"),
        ("StandsStill", "timer returned 0 at 0 ns, expected a later instant"),
    ],
)
def test_a_policy_with_a_wrong_answer_is_named(fault: str, words: str) -> None:
    with pytest.raises(InvariantError) as caught:
        simulate(loops(f"{HERE}:{fault}", late_ns=5_000_000))

    assert getattr(faulty, fault).name in str(caught.value)
    assert words in str(caught.value)


def test_a_policy_that_never_grants_is_a_deadlock_that_says_who_waits() -> None:
    with pytest.raises(HtpsimError) as caught:
        simulate(loops(f"{HERE}:NeverGrants"))

    assert "deadlock" in str(caught.value)
    assert "never-grants" in str(caught.value)
    assert "client0" in str(caught.value)
    assert "client1" in str(caught.value)


def test_a_right_policy_of_a_user_runs_as_the_built_in_one_does() -> None:
    own, built_in = simulate(loops(f"{HERE}:OwnParams")), simulate(loops("fifo"))

    assert own.executes == built_in.executes
    assert len(own.executes) > 20


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("sfqq", "did you mean 'sfq'"),
        ("no_such_module:Policy", "ModuleNotFoundError"),
        ("no_such_module:Policy", "PYTHONPATH"),
        (f"{HERE}:Missing", "AttributeError"),
        (f"{HERE}:NoPolicy", "lacks wake, pick, charge, timer, name, params, lane_fields, account_fields"),
        (f"{HERE}:TakesAField", "lane_fields: 'slots' is the guard's own field"),
        (f"{HERE}:OneName", "('tag',)"),
        (":", "module:Class"),
    ],
)
def test_what_is_no_policy_is_refused_with_the_reason(name: str, words: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        policy_class(name)

    assert "guard.policy" in str(caught.value)
    assert words in str(caught.value)


def test_a_module_that_fails_to_import_is_told_and_not_shown(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    from pathlib import Path

    folder = Path(str(tmp_path))
    (folder / "half_written_policy.py").write_text("class Mine:\n    name = 'x'\n  oops\n")
    monkeypatch.syspath_prepend(str(folder))

    with pytest.raises(ScenarioError, match="IndentationError"):
        policy_class("half_written_policy:Mine")


@pytest.mark.parametrize(
    ("policy", "given", "words"),
    [
        ("quota", [("perod_ns", 1)], "did you mean 'period_ns'"),
        ("quota", [("period_ns", 0)], "guard.params.period_ns: got 0, policy quota expects 1 to"),
        ("drr", [("quantum_ns", -5)], "got -5"),
        ("fifo", [("weight", 1)], "it has: none"),
        (f"{HERE}:OwnParams", [("patience", 10)], "policy own-params expects 1 to 9"),
    ],
)
def test_a_bad_parameter_is_refused_with_its_name(policy: str, given: list[tuple[str, int]], words: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        policy_params(policy_class(policy), given)

    assert words in str(caught.value)


def test_every_bad_parameter_is_told_at_once() -> None:
    with pytest.raises(ScenarioError) as caught:
        policy_params(policy_class("quota"), [("period_ns", 0), ("units", 1), ("borrow", 3)])

    assert len(caught.value.problems) == 3


def test_watching_changes_no_answer_and_keeps_the_tables() -> None:
    same = watched(Fifo)

    assert same.name == "fifo"
    assert same.timer(None, [], 5) == -1
    assert same.params is Fifo.params
