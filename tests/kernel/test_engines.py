"""Which engine runs what, what a reader is told of it, and where two of them part."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from htpsim.cli.app import cli
from htpsim.errors import InvariantError, ScenarioError
from htpsim.experiments import engine as engines
from htpsim.experiments.engine import choose_engine, estimated_executes, simulate, tally
from htpsim.experiments.engine_diff import diff_logs
from htpsim.experiments.runner import Task, run_task
from htpsim.results.columns import Execute
from htpsim.results.run import RunResult
from htpsim.spec import Arrivals, Guard, Run, Scenario, exponential
from htpsim.spec.plan import make_plan
from tests.sim.build import PLAIN, closed, instance, llm, vit

SCENARIO = Scenario(
    device=PLAIN,
    run=Run(duration_ns=5_000),
    instances=tuple(instance(f"vlm{n}", vit=vit(50), llm=llm((30,), (20,)), arrivals=closed(100)) for n in range(2)),
)
NOT_KNOWN = replace(SCENARIO, device=replace(PLAIN, cores=62))


@pytest.fixture(autouse=True)
def _interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")


def test_both_engines_leave_the_same_summary() -> None:
    reference, kernel = (simulate(SCENARIO, 1, engine=name) for name in ("reference", "kernel"))

    assert (reference.engine, kernel.engine) == ("reference", "kernel")
    assert len(kernel.executes) > 100
    assert RunResult(kernel).summary().to_dict() == RunResult(reference).summary().to_dict()


def test_the_scenario_says_which_engine_unless_somebody_else_does() -> None:
    asks = replace(SCENARIO, run=replace(SCENARIO.run, engine="kernel"))

    assert simulate(asks).engine == "kernel"
    assert simulate(asks, engine="reference").engine == "reference"
    assert run_task(Task(("x",), asks, 0, keep_log=True)).log.engine == "kernel"  # type: ignore[union-attr]


def test_what_the_kernel_does_not_know_is_named() -> None:
    log = simulate(NOT_KNOWN, engine="auto")

    assert (log.engine, log.engine_why) == (
        "reference", "the compiled engine does not know 63 guards and cores, of at most 62",
    )  # fmt: skip
    with pytest.raises(ScenarioError, match=r"got 'kernel', which does not know 63 guards and cores"):
        simulate(NOT_KNOWN, engine="kernel")


def test_checks_after_every_action_are_the_reference_engines() -> None:
    assert simulate(SCENARIO, check=True).engine == "reference"


def test_auto_compiles_for_a_long_run_and_takes_what_was_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "can_compile", lambda: True)
    monkeypatch.setattr(engines, "is_compiled", lambda policy, shape: False)
    assert choose_engine(SCENARIO) == ("reference", "")
    long = replace(SCENARIO, run=replace(SCENARIO.run, duration_ns=10**7))
    longer = replace(SCENARIO, run=replace(SCENARIO.run, duration_ns=10**9))
    assert [choose_engine(each)[0] for each in (SCENARIO, long, longer)] == ["reference", "reference", "kernel"]

    monkeypatch.setattr(engines, "is_compiled", lambda policy, shape: True)
    assert [choose_engine(each)[0] for each in (SCENARIO, long, longer)] == ["reference", "kernel", "kernel"]
    assert choose_engine(SCENARIO, alike=10_000)[0] == "kernel"


def test_the_estimate_is_of_the_right_size() -> None:
    executes = len(simulate(SCENARIO, engine="reference").executes)

    assert executes / 3 < estimated_executes(make_plan(SCENARIO)) < executes * 3


def test_a_policy_that_grants_nobody_is_told_in_the_reference_engines_words() -> None:
    stuck = replace(SCENARIO, guard=Guard(policy="tests.kernel.policies:Nobody"))

    with pytest.raises(
        InvariantError, match=r"deadlock at 5000 ns: nothing is left to happen: guard of process 0 \(policy nobody"
    ):
        simulate(stuck, engine="kernel")


def test_where_two_logs_part_is_the_first_instant_at_which_they_differ() -> None:
    theirs, ours = (simulate(SCENARIO, engine=name) for name in ("reference", "kernel"))
    rows = [list(row) for row in ours.executes]
    at = Execute._fields.index("finished_ns")
    rows[20][at] += 1
    rows[10][at] -= 1
    ours.executes = [tuple(row) for row in rows]

    found = diff_logs(theirs, ours)

    assert not found.same
    assert [p.row for p in found.partings] == [f"execute {rows[10][0]}", f"execute {rows[20][0]}"]
    assert found.partings[0].at_ns == rows[10][at]
    assert found.partings[0].differs == {"finished_ns": (rows[10][at] + 1, rows[10][at])}


def test_a_row_that_one_engine_lacks_is_told() -> None:
    theirs, ours = (simulate(SCENARIO, engine=name) for name in ("reference", "kernel"))
    ours.executes = list(ours.executes)[:-1]

    assert diff_logs(theirs, ours).partings[-1].differs == {"row": ("there", "missing")}


def test_the_command_compares_a_scenario() -> None:
    result = CliRunner().invoke(cli, ["diff-engines", "four_vlms", "--for", "1s", "--json"])

    assert result.exit_code == 0
    found = json.loads(result.output)
    assert found["same"]
    assert found["executes"] > 100
    assert found["partings"] == []


def test_tallies_on_threads_are_those_of_one_thread() -> None:
    drawn = replace(
        SCENARIO, instances=tuple(replace(i, arrivals=Arrivals(think=exponential(100))) for i in SCENARIO.instances)
    )
    found = [[(t.replication, t.executes) for t in tally(drawn, 4, workers)] for workers in (1, 3)]

    assert found[0] == found[1]
    assert [number for number, _ in found[0]] == [0, 1, 2, 3]
    assert len({executes for _, executes in found[0]}) > 1


def test_a_tally_of_what_the_kernel_does_not_know_is_refused() -> None:
    with pytest.raises(ScenarioError, match="tally: got 63 guards and cores"):
        tally(NOT_KNOWN)


def test_the_command_line_chooses_the_engine() -> None:
    asked = ["run", "four_vlms", "--for", "1s", "--replication", "0", "--json"]
    kernel, reference = (CliRunner().invoke(cli, [*asked, "--engine", name]) for name in ("kernel", "reference"))

    assert (kernel.exit_code, reference.exit_code) == (0, 0)
    assert json.loads(kernel.stdout)["replications"] == json.loads(reference.stdout)["replications"]


def test_the_command_line_says_why_it_was_the_reference_engine() -> None:
    asked = ["run", "four_vlms", "--for", "1s", "--replication", "0", "--set", "device.cores=62"]

    assert "Ran in the reference engine: the compiled engine does not know 63 guards and cores, of at most 62." in (
        CliRunner().invoke(cli, asked).stderr
    )
    refused = CliRunner().invoke(cli, [*asked, "--engine", "kernel"], standalone_mode=False)
    assert isinstance(refused.exception, ScenarioError)
    assert "'kernel', which does not know 63 guards and cores" in str(refused.exception)
