"""The tables of the report, cell by cell: the same figures, in the same form, as in the terminal."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from htpsim.experiments.change import HEADLINES
from htpsim.report.cells import NONE, Footnotes, cell, estimated, number
from htpsim.report.decision import WORDS, capabilities, decision_rows, says_nothing
from htpsim.report.html.timeline import because, slowest
from htpsim.report.html.wording import Wording
from htpsim.report.text import assumptions
from htpsim.results.columns import PATHS
from htpsim.results.delays import blame_matrix
from htpsim.results.replications import estimate
from htpsim.results.run import RunResult
from htpsim.results.summary import RoleSummary, Summary
from htpsim.spec import MARKS, NORMAL, PRIORITIES, Scenario

_UNITS: Final = {"ns": " [ms]", "bytes": " [GiB]"}
TOLD: Final = 10
"""Rows of the table of slowest tokens."""


class Table(NamedTuple):
    """A table with a name in each row's first cell, and the reasons for what is missing."""

    headers: list[str]
    rows: list[tuple[str, list[str]]]
    reasons: list[str]


def decision(summaries: dict[str, list[Summary]], t: Wording) -> Table:
    """Return figures by variant, with intervals."""
    notes = Footnotes()
    rows = [
        (
            t.name("row", label),
            [estimated(e, notes).replace("±", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}") for e in found],
        )
        for label, found in decision_rows(summaries)
    ]
    rows += [(t.name("row", label), [text(runs[0]) for runs in summaries.values()]) for label, text in WORDS]
    return Table(list(summaries), rows, notes.reasons)


def capability(summaries: dict[str, list[Summary]], t: Wording) -> Table:
    """Return what LLM and ViT get from registry and guard, as measured."""
    notes = Footnotes()
    rows = []
    for variant, role in capabilities(summaries).values():
        guarded = cell(role.guarded_share, notes) + " %" * (role.guarded_share.value is not None)
        cells = [t("capability.copies", copies=role.copies, users=role.instances), guarded]
        cells += [" ".join(map(str, role.weights)) or NONE, " ".join(role.priorities) or NONE, variant]
        rows.append((_way(role, "LLM" if role is summaries[variant][0].roles.get("llm") else "ViT", t), cells))
    headers = [t(f"capability.{column}") for column in ("sharing", "guard", "weights", "priority", "variant")]
    return Table(headers, rows, notes.reasons)


def _way(role: RoleSummary, kind: str, t: Wording) -> str:
    words = [kind]
    if kind == "ViT":
        words.append(t("list.and").join(t.name("way", path) for path in role.paths) or t("way.none"))
        words += [t("way.registry")] if role.registry else []
    level = [] if role.priorities in ([], [PRIORITIES[NORMAL]]) else role.priorities
    return " ".join(words) + (t("way.level", level=t("list.and").join(level)) if level else "")


def shares(summary: Summary) -> tuple[list[dict[str, object]], list[str]]:
    """Return each client's share of device time, by weight and water-filled, for drawing and as texts; and reasons."""
    rows: list[dict[str, object]] = []
    notes = Footnotes()
    for name, client in summary.clients.items():
        d = client.device
        found = {"share": d.share, "fair": d.fair_share, "by_weight": d.weight_share}
        rows.append(
            {"name": name, "weight": NONE if d.weight is None else str(d.weight)}
            | {key: cell(metric, notes) + " %" * (metric.value is not None) for key, metric in found.items()}
            | {f"{key}_at": None if m.value is None else round(100 * m.value, 2) for key, m in found.items()}
        )
    return rows, notes.reasons


class Heat(NamedTuple):
    """A cell of the blame matrix."""

    text: str
    heat: float
    """of the largest, from 0 to 1"""


def blame(result: RunResult, t: Wording) -> tuple[list[str], list[tuple[str, list[Heat]]]]:
    """Return who was delayed by whom, in percent of the measured time: the columns, and a row a client."""
    frame = blame_matrix(result.blame)
    length_ns = result.tables.length_ns
    kept = [column for column in frame.columns if column != "nobody" or frame[column].any()]
    largest = max(1, int(frame.to_numpy().max(initial=0)))
    rows = [
        (
            str(name),
            [
                Heat(number(int(frame.loc[name, c]) / length_ns, "share"), round(int(frame.loc[name, c]) / largest, 3))
                for c in kept
            ],
        )
        for name in frame.index
    ]
    return [t("blame.nobody") if column == "nobody" else str(column) for column in kept], rows


class SlowRow(NamedTuple):
    """A row of the table of slowest tokens."""

    measure: str
    token: str
    length: str
    because: str
    number: int
    """in the list that the script has"""


def slow_rows(result: RunResult, t: Wording) -> list[SlowRow]:
    """Return the slowest tokens of a run and what each mostly waited for."""
    rows, index = [], 0
    for measure, delays in slowest(result).items():
        for i, delay in enumerate(delays):
            if measure == "ttft" or i < TOLD:
                token = f"{delay.client}:{delay.request}:{delay.token}"
                rows.append(SlowRow(t.name("measure", measure), token, number(delay.total_ns, "ns"),
                                    because(delay, t), index + i))  # fmt: skip
        index += len(delays)
    return rows


class Marked(NamedTuple):
    """Parameters of one mark."""

    mark: str
    rows: list[tuple[str, str, str]]
    """name, value, what it says"""


def parameters_by_mark(scenario: Scenario) -> list[Marked]:
    """Return every parameter in force under its mark: the assumed ones first."""
    order = sorted(MARKS, key=lambda mark: mark != "assumed")
    found = [Marked(mark, list(assumptions(scenario, mark))) for mark in order]
    return [marked for marked in found if marked.rows]


def facts(runs: list[Summary], t: Wording) -> Table:
    """Return the main figures of one scenario with their intervals."""
    notes = Footnotes()
    found = [(words, estimate([pick(run) for run in runs])) for words, pick in HEADLINES.values()]
    rows = [
        (f"{t.name('metric', words)}{_UNITS.get(one.unit, '')}", [estimated(one, notes).replace("±", " ± ")])
        for words, one in found
        if not says_nothing(one)
    ]
    return Table([], rows, notes.reasons)


def utilisation(summary: Summary) -> list[tuple[str, str]]:
    """Return the utilisation of each core in percent."""
    notes = Footnotes()
    return [(name, cell(core.utilisation, notes)) for name, core in summary.cores.items()]


def calls(result: RunResult, t: Wording) -> str:
    """Say how many graphExecutes a run has, by path."""
    counts = np.bincount(result.tables.executes["path"], minlength=len(PATHS))
    shown = [f"{t.name('path', path)} {n:,}" for path, n in zip(PATHS, counts.tolist(), strict=True) if n]
    return t("list.comma").join(shown)
