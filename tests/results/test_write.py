"""A run directory is whole or absent, says the same in any process, and never replaces what is not its own."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from htpsim.errors import HtpsimError
from htpsim.results import RunResult, run_directory, write_run
from htpsim.results.columns import Execute
from tests.results.synthetic import Machine, hand_log, vlm_scenario

FILES = [
    "log.json", "memory.csv", "provenance.json", "records.csv", "requests.csv", "scenario.json", "slices.csv",
    "summary.json",
]  # fmt: skip


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_run_directory_holds_the_run(tmp_path: Path) -> None:
    RunResult(hand_log()).write(tmp_path / "out", scenario={"title": "Früh"}, command=["htpsim", "run", "x"])

    assert names(tmp_path) == ["out"]
    assert names(tmp_path / "out") == FILES
    assert json.loads((tmp_path / "out/scenario.json").read_text(encoding="utf-8")) == {"title": "Früh"}
    record = json.loads((tmp_path / "out/provenance.json").read_text())
    assert record["command"] == ["htpsim", "run", "x"]
    assert record["engine"] == "by hand"
    for name, digest in record["files"].items():
        assert hashlib.sha256((tmp_path / "out" / name).read_bytes()).hexdigest() == digest
    assert sorted([*record["files"], "provenance.json"]) == FILES


def test_records_read_back_as_the_frame(tmp_path: Path) -> None:
    result = RunResult(Machine(vlm_scenario(seconds=5, vit_path="qnn")).run())
    result.write(tmp_path / "out")
    back = pd.read_csv(tmp_path / "out/records.csv")

    assert b"\r" not in (tmp_path / "out/records.csv").read_bytes()
    for name in back.columns:
        expected = result.executes[name].astype(object).where(result.executes[name].notna(), None)
        assert [None if pd.isna(v) else v for v in back[name]] == [None if v == -1 else v for v in expected], name
    with (tmp_path / "out/requests.csv").open() as file:
        assert len(list(csv.DictReader(file))) == len(result.requests)


def test_names_with_commas_and_quotes_survive(tmp_path: Path) -> None:
    log = hand_log()
    log.clients[0] = 'a, "quoted"'
    RunResult(log).write(tmp_path / "out")

    assert 'a, "quoted"' in set(pd.read_csv(tmp_path / "out/records.csv")["client"])


PROGRAM = """
import sys
sys.path.insert(0, {root!r})
from htpsim.results import RunResult
from tests.results.synthetic import Machine, vlm_scenario
RunResult(Machine(vlm_scenario(seconds=3)).run()).write(sys.argv[1])
"""


def test_the_same_run_in_another_process_is_the_same_bytes(tmp_path: Path) -> None:
    root = str(Path(__file__).resolve().parents[2])
    for name, seed in (("one", "1"), ("two", "2")):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "TZ": "Asia/Tokyo" if seed == "2" else "UTC"}
        command = [sys.executable, "-c", PROGRAM.format(root=root), str(tmp_path / name)]
        subprocess.run(command, check=True, env=environment)

    for name in FILES:
        if name != "provenance.json":
            assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name


def test_an_earlier_run_is_replaced(tmp_path: Path) -> None:
    RunResult(hand_log()).write(tmp_path / "out")
    with run_directory(tmp_path / "out") as folder:
        write_run(folder / "legacy", RunResult(hand_log()))
        (folder / "itl.png").write_bytes(b"x")

    assert names(tmp_path) == ["out"]
    assert names(tmp_path / "out") == ["itl.png", "legacy", "provenance.json"]
    RunResult(hand_log()).write(tmp_path / "out")
    assert names(tmp_path / "out") == FILES


def test_an_empty_or_missing_directory_is_taken(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    RunResult(hand_log()).write(tmp_path / "empty")
    RunResult(hand_log()).write(tmp_path / "a/b/c")

    assert names(tmp_path / "empty") == names(tmp_path / "a/b/c") == FILES


@pytest.mark.parametrize(
    ("files", "words"),
    [
        pytest.param({"thesis.tex": ""}, "not a run directory", id="someone's own"),
        pytest.param({"provenance.json": '{"program": "other", "files": {}}'}, "not a run directory", id="of another"),
        pytest.param({"provenance.json": "[1"}, "not a run directory", id="a broken mark"),
    ],
)
def test_a_directory_of_someone_else_is_refused(tmp_path: Path, files: dict[str, str], words: str) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)

    with pytest.raises(HtpsimError, match=words):
        RunResult(hand_log()).write(tmp_path)
    assert {name: (tmp_path / name).read_text() for name in names(tmp_path)} == files


def test_a_file_added_to_a_run_directory_is_not_deleted(tmp_path: Path) -> None:
    RunResult(hand_log()).write(tmp_path / "out")
    (tmp_path / "out/notes.txt").write_text("mine")

    with pytest.raises(HtpsimError, match=r"did not write there \(notes.txt\)"):
        RunResult(hand_log()).write(tmp_path / "out")
    assert (tmp_path / "out/notes.txt").read_text() == "mine"


def test_a_file_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")

    with pytest.raises(HtpsimError, match="is a file"):
        RunResult(hand_log()).write(tmp_path / "out")


def test_an_error_on_the_way_leaves_nothing_and_keeps_what_was(tmp_path: Path) -> None:
    RunResult(hand_log()).write(tmp_path / "out")
    before = {name: (tmp_path / "out" / name).read_bytes() for name in FILES}

    def interrupted() -> None:
        with run_directory(tmp_path / "out") as folder:
            (folder / "half.csv").write_text("a,b")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert names(tmp_path) == ["out"]
    assert {name: (tmp_path / "out" / name).read_bytes() for name in FILES} == before


@pytest.mark.skipif(os.name != "posix", reason="kills a process")
def test_a_killed_run_leaves_no_directory_and_the_next_one_cleans_up(tmp_path: Path) -> None:
    program = (
        "import sys, time\nfrom htpsim.results import run_directory\n"
        "with run_directory(sys.argv[1]) as folder:\n"
        "    (folder / 'records.csv').write_text('half')\n    print('half', flush=True)\n    time.sleep(60)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "out")], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.communicate()

    assert not (tmp_path / "out").exists()
    RunResult(hand_log()).write(tmp_path / "out")
    assert names(tmp_path) == ["out"]
    assert names(tmp_path / "out") == FILES


def test_the_columns_of_records_are_those_of_the_layout(tmp_path: Path) -> None:
    RunResult(hand_log()).write(tmp_path / "out")
    header = (tmp_path / "out/records.csv").read_text().splitlines()[0].split(",")

    assert header == ["priority" if name == "level" else name for name in Execute._fields]
