"""Plots of answers: what moves one, what a choice costs, who delayed whom, and whom the guard let in when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from htpsim.report.gantt import Bars, draw_bars
from htpsim.report.style import FAINT, GUARD_WAIT, INK, OKABE_ITO, colour, lighter
from htpsim.results.columns import PATHS
from htpsim.units import NS_PER_S, format_time

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from htpsim.experiments.sensitivity import Effect
    from htpsim.results.metric import IntArray

PLAIN: Final = OKABE_ITO[0]
TURNED: Final = OKABE_ITO[5]
ROWS_MAX: Final = 12
_TURNS: Final = "turns the sign round"
_SHORTEN: Final = 44


def tornado(ax: Axes, effects: Sequence[Effect], *, most: int = ROWS_MAX) -> Axes:
    """Draw by how much each assumption moves one answer, the strongest on top; what turns its sign is hatched.

    Parameters
    ----------
    ax
        Axes to draw in.
    effects
        On one metric of one variant, as `Sensitivity.of` gives them.
    most
        Parameters to show; what is left out is counted in the title.
    """
    by_key: dict[str, list[Effect]] = {}
    for effect in effects:
        if effect.move is not None:
            by_key.setdefault(effect.setting.key, []).append(effect)
    ordered = sorted(by_key.items(), key=lambda one: (-max(abs(e.move or 0.0) for e in one[1]), one[0]))
    for row, (_, group) in enumerate(ordered[:most]):
        _spread(ax, row, group)
    base = 100 * (effects[0].configured.share or 0.0) if effects else 0.0
    ax.axvline(base, color=INK, linewidth=1.4)
    if base:
        ax.axvline(0, color=FAINT, linewidth=1.2, linestyle=":")
    ax.set_yticks(range(len(ordered[:most])), [_short(key) for key, _ in ordered[:most]])
    ax.set_ylim(max(len(ordered[:most]), 1) - 0.4, -0.6)
    ax.margins(x=0.22)
    ax.set_xlabel("difference from the first variant [%]; line: as configured")
    ax.grid(axis="x")
    ax.set_axisbelow(True)
    left = len(ordered) - most
    ax.set_title("What moves the answer" + (f" ({left} weaker left out)" if left > 0 else ""))
    if any(e.flips for _, group in ordered[:most] for e in group):
        _turned_legend(ax)
    return ax


def _spread(ax: Axes, row: int, group: Sequence[Effect]) -> None:
    """Draw the bars of one parameter, from the configured difference to that at each other value, with the values."""
    base = 100 * (group[0].configured.share or 0.0)
    ends: dict[int, tuple[float, str]] = {}
    for effect in sorted(group, key=lambda e: -abs(e.move or 0.0)):
        at = 100 * (effect.changed.share or 0.0)
        ax.barh(row, at - base, left=base, height=0.62, color=TURNED if effect.flips else PLAIN,
                hatch="//" if effect.flips else None, edgecolor="white", linewidth=1.0)  # fmt: skip
        ends.setdefault(1 if at >= base else -1, (at, effect.setting.value.strip('"')))
    for side, (at, value) in ends.items():
        ax.annotate(_short(value, 14), (at, row), xytext=(5 * side, 0), textcoords="offset points", va="center",
                    ha="left" if side > 0 else "right", fontsize=12)  # fmt: skip


def _turned_legend(ax: Axes) -> None:
    from matplotlib.patches import Patch

    entries = [Patch(color=PLAIN, label="moves it"),
               Patch(facecolor=TURNED, edgecolor="white", hatch="//", label=_TURNS)]  # fmt: skip
    ax.legend(handles=entries, loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=2)


def _short(text: str, most: int = _SHORTEN) -> str:
    """Shorten a text to its ends.

    >>> _short("instances.vlm0.llm.decode.service", 20)
    'instances...ecode.service'
    """
    return text if len(text) <= most + 5 else f"{text[: most // 2 - 1]}...{text[-(most - most // 2 + 3) :]}"


class Choice(NamedTuple):
    """One point to choose: two figures with the halves of their intervals."""

    name: str
    x: float
    y: float
    x_half: float = 0.0
    y_half: float = 0.0
    front: bool = False
    """no other is at least as good in both and better in one"""
    keeps: bool = True
    """it keeps what was demanded"""


def pareto(ax: Axes, choices: Sequence[Choice], xlabel: str, ylabel: str, *, bound: float | None = None) -> Axes:
    """Draw choices by two figures, the front joined and named, what breaks the bound hollow.

    Parameters
    ----------
    ax
        Axes to draw in.
    choices
        What there is to choose from.
    xlabel, ylabel
        The two figures, with their units.
    bound
        What `x` must keep, drawn as a line.
    """
    for keeps, front in ((True, True), (True, False), (False, True), (False, False)):
        mine = [c for c in choices if (c.keeps, c.front) == (keeps, front)]
        if not mine:
            continue
        hue = PLAIN if front else FAINT
        ax.errorbar(
            [c.x for c in mine], [c.y for c in mine], xerr=[c.x_half for c in mine], yerr=[c.y_half for c in mine],
            fmt="o" if front else "s", markersize=11 if front else 7, color=hue, ecolor=lighter(hue, 0.5),
            markerfacecolor=hue if keeps else "white", markeredgewidth=2, capsize=4, linewidth=1.4,
            label=("on the front" if front else "beaten by another") + ("" if keeps else ", breaks the bound"),
        )  # fmt: skip
    front_points = sorted((c for c in choices if c.front), key=lambda c: (c.x, c.y))
    ax.plot([c.x for c in front_points], [c.y for c in front_points], color=PLAIN, linewidth=1.6, linestyle="--")
    for choice in front_points:
        ax.annotate(_short(choice.name, 24), (choice.x, choice.y), xytext=(9, 9), textcoords="offset points")
    if bound is not None:
        ax.axvline(bound, color=TURNED, linewidth=1.6, linestyle=":")
        ax.annotate("bound", (bound, 0.99), xycoords=("data", "axes fraction"), xytext=(4, 0), va="top", color=TURNED,
                    textcoords="offset points")  # fmt: skip
    ax.margins(0.18)
    ax.set_xlabel(xlabel)
    ax.set_ylabel(ylabel)
    ax.grid()
    ax.set_axisbelow(True)
    if choices:
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=2)
    return ax


def blame_heat(ax: Axes, matrix: pd.DataFrame, length_ns: int) -> Axes:
    """Draw who (rows) was delayed by whom (columns), in percent of the measured time, each cell with its figure.

    Parameters
    ----------
    ax
        Axes to draw in.
    matrix
        As `blame_matrix` gives it [ns].
    length_ns
        Length of the measured window [ns].
    """
    shown = matrix[[c for c in matrix.columns if c != "nobody" or matrix[c].any()]]
    values = 100 * shown.to_numpy(dtype=np.float64) / length_ns
    ax.imshow(values, cmap="Oranges", vmin=0, vmax=max(float(values.max(initial=0)), 1e-9) / 0.75, aspect="auto")
    for row in range(values.shape[0]):
        for column in range(values.shape[1]):
            ax.annotate(f"{values[row, column]:.1f}", (column, row), ha="center", va="center", color=INK)
    ax.set_xticks(range(values.shape[1]), [str(name) for name in shown.columns])
    ax.set_yticks(range(values.shape[0]), [str(name) for name in shown.index])
    ax.tick_params(length=0)
    for side in ax.spines.values():
        side.set_visible(False)
    ax.set_xlabel("by [% of the measured time]")
    ax.set_ylabel("delayed")
    ax.set_title("Who delayed whom")
    return ax


def policy_timeline(
    ax: Axes,
    executes: pd.DataFrame,
    *,
    start_ns: int | None = None,
    window_ns: int = NS_PER_S,
    until_ns: int | None = None,
) -> Axes:
    """Draw whom the guard let in when: a row a client, in line dotted, holding a slot full, and what each held beside.

    Parameters
    ----------
    ax
        Axes to draw in.
    executes
        Frame of graphExecutes; calls past the guard are left out.
    start_ns
        Where to begin; by default where most calls stand in line.
    window_ns
        Length of the window [ns].
    until_ns
        End of the run, beyond which nothing that is still under way is drawn.
    """
    guarded = executes[executes["path"] == PATHS[0]]
    names = [str(name) for name in executes["client"].cat.categories]
    called, granted, released = (_instants(guarded, n) for n in ("called_ns", "granted_ns", "released_ns"))
    start = _busiest(called, granted, window_ns) if start_ns is None else start_ns
    end = start + window_ns
    y = guarded["client"].cat.codes.to_numpy().astype(np.int64)
    waits = granted > called
    bars = [
        Bars(y[waits], called[waits], granted[waits], [GUARD_WAIT] * int(waits.sum()), "...."),
        Bars(y, granted, released, [colour(int(c)) for c in y], ""),
    ]
    draw_bars(ax, bars, start, end if until_ns is None else min(end, until_ns))
    held = np.clip(np.minimum(released, end) - np.maximum(granted, start), 0, None)
    weights = guarded.groupby("client", observed=True)["weight"].max()
    for i, name in enumerate(names):
        if name in weights.index:
            share = 100 * int(held[y == i].sum()) / max(int(held.sum()), 1)
            ax.annotate(f"weight {weights[name]}\nheld {share:.0f} %", (1.01, i), xycoords=("axes fraction", "data"),
                        va="center", fontsize=12, annotation_clip=False)  # fmt: skip
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.set_xlim(0, window_ns / NS_PER_S)
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel(f"time [s] since {start / NS_PER_S:.3f} s")
    ax.set_title(f"Whom the guard let in, {format_time(window_ns)}")
    _policy_legend(ax)
    return ax


def _policy_legend(ax: Axes) -> None:
    from matplotlib.patches import Patch

    entries = [Patch(facecolor=GUARD_WAIT, edgecolor="white", hatch="....", label="in line"),
               Patch(color=FAINT, label="holds a slot (colour of its client)")]  # fmt: skip
    ax.legend(handles=entries, loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=2)


def _instants(frame: pd.DataFrame, name: str) -> IntArray:
    """Return a column of instants; one that was not reached lies after all others."""
    values: IntArray = frame[name].to_numpy(dtype="int64", na_value=np.iinfo(np.int64).max)
    return values


def _busiest(called: IntArray, granted: IntArray, window_ns: int) -> int:
    """Return where the window begins that holds the most waiting for the guard."""
    if not len(called):
        return 0
    first, last = int(called.min()), int(called.max())
    edges = np.arange(first, last + window_ns + 1, window_ns)
    waited = np.where(granted < np.iinfo(np.int64).max, granted - called, 0).astype(np.float64)
    total, _ = np.histogram(called, bins=edges, weights=waited)
    return int(edges[int(np.argmax(total))])
