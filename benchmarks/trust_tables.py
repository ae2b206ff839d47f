"""The tables of docs/trust.md."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

from benchmarks.timing import markdown
from htpsim.live.solo import DELAYS
from htpsim.live.trials import POOLED, Trials
from htpsim.units import format_bytes, format_time

VARIANTS = ("legacy", "genie", "genie_registry")
HEADLINES = ("tokens_per_s", "ttft.p50", "ttft.p95", "ttft.p99", "itl.p50", "itl.p95", "itl.p99", "execute.vit.p50")
TARGETS = (
    ("throughput", ("tokens_per_s",), 0.03),
    ("p50 of TTFT and ITL", ("ttft.p50", "itl.p50"), 0.03),
    ("p99 of TTFT and ITL", ("ttft.p99", "itl.p99"), 0.10),
)
SHARE_POINTS = 2.0


def percent(value: float | None) -> str:
    """Write a share with its sign."""
    return "-" if value is None else f"{100 * value:+.1f} %"


def targets(found: Trials) -> str:
    """What was to be reached, and what was."""
    rows = []
    for what, figures, limit in TARGETS:
        errors = found.errors(figures)
        reached = "-" if not errors else "yes" if median(errors) <= limit else "**no**"
        shown = "-" if not errors else f"{100 * median(errors):.1f} %, at most {100 * max(errors):.1f} %"
        rows.append([f"median error of {what} at most {100 * limit:.0f} %", shown, reached])
    points = max(trial.share_points() for trial in found.trials.values())
    rows.append([f"shares within {SHARE_POINTS:.0f} points, in every repeat", f"{points:.1f} points",
                 "yes" if points <= SHARE_POINTS else "**no**"])  # fmt: skip
    exact = sum(trial.copies_exact() for trial in found.trials.values())
    count = len(found.trials)
    rows.append(["memory copies and their bytes exact", f"{exact} of {count} scenarios",
                 "yes" if exact == count else "**no**"])  # fmt: skip
    ranked = found.rankings([name for name in VARIANTS if name in found.trials])
    decided = [each for each in ranked if not each.tie]
    right = sum(each.right == len(each.measured) for each in decided)
    rows.append(["variants in the predicted order in every repeat",
                 f"{right} of {len(decided)} differences, {len(ranked) - len(decided)} ties",
                 "-" if not decided else "yes" if right == len(decided) else "**no**"])  # fmt: skip
    broken = sum(not report.ok for trial in found.trials.values() for report in trial.reports)
    traces = sum(len(trial.reports) for trial in found.trials.values())
    rows.append(["every rule holds on every trace", f"{traces - broken} of {traces} traces",
                 "yes" if not broken else "**no**"])  # fmt: skip
    return markdown(["target", "reached", "met"], rows)


def ranking(found: Trials) -> str:
    """Which of two variants is ahead, as predicted and as measured."""
    rows = []
    for each in found.rankings([name for name in VARIANTS if name in found.trials]):
        said = (
            f"{_figure(each.figure, each.predicted.mean or 0)} ± {_figure(each.figure, each.predicted.half_width or 0)}"
        )
        measured = f"{_figure(each.figure, median(each.measured))}"
        right = "tie" if each.tie else f"{each.right} of {len(each.measured)}"
        rows.append([f"{each.second} - {each.first}: {each.figure}", said, measured, right])
    return markdown(["difference", "predicted", "measured, median", "sign right in"], rows)


def _figure(name: str, value: float) -> str:
    if name.endswith("per_s"):
        return f"{value:.2f}/s"
    return f"-{format_time(-value)}" if value < 0 else format_time(value)


def errors(found: Trials) -> str:
    """The error of each headline figure of each scenario: median of the repeats, ± half of the mean's interval."""
    rows = []
    for name, trial in found.trials.items():
        cells = [name]
        for figure in HEADLINES:
            seen = trial.errors(figure)
            if len(seen) == len(trial.scores):
                half = trial.error(figure).half_width
                cells.append(percent(median(seen)) + ("" if half is None else f" ± {100 * half:.1f}"))
                continue
            measure, _, quantile = figure.partition(".p")
            pooled = trial.pooled_error(measure, int(quantile)) if measure in POOLED else None
            cells.append("-" if pooled is None else f"({percent(pooled)})")
        cells.append(f"{trial.share_points():.1f}")
        rows.append(cells)
    return markdown(["scenario", *HEADLINES, "shares [points]"], rows)


def measured(found: Trials) -> str:
    """What was measured and predicted, medians over the repeats."""
    rows = []
    for name, trial in found.trials.items():
        cells = [name]
        for figure in ("tokens_per_s", "ttft.p50", "itl.p50", "itl.p99"):
            seen, simulated = trial.figures(figure)
            pair = [_figure(figure, median(values)) if values else "-" for values in (seen, simulated)]
            cells.append(" / ".join(pair))
        rows.append(cells)
    return markdown(["scenario", "tokens_per_s", "ttft.p50", "itl.p50", "itl.p99"], rows)


def memory(found: Trials) -> str:
    """How many copies there were, of how many bytes, and what became resident."""
    rows = []
    for name, trial in found.trials.items():
        seen, simulated = trial.copies()
        copies = ", ".join(f"{count} {what}" for what, count in seen.items())
        said = ", ".join(f"{count} {what}" for what, count in simulated.items())
        rows.append(
            [
                name,
                said,
                copies,
                format_bytes(trial.weights_bytes[0]),
                format_bytes(round(median(trial.resident_bytes))),
            ]
        )
    return markdown(["scenario", "copies predicted", "copies measured", "weights of all sessions",
                     "resident memory grew by, median"], rows)  # fmt: skip


def calibration(found: Trials) -> str:
    """What was seen of one instance alone."""
    rows = []
    for (cores, _), solo in found.solo.items():
        kind = f"{cores} core{'s' * (cores != 1)}"
        for name, values in sorted(solo.graphs.items()):
            rows.append([f"{kind}: graph {name}", *_spread(values)])
        for name in DELAYS:
            if solo.delays[name]:
                rows.append([f"{kind}: {name}", *_spread(solo.delays[name])])
    return markdown(["time or delay", "n", "p5", "median", "p95", "p99"], rows)


def _spread(values: list[int]) -> list[str]:
    ordered = sorted(values)
    picked = [ordered[min(len(ordered) - 1, round(part * (len(ordered) - 1)))] for part in (0.05, 0.5, 0.95, 0.99)]
    return [str(len(ordered)), *(format_time(value) for value in picked)]


def as_dict(found: Trials) -> dict[str, object]:
    """Return every score of every round in JSON form."""
    return {
        name: {
            "rounds": [each.to_dict() for each in trial.scores],
            "violations": [[str(v) for v in report.violations] for report in trial.reports],
            "resident_bytes": trial.resident_bytes,
        }
        for name, trial in found.trials.items()
    }


TABLES: dict[str, tuple[str, Callable[[Trials], str]]] = {
    "targets": ("Targets", targets),
    "ranking": ("Ranking of the variants", ranking),
    "errors": ("Errors", errors),
    "measured": ("Measured / predicted", measured),
    "memory": ("Memory", memory),
    "calibration": ("One instance alone", calibration),
}
