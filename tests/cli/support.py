"""What the tests of the command line share: scenarios that are over in a blink, and two ways to run a command."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from htpsim.cli import main

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures" / "cli"
PAIR = str(FIXTURES / "pair.toml")
PLAIN = str(FIXTURES / "plain.toml")
INLINE = ("--workers", "1")
"""No processes are started."""


@dataclass(frozen=True, slots=True)
class Outcome:
    code: int
    out: str
    err: str


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> Outcome:
    """Run a command in this process, errors and exit code included."""
    with pytest.raises(SystemExit) as left:
        main(arguments)
    captured = capsys.readouterr()
    code = left.value.code
    assert isinstance(code, int)
    return Outcome(code, captured.out, captured.err)


def environment(**more: str) -> dict[str, str]:
    """The environment of a command that is run as a process of its own."""
    kept = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "FORCE_COLOR", "COLUMNS"}}
    return {**kept, "PYTHONPATH": os.pathsep.join([str(ROOT), str(FIXTURES)]), **more}


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "htpsim", *arguments]


def spawn(*arguments: str, **env: str) -> Outcome:
    """Run a command as a process of its own."""
    done = subprocess.run(command(*arguments), env=environment(**env), capture_output=True, check=False, timeout=120)
    return Outcome(done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8"))
