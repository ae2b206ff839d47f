"""Variants side by side: the decision table, and the capability matrix as it was measured."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from rich.cells import cell_len
from rich.console import RenderableType
from rich.text import Text

from htpsim.report.cells import NONE, WIDTH, Footnotes, cell, estimated, stack, table
from htpsim.results.metric import Metric
from htpsim.results.replications import Estimate, estimate
from htpsim.results.summary import RoleSummary, Summary
from htpsim.spec import NORMAL, PRIORITIES

Variants = Mapping[str, Sequence[Summary]]
Pick = Callable[[Summary], Metric]

COLUMNS_MAX: Final = 6
_GAP: Final = 2


def _at(path: str) -> Pick:
    return lambda summary: summary.metric(path)


def _utilisation(summary: Summary) -> Metric:
    values = [core.utilisation.value for core in summary.cores.values()]
    known = [value for value in values if value is not None]
    return Metric(sum(known) / len(known), len(known), "share") if known else Metric(None, 0, "share", "no core")


def _unfairness(summary: Summary) -> Metric:
    """Return the largest distance of a client's share from its water-filled share."""
    pairs = [(c.device.share.value, c.device.fair_share.value) for c in summary.clients.values()]
    off = [abs(share - fair) for share, fair in pairs if share is not None and fair is not None]
    return Metric(max(off), len(off), "share") if off else Metric(None, 0, "share", "no call passes a guard")


def _copies(role: str) -> Pick:
    def pick(summary: Summary) -> Metric:
        found = summary.roles.get(role)
        return Metric(found.copies, 1, "count") if found else Metric(None, 0, "count", f"no model of role {role}")

    return pick


def _bytes(ledger: str, *, peak: bool) -> Pick:
    def pick(summary: Summary) -> Metric:
        held = summary.memory.get(ledger)
        if held is None:
            return Metric(None, 0, "bytes", "nothing was loaded")
        return Metric(held.peak_bytes if peak else held.steady_bytes, 1, "bytes")

    return pick


def _count(pick: Callable[[Summary], int]) -> Pick:
    return lambda summary: Metric(pick(summary), 1, "count")


ROWS: Final[tuple[tuple[str, Pick], ...]] = (
    ("TTFT mean [ms]", _at("overall.ttft.mean")),
    ("TTFT p95 [ms]", _at("overall.ttft.p95")),
    ("ITL p50 [ms]", _at("overall.itl.p50")),
    ("ITL p99 [ms]", _at("overall.itl.p99")),
    ("worst gap [ms]", _at("overall.worst_gap.mean")),
    ("slow tokens [%]", _at("overall.slow_tokens")),
    ("tokens/s", _at("overall.tokens_per_s")),
    ("ViT mean [ms]", _at("overall.vit.mean")),
    ("ViT p95 [ms]", _at("overall.vit.p95")),
    ("jobs mean [ms]", _at("overall.job.mean")),
    ("TTFT late", _at("overall.ttft_misses")),
    ("ITL late", _at("overall.itl_misses")),
    ("guard wait [ms]", _at("overall.guard_wait.mean")),
    ("device wait [ms]", _at("overall.device_wait.mean")),
    ("utilisation [%]", _utilisation),
    ("off its share [%]", _unfairness),
    ("ViT copies", _copies("vit")),
    ("LLM copies", _copies("llm")),
    ("device GiB", _bytes("device", peak=False)),
    ("  at the peak", _bytes("device", peak=True)),
    ("host GiB, peak", _bytes("host", peak=True)),
    ("loading [ms]", lambda s: Metric(s.load_ns, 1, "ns")),
    ("did not start", _count(lambda s: len(s.failed))),
    ("dropped, refused", _count(lambda s: s.overall.counts.dropped + s.overall.counts.refused)),
    ("open at the end", _count(lambda s: s.overall.open_requests.n)),
    ("starved", _count(lambda s: sum(bool(c.starved) for c in s.clients.values()))),
)
JOBS_ROW: Final = 1 + next(i for i, (label, _) in enumerate(ROWS) if label.startswith("jobs"))
WORDS: Final[tuple[tuple[str, Callable[[Summary], str]], ...]] = (
    ("policy", lambda s: s.guard.policy),
    ("slots", lambda s: f"{s.guard.slots}/{s.guard.slots_per}"),
)
MEANINGS: Final = (
    "worst gap: the largest of a request, mean over requests",
    "slow: gap above 1.5 x the median",
    "tokens/s: tokens emitted in the window / length of the window",
    "off its share: largest distance of a client's share of device time from its water-filled share",
)
_FIGURES: Final = re.compile(r"\b\d[\d.,]*\b")
_NOT_APPLICABLE: Final = (
    "no deadline set", "no samples", "no model of role", "no call passe", "nothing was loaded", "fewer than 5 gaps",
)  # fmt: skip
CLIENT_ROWS_MAX: Final = 6
"""So many other clients have rows of their own; of more, only the pooled figure is shown."""


def job_rows(variants: Variants) -> list[tuple[str, Pick]]:
    """Return a row for the jobs of each other client: pooled with those of another they say little."""
    summaries = [summary for runs in variants.values() for summary in runs]
    names = list(dict.fromkeys(n for s in summaries for n, c in s.clients.items() if c.kind == "client"))
    if not 1 < len(names) <= CLIENT_ROWS_MAX:
        return []
    return [(f"{name} [ms]", _job_of(name)) for name in names]


def _job_of(name: str) -> Pick:
    def pick(summary: Summary) -> Metric:
        found = summary.clients.get(name)
        return found.job.mean if found else Metric(None, 0, "ns", f"no client {name}")

    return pick


