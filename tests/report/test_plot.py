"""Plots by one call: each shows itself, says what it is of, and refuses what it cannot mean."""

from __future__ import annotations

from pathlib import Path

import pytest

import htpsim
from htpsim.errors import HtpsimError
from htpsim.experiments.demand import parse_bound, parse_goal
from htpsim.experiments.tune import Candidate, Tuned
from htpsim.report import plots
from htpsim.report.picture import Picture
from htpsim.results.replications import Estimate

SHORT = ["run.duration=1s", "run.warmup=0s"]
PNG = b"\x89PNG\r\n"


@pytest.fixture(scope="module")
def comparison() -> htpsim.Comparison:
    return htpsim.compare("surprise_long_vit", variants=["fifo", "split_4"], set_values=SHORT, workers=1)


@pytest.fixture(scope="module")
def single() -> htpsim.Single:
    return htpsim.run("surprise_long_vit", variant="fifo", set_values=SHORT)


def candidate(name: str, ttft: float, itl: float | None, *, keeps: bool) -> Candidate:
    goal, kept = (Estimate(mean, 1e6, "ns", 2) for mean in (ttft, itl))
    return Candidate((name,), goal, (kept,), keeps, True, keeps)


def tuned(itl: float | None) -> Tuned:
    found = (candidate("1", 1200e6, 310e6, keeps=True), candidate("4", 900e6, itl, keeps=False))
    return Tuned("t", ("weight",), parse_goal("ttft.mean"), (parse_bound("itl.p99 <= 350ms"),), found, 2, 0, "", 2)


@pytest.mark.parametrize("name", ["gantt", "shares", "blame", "policy_timeline", "ecdf"])
def test_a_run_is_drawn_as_a_picture_that_shows_itself(
    name: str, single: htpsim.Single, comparison: htpsim.Comparison
) -> None:
    draw = getattr(htpsim.plot, name)

    for of in (single, single.result, comparison):
        picture = draw(of)
        assert isinstance(picture, Picture)
        assert picture.ax.has_data()
    assert picture._repr_png_().startswith(PNG)
    assert len(picture._repr_png_()) < 150_000


def test_memory_is_drawn_by_ledger_or_by_variant(comparison: htpsim.Comparison) -> None:
    quick = ["run.duration=100ms", "run.warmup=0s", "run.replications=1"]
    single = htpsim.run("vit_genie", set_values=quick)
    both = htpsim.compare("vit_migration", variants=["legacy", "genie"], set_values=quick, grid=False, workers=1)

    first, *_ = htpsim.plot.memory(single).ax.get_legend().get_texts()  # type: ignore[union-attr]
    assert first.get_text().startswith("device DRAM")
    assert len(htpsim.plot.memory(both).ax.get_lines()) == 2
    assert not htpsim.plot.memory(comparison).ax.get_lines()


def test_the_same_plot_is_the_same_bytes(single: htpsim.Single) -> None:
    assert htpsim.plot.gantt(single)._repr_png_() == htpsim.plot.gantt(single)._repr_png_()


def test_what_is_under_way_when_the_run_ends_is_not_drawn_beyond_it(single: htpsim.Single) -> None:
    end_s = single.log.end_ns / 1e9
    assert (single.result.executes["finished_ns"].isna()).any()

    for draw in (htpsim.plot.gantt, htpsim.plot.policy_timeline):
        ax = draw(single, start_ns=0, window_ns=5_000_000_000).ax
        assert 0.5 < max(path.vertices[:, 0].max() for bars in ax.collections for path in bars.get_paths()) <= end_s


def test_another_variant_is_another_plot(comparison: htpsim.Comparison) -> None:
    first, other = (htpsim.plot.gantt(comparison, variant=name) for name in ("fifo", "split_4"))

    assert first.ax.get_title(loc="left") != other.ax.get_title(loc="left")


