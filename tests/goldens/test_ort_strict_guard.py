"""onnxruntime PR #18315 under strict priority in the guard, no gap: the loser starves, and is said to."""

from __future__ import annotations

from tests.scenarios.support import job_ms, number, summary


def test_under_strict_guard_priority_the_loser_starves_and_is_not_averaged() -> None:
    """Predicted. The winner has called again before any grant is made, so the loser is never chosen."""
    figures = summary("ort_priority_starvation", "strict")

    assert job_ms(figures, "loop0") == job_ms(figures, "loop0", "max") == 300
    assert number(figures, "clients.loop0.device.share") == 1
    loser = figures.clients["loop1"]
    assert "unfinished for 700 s" in loser.starved
    assert loser.job.mean.value is None
    assert loser.job.mean.why.startswith("starved")
    assert figures.overall.job.mean.value is None
    assert any(note.startswith("loop1 starved") for note in figures.notes)
