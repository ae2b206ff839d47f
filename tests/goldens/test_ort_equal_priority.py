"""onnxruntime PR #18315, two instances of a 300 ms model at equal priority: 600 and 600 ms."""

from __future__ import annotations

import pytest

from tests.scenarios.support import job_ms, summary


@pytest.mark.parametrize("client", ["loop0", "loop1"])
def test_at_equal_priority_each_job_takes_twice_its_time(client: str) -> None:
    """Predicted. A job waits for the whole of the other's: 300 + 300 = 600 ms, every time."""
    figures = summary("ort_priority_starvation", "equal")

    assert job_ms(figures, client) == 600
    assert job_ms(figures, client, "p50") == job_ms(figures, client, "max") == 600
