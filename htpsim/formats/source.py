"""A file as lines of text, whatever wrote it: encodings, line ends, colours and sizes are settled here, once."""

from __future__ import annotations

import codecs
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from htpsim.errors import FormatError, nearest

BYTES_MAX: Final = 64 * 2**20
_SHOWN_MAX: Final = 60
_BINARY_LIKE: Final = 0.3

# Longest first: the UTF-32 mark begins with the UTF-16 one.
_MARKS: Final = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Colours and cursor moves (CSI), window titles and links (OSC), and the other two-byte escapes of ECMA-48.
ANSI: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[@-Z\\^_])")


@dataclass(frozen=True, slots=True)
class Source:
    """The text of one file. Line numbers count from 1 and are those an editor shows."""

    name: str
    """The path as the user gave it, for messages."""

    text: str
    lines: tuple[str, ...]
    encoding: str
    notes: tuple[str, ...] = ()

    @property
    def doubts(self) -> tuple[str, ...]:
        r"""What speaks against the last line, where nothing in it tells a whole value from the beginning of one.

        >>> from_text("a.log", "bytes=12\n").doubts, len(from_text("a.log", "bytes=12").doubts)
        ((), 1)
        """
        if self.text.endswith("\n"):
            return ()
        return ("the file does not end in a line break: if it was cut off, its last value may be cut off too",)

    def error(self, line: int, got: str, expected: str) -> FormatError:
        """Build the refusal of a line, to be raised by the caller.

        >>> str(from_text("a.txt", "x").error(1, "'x'", "a number"))
        "a.txt:1: got 'x', expected a number"
        """
        return FormatError(f"{self.name}:{line}: got {got}, expected {expected}")


def shown(text: str) -> str:
    """Quote a piece of a file for a message, cut to a readable length.

    >>> shown("  NetRun: 12 us ")
    "'NetRun: 12 us'"
    """
    text = text.strip()
    return repr(text if len(text) <= _SHOWN_MAX else text[: _SHOWN_MAX - 3] + "...")


def from_text(name: str, text: str, encoding: str = "utf-8", notes: tuple[str, ...] = ()) -> Source:
    r"""Make a source of text that is already in memory: strip colours, settle line ends.

    >>> from_text("a.log", "\x1b[32mok\x1b[0m\r\ndone").lines
    ('ok', 'done')
    """
    text = ANSI.sub("", text).replace("\r\n", "\n")
    # A lone carriage return ends a line only where nothing else does; elsewhere it redraws a progress bar.
    text = text.replace("\r", " " if "\n" in text else "\n")
    return Source(name, text, tuple(text.split("\n")), encoding, notes)


def load(path: str | os.PathLike[str], lenient: bool = False) -> Source:
    """Read a file as text.

    Parameters
    ----------
    path
        A regular file of at most 64 MB, in UTF-8, UTF-16 or UTF-32, with or without a byte order mark.
    lenient
        Replace bytes that are not text instead of refusing the file; a note says so.

    Raises
    ------
    FormatError
        When the file is absent, too large, binary, or not in one of these encodings.
    """
    name = os.fspath(path)
    return decode(name, _read_bytes(Path(path), name), lenient)


def _read_bytes(path: Path, name: str) -> bytes:
    try:
        if path.is_dir():
            raise FormatError(f"{name}: got a folder, expected a file")
        if not path.exists():
            beside = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
            close = nearest(path.name, beside)
            hint = f"; did you mean '{path.with_name(close)}'?" if close else ""
            raise FormatError(f"{name}: got no such file, expected a readable file{hint}")
        if not path.is_file():
            raise FormatError(f"{name}: got a device or pipe, expected a regular file")
        with path.open("rb") as stream:
            data = stream.read(BYTES_MAX + 1)
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL in it
        raise FormatError(f"{name}: cannot be read ({error}), expected a readable file") from error
    if len(data) > BYTES_MAX:
        size = path.stat().st_size
        raise FormatError(f"{name}: got {size / 2**20:.0f} MB, expected at most {BYTES_MAX // 2**20} MB")
    return data


def decode(name: str, data: bytes, lenient: bool = False) -> Source:
    r"""Make a source of bytes, finding their encoding.

    Examples
    --------
    >>> decode("a.json", "\ufeff{}".encode("utf-16-le")).text
    '{}'
    """
    encoding, mark = encoding_of(data)
    data = data[mark:]
    notes: tuple[str, ...] = ()
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data[: error.start].decode(encoding, "replace").count("\n") + 1
        if not lenient:
            raise undecodable(name, line, data[error.start], encoding) from error
        text = data.decode(encoding, "replace")
        notes = (f"line {line}: bytes that are not {encoding.upper()} were replaced by U+FFFD",)
    if "\0" in text:
        refuse_binary(name, text[: text.index("\0")].count("\n") + 1)
    return from_text(name, text, encoding, notes)


def undecodable(name: str, line: int, byte: int, encoding: str) -> FormatError:
    """Build the refusal of a byte that is no text.

    >>> str(undecodable("a.log", 3, 255, "utf-8"))[:47]
    'a.log:3: got byte 0xff, expected UTF-8 text; sa'
    """
    return FormatError(
        f"{name}:{line}: got byte 0x{byte:02x}, expected {encoding.upper()} text; "
        "save the file as UTF-8, or read it leniently to replace such bytes"
    )


def refuse_binary(name: str, line: int) -> NoReturn:
    """Refuse a file with a zero byte in its text.

    >>> refuse_binary("qnn-profiling-data.log", 1)
    Traceback (most recent call last):
    htpsim.errors.FormatError: qnn-profiling-data.log:1: got binary data (a zero byte), expected text; ...
    """
    raise FormatError(
        f"{name}:{line}: got binary data (a zero byte), expected text; a raw qnn-profiling-data log "
        "becomes text with qnn-profile-viewer"
    )


def encoding_of(data: bytes) -> tuple[str, int]:
    r"""Return the encoding of a file by its first bytes, and the length of the byte order mark.

    >>> encoding_of("{}".encode("utf-16-be")), encoding_of("\ufeff{}".encode("utf-8"))
    (('utf-16-be', 0), ('utf-8', 3))
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return encoding, len(mark)
    # Without a mark: mostly ASCII text in UTF-16 has a zero in every second byte.
    head = data[:4096]
    half = len(head) // 2
    if half and head[1::2].count(0) > _BINARY_LIKE * half and not head[0::2].count(0):
        return "utf-16-le", 0
    if half and head[0::2].count(0) > _BINARY_LIKE * half and not head[1::2].count(0):
        return "utf-16-be", 0
    return "utf-8", 0
