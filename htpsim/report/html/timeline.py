"""What the timeline of one run is drawn from: instants to the microsecond, packed, and its slowest tokens taken apart.

Columns of 32-bit integers, one row a graphExecute in order of the calls, compressed and written as text. The page's
script unpacks them; `COLUMNS` is the order in which both know them.
"""

from __future__ import annotations

import base64
import zlib
from typing import Any, Final

import numpy as np

from htpsim.report.blame import WORDS
from htpsim.report.cells import number
from htpsim.report.html.wording import Wording
from htpsim.results.columns import NEVER, PATHS, STAGES
from htpsim.results.delays import HOST, QUEUE, Delay, Key, Part, delay_of, slowest_tokens
from htpsim.results.metric import IntArray
from htpsim.results.occupancy import gang_width
from htpsim.results.run import RunResult
from htpsim.results.tables import Tables
from htpsim.units import format_time

INSTANTS: Final = ("called_ns", "granted_ns", "submitted_ns", "started_ns", "finished_ns", "returned_ns")
PLAIN: Final = ("client", "stage", "core", "path", "request", "token")
COLUMNS: Final = (*INSTANTS, *PLAIN, "width")
"""Of each graphExecute. The first instant counts from the call before, each other from the one before it plus one;
0 is one that was not reached."""
SLOWEST: Final = {"itl": 20, "ttft": 5}
"""How many of the slowest are taken apart."""
OWN: Final = ("own", HOST, QUEUE)
"""Kinds of parts that are nobody else's doing."""
_US: Final = 1000


