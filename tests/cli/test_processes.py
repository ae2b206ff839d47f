"""Commands as processes of their own: start-up, pipes, signals, terminals, processes that die."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.support import FIXTURES, PAIR, PLAIN, call, command, environment, spawn

pytestmark = pytest.mark.slow
posix = pytest.mark.skipif(os.name != "posix", reason="signals and pseudo-terminals as POSIX has them")
HEAVY = {"jinja2", "joblib", "matplotlib", "numba", "numpy", "pandas", "pydantic", "rich", "scipy", "simpy", "yaml"}
ENDLESS = ("--for", "20000s", "--replications", "2")


def imported(*arguments: str) -> tuple[set[str], str]:
    """Return the top-level modules that a Python command imports, and what it prints."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments], env=environment(), capture_output=True, text=True, check=True
    )
    names = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    return names, done.stdout


def test_help_imports_nothing_heavy() -> None:
    names, printed = imported("-m", "htpsim", "--help")

    assert "compare" in printed
    assert {"click", "htpsim"} <= names
    assert names & HEAVY == set()


def test_the_library_is_imported_when_it_is_used() -> None:
    names, _ = imported("-c", "import htpsim; dir(htpsim); htpsim.__version__")
    used, _ = imported("-c", "import htpsim; htpsim.load")

    assert names & (HEAVY | {"click"}) == set()
    assert "pydantic" in used


@posix
@pytest.mark.parametrize("words", [("policies",), ("--help",), ("run", "--help"), ("completion", "bash")], ids=" ".join)
def test_a_reader_that_goes_away_is_no_error(words: tuple[str, ...]) -> None:
    process = subprocess.Popen(
        command(*words), env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.close()
    _, err = process.communicate(timeout=60)

    assert err == ""
    assert process.returncode == 141


def hears_interrupts() -> None:
    """Undo what a shell does to programs in its background, which would pass on to what they start."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def starts_workers(pid: int) -> None:
    """Wait until a process has started others, where the system tells; one that only begins dies of an interrupt."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    patience = time.monotonic() + 60
    while children.exists() and not children.read_text(encoding="utf-8") and time.monotonic() < patience:
        time.sleep(0.05)


def without_tracker(err: str) -> str:
    """Leave out what joblib's own tracker may say of a pool that is given up: it depends on who is first to end."""
    lines = err.splitlines(keepends=True)
    return "".join(x for i, x in enumerate(lines) if "resource_tracker" not in "".join(lines[max(0, i - 1) : i + 1]))


@posix
def test_an_interrupt_ends_it_quietly() -> None:
    process = subprocess.Popen(
        command("run", PAIR, *ENDLESS, "--workers", "2", "--engine", "reference"),
        env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        preexec_fn=hears_interrupts,  # noqa: PLW1509 - no other thread runs here
    )  # fmt: skip
    starts_workers(process.pid)
    for _ in range(5):  # one that comes while processes are being started is not heard
        time.sleep(3)
        os.killpg(process.pid, signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=20)
            break
    out, err = process.communicate(timeout=30)

    assert process.returncode == 130
    assert out == ""
    assert err.strip() == "htpsim: interrupted"


@posix
def test_a_killed_run_leaves_no_half_file(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    target = tmp_path / "run"
    process = subprocess.Popen(
        command("run", PLAIN, "--for", "30s", "--replications", "1", "--out", str(target)),
        env=environment(),
        stderr=subprocess.DEVNULL,
    )
    patience = time.monotonic() + 60
    while not list(tmp_path.glob(".run.partial-*")) and time.monotonic() < patience:
        time.sleep(0.005)
    process.kill()
    process.wait()

    left = [path.name for path in tmp_path.iterdir()]
    assert len(left) == 1
    assert left[0].startswith(".run.partial-")

    monkeypatch.setattr("htpsim.report.directory.save_run_plots", lambda *_: None)
    again = call(capsys, "run", PLAIN, "--for", "100ms", "--replications", "1", "--out", str(target))

    assert again.code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@posix
def test_worker_processes_end_when_the_one_that_started_them_is_killed() -> None:
    process = subprocess.Popen(
        command("run", PAIR, *ENDLESS, "--workers", "2", "--engine", "reference"),
        env=environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    time.sleep(3)
    process.kill()
    # The workers hold the other end of the pipe: it ends when they do.
    process.communicate(timeout=30)


@posix
def test_a_worker_process_that_dies_is_told_in_our_words() -> None:
    outcome = spawn(
        "run", PAIR, "--for", "1s", "--replications", "2", "--workers", "2",
        "--set", "guard.policy=bad_policies:Deadly",
    )  # fmt: skip

    assert outcome.code == 2
    assert outcome.out == ""
    assert outcome.err.startswith("htpsim: a worker process was killed")
    assert "Traceback" not in outcome.err


def test_what_breaks_in_a_worker_process_is_told_as_if_it_broke_here(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(FIXTURES))
    arguments = ("run", PAIR, "--for", "1s", "--replications", "2", "--set", "guard.policy=bad_policies:Raises")

    here = call(capsys, *arguments, "--workers", "1")
    there = spawn(*arguments, "--workers", "2")

    assert here.code == there.code == 3
    assert here.err == without_tracker(there.err)
    assert here.err.splitlines()[-1].startswith("run it again with: htpsim run ")


def on_a_terminal(columns: int, *arguments: str, **env: str) -> str:
    """Run a command whose output is a terminal and return what it wrote there."""
    import fcntl
    import pty
    import struct
    import termios

    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    with subprocess.Popen(
        command(*arguments), env=environment(TERM="xterm-256color", **env), stdin=slave, stdout=slave, stderr=slave
    ):
        os.close(slave)
        written = b""
        while True:
            try:
                chunk = os.read(master, 65536)
            except OSError:  # the other end is closed
                break
            if not chunk:
                break
            written += chunk
    os.close(master)
    return written.decode("utf-8")


@posix
def test_a_terminal_gets_progress_and_colour_unless_it_declines() -> None:
    coloured = on_a_terminal(120, "compare", PAIR, "--for", "1s", "--case", "weighted", "--workers", "1", "--no-grid")
    plain = on_a_terminal(120, "run", PLAIN, "--for", "300ms", "--replications", "1", NO_COLOR="1")

    colour = re.compile(r"\x1b\[[0-9;]*3[0-8]")
    assert re.search(r"run \d+ of 9", coloured)
    assert colour.search(coloured)
    assert not colour.search(plain)
    assert "tokens/s" in plain
    printed = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", plain).splitlines()
    assert max(len(line.rpartition("\r")[2]) for line in printed) <= 80


def test_characters_that_the_terminal_lacks_are_no_error() -> None:
    outcome = spawn("run", PLAIN, "--for", "300ms", "--replications", "1", PYTHONIOENCODING="ascii")

    assert outcome.code == 0
    assert "tokens/s" in outcome.out


@pytest.mark.parametrize("columns", ["0", "1", "20", "x"])
def test_a_width_that_is_none_is_no_error(columns: str) -> None:
    outcome = spawn("policies", COLUMNS=columns)

    assert (outcome.code, outcome.err) == (0, "")
    assert columns == "1" or "robin" in outcome.out


@posix
def test_a_file_name_that_is_no_text_is_told() -> None:
    done = subprocess.run([*command("run"), b"bad\xff.toml"], env=environment(), capture_output=True, check=False)

    assert done.returncode == 2
    assert done.stderr.startswith(b"htpsim: bad?.toml: got no such file")
