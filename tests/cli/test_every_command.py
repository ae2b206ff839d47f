"""Every command alike: help, quiet, JSON of the documented shape, 80 columns, no escape codes, errors that teach."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from htpsim.cli.app import cli
from htpsim.cli.shapes import ANY, JSON, WRITES
from tests.cli.support import FIXTURES, INLINE, PAIR, ROOT, call
from tests.cli.test_processes import on_a_terminal

FORMATS = ROOT / "tests" / "fixtures" / "formats"
ESCAPE = "\x1b"
SHORT = ("--for", "1s", "--replications", "1", *INLINE)
TRACED = ("run", PAIR, *SHORT, "--variant", "guarded", "--case", "weighted")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True, slots=True)
class Case:
    """One way to call a command that is over in a blink."""

    words: tuple[str, ...]
    codes: tuple[int, ...] = (0,)
    prints_a_file: bool = False
    """What it prints is the text of a file, which has lines of its own length."""
    slow: bool = False


TABLE = {
    "run": Case((PAIR, *SHORT, "--variant", "guarded", "--case", "weighted")),
    "compare": Case((PAIR, *SHORT, "--no-grid", "--case", "weighted")),
    "sweep": Case((PAIR, *SHORT, "--vary", "guard.slots=1,2")),
    "sensitivity": Case((PAIR, "--for", "2s", *INLINE, "--only", "guard.slots")),
    "tune": Case(
        (PAIR, *SHORT, "--vary", "guard.slots=1,2", "--keep", "itl.p50 <= 80ms", "--goal", "vit.mean"), codes=(0, 1)
    ),
    "report": Case((PAIR, "--for", "1s", "--replications", "1", *INLINE, "--no-grid", "-o", "r.html"), slow=True),
    "blame": Case((PAIR, "--for", "2s")),
    "fit": Case((PAIR, "--most", "2")),
    "scenarios": Case((), slow=True),
    "calibrate": Case((str(FORMATS / "console_verbose.log"), str(FORMATS / "genie_dialog.json")), prints_a_file=True),
    "score": Case(("trace.jsonl", "trace.jsonl")),
    "inspect": Case((str(FIXTURES / "genie_config.json"),)),
    "import": Case((str(FORMATS / "throughput_two.json"), "-o", "made.toml")),
    "export": Case(("trace.jsonl", "-o", "trace.json")),
    "schema": Case((), prints_a_file=True),
    "policies": Case(()),
    "check": Case(("trace.jsonl",)),
    "explain-policy": Case(("trace.jsonl",)),
    "validate": Case((), slow=True),
    "diff-engines": Case((PAIR, "--for", "1s"), slow=True),
    "measure": Case(("--builtin", "decode", "--runs", "5"), slow=True),
    "live": Case(("live/quota", "--work", "timed", "--for", "0.3s"), slow=True),
    "doctor": Case((), slow=True),
    "completion": Case(("bash",), prints_a_file=True),
}
QUICK = [name for name, case in TABLE.items() if not case.slow]
LASTING = [name for name, case in TABLE.items() if case.slow]


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A trace of a run, for the commands that read one."""
    path = tmp_path_factory.mktemp("every") / "trace.jsonl"
    with pytest.raises(SystemExit):
        cli.main([*TRACED, "--trace", str(path), "-q"])
    return path.read_bytes()


