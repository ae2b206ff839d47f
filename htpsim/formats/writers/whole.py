"""A file that is written whole or not at all: filled under another name beside its place, then renamed into it."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a path to write to; on leaving without an error the file takes the place of `path`.

    A link is followed, and what is no ordinary file, such as a pipe, is written to directly.

    Raises
    ------
    OSError
        When nothing can be written there; what stood there is then as it was.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with whole_file(Path(folder) / "a.txt") as unfinished:
    ...         _ = unfinished.write_text("whole")
    ...     [path.name for path in Path(folder).iterdir()]
    ['a.txt']
    """
    given = Path(path)
    if given.exists() and not given.is_file():
        yield given
        return
    target = Path(os.path.realpath(given))
    unfinished = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        yield unfinished
        os.replace(unfinished, target)
    finally:
        unfinished.unlink(missing_ok=True)


def write_text(lines: Iterable[str], path: str | os.PathLike[str]) -> None:
    """Write lines as a text, each with a line end, whole or not at all."""
    with whole_file(path) as unfinished, unfinished.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)
