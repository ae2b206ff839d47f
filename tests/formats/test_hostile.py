"""Files made to harm: each is an error in a line or read in bounds, never another exception, a hang or a flood.

Bounds are on memory as Python counts it, and on work by the size of what is read; no clock judges here.
"""

from __future__ import annotations

import contextlib
import json
import tracemalloc
from collections.abc import Callable

import pytest

from htpsim.errors import FormatError
from htpsim.formats.registry import FORMATS
from htpsim.formats.source import from_text
from htpsim.formats.values import Report, ServiceQuery

HEADER = "Msg Timestamp,Message,Time,Unit of Measurement,Timing Source,Event Level,Event Identifier\n"
RUN = '{"header": {"artifact_type": "RUN_TRACE"}, "traceEvents": ['
SLICE = '{"name": "QNN DSP Execute", "ph": "X", "ts": 0, "dur": 5, "args": {"graph_name": "m"}}'
LOG = "Using libGenie.so version 1.1.0\n"
MANY = 50_000

TRACES = {
    "deep lists": RUN + "[" * MANY,
    "deep objects": RUN + '{"a":' * MANY,
    "deep and closed": RUN + '{"args":' + "[" * 500 + "]" * 500 + "}]}",
    "deep beside the events": '{"x":' + "[" * MANY,
    "deep in the header": '{"header":' + '{"a":' * MANY,
    "one key many times": RUN + "{" + ",".join(['"a":1'] * MANY) + "}]}",
    "many keys, one twice": RUN + "{" + ",".join(f'"{n}":1' for n in range(MANY)) + ',"0":2}]}',
    "a long string": RUN + '{"name":"' + "a" * 10_000_000 + '"}]}',
    "a long string without end": RUN + '{"name":"' + r"\\" * 5_000_000,
    "a long number": RUN + '{"ts":' + "9" * 1_000_000 + "}]}",
    "no number": RUN + '{"ts":NaN}]}',
    "an endless number": RUN + '{"ts":1e999}]}',
    "a negative time": RUN + SLICE.replace('"ts": 0', '"ts": -1') + "]}",
    "spaces": RUN + " " * 10_000_000 + "]}",
    "commas": RUN + "," * MANY,
    "half a surrogate": RUN + SLICE.replace('"m"', '"\\ud800"') + "]}",
    "phases of nothing": RUN + ",".join([SLICE.replace("QNN DSP Execute", "x")] * 1500) + "]}",
}
PROFILES = {
    "deep components": '{"components":' + "[" * MANY,
    "deep figures": '{"components":[{"events":[{"x":' + '{"value":' * MANY,
    "one key twice": '{"components":[],"components":[]}',
    "a negative duration": '{"components":[{"events":[{"duration":-1}]}]}',
    "an endless figure": '{"components":[{"events":[{"x":{"value":1e999,"unit":"us"}}]}]}',
    "a long number": '{"components":[{"events":[{"duration":' + "9" * 100_000 + "}]}]}",
    "a huge figure": '{"components":[{"events":[{"x":{"value":' + "9" * 200 + ',"unit":"us"}}]}]}',
    "a long string": '{"components":[{"name":"' + "a" * 10_000_000 + '"}]}',
}
TABLES = {
    "a long line": HEADER + "1," * 5_000_000 + "\n",
    "open quotes": HEADER + '"' * 9999 + ",1\n",
    "a negative time": HEADER + "1,EXECUTE,-5,US,NETRUN,ROOT,Graph 0: m\n",
    "a long number": HEADER + f"1,EXECUTE,{'9' * 60_000},US,NETRUN,ROOT,Graph 0: m\n",
    "no number": HEADER + "1,EXECUTE,NaN,US,NETRUN,ROOT,Graph 0: m\n",
    "many graphs": HEADER + "".join(f"1,EXECUTE,5,US,NETRUN,ROOT,Graph {n}: m{n}\n" for n in range(500)),
    "many rows": HEADER + "1,EXECUTE,5,US,NETRUN,ROOT,Graph 0: m\n" * 2_000,
    "many broken rows": HEADER + "x\n" * 5_000,
    "a long preamble": "a, b\n" * 10_000,
}
STAMP = "Genie: 1.0ms [  INFO ]  <I> "
LOGS = {
    "a line of openings": LOG + '[INFO]  "' * 1_000_000 + "\n",
    "a line of digits": LOG + "1" * 10_000_000 + "ms [\n",
    "a line of stamps": LOG + "1.1ms [" * 1_000_000 + "\n",
    "a line of lines": LOG + "Genie: 1.1ms [" * 500_000 + "\n",
    "a line of brackets": LOG + "1.1ms " + "[" * 5_000_000 + "\n",
    "many allocations": '[INFO]  "Allocated total size = 5 across 1 buffers"\n' * 11_000,
    "many handles": "".join(f"{STAMP}QnnGraph_execute started. graph = {n:#x}\n" for n in range(5000)),
    "many contexts": LOG + "".join(f"1.0ms [V]  <V> Setting context {n} reserved space to 5\n" for n in range(3_000)),
    "many settings": "".join(f"Genie: 0.4ms [  INFO ] Key: k{n}, Value: v\n" for n in range(12_000)),
    "many tears": f'{STAMP}x[INFO]  "y"\n' * 5_000,
    "a negative time": f"{STAMP.replace('1.0', '9.0')}QnnGraph_execute started. graph = 0x1\n"
    f"{STAMP}Graph g execution finished with result 0\n",
    "a long number": LOG + "Init Time: " + "9" * 60_000 + " us\n",
}
CASES = [
    *(("qnn-trace", name, text) for name, text in TRACES.items()),
    *(("genie-profile", name, text) for name, text in (TRACES | PROFILES).items()),
    *(("qnn-csv", name, text) for name, text in TABLES.items()),
    *(("genie-console", name, text) for name, text in LOGS.items()),
]
# What is broken in its only value is refused; the others may be read in bounds.
REFUSED = {
    "deep lists", "deep objects", "deep and closed", "deep beside the events", "deep in the header",
    "one key many times", "many keys, one twice", "a long number", "no number", "an endless number",
    "a negative time", "commas", "deep components", "deep figures", "one key twice", "a negative duration",
    "an endless figure", "a huge figure", "a long line", "open quotes", "many broken rows", "a long preamble",
    "many allocations", "many handles", "half a surrogate",
}  # fmt: skip
# A profile counts slices and does not read their arguments.
NOT_LOOKED_AT = ("genie-profile", "half a surrogate")


