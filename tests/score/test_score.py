"""A score by hand-made rows whose figures can be told on paper, and by the same run written down in five ways."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import htpsim
from htpsim.errors import HtpsimError
from htpsim.experiments.score import score
from htpsim.experiments.score.calls import NEEDED
from htpsim.experiments.single import Single
from htpsim.formats.trace import write_trace
from htpsim.report.directory import scenario_dict
from tests.calibrate.support import EXAMPLES, FIXTURES, VerboseLog, csv_profile

HEADER = ["execute", *NEEDED]
ROWS = [
    # request, stage, step, graph, token, called, submitted, returned; all of client "a", with no RPC
    (0, "prefill", 0, "llm/p0", -1, 0, 0, 10),
    (0, "prefill", 0, "llm/p1", 0, 10, 12, 22),
    (0, "decode", 0, "llm/d0", -1, 26, 26, 30),
    (0, "decode", 0, "llm/d1", 1, 30, 31, 41),
    (0, "decode", 1, "llm/d0", -1, 47, 47, 51),
    (0, "decode", 1, "llm/d1", 2, 51, 54, 65),
]


def records(folder: Path, rows: list[tuple[int, str, int, str, int, int, int, int]], client: str = "a") -> Path:
    lines = [",".join(HEADER)]
    for number, (request, stage, step, graph, token, called, submitted, returned) in enumerate(rows):
        cells = {"execute": number, "client": client, "request": request, "stage": stage, "step": step, "graph": graph,
                 "token": token if token >= 0 else "", "called_ns": called, "submitted_ns": submitted,
                 "returned_ns": returned, "rpc_ns": 0, "acquire_ns": 0, "run_ns": returned - submitted,
                 "evict_ns": 0, "restore_ns": 0}  # fmt: skip
        lines.append(",".join(str(cells[name]) for name in HEADER))
    folder.mkdir(exist_ok=True)
    path = folder / "records.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def figures(path: Path) -> dict[str, float | int | None]:
    return {row.name: row.measured.value for row in score(path, path).rows}


def test_figures_by_hand(tmp_path: Path) -> None:
    found = figures(records(tmp_path, ROWS))

    # 22 to 41, 41 to 65.
    assert found["itl.mean"] == 21.5
    assert found["prefill.mean"] == 22
    # Busy 10 + 10 + 4 + 10 + 4 + 11 of 65.
    assert found["busy"] == 49 / 65
    assert found["tokens_per_s"] == 3 * 1e9 / 65
    assert found["decode_per_s"] == pytest.approx(1e9 / 21.5)
    # Hand-over of d1 less return of d0: 1 and 3; of the second step less the token: 6.
    assert found["gap_graph.mean"] == 2
    assert found["gap_step.mean"] == 6
    assert found["execute.decode.2.mean"] == 10.5
    assert found["execute.prefill.1.mean"] == 10


def test_what_overlaps_is_busy_once(tmp_path: Path) -> None:
    overlapping = [(0, "vit", 0, "vit/veg", -1, 0, 0, 40), (1, "vit", 0, "vit/veg", -1, 10, 10, 30)]
    overlapping.append((2, "vit", 0, "vit/veg", -1, 60, 60, 80))

    assert figures(records(tmp_path, overlapping))["busy"] == 60 / 80


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> Single:
    folder = tmp_path_factory.mktemp("model")
    files = [EXAMPLES / "genie_verbose.log", EXAMPLES / "genie_config.json"]
    more: dict[str, Any] = {"vit": EXAMPLES / "vit_profile.csv", "sizes": EXAMPLES / "sizes.toml", "image_tokens": 64}
    htpsim.calibrate(files, instances=2, **more).write(folder / "two.toml")
    return htpsim.run(
        folder / "two.toml", set_values=["run.duration=12s", "device.rpc_call=200us"], replication=0, workers=1
    )


@pytest.mark.slow
def test_the_same_run_by_five_roads_is_the_same(single: Single, tmp_path: Path) -> None:
    """In memory, as a run directory of the command and one of Python, as records alone, and as a trace."""
    single.result.write(tmp_path / "run", scenario=scenario_dict(single.resolved))
    single.result.write(tmp_path / "bare")
    write_trace(single.trace(), tmp_path / "trace.jsonl")

    for road in ("run", "bare", "run/records.csv", "trace.jsonl"):
        other = score(single, tmp_path / road)
        names = {row.name for row in other.rows}
        assert {"itl.p50", "busy", "tokens_per_s", "share.vlm0", "execute.veg.mean", "gap_step.mean"} <= names
        assert {row.name: row.error for row in other.rows if row.error} == {}, road
    assert {"ttft.mean", "memory.vit"} <= {row.name for row in score(single, tmp_path / "run").rows}


@pytest.mark.slow
def test_figures_agree_with_the_summary(single: Single) -> None:
    """The summary counts in its own way; where the definitions are the same, so are the numbers."""
    found = {row.name: row.measured.value for row in score(single, single).rows}
    summary = single.summaries[0]

    assert found["itl.p95"] == summary.overall.itl.p95.value
    assert found["itl.mean"] == summary.overall.itl.mean.value
    assert found["ttft.mean"] == summary.overall.ttft.mean.value
    for name in ("vlm0", "vlm1"):
        assert found[f"share.{name}"] == pytest.approx(summary.clients[name].device.share.value, abs=0.01)


@pytest.mark.slow
def test_one_client_alone(single: Single) -> None:
    found = score(single, single, client="vlm1")

    assert not any(row.name.startswith("share.") for row in found.rows)
    everyone = {row.name: row.measured.n for row in score(single, single).rows}
    assert all(row.measured.n < everyone[row.name] for row in found.rows if row.name.startswith(("itl", "busy")))
    with pytest.raises(HtpsimError, match="expected one of vlm0, vlm1"):
        score(single, single, client="vlm2")


def test_a_log_against_itself_is_right_in_everything(tmp_path: Path) -> None:
    log = VerboseLog().write(tmp_path)
    found = score(log, log, within=0.0)

    assert found.ok
    assert {"itl.p50", "busy", "step.cl128.mean", "step.cl256.busy", "execute.decode.2.p50"} <= {
        row.name for row in found.rows
    }


def test_steps_of_a_log_are_told_apart_by_context_length(tmp_path: Path) -> None:
    log = VerboseLog(tiers=((128, 60, 70), (256, 60, 140)), gap_graph=(0,), gap_step=(5,))
    found = figures(log.write(tmp_path))
    own = [spent for name, spent in log.executions if name.startswith("token_ar1_cl256")]
    mean = sum(own) / 60

    # The first step of a context length begins with the last token of the one before: the same rule throughout.
    assert found["step.cl256.mean"] == pytest.approx(mean + 500_000, rel=1e-9)
    assert found["step.cl256.busy"] == pytest.approx(mean / (mean + 500_000), rel=1e-6)
    assert found["step.cl256.per_s"] == pytest.approx(1e9 / (mean + 500_000), rel=1e-9)
    assert found["step.cl128.mean"] < found["step.cl256.mean"]  # type: ignore[operator]


def test_a_miss_is_a_miss_on_both_sides(tmp_path: Path) -> None:
    slower = [(*row[:7], row[7] + (1 if row[4] == 2 else 0)) for row in ROWS]
    one, two = records(tmp_path / "one", ROWS), records(tmp_path / "two", slower)
    up, down = score(one, two, metrics=["itl.mean"]), score(two, one, metrics=["itl.mean"])

    assert up.error("itl.mean") == pytest.approx(22 / 21.5 - 1)
    assert down.error("itl.mean") == pytest.approx(21.5 / 22 - 1)
    for allowed, ok in ((0.03, True), (0.02, False)):
        assert score(one, two, within=allowed, metrics=["itl.mean"]).ok is ok
        assert score(two, one, within=allowed, metrics=["itl.mean"]).ok is ok


def test_zero_measured_is_no_division(tmp_path: Path) -> None:
    gapless = [row if row[3] != "llm/d1" else (*row[:6], row[5], row[7]) for row in ROWS]
    one, two = records(tmp_path / "one", gapless), records(tmp_path / "two", ROWS)
    found = score(one, two, within=0.5, metrics=["gap_graph.*"])

    assert found.error("gap_graph.mean") is None
    assert not found.ok
    assert score(one, one, within=0.0, metrics=["gap_graph.*"]).ok
    assert json.loads(json.dumps(found.to_dict()))["metrics"][0]["error"] is None


def test_what_too_few_samples_say_is_withheld_not_compared(tmp_path: Path) -> None:
    path = records(tmp_path, ROWS)

    assert ("itl.p95", "2 samples, p95 needs 40") in score(path, path).withheld


def test_a_profile_is_held_to_the_graph_of_its_name(single: Single) -> None:
    found = score(EXAMPLES / "vit_profile.csv", single, metrics=["execute.*"])

    assert [row.name for row in found.rows] == ["execute.veg.mean", "execute.veg.p50"]
    # The profile has its cold first execution in it, and the simulation waits for the core.
    assert found.error("execute.veg.mean") is not None


def test_key_figures_of_queries_are_compared(tmp_path: Path) -> None:
    log = FIXTURES / "console_service.log"
    found = {row.name: row.measured for row in score(log, log).rows}

    assert found["ttft.mean"].value == (120_000_000 + 310_000_000) / 2
    assert found["memory.veg"].value == 5330
    assert found["load"].value == 910_000_000


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("records.csv", "execute,client,request,\n", "got no column stage"),
        ("records.csv", ",".join(HEADER) + "\n1,a\n", r"records.csv:2: got 2 cells, expected 15"),
        ("records.csv", ",".join(HEADER) + "\n" + ",".join(["x"] * 15) + "\n", "got 'x' for request"),
        ("records.csv", ",".join(HEADER) + "\n1,a,0,decode,0,g,0,0,0,1e9" + ",0" * 5 + "\n", "got '1e9'"),
    ],
)
def test_broken_records_are_refused_with_their_line(tmp_path: Path, name: str, text: str, words: str) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")

    with pytest.raises(HtpsimError, match=words):
        score(path, path)


def test_folders_that_are_no_run_are_refused(tmp_path: Path) -> None:
    with pytest.raises(HtpsimError, match="expected a run directory"):
        score(tmp_path, tmp_path)
    records(tmp_path, ROWS)
    with pytest.raises(HtpsimError, match=r"scenario\.json"):
        score(tmp_path, tmp_path)


def test_two_that_have_nothing_in_common_are_told_so(tmp_path: Path) -> None:
    profile = csv_profile(tmp_path / "p.csv", [900] * 6, "adas")

    with pytest.raises(HtpsimError, match=r"no figure that both have: .*execute.adas.* has .*itl"):
        score(profile, records(tmp_path, ROWS))


@pytest.mark.parametrize("kind", ["genie_config.json", "sizes.toml"])
def test_files_that_hold_no_run_are_refused(tmp_path: Path, kind: str) -> None:
    with pytest.raises(HtpsimError):
        score(EXAMPLES / kind, records(tmp_path, ROWS))
