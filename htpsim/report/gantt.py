"""Who was on which core, and what each thread waited for: two seconds in which one sees a ViT block a decode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from htpsim.report.style import DEVICE_WAIT, EVICTED, GUARD_WAIT, INK, RASTER_FROM, colour, lighter
from htpsim.units import NS_PER_S, format_time

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from htpsim.results.metric import BoolArray, IntArray

WINDOW_NS: Final = 2 * NS_PER_S
_BAR: Final = 0.72
_TINTS: Final = {"vit": 1.0, "prefill": 0.6, "decode": 0.3, "job": 0.8}
_NAMES: Final = {"vit": "ViT", "prefill": "prefill", "decode": "decode", "job": "job"}
_HATCH: Final = "////"
_WAITS: Final = (
    ("called_ns", "granted_ns", GUARD_WAIT, "...."),
    ("submitted_ns", "started_ns", DEVICE_WAIT, ""),
)


class Blocking(NamedTuple):
    """A stretch of time around a decode that waited while a ViT held its core."""

    start_ns: int
    end_ns: int
    decode: int
    """number of the decode's graphExecute"""
    vit: int
    """number of the ViT's"""


class Bars(NamedTuple):
    """Bars of one kind: their track, span and look."""

    y: IntArray
    start_ns: IntArray
    end_ns: IntArray
    face: list[Any]
    hatch: str
    edge: str = "white"


