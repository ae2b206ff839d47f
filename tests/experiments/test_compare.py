"""Comparisons: the same draws, the same results on any number of processes and in any order, and frames of them."""

from __future__ import annotations

import inspect
import math
from dataclasses import asdict
from pathlib import Path

import pytest

import htpsim
from htpsim.errors import HtpsimError, ScenarioError
from htpsim.experiments.compare import BASE, Comparison, compare
from htpsim.experiments.precision import Precision
from htpsim.experiments.tidy import METRIC_COLUMNS
from htpsim.report.cells import to_text
from htpsim.report.directory import write_comparison
from htpsim.report.pages import comparison_page
from tests.cli.support import PAIR, PLAIN

pytestmark = pytest.mark.slow
SHORT = ("run.duration=500ms",)


def plain(comparison: Comparison) -> dict[str, object]:
    """Everything a comparison found, as plain values."""
    return {
        "summaries": {
            (case, variant): [summary.to_dict() for summary in runs]
            for case, variants in comparison.summaries.items()
            for variant, runs in variants.items()
        },
        "executes": {key: log.executes for key, log in comparison.logs.items()},
        "requests": {key: log.requests for key, log in comparison.logs.items()},
        "grid": None if comparison.grid is None else asdict(comparison.grid),
    }


def test_the_results_do_not_depend_on_the_number_of_processes() -> None:
    alone = compare(PAIR, set_values=SHORT, workers=1)
    together = compare(PAIR, set_values=SHORT, workers=2)

    assert plain(alone) == plain(together)
    assert alone.grid is not None
    assert len(alone.logs) == 6


def test_progress_changes_no_result_and_only_ever_grows() -> None:
    told: list[tuple[float, int]] = []
    watched = compare(PAIR, set_values=SHORT, workers=1, progress=lambda done, total, _: told.append((done, total)))

    assert plain(watched) == plain(compare(PAIR, set_values=SHORT, workers=1))
    assert {total for _, total in told} == {2 * 3 * 3 + 2 * 3 * 2}
    shares = [done for done, _ in told]
    assert shares == sorted(shares)
    assert shares[-1] == 30
    assert any(not done.is_integer() for done in shares)


def test_variants_see_the_same_draws() -> None:
    found = compare(PAIR, set_values=SHORT, cases=["equal"], variants=["guarded", "shared"], grid=False, workers=1)
    one, two = (found.logs["equal", name] for name in ("guarded", "shared"))

    # Where each core holds one copy anyway, the registry changes bytes, not instants.
    assert [row[:4] for row in one.executes] == [row[:4] for row in two.executes]
    assert found.changes("equal")["shared"]["overall.ttft.mean"].identical
    assert not found.changes("equal")["shared"]["memory.device.steady_bytes"].identical


def test_the_order_asked_for_decides_what_is_compared_with_what_and_nothing_else() -> None:
    forth = compare(PAIR, set_values=SHORT, variants=["legacy", "shared"], grid=False, workers=1)
    back = compare(PAIR, set_values=SHORT, variants=["shared", "legacy"], grid=False, workers=1)

    assert (forth.baseline, back.baseline) == ("legacy", "shared")
    assert plain(forth) == plain(back)


def test_a_file_without_variants_is_its_own_only_one() -> None:
    found = compare(PLAIN, set_values=SHORT, workers=1)

    assert list(found.variants) == list(found.cases) == [BASE]
    assert len(found.summaries[BASE][BASE]) == 3
    assert found.grid is None
    assert found.changes(BASE) == {}


def test_a_variant_that_is_called_base_is_that_variant(tmp_path: Path) -> None:
    path = tmp_path / "named.toml"
    path.write_text(f'extends = "{PAIR}"\n[variants.base.guard]\npolicy = "fifo"\n')

    found = compare(path, set_values=SHORT, variants=["base"], grid=False, workers=1)

    assert next(iter(found.resolved.values())).scenario.guard.policy == "fifo"


def test_every_unknown_name_is_told_at_once() -> None:
    with pytest.raises(ScenarioError) as told:
        compare(PAIR, variants=["legcy", "shard", "legacy"])

    assert len(told.value.problems) == 2


