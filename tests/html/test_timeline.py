"""The packed timeline unpacks to the instants of the log, to the microsecond, whatever the run."""

from __future__ import annotations

import base64
import zlib

import numpy as np
from hypothesis import given

from htpsim.report.html.timeline import COLUMNS, INSTANTS, PLAIN, because, timeline
from htpsim.report.html.wording import Wording
from htpsim.results import RunLog, RunResult
from htpsim.results.columns import NEVER
from htpsim.results.delays import Delay, Part
from tests.results.strategies import logs
from tests.results.synthetic import hand_log

SCALE = 1000


def unpack(text: str) -> np.ndarray:
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype="<i4").astype(np.int64)


def instants(raw: np.ndarray) -> dict[str, list[int]]:
    """Unpack as the page's script does."""
    found: dict[str, list[int]] = {name: [] for name in INSTANTS}
    called = 0
    for row in raw.T.tolist():
        called += row[0]
        found["called_ns"].append(called)
        before = called
        for name, step in zip(INSTANTS[1:], row[1:6], strict=True):
            found[name].append(NEVER if step == 0 else before + step - 1)
            before = before if step == 0 else before + step - 1
    return found


def stretched(log: RunLog) -> RunLog:
    """Give the hand-made instants a scale at which microseconds tell them apart."""
    for rows, times in ((log.executes, range(13, 30)), (log.slices, (2, 3)), (log.requests, range(3, 8))):
        rows[:] = [tuple(v * SCALE if i in times and v != NEVER else v for i, v in enumerate(row)) for row in rows]
    log.start_ns, log.end_ns, log.ready_ns = log.start_ns * SCALE, log.end_ns * SCALE, log.ready_ns * SCALE
    return log


@given(logs())
def test_instants_unpack(log: RunLog) -> None:
    result = RunResult(stretched(log))
    made = timeline(result, Wording("en"))
    x = result.tables.executes
    order = np.argsort(x["called_ns"], kind="stable")
    raw = unpack(made["columns"]).reshape(len(COLUMNS), made["rows"])

    for name, values in instants(raw).items():
        expected = np.where(x[name][order] == NEVER, NEVER, x[name][order] // 1000)
        assert values == expected.tolist(), name
    for i, name in enumerate(PLAIN, start=6):
        assert raw[i].tolist() == x[name][order].tolist(), name


def test_stretches_of_the_evicted_unpack() -> None:
    result = RunResult(stretched(hand_log()))
    made = timeline(result, Wording("en"))
    row, kind, step, length = unpack(made["slices"]).reshape(4, -1)
    order = np.argsort(result.tables.executes["called_ns"], kind="stable")
    s = result.tables.slices

    assert len(row) == len(s) > 0
    assert result.tables.executes["execute"][order[row]].tolist() == s["execute"].tolist()
    assert kind.tolist() == s["kind"].tolist()
    assert np.cumsum(step).tolist() == (s["start_ns"] // 1000).tolist()
    end_ns = np.where(s["end_ns"] < 0, result.log.end_ns, s["end_ns"])
    assert length.tolist() == ((end_ns - s["start_ns"]) // 1000).tolist()


def test_what_is_slow_is_in_order_and_says_why() -> None:
    slow = timeline(RunResult(hand_log()), Wording("en"))["slow"]
    lengths = [round(one["end"] - one["start"], 6) for one in slow if one["measure"] == "itl"]

    assert lengths == sorted(lengths, reverse=True)
    assert all(one["said"] and one["parts"] for one in slow)


def test_the_sentence_adds_up_what_one_culprit_did_directly_and_through_others() -> None:
    def part(kind: str, client: str, through: str, delay_ns: int, graph: str = "vit/a") -> Part:
        return Part(kind, client, "vit", "genie", graph, through, delay_ns, 1)

    parts = (
        part("guard", "b", "", 40),
        part("guard", "c", "", 45),
        part("guard", "b", "c", 30),
        part("own", "a", "", 5),
    )
    said = because(Delay("a", 0, 1, 0, 120, parts), Wording("en"))

    assert said == "70 ns of it (58.3 %): the ViT of b held the guard's slot"
    assert because(Delay("a", 0, 1, 0, 5, parts[-1:]), Wording("en")) == "all of it is its own doing"
    mostly = because(Delay("a", 0, 1, 0, 100, (part("own", "a", "", 60), part("device", "a", "", 40))), Wording("en"))
    assert mostly == "60.0 % is its own doing; of the rest most, 40 ns: its own ViT was on its core"
