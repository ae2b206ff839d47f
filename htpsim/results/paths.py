"""Which paths a summary has, whichever scenario is run: what a reader asks for is looked up before anything is run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import is_dataclass
from typing import Any, get_args, get_origin, get_type_hints

from htpsim.errors import unknown_name
from htpsim.results.metric import Metric, Stats
from htpsim.results.summary import Summary, no_figure


def metric_fault(path: str, offered: Iterable[str] = ()) -> str:
    """Say what is wrong with the path of a metric, whichever scenario is run: its clients may have any names.

    Parameters
    ----------
    path
        As `Summary.metric` takes it.
    offered
        Whole paths to choose the nearest from where the first part is none.

    Returns
    -------
    str
        "" where nothing is wrong.

    Examples
    --------
    >>> metric_fault("clients.vlm.0.itl.p99"), metric_fault("overall.counts.dropped")
    ('', '')
    >>> metric_fault("overall.itl.p98")
    "metric overall.itl: got 'p98', expected one of max, mean, p50, p95, p99; did you mean 'p99'?"
    """
    if path.partition(".")[0] not in get_type_hints(Summary):
        return unknown_name("metric", path, [*offered, *get_type_hints(Summary)])
    return _fault(Summary, path, path)


def _fault(kind: Any, rest: str, path: str) -> str:
    """Say what is wrong with the rest of a path below something of this type."""
    if not rest:
        faulty = kind is not Metric and int not in (kind, *get_args(kind))
        return no_figure(path, list(get_type_hints(kind)) if is_dataclass(kind) else []) if faulty else ""
    if get_origin(kind) is dict:  # a name may hold a dot, so any beginning of the rest may be one
        parts = rest.split(".")
        faults = [_fault(get_args(kind)[1], ".".join(parts[i:]), path) for i in range(1, len(parts) + 1)]
        return "" if "" in faults else faults[0]
    if Metric in get_args(kind):  # a figure in one scenario, statistics in another
        kind = Stats
    members = get_type_hints(kind) if is_dataclass(kind) and kind is not Metric else {}
    name, _, below = rest.partition(".")
    if name not in members:
        where = path[: len(path) - len(rest)].rstrip(".")
        if not members:
            return f"metric {path}: got '.{rest}' behind a figure, expected {where}"
        return unknown_name(f"metric {where}", name, members)
    return _fault(members[name], below, path)
