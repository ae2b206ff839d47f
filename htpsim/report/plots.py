"""Plots of one run and of several: each function draws into the axes it is given and returns them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from htpsim.report.gantt import gantt
from htpsim.report.plots_answers import blame_heat, policy_timeline
from htpsim.report.style import FAINT, INK, colour, line, slide
from htpsim.results.columns import PATHS
from htpsim.results.delays import blame_matrix
from htpsim.results.memory_use import ledger_limit
from htpsim.results.occupancy import gang_width
from htpsim.units import BYTE_UNITS, NS_PER_MS, NS_PER_S, format_bytes

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from htpsim.results.metric import IntArray
    from htpsim.results.run import RunResult
    from htpsim.results.summary import Summary

GIB: Final = BYTE_UNITS["GiB"]
POINTS_MAX: Final = 4000
LEGEND_CHARACTERS: Final = 100
"""What a row of a legend holds at the size of a slide, the keys left out."""
TITLES: Final = {"itl": "Time between tokens (ITL)", "ttft": "Time to first token (TTFT)", "vit": "ViT latency"}
_NUMBERS: Final = re.compile(r": | \(n = ")
"""Where the name in a label of a legend ends."""
LEDGERS: Final = {"device": "device DRAM", "host": "host DRAM", "pd": "PD address space"}


def memory_over_time(ax: Axes, frame: pd.DataFrame, limits: Mapping[str, int | None] | None = None) -> Axes:
    """Draw what device DRAM, host DRAM and the fullest protection domain held over time, with limits in sight.

    Parameters
    ----------
    ax
        Axes to draw in.
    frame
        Frame of memory.
    limits
        Bytes each ledger may hold; for "pd", one protection domain.
    """
    until = _axis_end(frame)
    for i, ledger in enumerate(name for name in LEDGERS if (frame["ledger"] == name).any()):
        rows = frame[frame["ledger"] == ledger]
        name, held = LEDGERS[ledger], "ledger_bytes"
        if ledger == "pd":
            fullest = str(rows["place"].iloc[int(rows["place_bytes"].to_numpy().argmax())])
            rows, held = rows[rows["place"] == fullest], "place_bytes"
            name = f"fullest PD ({fullest})"
        _steps(ax, rows["time_ns"].to_numpy(), rows[held].to_numpy(), until, name, i)
        _limit(ax, (limits or {}).get(ledger), int(rows[held].max()), i)
    return _memory_axes(ax, until)


def memory_of_variants(ax: Axes, frames: Mapping[str, pd.DataFrame], ledger: str = "device") -> Axes:
    """Draw what one ledger held over time, a line a variant."""
    until = max((_axis_end(frame) for frame in frames.values()), default=1.0)
    for i, (name, frame) in enumerate(frames.items()):
        rows = frame[frame["ledger"] == ledger]
        if len(rows):
            _steps(ax, rows["time_ns"].to_numpy(), rows["ledger_bytes"].to_numpy(), until, name, i)
    _name_same_lines(ax)
    ax.set_title(LEDGERS.get(ledger, ledger))
    return _memory_axes(ax, until)


def _steps(ax: Axes, time_ns: IntArray, held: IntArray, until: float, name: str, i: int) -> None:
    last = np.append(time_ns[1:] != time_ns[:-1], True)  # the last of several changes at one instant is what is seen
    x = np.concatenate([[0.0], time_ns[last] / NS_PER_S, [until]])
    y = np.concatenate([[0.0], held[last] / GIB, [held[-1] / GIB]])
    label = f"{name}: {format_bytes(int(held[-1]))}, peak {format_bytes(int(held.max()))}"
    ax.step(x, y, where="post", color=colour(i), linestyle=line(i), label=label)


def _limit(ax: Axes, limit: int | None, peak: int, i: int) -> None:
    if limit is not None and limit < 2.5 * peak:
        ax.axhline(limit / GIB, color=colour(i), linewidth=1.2, linestyle=":")
        ax.annotate(
            f"limit {format_bytes(limit)}", (0.995, limit / GIB), xycoords=("axes fraction", "data"), ha="right",
            va="bottom", color=colour(i),
        )  # fmt: skip


def _axis_end(frame: pd.DataFrame) -> float:
    """Return the second at which the axis ends: some time after the last change."""
    return 1.15 * max(int(frame["time_ns"].max()) if len(frame) else 0, NS_PER_MS) / NS_PER_S


def _memory_axes(ax: Axes, until: float) -> Axes:
    ax.set_xlim(0, until)
    ax.set_ylim(bottom=0, top=ax.get_ylim()[1] * 1.05)
    ax.set_xlabel("time since the start [s]; constant afterwards")
    ax.set_ylabel("held [GiB]")
    ax.grid(axis="y")
    if ax.get_lines():
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=2)
    return ax


def ecdf(
    ax: Axes, series: Mapping[str, IntArray], xlabel: str, unit: str = "ms", *, tail: bool = False, log: bool = False
) -> Axes:
    """Draw the share of samples up to a value or, for the tail, the share beyond it on a logarithmic axis.

    Parameters
    ----------
    ax
        Axes to draw in.
    series
        Samples by variant [ns].
    xlabel
        What is measured.
    unit
        "ms" or "s".
    tail
        Share of samples beyond the value: what one in a hundred or in a thousand meets.
    log
        Logarithmic values.
    """
    scale = {"ms": NS_PER_MS, "s": NS_PER_S}[unit]
    least = 1.0
    for i, (name, values) in enumerate(series.items()):
        if not len(values):
            continue
        ordered = np.sort(np.asarray(values)) / scale
        n = len(ordered)
        rank = np.arange(1, n + 1)
        share = (n - rank + 1) / n if tail else rank / n
        keep = _thinned(n)
        x, y = ordered[keep], share[keep]
        if not tail:  # a curve begins at none
            x, y = np.append(x[0], x), np.append(0.0, y)
        ax.step(
            x, y, where="pre" if tail else "post", color=colour(i), linestyle=line(i), label=f"{name} (n = {n:,})",
        )  # fmt: skip
        least = min(least, 1 / n)
    ax.set_xlabel(f"{xlabel} [{unit}]")
    if tail:
        _percentiles(ax, least)
        ax.set_yscale("log")
        ax.set_ylim(max(least, 1e-6) * 0.8, 1.2)
        ax.set_ylabel("share of samples at or beyond")
        ax.yaxis.set_major_formatter(lambda y, _: f"{100 * y:g} %")
    else:
        ax.set_ylim(0, 1.02)
        ax.set_ylabel("share of samples up to [%]")
        ax.yaxis.set_major_formatter(lambda y, _: f"{100 * y:.0f}")
    if log:
        _log_values(ax)
    ax.grid()
    _name_same_lines(ax)
    if ax.get_lines():
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=_columns(ax))
    return ax


def _name_same_lines(ax: Axes) -> None:
    """Say in the legend which curves lie on an earlier one, whole: of two such lines one sees hardly more than one."""
    first: dict[bytes, str] = {}
    for drawn in ax.get_lines():
        label = str(drawn.get_label())
        if label.startswith("_"):  # a mark, which no legend names
            continue
        name = first.setdefault(np.asarray(drawn.get_xydata()).tobytes(), label)
        if name != label:
            drawn.set_label(f"{label}, as {_NUMBERS.split(name)[0]}")


def _columns(ax: Axes) -> int:
    """Return how many columns of a legend are as wide as the plot at most."""
    labels = ax.get_legend_handles_labels()[1]
    return max(1, min(4 if len(labels) == 4 else 3, LEGEND_CHARACTERS // max(map(len, labels))))


def _log_values(ax: Axes) -> None:
    """Make the values logarithmic, with ticks that read as numbers, unless they lie close together."""
    from matplotlib.ticker import LogLocator, NullFormatter

    low, high = ax.dataLim.x0, ax.dataLim.x1
    if not 0 < 3 * low < high:
        return
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.xaxis.set_major_formatter(lambda x, _: f"{x:,g}")
    ax.xaxis.set_minor_formatter(NullFormatter())


def _percentiles(ax: Axes, least: float) -> None:
    """Mark the levels at which a curve crosses its p50, p95 and p99."""
    for beyond, name in ((0.5, "p50"), (0.05, "p95"), (0.01, "p99")):
        if beyond >= least:
            ax.axhline(beyond, color=FAINT, linewidth=1.0, linestyle=":")
            ax.annotate(name, (0.003, beyond), xycoords=("axes fraction", "data"), va="bottom", color=FAINT)


def _thinned(n: int) -> IntArray:
    """Return positions that draw the same curve with fewer points: evenly spaced, both tails whole."""
    if n <= POINTS_MAX:
        return np.arange(n)
    edge = POINTS_MAX // 4
    middle = np.linspace(edge, n - edge - 1, POINTS_MAX - 2 * edge).astype(np.int64)
    return np.concatenate([np.arange(edge), middle, np.arange(n - edge, n)])


def shares(ax: Axes, summary: Summary) -> Axes:
    """Draw each client's share of device time, and beside it what its weight says and the water-filled share."""
    names = list(summary.clients)
    for i, client in enumerate(summary.clients.values()):
        d = client.device
        got, fair, weight = (m.value for m in (d.share, d.fair_share, d.weight_share))
        ax.barh(i, 100 * (got or 0), height=0.6, color=colour(i))
        inside = (got or 0) > 0.08
        ax.annotate(
            f" {100 * (got or 0):.1f} %", (0 if inside else 100 * (got or 0), i - 0.18), va="center",
            color="white" if inside else INK, fontweight="bold",
        )  # fmt: skip
        if fair is not None:
            ax.plot([100 * fair] * 2, [i - 0.42, i + 0.42], color=INK, linewidth=3, solid_capstyle="butt")
        if weight is not None:
            ax.plot(100 * weight, i, marker="D", markersize=10, color="white", markeredgecolor=INK, markeredgewidth=1.8)
    weights = [c.device.weight for c in summary.clients.values()]
    labels = [n if w is None else f"{n}\nweight {w}" for n, w in zip(names, weights, strict=True)]
    ax.set_yticks(range(len(names)), labels)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.set_xlim(left=0)
    ax.set_xlabel("share of device time [%]")
    ax.grid(axis="x")
    ax.set_axisbelow(True)
    _shares_legend(ax)
    return ax


