"""Lines one after another are the lines of the whole text, whatever the encoding, and take no memory for it."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htpsim import formats
from htpsim.errors import FormatError
from htpsim.formats import genie_console, registry, source, stream
from htpsim.formats.source import decode
from htpsim.formats.stream import LineStream

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "formats"
VERBOSE = FIXTURES / "console_verbose.log"

pieces = st.sampled_from(["a", "é", "延", "🙂", "\n", "\r", "\r\n", "\x1b[31m", "\x1b", "[", "0m", " ", "\x1b]0;t\x07"])
texts = st.lists(pieces, max_size=40).map("".join)


@given(text=texts, encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-be"]), block=st.integers(2, 9))
def test_lines_are_those_of_the_whole_text(
    text: str, encoding: str, block: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Blocks of a few bytes, so that every character, colour and line end is cut somewhere."""
    path = tmp_path_factory.mktemp("stream") / "a.log"
    data = ("\ufeff" * (encoding == "utf-16-be") + text).encode(encoding)
    path.write_bytes(data)
    patch = pytest.MonkeyPatch()
    with patch.context() as patched:
        # The encoding is found in the first block, which must hold a character.
        patched.setattr(stream, "BLOCK_BYTES", 4 * block)
        assert tuple(LineStream(path).lines) == decode("a.log", data).lines


@given(text=texts)
def test_lines_can_be_read_twice(text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("stream") / "a.log"
    path.write_text(text, encoding="utf-8", newline="")
    lines = LineStream(path)

    assert list(lines.lines) == list(lines.lines)


def test_bytes_that_are_no_text_are_refused_by_line_and_replaced_on_request(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(b"one\ntwo\nthr\xffee\nfo\xfeur\n")
    lenient = LineStream(tmp_path / "a.log", lenient=True)

    with pytest.raises(FormatError, match=r"a\.log:3: got byte 0xff, expected UTF-8 text"):
        list(LineStream(tmp_path / "a.log").lines)
    assert list(lenient.lines) == ["one", "two", "thr\ufffdee", "fo\ufffdur", ""]
    assert lenient.notes == ("line 3: bytes that are not UTF-8 were replaced by U+FFFD",)


def test_a_character_that_the_file_cuts_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes("ok\n延".encode()[:-1])

    with pytest.raises(FormatError, match=r":2: got byte 0xe5"):
        list(LineStream(tmp_path / "a.log").lines)


def test_binary_is_refused_by_line(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(b"ok\nQN\x00N\n")

    with pytest.raises(FormatError, match=r":2: got binary data"):
        list(LineStream(tmp_path / "a.log", lenient=True).lines)


def test_a_line_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "LINE_MAX", 2**20)
    monkeypatch.setattr(stream, "BLOCK_BYTES", 2**18)
    (tmp_path / "a.log").write_text("one\n" + "x" * 2**22)

    with pytest.raises(FormatError, match=r":2: got a line of more than 1 M characters"):
        list(LineStream(tmp_path / "a.log").lines)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="cannot be read"):
        list(LineStream(tmp_path / "absent.log").lines)


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every file of more than a kilobyte a large one."""
    for module in (source, stream):
        monkeypatch.setattr(module, "BYTES_MAX", 1000)
    monkeypatch.setattr(stream, "BLOCK_BYTES", 700)


@pytest.mark.usefixtures("large")
def test_a_large_log_is_read_as_a_small_one(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = "token_ar1_cl8_2_of_2"
    large = formats.read(VERBOSE)
    time = formats.service_time_ns(VERBOSE, graph)
    samples = formats.samples_ns(VERBOSE, graph)
    monkeypatch.undo()

    assert large == formats.read(VERBOSE)
    assert time == formats.service_time_ns(VERBOSE, graph)
    assert samples == formats.samples_ns(VERBOSE, graph) == (5_000_000, 5_000_000)


@pytest.mark.usefixtures("large")
def test_a_large_file_of_another_format_is_refused_for_its_size() -> None:
    with pytest.raises(FormatError, match=r"netrun_basic\.csv: got 0 MB, expected at most 0 MB"):
        formats.read(FIXTURES / "netrun_basic.csv")


@pytest.mark.usefixtures("large")
def test_a_large_file_of_no_format_is_refused_with_the_list(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("nothing that is known\n" * 200)

    with pytest.raises(FormatError, match="fits no known format, expected one of"):
        formats.read(tmp_path / "a")


def test_the_head_of_a_large_file_is_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "BLOCK_BYTES", 16)
    (tmp_path / "a").write_bytes("\ufeffab\r\ncd\r\nefgh".encode("utf-16-le"))

    assert stream.head(tmp_path / "a").lines == ("ab", "")


def test_memory_does_not_grow_with_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five times the log, the same peak; the executions counted say that it was read."""
    monkeypatch.setattr(stream, "BLOCK_BYTES", 2**14)
    text = VERBOSE.read_text(encoding="utf-8")
    run = text[text.index("Genie:    109.0ms") : text.index("Genie:    121.6ms")]
    peaks = []
    for count in (100, 500):
        path = tmp_path / f"{count}.log"
        path.write_text(text + run * count)
        tracemalloc.start()
        log = genie_console.read(LineStream(path)).data
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert log.executions.executions == 11 + 4 * count

    assert peaks[1] < 1.1 * peaks[0] + 20_000


def test_only_formats_of_lines_are_read_so() -> None:
    assert [name for name, item in registry.FORMATS.items() if item.large] == ["genie-console"]
