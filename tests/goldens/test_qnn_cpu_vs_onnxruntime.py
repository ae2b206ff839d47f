"""ai-hub-models issue 17: QNN's CPU backend beside ONNX Runtime, from the log's own figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from htpsim.formats import service_time_ns
from htpsim.scenario import load
from tests.scenarios.support import SCENARIOS, job_ms, number, summary

CASES = Path(__file__).resolve().parents[2] / ".." / "shared" / "cases"
ORIGINAL = CASES / "qnn-profile-viewer-text" / "01-seed-cpu-basic-inception_v3-v2.26.txt"
OURS = SCENARIOS / "data" / "qnn_cpu_inception_v3.txt"


def test_the_replay_is_the_ten_inferences_of_the_log() -> None:
    """Predicted. Ten of 1803.294 ms back to back, at 1 / 1.803294 s = 0.5545 a second; the log has 0.5542, with I/O."""
    figures = summary("qnn_cpu_vs_onnxruntime", "qnn_cpu")

    assert figures.overall.counts.done == 10
    assert job_ms(figures, "net_run") == job_ms(figures, "net_run", "max") == 1803.294
    assert number(figures, "overall.requests_per_s") == pytest.approx(0.5542, rel=0.001)


def test_the_ratio_comes_from_the_numbers_and_is_not_the_titles() -> None:
    """Predicted. 1803.294 / 21.910 = 82.3; the question's title says 88. The answer's QNN: 28 / 21.910 = 1.28."""
    question = job_ms(summary("qnn_cpu_vs_onnxruntime", "qnn_cpu"), "net_run")
    onnxruntime = job_ms(summary("qnn_cpu_vs_onnxruntime", "onnxruntime"), "net_run")
    answer = job_ms(summary("qnn_cpu_vs_onnxruntime", "qnn_cpu_of_answer"), "net_run")

    assert onnxruntime == 21.910243
    assert question / onnxruntime == pytest.approx(82.3, abs=0.05)
    assert answer == 28
    told = {name: variant.text for name, variant in load("qnn_cpu_vs_onnxruntime").variants.items()}
    assert f"{question / onnxruntime:.1f} times" in told["qnn_cpu"]
    assert f"{answer / onnxruntime:.2f} times" in told["qnn_cpu_of_answer"]


def test_a_reader_sees_the_verdict() -> None:
    file = load("qnn_cpu_vs_onnxruntime")

    assert "not reproduced" in file.title
    assert "nothing to do with the HTP" in file.title
    assert "was not reproduced" in file.variants["qnn_cpu_of_answer"].text
    assert "nothing about the HTP" in file.variants["qnn_cpu_of_answer"].text


def test_the_figure_is_read_from_the_log_and_not_from_the_scenario() -> None:
    resolved = load("qnn_cpu_vs_onnxruntime").resolve("qnn_cpu")

    (source,) = resolved.sources
    assert (source.value, source.mark) == ("1.803294s", "measured")
    assert "qnn_cpu_inception_v3.txt" in source.source


@pytest.mark.skipif(not ORIGINAL.exists(), reason="the published log is not here: it is not ours to ship")
@pytest.mark.parametrize("statistic", ["average", "min", "max"])
@pytest.mark.parametrize("event", ["NetRun", "GRAPH_EXECUTE"])
def test_our_copy_has_the_figures_of_the_published_log(statistic: str, event: str) -> None:
    values = [
        service_time_ns(path, graph="inception_v3", statistic=statistic, event=event).value_ns
        for path in (OURS, ORIGINAL)
    ]

    assert values[0] == values[1]
