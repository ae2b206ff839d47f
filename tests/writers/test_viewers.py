"""Traces for viewers: both formats draw the same picture, and it says what the run's records say."""

from __future__ import annotations

import io
import json
import os
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htpsim.errors import FormatError, HtpsimError
from htpsim.experiments.trace import trace_of
from htpsim.formats.source import from_text
from htpsim.formats.trace import parse_trace, read_trace, write_trace
from htpsim.formats.trace_text import write_chrome, write_lines
from htpsim.formats.writers import extra
from htpsim.formats.writers.counters import share_window_ns
from htpsim.formats.writers.perfetto import write_perfetto
from htpsim.invariants import Call, MemoryEvent, RequestEvent, Trace
from htpsim.invariants.spans import History
from htpsim.sim import simulate
from htpsim.testing import random_scenario, scenarios, traces
from tests.invariants.hand import DEVICE, evicted, guarded, on, ran, trace
from tests.writers.viewer import Picture, chrome_picture, perfetto_picture

PARTS = {
    "guard wait": "guard_wait_ns",
    "guard overhead": "guard_overhead_ns",
    "RPC": "rpc_ns",
    "device wait": "device_wait_ns",
    "acquire": "acquire_ns",
    "run": "run_ns",
    "evict": "evict_ns",
    "restore": "restore_ns",
    "RPC return": "rpc_return_ns",
}
DEVICE_ROWS = "HTP device"


def chrome(made: Trace) -> Picture:
    return chrome_picture(json.loads("\n".join(write_chrome(made))))


def perfetto(made: Trace) -> Picture:
    pytest.importorskip("perfetto")
    file = io.BytesIO()
    write_perfetto(made, file)
    return perfetto_picture(file.getvalue())


@pytest.mark.slow
@settings(max_examples=8)
@given(made=traces())
def test_both_formats_draw_the_same_picture(made: Trace) -> None:
    one, other = chrome(made), perfetto(made)

    assert one.keys() == other.keys()
    assert one.arrows == other.arrows
    assert one.curves == other.curves


@pytest.mark.slow
@settings(max_examples=8)
@given(scenario=scenarios())
def test_slices_add_up_to_the_parts_of_the_records(scenario: Any) -> None:
    log = simulate(scenario)
    made = trace_of(log)
    picture = perfetto(made)
    found: dict[int, Counter[str]] = defaultdict(Counter)
    on_core: dict[int, Counter[str]] = defaultdict(Counter)
    for row in picture.rows:
        for one in picture.all(row):
            if "graphExecute" in one.args:
                held = on_core if row[0] == DEVICE_ROWS else found
                for part in one.inside:
                    held[one.args["graphExecute"]][part.name] += part.end_ns - part.begin_ns

    assert found.keys() == {number for number, span in History(made).spans.items() if span.called_ns < made.last_ns}
    for number, parts in made.parts.items():
        told = {name: getattr(parts, part) for name, part in PARTS.items()}
        width = len(made.calls[number].cores)
        assert {name: found[number][name] for name in PARTS} == told
        for name in ("acquire", "run", "evict", "restore"):
            assert on_core[number][name] == width * told[name]


def place(args: dict[str, Any]) -> tuple[Any, ...]:
    return args.get("client"), args.get("request"), args.get("stage")


@pytest.mark.slow
@settings(max_examples=8)
@given(made=traces())
def test_arrows_lead_from_stage_to_stage(made: Trace) -> None:
    picture = chrome(made)
    starts = {(row[1], one.begin_ns): one.args for row in picture.rows for one in picture.all(row) if one.args}
    seen = set()
    for row, begin_ns, target, target_ns in picture.arrows:
        before, after = starts[row, begin_ns], starts[target, target_ns]
        assert (before["client"], before["request"]) == (after["client"], after["request"])
        assert (before["stage"], after["stage"]) in {("vit", "prefill"), ("prefill", "decode")}
        assert begin_ns < target_ns
        same = [(one.begin_ns, one.args) for r in picture.rows if r[0] == DEVICE_ROWS for one in picture.all(r)]
        assert begin_ns == max(at for at, args in same if place(args) == place(before))
        assert target_ns == min(at for at, args in same if place(args) == place(after))
        seen.add((before["client"], before["request"], before["stage"]))
    shown = {
        (one.args["client"], one.args["request"], one.args["stage"])
        for row in picture.rows
        for one in picture.all(row)
        if row[0] == DEVICE_ROWS and "request" in one.args
    }
    follows = {"vit": "prefill", "prefill": "decode"}
    assert seen == {(c, r, s) for c, r, s in shown if s in follows and (c, r, follows[s]) in shown}


