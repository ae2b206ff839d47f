"""A seeded mutator of bytes over every sample: whatever comes out is read or refused, in one line, by every reader.

The default run mutates our own small files a little; `make verify` mutates every real file as well, and says how many
mutants there were. A failing mutant is named by its file and seed.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from htpsim.errors import FormatError
from htpsim.formats.registry import FORMATS, recognise
from htpsim.formats.source import Source, decode
from htpsim.formats.values import ServiceQuery
from tests.conftest import MUTANTS

T = TypeVar("T")
FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "formats"
CASES = Path(__file__).resolve().parents[2] / ".." / "shared" / "cases"
OURS = sorted(path for path in FIXTURES.iterdir() if path.is_file())
REAL = sorted(path for path in CASES.glob("*/*") if path.is_file())
COUNT = 102_000
"""In all, over the real files and ours, for the verify run: at least so many, of every format."""

OTHERS = 2
"""How many other readers a mutant is sent through beside its own, taking turns, so that each meets every file."""

_PIECES = (
    b"", b"\x00", b"\xff", b"\r", b"\r\n", b"\x1b[31m", b'"', b"}", b"]", b"[", b"{", b":", b",", b"-", b"0", b"1e999",
    b"NaN", b"-1", b"9" * 30, b"null", b"true", b"\t", b"\n", b"\\", b"\\ud800", b"\xed\xa0\x80", b"\xd9\xa3",
    b"[" * 100, b'{"a":1,"a":2}', b"EXECUTE,5,US,NETRUN,ROOT,Graph 0: x\n", b"[KPIS]:\n", b"[END]",
    b'[INFO]  "Allocated total size = 7 across 1 buffers"\n', b"Init Time: 5 us\n", b"Execute Stats (Min):\n",
    b"&a ", b"*a", b"models:\n", b"- ", b"Completed stage: x (5 us)\n", b"spill_bytes=1\n", b"Log File Created: x\n",
    b"  Load: 5 us\n", b'"model_run"', b"Event Data: 5 us", b"UNKNOWN,EXECUTE,1,US,BACKEND,ROOT,NULL\n",
    b"Genie: 1.0ms [  INFO ]  <I> QnnGraph_execute started. graph = 0x1\n",
)  # fmt: skip
_FORM = re.compile(r"^f(:\d+){0,2}: .*expected ", re.DOTALL)
_QUERIES = (
    ServiceQuery(),
    ServiceQuery(statistic="median", event="NetRun"),
    ServiceQuery(event="step"),
    ServiceQuery(statistic="min", event="token-time"),
    ServiceQuery(statistic="max", event="Graph Execute"),
)


def sample(path: Path) -> bytes:
    """Return a file, or of a long one its beginning, a piece of its middle and its end."""
    data = path.read_bytes()
    if len(data) <= 30_000:
        return data
    middle = len(data) // 2
    return data[:8000] + data[middle : middle + 8000] + data[-3000:]


def mutated(data: bytes, chance: random.Random) -> bytes:
    """Damage a file in one to four places as damage happens: a byte, a loss, a stray piece, a double, a cut."""
    held = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(held) + 1)
        match chance.randrange(5):
            case 0 if held:
                held[chance.randrange(len(held))] = chance.randrange(256)
            case 1:
                del held[place : place + chance.choice((1, 3, 20, 400))]
            case 2:
                held[place:place] = chance.choice(_PIECES)
            case 3:
                start = chance.randrange(len(held) + 1)
                held[place:place] = held[start : start + chance.choice((5, 50, 500))]
            case _:
                del held[place:]
    return bytes(held)


def attempt(ask: Callable[[], T]) -> T | None:
    """Return what a reader says, ``None`` where it refuses in the one form that refusals have."""
    try:
        return ask()
    except FormatError as error:
        message = str(error)
    assert _FORM.match(message), message
    return None


def put_through(source: Source, lenient: bool, owner: str, chance: random.Random, turn: int) -> Counter[str]:
    """Send one text through its own reader and some others, and through its own one's search for times."""
    seen = Counter[str]()
    names = sorted(FORMATS)
    others = [names[(turn * OTHERS + step) % len(names)] for step in range(OTHERS)]
    for item in FORMATS.values():
        item.sniff(source)
    for name in dict.fromkeys((owner, *others)):
        item = FORMATS[name]
        report = attempt(lambda item=item: item.read(source, lenient))
        kind = "own" if name == owner else "other"
        seen[f"{kind}, refused" if report is None else f"{kind}, read"] += 1
        if report is not None:
            json.dumps(report.to_json(), allow_nan=False)
            assert all(fact.line is None or 1 <= fact.line <= len(source.lines) for fact in report.facts)
    item, query = FORMATS[owner], chance.choice(_QUERIES)
    if item.service_time is not None:
        time = attempt(lambda: item.service_time(source, query))
        assert time is None or time.value_ns > 0
        seen["timed"] += time is not None
    if item.samples is not None:
        samples = attempt(lambda: item.samples(source, query))
        assert all(isinstance(value, int) and value >= 0 for value in samples or ())
    return seen


def owner_of(path: Path) -> str:
    """Return the format of a file; an empty one is mutated as a genie_config.json, which it is meant to be."""
    return recognise(path) if path.stat().st_size else "genie-config"


def put_mutants_through(path: Path, count: int, seed: int) -> Counter[str]:
    data, seen, owner = sample(path), Counter[str](), owner_of(path)
    for number in range(count):
        chance = random.Random(f"{path.name} {seed} {number}")
        damaged, lenient = mutated(data, chance), chance.random() < 0.3
        seen["mutants"] += 1
        try:
            source = decode("f", damaged, lenient)
        except FormatError:
            seen["no text"] += 1
            continue
        try:
            seen += put_through(source, lenient, owner, chance, number)
        except Exception as error:
            raise AssertionError(f"{path.name}, seed {seed}, mutant {number}: {error!r}") from error
    return seen


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.name)
def test_mutants_of_our_files_are_read_or_refused(path: Path) -> None:
    seen = put_mutants_through(path, 12, seed=0)

    assert seen["mutants"] == 12
    assert seen["own, read"] + seen["own, refused"] == 12 - seen["no text"]


def test_our_files_are_of_every_format() -> None:
    assert {owner_of(path) for path in OURS} == set(FORMATS)


@pytest.mark.verify
@pytest.mark.skipif(not REAL, reason="the folder of real files (shared/cases) is not beside this one")
@pytest.mark.parametrize("path", [*REAL, *OURS], ids=lambda path: path.name)
def test_mutants_of_all_files_are_read_or_refused(path: Path, record_property: pytest.RecordProperty) -> None:
    """At least so many in all; the counts by format stand at the end of the run."""
    files = len(REAL) + len(OURS)
    count = -(-COUNT // files)
    seen = put_mutants_through(path, count, seed=1)

    record_property(f"{MUTANTS}{owner_of(path)}", dict(seen))
    assert seen["mutants"] == count
    assert count * files >= 100_000
    assert seen["own, refused"] > 0


def test_the_mutator_damages() -> None:
    chance = random.Random(1)
    data = sample(OURS[0])

    assert sum(mutated(data, chance) != data for _ in range(100)) > 80
    assert mutated(data, random.Random(2)) == mutated(data, random.Random(2))
