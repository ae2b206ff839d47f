"""onnxruntime PR #18315 explained by weights: 303 / 30,000 ms at 99:1 and 306 / 15,000 ms at 49:1."""

from __future__ import annotations

import pytest

from tests.scenarios.support import job_ms, summary


@pytest.mark.parametrize(("variant", "weight"), [("weights_99_1", 99), ("weights_49_1", 49)])
def test_weights_give_the_loser_its_share_and_cost_the_winner_one_job_in_so_many(variant: str, weight: int) -> None:
    """Predicted. Of weight + 1 jobs on the core, one is the loser's: it takes (weight + 1) x 300 ms, 30,000 or 15,000.

    The winner does `weight` jobs in that time: (weight + 1) / weight x 300 ms in the mean, 303.03 or 306.12. The first
    job of the loser falls into the warm-up.
    """
    figures = summary("ort_priority_starvation", variant)

    assert job_ms(figures, "loop1") == job_ms(figures, "loop1", "max") == (weight + 1) * 300
    assert job_ms(figures, "loop0") == pytest.approx((weight + 1) / weight * 300, rel=1e-3)
    assert job_ms(figures, "loop0", "p50") == 300
    assert job_ms(figures, "loop0", "max") == 600