@pytest.mark.slow
@settings(max_examples=6)
@given(made=traces())
def test_curves_end_where_the_run_ended(made: Trace) -> None:
    picture = perfetto(made)
    history = History(made)
    held: Counter[str] = Counter()
    for event in made.memory:
        held[f"memory: {event.ledger}, {event.place}"] += event.delta_bytes
    memory = {name: points[-1][1] for (_, name), points in picture.curves.items() if name.startswith("memory")}
    waiting = sum(span.granted_ns < 0 for span in history.guarded)
    lines = [points[-1][1] for (_, name), points in picture.curves.items() if name.startswith("guard: calls in line")]

    assert memory == dict(held)
    assert sum(lines) == waiting
    shares = [points for (_, name), points in picture.curves.items() if name.startswith("share")]
    for at_ns in {time_ns for points in shares for time_ns, _ in points}:
        values = [next((v for t, v in reversed(points) if t <= at_ns), 0) for points in shares]
        assert sum(values) == pytest.approx(100, abs=0.1) or not any(values)


def test_shares_are_parts_of_the_time_that_cores_were_held() -> None:
    calls = {0: on(client="gang", cores=(0, 1)), 1: on(client="one", cores=(2,)), 2: on(client="one", cores=(2,))}
    made = trace(ran(0, 0, 600), ran(0, 0, 301), ran(302, 700, 800), device=DEVICE, calls=calls, end_ns=1000)

    curves = chrome(made).curves

    name = "share of device time (2 ns)"
    assert curves[DEVICE_ROWS, f"{name}, gang"] == [(0, 66.67), (300, 80.0), (302, 100.0), (600, 0)]
    assert curves[DEVICE_ROWS, f"{name}, one"] == [(0, 33.33), (300, 20.0), (302, 0.0), (700, 100.0), (800, 0)]


def test_clients_of_one_core_that_run_together_stand_beside_each_other() -> None:
    made = trace(ran(0, 1, 9), ran(2, 3, 7), ran(8, 10, 12), device=DEVICE, calls={n: on() for n in range(3)})

    rows = chrome(made).rows

    assert [one.args["graphExecute"] for one in rows[DEVICE_ROWS, "core 0"]] == [0, 2]
    assert [one.args["graphExecute"] for one in rows[DEVICE_ROWS, "core 0 (2)"]] == [1]
    assert rows[DEVICE_ROWS, "core 1"] == []


def test_an_eviction_is_told_on_core_and_thread() -> None:
    made = trace(evicted(0, (1, 5), (20, 24)), device=DEVICE, calls={0: on(graph="vit")}, end_ns=30)

    rows = chrome(made).rows

    core, thread = rows[DEVICE_ROWS, "core 0"], rows["process 0", "t0"]
    assert [(one.begin_ns, one.end_ns, one.name) for one in core] == [(1, 7, "t0 vit"), (19, 24, "t0 vit")]
    assert [[part.name for part in one.inside] for one in core] == [["run", "evict"], ["restore", "run"]]
    assert [(part.begin_ns, part.end_ns, part.name) for part in thread[0].inside] == [
        (0, 1, "device wait"), (1, 5, "run"), (5, 7, "evict"), (7, 19, "device wait"), (19, 20, "restore"),
        (20, 24, "run"),
    ]  # fmt: skip
    assert core[0].args["evictions"] == 1


def test_an_arrow_leaves_the_last_stretch_and_reaches_the_first() -> None:
    calls = {n: on(client="v", request=0, stage=stage) for n, stage in enumerate(("vit", "prefill", "decode"))}
    histories = evicted(0, (1, 5), (20, 24)), evicted(24, (25, 27), (40, 44)), ran(44, 45, 50)

    arrows = chrome(trace(*histories, device=DEVICE, calls=calls)).arrows

    assert arrows == {("core 0", 19, "core 0", 25), ("core 0", 39, "core 0", 45)}


