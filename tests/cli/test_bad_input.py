"""Bad input: exit code 2, a message that says where, what was given and what would do, and never a traceback."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cli.support import INLINE, PAIR, PLAIN, call

SHORT = ("--for", "100ms", "--replications", "1", *INLINE)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        pytest.param(["rnu", "x"], ["rnu", "run"], id="command"),
        pytest.param(["run"], ["SCENARIO"], id="no scenario"),
        pytest.param(["run", PAIR, "--vairant", "x"], ["--vairant", "--variant"], id="option name"),
        pytest.param(["run", "vit_migratoin"], ["vit_migratoin", "did you mean 'vit_migration'"], id="shipped name"),
        pytest.param(["run", "no/such.toml"], ["no/such.toml", "no such file"], id="missing file"),
        pytest.param(["run", PAIR.replace("pair", "pari")], ["pari.toml", "did you mean", "pair.toml"], id="near file"),
        pytest.param(["run", os.path.dirname(PAIR)], ["expected one of"], id="folder as scenario"),
        pytest.param(["run", ""], ["expected one of"], id="empty name"),
        pytest.param(["run", PAIR, "--variant", "leagcy"], ["leagcy", "did you mean 'legacy'"], id="variant"),
        pytest.param(["run", PAIR, "--case", "equl"], ["equl", "did you mean 'equal'"], id="case"),
        pytest.param(["run", PAIR, "--option", "slots.tow"], ["slots.tow", "did you mean 'slots.two'"], id="option"),
        pytest.param(["run", PAIR, "--option", "slots"], ["option", "slots.two"], id="option without its choice"),
        pytest.param(["run", PLAIN, "--variant", "x"], ["variant", "the file has none"], id="variant where none is"),
        pytest.param(["compare", PAIR, "--variant", "leagcy"], ["did you mean 'legacy'"], id="compared variant"),
        pytest.param(["compare", PAIR, "--case", "equl"], ["did you mean 'equal'"], id="compared case"),
        pytest.param(["compare", PAIR, "--option", "slots.tow"], ["did you mean 'slots.two'"], id="compared option"),
        pytest.param(["compare", PLAIN, "--variant", "x"], ["the file has none"], id="compared, none there"),
        pytest.param(["compare", PLAIN, "--case", "x"], ["case", "the file has none"], id="case where none is"),
        pytest.param(["run", PAIR, "--set", "garbage"], ["--set", "garbage", "key=value"], id="no assignment"),
        pytest.param(["run", PAIR, "--set", "guard.polcy=fifo"], ["--set", "did you mean 'policy'"], id="key"),
        pytest.param(["run", PAIR, "--set", "guard.policy=fifoo"], ["--set", "did you mean 'fifo'"], id="value"),
        pytest.param(["run", PAIR, "--set", "run.duration=5"], ["--set", "run.duration", "unit"], id="unit"),
        pytest.param(["run", PAIR, "--for", "soon"], ["--for", "'soon'", "time with a unit"], id="duration"),
        pytest.param(["run", PAIR, "--for", "0s"], ["--for", "above zero"], id="no duration"),
        pytest.param(["run", PAIR, "--for", "-3s"], ["--for", "above zero"], id="negative duration"),
        pytest.param(["run", PAIR, "--seed", "x"], ["--seed"], id="seed"),
        pytest.param(["run", PAIR, "--seed", "-1"], ["--seed"], id="negative seed"),
        pytest.param(["run", PAIR, "--replications", "0"], ["--replications"], id="no replications"),
        pytest.param(["run", PAIR, "--replication", "-1"], ["--replication"], id="negative replication"),
        pytest.param(["run", PAIR, "--workers", "0"], ["--workers"], id="no workers"),
        pytest.param(["inspect", "no/such.txt"], ["no/such.txt", "no such file"], id="inspect a missing file"),
        pytest.param(["inspect", os.path.dirname(PAIR)], ["folder", "expected a file"], id="inspect a folder"),
        pytest.param(["inspect", PAIR], ["pair.toml", "no known format", "qnn-profile-viewer"], id="inspect any file"),
        pytest.param(["inspect", PAIR, "--format", "geni-config"], ["did you mean 'genie-config'"], id="format"),
        pytest.param(["schema", "-o", "no/such/folder.json"], ["no/such/folder.json", "no folder"], id="output"),
        pytest.param(["schema", "-o", os.path.dirname(PAIR)], ["got a folder"], id="folder as output"),
    ],
)  # fmt: skip
def test_the_message_says_what_was_wrong(
    capsys: pytest.CaptureFixture[str], arguments: list[str], told: list[str]
) -> None:
    outcome = call(capsys, *arguments)

    assert outcome.code == 2
    assert outcome.out == ""
    assert [words for words in told if words not in outcome.err] == []
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(["--seed", "1", "--set", "run.seed=2"], id="seed"),
        pytest.param(["--for", "1s", "--set", "run . duration = 2s"], id="duration"),
        pytest.param(["--replications", "2", "--set", "run.replications=2"], id="replications"),
        pytest.param(["--replications", "2", "--replication", "1"], id="one and several replications"),
    ],
)
def test_options_that_contradict_each_other_are_refused(capsys: pytest.CaptureFixture[str], options: list[str]) -> None:
    outcome = call(capsys, "run", PAIR, *options)

    assert outcome.code == 2
    assert options[0] in outcome.err
    assert "got both, expected one" in outcome.err


def test_every_problem_of_a_file_is_told_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = call(capsys, "run", PAIR, "--set", "guard.polcy=fifo", "--set", "device.croes=2")

    assert outcome.code == 2
    assert "'policy'" in outcome.err
    assert "'cores'" in outcome.err


def test_two_unknown_variants_are_both_told(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = call(capsys, "compare", PAIR, "--variant", "guardd", "--variant", "shred")

    assert "'guarded'" in outcome.err
    assert "'shared'" in outcome.err


@pytest.mark.parametrize("verb", ["run", "compare"])
@pytest.mark.parametrize("foreign", ["file", "not ours", "below a file", "here"])
def test_a_directory_that_cannot_be_written_is_refused_before_anything_is_simulated(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, foreign: str
) -> None:
    monkeypatch.setattr("htpsim.experiments.runner.simulate", lambda *_, **__: pytest.fail("it was simulated"))
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("precious")
    (tmp_path / "not ours").mkdir()
    (tmp_path / "not ours" / "thesis.txt").write_text("precious")
    monkeypatch.chdir(tmp_path / "folder")
    out = {"below a file": str(tmp_path / "file" / "run"), "here": "."}.get(foreign, str(tmp_path / foreign))

    outcome = call(capsys, verb, PAIR, *SHORT, "--out", out)

    assert outcome.code == 2
    assert outcome.out == ""
    assert "expected" in outcome.err or "name another" in outcome.err
    assert (tmp_path / "file").read_text() == (tmp_path / "not ours" / "thesis.txt").read_text() == "precious"


def test_a_folder_of_somebody_else_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # a superuser may write anywhere

    outcome = call(capsys, "run", PAIR, *SHORT, "--out", str(tmp_path / "run"))

    assert outcome.code == 2
    assert "cannot be written to" in outcome.err


@settings(max_examples=25)
@given(
    option=st.sampled_from(["--set", "--for", "--variant", "--case", "--option", "--seed", "--replication"]),
    text=st.text(max_size=20),
)
def test_no_text_ends_in_a_traceback(option: str, text: str) -> None:
    from click.testing import CliRunner

    from htpsim.cli import cli
    from htpsim.errors import HtpsimError

    result = CliRunner().invoke(cli, ["run", PAIR, *INLINE, "--set", "run.duration=1ms", option, text])

    assert result.exception is None or isinstance(result.exception, SystemExit | HtpsimError)


@settings(max_examples=25)
@given(text=st.text(max_size=40))
def test_no_file_ends_in_a_traceback(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    from click.testing import CliRunner

    from htpsim.cli import cli
    from htpsim.errors import HtpsimError

    path = tmp_path_factory.mktemp("any") / "file.toml"
    path.write_text(text, encoding="utf-8")

    for verb in (["run", *INLINE], ["compare", *INLINE], ["inspect"]):
        result = CliRunner().invoke(cli, [verb[0], str(path), *verb[1:]])

        assert isinstance(result.exception, HtpsimError)