def test_latencies_of_a_comparison_are_by_variant_and_of_a_run_by_client(
    single: htpsim.Single, comparison: htpsim.Comparison
) -> None:
    of_run, of_both = htpsim.plot.ecdf(single, "itl"), htpsim.plot.ecdf(comparison, "itl", tail=False)

    assert [line.get_label().split(" (")[0] for line in of_run.ax.get_legend().get_lines()] == ["dialog"]  # type: ignore[union-attr]
    assert len(of_both.ax.get_legend().get_lines()) == 2  # type: ignore[union-attr]
    assert (of_run.ax.get_yscale(), of_both.ax.get_yscale()) == ("log", "linear")


def test_a_legend_of_long_names_is_no_wider_than_the_plot(comparison: htpsim.Comparison) -> None:
    runs = {f"a variant with a long title {i}": htpsim.RunResult(comparison.logs["base", "fifo"]) for i in range(4)}
    picture = Picture()
    with picture.style():
        plots.ecdf(picture.ax, {name: plots.by_client(run, "itl")["dialog"] for name, run in runs.items()}, "ITL")
    picture._repr_png_()

    legend = picture.ax.get_legend().get_window_extent()  # type: ignore[union-attr]
    assert legend.x0 >= 0
    assert legend.x1 <= picture.figure.bbox.x1


def test_the_window_does_not_reach_beyond_the_run(single: htpsim.Single) -> None:
    end_ns = single.log.end_ns
    ax = htpsim.plot.gantt(single, window_ns=end_ns // 2).ax
    start_s = float(ax.get_xlabel().split("since ")[1].removesuffix(" s"))

    assert start_s + ax.get_xlim()[1] <= end_ns / 1e9 + 0.001


def test_a_front_is_drawn_in_milliseconds() -> None:
    picture = htpsim.plot.pareto(tuned(380e6))

    assert (picture.ax.get_xlabel(), picture.ax.get_ylabel()) == ("ITL p99 [ms]", "TTFT mean [ms]")
    left, right = picture.ax.get_xlim()
    assert left < 310
    assert 380 < right < 1000


def test_a_point_without_the_figure_is_left_out_of_the_front() -> None:
    assert htpsim.plot.pareto(tuned(None)).ax.get_xlim()[1] < 370


def test_a_tornado_names_its_metric() -> None:
    found = htpsim.sensitivity(
        "surprise_long_vit", variants=["fifo", "split_4"], only=["guard.overhead"], set_values=SHORT, workers=1
    )
    picture = htpsim.plot.tornado(found, "overall.tokens_per_s")

    assert picture.ax.get_title(loc="left").startswith("tokens/s of split_4: ")
    with pytest.raises(HtpsimError, match=r"overall\.itl\.p9.*did you mean 'overall\.itl\.p99'"):
        htpsim.plot.tornado(found, "overall.itl.p9")


def test_what_cannot_be_meant_is_refused_by_name(single: htpsim.Single, comparison: htpsim.Comparison) -> None:
    with pytest.raises(HtpsimError, match=r"variant.*'split4'.*did you mean 'split_4'"):
        htpsim.plot.gantt(comparison, variant="split4")
    with pytest.raises(HtpsimError, match="case"):
        htpsim.plot.memory(comparison, case="equal")
    with pytest.raises(HtpsimError, match="of one run"):
        htpsim.plot.gantt(single, variant="fifo")
    with pytest.raises(HtpsimError, match="measure"):
        htpsim.plot.ecdf(single, "itll")
    with pytest.raises(HtpsimError, match="bound: got 1"):
        htpsim.plot.pareto(tuned(1.0), 1)


def test_a_comparison_without_logs_says_so() -> None:
    bare = htpsim.compare("surprise_long_vit", variants=["fifo"], set_values=SHORT, workers=1, keep_logs=False)

    with pytest.raises(HtpsimError, match="keep_logs=True"):
        htpsim.plot.gantt(bare)


def test_a_picture_is_saved_at_the_size_of_a_slide(single: htpsim.Single, tmp_path: Path) -> None:
    path = htpsim.plot.shares(single).save(tmp_path / "shares.png")

    assert path.read_bytes().startswith(PNG)
    assert int.from_bytes(path.read_bytes()[16:20], "big") == 1920
