"""Calibrate from a log, simulate the same run, and compare by context length: what is fitted must come out again."""

from __future__ import annotations

from pathlib import Path

import pytest

import htpsim
from htpsim.experiments.score import Score, score
from tests.calibrate.support import REAL_LOG, VerboseLog

WITHIN = 0.02
needs_file = pytest.mark.skipif(
    not REAL_LOG.is_file(), reason="the folder of real files (shared/cases) is not beside this one"
)


def by_tier(log: Path, folder: Path, lengths: list[int]) -> list[Score]:
    """Return a score for each context length, then one over the whole run."""
    path = folder / "recorded.toml"
    htpsim.calibrate(log, as_recorded=True).write(path)
    scores, measured = [], htpsim.read(log)
    for length in lengths:
        run = htpsim.run(path, variant=f"cl{length}", workers=1)
        metrics = [f"step.cl{length}.{name}" for name in ("mean", "p50", "per_s", "busy")]
        scores.append(score(measured, run, metrics=metrics, within=WITHIN))
    whole = ["itl.mean", "busy", "tokens_per_s", "gap_graph.mean", "gap_step.mean", "prefill.mean"]
    scores.append(score(measured, htpsim.run(path, workers=1), metrics=whole, within=WITHIN))
    return scores


def told(score: Score) -> str:
    return "\n".join(f"{row.name}: {row.measured} {row.simulated} {row.error:+.2%}" for row in score.rows)


@pytest.mark.slow
def test_a_small_log_comes_out_again(tmp_path: Path) -> None:
    scores = by_tier(VerboseLog(tiers=((128, 60, 70), (256, 60, 90))).write(tmp_path), tmp_path, [128, 256])

    for each in scores:
        assert each.ok, told(each)
    assert [len(each.rows) for each in scores] == [4, 4, 6]


@pytest.mark.slow
def test_what_is_not_in_the_log_does_not_come_out(tmp_path: Path) -> None:
    """The check can fail: a run whose graphs are 5 % slower is told apart from the log."""
    log = VerboseLog(tiers=((128, 60, 70), (256, 60, 90))).write(tmp_path)
    slower = VerboseLog(tiers=((128, 60, 74), (256, 60, 95))).write(tmp_path, "slower.log")
    htpsim.calibrate(slower, as_recorded=True).write(tmp_path / "slower.toml")
    found = score(log, htpsim.run(tmp_path / "slower.toml", workers=1), metrics=["itl.mean"], within=WITHIN)

    assert not found.ok


@pytest.mark.verify
@needs_file
def test_the_real_log_comes_out_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """14,350 executions of Qwen3-4B: step time, busy share and tokens/s at each context length, each within 2 %."""
    scores = by_tier(REAL_LOG, tmp_path, [1024, 2048, 3072, 4096])

    with capsys.disabled():
        for each in scores:
            print(f"\n{told(each)}", end="")
    for each in scores:
        assert each.ok, told(each)
    assert [len(each.rows) for each in scores] == [4, 4, 4, 4, 6]
    tokens = scores[-1]
    assert {row.name: row.measured.n for row in tokens.rows}["itl.mean"] == 3581
