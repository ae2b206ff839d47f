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


METRICS = ["itl.mean", "busy", "tokens_per_s", "gap_graph.mean", "gap_step.mean"]
METRICS += [f"step.*.{name}" for name in ("mean", "p50", "per_s", "busy")]


def again(log: Path, folder: Path) -> Score:
    """Return the score of the run that a log records, simulated from nothing but the log."""
    htpsim.calibrate(log, as_recorded=True).write(folder / "recorded.toml")
    return score(log, htpsim.run(folder / "recorded.toml", workers=1), metrics=METRICS, within=WITHIN)


def told(score: Score) -> str:
    return "\n".join(f"{row.name}: {row.measured} {row.simulated} {row.error:+.2%}" for row in score.rows)


@pytest.mark.slow
def test_a_small_log_comes_out_again(tmp_path: Path) -> None:
    """The prompt fills 96 of 128 tokens, so 32 steps are of the first length and 88 of the second."""
    found = again(VerboseLog(tiers=((128, 32, 70), (256, 88, 90))).write(tmp_path), tmp_path)

    assert found.ok, told(found)
    assert len(found.rows) == 5 + 2 * 4
    counts = {row.name: (row.measured.n, row.simulated.n) for row in found.rows}
    # A log counts a step from the end of one token to the end of the next: the first has no step before it.
    assert counts["step.cl128.mean"] == (31, 32)
    assert counts["step.cl256.mean"] == (88, 88)


@pytest.mark.verify
@needs_file
def test_the_real_prompt_comes_out_within_five_percent(tmp_path: Path) -> None:
    """The host paused for 10.6 ms after the very first graph, to set the power mode; such a gap is not modelled."""
    htpsim.calibrate(REAL_LOG, as_recorded=True).write(tmp_path / "recorded.toml")
    run = htpsim.run(tmp_path / "recorded.toml", workers=1)

    assert score(REAL_LOG, run, metrics=["prefill.mean"], within=0.05).ok


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
    found = again(REAL_LOG, tmp_path)

    with capsys.disabled():
        print(f"\n{told(found)}")
    assert found.ok, told(found)
    assert len(found.rows) == 5 + 4 * 4
    assert {row.name: row.measured.n for row in found.rows}["itl.mean"] == 3581
