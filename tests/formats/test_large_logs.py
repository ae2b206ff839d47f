"""How fast and in how much memory long logs are read: measured by `make bench`, never judged by the default run."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from htpsim import formats

ROOT = Path(__file__).resolve().parents[2]
VERBOSE = ROOT / ".." / "shared" / "cases" / "genie-console" / "01-specula-npu-genie-ac-verbose.log"
BYTES = 2**30

needs_file = pytest.mark.skipif(
    not VERBOSE.is_file(), reason="the folder of real files (shared/cases) is not beside this one"
)
_READ = (
    "import resource, sys; from htpsim import formats; before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss; "
    "run = formats.read(sys.argv[1]).data.executions; "
    "print(run.executions, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
)


@pytest.mark.bench
@needs_file
def test_a_log_of_4_mb_is_read_in_two_seconds() -> None:
    started = time.perf_counter()
    report = formats.read(VERBOSE)
    spent = time.perf_counter() - started

    print(f"{VERBOSE.stat().st_size / 1e6:.1f} MB in {spent:.2f} s")
    assert report.data.executions.executions == 14_350
    assert spent < 2


@pytest.mark.bench
@needs_file
def test_a_log_of_a_gigabyte_is_read_in_constant_memory(tmp_path: Path) -> None:
    """The decode steps of the real log over and over, until it is a gigabyte long; peak memory of its own process."""
    text = VERBOSE.read_bytes()
    start = text.index(b"Genie:   8854.9ms")
    end = text.index(b"QnnMem_deRegister")
    end = text.rindex(b"Genie:", 0, end)
    steps = text[start:end]
    path = tmp_path / "long.log"
    with path.open("wb") as stream:
        stream.write(text[:end])
        for _ in range((BYTES - end) // len(steps)):
            stream.write(steps)
        stream.write(text[end:])
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", _READ, str(path)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    spent = time.perf_counter() - started
    executions, kib = map(int, done.stdout.split())

    size = path.stat().st_size
    print(f"{size / 1e6:.0f} MB, {executions} executions, in {spent:.0f} s, {kib / 1024:.0f} MiB above the interpreter")
    assert size > 0.99 * BYTES
    assert executions > 14_350 * (size // len(text) - 2)
    assert kib * 1024 < 64 * 2**20