def timeline(result: RunResult, t: Wording) -> dict[str, Any]:
    """Return what the script draws: names, packed columns, loads, and the slowest tokens with what they waited for."""
    log, tables = result.log, result.tables
    return {
        "clients": log.clients,
        "instances": len(log.scenario.instances),
        "cores": int(max(log.scenario.device.cores, tables.executes["core"].max(initial=0) + 1)),
        "window": [log.start_ns // _US, log.end_ns // _US],
        "rows": len(tables.executes),
        "columns": _packed(_columns(tables)),
        "slices": _packed(_slices(tables)),
        "loads": [[load.client, load.start_ns // _US, load.end_ns // _US, load.model] for load in log.loads],
        "slow": [_slow(delay, measure, t) for measure, delays in slowest(result).items() for delay in delays],
    }


def _order(tables: Tables) -> IntArray:
    return np.argsort(tables.executes["called_ns"], kind="stable")


def _columns(tables: Tables) -> list[IntArray]:
    x, order = tables.executes, _order(tables)
    before = x["called_ns"][order] // _US
    columns = [np.diff(before, prepend=0)]
    for name in INSTANTS[1:]:
        at = x[name][order]
        reached = at != NEVER
        columns.append(np.where(reached, at // _US - before + 1, 0))
        before = np.where(reached, at // _US, before)
    columns += [x[name][order] for name in PLAIN]
    width = gang_width(tables)
    return [*columns, width[x["graph"][order]] if len(order) else order]


def _slices(tables: Tables) -> list[IntArray]:
    """Return the stretches on cores of those that were evicted; an open one ends with the run."""
    s = tables.slices
    place = np.empty(len(tables.executes), dtype=np.int64)
    place[_order(tables)] = np.arange(len(place))
    end = np.where(s["end_ns"] == NEVER, tables.log.end_ns, s["end_ns"]) // _US
    start = s["start_ns"] // _US
    return [place[tables.slice_rows], s["kind"], np.diff(start, prepend=0), end - start]


def _packed(columns: list[IntArray]) -> str:
    raw = b"".join(np.clip(column, -(2**31), 2**31 - 1).astype("<i4").tobytes() for column in columns)
    return base64.b64encode(zlib.compress(raw, 9)).decode("ascii")


def slowest(result: RunResult) -> dict[str, list[Delay]]:
    """Return the slowest gaps between tokens and times to first token of the window, taken apart, slowest first."""
    found: dict[str, list[Delay]] = {}
    for measure, most in SLOWEST.items():
        count = len(result.samples(measure))
        keys: list[Key] = slowest_tokens(result.blame, measure, min(1.0, (most + 0.5) / count)) if count else []
        found[measure] = [delay_of(result.blame, key) for key in keys]
    return found


def _slow(delay: Delay, measure: str, t: Wording) -> dict[str, Any]:
    return {
        "measure": measure,
        "client": delay.client,
        "request": delay.request,
        "token": delay.token,
        "start": delay.start_ns / _US,
        "end": delay.end_ns / _US,
        "total": number(delay.total_ns, "ns"),
        "title": t(f"slow.{measure}", client=delay.client, request=delay.request, token=delay.token,
                   length=format_time(delay.total_ns), at=f"{delay.end_ns / 1e9:,.3f}"),
        "said": because(delay, t),
        "parts": [_part(part, delay.total_ns, t) for part in _merged(delay, "graph")],
    }  # fmt: skip


def because(delay: Delay, t: Wording) -> str:
    """Say what a delay was mostly spent on: the largest of its parts that was somebody else's doing."""
    own_ns = sum(part.delay_ns for part in delay.parts if part.kind in OWN)
    others = [part for part in _merged(delay, "graph", "path", "through") if part.kind not in OWN]
    if not others:
        return t("slow.own")
    part = others[0]
    said = t(f"because.{part.kind}", whose=_culprit(part, delay, t))
    if 2 * own_ns > delay.total_ns:
        share = _share(own_ns, delay.total_ns)
        return t("slow.mostly_own", share=share, length=format_time(part.delay_ns), what=said)
    return t("slow.because", length=format_time(part.delay_ns), share=_share(part.delay_ns, delay.total_ns), what=said)


def _culprit(part: Part, delay: Delay, t: Wording) -> str:
    if not part.client:
        return t("slow.nobody")
    stage = t.name("stage", part.stage)
    own = part.client == delay.client
    return t("because.own", stage=stage) if own else t("because.who", stage=stage, client=part.client)


def _merged(delay: Delay, *leave: str) -> list[Part]:
    """Return the parts of a delay, largest first; those that differ in nothing but the named fields are added up."""
    added: dict[Part, tuple[int, int]] = {}
    for part in delay.parts:
        key = part._replace(delay_ns=0, calls=0, **dict.fromkeys(leave, ""))
        delay_ns, calls = added.get(key, (0, 0))
        added[key] = (delay_ns + part.delay_ns, calls + part.calls)
    merged = [key._replace(delay_ns=ns, calls=calls) for key, (ns, calls) in added.items()]
    return sorted(merged, key=lambda part: (-part.delay_ns, part))


def whose(part: Part, t: Wording) -> str:
    """Return whose doing a part was, and what it ran; "" where that is nobody known."""
    return " ".join(filter(None, (part.client, t.name("stage", part.stage) if part.stage else "")))


def _part(part: Part, total_ns: int, t: Wording) -> dict[str, Any]:
    return {
        "what": t.name("cause", WORDS[part.kind]),
        "whose": whose(part, t) or t("slow.nobody"),
        "through": part.through,
        "path": t.name("path", part.path) if part.path else "",
        "client": part.client,
        "own": part.kind in OWN,
        "ms": number(part.delay_ns, "ns"),
        "share": _share(part.delay_ns, total_ns),
    }


def _share(part_ns: int, total_ns: int) -> str:
    return f"{100 * part_ns / total_ns:.1f}" if total_ns else "0"


def script_words(t: Wording) -> dict[str, str]:
    """Return the words that the page's script puts together."""
    return t.group("script") | {f"stage.{s}": t.name("stage", s) for s in STAGES} | {
        f"path.{p}": t.name("path", p) for p in PATHS
    }  # fmt: skip
