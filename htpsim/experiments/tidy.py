"""Summaries as tidy rows, and as the small tables that a notebook shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Final

from htpsim.results.metric import Metric, unit_of
from htpsim.results.summary import Summary

if TYPE_CHECKING:
    import pandas as pd

METRIC_COLUMNS: Final = {
    "metric": "which figure: its path in a summary, such as overall.itl.p99",
    "value": "the figure, in its unit; NaN where it would mislead",
    "unit": "ns, bytes, share (of one), count, per_s, tokens_per_s or cores",
    "n": "samples it rests on; missing for a plain count",
    "why": "why there is no value",
}
"""Columns of a tidy table, and what they hold."""
KEY_COLUMNS: Final = {
    "case": "case of the file, or base where it has none",
    "variant": "variant of the file, or base where it has none",
    "replication": "which replication, from 0",
}
"""Columns before these that say which run a row is of; a single run has the last only."""
_LEFT_OUT: Final = frozenset(("seed", "replication", "setup", "window"))
"""Members of a summary that are no results."""


def metric_rows(summary: Summary) -> Iterator[tuple[str, float | int | None, str, int | None, str]]:
    """Yield every figure of a summary: dotted path, value, unit, samples, and why there is no value.

    A figure that is a plain count or a number of bytes has no sample count.
    """
    for field in fields(summary):
        if field.name not in _LEFT_OUT:
            yield from _walk(field.name, getattr(summary, field.name))


def _walk(path: str, node: Any) -> Iterator[tuple[str, float | int | None, str, int | None, str]]:
    if isinstance(node, Metric):
        yield path, node.value, node.unit, node.n, node.why
    elif isinstance(node, bool):
        return
    elif isinstance(node, int):
        yield path, node, unit_of(path), None, ""
    elif isinstance(node, Mapping):
        for key, inner in node.items():
            yield from _walk(f"{path}.{key}", inner)
    elif is_dataclass(node):
        for field in fields(node):
            yield from _walk(f"{path}.{field.name}", getattr(node, field.name))


def tidy_frame(runs: Iterable[tuple[tuple[str | int | None, ...], Summary]], names: Sequence[str]) -> pd.DataFrame:
    """Return a row a figure of every run.

    Parameters
    ----------
    runs
        What identifies a run, one value a name, and its summary.
    names
        Columns that identify a run; those of a figure follow: metric, value, unit, n, why.
    """
    import pandas as pd

    rows = [(*key, *row) for key, summary in runs for row in metric_rows(summary)]
    frame = pd.DataFrame(rows, columns=[*names, *METRIC_COLUMNS])
    return frame.astype({"value": "float64", "n": "Int64"})


def html_table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return an HTML table whose first column names the rows; every text is escaped.

    >>> html_table("<1>", ["", "a"], [["x", "1"]])
    '<table><caption>&lt;1&gt;</caption><tr><th></th><th>a</th></tr><tr><th>x</th><td>1</td></tr></table>'
    """
    lines = ["".join(f"<th>{escape(text)}</th>" for text in head)]
    lines += [
        f"<th>{escape(first)}</th>" + "".join(f"<td>{escape(text)}</td>" for text in rest) for first, *rest in rows
    ]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><caption>{escape(caption)}</caption>{body}</table>"
