"""open-genie-server manual, SA8255P: two NSPs that share DRAM."""

from __future__ import annotations

import pytest

from tests.scenarios.support import job_ms, number, summary

RUN = ["run.duration=20s"]


@pytest.mark.parametrize(("phase", "kept"), [("decode", 0.64), ("prefill", 0.84)])
def test_two_at_once_keep_a_share_of_their_speed(phase: str, kept: float) -> None:
    """Fitted. Each asks for B / 1.28 (decode) or B / 1.68 (prefill) and gets B / 2: 0.64 and 0.84 of what it asks."""
    alone = summary("two_nsp_bandwidth", f"{phase}_alone", set_values=RUN)
    both = summary("two_nsp_bandwidth", f"{phase}_both", set_values=RUN)

    for client in ("nsp0", "nsp1"):
        assert job_ms(alone, "nsp0") / job_ms(both, client) == pytest.approx(kept, rel=1e-5)


def test_decode_rates_are_the_published_ones() -> None:
    """Fitted. 68.7 tokens/s alone, 44.1 on each of the two: 68.7 x 0.64 = 43.97."""
    alone = summary("two_nsp_bandwidth", "decode_alone", set_values=RUN)
    both = summary("two_nsp_bandwidth", "decode_both", set_values=RUN)

    assert number(alone, "overall.requests_per_s") == pytest.approx(68.7, rel=0.001)
    assert number(both, "overall.requests_per_s") == pytest.approx(2 * 44.1, rel=0.005)


def test_eight_jobs_are_done_1_31_times_sooner_on_two_than_on_one() -> None:
    """Fitted (the mix). 8 x (112 + 895) ms = 8.056 s on one; 4 x (112 / 0.84 + 895 / 0.64) ms = 6.127 s on two.

    Published: 8.06 and 6.13 s.
    """
    on_one = job_ms(summary("two_nsp_bandwidth", "eight_jobs_on_one", set_values=RUN), "nsp0", "max")
    on_two = summary("two_nsp_bandwidth", "eight_jobs_on_two", set_values=RUN)
    last = max(job_ms(on_two, client, "max") for client in ("nsp0", "nsp1"))

    assert on_one == 8 * (112 + 895)
    assert last == pytest.approx(4 * (112 / 0.84 + 895 / 0.64), rel=1e-5)
    assert on_one / last == pytest.approx(1.31, abs=0.01)