@pytest.fixture
def folder(trace: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "trace.jsonl").write_bytes(trace)
    monkeypatch.chdir(tmp_path)
    for name in ("FORCE_COLOR", "NO_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def too_wide(text: str) -> list[str]:
    return [line for line in text.splitlines() if cell_len(line) > 80]


def test_every_command_is_in_the_table() -> None:
    assert set(TABLE) == set(cli.commands)


@pytest.mark.parametrize("word", ["-h", "--help"])
@pytest.mark.parametrize("name", ["", *TABLE])
def test_help_is_there_and_fits(name: str, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    done = call(capsys, *filter(None, (name, word)))

    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("Usage: ")
    assert "-h, --help" in done.out
    assert not name or "-q, --quiet" in done.out
    assert too_wide(done.out) == []


def holds(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Run a command quietly, and as JSON."""
    case = TABLE[name]
    plain = call(capsys, name, *case.words, "-q")
    assert plain.code in case.codes, plain.err
    assert plain.err == ""
    assert ESCAPE not in plain.out + plain.err
    assert case.prints_a_file or too_wide(plain.out) == []
    if name in WRITES:
        return
    told = call(capsys, name, *case.words, "--json")
    assert told.code == plain.code, told.err
    document = json.loads(told.out)
    for one in document if name == "policies" else [document]:
        found = set(one[next(iter(one))] if ANY in JSON[name] else one)
        assert found if ANY in JSON[name] else found == set(JSON[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_it_keeps_to_the_rules(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    holds(name, capsys)


@pytest.mark.verify
@pytest.mark.parametrize("name", LASTING)
def test_one_that_takes_its_time_keeps_to_them_too(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if name == "measure":
        pytest.importorskip("onnxruntime", reason="nothing to measure with: the extra measure is not installed")
    holds(name, capsys)


@pytest.mark.verify
@pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals as POSIX has them")
@pytest.mark.parametrize("name", QUICK)
def test_a_terminal_that_declines_colour_gets_none(name: str, folder: Path) -> None:
    written = on_a_terminal(80, name, *TABLE[name].words, NO_COLOR="1")

    assert written
    assert [code for code in COLOUR.findall(written) if re.search(r"[\[;](3|4|9|10)[0-7]", code)] == []


@pytest.mark.slow
def test_quiet_says_nothing_of_what_it_wrote(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loud = call(capsys, *TRACED, "--trace", "loud.jsonl")
    quiet = call(capsys, *TRACED, "--trace", "quiet.jsonl", "-q")

    assert "Written to loud.jsonl" in loud.err
    assert quiet.err == ""
    assert quiet.out == loud.out
    assert Path("quiet.jsonl").read_bytes() == Path("loud.jsonl").read_bytes()


def test_quiet_still_tells_errors(capsys: pytest.CaptureFixture[str]) -> None:
    done = call(capsys, "inspect", "nothing-of-the-kind.log", "-q")

    assert done.code == 2
    assert "nothing-of-the-kind.log: got no such file" in done.err


@pytest.mark.parametrize("name", TABLE)
def test_an_option_that_there_is_not_is_refused_with_the_nearest(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    done = call(capsys, name, "--quite")

    assert (done.code, done.out) == (2, "")
    assert "No such option '--quite'" in done.err
    assert "'--quiet'" in done.err
    assert f"{name} --help" in done.err


def _missing(name: str) -> tuple[str, ...] | None:
    """Return words that name a file that is not there, for the commands that read one."""
    gone = "no-such-file.log"
    read: dict[str, Callable[[], tuple[str, ...]]] = {
        "score": lambda: (gone, gone),
        "export": lambda: (gone, "-o", "x.json"),
        "import": lambda: (gone, "-o", "x.toml"),
        "sweep": lambda: (gone, "--vary", "guard.slots=1,2"),
        "tune": lambda: (gone, "--vary", "guard.slots=1,2", "--keep", "itl.p50 <= 1ms", "--goal", "vit.mean"),
    }
    alone = {"scenarios", "schema", "policies", "validate", "doctor", "completion"}
    return None if name in alone else read.get(name, lambda: (gone,))()


@pytest.mark.parametrize("name", [name for name in TABLE if _missing(name)])
def test_a_file_that_is_not_there_is_told_in_a_line(
    name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words: Any = _missing(name)
    done = call(capsys, name, *words)

    assert (done.code, done.out) == (2, "")
    assert "no-such-file.log" in done.err
    assert "expected" in done.err
    assert "Traceback" not in done.err
    assert list(tmp_path.iterdir()) == []


def test_a_command_that_there_is_not_is_told_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    done = call(capsys, "comapre")

    assert done.code == 2
    assert "Did you mean one of: 'compare'" in done.err
