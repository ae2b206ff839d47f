"""`htpsim export`, `--trace` and `export()`: a run directory, a trace or a run, in every form, or a reason why not."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from htpsim.errors import HtpsimError
from htpsim.experiments.single import run_one
from htpsim.experiments.trace_export import FORMS, TRACES, export, form_of
from htpsim.formats import recognise, trace
from htpsim.formats.trace import read_trace, write_trace
from htpsim.report.directory import scenario_dict
from htpsim.testing import random_scenario, trace_scenario
from tests.cli.support import INLINE, PAIR, call
from tests.writers.viewer import perfetto_picture

SUFFIX = {"chrome": "json", "lines": "jsonl", "perfetto": "pftrace", "qnn-viewer": "txt", "qnn-csv": "csv"}
RUN = ("run", PAIR, "--for", "1s", "--replications", "1", *INLINE, "--variant", "guarded", "--case", "weighted")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run directory and the trace that was written with it."""
    made = tmp_path_factory.mktemp("run")
    settings = ["run.duration=1s", "run.replications=1"]
    single = run_one(PAIR, variant="guarded", case="weighted", set_values=settings, workers=1)
    single.result.write(made / "out", scenario=scenario_dict(single.resolved))
    write_trace(single.trace(), made / "with.jsonl")
    return made


@pytest.mark.slow
def test_a_run_directory_in_every_form(capsys: pytest.CaptureFixture[str], folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("perfetto")
    for form in FORMS:
        path = tmp_path / f"{form}.{SUFFIX.get(form, 'x')}"
        by_name = () if form in SUFFIX else ("--as", form)
        outcome = call(capsys, "export", str(folder / "out"), "-o", str(path), *by_name)
        assert (outcome.code, outcome.out, outcome.err) == (0, "", f"Written to {path}\n")

    names = {"chrome": "htpsim-trace", "lines": "htpsim-trace"} | {
        form: form for form in ("qnn-viewer", "qnn-csv", "genie-profile")
    }
    for form, name in names.items():
        assert recognise(next(tmp_path.glob(f"{form}.*"))) == name
    written, with_run = read_trace(tmp_path / "lines.jsonl"), read_trace(folder / "with.jsonl")
    assert (written.events, written.parts, written.source) == (with_run.events, with_run.parts, with_run.source)
    assert perfetto_picture((tmp_path / "perfetto.pftrace").read_bytes()).rows
    assert len(pd.read_csv(tmp_path / "table.x")) == len(written.calls)
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []


@pytest.mark.slow
def test_a_trace_becomes_another_trace_and_nothing_else(
    capsys: pytest.CaptureFixture[str], folder: Path, tmp_path: Path
) -> None:
    source, other = folder / "with.jsonl", tmp_path / "x.json"

    assert call(capsys, "export", str(source), "-o", str(other)).code == 0
    refused = call(capsys, "export", str(source), "-o", str(tmp_path / "x.txt"))

    assert read_trace(other) == read_trace(source)
    assert refused.code == 2
    assert refused.err.startswith("htpsim: qnn-viewer: got a trace, expected a run")
    assert not (tmp_path / "x.txt").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["out", "-o", "x.foo"], "got a name that says no form, expected one ending in .json"),
        (["out", "-o", "x", "--as", "perfeto"], "did you mean 'perfetto'"),
        (["out", "-o", "x.csv", "--client", "vlm9"], "client: got 'vlm9', expected one of"),
        (["out", "-o", "x.json", "--client", "vlm0"], "only the QNN forms are of one client"),
        (["out", "-o", "x.csv", "--table", "requests"], "only the form 'table' has one"),
        (["out", "-o", "x.csv", "--as", "table", "--table", "request"], "did you mean 'requests'"),
        (["absent", "-o", "x.json"], "absent: got no such file"),
        (["empty", "-o", "x.json"], "empty: got no scenario.json in it"),
        (["other", "-o", "x.json"], "other/records.csv: line "),
        (["compared", "-o", "x.json"], "got a comparison, expected one of the runs in compared/runs: a.b"),
        (["python", "-o", "x.json"], "got no 'scenario', expected it beside"),
        (["broken", "-o", "x.json"], "broken/summary.json: got"),
        (["list", "-o", "x.json"], "list/summary.json: the file: got [1]"),
        (["out", "-o", "nowhere/x.json"], "got a file in no folder that exists"),
        (["out/records.csv", "-o", "x.json"], "records.csv:1: got"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(
    capsys: pytest.CaptureFixture[str],
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    spoil(folder / "out", tmp_path)
    (tmp_path / "out").symlink_to(folder / "out")
    before = sorted(tmp_path.iterdir())
    monkeypatch.chdir(tmp_path)

    outcome = call(capsys, "export", *arguments)

    assert outcome.code == 2
    assert message in outcome.err
    assert len(outcome.err.splitlines()) == 1
    assert sorted(tmp_path.iterdir()) == before


def spoil(out: Path, place: Path) -> None:
    """Make run directories that are none, each in its own way."""
    texts = {path.name: path.read_text(encoding="utf-8") for path in out.iterdir()}
    changed = {
        "empty": {},
        "other": texts | {"records.csv": texts["records.csv"].replace("decode", "decoed")},
        "python": texts | {"scenario.json": json.dumps({"name": "x", "instances": []})},
        "broken": texts | {"summary.json": texts["summary.json"][:-30]},
        "list": texts | {"summary.json": "[1]"},
    }
    (place / "compared" / "runs" / "a.b").mkdir(parents=True)
    for name, files in changed.items():
        (place / name).mkdir()
        for file, text in files.items():
            (place / name / file).write_text(text, encoding="utf-8")


def test_an_absent_package_is_told_before_the_run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(module: str, extra: str) -> None:
        raise HtpsimError(f"perfetto: got no such package, expected it: pip install htpsim[{extra}]")

    monkeypatch.setattr(trace, "needed", absent)
    monkeypatch.setattr("htpsim.experiments.single.run_one", lambda *_, **__: pytest.fail("it ran"))

    outcome = call(capsys, *RUN, "--trace", str(tmp_path / "x.pftrace"))

    assert outcome.code == 2
    assert outcome.err == "htpsim: perfetto: got no such package, expected it: pip install htpsim[perfetto]\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_run_says_where_its_perfetto_trace_is(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pytest.importorskip("perfetto")
    path = tmp_path / "x.pftrace"

    outcome = call(capsys, *RUN, "--trace", str(path))

    assert outcome.code == 0
    assert f"Written to {path}: open it in ui.perfetto.dev." in outcome.err
    assert perfetto_picture(path.read_bytes()).arrows


@pytest.mark.parametrize("form", TRACES)
def test_a_trace_in_python(form: str, tmp_path: Path) -> None:
    pytest.importorskip("perfetto")
    made = trace_scenario(random_scenario(3))

    export(made, tmp_path / "x", form)

    assert (tmp_path / "x").stat().st_size > 0
    assert form_of("x", form) == form
