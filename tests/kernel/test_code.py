"""Machine code in files: read back as it was written, passed over when it is not for this machine or damaged."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from htpsim.kernel import code

pytest.importorskip("llvmlite", exc_type=ImportError)

SOURCE = """
define i32 @{name}(i64* %result, i8** %fault, i64 %world, i64 %what, i64 %j) {{
  %first = load i64, i64* %result
  %sum = add i64 %what, %j
  store i64 %sum, i64* %result
  %refused = icmp slt i64 %what, 0
  %status = zext i1 %refused to i32
  ret i32 %status
}}
"""


def object_file(name: str) -> bytes:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(reloc="static")
    made: bytes = machine.emit_object(llvm.parse_assembly(SOURCE.format(name=name)))
    return made


def test_code_that_was_written_is_called(tmp_path: Path) -> None:
    path = tmp_path / "new" / "some.code"
    code.write_code(path, "sum_of", object_file("sum_of"))
    found = code.read_code(path)
    assert found is not None
    enter = code.callable_of(*found)

    assert (enter(0, 20, 3), enter(0, 0, -1)) == (23, -1)
    assert [each.name for each in path.parent.iterdir()] == ["some.code"]
    with pytest.raises(code.Stopped):
        enter(0, -1, 3)


def other_machine(content: bytes) -> bytes:
    header, _, rest = content.partition(b"\n")
    return json.dumps(json.loads(header) | {"processor": "another"}).encode() + b"\n" + rest


@pytest.mark.parametrize(
    "harm",
    [other_machine, lambda c: c[:-1], lambda c: c[:-1] + b"?", lambda c: b"", lambda c: b"[1]\n", lambda c: c[5:]],
    ids=["another processor", "cut off", "changed", "empty", "another header", "no header"],
)
def test_what_is_not_sound_is_passed_over(tmp_path: Path, harm: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "some.code"
    code.write_code(path, "sum_of", object_file("sum_of"))
    assert code.read_code(path) is not None
    path.write_bytes(harm(path.read_bytes()))

    assert code.read_code(path) is None
    assert code.read_code(tmp_path / "none.code") is None


def test_what_an_interrupt_cuts_short_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: Path, target: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        code.write_code(tmp_path / "some.code", "sum_of", b"code")

    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="files have no owner here")
def test_what_somebody_else_may_have_written_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "some.code"
    code.write_code(path, "sum_of", b"code")
    assert code.read_code(path) == ("sum_of", b"code")

    for mode in (0o620, 0o602):
        path.chmod(mode)
        assert code.read_code(path) is None
    path.chmod(0o600)
    assert code.read_code(path) is not None
    if os.getuid() == 0:
        os.chown(path, 4_321, -1)
    else:
        monkeypatch.setattr(os, "getuid", lambda: 4_321)
    assert code.read_code(path) is None
