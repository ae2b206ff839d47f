"""docs/first-ten-minutes.md does what it says, step by step in an empty folder."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from htpsim.report import directory
from tests.cli.support import ROOT, call

PAGE = (ROOT / "docs" / "first-ten-minutes.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"```(\w*)\n(.*?)```", re.DOTALL)
LASTING = {"run", "compare", "blame"}


def blocks(kind: str) -> list[str]:
    return [text for found, text in BLOCK.findall(PAGE) if found == kind]


def commands() -> list[str]:
    return [line for text in blocks("sh") for line in text.splitlines()]


def shortened(command: str) -> str:
    """Simulate less than the page does: what is shown is that it works, not what comes out."""
    return command.replace("--for 60s", "--for 4s").replace("--replications 3", "--replications 1")


@pytest.mark.slow
def test_every_command_of_the_page_works_in_an_empty_folder(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(directory, "save_run_plots", lambda result, folder: None)  # pictures are tested elsewhere
    Path("mine.toml").write_text(blocks("toml")[0], encoding="utf-8")
    said = ""
    for command in commands():
        line, _, target = shortened(command).partition(" > ")
        program, *arguments = shlex.split(line)
        assert program == "htpsim"
        inline = ["--workers", "1", "--warmup", "0s"] if arguments[0] in {"run", "compare"} else []
        done = call(capsys, *arguments, *inline)
        assert (done.code, done.err if done.code else "") == (0, ""), command
        if target:
            Path(target).write_text(done.out, encoding="utf-8")
        said += done.out

    assert {"first.html", "first", "completion.bash", "mine.toml", "scenario.schema.json"} == {
        path.name for path in tmp_path.iterdir()
    }
    assert (tmp_path / "first" / "report.txt").exists()
    assert all(words in said for words in ("Verdict", "weights 4:4:1:1", "How many instances fit", "slowest 1 %"))


def test_a_mistyped_key_is_told_as_the_page_shows_it(capsys: pytest.CaptureFixture[str]) -> None:
    command, expected = blocks("console")[0].strip().splitlines()
    done = call(capsys, *shlex.split(command.removeprefix("$ htpsim ")))

    assert (done.code, done.err.strip()) == (2, expected)


def test_what_is_run_is_what_the_test_knows_how_to_shorten() -> None:
    used = {command.split()[1] for command in commands()}

    assert used == {"doctor", "scenarios", "completion", "run", "compare", "blame", "fit", "schema"}
    assert all("--for 60s" in command for command in commands() if command.split()[1] in LASTING)
