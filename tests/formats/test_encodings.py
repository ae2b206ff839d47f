"""What happens to files on their way: marks, line ends, colours, halves, torn and interleaved lines, for every format.

Values must come out the same, or not at all; no number may come out that does not stand in the file.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from htpsim import formats
from htpsim.errors import FormatError
from htpsim.formats import Report, recognise_source
from htpsim.formats.source import Source, decode, from_text

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "formats"
FILES = sorted(FIXTURES.iterdir())
READABLE = [path for path in FILES if path.name != "htp_template.json"]
FORMAT_OF = {path.name: formats.recognise(path) for path in FILES}
EVENTS = {"qnn-trace", "ort-profile", "genie-profile"}
"""Lists of events: of a half, what came before is read."""

FOREIGN = "08-24 12:00:01.000  1234  5678 D CameraService: frame 17"
REWORDED = "viewer_reworded.txt"
LOGS = {"qnn-viewer", "genie-console", "qnn-context-log", "snpe-diagview", "executorch-log"}
"""Logs into which other programs write, or which stand in pages."""


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def read(name: str, source: Source, lenient: bool = True) -> Report:
    return formats.FORMATS[FORMAT_OF[name]].read(source, lenient)


def attempt(name: str, source: Source, lenient: bool = False) -> tuple[Report | None, str]:
    """Return the report, or the refusal, which must have the one form."""
    try:
        return read(name, source, lenient), ""
    except FormatError as error:
        message = str(error)
    assert re.match(r"a:\d+(:\d+)?: (got|unit: got) .+, expected .+", message, re.DOTALL), message
    return None, message


def values_of(report: Report) -> list[tuple[str, object, str]]:
    return [(fact.name, fact.value, fact.unit) for fact in report.facts]


def measured(report: Report) -> set[float]:
    """Return every number that is said to stand in a line."""
    return {
        float(fact.value)
        for fact in report.facts
        if fact.line is not None and isinstance(fact.value, int | float) and not isinstance(fact.value, bool)
    }


def test_every_format_is_here() -> None:
    assert set(FORMAT_OF.values()) == set(formats.FORMATS)


@pytest.mark.parametrize("path", READABLE, ids=lambda path: path.name)
def test_marks_line_ends_and_colours_change_nothing(path: Path) -> None:
    text = text_of(path)
    plain = read(path.name, from_text("a", text))
    coloured = "\n".join(f"\x1b[36m{line}\x1b[0m" if line else "" for line in text.split("\n"))
    variants = [
        ("\ufeff" + text).encode("utf-8"),
        text.replace("\n", "\r\n").encode("utf-8"),
        text.replace("\n", "\r").encode("utf-8"),
        ("\ufeff" + text).encode("utf-16-le"),
        ("\ufeff" + text).encode("utf-16-be"),
        ("\ufeff" + text.replace("\n", "\r\n")).encode("utf-32-le"),
        text.encode("utf-16-le"),
        coloured.encode("utf-8"),
        ("\ufeff" + coloured.replace("\n", "\r\n")).encode("utf-16-le"),
    ]

    for data in variants:
        source = decode("a", data)
        assert read(path.name, source).facts == plain.facts
        assert recognise_source(source).name == FORMAT_OF[path.name]


@pytest.mark.parametrize("path", READABLE, ids=lambda path: path.name)
def test_a_half_is_refused_at_its_end_or_gives_what_came_before(path: Path) -> None:
    text = text_of(path)
    whole = {float(number) for number in re.findall(r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", text)}
    derived = measured(read(path.name, from_text("a", text))) - whole
    for part in (text[: len(text) // 2], text[: len(text) * 3 // 4], text[:-3]):
        source = from_text("a", part)
        report, refusal = attempt(path.name, source)
        if report is None:
            assert 1 <= int(refusal.split(":")[1]) <= part.count("\n") + 1
            continue
        assert measured(report) <= whole | {0.0, 1.0} | derived
        is_json = path.suffix == ".json"
        assert not is_json or FORMAT_OF[path.name] in EVENTS, "a configuration is read whole or not at all"


@pytest.mark.parametrize(
    "path", [p for p in READABLE if FORMAT_OF[p.name] in LOGS and p.name != REWORDED], ids=lambda path: path.name
)
def test_lines_of_another_program_between_ours_are_passed_over_or_refused(path: Path) -> None:
    """Line by line: what is read is the same, or the foreign line is refused where it stands."""
    lines = text_of(path).split("\n")
    plain = read(path.name, from_text("a", "\n".join(lines)))
    for at in range(1, len(lines) - 1, max(1, len(lines) // 12)):
        source = from_text("a", "\n".join([*lines[:at], FOREIGN, *lines[at:]]))
        report, refusal = attempt(path.name, source)
        if report is None:
            assert refusal.startswith(f"a:{at + 1}: got '08-24")
            report = read(path.name, source, lenient=True)
        if FORMAT_OF[path.name] != "qnn-viewer":  # there, a lenient reader may take it for a page around the log
            assert values_of(report) == values_of(plain)


@pytest.mark.parametrize(
    "path", [p for p in READABLE if FORMAT_OF[p.name] in LOGS and p.name != REWORDED], ids=lambda path: path.name
)
def test_a_torn_line_gives_no_number_that_is_not_there(path: Path) -> None:
    text = text_of(path)
    numbers = {float(number) for number in re.findall(r"\d+(?:\.\d+)?", text)}
    derived = measured(read(path.name, from_text("a", text))) - numbers
    lines = text.split("\n")
    for at in range(0, len(lines), max(1, len(lines) // 12)):
        line = lines[at]
        torn = f"{line[: len(line) * 2 // 3]}[INFO] something else\n{line[len(line) * 2 // 3 :]}"
        source = from_text("a", "\n".join([*lines[:at], torn, *lines[at + 1 :]]))
        found: set[float] = set()
        for lenient in (False, True):
            report, _ = attempt(path.name, source, lenient)
            found |= measured(report) if report else set()
        halves = {float(number) for number in re.findall(r"\d+(?:\.\d+)?", source.text)}
        assert found <= numbers | halves | derived


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_bytes_that_are_no_text_are_refused_by_their_line_or_replaced(path: Path) -> None:
    data = path.read_bytes()
    half = data.index(b"\n", len(data) // 2) if b"\n" in data[len(data) // 2 :] else len(data) // 2
    broken = data[:half] + b"\xff\xfe\xff" + data[half:]
    line = data[:half].count(b"\n") + 1

    with pytest.raises(FormatError, match=rf"^a:{line}: got byte 0xff, expected UTF-8 text"):
        decode("a", broken)
    assert "\ufffd" in decode("a", broken, lenient=True).text
    with pytest.raises(FormatError, match=rf"^a:{line}: got binary data"):
        decode("a", data[:half] + b"\0" + data[half:])
