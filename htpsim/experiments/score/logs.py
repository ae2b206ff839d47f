"""Figures of what a device or a tool recorded: console logs, Genie profiles, profiles of graphs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from htpsim.errors import HtpsimError
from htpsim.experiments.score.figures import Figures, part_of, rate, spread, tier_figures
from htpsim.formats import Report, samples_ns, service_time_ns
from htpsim.formats.genie_console import ConsoleLog, ExecutionLog, Times
from htpsim.formats.genie_profile import GenieProfile
from htpsim.formats.genie_profile.data import TTFT
from htpsim.formats.qnn_csv import CsvLog
from htpsim.formats.qnn_trace import Trace as RunTrace
from htpsim.formats.qnn_viewer import ViewerLog
from htpsim.formats.values import time_ns
from htpsim.results.metric import Metric
from htpsim.units import NS_PER_S


def figures_of_log(report: Report) -> Figures:
    """Return what a file of a real tool says, in the figures that a simulation has too.

    Raises
    ------
    HtpsimError
        When the file is of a kind that holds no run.
    """
    takers = {
        "genie-console": _console,
        "genie-profile": _profile,
        "qnn-csv": _csv,
        "qnn-viewer": _viewer,
        "qnn-trace": _run_trace,
    }
    if report.format not in takers:
        raise HtpsimError(
            f"{report.path}: got a file of format {report.format}, expected a run: a run directory, a records.csv, a "
            f"trace, or one of {', '.join(takers)}"
        )
    return takers[report.format](report)


def tiers_of(report: Report) -> tuple[int, ...]:
    """Return the context lengths of a log's decode steps."""
    if not isinstance(report.data, ConsoleLog) or report.data.executions is None:
        return ()
    return tuple(sorted(length for length, _ in report.data.executions.steps))


def _expanded(counts: Iterable[tuple[int, int]]) -> list[int]:
    pairs = list(counts)
    repeated = np.repeat(np.array([value for value, _ in pairs]), np.array([count for _, count in pairs]))
    values: list[int] = repeated.tolist()
    return values


def _console(report: Report) -> Figures:
    log: ConsoleLog = report.data
    found: Figures = {}
    for memory in log.memory:
        nbytes = memory.reserved.value if memory.reserved else memory.terms_bytes
        if nbytes:
            found[f"memory.{memory.graph or memory.context}"] = Metric(nbytes, 1, "bytes")
    if log.load_total is not None:
        found["load"] = Metric(time_ns(log.load_total, report.path), 1, "ns")
    if log.executions is not None:
        return found | _executions(log.executions)
    ttft = [time_ns(q.ttft, report.path) for q in log.queries if q.ttft is not None and q.ttft.value > 0]
    return found | _figures_of_queries(ttft, [q.token_time_ns for q in log.queries if q.token_time_ns])


def _executions(run: ExecutionLog) -> Figures:
    found: Figures = {}
    if run.span_ns:
        found["busy"] = part_of(run.busy_ns, run.span_ns, run.executions)
    found |= spread("prefill", [prefill.end_ns - prefill.start_ns for prefill in run.prefills])
    parts: dict[str, list[Times]] = {}
    busy: dict[int | None, int] = {}
    for item in run.graphs:
        if item.tokens is None:
            parts.setdefault(item.graph, []).append(item.times)
            continue
        stage = "prefill" if item.tokens > 1 else "decode"
        parts.setdefault(f"{stage}.{(item.split or 0) + 1}", []).append(item.times)
        if stage == "decode":
            busy[item.context_length] = busy.get(item.context_length, 0) + item.times.mean_ns
    for name, times in parts.items():
        values = [value for each in times for value in _expanded(each.counts)]
        found |= spread(f"execute.{name}", values, ("mean", "p50"))
    if run.step is None:
        return found
    found |= spread("itl", _expanded(run.step.counts))
    found["decode_per_s"] = rate(run.step.n, run.step.total_ns)
    if run.span_ns:
        found["tokens_per_s"] = rate(run.decode_tokens + len(run.prefills), run.span_ns)
    for length, steps in run.steps:
        # The mean of a step's graphs, each over all its executions: steps and graphs are counted apart in the log.
        found |= tier_figures(length, _expanded(steps.counts), busy.get(length, 0) * steps.n, steps.n)
    for name, gap in (("gap_graph", run.gap_graph), ("gap_step", run.gap_step)):
        if gap is not None:
            found |= spread(name, _expanded(gap.counts), ("mean",))
    return found


def _figures_of_queries(ttft: Sequence[int], token_ns: Sequence[int]) -> Figures:
    found = spread("ttft", ttft)
    if token_ns:
        # Each is the mean of one query, so no quantile of single gaps follows.
        found |= spread("itl", token_ns, ("mean",))
        found["decode_per_s"] = Metric(len(token_ns) * NS_PER_S / sum(token_ns), len(token_ns), "per_s")
    return found


def _profile(report: Report) -> Figures:
    profile: GenieProfile = report.data
    stated = [event.figure(TTFT) for event in profile.queries]
    ttft = [time_ns(value, report.path) for value in stated if value is not None and value.value > 0]
    return _figures_of_queries(ttft, [event.token_time_ns for event in profile.queries if event.token_time_ns])


def _csv(report: Report) -> Figures:
    log: CsvLog = report.data
    return _sampled(report.path, [graph for graph in log.graphs if log.of(graph)])


def _run_trace(report: Report) -> Figures:
    trace: RunTrace = report.data
    return _sampled(report.path, trace.graphs)


def _sampled(path: str, graphs: Sequence[str]) -> Figures:
    found: Figures = {}
    for graph in graphs:
        found |= spread(f"execute.{graph}", samples_ns(path, graph), ("mean", "p50"))
    return found


def _viewer(report: Report) -> Figures:
    log: ViewerLog = report.data
    graphs = dict.fromkeys(item.name for item in (log.average.graphs if log.average else ()))
    return {f"execute.{graph}.mean": Metric(service_time_ns(report.path, graph).value_ns, 1, "ns") for graph in graphs}
