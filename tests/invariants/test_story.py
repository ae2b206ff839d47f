"""What a person reads when a rule is broken: the story, the command, the report of a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from htpsim.errors import FormatError, HtpsimError, InvariantError, ScenarioError
from htpsim.experiments.check import check_file, check_log, declared
from htpsim.experiments.replay import replay_command
from htpsim.experiments.trace import trace_of
from htpsim.formats.trace import write_trace
from htpsim.invariants import RULES, Trace, check_trace, story
from htpsim.sched import POLICIES
from htpsim.sim import simulate
from htpsim.testing import random_scenario
from tests.invariants.hand import evicted, fifo, guarded, on, ran, trace
from tests.quality.plants import LowestFirst


def test_a_story_tells_every_transition_and_who_was_served_meanwhile() -> None:
    made = trace(
        evicted(0, (0, 8), (16, 18)), ran(5, 10, 15), calls={0: on(graph="llm"), 1: on(level=4)}, end_ns=30
    )  # fmt: skip

    told = story(made, 0).splitlines()

    assert (
        told[0] == "graphExecute 0: graph llm, context c0, thread t0, no handle, process 0, path qnn, core 0, level 2"
    )
    kinds = ["call", "submit", "start", "run", "yield", "freed", "resume", "run", "finish", "return"]
    assert [line.split()[2] for line in told[1:]] == kinds
    assert "5 ns later, after 1" in told[7]


def test_a_story_of_one_that_is_still_out_says_where_the_trace_ends() -> None:
    made = trace([(3, "call")], end_ns=12)
    made.replay = "htpsim run x"

    assert story(made, 0).splitlines()[-2:] == [
        "              12 ns  the trace ends",
        "see it again with: htpsim run x",
    ]


def test_a_story_of_nobody_is_refused() -> None:
    with pytest.raises(HtpsimError, match="got 7, expected one of the 1 of the trace"):
        story(trace(guarded(0, 0, 1)), 7)


def test_a_broken_run_tells_the_story_and_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(POLICIES, "priority", LowestFirst)
    for seed in range(40):
        report = check_log(simulate(random_scenario(seed, "priority")), "htpsim run mine.toml --replicate 2 --check")
        if not report.ok:
            break

    with pytest.raises(InvariantError) as error:
        report.require()

    text = str(error.value)
    assert error.value.exit_code == 3
    assert "guard-order at" in text
    assert "priority at process 0 chooses" in text or "priority at process 0, core" in text
    assert "graphExecute" in text
    assert text.endswith("see it again with: htpsim run mine.toml --replicate 2 --check")


def test_the_command_of_a_run_names_scenario_seed_and_replication() -> None:
    scenario = random_scenario(5)

    expected = replay_command(scenario, "scenario", replication=2, check=True)
    assert trace_of(simulate(scenario, 2)).replay == expected


def test_a_file_is_checked_rule_by_rule(tmp_path: Path) -> None:
    made = trace(guarded(0, 0, 10), guarded(1, 5, 20))
    made.engine = ""
    write_trace(made, tmp_path / "x.jsonl")

    report = check_file(tmp_path / "x.jsonl", slots=1)

    assert not report.ok
    assert report.exit_code == 1
    assert [row[0] for row in report.rows()] == list(RULES)
    outcomes = {row[0]: row[2] for row in report.rows()}
    assert outcomes["guard-exclusion"] == "1 violation"
    assert outcomes["causality"] == "holds"
    assert outcomes["work"].startswith("not checked: the trace has no device events")
    assert report.violation_rows()[0][:2] == ("guard-exclusion", "5")
    assert "1 violations of 1 rules" in report.headline
    assert report.story().startswith("graphExecute 1")
    assert report.story(0).startswith("graphExecute 0")
    assert report.to_dict()["counts"] == {"guard-exclusion": 1}


def test_a_file_says_no_more_than_it_knows(tmp_path: Path) -> None:
    made = trace(guarded(0, 0, 10), guarded(1, 5, 20))
    write_trace(made, tmp_path / "x.jsonl")

    report = check_file(tmp_path / "x.jsonl")

    assert report.ok
    assert report.exit_code == 0
    assert report.report.skipped["guard-exclusion"] == "the trace does not say how many slots the guard has"
    assert report.headline.endswith("do not apply")


def test_what_is_known_of_the_guard_may_be_said(tmp_path: Path) -> None:
    made = trace(guarded(0, 0, 10), guarded(2_000_000, 20, 30)[:0] or guarded(3, 20, 30))
    made.engine = ""
    write_trace(made, tmp_path / "x.jsonl")

    strict = check_file(tmp_path / "x.jsonl", slots=1, policy="fifo", slack_ns=0)
    usual = check_file(tmp_path / "x.jsonl", slots=1, policy="fifo")

    assert dict(strict.report.counts) == {"guard-work": 1}
    assert usual.ok
    with pytest.raises(ScenarioError, match="slots: got 0"):
        declared(Trace(), slots=0)
    with pytest.raises(ScenarioError, match="did you mean 'fifo'"):
        declared(Trace(), policy="fifoo")


def test_some_rules_may_be_asked_for(tmp_path: Path) -> None:
    write_trace(trace(guarded(0, 0, 10)), tmp_path / "x.jsonl")

    assert check_file(tmp_path / "x.jsonl", rules=["causality"]).report.checked == ("causality",)


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"htpsim_trace": 1}\n{"ev": "call"', encoding="utf-8")

    with pytest.raises(FormatError, match=r"x.jsonl:2: .*cut off"):
        check_file(tmp_path / "x.jsonl")
    assert check_file(tmp_path / "x.jsonl", lenient=True).ok


def test_a_trace_that_breaks_nothing_has_no_story() -> None:
    assert check_trace(trace(guarded(0, 0, 10), guard=fifo())).story == ""
