"""Every command of docs/answers.md does what the page says, in a shorter run."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.cli.support import ROOT, call

PAGE = ROOT / "docs" / "answers.md"
COMMANDS = [line.removeprefix("$ htpsim ") for line in PAGE.read_text("utf-8").splitlines() if line.startswith("$ ")]
SAID = {
    "compare": "Verdict",
    "fit": "How many instances fit",
    "tune": "looked at in short runs",
    "blame": "Who delayed whom",
    "sensitivity": "turns an answer round",
    "sweep": "6 points, 12 runs",
}


def test_the_page_has_a_command_for_every_question() -> None:
    assert [line.split()[0] for line in COMMANDS] == list(SAID)


@pytest.mark.slow
@pytest.mark.parametrize("line", COMMANDS, ids=lambda line: line.split()[0])
def test_a_command_of_the_page_works(
    line: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name, *words = shlex.split(line)
    for option in ("--for", "--precision"):
        if option in words:
            at = words.index(option)
            del words[at : at + 2]
    words += ["--variant", "legacy", "--most", "9"] if name == "fit" else ["--for", "4s"]
    if name == "compare":
        words += ["--no-grid", "--precision", "100%", "--budget", "3", "--case", "equal"]
        words += ["--variant", "legacy", "--variant", "genie"]
    if name not in ("fit", "blame"):
        words += ["--workers", "1"]
    done = call(capsys, name, *words)
    assert done.code in ((0, 1) if name == "tune" else (0,)), done.err
    assert SAID[name] in done.out
    assert max(map(len, done.out.splitlines())) <= 80
