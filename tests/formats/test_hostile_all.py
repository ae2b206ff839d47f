"""Harm done to a file of every format: refused in a line or read in bounds, whichever reader meets it.

Each attack is made of our own small files, so that a reader gets far enough for it to matter. Bounds are on memory as
Python counts it and on the length of what is said; no clock judges here. The default run attacks with little, `make
verify` with lines of 10 MB and hundreds of thousands of values.
"""

from __future__ import annotations

import contextlib
import json
import re
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from htpsim import formats
from htpsim.errors import FormatError
from htpsim.formats import registry
from htpsim.formats.source import from_text
from htpsim.formats.values import ServiceQuery, plain

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "formats"
SAMPLES = {
    "qnn-viewer": "viewer_cpu.txt",
    "aihub-perf": "perf_precisions.yaml",
    "genie-config": "genie_dialog.json",
    "htp-backend-ext": "htp_inner.json",
    "qnn-csv": "netrun_basic.csv",
    "qnn-trace": "trace_run.json",
    "genie-profile": "profile_dialog.json",
    "genie-console": "console_kpis.log",
    "ort-profile": "ortprofile_cpu.json",
    "ort-qnn-csv": "ortcsv_two_runs.csv",
    "qnn-throughput": "throughput_two.json",
    "qnn-context-info": "ctxinfo_two_graphs.json",
    "qnn-context-log": "ctxlog_two_graphs.log",
    "qnn-report": "qnnreport_detailed.json",
    "snpe-diagview": "snpe_cpu_and_dsp.md",
    "executorch-log": "executorch_init.log",
    "llm-bench-csv": "bench_backends.csv",
    "service-tests": "service_results.json",
    "htpsim-trace": "htpsimtrace_two_calls.jsonl",
}
JSON = {name for name, sample in SAMPLES.items() if sample.endswith((".json", ".jsonl"))}
TEXTS = {name: (FIXTURES / sample).read_text(encoding="utf-8") for name, sample in SAMPLES.items()}


@dataclass(frozen=True)
class Size:
    """How much harm."""

    line: int
    """Characters of a long line."""

    many: int
    values: int


SMALL, FULL = Size(60_000, 500, 1_500), Size(10_000_000, 10_000, 510_000)
Attack = Callable[[str, Size], str]
_NUMBER = re.compile(r"(?<=[ :,\[])\d+(?:\.\d+)?(?=[ ,\]}\n])")
_COLON = re.compile(r'(?<=")\s*:\s*(?=[\d"{\[tfn])')


def middle(text: str, piece: str) -> str:
    """Put a piece between two lines of the middle."""
    lines = text.split("\n")
    half = len(lines) // 2
    return "\n".join([*lines[:half], piece, *lines[half:]])


def first_value(text: str, value: str) -> str:
    """Put a value before the first one of a JSON text, under a key of its own."""
    return text.replace("{", '{"x": ' + value + ", ", 1)


