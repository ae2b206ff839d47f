"""A measurement as tables: latency by threads, how it began, its memory, what speaks against it, its operators."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from htpsim.experiments.measured import Measured, Measurement
from htpsim.experiments.measured.measurement import by_kind, operators
from htpsim.report.cells import NONE, Footnotes, cell, number, stack, table
from htpsim.units import BYTE_UNITS, format_bytes, format_time

KINDS_MAX: Final = 8
_CPU_ONLY: Final = "A CPU's time: nothing about an HTP follows from it."


def measured_page(measurement: Measurement) -> RenderableType:
    """Return a measurement as tables of 80 columns."""
    notes = Footnotes()
    rows = [_latency(one, notes) for one in measurement.measured]
    headers = ["threads", "runs", "p50", "p90", "p95", "p99", "mean", "min", "max"]
    return stack(
        *(Text(line) for line in _head(measurement)),
        table("Warm runs, ms", headers, rows),
        *notes.lines(),
        table("", ["threads", "from the least, ms", "runs", "to, ms"], map(_bars, measurement.measured), left=3),
        table("First run, loading, memory, noise",
              ["threads", "first", "of p50", "load", "MiB held", "CPU", "cores", "drift", "far out"],
              map(_sides, measurement.measured)),
        Text(_legend(measurement), style="dim"),
        *(Text(f"! {line}", style="yellow") for line in _doubts(measurement)),
        _operators(measurement.measured[0]),
        Text(_CPU_ONLY, style="dim"),
    )  # fmt: skip


def _legend(measurement: Measurement) -> str:
    cold = number(measurement.cold_load_ns, "ns")
    return (
        f"Times in ms. load: again; cold it took {cold} ({measurement.cold}). CPU: processor time of a run. "
        "cores: how many it had. How to read drift and far out: docs/measuring.md."
    )


def _head(measurement: Measurement) -> Iterator[str]:
    model, machine = measurement.model, measurement.machine
    dims = "".join(f", {name}={length}" for name, length in model.dims.items())
    weights = format_bytes(model.weights_bytes)
    yield f"{model.title}: opset {model.opset}, {model.nodes} nodes, {weights} of weights{dims}"
    yield f"{machine.runtime} on {machine.cpu}, {machine.architecture}, {machine.cpus} CPUs"


def _latency(one: Measured, notes: Footnotes) -> list[str]:
    found = one.latency
    quantiles = [cell(metric, notes) for _, metric in found.quantiles]
    ends = [number(value, "ns") for value in (found.mean_ns, found.min_ns, found.max_ns)]
    return [str(one.threads), str(found.n), *quantiles, *ends]


def _bars(one: Measured) -> list[str]:
    found = one.latency
    beyond = sum(run.netrun_ns > found.histogram_to_ns for run in one.runs)
    more = f" ({beyond} beyond)" if beyond else ""
    least, most = number(found.min_ns, "ns"), number(found.histogram_to_ns, "ns")
    return [str(one.threads), least, found.histogram, f"{most}{more}"]


def _sides(one: Measured) -> list[str]:
    found = one.latency
    return [
        str(one.threads),
        number(one.first_ns, "ns"),
        f"{one.first_ns / found.median_ns:.2f}x",
        number(one.load_ns, "ns"),
        NONE if one.resident_bytes is None else f"{one.resident_bytes / BYTE_UNITS['MiB']:.1f}",
        NONE if one.cpu_ns is None else number(one.cpu_ns / found.n, "ns"),
        NONE if one.cpu_share is None else f"{one.cpu_share:.2f}",
        NONE if found.drift is None else f"{100 * found.drift:+.1f}%",
        NONE if found.outliers is None else f"{100 * found.outliers:.1f}%",
    ]


def _doubts(measurement: Measurement) -> Iterator[str]:
    for one in measurement.measured:
        for doubt in measurement.doubts(one):
            yield f"{one.threads} thread{'s' * (one.threads > 1)}: {doubt}"


def _operators(one: Measured) -> RenderableType | None:
    kinds = by_kind(operators(one.profiled))
    if not kinds or one.profiler_slows is None:
        return None
    rows = [[kind, str(n), number(spent, "ns"), f"{100 * share:.1f}%"] for kind, n, spent, share in kinds[:KINDS_MAX]]
    if len(kinds) > KINDS_MAX:
        n, spent, share = (sum(column) for column in zip(*(row[1:] for row in kinds[KINDS_MAX:]), strict=True))
        rows.append([f"{len(kinds) - KINDS_MAX} other kinds", f"{n:.0f}", number(spent, "ns"), f"{100 * share:.1f}%"])
    whole = format_time(sum(spent for _, _, spent, _ in kinds))
    slows = (
        f"Mean of {len(one.profiled)} profiled, {one.threads} thread{'s' * (one.threads > 1)}; together {whole}. "
        f"A run under the profiler took {one.profiler_slows:.2f} times as long as without."
    )
    return stack(table("Operators", ["kind", "nodes", "ms a run", "share"], rows), Text(slows, style="dim"))
