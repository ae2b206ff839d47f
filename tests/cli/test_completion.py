"""What the shell offers when one presses the tab key, and the script that makes it ask."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from htpsim.cli.app import cli
from htpsim.cli.completion import SHELLS
from tests.cli.support import PAIR, call, command, environment


def offered(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    """What is offered for the last word of a line."""
    monkeypatch.setenv("_HTPSIM_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", " ".join(["htpsim", *words]))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    with pytest.raises(SystemExit):
        cli.main(prog_name="htpsim")
    return [line.partition(",")[2] for line in capsys.readouterr().out.splitlines() if line]


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_names_the_program_and_the_variable(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    done = call(capsys, "completion", shell)

    assert done.code == 0
    assert "_HTPSIM_COMPLETE" in done.out
    assert "htpsim" in done.out


def test_another_shell_is_refused_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    done = call(capsys, "completion", "csh")

    assert done.code == 2
    assert "'bash', 'zsh', 'fish'" in done.err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["dia"], []),
        (["doc"], ["doctor"]),
        (["run", "vit_leg"], ["vit_legacy", "vit_legacy_high_priority", "vit_legacy_llm_high", "vit_legacy_one_copy"]),
        (["fit", "field/b02"], ["field/b02_streams_in_processes"]),
        (["run", "vit_migration", "--variant", "genie_"], ["genie_registry", "genie_vit_split"]),
        (["compare", "vit_migration", "--case", ""], ["equal", "weights_4211"]),
        (["compare", "--variant", "x", "vit_migration", "--variant", "legacy_o"], ["legacy_one_copy"]),
        (["run", "--variant", ""], []),
        (["run", "no_such.toml", "--variant", ""], []),
        (["run", "vit_migration", "--prec"], ["--precision"]),
    ],
)
def test_names_complete(
    words: list[str], expected: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert offered(monkeypatch, capsys, *words) == expected


def test_variants_of_a_file_of_ones_own_complete(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert offered(monkeypatch, capsys, "run", PAIR, "--variant", "gu") == ["guarded"]


def test_a_name_that_is_none_completes_as_a_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert offered(monkeypatch, capsys, "run", "mine") == ["mine"]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_completes_after_reading_the_script(tmp_path: Path) -> None:
    script = subprocess.run(
        command("completion", "bash"), env=environment(), capture_output=True, text=True, check=True
    ).stdout
    program = tmp_path / "htpsim"
    program.write_text(
        f"#!/bin/sh\nexec {command()[0]} -c \"from htpsim.cli.app import cli; cli(prog_name='htpsim')\"\n"
    )
    program.chmod(0o755)
    (tmp_path / "script.bash").write_text(script)
    typed = (
        'source script.bash; COMP_WORDS=(htpsim run vit_mig); COMP_CWORD=2; _htpsim_completion "$PWD/htpsim"; '
        'echo "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", typed], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True
    )

    assert done.stdout.split() == ["vit_migration"]