def _shares_legend(ax: Axes) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    entries = [
        Patch(color=FAINT, label="measured"),
        Line2D([], [], color=INK, linewidth=3, label="water-filled: fair, no more than it takes alone"),
        Line2D(
            [],
            [],
            color="white",
            marker="D",
            markersize=10,
            markeredgecolor=INK,
            markeredgewidth=1.8,
            label="by weight",
        ),
    ]
    ax.legend(handles=entries, loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=3)


def save_run_plots(result: RunResult, directory: str | Path) -> list[Path]:
    """Save memory, ITL, TTFT, shares, blame, the guard's timeline and a Gantt of one run; without data, none.

    Parameters
    ----------
    result
        The run.
    directory
        Existing directory to write to.

    Returns
    -------
    list of Path
        The files written.
    """
    folder = Path(directory)
    written = []
    if len(result.memory):
        with slide(folder / "memory.png") as (ax,):
            memory_over_time(ax, result.memory, limits(result)).set_title("Memory over time")
        written.append(folder / "memory.png")
    for measure in ("itl", "ttft"):
        if len(result.samples(measure)):
            with slide(folder / f"{measure}.png") as (ax,):
                ecdf(
                    ax, by_client(result, measure), measure.upper(), tail=measure == "itl", log=measure == "itl"
                ).set_title(TITLES[measure])
            written.append(folder / f"{measure}.png")
    if len(result.summary().clients) > 1:
        with slide(folder / "shares.png") as (ax,):
            shares(ax, result.summary()).set_title("Who got the device")
        written.append(folder / "shares.png")
    written += _save_blame(result, folder / "blame.png")
    if (result.executes["path"] == PATHS[0]).any():
        with slide(folder / "guard.png") as (ax,):
            policy_timeline(ax, result.executes, until_ns=result.log.end_ns)
        written.append(folder / "guard.png")
    return written + _save_gantt(result, folder / "gantt.png")


