"""docs/measuring.md: its scenarios run, and what it says of the published figures follows from them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from htpsim.cli.app import cli
from htpsim.experiments.measured import preset
from htpsim.formats import read
from htpsim.formats.writers.measured import measured_viewer_lines
from htpsim.formats.writers.whole import write_text
from htpsim.scenario import load
from tests.cli.support import ROOT, call
from tests.measure.support import MS, measured, measurement

PAGE = (ROOT / "docs" / "measuring.md").read_text(encoding="utf-8")
LOG = ROOT / "scenarios" / "data" / "qnn_cpu_inception_v3.txt"
SCENARIOS = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the page speaks of; ONNX Runtime's are made by hand."""
    found = measurement(measured([20 * MS] * 10), title="inception_v3.onnx")
    write_text(measured_viewer_lines(found.executions(found.measured[0])), tmp_path / "ort.txt")
    preset(found).write(tmp_path / "ort.toml")
    shutil.copy(LOG, tmp_path / "qnn.txt")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_two_files_are_compared(capsys: Any, folder: Path) -> None:
    done = call(capsys, "score", "qnn.txt", "ort.txt", "--json")

    assert done.code == 0
    assert "execute.inception_v3.mean" in done.out


def test_the_scenarios_of_the_page_take_the_files(folder: Path) -> None:
    first, second = SCENARIOS
    (folder / "mine.toml").write_text(first, encoding="utf-8")
    (folder / "own.toml").write_text(second, encoding="utf-8")

    mine = load("mine.toml")
    times = {name: mine.resolve(name).scenario.clients[0].model.graphs[0].service.mean for name in mine.variants}

    assert times["qnn_cpu"] == 1_803_294_000
    assert times["onnxruntime"] == 20 * MS
    assert load("own.toml").base.clients[0].model.graphs[0].service.mean == 20 * MS


def test_the_figures_of_the_page_are_those_of_the_log() -> None:
    log = read(LOG).data
    mean, least, most = (
        section.event("GRAPH_EXECUTE", "inception_v3").value for section in (log.average, log.minimum, log.maximum)
    )

    assert (f"{mean / 1000:,.3f} ms", f"{least / 1000:,.3f} and {most / 1000:,.3f} ms") == (
        "1,803.294 ms",
        "1,753.902 and 1,895.815 ms",
    )
    assert f"{mean / 1000:,.3f} ms" in PAGE
    assert f"{least / 1000:,.3f} and {most / 1000:,.3f} ms" in PAGE
    assert f"{mean / 21_910.243:.1f} times" in PAGE
    assert f"{log.average.event('NetRun', 'inception_v3').value / 1000 - mean / 1000:.1f} ms" in PAGE
    assert f"{100 * (most / least - 1):.0f} % apart" in PAGE
    assert f"{2 * 5.7 / 0.02191:.0f} billion" in PAGE
    assert f"{2 * 5.7 / 1.803294:.0f} billion" in PAGE


def test_every_option_of_the_page_exists() -> None:
    lines = [line.partition("#")[0] for line in PAGE.splitlines() if line.startswith("htpsim ")]
    for line in lines:
        known = {option for each in cli.commands[line.split()[1]].params for option in each.opts}
        assert set(re.findall(r"--[\w-]+", line)) <= known, line
    assert lines
