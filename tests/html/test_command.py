"""htpsim report, and --report of run and compare: one file, whole or not at all, and words for what is wrong."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from htpsim.cli.options import lang_option
from htpsim.report.html import LANGUAGES
from tests.cli.support import INLINE, PAIR, PLAIN, call

SHORT = ("--for", "2s", *INLINE)


@pytest.mark.slow
def test_a_scenario_is_compared_and_reported(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    done = call(capsys, "report", PAIR, "-o", str(path), "--lang", "zh", "--no-grid", *SHORT)

    assert (done.code, done.out) == (0, "")
    assert done.err == f"Written to {path}: open it in a browser.\n"
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert '<html lang="zh-Hans">' in text
    assert [p.name for p in tmp_path.iterdir()] == ["a.html"]


@pytest.mark.slow
def test_run_and_compare_write_it_beside_what_they_print(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for name, arguments in {"run": ("run", PLAIN), "compare": ("compare", PAIR, "--no-grid")}.items():
        path = tmp_path / f"{name}.html"
        done = call(capsys, *arguments, "--report", str(path), *SHORT)

        assert done.code == 0
        assert done.out
        assert f"Written to {path}" in done.err
        assert '<html lang="en">' in path.read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_run_directory_gives_the_report_of_the_live_run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("htpsim.report.directory.save_run_plots", lambda *_: [])
    live, out, later = tmp_path / "live.html", tmp_path / "out", tmp_path / "later.html"
    assert call(capsys, "run", PLAIN, "--out", str(out), "--report", str(live), *SHORT).code == 0
    assert call(capsys, "report", str(out), "-o", str(later)).code == 0

    pages = [re.sub(r"<dd>\d{4}-[^<]*</dd>|<title>.*", "", p.read_text(encoding="utf-8")) for p in (live, later)]
    assert pages[0] == pages[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no_such_scenario"], "no_such_scenario"),
        ([PLAIN, "--lang", "fr"], "'fr' is not one of 'en', 'zh'"),
        ([PLAIN, "-o", "nowhere/at/all.html"], "got a file in no folder that exists"),
        (["{folder}"], "got no provenance.json in it, expected a run directory"),
        (["{folder}", "--for", "3s"], "is a run directory: what was run is in it"),
        (["{folder}", "--no-grid"], "is a run directory: what was run is in it"),
    ],
)
def test_what_is_wrong_is_told_and_nothing_written(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    done = call(capsys, "report", *(text.format(folder=tmp_path / "empty") for text in arguments))

    assert done.code == 2
    assert message in " ".join(done.err.split())
    assert "Traceback" not in done.err
    assert [p.name for p in tmp_path.iterdir()] == ["empty"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "damage", ["summary.json", "provenance.json", "log.json", "records.csv", "scenario.json", "replications.json"]
)
def test_a_damaged_directory_is_told(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    monkeypatch.setattr("htpsim.report.directory.save_run_plots", lambda *_: [])
    out = tmp_path / "out"
    assert call(capsys, "run", PLAIN, "--out", str(out), *SHORT).code == 0
    for text in ("{", "[]", '{"a": 1}', ""):
        (out / damage).write_text(text, encoding="utf-8")
        done = call(capsys, "report", str(out), "-o", str(tmp_path / "a.html"))

        assert done.code == 2, text
        assert "Traceback" not in done.err
        assert damage in done.err
        assert not (tmp_path / "a.html").exists()


def test_the_command_line_offers_the_languages_there_are() -> None:
    option = lang_option(click.command()(lambda: None)).params[0]

    assert isinstance(option.type, click.Choice)
    assert tuple(option.type.choices) == LANGUAGES
