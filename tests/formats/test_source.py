"""Text of any encoding, line end and colour comes out as the same lines, or is refused by a clear word."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htpsim.errors import FormatError
from htpsim.formats import source as module
from htpsim.formats.source import decode, from_text, load

TEXT = "Init Stats:\n    NetRun: 12 us\n小模型 ®\n"
ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"]


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_encodings_and_line_ends_make_no_difference(encoding: str, line_end: str) -> None:
    assert decode("a", TEXT.replace("\n", line_end).encode(encoding)).text == TEXT


def test_colours_and_titles_are_stripped() -> None:
    coloured = "\x1b[1;32mNetRun\x1b[0m: 12 us\x1b]0;title\x07\x1b[K"

    assert from_text("a", coloured).text == "NetRun: 12 us"


def test_a_progress_bar_does_not_shift_line_numbers() -> None:
    assert from_text("a", "10 %\r20 %\nend").lines == ("10 % 20 %", "end")


def test_line_numbers_are_those_of_an_editor() -> None:
    """Form feeds and Unicode separators end no line."""
    assert len(from_text("a", "one\x0cstill one\u2028still one\ntwo").lines) == 2


def test_bytes_of_another_encoding_are_refused_by_line_and_replaced_on_request() -> None:
    data = "ok\n延迟 12 ms\n".encode("gb18030")

    with pytest.raises(FormatError, match=r"^a\.log:2: got byte 0x\w\w, expected UTF-8 text"):
        decode("a.log", data)
    lenient = decode("a.log", data, lenient=True)
    assert lenient.lines[1].endswith("12 ms")
    assert "line 2" in lenient.notes[0]


def test_a_raw_profiling_log_is_told_from_its_text() -> None:
    with pytest.raises(FormatError, match=r"binary data.*qnn-profile-viewer"):
        decode("qnn-profiling-data_0.log", b"QNN\x00\x00\x01\x02 data \x00")


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "perf.yaml").write_text("a: 1")

    with pytest.raises(FormatError, match=r"no such file.*did you mean '.*perf\.yaml'"):
        load(tmp_path / "prf.yaml")
    with pytest.raises(FormatError, match="got a folder"):
        load(tmp_path)
    with pytest.raises(FormatError, match="no such file"):
        load(tmp_path / "no" / "such" / "folder.txt")
    with pytest.raises(FormatError, match="no such file"):
        load("a\0b")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(FormatError, match="device or pipe"):
        load(tmp_path / "pipe")


def test_a_file_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BYTES_MAX", 2 * 2**20)
    (tmp_path / "just.log").write_bytes(b"x" * 2 * 2**20)
    (tmp_path / "huge.log").write_bytes(b"x" * 3 * 2**20)

    assert len(load(tmp_path / "just.log").text) == 2 * 2**20
    with pytest.raises(FormatError, match="got 3 MB, expected at most 2 MB"):
        load(tmp_path / "huge.log")


def test_the_limit_is_64_mb() -> None:
    assert module.BYTES_MAX == 64 * 2**20


@given(st.binary(max_size=300))
def test_any_bytes_are_text_or_a_refusal(data: bytes) -> None:
    for lenient in (False, True):
        with contextlib.suppress(FormatError):
            assert "\r" not in decode("a", data, lenient).text
