"""The C++ header of docs/shim: compiled with every warning an error, run with threads, read back, checked."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from htpsim.experiments.check import check_file
from htpsim.experiments.explain import explain_policy
from htpsim.formats.trace import read_trace

ROOT = Path(__file__).resolve().parents[2]
HEADER = ROOT / "docs" / "shim" / "htpsim_trace.h"
COMPILER = shutil.which("g++") or shutil.which("clang++")
LATE_NS = 10**10
"""A busy machine may let a thread sleep on; only the order is tested here."""

pytestmark = [
    pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++ or clang++) on this machine"),
    pytest.mark.slow,
]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("shim") / "program"
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror", "-O1", "-pthread"]
    source = Path(__file__).with_name("shim_program.cpp")
    command = [str(COMPILER), *flags, f"-I{HEADER.parent}", str(source), "-o", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out


def record(program: Path, to: Path, *arguments: str, **environment: str) -> Path:
    subprocess.run(
        [program, *arguments], check=True, timeout=60, env={**os.environ, "HTPSIM_TRACE": str(to), **environment}
    )
    return to


def test_a_recorded_guard_keeps_the_rules(program: Path, tmp_path: Path) -> None:
    path = record(program, tmp_path / "trace.jsonl", "guard", "6", "40")

    report = check_file(path, slots=1, policy="fifo", slack_ns=LATE_NS)

    assert report.report.violations == []
    expected = {"causality", "one-call", "guard-exclusion", "guard-cover", "guard-fifo", "guard-work", "guard-order"}
    assert set(report.report.checked) == expected
    assert len(report.trace.calls) == 240
    handles = {(call.handle, call.weight) for call in report.trace.calls.values()}
    assert handles == {(None, None), *((f'dialog "{t}"', t + 1) for t in range(1, 6))}
    assert {call.context for call in report.trace.calls.values()} == {"llm\\0"}


def test_a_missing_guard_is_found(program: Path, tmp_path: Path) -> None:
    path = record(program, tmp_path / "trace.jsonl", "none", "6", "20")

    report = check_file(path, slots=1)

    assert report.report.counts["guard-exclusion"] > 0
    assert set(report.report.counts) == {"guard-exclusion"}
    assert check_file(path, slots=6).ok


def test_first_come_first_served_is_recognised(program: Path, tmp_path: Path) -> None:
    found = explain_policy(record(program, tmp_path / "trace.jsonl", "guard", "6", "40")).explanation

    assert found.choices > 100
    assert found.fits[0].policy == "fifo"
    # The call is written a moment before the ticket is drawn; now and then a thread is interrupted in between.
    assert found.fits[0].made >= 0.9 * found.choices


def test_several_processes_are_one_trace(program: Path, tmp_path: Path) -> None:
    one = record(program, tmp_path / "0.jsonl", "guard", "3", "10")
    two = record(program, tmp_path / "1.jsonl", "guard", "3", "10", HTPSIM_TRACE_PROCESS="1")

    report = check_file(one, two, slots=1)

    assert report.ok
    assert {call.process for call in report.trace.calls.values()} == {0, 1}
    assert len(report.trace.calls) == 60


def test_nothing_is_written_unless_asked(program: Path, tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "HTPSIM_TRACE"}

    subprocess.run([program, "guard", "2", "3"], check=True, timeout=60, env=environment, cwd=tmp_path)

    assert list(tmp_path.iterdir()) == []


def test_a_trace_of_one_thread_reads_as_written(program: Path, tmp_path: Path) -> None:
    read = read_trace(record(program, tmp_path / "trace.jsonl", "guard", "1", "3"))

    assert [event.kind for event in read.events] == ["call", "grant", "submit", "return"] * 3
    assert read.source == "htpsim_trace.h"


def test_the_header_is_small_and_needs_nothing() -> None:
    lines = HEADER.read_text(encoding="utf-8").splitlines()
    standard = {"atomic", "chrono", "cstdlib", "fstream", "iomanip", "mutex", "sstream", "string", "thread"}

    code = [line for line in lines if line.strip() and not line.strip().startswith(("//", "#"))]
    assert len(code) <= 40
    assert {line.split("<")[1].rstrip(">") for line in lines if line.startswith("#include")} == standard
