"""The lines of a file of any size, one after another, as :func:`htpsim.formats.source.load` would give them.

A console log of a long run does not fit into memory. Formats whose reader takes lines, not a text, are read through
this; what is held at any time is one block of the file.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Final, Protocol

from htpsim.errors import FormatError
from htpsim.formats.source import ANSI, BYTES_MAX, Source, decode, encoding_of, from_text, refuse_binary, undecodable

BLOCK_BYTES: Final = 2**20
LINE_MAX: Final = 16 * 2**20
"""A longer line is refused: no tool writes one, and it would have to be held whole."""


class Lines(Protocol):
    """What a reader of lines needs of a file; a whole :class:`Source` and a :class:`LineStream` both have it."""

    @property
    def name(self) -> str:
        """The path as the user gave it."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know about how the text was read; complete once the lines are."""

    @property
    def lines(self) -> Iterable[str]:
        """The lines; each time from the first."""

    def error(self, line: int, got: str, expected: str) -> FormatError:
        """Build the refusal of a line."""


def is_large(path: str | os.PathLike[str]) -> bool:
    """Say whether a file is too large to be read as one text.

    >>> is_large(__file__)
    False
    """
    try:
        return Path(path).is_file() and Path(path).stat().st_size > BYTES_MAX
    except (OSError, ValueError):  # ValueError: a path with a NUL in it
        return False


def head(path: str | os.PathLike[str]) -> Source:
    """Read the first lines of a large file, enough to recognise it.

    >>> "any size" in head(__file__).lines[0]
    True
    """
    name = os.fspath(path)
    with _opened(name) as stream:
        data = stream.read(BLOCK_BYTES)
    text = decode(name, data, lenient=True)
    kept, end, _ = text.text.rpartition("\n")
    return from_text(name, kept + end if end else text.text, text.encoding)


class LineStream:
    r"""A file as lines, in constant memory.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "a.log")
    ...     _ = path.write_bytes("\x1b[32mok\x1b[0m\r\ndone".encode("utf-16"))
    ...     list(LineStream(path).lines)
    ['ok', 'done']
    """

    def __init__(self, path: str | os.PathLike[str], lenient: bool = False) -> None:
        self.name = os.fspath(path)
        self.notes: tuple[str, ...] = ()
        self._lenient = lenient

    def error(self, line: int, got: str, expected: str) -> FormatError:
        """Build the refusal of a line, to be raised by the caller."""
        return FormatError(f"{self.name}:{line}: got {got}, expected {expected}")

    @property
    def lines(self) -> Iterator[str]:
        """The lines, from the first.

        Raises
        ------
        FormatError
            When the file cannot be read, is binary, is not in its encoding, or has a line above :data:`LINE_MAX`.
        """
        count = 0
        rest = ""
        for text in self._texts():
            block, end, tail = (rest + text).rpartition("\n")
            rest = tail
            if len(rest) > LINE_MAX:
                raise self.error(count + 1, f"a line of more than {LINE_MAX // 2**20} M characters", "lines")
            if end:
                whole = _settled(block + end)[:-1].split("\n")
                count += len(whole)
                yield from whole
        # A lone carriage return ends a line only where nothing else does; elsewhere it redraws a progress bar.
        yield from ANSI.sub("", rest).replace("\r", " " if count else "\n").split("\n")

    def _texts(self) -> Iterator[str]:
        """Yield the decoded blocks of the file."""
        line = 1
        with _opened(self.name) as stream:
            data = stream.read(BLOCK_BYTES)
            encoding, mark = encoding_of(data)
            decoder = codecs.getincrementaldecoder(encoding)("strict")
            data = data[mark:]
            while True:
                last = not data
                try:
                    text = decoder.decode(data, last)
                except UnicodeDecodeError as error:
                    self._note_undecodable(error, line, encoding)
                    decoder = codecs.getincrementaldecoder(encoding)("replace")
                    text = decoder.decode(error.object, last)
                if "\0" in text:
                    refuse_binary(self.name, line + text[: text.index("\0")].count("\n"))
                line += text.count("\n")
                yield text
                if last:
                    return
                data = stream.read(BLOCK_BYTES)

    def _note_undecodable(self, error: UnicodeDecodeError, line: int, encoding: str) -> None:
        """Refuse bytes that are no text, or note that they are replaced from here on."""
        at = line + error.object[: error.start].decode(encoding, "replace").count("\n")
        if not self._lenient:
            raise undecodable(self.name, at, error.object[error.start], encoding) from error
        self.notes = (f"line {at}: bytes that are not {encoding.upper()} were replaced by U+FFFD",)


def _settled(block: str) -> str:
    """Strip colours and settle line ends of whole lines."""
    if "\x1b" in block:
        block = ANSI.sub("", block)
    if "\r" in block:
        block = block.replace("\r\n", "\n").replace("\r", " ")
    return block


def _opened(name: str) -> IO[bytes]:
    try:
        return Path(name).open("rb")
    except OSError as error:
        raise FormatError(f"{name}: cannot be read ({error}), expected a readable file") from error
