"""Put the report together: figures and tables into the template, everything in one file."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from htpsim.formats.writers.whole import whole_file
from htpsim.report.decision import common_notes
from htpsim.report.html import answer, figures, tables
from htpsim.report.html.material import Key, Material
from htpsim.report.html.timeline import script_words, timeline
from htpsim.report.html.wording import Wording
from htpsim.report.style import OKABE_ITO, lighter
from htpsim.results.samples import DEFINITIONS
from htpsim.results.summary import Summary
from htpsim.units import NS_PER_S, format_time

if TYPE_CHECKING:
    import jinja2

    from htpsim.results.run import RunResult

MEASURES = ("itl", "ttft", "vit")
_DARK_TINT = 0.65
"""How much of a colour is left on a dark page, the rest is white."""

Told = Callable[[int, int, str], None]
"""Called with (runs done, runs in all, what is being worked on)."""


def html_report(material: Material, language: str = "en", *, told: Told | None = None) -> str:
    """Return the report as one HTML file that needs nothing else.

    Parameters
    ----------
    material
        Of a comparison, a run, or their run directory.
    language
        "en" or "zh"; what the scenario file and the model say stays in English.
    told
        Told how far it is.

    Raises
    ------
    HtpsimError
        When there is no such language.
    """
    t = Wording(language)
    looks = []
    for done, (key, result) in enumerate(material.runs.items()):
        if told:
            told(done, len(material.runs), " ".join(key))
        looks.append(_look(material, key, result, t))
    context = _context(material, looks, t)
    return _environment().get_template("page.html.j2").render(context, t=t)


def write_report(
    material: Material, path: str | os.PathLike[str], language: str = "en", *, told: Told | None = None
) -> None:
    """Write the report to a file: whole, or not at all."""
    text = html_report(material, language, told=told)
    with whole_file(path) as unfinished:
        Path(unfinished).write_text(text, encoding="utf-8", newline="\n")


def _environment() -> jinja2.Environment:
    import jinja2

    return jinja2.Environment(
        loader=jinja2.PackageLoader("htpsim.report.html", "templates"), autoescape=True,
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip


def _context(material: Material, looks: list[dict[str, Any]], t: Wording) -> dict[str, Any]:
    summary = next(iter(material.summaries[next(iter(material.cases))].values()))[0]
    first_run = next(iter(material.runs.values()))
    marked = tables.parameters_by_mark(first_run.log.scenario)
    return {
        "material": material,
        "language": "zh-Hans" if t.language == "zh" else t.language,
        "foreign": "" if t.language == "en" else "en",
        "setting": _setting(material, summary, t),
        "cases": [_case(material, case, t) for case in material.cases],
        "flips": answer.reversals(material, t),
        "grid": answer.grid_tables(material.grid, material, t) if material.grid else [],
        "looks": looks,
        "marked": marked,
        "assumed": next((len(m.rows) for m in marked if m.mark == "assumed"), 0),
        "definitions": DEFINITIONS,
        "command": reproduce(material),
        "colours": OKABE_ITO,
        "dark_colours": ["#" + "".join(f"{round(255 * c):02X}" for c in lighter(one, _DARK_TINT)) for one in OKABE_ITO],
        "data": {"words": script_words(t), "runs": {look["key"]: look["timeline"] for look in looks}},
    }


def _setting(material: Material, summary: Summary, t: Wording) -> str:
    """Say how long was measured, how often and with which seed."""
    count = len(next(iter(material.summaries[next(iter(material.cases))].values())))
    window = summary.window
    return t(
        "head.setting" if count > 1 else "head.setting_one",
        length=format_time(window.length_ns), count=count, seed=summary.seed,
        warmup=format_time(window.start_ns - window.ready_ns),
    )  # fmt: skip


def _case(material: Material, case: str, t: Wording) -> dict[str, Any]:
    """Return what is shown of one case."""
    charts = []
    for measure in MEASURES:
        series = {v: _pooled(material, (case, v), measure) for v in material.variants}
        charts.append(figures.distribution(series, measure, t(f"chart.{measure}"), t))
    return {
        "name": case,
        "title": material.cases[case],
        "cards": answer.cards(material, case, t),
        "decision": tables.decision(material.summaries[case], t),
        "capability": tables.capability(material.summaries[case], t),
        "notes": [
            (variant, note) for variant, runs in material.summaries[case].items() for note in common_notes(runs)
        ],
        "charts": [chart for chart in charts if chart],
        "failed": [(v, name, why) for v, runs in material.summaries[case].items()
                   for name, why in runs[0].failed.items()],
    }  # fmt: skip


def _pooled(material: Material, key: Key, measure: str) -> Any:
    return material.runs[key].samples(measure)["value_ns"].to_numpy()


def _look(material: Material, key: Key, result: RunResult, t: Wording) -> dict[str, Any]:
    """Return what is shown of one run."""
    case, variant = key
    summary = material.summaries[case][variant][0]
    title = material.variants[variant]["title"] or variant
    charts = [figures.distribution(figures.samples(result, m), m, t(f"chart.{m}_by"), t) for m in MEASURES[:2]]
    columns, rows = tables.blame(result, t)
    clients, reasons = tables.shares(summary)
    return {
        "key": f"{case}.{variant}",
        "title": t("look.title", case=material.cases[case], variant=title) if material.cases[case] else title,
        "summary": summary,
        "notes": common_notes([summary]),
        "charts": [chart for chart in charts if chart],
        "memory": figures.memory(result.log, t),
        "shares": clients,
        "share_reasons": reasons,
        "facts": tables.facts(material.summaries[case][variant], t),
        "blame": {"columns": columns, "rows": rows},
        "slow": tables.slow_rows(result, t),
        "utilisation": tables.utilisation(summary),
        "calls": tables.calls(result, t),
        "length": f"{summary.window.length_ns / NS_PER_S:g}",
        "timeline": timeline(result, t),
    }


def reproduce(material: Material) -> str:
    """Return the command that gives the same again, the program by its name alone."""
    command = [str(word) for word in material.provenance.get("command", [])]
    return shlex.join([Path(command[0]).name, *command[1:]]) if command else ""
