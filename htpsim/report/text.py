"""The tables of one run, the assumptions it rests on, and what a file of the ecosystem says. Nothing here prints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from rich.console import RenderableType
from rich.text import Text

from htpsim.report.cells import NONE, Footnotes, cell, number, stack, table, value_text
from htpsim.results.summary import ClientSummary, Group, Summary
from htpsim.spec import Scenario, parameters
from htpsim.units import format_bytes, format_time

if TYPE_CHECKING:
    from htpsim.formats import Report

ALL: Final = "all"
_ITEMS: Final = re.compile(r"\b(instances|clients|contexts|graphs|prefill|decode)\.")


def run_tables(summary: Summary) -> RenderableType:
    """Return every table of one run, its notes, and the reason for each missing value; at most 80 columns wide."""
    notes = Footnotes()
    return stack(
        _title(summary),
        _latencies(summary, notes),
        _jobs(summary, notes),
        _waits(summary, notes),
        _shares(summary, notes),
        _parts(summary),
        _requests(summary, notes),
        _cores(summary, notes),
        _memory(summary),
        _loads(summary),
        load_failures(summary),
        *(Text(f"! {note}", style="yellow") for note in summary.notes),
        *notes.lines(),
        _definitions(summary),
    )


def load_failures(summary: Summary) -> RenderableType | None:
    """Return which instances did not start and why, or None when all did."""
    if not summary.failed:
        return None
    return table("Did not start", ["instance", "reason"], summary.failed.items(), left=2)


def assumption_table(scenario: Scenario) -> RenderableType:
    """Return every assumed parameter in force with its value and what it says; equal ones of several owners once."""
    rows = [(f"{name}\n  = {value}", text) for name, value, text in assumptions(scenario)]
    return table("Assumed, not known", ["parameter and value", "what it is, and why this value"], rows, left=2)


def assumptions(scenario: Scenario, mark: str = "assumed") -> Iterator[tuple[str, str, str]]:
    """Yield name, value and meaning of every parameter in force that is assumed, or of another mark.

    Where all instances (clients, graphs ...) have the same value, their name is ``*``.

    >>> [row[:2] for row in assumptions(Scenario()) if row[0] == "guard.slots_per"]
    [('guard.slots_per', 'process')]
    """
    found: dict[str, list[tuple[str, str, str]]] = {}
    for name, facts, value in parameters(scenario):
        if facts.mark == mark:
            found.setdefault(_pattern(name, scenario), []).append((name, value_text(value, facts.unit), facts.text))
    for pattern, rows in found.items():
        if len({value for _, value, _ in rows}) == 1:
            yield (pattern if len(rows) > 1 else rows[0][0], *rows[0][1:])
        else:
            yield from rows


def _pattern(name: str, scenario: Scenario) -> str:
    """Return a parameter's name with the names of list members replaced by ``*``."""
    names = {i.name for i in scenario.instances} | {c.name for c in scenario.clients}
    owners = sorted(names, key=len, reverse=True)
    for owner in owners:
        for kind in ("instances", "clients"):
            if name.startswith(f"{kind}.{owner}."):
                name = f"{kind}.*{name[len(kind) + 1 + len(owner) :]}"
    head, *rest = re.split(r"\.(contexts|graphs|prefill|decode)\.", name, maxsplit=1)
    return f"{head}.{rest[0]}.*.{rest[1].rsplit('.', 1)[-1]}" if rest else head


def inspect_table(report: Report) -> RenderableType:
    """Return what a file says, section by section, with the line each value stands on."""
    rows: list[tuple[str, str, str]] = []
    section = ""
    for fact in report.facts:
        if fact.section != section:
            rows.append((fact.section, "", ""))
            section = fact.section
        value = "not stated" if fact.value is None else _fact(fact.value)
        shown = f"{value} {fact.unit}".strip() if fact.value is not None else value
        name = f"  {fact.name} ({fact.note})" if fact.note else f"  {fact.name}"
        rows.append((name, shown, NONE if fact.line is None else str(fact.line)))
    made = table(f"{report.path}: {report.format}", ["section and name", "value", "line"], rows, fixed=False)
    return stack(made, *(Text(f"! {note}", style="yellow") for note in report.notes))