def test_the_frame_has_a_row_a_figure_and_agrees_with_the_summaries() -> None:
    found = compare(PAIR, set_values=SHORT, grid=False, workers=1)
    frame = found.to_dataframe()

    assert frame.columns.tolist() == ["case", "variant", "replication", *METRIC_COLUMNS]
    assert not frame.duplicated(["case", "variant", "replication", "metric"]).any()
    assert set(frame["case"]) == {"equal", "weighted"}
    for case, variant, replication, path in (
        ("equal", "legacy", 0, "overall.tokens_per_s"),
        ("weighted", "shared", 2, "clients.vlm1.itl.mean"),
        ("equal", "guarded", 1, "overall.itl.p99"),
    ):
        row = frame[
            (frame["case"] == case)
            & (frame["variant"] == variant)
            & (frame["replication"] == replication)
            & (frame["metric"] == path)
        ].iloc[0]
        metric = found.summaries[case][variant][replication].metric(path)
        assert (row["unit"], row["n"], row["why"]) == (metric.unit, metric.n, metric.why)
        assert math.isnan(row["value"]) if metric.value is None else row["value"] == metric.value
    held = frame[frame["metric"] == "memory.device.steady_bytes"]
    assert set(held["unit"]) == {"bytes"}
    assert held["n"].isna().all()
    assert set(frame[frame["metric"] == "load_ns"]["unit"]) == {"ns"}


def test_a_notebook_shows_the_headline_figures() -> None:
    found = compare(PAIR, set_values=SHORT, cases=["equal"], grid=False, workers=1)
    shown = found._repr_html_()

    assert shown.count("<tr>") == 1 + 3
    assert "<caption>A pair equal weights</caption>" in shown
    assert "variants legacy, guarded, shared; cases equal" in repr(found)


def test_a_comparison_without_logs_says_so_instead_of_writing_half(tmp_path: Path) -> None:

    found = compare(PLAIN, set_values=SHORT, keep_logs=False, workers=1)

    with pytest.raises(HtpsimError, match="keep_logs=True"):
        write_comparison(found, tmp_path / "run", [])
    assert list(tmp_path.iterdir()) == []


def test_the_front_door_leads_to_the_same_rooms() -> None:
    assert inspect.unwrap(htpsim.compare) is compare  # what it returns plots itself besides
    assert set(htpsim.__all__) <= set(dir(htpsim))
    assert all(getattr(htpsim, name) is getattr(htpsim, name) for name in htpsim.__all__)
    with pytest.raises(AttributeError, match="did you mean 'compare'"):
        getattr(htpsim, "compere")  # noqa: B009 - the point is that there is no such name


def altered(folder: Path, title: str, run: str) -> Path:
    """Write the pair with a `run` of its own in the variant or case of this title."""
    text = Path(PAIR).read_text(encoding="utf-8")
    assert f'title = "{title}"' in text
    file = folder / "altered.toml"
    file.write_text(text.replace(f'title = "{title}"', f'title = "{title}"\nrun = {{ {run} }}'), encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("run", "told"),
    [
        ("replications = 5", "variants.guarded.run.replications: got 5, expected 3 as in 'legacy'"),
        ("seed = 8", "variants.guarded.run.seed: got 8, expected 7 as in 'legacy'"),
    ],
)
def test_variants_whose_replications_do_not_pair_off_are_refused(tmp_path: Path, run: str, told: str) -> None:
    file = altered(tmp_path, "through the guard", run)
    with pytest.raises(ScenarioError) as raised:
        compare(file, set_values=SHORT, workers=1)
    assert told in str(raised.value)
    assert list(compare(file, variants=["guarded"], cases=["equal"], set_values=SHORT, workers=1).variants) == [
        "guarded"
    ]


def test_more_replications_are_added_once_where_a_case_has_more_than_another(tmp_path: Path) -> None:
    file = altered(tmp_path, "weights 3:1", "replications = 5")
    found = compare(file, variants=["legacy", "guarded"], set_values=SHORT, grid=False,
                    precision=Precision(0.0001, 6), workers=1)  # fmt: skip
    for variants in found.summaries.values():
        for runs in variants.values():
            assert [summary.replication for summary in runs] == [0, 1, 2, 3, 4, 5]


def test_a_verdict_says_who_did_not_start() -> None:
    """One VLM alone is faster than two; that is nothing that the variant gains."""
    tight = [*SHORT, "device.dram_budget=165MB"]
    found = compare(PAIR, variants=["legacy", "shared"], cases=["equal"], set_values=tight, grid=False, workers=1)
    told = " ".join(to_text(comparison_page(found), 200).rpartition("Verdict")[2].split())
    assert "! vlm0 did not start with past the guard: its figures are of fewer" in told
    assert "did not start with guard and registry" not in told
