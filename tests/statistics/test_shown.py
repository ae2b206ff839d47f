"""What the statistics say is where a user finds it: in a run, in a comparison's JSON, at the end of its page."""

from __future__ import annotations

import json

import pytest

from htpsim.errors import HtpsimError
from htpsim.experiments.single import run_one
from htpsim.results.statistics import bootstrap_interval
from tests.cli.support import PAIR, call


def test_a_run_gives_the_interval_of_a_quantile() -> None:
    result = run_one(PAIR, set_values=["run.duration=20s"], replication=0, workers=1).result
    found = result.quantile_interval("ttft", 50)
    assert found is not None
    assert found.coverage >= 0.95
    values = result.samples("ttft")["value_ns"].tolist()
    assert found.low in values
    assert found.high in values
    assert found.low <= result.summary().overall.ttft.p50.value <= found.high
    narrower = result.quantile_interval("ttft", 50, client="vlm0")
    assert narrower is not None
    assert result.quantile_interval("ttft", 99.99) is None
    with pytest.raises(HtpsimError, match="expected one of vlm0, vlm1"):
        result.quantile_interval("ttft", 50, client="vlm")


def test_a_comparison_of_five_replications_has_bootstrap_intervals(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["compare", PAIR, "--for", "1s", "--no-grid", "--workers", "1", "--case", "equal", "--variant", "legacy",
             "--variant", "guarded", "--json"]  # fmt: skip
    five = json.loads(call(capsys, *words, "--replications", "5").out)["changes"]["equal"]["guarded"][
        "overall.ttft.mean"
    ]
    low, high = five["bootstrap"]
    assert low < five["share"] < high
    three = json.loads(call(capsys, *words, "--replications", "3").out)["changes"]["equal"]["guarded"]
    assert three["overall.ttft.mean"]["bootstrap"] is None
    assert bootstrap_interval([1.0, 2.0, 3.0, 4.0]) is None


def test_a_comparison_ends_with_a_verdict_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["compare", PAIR, "--for", "1s", "--workers", "1", "--case", "equal"]
    page = " ".join(call(capsys, *words).out.split())
    verdict = page[page.rindex("Verdict ") :]
    assert "- through the guard " in verdict
    assert "- guard and registry " in verdict
    assert "memory -" in verdict
    assert "open questions" in verdict
    bare = " ".join(call(capsys, *words, "--no-grid").out.split())
    assert bare.endswith("was not asked; htpsim sensitivity asks.")
