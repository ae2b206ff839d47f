"""onnxruntime PR #18315, high against low and against normal: 300 / 30,000 and 300 / 15,000 ms."""

from __future__ import annotations

import pytest

from tests.scenarios.support import job_ms, summary

PUBLISHED_LOSER_MS = {"high_low": 30_000, "high_normal": 15_000}


@pytest.mark.parametrize(("variant", "gap_ms"), [("high_low", 3), ("high_normal", 6)])
def test_the_loser_lives_on_the_gaps_of_the_winner(variant: str, gap_ms: int) -> None:
    """Fitted (the gap). The loser runs `gap` of every 300 + gap ms: in all 300 / gap x (300 + gap) ms.

    That is 30,300 ms for 3 ms and 15,300 ms for 6 ms, within 1 and 2 % of what was published. The winner never waits:
    a job ends when its result returns, before the gap.
    """
    figures = summary("ort_priority_starvation", variant)

    assert job_ms(figures, "loop0", "max") == 300
    assert job_ms(figures, "loop1") == job_ms(figures, "loop1", "max") == 300 // gap_ms * (300 + gap_ms)
    assert job_ms(figures, "loop1") == pytest.approx(PUBLISHED_LOSER_MS[variant], rel=0.021)
    assert not any(client.starved for client in figures.clients.values())


def test_the_levels_themselves_do_not_matter_only_their_order() -> None:
    """Predicted. With one gap, low and normal starve alike: strict priority knows no distance between levels."""
    gap = ["clients.loop0.host_gap=3ms"]

    low = summary("ort_priority_starvation", "high_low", set_values=gap)
    normal = summary("ort_priority_starvation", "high_normal", set_values=gap)

    assert job_ms(low, "loop1") == job_ms(normal, "loop1") == 30_300