def says_nothing(metric: Estimate) -> bool:
    """Tell whether a figure is missing because the scenario has nothing of the kind."""
    return metric.mean is None and metric.why.startswith(_NOT_APPLICABLE)


def decision_rows(variants: Variants) -> list[tuple[str, list[Estimate]]]:
    """Return the figures of a decision: a label with its unit, and an estimate a variant; rows without any left out."""
    picks = [*ROWS[:JOBS_ROW], *job_rows(variants), *ROWS[JOBS_ROW:]]
    rows = [(label, [estimate([pick(s) for s in runs]) for runs in variants.values()]) for label, pick in picks]
    return [(label, found) for label, found in rows if not all(map(says_nothing, found))]


def decision_table(variants: Variants, *, title: str = "Decision", width: int = WIDTH) -> RenderableType:
    """Return metrics by variant: the mean over replications and, from two on, the half of its 95 % interval.

    Parameters
    ----------
    variants
        Name of each variant and its summaries, one a replication.
    title
        Heading.
    width
        Columns of the terminal; more variants than fit go into further blocks.
    """
    notes = Footnotes()
    cells = [(label, [estimated(e, notes) for e in found]) for label, found in decision_rows(variants)]
    cells += [(label, [text(runs[0]) for runs in variants.values()]) for label, text in WORDS]
    blocks = _blocks(list(variants), cells, width)
    replications = {len(runs) for runs in variants.values()}
    said = f"mean over {_either(replications)} replication{'s' * (replications != {1})}"
    said += ", ± half of its 95 % confidence interval (t)" if max(replications, default=0) > 1 else ""
    parts: list[RenderableType] = []
    for i, block in enumerate(blocks):
        made = table(
            title if not i else "",
            ["", *(list(variants)[k] for k in block)],
            [[label, *(texts[k] for k in block)] for label, texts in cells],
        )
        parts.append(made)
    warnings = [f"{name}: {note}" for name, runs in variants.items() for note in common_notes(runs)]
    return stack(
        *parts,
        Text("; ".join([said, *MEANINGS]), style="dim"),
        *notes.lines(),
        *(Text(f"! {warning}", style="yellow") for warning in warnings),
    )


def common_notes(runs: Sequence[Summary]) -> list[str]:
    """Return the notes of a variant's runs; of those that differ in their figures alone, the first."""
    found: dict[str, str] = {}
    for note in (note for run in runs for note in run.notes):
        found.setdefault(_FIGURES.sub("#", note), note)
    return list(found.values())


def _either(counts: set[int]) -> str:
    return " or ".join(str(count) for count in sorted(counts))


def _blocks(names: list[str], rows: Sequence[tuple[str, list[str]]], width: int) -> list[list[int]]:
    """Return which columns go into which block, so that each block fits the width."""
    first = max(cell_len(label) for label, _ in rows)
    blocks: list[list[int]] = [[]]
    used = first
    for i, name in enumerate(names):
        longest_word = max((cell_len(word) for word in name.split()), default=1)
        needed = _GAP + max(longest_word, *(cell_len(texts[i]) for _, texts in rows))
        if blocks[-1] and (used + needed > width or len(blocks[-1]) == COLUMNS_MAX):
            blocks.append([])
            used = first
        blocks[-1].append(i)
        used += needed
    return blocks


def capability_matrix(variants: Variants) -> RenderableType:
    """Return what LLM and ViT get from registry and guard, each row read off the first variant that shows it."""
    notes = Footnotes()
    rows = []
    for label, (variant, role) in capabilities(variants).items():
        rows.append(
            [
                label,
                f"{role.copies} for {role.instances}",
                cell(role.guarded_share, notes) + " %" * (role.guarded_share.value is not None),
                " ".join(map(str, role.weights)) or NONE,
                " ".join(role.priorities) or NONE,
                variant,
            ]
        )
    headers = ["as measured", "weight\nsharing", "passes\nguard", "at\nweights", "HTP\npriority", "in variant"]
    said = (
        "weight sharing: copies loaded for how many users; guard: share of its device time that passed it, "
        "and the weights it was charged with; HTP priority: QNN level it ran at"
    )
    return stack(table("Capabilities", headers, rows, left=2), Text(said, style="dim"), *notes.lines())


def capabilities(variants: Variants) -> dict[str, tuple[str, RoleSummary]]:
    """Return the rows of the matrix in their order: the LLM, then the ways of the ViT that occur."""
    found: dict[str, tuple[str, RoleSummary]] = {}
    for name, runs in variants.items():
        for run in runs:
            if "llm" in run.roles:
                found.setdefault("LLM" + _level(run.roles["llm"]), (name, run.roles["llm"]))
            if "vit" in run.roles:
                found.setdefault(_way(run.roles["vit"]) + _level(run.roles["vit"]), (name, run.roles["vit"]))
    order = ["ViT Genie + registry", "ViT Genie", "ViT legacy + registry", "ViT legacy", "LLM"]

    def place(label: str) -> tuple[int, str]:
        known = [i for i, way in enumerate(order) if label.startswith(way)]
        return -min(known, default=-1), label

    return {label: found[label] for label in sorted(found, key=place)}


def _level(role: RoleSummary) -> str:
    """Return the QNN priority where it is not the ordinary one."""
    return "" if role.priorities in ([], [PRIORITIES[NORMAL]]) else f" at {' and '.join(role.priorities)}"


def _way(role: RoleSummary) -> str:
    path = " and ".join({"genie": "Genie", "qnn": "legacy", "bypass": "Genie past the guard"}[p] for p in role.paths)
    return f"ViT {path or 'without a call'}" + (" + registry" if role.registry else "")