def save_compare_plots(
    results_by_variant: Mapping[str, RunResult | Sequence[RunResult]], directory: str | Path
) -> list[Path]:
    """Save ITL, TTFT, ViT latency and memory of several variants, and of each who delayed whom and a Gantt.

    Parameters
    ----------
    results_by_variant
        A run, or one a replication, by name of the variant; samples of replications are pooled.
    directory
        Existing directory to write to.

    Returns
    -------
    list of Path
        The files written.
    """
    folder = Path(directory)
    runs = {name: list(r) if isinstance(r, Sequence) else [r] for name, r in results_by_variant.items()}
    written = []
    for measure, title in TITLES.items():
        series = {name: np.concatenate([_samples(run, measure) for run in of]) for name, of in runs.items()}
        if any(len(values) for values in series.values()):
            with slide(folder / f"{measure}.png") as (ax,):
                label = "ViT latency" if measure == "vit" else measure.upper()
                ecdf(ax, series, label, tail=measure == "itl", log=True).set_title(title)
            written.append(folder / f"{measure}.png")
    with slide(folder / "memory.png") as (ax,):
        memory_of_variants(ax, {name: of[0].memory for name, of in runs.items()})
    written.append(folder / "memory.png")
    for name, of in runs.items():
        written += _save_gantt(of[0], folder / f"gantt-{file_name(name)}.png", name)
        written += _save_blame(of[0], folder / f"blame-{file_name(name)}.png", name)
    return written