def _fact(value: str | int | float | bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _title(summary: Summary) -> Text:
    window = summary.window
    warmup = window.start_ns - window.ready_ns
    said = f"{summary.scenario}: {summary.title}" if summary.title else summary.scenario
    after = f"{format_time(summary.load_ns)} of loading" + (f" and {format_time(warmup)} of warm-up" if warmup else "")
    return Text.assemble(
        (said, "bold"),
        f"\nseed {summary.seed}, replication {summary.replication}; "
        f"measured {format_time(window.length_ns)} after {after}",
    )


def _everyone(summary: Summary, kind: str) -> list[tuple[str, Group]]:
    """Return the clients of one kind, and all of them where there are several."""
    rows: list[tuple[str, Group]] = []
    rows += [(name, client) for name, client in summary.clients.items() if client.kind == kind]
    return [*rows, (ALL, summary.overall)] if len(rows) > 1 else rows


def _latencies(summary: Summary, notes: Footnotes) -> RenderableType | None:
    headers = ["[ms]", "TTFT p50", "p95", "ITL p50", "p99", "worst gap", "ViT p50", "tokens/s", "slow %"]
    rows = [
        [name, *(cell(m, notes) for m in (
            g.ttft.p50, g.ttft.p95, g.itl.p50, g.itl.p99, g.worst_gap.max, g.vit.p50, g.tokens_per_s, g.slow_tokens,
        ))]
        for name, g in _everyone(summary, "instance")
    ]  # fmt: skip
    return table("Latency", headers, rows) if rows else None


def _jobs(summary: Summary, notes: Footnotes) -> RenderableType | None:
    rows = [
        [name, *(cell(m, notes) for m in (g.job.mean, g.job.p50, g.job.p95, g.job.p99, g.job.max, g.requests_per_s))]
        for name, g in _everyone(summary, "client")
    ]
    return (
        table("Jobs of other clients", ["[ms]", "mean", "p50", "p95", "p99", "max", "jobs/s"], rows) if rows else None
    )


def _waits(summary: Summary, notes: Footnotes) -> RenderableType | None:
    rows = [
        [name, *(cell(m, notes) for m in (g.guard_wait.mean, g.guard_wait.p95, g.device_wait.mean, g.device_wait.p95))]
        for name, g in [*summary.clients.items(), (ALL, summary.overall)]
    ]
    headers = ["[ms]", "guard wait", "p95", "device wait", "p95"]
    return table("Waiting, a call", headers, rows) if len(rows) > 1 else None


def _shares(summary: Summary, notes: Footnotes) -> RenderableType | None:
    rows = [[name, *_share(client, notes)] for name, client in summary.clients.items()]
    if len(rows) < 2:
        return None
    made = table(
        "Share of device time [%]", ["", "share", "weight", "by weight", "water-filled", "alone [cores]"], rows
    )
    guard = summary.guard
    said = f"policy {guard.policy}, {guard.slots} slot{'s' * (guard.slots != 1)} a {guard.slots_per}"
    if guard.calls.value and guard.choices.value is not None:
        said += f"; {100 * guard.choices.value:.1f} % of grants had a choice"
    weights = {client.device.weight for client in summary.clients.values()} - {None}
    if len(weights) > 1 and guard.weights_without_effect:
        said += f"; weights have no effect: {guard.weights_without_effect}"
    return stack(made, Text(said))


def _share(client: ClientSummary, notes: Footnotes) -> list[str]:
    d = client.device
    weight = NONE if d.weight is None else str(d.weight)
    return [
        cell(d.share, notes), weight, cell(d.weight_share, notes), cell(d.fair_share, notes), cell(d.demand, notes),
    ]  # fmt: skip


def _parts(summary: Summary) -> RenderableType | None:
    rows = []
    for stage, p in summary.overall.parts.items():
        t = p.parts_ns
        shown = (
            t["guard_wait_ns"], t["device_wait_ns"], t["run_ns"], t["evict_ns"] + t["restore_ns"],
            t["guard_overhead_ns"] + t["rpc_ns"] + t["rpc_return_ns"] + t["acquire_ns"], p.total_ns,
        )  # fmt: skip
        rows.append([stage, f"{p.n:,}", *(number(value / p.n, "ns") for value in shown)])
    headers = ["[ms] a call", "calls", "guard wait", "device wait", "run", "evict", "overhead", "sum"]
    return table("Where the time of a call goes", headers, rows) if rows else None


def _requests(summary: Summary, notes: Footnotes) -> RenderableType:
    rows = []
    for name, g in [*summary.clients.items(), (ALL, summary.overall)]:
        c = g.counts
        missed = [m for m in (g.ttft_misses, g.itl_misses, g.job_misses) if m.value is not None]
        late = " ".join(f"{m.value}/{m.n}" for m in missed) or NONE
        rows.append([name, *(str(n) for n in (c.arrived, c.done, c.running, c.queued, c.dropped, c.refused)), late])
    headers = ["whole run", "arrived", "done", "running", "queued", "dropped", "refused", "late"]
    return table("Requests", headers, rows)


def _cores(summary: Summary, notes: Footnotes) -> Text:
    shown = ", ".join(f"{name} {cell(core.utilisation, notes)} %" for name, core in summary.cores.items())
    return Text.assemble(("\nUtilisation ", "bold"), shown)


def _memory(summary: Summary) -> RenderableType | None:
    rows = []
    for ledger, held in summary.memory.items():
        places = held.places if ledger == "pd" else {}
        rows.append([_ledger(ledger), *_held(held.steady_bytes, held.peak_bytes, held.limit_bytes)])
        rows += [[f"  {p}", *_held(h.steady_bytes, h.peak_bytes, h.limit_bytes)] for p, h in places.items()]
    made = table("Memory", ["", "steady", "peak", "limit"], rows) if rows else None
    copies = [[c.model, c.context, str(c.copies), str(c.users), format_bytes(c.reserved_bytes)] for c in summary.copies]
    files = table("Weight files", ["model", "context", "copies", "users", "held"], copies, left=2) if copies else None
    return stack(made, files) if made or files else None


def _ledger(name: str) -> str:
    return {"device": "device DRAM", "host": "host DRAM", "pd": "PD address space"}.get(name, name)


def _held(steady: int, peak: int, limit: int | None) -> list[str]:
    return [format_bytes(steady), format_bytes(peak), NONE if limit is None else format_bytes(limit)]


def _loads(summary: Summary) -> RenderableType | None:
    rows = [[x.client, x.model, x.role, f"core {x.core}", format_time(x.duration_ns)] for x in summary.loads]
    return table("Loading", ["client", "model", "as", "on", "took"], rows, left=4) if rows else None


def _definitions(summary: Summary) -> Text:
    shown = ("ttft", "itl", "worst_gap", "vit", "tokens_per_s", "slow_tokens", "quantiles")
    names = {"ttft": "TTFT", "itl": "ITL", "vit": "ViT", "tokens_per_s": "tokens/s"}
    lines = [
        f"{names.get(n, n.replace('_', ' '))}: {summary.definitions[n]}" for n in shown if n in summary.definitions
    ]
    return Text("\n".join(lines), style="dim")
