"""What profiles of graphs hold for a calibration: QNN CSV, text of qnn-profile-viewer, QNN run traces.

Which event is the service time is the readers' choice: the accelerator's own time where it is stated.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from htpsim.errors import FormatError
from htpsim.experiments.calibrate.evidence import Evidence, Origin, Role, Timing, counted, plain_name
from htpsim.experiments.calibrate.figures import unit_factor
from htpsim.formats import Report, samples_ns, service_time_ns
from htpsim.formats.genie_console import variant_of
from htpsim.formats.qnn_csv import CsvLog
from htpsim.formats.qnn_trace import Trace
from htpsim.formats.qnn_viewer import ViewerLog
from htpsim.formats.values import time_ns
from htpsim.units import NS_PER_S, format_time

SLOWED: Final = 20
"""Times that detailed profiling slows a graph; 23.6 on one that was profiled both ways."""

IO_SHARE: Final = 1.1


def take_csv(report: Report, role: Role, evidence: Evidence) -> None:
    """Take the executions of every graph of a CSV."""
    log: CsvLog = report.data
    for graph in log.graphs:
        whole = log.of(graph)
        if not whole:
            evidence.warn(f"{Origin(report.path)}: {graph} has no whole execution, and is left out")
            continue
        lines = [item.line for item in whole]
        _take(report.path, graph, lines, role, any(item.operations for item in whole), evidence)
    if log.truncated:
        evidence.warn(f"{Origin(report.path)}: the file is cut off; what is cut is left out")


def take_trace(report: Report, role: Role, evidence: Evidence) -> None:
    """Take the executions of every graph of a run trace; one in cycles has no times."""
    trace: Trace = report.data
    for graph in trace.graphs:
        lines = [item.line for item in trace.of(graph)]
        _take(report.path, graph, lines, role, trace.operations is not None, evidence)
    if not trace.graphs:
        evidence.warn(f"{Origin(report.path)}: no execution with a time in it: a RUN_TRACE has them")


def _take(file: str, graph: str, lines: Sequence[int], role: Role, detailed: bool, evidence: Evidence) -> None:
    values = samples_ns(file, graph)
    named = service_time_ns(file, graph).source.partition(" ")[2]
    evidence.timings.append(timing(graph, role, Origin(file, min(lines), max(lines), named), values, detailed=detailed))
    if detailed:
        _warn_detailed(file, graph, evidence)


def timing(
    graph: str, role: Role, origin: Origin, values: Sequence[int], *, detailed: bool = False, averaged: bool = False
) -> Timing:
    """Make the timing of one graph, its place in an LLM read from its name."""
    found = variant_of(graph)
    variant, parts = found if found else (None, 1)
    return Timing(
        role="llm" if variant else role,
        stage="graphs" if variant is None else "prefill" if variant.tokens > 1 else "decode",
        graph=graph,
        origin=origin,
        counts=counted(tuple(values)),
        n=None if averaged else len(values),
        first_ns=None if averaged else values[0],
        part=variant.split if variant else None,
        parts=parts,
        tokens=variant.tokens if variant else None,
        tier=variant.context_length if variant else None,
        detailed=detailed,
    )


def take_viewer(report: Report, role: Role, evidence: Evidence) -> None:
    """Take the averages of a viewer's text; it never says of how many inferences."""
    log: ViewerLog = report.data
    file = report.path
    if log.average is None:
        evidence.warn(f"{Origin(file)}: no average of any execution")
        return
    if log.backend == "CPU":
        evidence.warn(f"{Origin(file)}: measured on the CPU backend, which says nothing of the HTP")
    for graph in dict.fromkeys(item.name for item in log.average.graphs):
        found = service_time_ns(file, graph)
        line = int(found.source[len(file) + 1 :].split(" ", 1)[0])
        named = found.source.partition(" ")[2]
        made = timing(
            graph, role, Origin(file, line, what=f"{named}, average"), (found.value_ns,),
            detailed=log.level == "detailed", averaged=True,
        )  # fmt: skip
        evidence.timings.append(made)
        if log.level == "detailed":
            _warn_detailed(file, graph, evidence)
    _warn_rate(log, file, evidence)


def take_other(report: Report, role: Role, evidence: Evidence) -> None:
    """Take the one graph of any other file that holds times: its executions, or else its average."""
    file = report.path
    found = service_time_ns(file)
    place, _, event = found.source[len(file) + 1 :].partition(" ")
    line = int(place) if place.isdigit() else None
    graph = plain_name(event.partition(" of ")[2] or Path(file).stem, 0)
    try:
        values = samples_ns(file)
    except FormatError:
        values = ()
    origin = Origin(file, line, what=event)
    evidence.timings.append(timing(graph, role, origin, values or (found.value_ns,), averaged=not values))
    for note in report.notes:
        evidence.warn(f"{Origin(file)}: {note}")


def _warn_detailed(file: str, graph: str, evidence: Evidence) -> None:
    evidence.warn(
        f"{Origin(file)}: {graph} was profiled in detail, which slows a graph about {SLOWED}-fold: "
        "measure it again with --profiling_level basic"
    )


def _warn_rate(log: ViewerLog, file: str, evidence: Evidence) -> None:
    """Say when the inferences a second are not one over the time of an inference."""
    netrun = [value for item in (log.average.graphs if log.average else ()) if (value := item.event("NetRun"))]
    if log.ips is None or len(netrun) != 1 or log.ips.value <= 0:
        return
    own_ns, rate_ns = time_ns(netrun[0], file), round(NS_PER_S / log.ips.value)
    where = Origin(file, log.ips.line)
    if (factor := unit_factor(rate_ns / own_ns)) is not None:
        evidence.warn(f"{where}: 1/IPS is {factor:,} times NetRun or its inverse: a unit looks wrong")
    elif not 1 / IO_SHARE < rate_ns / own_ns < IO_SHARE:
        evidence.warn(
            f"{where}: IPS is not 1/latency: 1/IPS is {format_time(rate_ns)} and NetRun {format_time(own_ns)}, "
            "as input and output count; calibrated from the latency"
        )
