"""The charts of the report: distributions of latencies, and memory by context against its limits."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from htpsim.report.html.charts import SIDE, Area, Axis, Figure, Level, Line, Tick, axis_of, band, steps
from htpsim.report.html.wording import Wording
from htpsim.results.columns import MemoryEvent
from htpsim.results.log import RunLog
from htpsim.results.memory_use import ledger_limit
from htpsim.results.metric import IntArray
from htpsim.results.run import RunResult
from htpsim.units import BYTE_UNITS, NS_PER_MS, NS_PER_S, format_bytes, format_time

GIB: Final = BYTE_UNITS["GiB"]
TAILS: Final = ("itl",)
"""Measures whose rare large values matter: drawn as the share at or beyond a value."""
_USERS: Final = re.compile(r".* (KV|I/O) on (.*)")
_LEVELS: Final = ((0.5, "p50"), (0.05, "p95"), (0.01, "p99"))
_LIMIT_SHOWN: Final = 6
"""A limit beyond so many times the peak would flatten what is below it; it is told, not drawn."""


def samples(result: RunResult, measure: str) -> dict[str, IntArray]:
    """Return the samples of a measure by client, of those that have any [ns]."""
    frame = result.samples(measure)
    found = {str(n): frame["value_ns"][frame["client"] == n].to_numpy() for n in frame["client"].cat.categories}
    return {name: values for name, values in found.items() if len(values)}


def distribution(series: Mapping[str, IntArray], measure: str, title: str, t: Wording) -> Figure | None:
    """Return the chart of a latency by variant or client; None where nothing was measured."""
    kept = {name: np.sort(values) for name, values in series.items() if len(values)}
    if not kept:
        return None
    scale, unit = (NS_PER_S, "s") if max(int(v[-1]) for v in kept.values()) >= 20 * NS_PER_S else (NS_PER_MS, "ms")
    axis = axis_of(kept.values(), scale)
    tail = measure in TAILS
    least = min(1 / len(v) for v in kept.values())
    up = Axis(least * 0.8, 1.0, log=True) if tail else Axis(0.0, 1.0)
    order = {name: i for i, name in enumerate(series)}
    lines = [
        Line(
            name, t("chart.series", name=name, count=f"{len(v):,}"), order[name], _curve(v / scale, axis, up, tail=tail)
        )
        for name, v in kept.items()
    ]
    said = "; ".join(
        t("chart.said", name=name, count=f"{len(v):,}", median=format_time(int(v[len(v) // 2])),
          largest=format_time(int(v[-1])))
        for name, v in kept.items()
    )  # fmt: skip
    return Figure(
        title=title,
        x_label=f"{t.name('measure', measure)} [{unit}]",
        y_label=t("chart.beyond" if tail else "chart.upto"),
        x=axis.ticks(),
        y=_share_ticks(up),
        lines=lines,
        levels=[Level(100 - up.percent(share), name) for share, name in _LEVELS if share > least] if tail else [],
        said=said,
    )


def _curve(values: npt.NDArray[np.float64], axis: Axis, up: Axis, *, tail: bool) -> str:
    n = len(values)
    x = np.concatenate([[0], axis.place(values)])
    rank = np.arange(n + 1)
    # After the i-th value, n - i lie beyond it; after the last there is none, which no logarithm shows.
    share = np.maximum((n - rank) / n, 0.9 * up.low) if tail else rank / n
    y = SIDE - up.place(share)
    return steps(x, y)


def _share_ticks(up: Axis) -> list[Tick]:
    ticks = [10.0**-k for k in range(7) if 10.0**-k >= up.low] if up.log else [0, 0.25, 0.5, 0.75, 1]
    return [Tick(100 - up.percent(share), f"{100 * share:g} %", i % 2 == 1) for i, share in enumerate(ticks)]


def memory(log: RunLog, t: Wording) -> list[Figure]:
    """Return what each place of memory held over time by context: device DRAM, every protection domain, the host."""
    places = dict.fromkeys((e.ledger, e.place) for e in log.memory)
    order = {"device": 0, "pd": 1, "host": 2}
    return [_place(log, ledger, place, t) for ledger, place in sorted(places, key=lambda p: (order.get(p[0], 3), p[1]))]


def _place(log: RunLog, ledger: str, place: str, t: Wording) -> Figure:
    events = [e for e in log.memory if (e.ledger, e.place) == (ledger, place)]
    until_ns = int(1.15 * max(NS_PER_MS, *(e.time_ns for e in log.memory)))
    times = sorted({0, *(e.time_ns for e in events)})
    held = _held(log, events, times)
    total = np.sum(list(held.values()), axis=0)
    peak = int(total.max())
    limit = log.scenario.device.pd_bytes if ledger == "pd" else ledger_limit(log.scenario.device, ledger)
    shown = limit is not None and limit < _LIMIT_SHOWN * peak
    across, up = Axis(0.0, until_ns / NS_PER_S), Axis(0.0, 1.08 * max(peak, limit if shown and limit else 1) / GIB)
    x = np.append(across.place(np.array(times) / NS_PER_S), SIDE)
    areas, below = [], np.zeros(len(times), dtype=np.int64)
    for (context, kind), values in held.items():
        low, high = (SIDE - up.place(np.append(level, level[-1:]) / GIB) for level in (below, below + values))
        below = below + values
        path = band(x, low, high)
        if path:
            role = "users" if kind == "users" else "context"
            name = t(f"memory.{role}", context=context, held=format_bytes(int(values[-1])))
            areas.append(Area(name, kind, path))
    said = t("memory.held", held=format_bytes(int(total[-1])), peak=format_bytes(peak))
    said += t("memory.limit", limit=format_bytes(limit)) if limit is not None else t("memory.no_limit")
    return Figure(
        title=t.name("ledger", ledger) + (f": {place}" if ledger == "pd" else ""),
        x_label=t("memory.time"),
        y_label=t("memory.axis"),
        x=across.ticks(),
        y=[tick._replace(at=100 - tick.at) for tick in up.ticks()],
        areas=areas,
        levels=[Level(100 - up.percent(limit / GIB), t("memory.level", limit=format_bytes(limit)))]
        if shown and limit
        else [],
        said=said,
    )


def _held(log: RunLog, events: list[MemoryEvent], times: list[int]) -> dict[tuple[str, str], IntArray]:
    """Return what each context, and what the users of each, held after each instant, ordered by role."""
    roles = {copy.name: copy.role for copy in log.copies} | {f"{c.model}/{c.context}": c.role for c in log.copies}
    at = {time: i for i, time in enumerate(times)}
    held: dict[tuple[str, str], IntArray] = {}
    for event in events:
        of_user = _USERS.fullmatch(event.item)
        context = of_user[2] if of_user else event.item
        kind = "users" if of_user else roles.get(context.removesuffix(" mapped"), "other")
        row = held.setdefault((context, kind), np.zeros(len(times), dtype=np.int64))
        row[at[event.time_ns] :] += event.delta_bytes
    order = {"llm": 0, "vit": 1, "other": 2, "users": 3}
    return dict(sorted(held.items(), key=lambda one: order.get(one[0][1], 2)))