def find_blocking_window(executes: pd.DataFrame, window_ns: int = WINDOW_NS) -> Blocking | None:
    """Return the window around the longest wait of a decode during which a ViT ran on its core; None if there is none.

    Parameters
    ----------
    executes
        Frame of graphExecutes.
    window_ns
        Length of the window [ns].
    """
    x = executes
    called, started, finished = (_instants(x, name) for name in ("called_ns", "started_ns", "finished_ns"))
    stage, core = x["stage"].to_numpy(), x["core"].to_numpy()
    over = (started >= 0) & (finished >= 0)
    decodes, vits = np.flatnonzero((stage == "decode") & over), np.flatnonzero((stage == "vit") & over)
    waited = (x["guard_wait_ns"].to_numpy() + x["device_wait_ns"].to_numpy())[decodes]
    blocked = np.zeros(len(decodes), dtype=bool)
    for c in np.unique(core[vits]):
        mine, beside = core[decodes] == c, vits[core[vits] == c]
        rows = decodes[mine]
        begun = np.searchsorted(np.sort(started[beside]), finished[rows], side="left")
        gone = np.searchsorted(np.sort(finished[beside]), called[rows], side="right")
        blocked[mine] = begun > gone
    if not blocked.any():
        return None
    candidates = np.flatnonzero(blocked)
    row = int(decodes[candidates[np.lexsort((called[decodes[candidates]], -waited[candidates]))[0]]])
    beside = vits[core[vits] == core[row]]
    overlap = np.minimum(finished[beside], finished[row]) - np.maximum(started[beside], called[row])
    vit = int(beside[int(np.argmax(overlap))])
    middle = (min(int(called[row]), int(started[vit])) + int(finished[row])) // 2
    start = max(0, middle - window_ns // 2)
    number = x["execute"].to_numpy()
    return Blocking(start, start + window_ns, int(number[row]), int(number[vit]))


def gantt(
    ax: Axes,
    executes: pd.DataFrame,
    slices: pd.DataFrame,
    *,
    start_ns: int | None = None,
    window_ns: int = WINDOW_NS,
    gang: Mapping[str, int] | None = None,
    until_ns: int | None = None,
) -> Axes:
    """Draw a row a core and, beneath, a row a client: guard wait, device wait, run.

    Parameters
    ----------
    ax
        Axes to draw in.
    executes, slices
        Frames of a run.
    start_ns
        Where to begin; by default where a ViT blocks a decode longest, or at the first call.
    window_ns
        Length of the window [ns].
    gang
        Cores that a graph takes at once, where it is more than one.
    until_ns
        End of the run, beyond which nothing that is still under way is drawn.
    """
    blocking = find_blocking_window(executes, window_ns) if start_ns is None else None
    title = f"{format_time(window_ns)} of the run"
    if start_ns is None and blocking:
        start_ns = blocking.start_ns
        if until_ns is not None:  # no empty stretch after the end of the run
            start_ns = max(0, min(start_ns, until_ns - window_ns))
            blocking = blocking._replace(start_ns=start_ns, end_ns=start_ns + window_ns)
    elif start_ns is None:
        start_ns, title = _longest_wait(executes, window_ns)
    end_ns = start_ns + window_ns
    shown = _within(executes, start_ns, end_ns)
    clients = list(executes["client"].cat.categories)
    cores = sorted({int(c) for c in executes["core"]} | _gang_cores(executes, gang))
    tracks = {("core", c): i for i, c in enumerate(cores)}
    first_client = len(cores) + 0.5
    bars = _core_bars(shown, slices, tracks, gang or {}) + _thread_bars(shown, slices, first_client)
    draw_bars(ax, bars, start_ns, end_ns if until_ns is None else min(end_ns, until_ns))
    labels = [f"core {c}" for c in cores] + clients
    positions = [float(i) for i in range(len(cores))] + [first_client + i for i in range(len(clients))]
    ax.set_yticks(positions, labels)
    for i, label in enumerate(ax.get_yticklabels()[len(cores) :]):
        label.set_color(colour(i))
        label.set_fontweight("bold")
    ax.axhline(first_client - 0.75, color=INK, linewidth=0.8)
    ax.set_ylim(positions[-1] + 0.6, -0.6)
    ax.set_xlim(0, window_ns / NS_PER_S)
    ax.set_xlabel(f"time [s] since {start_ns / NS_PER_S:.3f} s")
    ax.tick_params(axis="y", length=0)
    ax.set_title(title)
    if blocking:
        _point_out(ax, executes, blocking, first_client, clients)
    _legend(ax, set(shown["stage"].astype(str)), evicted=len(slices) > 0)
    return ax


def _instants(frame: pd.DataFrame, name: str) -> IntArray:
    """Return a column of instants as integers, -1 where missing."""
    values: IntArray = frame[name].to_numpy(dtype="int64", na_value=-1)
    return values


def _longest_wait(executes: pd.DataFrame, window_ns: int) -> tuple[int, str]:
    """Return where the window begins when no ViT blocks a decode: around the end of the longest wait, and its title."""
    quiet = "No decode waits for a ViT on its core"
    started = _instants(executes, "started_ns")
    waited = np.where(started >= 0, executes["guard_wait_ns"] + executes["device_wait_ns"], -1)
    if not len(waited) or int(waited.max()) <= 0:
        return int(executes["called_ns"].min()) if len(executes) else 0, quiet
    longest = executes.iloc[int(waited.argmax())]
    call = f"a {_NAMES[longest['stage']]} call of {longest['client']}"
    start = max(0, int(longest["started_ns"]) - window_ns // 2)
    return start, f"{quiet}; the longest wait is {format_time(int(waited.max()))}, {call}"


def _within(executes: pd.DataFrame, start_ns: int, end_ns: int) -> pd.DataFrame:
    returned = _instants(executes, "returned_ns")
    return executes[(executes["called_ns"].to_numpy() < end_ns) & ((returned < 0) | (returned > start_ns))]


def _gang_cores(executes: pd.DataFrame, gang: Mapping[str, int] | None) -> set[int]:
    return {
        int(core) + k
        for graph, width in (gang or {}).items()
        for core in executes["core"][executes["graph"] == graph].unique()
        for k in range(width)
    }


def _stretches(shown: pd.DataFrame, slices: pd.DataFrame) -> tuple[IntArray, IntArray, IntArray, BoolArray]:
    """Return the stretches on a core: row in `shown`, start, end, and whether spent on evict or restore."""
    started, finished = _instants(shown, "started_ns"), _instants(shown, "finished_ns")
    number = shown["execute"].to_numpy()
    mine = slices[slices["execute"].isin(number)]
    order = np.argsort(number, kind="stable")
    of_slice = order[np.searchsorted(number[order], mine["execute"].to_numpy())] if len(mine) else order[:0]
    whole = np.flatnonzero((started >= 0) & ~np.isin(number, mine["execute"].to_numpy()))
    row = np.concatenate([whole, of_slice])
    start = np.concatenate([started[whole], mine["start_ns"].to_numpy()])
    end = np.concatenate([finished[whole], _instants(mine, "end_ns")])
    moving = np.concatenate([np.zeros(len(whole), dtype=bool), mine["kind"].isin(["evict", "restore"]).to_numpy()])
    return row, start, np.where(end < 0, np.iinfo(np.int64).max, end), moving


def _core_bars(
    shown: pd.DataFrame, slices: pd.DataFrame, tracks: Mapping[tuple[str, int], int], gang: Mapping[str, int]
) -> list[Bars]:
    row, start, end, moving = _stretches(shown, slices)
    width = np.array([gang.get(str(graph), 1) for graph in shown["graph"]], dtype=np.int64)[row]
    core = shown["core"].to_numpy()[row]
    bars = []
    for k in range(int(width.max(initial=0))):
        wide = width > k
        y = np.array([tracks["core", int(c) + k] for c in core[wide]], dtype=np.int64)
        bars += _coloured(shown, row[wide], y, start[wide], end[wide], moving[wide])
    return bars


def _thread_bars(shown: pd.DataFrame, slices: pd.DataFrame, first: float) -> list[Bars]:
    y = shown["client"].cat.codes.to_numpy().astype(np.float64) + first
    far = np.iinfo(np.int64).max
    bars = []
    for begin, until, face, hatch in _WAITS:
        start, end = _instants(shown, begin), _instants(shown, until)
        waits = (start >= 0) & (end != start)
        bars.append(Bars(y[waits], start[waits], np.where(end < 0, far, end)[waits], [face] * int(waits.sum()), hatch))
    row, start, end, moving = _stretches(shown, slices)
    order = np.lexsort((start, row))
    again = order[1:][row[order][1:] == row[order][:-1]]
    before = order[:-1][row[order][1:] == row[order][:-1]]
    gap = start[again] > end[before]
    bars.append(Bars(y[row[again]][gap], end[before][gap], start[again][gap], [DEVICE_WAIT] * int(gap.sum()), ""))
    return bars + _coloured(shown, row, y[row], start, end, moving)


def _coloured(
    shown: pd.DataFrame, row: IntArray, y: Any, start: IntArray, end: IntArray, moving: BoolArray
) -> list[Bars]:
    """Return stretches in the colour of their client: the ViT full and hatched, decode light."""
    client, stage = shown["client"].cat.codes.to_numpy()[row], shown["stage"].astype(str).to_numpy()[row]
    bars = [Bars(y[moving], start[moving], end[moving], [EVICTED] * int(moving.sum()), "", EVICTED)]
    for name, tint in _TINTS.items():
        mine = (stage == name) & ~moving
        face = [lighter(colour(int(c)), tint) for c in client[mine]]
        bars.append(Bars(y[mine], start[mine], end[mine], face, _HATCH if name == "vit" else ""))
    return bars


def draw_bars(ax: Axes, bars: list[Bars], start_ns: int, end_ns: int) -> None:
    """Draw bars between two instants, in seconds since the first; rasterised where there are many."""
    from matplotlib.collections import PolyCollection

    count = sum(len(b.y) for b in bars)
    for b in bars:
        keep = (b.end_ns > start_ns) & (b.start_ns < end_ns)
        if not keep.any():
            continue
        x0 = (np.maximum(b.start_ns, start_ns) - start_ns)[keep] / NS_PER_S
        x1 = (np.minimum(b.end_ns, end_ns) - start_ns)[keep] / NS_PER_S
        y = np.asarray(b.y, dtype=np.float64)[keep]
        low, high = y - _BAR / 2, y + _BAR / 2
        corners = np.stack(
            [np.stack([x0, low], 1), np.stack([x1, low], 1), np.stack([x1, high], 1), np.stack([x0, high], 1)], 1
        )
        faces = [face for face, kept in zip(b.face, keep, strict=True) if kept]
        drawn = PolyCollection(
            list(corners), facecolors=faces, edgecolors=b.edge, linewidths=0.6, hatch=b.hatch or None,
            rasterized=count > RASTER_FROM,
        )  # fmt: skip
        ax.add_collection(drawn)


def _point_out(ax: Axes, executes: pd.DataFrame, blocking: Blocking, first: float, clients: list[str]) -> None:
    """Say which decode waited how long behind whose ViT."""
    number = executes["execute"].to_numpy()
    decode, vit = (executes.iloc[int(np.flatnonzero(number == n)[0])] for n in (blocking.decode, blocking.vit))
    core = int(vit["core"])
    whose = "its own ViT" if str(vit["client"]) == str(decode["client"]) else f"the ViT of {vit['client']}"
    waited = int(decode["guard_wait_ns"]) + int(decode["device_wait_ns"])
    begin = max(int(decode["called_ns"]), int(vit["started_ns"]))
    behind = min(int(decode["started_ns"]), int(vit["finished_ns"])) - begin
    if behind > 0:
        part = "" if behind >= waited else f", {format_time(behind)} of it"
        ax.set_title(f"A token of {decode['client']} waits {format_time(waited)}{part} while {whose} holds core {core}")
    else:
        ax.set_title(
            f"A token of {decode['client']} is evicted by {whose} on core {core} and waits {format_time(waited)} in all"
        )
        behind = min(int(decode["finished_ns"]), int(vit["finished_ns"])) - begin
    x = (begin + behind / 2 - blocking.start_ns) / NS_PER_S
    y = first + clients.index(str(decode["client"]))
    ax.annotate(
        "", xy=(x, y - _BAR / 2), xytext=(x, core + _BAR / 2),
        arrowprops={"arrowstyle": "->", "color": INK, "linewidth": 2.0},
    )  # fmt: skip


def _legend(ax: Axes, stages: set[str], *, evicted: bool) -> None:
    from matplotlib.patches import Patch

    entries = [
        Patch(facecolor=lighter(colour(0), _TINTS[s]), edgecolor="white", hatch=_HATCH * (s == "vit"), label=label)
        for s, label in _NAMES.items()
        if s in stages
    ]
    entries += [
        Patch(facecolor=GUARD_WAIT, edgecolor="white", hatch=_WAITS[0][3], label="waits for guard"),
        Patch(facecolor=DEVICE_WAIT, label="waits for core"),
    ]
    if evicted:
        entries.append(Patch(facecolor=EVICTED, label="evict, restore"))
    ax.legend(handles=entries, loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=len(entries), handlelength=1.6)
