"""The snippets of README and documentation: where they are, what stands above them, and what covers them.

Every fenced block of sh, console, toml or python is run by `test_snippets`, in order and in one folder a page, unless

- it stands on a page that a test of its own runs: `COVERED` names that test;
- its lines begin with ``>>>``: pytest runs those itself;
- a comment above it gives the reason why it is not run: ``<!-- not run: it needs a device -->``;
- a comment above it says that it takes minutes: ``<!-- run: verify -->``; then it is run when those are.

A comment ``<!-- file: NAME -->`` says how the file is called that a block shows; without it TOML is ``mine.toml``.
What follows a command in a console block is what it prints; a line of ``...`` stands for any number of lines.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT = Path(__file__).resolve().parents[2]
LANGUAGES: Final = ("sh", "console", "toml", "python")
BLOCK = re.compile(
    r"(?:^ *<!-- *(?P<mark>[a-z ]+): *(?P<said>[^\n]*?) *-->\n)?"
    r"^(?P<indent> *)```(?P<kind>\w*)\n(?P<text>.*?)^(?P=indent)```",
    re.MULTILINE | re.DOTALL,
)
INLINE = re.compile(r"`(?:\.venv/bin/)?htpsim ([^`\n]+)`")
MARKS: Final = ("not run", "run", "file")

_FORMAT: Final = "tests/formats/test_adding_a_format.py"
_HOW_TO: Final = "tests/calibrate/test_how_to.py"
_FIRST: Final = "tests/cli/test_first_ten_minutes.py"

COVERED: Final[dict[tuple[str, str], str]] = {
    ("CONTRIBUTING.md", "sh"): "tests/reference/test_pages.py::test_one_command_writes_them_again",
    ("docs/adding-a-format.md", "console"): f"{_FORMAT}::test_the_page_is_true_on_the_command_line",
    ("docs/adding-a-format.md", "python"): f"{_FORMAT}::test_the_page_is_true_in_python",
    ("docs/adding-a-format.md", "toml"): f"{_FORMAT}::package",
    ("docs/answers.md", "console"): "tests/answers/test_page.py::test_a_command_of_the_page_works",
    ("docs/calibrating.md", "sh"): f"{_HOW_TO}::test_every_command_of_the_page_works",
    ("docs/calibrating.md", "toml"): f"{_HOW_TO}::test_every_command_of_the_page_works",
    ("docs/first-ten-minutes.md", "sh"): f"{_FIRST}::test_every_command_of_the_page_works_in_an_empty_folder",
    ("docs/first-ten-minutes.md", "toml"): f"{_FIRST}::test_every_command_of_the_page_works_in_an_empty_folder",
    ("docs/first-ten-minutes.md", "console"): f"{_FIRST}::test_a_mistyped_key_is_told_as_the_page_shows_it",
    ("docs/surprises.md", "sh"): "tests/surprises/test_page.py::test_the_figures_are_what_the_command_gives",
}
"""Page and language -> the test, or what it rests on, that runs all such blocks of the page."""


@dataclass(frozen=True, slots=True)
class Snippet:
    """One fenced block."""

    page: str
    line: int
    kind: str
    text: str
    mark: str = ""
    said: str = ""

    @property
    def why_not(self) -> str:
        """Why it is not run here; "" where it is."""
        if self.mark == "not run":
            return self.said
        if ">>>" in self.text:
            return "pytest runs it"
        return COVERED.get((self.page, self.kind), "")

    @property
    def takes_minutes(self) -> bool:
        """Whether it is run only where minutes may be spent."""
        return self.mark == "run" and self.said == "verify"


def pages() -> list[str]:
    """Return every page, from the top of the repository."""
    found = [*ROOT.glob("README*.md"), ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    return sorted(path.relative_to(ROOT).as_posix() for path in found)


def snippets(page: str) -> list[Snippet]:
    """Return the blocks of a page that could be run."""
    return [one for one in blocks((ROOT / page).read_text(encoding="utf-8"), page) if one.kind in LANGUAGES]


def blocks(text: str, page: str = "") -> Iterator[Snippet]:
    """Yield every fenced block of a text."""
    for found in BLOCK.finditer(text):
        line = text[: found.start("kind")].count("\n") + 1
        yield Snippet(
            page, line, found["kind"], textwrap.dedent(found["text"]), found["mark"] or "", found["said"] or ""
        )
