"""The verdict in words: what each variant gains and what it costs, and which assumption would turn that round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from htpsim.experiments.change import HEADLINES, Change, change
from htpsim.experiments.sign_grid import METRICS, UNCHANGED, Flip, SignGrid
from htpsim.report.decision import job_rows
from htpsim.report.html.material import Material
from htpsim.report.html.wording import Wording
from htpsim.report.verdict import grid_cell, percent
from htpsim.results.summary import Summary

NO_BREAK: Final = "\N{NO-BREAK SPACE}"
MORE_IS_BETTER: Final = ("overall.tokens_per_s",)


class Shift(NamedTuple):
    """How one figure of a variant differs from that of the first."""

    name: str
    text: str
    tone: str
    """better, worse, unclear, same or none"""
    why: str = ""

    @property
    def phrase(self) -> str:
        """The figure with its change, for a sentence."""
        return f"{self.name} {self.text}"


class Card(NamedTuple):
    """One variant against the first."""

    variant: str
    title: str
    text: str
    tone: str
    """gain, mixed, loss, even, single where one replication cannot tell, broken where instances did not start"""
    sentence: str
    shifts: list[Shift]


def cards(material: Material, case: str, t: Wording) -> list[Card]:
    """Return a card for every variant but the first."""
    return cards_of(material.summaries[case], material.variants, t)


def cards_of(
    runs: Mapping[str, Sequence[Summary]], variants: Mapping[str, Mapping[str, str]], t: Wording
) -> list[Card]:
    """Return a card for every variant but the first; `runs` holds one summary a replication, variants their words."""
    first, *others = runs
    titles = {name: variants[name]["title"] or name for name in runs}
    count = min(len(of) for of in runs.values())
    made = []
    for variant in others:
        shifts = _shifts(runs[first], runs[variant], t)
        tone, sentence = _sentence(shifts, titles[variant], titles[first], count, t)
        missing = set(runs[variant][0].failed) - set(runs[first][0].failed)
        if missing:
            names = t("list.comma").join(sorted(missing))
            tone, sentence = "broken", t("verdict.broken", name=titles[variant], names=names)
        made.append(Card(variant, titles[variant], variants[variant]["text"], tone, sentence, shifts))
    return made


def _shifts(first: Sequence[Summary], other: Sequence[Summary], t: Wording) -> list[Shift]:
    """Return the changes of the main figures, and of the jobs of other clients; nothing of what does not occur."""
    jobs = job_rows({"": [*first, *other]}) or [("jobs mean [ms]", lambda summary: summary.metric("overall.job.mean"))]
    picks = [(path, t.name("metric", words), pick) for path, (words, pick) in HEADLINES.items()]
    picks += [("", t.name("row", label).removesuffix(" [ms]"), pick) for label, pick in jobs]
    shifts = []
    for path, name, pick in picks:
        found = change(first, other, pick)
        if any(pick(summary).value for summary in (*first, *other)):
            shifts.append(_shift(path, name, found, t))
    return shifts


def _shift(path: str, name: str, found: Change, t: Wording) -> Shift:
    mean = found.estimate.mean
    if mean is None:
        return Shift(name, t("verdict.missing"), "none", found.estimate.why)
    if found.identical:
        return Shift(name, t("verdict.identical"), "same")
    text = f"{percent(mean, found.estimate.half_width or 0.0)} %".replace("±", " ± ").replace(" ", NO_BREAK)
    if found.clear is not True:
        return Shift(name, text, "unclear")
    return Shift(name, text, "better" if (mean > 0) == (path in MORE_IS_BETTER) else "worse")


def _sentence(shifts: list[Shift], name: str, first: str, count: int, t: Wording) -> tuple[str, str]:
    """Return the tone of a variant and the sentence that says why."""
    by = {tone: [s.phrase for s in shifts if s.tone == tone] for tone in ("better", "worse")}
    unclear = [s.name for s in shifts if s.tone == "unclear"]
    if unclear and count == 1:
        phrases = t("list.comma").join(s.phrase for s in shifts if s.tone == "unclear")
        return "single", t("verdict.single", name=name, changes=phrases)
    gains, costs = (t("list.comma").join(by[tone]) for tone in ("better", "worse"))
    if gains and costs:
        tone, said = "mixed", t("verdict.mixed", name=name, gains=gains, costs=costs)
    elif gains:
        tone, said = "gain", t("verdict.gain", name=name, gains=gains)
    elif costs:
        tone, said = "loss", t("verdict.loss", name=name, costs=costs)
    elif not shifts:
        tone, said = "even", t("verdict.nothing")
    else:
        same = any(s.tone == "same" for s in shifts) and not unclear
        tone, said = "even", t("verdict.same" if same else "verdict.even", name=name, first=first)
    if unclear:
        said += t("verdict.unclear", names=t("list.comma").join(unclear), count=count)
    return tone, said


def reversals(material: Material, t: Wording) -> list[str]:
    """Return what would turn the verdict round: a sentence a figure that some option turns, or that none does."""
    grid = material.grid
    if grid is None:
        return [t("flips.none_asked")]
    flips = grid.flips()
    turned = [flip for flip in flips if flip.reverses]
    lines = [_reversal(flip, grid, material, t) for flip in turned]
    if not turned:
        lines.append(t("flips.none_turns", count=len(grid.options) - 1))
    fragile = sorted({(f.variant, f.metric) for f in flips if not f.reverses})
    if fragile:
        pairs = t("list.semicolon").join(
            t("flips.of", metric=_metric(metric, t), variant=_title(variant, material)) for variant, metric in fragile
        )
        lines.append(t("flips.fragile", pairs=pairs))
    return lines


def _reversal(flip: Flip, grid: SignGrid, material: Material, t: Wording) -> str:
    configured = grid.differences[UNCHANGED, flip.variant, flip.metric]
    return t(
        "flips.turns",
        option=material.option_titles.get(flip.option, flip.option),
        metric=_metric(flip.metric, t),
        variant=_title(flip.variant, material),
        before=grid_cell(configured, None),
        after=grid_cell(flip.under_option, None),
    )


def _metric(path: str, t: Wording) -> str:
    return t.name("metric", HEADLINES[path][0])


def _title(variant: str, material: Material) -> str:
    return material.variants.get(variant, {}).get("title") or variant


class GridCell(NamedTuple):
    """A cell of the grid."""

    text: str
    tone: str
    """flip where the sign turns round, fragile where it vanishes or comes about, else "" """


class GridTable(NamedTuple):
    """The differences in one figure under every option."""

    metric: str
    rows: list[tuple[str, str, list[GridCell]]]
    """title of the option, its name, a cell a variant"""


def grid_tables(grid: SignGrid, material: Material, t: Wording) -> list[GridTable]:
    """Return which option changes which difference, a table a figure."""
    flips = {(flip.option, flip.variant, flip.metric): flip for flip in grid.flips()}
    tables = []
    for metric in METRICS:
        rows = []
        for option in grid.options:
            found = [(grid.differences[option, v, metric], flips.get((option, v, metric))) for v in grid.variants]
            cells = [
                GridCell(grid_cell(difference, flip), "" if flip is None else "flip" if flip.reverses else "fragile")
                for difference, flip in found
            ]
            title = t("flips.unchanged") if option == UNCHANGED else material.option_titles.get(option, option)
            rows.append((title, "" if option == UNCHANGED else option, cells))
        tables.append(GridTable(_metric(metric, t), rows))
    return tables