EVERYWHERE: dict[str, Attack] = {
    "a line of 10 MB": lambda text, size: middle(text, "a" * size.line),
    "a line of 10 MB of digits": lambda text, size: middle(text, "9" * size.line),
    "a line of 10 MB of spaces": lambda text, size: middle(text, " " * size.line),
    "spaces before everything": lambda text, size: " " * size.line + text,
    "line ends before everything": lambda text, size: "\n" * (size.line // 20) + text,
    "tabs after each line": lambda text, size: text.replace("\n", "\t" * (size.line // 100) + "\n"),
    "spaces within each line": lambda text, size: text.replace(" ", " " * (size.line // 1000)),
    "a word far behind a line": lambda text, size: text.replace("\n", " " * (size.line // 100) + "x\n"),
    "the whole again and again": lambda text, size: (text + "\n") * max(2, size.line // 8 // len(text)),
    "one line again and again": lambda text, size: middle(
        text, (text.split("\n")[len(text.split("\n")) // 2] + "\n") * size.many
    ),
    "its beginning again and again": lambda text, size: (text[:60] + "\n") * size.many,
    "negative numbers": lambda text, size: _NUMBER.sub(lambda found: "-" + found[0], text),
    "endless numbers": lambda text, size: _NUMBER.sub("1e999", text),
    "numbers that are none": lambda text, size: _NUMBER.sub("NaN", text),
    "numbers of 400 digits": lambda text, size: _NUMBER.sub("9" * 400, text),
    "numbers of 5000 digits": lambda text, size: _NUMBER.sub("9" * 5000, text, count=3),
    "backslashes": lambda text, size: middle(text, "\\" * (size.line // 10)),
    "quotes": lambda text, size: middle(text, '"' * (size.line // 10)),
    "colons and commas": lambda text, size: middle(text, ":," * (size.line // 20)),
    "replacement characters": lambda text, size: middle(text, "\ufffd\u202e\u0000"[:2] * 1000),
    "other digits": lambda text, size: _NUMBER.sub("\u0663\u0664", text),
}
IN_JSON: dict[str, Attack] = {
    "deep lists": lambda text, size: first_value(text, "[" * size.many),
    "deep and closed lists": lambda text, size: first_value(text, "[" * size.many + "]" * size.many),
    "deep objects": lambda text, size: first_value(text, '{"a":' * size.many),
    "a key twice": lambda text, size: text.replace("{", '{"x": 1, "x": 2, ', 1),
    "one key many times": lambda text, size: text.replace("{", "{" + '"x": 1, ' * size.many, 1),
    "many keys": lambda text, size: text.replace("{", "{" + "".join(f'"k{n}": {n}, ' for n in range(size.many)), 1),
    "many values": lambda text, size: first_value(text, "[" + "0," * size.values + "0]"),
    "a long key": lambda text, size: text.replace(
        "{", '{"' + "k" * (size.line // 10) + '": [' + "0," * 2000 + "0], ", 1
    ),
    "half a surrogate": lambda text, size: first_value(text, r'"\ud800"'),
    "a string without end": lambda text, size: text[: len(text) // 2] + '"' + r"\\" * (size.line // 10),
    "values that are lists": lambda text, size: _COLON.sub(": [[]], \"y\": ", text, count=4),
}  # fmt: skip
IN_YAML: dict[str, Attack] = {
    "aliases of aliases": lambda text, size: (
        "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60)) + text
    ),
    "an alias to itself": lambda text, size: "a: &a [*a]\n" + text,
    "a merge key": lambda text, size: "a: &a {x: 1}\nb:\n  <<: *a\n" + text,
    "a tag that makes something": lambda text, size: "a: !!python/object/apply:os.system [true]\n" + text,
    "deep flow": lambda text, size: "a: " + "[" * 5000 + "\n" + text,
    "many values in flow": lambda text, size: "a: [" + "0," * size.values + "0]\n" + text,
    "a key twice": lambda text, size: "x: 1\nx: 2\n" + text,
    "two documents": lambda text, size: text + "\n---\n" + text,
}
CASES = [
    *((name, what, attack) for name in SAMPLES for what, attack in EVERYWHERE.items()),
    *((name, what, attack) for name in sorted(JSON) for what, attack in IN_JSON.items()),
    *(("aihub-perf", what, attack) for what, attack in IN_YAML.items()),
]
REFUSED = {
    *((name, "negative numbers") for name in ("qnn-throughput", "qnn-context-info", "qnn-report", "ort-profile")),
    *((name, "negative numbers") for name in ("service-tests", "snpe-diagview")),
    *((name, what) for name in JSON for what in ("endless numbers", "numbers that are none", "a string without end")),
    *(("aihub-perf", what) for what in IN_YAML if what != "many values in flow"),
} - {("htpsim-trace", "a string without end")}
"""What must not be read; a trace in JSON lines takes lines one by one, and its last one may be cut."""


def test_there_is_a_sample_of_every_format() -> None:
    assert set(SAMPLES) == set(formats.FORMATS)
    for name, sample in SAMPLES.items():
        assert formats.recognise(FIXTURES / sample) == name


def bounded(name: str, what: str, attack: Attack, size: Size) -> None:
    """Read an attacked file strictly, with what it takes counted."""
    source = from_text("a", attack(TEXTS[name], size))
    item = formats.FORMATS[name]
    refusal, said = "", 0
    tracemalloc.start()
    try:
        report = item.read(source, False)
        said = len(json.dumps([plain(report.facts), report.notes], allow_nan=False))
    except FormatError as error:
        refusal = str(error)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < 30_000_000 + 200 * min(len(source.text), 1_000_000) + 30 * len(source.text)
    assert said < 4_000_000 + 8 * len(source.text)
    if refusal:
        assert re.match(r"a(:\d+){0,2}: .*expected ", refusal, re.DOTALL), refusal[:300]
        assert len(refusal) < 1500
    assert refusal or (name, what) not in REFUSED


def unharmed(name: str, what: str, attack: Attack, size: Size) -> None:
    """Recognise an attacked file, read it leniently, and ask it for times: refusals, or times that can be."""
    source = from_text("a", attack(TEXTS[name], size)[:200_000])
    item = formats.FORMATS[name]
    for each in formats.FORMATS.values():
        each.sniff(source)
    with contextlib.suppress(FormatError):
        item.read(source, True)
    for ask in (item.service_time, item.samples):
        with contextlib.suppress(FormatError):
            found = ask(source, ServiceQuery()) if ask is not None else ()
            times = found if isinstance(found, tuple) else (found.value_ns,)
            assert all(0 <= time < 2**80 for time in times), what


@pytest.mark.parametrize("name", SAMPLES)
def test_harm_is_refused_by_its_line_or_read_in_bounds(name: str) -> None:
    for owner, what, attack in CASES:
        if owner == name:
            bounded(name, what, attack, SMALL)


@pytest.mark.parametrize("name", SAMPLES)
def test_harm_gives_no_time_out_of_nowhere(name: str) -> None:
    for owner, what, attack in CASES:
        if owner == name:
            unharmed(name, what, attack, SMALL)


@pytest.mark.verify
@pytest.mark.parametrize(("name", "what", "attack"), CASES, ids=[f"{name}: {what}" for name, what, _ in CASES])
def test_much_harm_is_refused_by_its_line_or_read_in_bounds(name: str, what: str, attack: Attack) -> None:
    bounded(name, what, attack, FULL)
    unharmed(name, what, attack, FULL)


def test_a_file_may_not_be_a_device_or_a_folder(tmp_path: Path) -> None:
    for path, message in ((tmp_path, "got a folder"), (Path("/dev/zero"), "got a device or pipe")):
        with pytest.raises(FormatError, match=message):
            registry.read(path)