def test_what_is_unfinished_lasts_to_the_end() -> None:
    waiting = [(2, "call")]
    sent = [(3, "call"), (4, "grant")]
    queued = [(5, "call"), (5, "submit")]
    running = [(6, "call"), (6, "submit"), (7, "start"), (8, "run")]
    made = trace(waiting, sent, queued, running, device=DEVICE, end_ns=10, calls={n: on() for n in (2, 3)})

    rows = perfetto(made).rows

    parts = [
        [(part.begin_ns, part.end_ns, part.name) for part in rows["process 0", f"t{n}"][0].inside] for n in range(4)
    ]
    assert parts == [
        [(2, 10, "guard wait")],
        [(3, 4, "guard wait"), (4, 10, "RPC")],
        [(5, 10, "device wait")],
        [(6, 7, "device wait"), (7, 8, "acquire"), (8, 10, "run")],
    ]


def test_requests_hold_their_calls_and_jobs_at_once_get_rows() -> None:
    calls = {n: on(client="c", request=n, thread=f"c job {n}") for n in range(3)}
    asked = [
        RequestEvent(at, kind, "c", n)
        for n, (b, e) in enumerate([(0, 9), (2, 12), (9, 14)])
        for at, kind in ((b, "begin"), (e, "done"))
    ]
    made = trace(ran(0, 1, 9), ran(2, 9, 12), ran(9, 12, 14), device=DEVICE, calls=calls, requests=sorted(asked))

    rows = chrome(made).rows

    assert [(one.name, [inner.args["graphExecute"] for inner in one.inside]) for one in rows["process 0", "c"]] == [
        ("request 0", [0]), ("request 2", [2]),
    ]  # fmt: skip
    assert [one.name for one in rows["process 0", "c (2)"]] == ["request 1"]


def test_a_recording_without_device_events_shows_what_it_has() -> None:
    made = trace(guarded(0, 3, 9), guarded(9, 9, 12), calls={0: {"client": "v", "request": 0, "stage": "vit"}})
    made.calls[1] = Call(execute=1, thread="t1", client="v", request=0, stage="prefill")
    made.engine = ""

    picture = chrome(made)

    assert [row for row in picture.rows if row[0] == DEVICE_ROWS] == []
    assert [(one.name, [part.name for part in one.inside]) for one in picture.rows["process 0", "v"]] == [
        ("graphExecute", ["guard wait", "on the device"]), ("graphExecute", ["on the device"]),
    ]  # fmt: skip
    assert picture.arrows == {("v", 0, "v", 9)}
    assert picture.curves["process 0", "guard: calls in line, all cores"] == [(0, 1), (3, 0)]
    assert picture.curves["process 0", "guard: slots held, all cores"] == [(0, 0), (3, 1), (12, 0)]


def test_an_unsound_recording_is_drawn_without_what_does_not_follow() -> None:
    made = trace(guarded(0, 3, 9), [(5, "return"), (6, "call")], calls={1: {"thread": "t0"}})

    assert [one.args["graphExecute"] for one in perfetto(made).rows["process 0", "t0"]] == [0]


def test_calls_of_one_thread_that_overlap_do_not_cross() -> None:
    made = trace(guarded(0, 3, 9), guarded(5, 10, 12), calls={1: {"thread": "t0"}})

    assert {row[1]: len(held) for row, held in perfetto(made).rows.items()} == {"t0": 1, "t0 (2)": 1}


def test_a_header_that_ends_before_the_events_does_no_harm() -> None:
    late = 10**18
    made = trace(ran(0, 1, late), [(2, "call")], device=DEVICE, calls={0: on()}, end_ns=0)

    picture = perfetto(made)

    assert [one.end_ns for one in picture.rows[DEVICE_ROWS, "core 0"]] == [late]
    assert [one.end_ns for one in picture.rows["process 0", "t1"]] == [late]
    assert max(len(points) for points in picture.curves.values()) < 1000


