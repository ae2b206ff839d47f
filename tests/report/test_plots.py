"""Plots show what the rows say; every axis has its unit; the file is a slide and always the same bytes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from htpsim.report import save_compare_plots, save_run_plots
from htpsim.report.gantt import find_blocking_window, gantt
from htpsim.report.plots import ecdf, memory_of_variants, memory_over_time, shares
from htpsim.report.style import OKABE_ITO, RASTER_FROM, slide
from htpsim.results import RunLog, RunResult
from htpsim.results.columns import NEVER, STAGE_DECODE, STAGE_VIT, Execute
from tests.results.strategies import logs
from tests.results.synthetic import MS, Machine, execute, hand_log, plain, vlm_scenario

PNG_SIZE = slice(16, 24)


@pytest.fixture
def ax() -> Axes:
    return Figure().subplots()


@pytest.fixture(scope="module")
def result() -> RunResult:
    return RunResult(Machine(vlm_scenario(seconds=30, tokens=20, think_ms=3000, vit_path="qnn")).run())


def bars(ax: Axes) -> list[tuple[float, float, float]]:
    """Return (middle, left, right) of every bar."""
    found = []
    for collection in ax.collections:
        if isinstance(collection, PolyCollection):
            for path in collection.get_paths():
                x, y = path.vertices[:4, 0], path.vertices[:4, 1]
                found.append((round((y.min() + y.max()) / 2, 6), x.min(), x.max()))
    return found


def labels(ax: Axes) -> list[str]:
    return [label.get_text() for label in ax.get_yticklabels()]


@settings(max_examples=30)
@given(logs())
def test_the_window_is_around_the_longest_wait_behind_a_vit(log: RunLog) -> None:
    rows = [Execute(*row) for row in log.executes]
    vits = [x for x in rows if x.stage == STAGE_VIT and x.finished_ns != NEVER]
    blocked = [
        x
        for x in rows
        if x.stage == STAGE_DECODE
        and x.finished_ns != NEVER
        and any(v.core == x.core and v.started_ns < x.finished_ns and v.finished_ns > x.called_ns for v in vits)
    ]
    found = find_blocking_window(RunResult(log).executes, window_ns=100)

    assert (found is None) == (not blocked)
    if found is not None:
        chosen, vit = (next(x for x in rows if x.execute == n) for n in (found.decode, found.vit))
        longest = max(x.guard_wait_ns + x.device_wait_ns for x in blocked)
        assert chosen.guard_wait_ns + chosen.device_wait_ns == longest
        assert vit.core == chosen.core
        assert found.end_ns - found.start_ns == 100
        assert found.start_ns < chosen.finished_ns
        assert found.end_ns > chosen.called_ns


def test_the_gantt_has_a_row_a_core_and_a_row_a_client(ax: Axes, result: RunResult) -> None:
    gantt(ax, result.executes, result.slices)

    assert labels(ax) == ["core 0", "core 1", "vlm0", "vlm1", "vlm2", "vlm3"]
    assert ax.get_xlim() == (0, 2)
    assert ax.get_xlabel().startswith("time [s]")
    assert "while the ViT of vlm" in ax.get_title()
    assert ax.get_legend() is not None


def test_the_gantt_draws_the_stretches_of_the_hand_log(ax: Axes) -> None:
    result = RunResult(hand_log())
    gantt(ax, result.executes, result.slices, start_ns=0, window_ns=1000)
    scale = 1e9
    by_row: dict[float, list[tuple[int, int]]] = {}
    for middle, left, right in bars(ax):
        by_row.setdefault(middle, []).append((round(left * scale), round(right * scale)))

    on_core = [(20, 90), (100, 160), (160, 260), (260, 300), (300, 340), (340, 380), (460, 500), (500, 550), (550, 560)]
    on_core += [(560, 700), (690, 700), (700, 760), (800, 1000)]
    assert sorted(by_row[0.0]) == on_core
    # b waits for the guard 90-340 and from 900 on, a for the core 60-100, 340-460 and while evicted.
    assert sorted(by_row[2.5]) == [(20, 90), (90, 340), (340, 380), (900, 1000)]
    waits_of_a = {(60, 100), (340, 460), (560, 690)}
    assert waits_of_a < set(by_row[1.5])


def test_a_gang_is_drawn_on_each_of_its_cores(ax: Axes) -> None:
    result = RunResult(hand_log())
    gantt(ax, result.executes, result.slices, start_ns=0, window_ns=1000, gang={"vit/graphs": 2})

    assert labels(ax)[:2] == ["core 0", "core 1"]
    assert len([bar for bar in bars(ax) if bar[0] == 1.0]) == 5


@pytest.mark.slow
def test_many_stretches_are_rasterised_and_few_are_not(result: RunResult) -> None:
    few, many = Figure().subplots(), Figure().subplots()
    gantt(few, result.executes, result.slices, start_ns=6_000 * MS)
    long = RunResult(Machine(vlm_scenario(seconds=60)).run())
    gantt(many, long.executes, long.slices, start_ns=0, window_ns=60_000 * MS)

    assert len(bars(many)) > RASTER_FROM
    assert {c.get_rasterized() for c in many.collections} == {True}
    assert {bool(c.get_rasterized()) for c in few.collections} == {False}


def test_a_run_without_a_blocked_decode_still_has_a_gantt(ax: Axes) -> None:
    log = hand_log()
    log.executes = [row for row in log.executes if row[3] != STAGE_VIT]
    log.slices = []
    result = RunResult(log)

    assert find_blocking_window(result.executes) is None
    gantt(ax, result.executes, result.slices)
    assert ax.get_title() == "No decode waits for a ViT on its core; the longest wait is 250 ns, a decode call of b"


def test_memory_is_drawn_as_it_is_held(ax: Axes) -> None:
    memory_over_time(ax, RunResult(hand_log()).memory, {"device": 1000, "host": None, "pd": 3_500_000_000})
    device, host, pd = (ax.get_lines()[i] for i in (0, 2, 3))

    assert [round(y * 2**30) for y in device.get_ydata()] == [0, 400, 700, 600, 600]
    assert [round(x * 1e9) for x in device.get_xdata()][:4] == [0, 0, 5, 8]
    assert str(device.get_label()) == "device DRAM: 600 B, peak 700 B"
    assert str(host.get_label()).startswith("host DRAM: 0 B")
    assert str(pd.get_label()).startswith("fullest PD (process 0 core 0 pd 0): 300 B")
    assert [text.get_text() for text in ax.texts] == ["limit 1000 B"]
    assert (ax.get_xlabel()[:24], ax.get_ylabel()) == ("time since the start [s]", "held [GiB]")


def test_memory_of_variants_has_a_line_a_variant(ax: Axes) -> None:
    memory_of_variants(ax, {"legacy": RunResult(hand_log()).memory, "Genie": RunResult(hand_log()).memory})

    legacy, genie = (str(line.get_label()) for line in ax.get_lines())
    assert legacy == "legacy: 600 B, peak 700 B"
    assert genie == "Genie: 600 B, peak 700 B, as legacy"


def test_the_ecdf_is_the_share_of_samples_up_to_a_value(ax: Axes) -> None:
    ecdf(ax, {"a": np.array([3, 1, 2, 2]) * MS, "none": np.array([], dtype=np.int64)}, "TTFT")
    (line,) = ax.get_lines()

    assert line.get_xdata().tolist() == [1, 1, 2, 2, 3]
    assert line.get_ydata().tolist() == [0, 0.25, 0.5, 0.75, 1.0]
    assert ax.get_xlabel() == "TTFT [ms]"
    assert "[%]" in ax.get_ylabel()


def test_the_tail_is_the_share_of_samples_at_or_beyond(ax: Axes) -> None:
    ecdf(ax, {"a": np.array([1, 2, 2, 400]) * MS}, "ITL", tail=True, log=True)

    assert ax.get_lines()[0].get_ydata().tolist() == [1.0, 0.75, 0.5, 0.25]
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")


@pytest.mark.parametrize("tail", [False, True])
def test_the_legend_names_a_curve_that_lies_on_another(ax: Axes, tail: bool) -> None:
    values = np.array([3, 1, 2]) * MS
    ecdf(ax, {"a": values, "b": values + 1, "c": values.copy()}, "ITL", tail=tail)
    legend = ax.get_legend()

    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["a (n = 3)", "b (n = 3)", "c (n = 3), as a"]


def test_a_long_series_is_thinned_without_losing_its_tails(ax: Axes) -> None:
    values = np.arange(1, 1_000_001)
    ecdf(ax, {"a": values}, "ITL")
    (line,) = ax.get_lines()
    x = np.rint(np.asarray(line.get_xdata()) * MS).astype(int)[1:]  # from where the curve begins

    assert len(x) <= 4000
    assert set(range(1, 900)) < set(x.tolist())
    assert set(range(999_100, 1_000_001)) < set(x.tolist())
    assert np.allclose(line.get_ydata()[1:], x / 1_000_000)


def test_shares_stand_beside_weight_and_water(ax: Axes) -> None:
    summary = RunResult(hand_log()).summary()
    shares(ax, summary)

    assert [round(bar.get_width(), 6) for bar in ax.patches] == [
        round(100 * c.device.share.value, 6) for c in summary.clients.values()
    ]
    assert labels(ax) == ["a\nweight 3", "b\nweight 1", "job"]
    assert "[%]" in ax.get_xlabel()


@pytest.mark.slow
def test_a_run_saves_its_plots_as_slides(tmp_path: Path, result: RunResult) -> None:
    written = save_run_plots(result, tmp_path)

    assert [path.name for path in written] == [
        f"{name}.png" for name in ("memory", "itl", "ttft", "shares", "blame", "guard", "gantt")
    ]
    for path in written:
        assert np.frombuffer(path.read_bytes()[PNG_SIZE], dtype=">u4").tolist() == [1920, 1080]


@pytest.mark.slow
def test_a_comparison_saves_its_plots_and_a_gantt_a_variant(tmp_path: Path, result: RunResult) -> None:
    written = save_compare_plots({"legacy": [result, result], "Genie + registry": result}, tmp_path)

    assert sorted(path.name for path in written) == sorted(
        ["itl.png", "ttft.png", "vit.png", "memory.png"]
        + [f"{what}-{name}.png" for what in ("gantt", "blame") for name in ("legacy", "genie-registry")]
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in written)


def test_what_has_no_data_is_left_out(tmp_path: Path) -> None:
    log = hand_log()
    log.executes, log.requests, log.slices, log.memory = [], [], [], []

    assert [path.name for path in save_run_plots(RunResult(log), tmp_path)] == ["shares.png", "blame.png"]


def test_a_plot_is_the_same_bytes_again(tmp_path: Path) -> None:
    for name in ("one.png", "two.png"):
        with slide(tmp_path / name) as (axes,):
            gantt(axes, RunResult(hand_log()).executes, RunResult(hand_log()).slices)

    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()


@pytest.mark.slow
def test_plots_leave_the_users_matplotlib_alone() -> None:
    program = (
        "import sys, tempfile, matplotlib\nbefore = dict(matplotlib.rcParams)\n"
        "from htpsim.report import save_run_plots\nfrom htpsim.results import RunResult\n"
        f"sys.path.insert(0, {str(Path(__file__).resolve().parents[2])!r})\n"
        "from tests.results.synthetic import hand_log\n"
        "save_run_plots(RunResult(hand_log()), tempfile.mkdtemp())\n"
        "print(before == dict(matplotlib.rcParams), 'matplotlib.pyplot' in sys.modules)"
    )
    command = [sys.executable, "-W", "ignore", "-c", program]
    outcome = subprocess.run(command, capture_output=True, text=True, check=True)

    assert outcome.stdout.split() == ["True", "False"]


def test_colours_can_be_told_apart() -> None:
    assert len(set(OKABE_ITO)) == len(OKABE_ITO) >= 7


def test_a_decode_that_a_vit_evicts_is_pointed_out(ax: Axes) -> None:
    log = hand_log()
    log.executes = [
        plain(0, 0, STAGE_VIT, 150, 250, execute=1),
        execute(
            execute=0, client=1, stage=STAGE_DECODE, graph=2, copy=1, token=1, called_ns=90, submitted_ns=90,
            started_ns=100, finished_ns=320, returned_ns=320, device_wait_ns=110, run_ns=100, evict_ns=10,
            restore_ns=10, evictions=1,
        ),
    ]  # fmt: skip
    log.slices = [(0, 1, 100, 140), (0, 2, 140, 150), (0, 3, 250, 260), (0, 1, 260, 320)]
    result = RunResult(log)

    assert find_blocking_window(result.executes, 100) == (155, 255, 0, 1)
    gantt(ax, result.executes, result.slices)
    assert ax.get_title() == "A token of b is evicted by the ViT of a on core 0 and waits 110 ns in all"
