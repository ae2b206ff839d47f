"""docs/calibrating.md does what it says: every command is run, every file it shows is used."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from htpsim.report import directory
from tests.calibrate.support import EXAMPLES, ROOT
from tests.cli.support import call

PAGE = (ROOT / "docs" / "calibrating.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"```(\w*)\n(.*?)```", re.DOTALL)


def blocks(kind: str) -> list[str]:
    return [text for found, text in BLOCK.findall(PAGE) if found == kind]


def shortened(command: str) -> str:
    """Simulate less than the page does: what is shown is that it works, not what comes out."""
    return command.replace("--for 20s", "--for 2s").replace("--replications 3", "--replications 1")


@pytest.mark.slow
def test_every_command_of_the_page_works(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(EXAMPLES, tmp_path / "calibrating")
    monkeypatch.chdir(tmp_path / "calibrating")
    monkeypatch.setattr(directory, "save_run_plots", lambda result, folder: None)  # pictures are tested elsewhere
    Path("mine.toml").write_text(blocks("toml")[0], encoding="utf-8")
    commands = [line for text in blocks("sh") for line in text.splitlines()]
    commands = [command for command in commands if "--report" not in command]  # has a test of its own
    said: dict[str, str] = {}
    for command in commands:
        program, *arguments = shlex.split(shortened(command))
        assert program == "htpsim"
        inline = ["--workers", "1"] if arguments[0] in ("run", "compare") else []
        done = call(capsys, *arguments, *inline)
        assert (done.code, done.err if done.code else "") == (0, ""), command
        said[arguments[0]] = said.get(arguments[0], "") + done.out

    for line in blocks("")[0].splitlines():
        assert line in said["calibrate"]
    assert {command.split()[1] for command in commands} == {"calibrate", "run", "compare", "score"}
    assert "genie_registry" in said["compare"]


def test_every_file_of_the_page_is_there() -> None:
    named = set(re.findall(r"\]\(calibrating/([\w.]+)\)", PAGE))

    assert named <= {path.name for path in EXAMPLES.iterdir()}
    assert len(named) == 5


@pytest.mark.slow
@pytest.mark.verify
def test_a_log_becomes_a_report_by_one_command(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(EXAMPLES, tmp_path / "calibrating")
    monkeypatch.chdir(tmp_path / "calibrating")
    (command,) = [line for text in blocks("sh") for line in text.splitlines() if "--report" in line]
    done = call(capsys, *shlex.split(command)[1:])
    assert done.code == 0
    page = Path("four.html").read_text(encoding="utf-8")
    assert "vit_profile.csv" in page
    assert "tokens/s" in page


def test_a_report_without_a_scenario_to_name_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    done = call(capsys, "calibrate", str(EXAMPLES / "perf.yaml"), "--report", str(tmp_path / "x.html"))
    assert done.code == 2
    assert "got no -o FILE" in done.err
    assert not list(tmp_path.iterdir())
