"""Where the loop is not compiled, or may not be kept, everything still runs, and a reader is told why it is slower."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from htpsim.cli.doctor import NO, _kernel
from htpsim.experiments.engine import simulate, tally
from htpsim.kernel import compiled
from htpsim.sched import Sfq
from htpsim.spec import Guard
from tests.kernel.test_compiled import EVERYTHING
from tests.kernel.test_engines import SCENARIO

pytestmark = pytest.mark.skipif(not compiled.can_compile(), reason="Numba is missing, or may not compile")


@pytest.fixture(autouse=True)
def _afresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Find nothing that was compiled before, and let nothing that this finds stay."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    for kept in (compiled.cache_folder, compiled._function_or_why):
        kept.cache_clear()
    yield
    for kept in (compiled.cache_folder, compiled._function_or_why):
        kept.cache_clear()


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let Numba be one that does not have what the engine relies on; return what was tried to be compiled."""
    found: list[str] = []

    def fail(policy: type[Sfq], shape: object) -> tuple[str, bytes]:
        found.append(policy.name)
        raise TypeError("cannot unpack non-iterable ModulePassManager object\nand more")

    monkeypatch.setattr(compiled, "_compiled", fail)
    return found


def test_a_numba_that_does_not_compile_it_leaves_runs_to_the_reference_engine_and_is_asked_once(
    tried: list[str],
) -> None:
    logs = [simulate(SCENARIO, replication, engine="kernel") for replication in range(3)]

    assert {log.engine for log in logs} == {"reference"}
    assert logs[0].engine_why.startswith("Numba ")
    assert logs[0].engine_why.endswith(
        "does not compile the engine, which is slower therefore: cannot unpack non-iterable ModulePassManager object"
    )
    assert tried == ["sfq"]


def test_without_records_it_runs_interpreted_then(tried: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    found = [t.executes for t in tally(SCENARIO, 2)]
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")

    assert tried == ["sfq"]
    assert found == [t.executes for t in tally(SCENARIO, 2)] != [0, 0]


def test_doctor_says_that_it_does_not_compile(tried: list[str]) -> None:
    works, text = _kernel()

    assert works == NO
    assert "does not compile it; the reference engine does it all" in text


def test_a_users_policy_is_tried_once(tried: list[str]) -> None:
    own = Guard(policy="tests.kernel.policies:Latest")
    logs = [simulate(replace(SCENARIO, guard=own), engine="kernel") for _ in range(2)]

    assert logs[0].engine_why.startswith("policy latest cannot be compiled: cannot unpack")
    assert tried == ["latest"]


def test_the_numba_that_is_asked_for_is_one_that_was_tried() -> None:
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")

    assert "numba>=0.62" in tomllib.loads(text)["project"]["dependencies"]


def test_a_folder_that_cannot_be_written_to_keeps_nobody_from_compiling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    monkeypatch.setattr(compiled, "_compiled", lambda policy, shape: ("some", b"code"))
    monkeypatch.setattr(compiled, "callable_of", lambda name, code: len)

    assert compiled.function_for(Sfq, EVERYTHING) is len


def test_a_user_without_a_home_has_a_folder_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", nowhere)

    assert compiled.cache_folder().parent.name == f"htpsim-{os.getuid() if hasattr(os, 'getuid') else 0}"
