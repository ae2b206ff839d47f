"""Traces from the command line: written, read again, checked, explained."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.cells import cell_len

from tests.cli.support import INLINE, PAIR, ROOT, call

pytestmark = pytest.mark.slow
RUN = ("run", PAIR, "--for", "1s", "--replications", "1", *INLINE, "--variant", "guarded", "--case", "weighted")


@pytest.fixture
def trace(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Path:
    """The trace of a sound run, as JSON lines."""
    path = tmp_path / "run.jsonl"
    outcome = call(capsys, *RUN, "--trace", str(path))
    assert outcome.code == 0
    assert f"Written to {path}" in outcome.err
    return path


def damaged(trace: Path) -> Path:
    """Let a call that waited be granted at once, while another still holds the only slot."""
    lines = [json.loads(line) for line in trace.read_text(encoding="utf-8").splitlines()]
    called = {line["id"]: i for i, line in enumerate(lines) if line.get("ev") == "call"}
    waited = next(
        i for i, line in enumerate(lines) if line.get("ev") == "grant" and line["t"] > lines[called[line["id"]]]["t"]
    )
    grant = lines.pop(waited)
    at = called[grant["id"]]
    lines.insert(at + 1, {**grant, "t": lines[at]["t"]})
    path = trace.with_name("damaged.jsonl")
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def test_a_sound_run_keeps_every_rule_in_both_forms(capsys: pytest.CaptureFixture[str], trace: Path) -> None:
    viewer = trace.with_name("viewer.json")
    assert call(capsys, *RUN, "--trace", str(viewer)).code == 0
    assert "traceEvents" in json.loads(viewer.read_text(encoding="utf-8"))

    outcomes = [call(capsys, "check", str(path)) for path in (trace, viewer)]
    told = [json.loads(call(capsys, "check", str(path), "--json").out) for path in (trace, viewer)]

    assert "htpsim-trace" in call(capsys, "inspect", str(trace)).out
    assert "htpsim-trace" in call(capsys, "inspect", str(viewer)).out
    assert [outcome.code for outcome in outcomes] == [0, 0]
    assert "every rule that applies holds" in outcomes[0].out
    assert told[0] == told[1]
    assert told[0]["ok"]
    assert "guard-exclusion" in told[0]["checked"]


def test_a_broken_rule_is_named_with_place_and_story(capsys: pytest.CaptureFixture[str], trace: Path) -> None:
    path = damaged(trace)
    outcome = call(capsys, "check", str(path))
    told = json.loads(call(capsys, "check", str(path), "--json").out)
    other = call(capsys, "check", str(path), "--rule", "requests")

    assert outcome.code == 1
    assert "guard-exclusion: " in outcome.out
    assert "What happened to the first" in outcome.out
    assert "see it again with: htpsim run" in " ".join(outcome.out.split())
    assert not told["ok"]
    assert told["counts"]["guard-exclusion"] == 1
    assert told["violations"][0]["rule"] in told["counts"]
    assert other.code == 0
    assert [line for line in outcome.out.splitlines() if cell_len(line) > 80] == []


def test_what_a_recorder_could_not_know_is_said_on_the_command_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A second call is granted two nanoseconds before the first returns: with one slot that is one holder too many."""
    path = str(ROOT / "tests" / "fixtures" / "formats" / "htpsimtrace_two_calls.jsonl")
    silent, two, one = (
        json.loads(call(capsys, "check", path, "--json", *words).out)
        for words in ((), ("--slots", "2", "--policy", "fifo"), ("--slots", "1", "--slots-per", "process"))
    )

    assert "guard-exclusion" in silent["skipped"]
    assert {"guard-exclusion", "guard-order"} <= set(two["checked"])
    assert two["ok"]
    assert one["counts"] == {"guard-exclusion": 1}
    assert call(capsys, "check", path, "--slots", "1").code == 1
    assert call(capsys, "check", path, "--slots", "1", "--slack", "3ns").code == 1
    assert call(capsys, "check", path, "--policy", "fifoo").code == 2
    assert call(capsys, "explain-policy", path, "--slots", "1").code == 0


def test_the_policy_that_ran_explains_every_grant(capsys: pytest.CaptureFixture[str], trace: Path) -> None:
    page = call(capsys, "explain-policy", str(trace))
    told = json.loads(call(capsys, "explain-policy", str(trace), "--json").out)
    made = {one["policy"]: one["made"] for one in told["policies"]}

    assert page.code == 0
    assert "explained whole by: " in page.out
    assert "sfq" in page.out.splitlines()[-1]
    assert made["sfq"] == told["choices"] > made["fifo"]
    assert [line for line in page.out.splitlines() if cell_len(line) > 80] == []


def test_grants_that_nothing_explains_are_shown(capsys: pytest.CaptureFixture[str], trace: Path) -> None:
    from htpsim.invariants import Explanation
    from htpsim.invariants.explain import Fit, Grant
    from htpsim.report.cells import to_text
    from htpsim.report.traces import explain_dict, explain_page

    grants = [Grant(1_000 + i, i, "vlm0", (("vlm0", 2_000_000), ("vlm1", 5_000_000))) for i in range(7)]
    found = Explanation(20, 10, [Fit("fifo", (("period_ns", 10**7),), "", 3, frozenset(range(7)))], grants, "a note")
    text = to_text(explain_page(found))

    assert "no policy explains them all; nearest: fifo, 3 of 10" in text
    assert "period = 10ms" in text
    assert "vlm0 2.0, vlm1 5.0" in text
    assert "and 2 more" in text
    assert "! a note" in text
    assert len(explain_dict(found)["unexplained"]) == 7


@pytest.mark.parametrize("verb", ["check", "explain-policy"])
def test_what_is_no_trace_is_refused(capsys: pytest.CaptureFixture[str], trace: Path, verb: str) -> None:
    cut = trace.with_name("cut.jsonl")
    cut.write_bytes(trace.read_bytes()[:-20])

    for path, told in ((PAIR, "pair.toml:1"), (str(trace.parent), "folder"), (str(cut), "cut.jsonl:"), ("x", "x: ")):
        outcome = call(capsys, verb, path)

        assert outcome.code == 2
        assert outcome.out == ""
        assert told in outcome.err
        assert "Traceback" not in outcome.err
    assert call(capsys, verb).code == 2
    assert call(capsys, verb, str(cut), "--lenient").code == 0


def test_two_files_that_use_one_number_are_refused(capsys: pytest.CaptureFixture[str], trace: Path) -> None:
    outcome = call(capsys, "check", str(trace), str(trace))

    assert outcome.code == 2
    assert "in two of the traces" in outcome.err


def test_a_wrong_rule_or_slack_is_told(capsys: pytest.CaptureFixture[str], trace: Path) -> None:
    rule = call(capsys, "check", str(trace), "--rule", "guard-exclusoin")
    slack = call(capsys, "check", str(trace), "--slack", "much")

    assert (rule.code, slack.code) == (2, 2)
    assert "did you mean 'guard-exclusion'" in rule.err
    assert "--slack" in slack.err


@pytest.mark.parametrize("where", ["no/folder/t.jsonl", ""])
def test_a_trace_that_cannot_be_written_is_refused_before_anything_is_simulated(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    monkeypatch.setattr("htpsim.experiments.runner.simulate", lambda *_, **__: pytest.fail("it was simulated"))

    outcome = call(capsys, *RUN, "--trace", str(tmp_path / where))

    assert outcome.code == 2
    assert "got a f" in outcome.err
