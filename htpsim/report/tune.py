"""What tuning came to, as a table: the points that keep the bounds, the best first, and the front between them."""

from __future__ import annotations

from typing import Any

from rich.console import RenderableType
from rich.text import Text

from htpsim.experiments.demand import Demand
from htpsim.experiments.tune import Candidate, Tuned
from htpsim.report.cells import Footnotes, estimated, stack, table
from htpsim.report.sweep import words_of
from htpsim.results.replications import Estimate


def tuned_page(tuned: Tuned) -> RenderableType:
    """Return the candidates, what they were chosen from, and the answer in a sentence."""
    notes = Footnotes()
    demands = (tuned.goal, *tuned.bounds)
    rows = [
        [" ".join(c.point), *(estimated(found, notes) for found in (c.goal, *c.kept)), _keeps(c), "*" * c.front]
        for c in tuned.candidates
    ]
    heads = [", ".join(tuned.axes), *(_head(demand) for demand in demands), "keeps", "front"]
    chosen = f"{tuned.looked_at:,} points looked at in short runs"
    if tuned.points:
        chosen += f" of {tuned.points:,}"
    if tuned.hopeless:
        chosen += f"; {tuned.hopeless:,} left out before: {tuned.why_hopeless}"
    said = "times in ms; ± half of the 95 % interval; keeps ?: the interval does not tell; front *: no other point is "
    said += "as good in everything and better in something"
    return stack(
        Text(tuned.title, style="bold"),
        table("", heads, rows, fixed=False) if rows else None,
        Text(f"{chosen}. {said if rows else ''}".strip(), style="dim"),
        *notes.lines(),
        Text(_answer(tuned)),
    )


def _head(demand: Demand) -> str:
    return words_of(demand.path) if demand.limit is None else demand.text


def _keeps(candidate: Candidate) -> str:
    return ("yes" if candidate.keeps else "no") + ("" if candidate.clear else "?")


def _answer(tuned: Tuned) -> str:
    """Say which point to take, or that none keeps the bounds and which comes nearest."""
    kept = " and ".join(demand.text for demand in tuned.bounds)
    if tuned.best is not None:
        return f"Take {_named(tuned, tuned.best)}: it keeps {kept}, at {_figure(tuned.best.goal, tuned.goal)}."
    if not tuned.candidates:
        return f"Nothing keeps {kept}: no point was worth a run."
    nearest = tuned.candidates[0]
    figures = ", ".join(_figure(one, demand) for one, demand in zip(nearest.kept, tuned.bounds, strict=True))
    return f"Nothing keeps {kept}. The nearest is {_named(tuned, nearest)}, with {figures}."


def _named(tuned: Tuned, candidate: Candidate) -> str:
    return " ".join(f"{key}={value}" for key, value in zip(tuned.axes, candidate.point, strict=True))


def _figure(found: Estimate, demand: Demand) -> str:
    unit = {"ns": " ms", "bytes": " GiB", "share": " %"}.get(found.unit, "")
    return f"{words_of(demand.path)} {estimated(found, Footnotes())}{unit}"


def tuned_dict(tuned: Tuned) -> dict[str, Any]:
    """Return the same in JSON form, times in nanoseconds."""

    def figure(found: Estimate) -> dict[str, Any]:
        return {"mean": found.mean, "half_width": found.half_width, "replications": found.n, "why": found.why}

    return {
        "axes": list(tuned.axes),
        "goal": tuned.goal.path,
        "bounds": [demand.text for demand in tuned.bounds],
        "best": list(tuned.best.point) if tuned.best else None,
        "points": tuned.points,
        "looked_at": tuned.looked_at,
        "hopeless": tuned.hopeless,
        "why_hopeless": tuned.why_hopeless,
        "candidates": [
            {
                "point": list(c.point), "goal": figure(c.goal), "kept": [figure(one) for one in c.kept],
                "keeps": c.keeps, "clear": c.clear, "front": c.front,
            }
            for c in tuned.candidates
        ],
    }  # fmt: skip
