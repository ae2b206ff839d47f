"""Pages about a trace: which rules it breaks, and which policy explains its grants."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from rich.console import RenderableType
from rich.text import Text

from htpsim.invariants import RULES, Explanation, Report
from htpsim.invariants.explain import Fit, Grant
from htpsim.report.cells import NONE, number, stack, table
from htpsim.report.listing import setting

SHOWN_MAX: Final = 5
"""Violations of a rule, or grants that nothing explains, that a page shows; JSON has more."""


def check_page(report: Report) -> RenderableType:
    """Return which rules a trace breaks, where and by how much; which could not be checked, and why."""
    broken: list[RenderableType] = []
    for rule, count in report.counts.items():
        shown = report.of(rule)[:SHOWN_MAX]
        rows = [[f"{one.time_ns:,}", str(one.subject), one.message] for one in shown]
        title = f"{rule}: {RULES[rule].text}" if rule in RULES else rule
        broken.append(table(title, ["at [ns]", "of", "what is wrong"], rows, left=3))
        if count > len(shown):
            broken.append(Text(f"{count - len(shown):,} more of {rule}", style="dim"))
    skipped = table("Not checked", ["rule", "why"], report.skipped.items(), left=2) if report.skipped else None
    story = stack(Text("What happened to the first", style="bold"), Text(report.story)) if report.story else None
    return stack(*broken, story, skipped, _verdict(report))


def _verdict(report: Report) -> Text:
    looked = (
        f"{report.executes:,} graphExecutes, {len(report.checked)} of {len(report.checked) + len(report.skipped)} rules"
    )
    if report.ok:
        return Text(f"{looked}: every rule that applies holds", style="bold")
    total = sum(report.counts.values())
    return Text(
        f"{looked}: {total:,} violation{'s' * (total != 1)} of {len(report.counts)} "
        f"rule{'s' * (len(report.counts) != 1)}",
        style="bold red",
    )


def check_dict(report: Report) -> dict[str, Any]:
    """Return the outcome of a check in JSON form."""
    return {
        "ok": report.ok,
        "executes": report.executes,
        "checked": list(report.checked),
        "skipped": dict(report.skipped),
        "counts": dict(report.counts),
        "violations": [asdict(one) for one in report.violations],
        "story": report.story,
    }


def explain_page(found: Explanation) -> RenderableType:
    """Return how many of the grants each policy would have made, and those that none explains."""
    parts: list[RenderableType | None] = []
    if found.fits:
        rows = [
            [fit.policy, _parameters(fit), f"{fit.made:,}", f"{100 * fit.made / found.choices:.1f} %"]
            for fit in found.fits
        ]
        headers = ["policy", "with the parameters that fit best", "grants it would make", "share"]
        parts.append(table("Which policy made these grants?", headers, rows, left=2))
    parts.append(_unexplained(found.unexplained) if found.unexplained else None)
    said = (
        f"{found.grants:,} grants, of which {found.choices:,} had a choice: at least two handles in line; only these "
        "count. Policies that agree on every one of them cannot be told apart by this trace."
    )
    parts.append(Text(said, style="dim"))
    parts.append(Text(f"! {found.note}", style="yellow") if found.note else None)
    return stack(*parts, _best(found))


def _best(found: Explanation) -> Text | None:
    """Say in a sentence what explains the grants best."""
    if not found.fits:
        return None
    most = found.fits[0].made
    names = ", ".join(fit.policy for fit in found.fits if fit.made == most)
    if most == found.choices:
        return Text(f"explained whole by: {names}", style="bold")
    return Text(f"no policy explains them all; nearest: {names}, {most:,} of {found.choices:,}", style="bold")


def _parameters(fit: Fit) -> str:
    told = [setting(name, value) for name, value in fit.params]
    told += [f"ranks taken from {fit.ranks}"] if fit.ranks else []
    return ", ".join(told) or NONE


def _unexplained(grants: list[Grant]) -> RenderableType:
    rows = []
    for grant in grants[:SHOWN_MAX]:
        others = ", ".join(f"{name} {number(waited_ns, 'ns')}" for name, waited_ns in grant.waiting)
        rows.append([f"{grant.time_ns:,}", str(grant.execute), grant.account, others])
    headers = ["at [ns]", "graphExecute", "granted", "in line, and since when [ms]"]
    more = len(grants) - len(rows)
    made = table("Grants that no policy explains", headers, rows, left=4)
    return stack(made, Text(f"and {more:,} more", style="dim") if more else None)


def explain_dict(found: Explanation) -> dict[str, Any]:
    """Return an explanation in JSON form."""
    return {
        "grants": found.grants,
        "choices": found.choices,
        "note": found.note,
        "policies": [
            {
                "policy": fit.policy,
                "params": dict(fit.params),
                "ranks": fit.ranks,
                "made": fit.made,
                "missed": sorted(fit.missed),
            }
            for fit in found.fits
        ],
        "unexplained": [
            {"time_ns": one.time_ns, "execute": one.execute, "account": one.account, "waiting_ns": dict(one.waiting)}
            for one in found.unexplained
        ],
    }
