"""Whatever happens to a file on its way here, it is read or refused; no other exception, no number out of nowhere."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htpsim.errors import FormatError
from htpsim.formats.registry import FORMATS, recognise_source
from htpsim.formats.source import Source, decode
from htpsim.formats.values import Report, ServiceQuery

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "formats"
FILES = sorted(FIXTURES.iterdir())
BYTES = {path.name: path.read_bytes() for path in FILES}
NAMES = sorted(BYTES)

# What damages files in practice: cuts, lost and doubled pieces, stray bytes, other files' text in the middle.
fragments = st.sampled_from(
    [b"", b"\x00", b"\xff", b"\r", b"\x1b[31m", b'"', b"}", b"[", b"{", b":", b"- ", b"&a ", b"*a", b"!!int ", b"1e999",
     b"NaN", b"-1", b"9" * 30, b"null", b"Execute Stats (Min):\n", b"    NetRun: 7 us\n", b"Graph 0 (x):\n", b"\t",
     b"\n", b"<SOC>", b"\\", b"\xed\xa0\x80", b"? ", b"---\n", b"models:\n", b'"devices": ']
)  # fmt: skip


@st.composite
def damaged(draw: st.DrawFn) -> tuple[str, bytes]:
    name = draw(st.sampled_from(NAMES))
    data = BYTES[name]
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.one_of(st.just(start), st.integers(start, min(len(data), start + 40)), st.just(len(data))))
        data = data[:start] + draw(fragments | st.binary(max_size=6)) + data[end:]
    return name, data


def read_everything(source: Source, lenient: bool) -> list[Report]:
    """Send a text through recognition, every reader and every search for a time."""
    reports = []
    with contextlib.suppress(FormatError):
        recognise_source(source)
    for item in FORMATS.values():
        with contextlib.suppress(FormatError):
            reports.append(item.read(source, lenient))
        if item.service_time is not None:
            for query in (ServiceQuery(), ServiceQuery("toy", "min"), ServiceQuery(event="token_time")):
                with contextlib.suppress(FormatError):
                    assert item.service_time(source, query).value_ns > 0
    return reports


@given(damaged(), st.booleans())
def test_damage_is_read_or_refused(case: tuple[str, bytes], lenient: bool) -> None:
    name, data = case
    try:
        source = decode(name, data, lenient)
    except FormatError:
        return
    for report in read_everything(source, lenient):
        json.dumps(report.to_json(), allow_nan=False)
        for fact in report.facts:
            assert fact.line is None or 1 <= fact.line <= len(source.lines)


@given(st.sampled_from([name for name in NAMES if name.startswith("viewer")]), st.data())
def test_a_cut_log_states_no_number_that_the_whole_one_does_not(name: str, data: st.DataObject) -> None:
    text = BYTES[name]
    cut = text[: data.draw(st.integers(0, len(text)))]
    whole_numbers = {float(number) for number in re.findall(r"\b\d+(?:\.\d+)?\b", text.decode())}
    with contextlib.suppress(FormatError):
        for report in read_everything(decode(name, cut), lenient=False):
            if report.format == "qnn-viewer":
                measured = [fact.value for fact in report.facts if isinstance(fact.value, int | float) and fact.line]
                assert set(measured) <= whole_numbers


@given(st.text(max_size=200), st.booleans())
def test_any_text_is_read_or_refused(text: str, lenient: bool) -> None:
    with contextlib.suppress(FormatError):
        read_everything(decode("a", text.encode("utf-8", "surrogatepass"), lenient), lenient)


@pytest.mark.parametrize("name", NAMES)
def test_every_refusal_says_where_what_and_what_instead(name: str) -> None:
    """Cut at every tenth byte, of a long file at a hundred places; each refusal has the one form.

    Every cut goes to the reader whose file it is, every tenth one to all.
    """
    owner = recognise_source(decode(name, BYTES[name]))
    form = re.compile(rf"^{re.escape(name)}(:\d+){{0,2}}: .*(got|no valid).*expected .*", re.DOTALL)
    for number, end in enumerate(range(0, len(BYTES[name]), max(10, len(BYTES[name]) // 100))):
        for item in FORMATS.values() if number % 10 == 0 else (owner,):
            try:
                item.read(decode(name, BYTES[name][:end]), False)
            except FormatError as error:
                message = str(error)
            else:
                continue
            assert form.match(message), message
