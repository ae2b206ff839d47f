"""`htpsim calibrate` and `htpsim score` as a user meets them: exit codes, pages, JSON, bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.calibrate.support import EXAMPLES, VerboseLog
from tests.cli.support import call

LOG = str(EXAMPLES / "genie_verbose.log")


def test_calibrate_prints_a_scenario(capsys: pytest.CaptureFixture[str]) -> None:
    done = call(capsys, "calibrate", LOG)

    assert done.code == 0
    assert done.out.startswith("# Written by htpsim calibrate from genie_verbose.log.")
    assert "[[models.llm.decode]]" in done.out


def test_calibrate_writes_a_file_and_says_what_it_found(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    target = tmp_path / "model.toml"
    done = call(capsys, "calibrate", LOG, "-o", str(target))

    assert done.code == 0
    assert "host_gap_step" in done.out
    assert "genie_verbose.log:82-938" in done.out
    assert "no file states the bytes" in done.out
    assert f"htpsim run {target}" in done.err
    assert max(map(len, done.out.splitlines())) <= 80
    assert target.read_text(encoding="utf-8").startswith("# Written by htpsim calibrate")


def test_calibrate_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(call(capsys, "calibrate", LOG, "--json").out)

    assert found["files"] == ["genie_verbose.log"]
    gap = next(value for value in found["values"] if value["key"] == "instances.vlm.host_gap_step")
    assert (gap["n"], gap["mark"]) == (107, "derived")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "got no file"),
        (("nowhere.log",), "no such file"),
        ((LOG, "--instances", "0"), "--instances"),
        ((LOG, "--method", "samples"), "did you mean 'sample'"),
        ((LOG, "--bytes", "vit"), "expected ROLE.TERM=SIZE"),
        ((LOG, "-o", "no/such/folder/m.toml"), "no folder that exists"),
        ((str(EXAMPLES / "genie_config.json"),), "no time of any graph"),
    ],
)
def test_calibrate_refuses_bad_input(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str
) -> None:
    done = call(capsys, "calibrate", *arguments)

    assert done.code == 2
    assert words in done.err
    assert "Traceback" not in done.err


def test_score_says_whether_all_is_within(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    other = str(VerboseLog(tiers=((128, 60, 90), (256, 60, 100))).write(tmp_path))
    same = call(capsys, "score", LOG, LOG, "--within", "5%")
    far = call(capsys, "score", LOG, other, "--within", "5%")
    asked_nothing = call(capsys, "score", LOG, other)

    assert (same.code, far.code, asked_nothing.code) == (0, 1, 0)
    assert "are within 5 %" in same.out
    assert "off by more than 5 %" in far.out
    assert "within" not in asked_nothing.out
    assert max(map(len, far.out.splitlines())) <= 80


def test_score_as_json_has_the_same_exit_code(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    other = str(VerboseLog(tiers=((128, 60, 90), (256, 60, 100))).write(tmp_path))
    done = call(capsys, "score", LOG, other, "--within", "0.05", "--metric", "itl.*", "--json")
    found = json.loads(done.out)

    assert done.code == 1
    assert found["ok"] is False
    assert {metric["metric"] for metric in found["metrics"]} == {"itl.mean", "itl.p50", "itl.p95"}


@pytest.mark.parametrize("part", ["5", "-1%", "nan", "inf%", "five", "1e99%"])
def test_a_part_that_is_none_is_refused(capsys: pytest.CaptureFixture[str], part: str) -> None:
    done = call(capsys, "score", LOG, LOG, "--within", part)

    assert done.code == 2
    assert "expected a part" in done.err


def test_score_refuses_a_pattern_that_nothing_fits(capsys: pytest.CaptureFixture[str]) -> None:
    done = call(capsys, "score", LOG, LOG, "--metric", "itl50")

    assert done.code == 2
    assert "no figure that both have" in done.err
