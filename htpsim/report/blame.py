"""Who made it slow, as tables: what the slowest tokens waited for, and who delayed whom over the run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from rich.console import RenderableType
from rich.text import Text

from htpsim.report.cells import NONE, number, stack, table
from htpsim.results.blame import Blame
from htpsim.results.delays import HOST, QUEUE, Delay, Part, blame_matrix, together
from htpsim.units import format_time

WORDS: Final = {
    "own": "its own run, RPC, overhead",
    "guard": "guard: slot held",
    "guard-policy": "guard: policy grants nobody",
    "device": "core: busy",
    "core-idle": "core: kept free",
    "evicted": "evicted meanwhile",
    "eviction": "evict and restore",
    "stretch": "ran slower beside",
    HOST: "host time between graphs",
    QUEUE: "its own earlier requests",
}
"""Words of the tables for each kind of cause."""
ROWS: Final = 12
"""Rows of a table in the terminal; what is left out is added up in the last."""
ITSELF, OTHERS = "itself", "others"
_ITS_OWN: Final = ("own", HOST, QUEUE)
_WAIT: Final = {"itl": "a gap between tokens", "ttft": "a time to first token"}
_WAITS: Final = {"itl": "gaps between tokens", "ttft": "times to first token"}


def blame_page(blame: Blame, measure: str, delays: Sequence[Delay], *, of: str) -> RenderableType:
    """Return what delays waited for, largest first, and the matrix of the whole run.

    Parameters
    ----------
    blame
        Of the run.
    measure
        "itl" or "ttft".
    delays
        At least one, slowest first.
    of
        How they were chosen, such as "the slowest 1 %".
    """
    lengths = [delay.total_ns for delay in delays]
    title = f"What made {of} slow: {len(delays)} {_WAITS[measure]} of {format_time(lengths[-1])} to "
    title += format_time(lengths[0])
    if len(delays) == 1:
        title = f"What {of} took its time for: {_WAIT[measure]} of {format_time(lengths[0])}"
    shown = _by_stage(delays)
    total, rest = sum(lengths), shown[ROWS:]
    rows = [_row(part, total, len(delays)) for part in shown[:ROWS]]
    if rest:
        rows.append([f"{len(rest)} more", "", "", "", *_figures(sum(p.delay_ns for p in rest), total, len(delays))])
    rows.append(["all", "", "", "", *_figures(total, total, len(delays))])
    first = delays[0]
    slow = (
        f"The slowest: token {first.token} of request {first.request} of {first.client}, "
        f"{format_time(first.total_ns)} up to {format_time(first.end_ns)}; see it alone with "
        f"--token {first.client}:{first.request}:{first.token}."
    )
    return stack(
        table(title, ["what", "whose", "through", "path", "each [ms]", "share [%]"], rows, left=4, fixed=False),
        Text(slow) if len(delays) > 1 else None,
        _matrix(blame),
    )


def _by_stage(delays: Sequence[Delay]) -> list[Part]:
    """Add up the graphs of a stage; and, where several instances were delayed, whose they were."""
    several = len({delay.client for delay in delays}) > 1
    added: dict[Part, tuple[int, int]] = {}
    for part in together(delays):
        key = part._replace(graph="", delay_ns=0, calls=0)
        if several:
            key = key._replace(client=ITSELF if part.kind in _ITS_OWN else OTHERS if part.client else "",
                               through=OTHERS if part.through else "")  # fmt: skip
        delay_ns, calls = added.get(key, (0, 0))
        added[key] = (delay_ns + part.delay_ns, calls + part.calls)
    merged = [key._replace(delay_ns=ns, calls=calls) for key, (ns, calls) in added.items()]
    return sorted(merged, key=lambda part: (-part.delay_ns, part))


def _row(part: Part, total_ns: int, count: int) -> list[str]:
    whose = " ".join(filter(None, (part.client, part.stage))) or "nobody known"
    return [WORDS[part.kind], whose, part.through or NONE, part.path or NONE, *_figures(part.delay_ns, total_ns, count)]


def _figures(delay_ns: int, total_ns: int, count: int) -> list[str]:
    return [number(delay_ns / count, "ns"), f"{100 * delay_ns / total_ns:.1f}" if total_ns else NONE]


def _matrix(blame: Blame) -> RenderableType:
    """Return who delayed whom, as percentages of the measured time."""
    frame = blame_matrix(blame)
    length_ns = blame.tables.length_ns
    kept = [column for column in frame.columns if column != "nobody" or frame[column].any()]
    rows = [
        [str(name), *(number(int(frame.loc[name, column]) / length_ns, "share") for column in kept)]
        for name in frame.index
    ]
    return stack(
        table("Who delayed whom: delay [% of the measured time]", ["delayed", *map(str, kept)], rows),
        Text(
            "waiting for guard and core, eviction, and running slower; a wait for a guard holder that itself waits for "
            "a core counts against the one on the core; several at once share the time equally",
            style="dim",
        ),
    )


def blame_dict(blame: Blame, measure: str, delays: Sequence[Delay]) -> dict[str, Any]:
    """Return the same in JSON form, in nanoseconds."""
    matrix = blame_matrix(blame)
    return {
        "measure": measure,
        "delays": [
            {
                "client": delay.client, "request": delay.request, "token": delay.token, "start_ns": delay.start_ns,
                "end_ns": delay.end_ns, "total_ns": delay.total_ns, "parts": [part._asdict() for part in delay.parts],
            }
            for delay in delays
        ],
        "together": [part._asdict() for part in together(delays)],
        "matrix_ns": {
            str(name): {str(column): int(matrix.loc[name, column]) for column in matrix.columns}
            for name in matrix.index
        },
    }  # fmt: skip