EXACT_NS = 2**53
"""Beyond it microseconds with three decimals are no exact number in JSON."""
ODD: st.SearchStrategy[Any] = st.sampled_from([0, 1, -1, 7, 2**61, 10**18, "", "core 0", "\x00", "process 0"])
DAMAGE = st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6), ODD), max_size=6)


@pytest.mark.slow
@settings(max_examples=12)
@given(seed=st.integers(0, 30), damage=DAMAGE)
def test_whatever_is_read_can_be_drawn(seed: int, damage: list[tuple[int, int, Any]]) -> None:
    """A recorder may write anything; what the reader accepts, however odd, is drawn with slices that nest."""
    records = [json.loads(line) for line in write_lines(trace_of(simulate(random_scenario(seed))))]
    for at, key, value in damage:
        record = records[at % len(records)]
        record = record.get("device", record) if key % 2 else record
        if record:
            record[sorted(record)[key % len(record)]] = value
    source = from_text("x.jsonl", "\n".join(map(json.dumps, records)))
    try:
        made, _ = parse_trace(source, lenient=True)
    except FormatError:
        return

    picture = perfetto(made)
    document = json.loads("\n".join(write_chrome(made)))
    told = [*made.events, *made.requests, *made.memory, *made.uses]
    if max([made.last_ns, *(entry.time_ns for entry in told)]) < EXACT_NS:
        assert chrome_picture(document).keys() == picture.keys()


@pytest.mark.parametrize("name", ["trace.pftrace", "trace.perfetto-trace"])
def test_the_name_says_perfetto(name: str, tmp_path: Path) -> None:
    made = trace(guarded(0, 3, 9))

    write_trace(made, tmp_path / name)

    assert perfetto_picture((tmp_path / name).read_bytes()).keys() == chrome(made).keys()
    assert [path.name for path in tmp_path.iterdir()] == [name]
    with pytest.raises(FormatError, match=f"{name}: got a Perfetto trace, which is only written"):
        read_trace(tmp_path / name)


def test_without_the_package_it_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(extra.importlib, "import_module", absent)

    with pytest.raises(HtpsimError, match=r"pip install htpsim\[perfetto\]"):
        write_trace(Trace(), tmp_path / "x.pftrace")
    assert list(tmp_path.iterdir()) == []


def test_a_failure_half_way_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    write_trace(trace(guarded(0, 3, 9)), path)
    before = path.read_bytes()
    broken = trace(guarded(0, 3, 9))
    broken.memory = [MemoryEvent(1, "device", "dram", "x", None)]  # type: ignore[arg-type]

    with pytest.raises(TypeError):
        write_trace(broken, path)

    assert path.read_bytes() == before
    assert [found.name for found in tmp_path.iterdir()] == ["trace.json"]


def test_a_pipe_is_written_to_directly(tmp_path: Path) -> None:
    """As with ``-o /dev/stdout``: what is no file cannot be replaced by one."""
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)

    write_trace(Trace(source="piped"), tmp_path / "pipe", "lines")

    assert json.loads(os.read(reader, 1000))["source"] == "piped"
    os.close(reader)
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.jsonl").write_text("old", encoding="utf-8")
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "real.jsonl")
    made = trace(guarded(0, 3, 9))

    write_trace(made, tmp_path / "link.jsonl")

    assert (tmp_path / "link.jsonl").is_symlink()
    assert read_trace(tmp_path / "real.jsonl").events == made.events


def test_windows_of_shares_are_round() -> None:
    assert [share_window_ns(length) for length in (0, 500, 501, 1_000_001, 2_500_000_000)] == [
        1, 1, 2, 5_000, 5_000_000,
    ]  # fmt: skip


@pytest.mark.slow
def test_generated_runs_have_what_is_drawn() -> None:
    """Guards the properties above, which would hold of runs in which nothing happens."""
    names: set[str] = set()
    arrows = False
    for seed in range(60):
        picture = chrome(trace_of(simulate(random_scenario(seed))))
        names |= {one.name for row in picture.rows for one in picture.all(row)}
        arrows |= bool(picture.arrows)
        if arrows and names >= set(PARTS):
            return
    pytest.fail(f"60 runs have {names}")