def file_name(name: str) -> str:
    """Return a variant's name in a form fit for a file.

    >>> file_name("Genie + registry, 4:2:1:1")
    'genie-registry-4-2-1-1'
    """
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "variant"


def _save_gantt(result: RunResult, path: Path, variant: str = "") -> list[Path]:
    if not len(result.executes):
        return []
    with slide(path) as (ax,):
        gantt(ax, result.executes, result.slices, gang=gangs(result), until_ns=result.log.end_ns)
        if variant:
            ax.set_title(f"{variant}\n{ax.get_title(loc='left')}".strip())
    return [path]


def _save_blame(result: RunResult, path: Path, variant: str = "") -> list[Path]:
    if len(result.summary().clients) < 2:
        return []
    with slide(path) as (ax,):
        blame_heat(ax, blame_matrix(result.blame), result.tables.length_ns)
        if variant:
            ax.set_title(f"{variant}\n{ax.get_title(loc='left')}".strip())
    return [path]


def gangs(result: RunResult) -> dict[str, int]:
    """Return how many cores a graph takes at once, for those that take more than one."""
    widths = gang_width(result.tables).tolist()
    return {graph: width for graph, width in zip(result.log.graphs, widths, strict=True) if width > 1}


def by_client(result: RunResult, measure: str) -> dict[str, IntArray]:
    """Return the samples of a latency [ns] by client, without those that have none."""
    frame = result.samples(measure)
    return {
        str(name): frame["value_ns"][frame["client"] == name].to_numpy()
        for name in frame["client"].cat.categories
        if (frame["client"] == name).any()
    }


def _samples(result: RunResult, measure: str) -> IntArray:
    values: IntArray = result.samples(measure)["value_ns"].to_numpy()
    return values


def limits(result: RunResult) -> dict[str, int | None]:
    """Return the bytes that each ledger of a run may hold, None where nothing limits it."""
    device = result.log.scenario.device
    return {ledger: device.pd_bytes if ledger == "pd" else ledger_limit(device, ledger) for ledger in LEDGERS}
