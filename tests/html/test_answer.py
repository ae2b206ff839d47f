"""The verdict praises nothing that does not work, and tells nothing from chance that cannot be told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from htpsim.experiments.compare import Comparison
from htpsim.report.html.answer import Card, cards_of
from htpsim.report.html.wording import Wording
from htpsim.results.metric import Metric, Stats
from htpsim.results.summary import Summary

WORDS = {name: {"title": name.title(), "text": ""} for name in ("first", "other")}


def stats(mean: float | None) -> Stats:
    one = Metric(mean, 9, "ns", "" if mean is not None else "no samples")
    return Stats(one, one, one, one, one)


@pytest.fixture(scope="module")
def base(comparison: Comparison) -> Summary:
    found = comparison.summaries["equal"]["legacy"][0]
    return replace(found, clients={n: c for n, c in found.clients.items() if c.kind == "instance"})


def given(base: Summary, *, itl: float | None, ttft: float, rate: float = 20.0) -> Summary:
    group = replace(base.overall, itl=stats(itl), ttft=stats(ttft), vit=stats(5e8), job=stats(None),
                    tokens_per_s=Metric(rate, 9, "tokens_per_s"))  # fmt: skip
    return replace(base, overall=group)


def card(first: list[Summary], other: list[Summary]) -> Card:
    return cards_of({"first": first, "other": other}, WORDS, Wording("en"))[0]


def test_better_and_worse_are_told_apart_by_what_is_measured(base: Summary) -> None:
    first = [given(base, itl=2e8 + i, ttft=1e9 + i, rate=20 + i / 1e6) for i in range(3)]
    other = [given(base, itl=3e8 + i, ttft=5e8 + i, rate=22 + i / 1e6) for i in range(3)]
    found = card(first, other)

    assert found.tone == "mixed"
    assert {s.name: s.tone for s in found.shifts} == {
        "TTFT mean": "better", "ITL p50": "worse", "ITL p99": "worse", "ViT mean": "same", "tokens/s": "better",
        "memory": "same",
    }  # fmt: skip
    assert found.sentence.startswith("Other gains TTFT mean -50")
    assert "pays with ITL p50 +50" in found.sentence


def test_what_the_interval_does_not_clear_is_no_gain(base: Summary) -> None:
    first = [given(base, itl=2e8, ttft=1e9) for _ in range(3)]
    other = [given(base, itl=2e8, ttft=1e9 * share) for share in (0.5, 1.4, 0.8)]
    found = card(first, other)

    assert found.tone == "even"
    assert "Not told apart by 3 replications: TTFT mean." in found.sentence


def test_one_replication_tells_nothing_from_chance(base: Summary) -> None:
    found = card([given(base, itl=2e8, ttft=1e9)], [given(base, itl=1e8, ttft=1e9)])

    assert found.tone == "single"
    assert "ITL p50 -50" in found.sentence
    assert "one replication cannot tell" in found.sentence


def test_the_very_same_is_said_to_be_the_same(base: Summary) -> None:
    runs = [given(base, itl=2e8, ttft=1e9)] * 2

    assert card(runs, runs).sentence == "Other gives the very same figures as First."


def test_what_did_not_start_is_not_praised(base: Summary) -> None:
    first = [given(base, itl=2e8 + i, ttft=1e9) for i in range(3)]
    other = [replace(given(base, itl=1e8 + i, ttft=1e9), failed={"vlm0": "throws"}) for i in range(3)]
    found = card(first, other)

    assert found.tone == "broken"
    assert "vlm0 did not start" in found.sentence
    assert "gains" not in found.sentence
    assert card(other, other).tone != "broken"


def test_a_figure_that_vanished_is_shown_as_missing_and_one_that_never_was_is_not(base: Summary) -> None:
    first = [given(base, itl=2e8, ttft=1e9) for _ in range(2)]
    other = [given(base, itl=None, ttft=1e9) for _ in range(2)]
    found = {s.name: s for s in card(first, other).shifts}

    assert found["ITL p99"].tone == "none"
    assert found["ITL p99"].why.startswith("no samples")
    assert not [name for name in found if "job" in name]