@pytest.mark.parametrize(("name", "what", "text"), CASES, ids=[f"{name}: {what}" for name, what, _ in CASES])
def test_harm_is_refused_by_its_line_or_read_in_bounds(name: str, what: str, text: str) -> None:
    source = from_text("a", text)
    report: Report | None = None
    tracemalloc.start()
    try:
        report = FORMATS[name].read(source, False)
        refusal = ""
    except FormatError as error:
        refusal = str(error)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < 30_000_000 + 12 * len(text)
    assert bool(refusal) == (what in REFUSED and (name, what) != NOT_LOOKED_AT)
    if refusal:
        assert refusal.startswith("a:")
        assert "expected" in refusal
        assert len(refusal) < 1500
    if report is not None:
        assert len(report.notes) < 300
        assert len(json.dumps(report.to_json()["facts"], allow_nan=False)) < 3_000_000 + 2 * len(text)


@pytest.mark.parametrize(("name", "what", "text"), CASES, ids=[f"{name}: {what}" for name, what, _ in CASES])
def test_harm_gives_no_time_out_of_nowhere(name: str, what: str, text: str) -> None:
    """Read leniently, recognised and asked for times: only ever a refusal, or times above zero."""
    source = from_text("a", text[:60_000])
    item = FORMATS[name]
    item.sniff(source)
    with contextlib.suppress(FormatError):
        item.read(source, True)
    asked: list[Callable[[], tuple[int, ...]]] = []
    if item.samples is not None and item.service_time is not None:
        samples, service_time = item.samples, item.service_time
        asked = [lambda: samples(source, ServiceQuery()), lambda: (service_time(source, ServiceQuery()).value_ns,)]
    assert asked
    for ask in asked:
        with contextlib.suppress(FormatError):
            assert all(value > 0 for value in ask()), what
