"""Executions measured on this machine, in the shapes of QNN's tools, to stand beside a log of theirs.

The statistics have the form that qnn-profile-viewer prints, the executions the columns of a QNN profiling CSV;
``formats.qnn_viewer`` and ``formats.qnn_csv`` read them back. Both say on top that they are not QNN's.

=================================  ==================================================================
row                                what was measured
=================================  ==================================================================
NetRun of Init                     making the session: read the model, optimise it, pack the weights
NetRun of a graph                  one run, as its caller waits for it
GRAPH_EXECUTE                      the same run, by the clock of the runtime's own profiler
SUB-EVENT ``node:OpId_k``          operator k of that run
=================================  ==================================================================
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from htpsim.formats.profilerows import COLUMNS
from htpsim.formats.writers.qnn_csv import csv_line
from htpsim.formats.writers.qnn_events import NETRUN, number_us
from htpsim.formats.writers.qnn_viewer import Printed, log_lines
from htpsim.units import NS_PER_S, NS_PER_US

GRAPH_EXECUTE: Final = "GRAPH_EXECUTE"


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator of one execution."""

    name: str
    """of its node in the model; of its kind where it has none"""
    kind: str
    run_ns: int

    def label(self, number: int) -> str:
        """Return its name as QNN's tools write it.

        >>> Operator("conv1", "Conv", 5_000).label(7)
        'conv1:OpId_7'
        """
        return f"{' '.join(self.name.split())}:OpId_{number}"


@dataclass(frozen=True, slots=True)
class Execution:
    """One run of the model."""

    end_ns: int
    """when it was done, counted from any one instant"""
    netrun_ns: int
    execute_ns: int | None = None
    """by the profiler's clock; None where none ran"""
    operators: tuple[Operator, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Executions:
    """What one session was measured to take."""

    graph: str
    said: str
    """what was measured with what, for the line on top"""
    load_ns: int
    runs: tuple[Execution, ...]


def measured_viewer_lines(measured: Executions) -> Iterator[str]:
    """Yield statistics in the form that qnn-profile-viewer prints, without line ends.

    Examples
    --------
    >>> made = Executions(
    ...     graph="vit", said="by hand", load_ns=0, runs=(Execution(9_000, 4_000), Execution(13_000, 4_000))
    ... )
    >>> [line.strip() for line in measured_viewer_lines(made) if "NetRun" in line]
    ['NetRun IPS (includes IO and misc. time): 250000.0000 inf/sec', 'NetRun: 4 us', 'NetRun: 4 us', 'NetRun: 4 us']
    """
    runs = measured.runs
    events = [(NETRUN, "us", [run.netrun_ns for run in runs])]
    profiled = [run.execute_ns for run in runs if run.execute_ns is not None]
    if profiled:
        events.append((f"Backend ({GRAPH_EXECUTE})", "us", profiled))
    graphs = [Printed(0, measured.graph, events)] if runs else []
    yield from log_lines(measured.said, measured.load_ns, graphs, _rate(runs))


def measured_csv_lines(measured: Executions) -> Iterator[str]:
    """Yield every execution, and its operators where they were timed, as rows of a QNN CSV without line ends.

    Examples
    --------
    >>> run = Execution(9_000, 4_000, 3_000, (Operator("conv1", "Conv", 2_000),))
    >>> for line in list(measured_csv_lines(Executions(graph="vit", said="by hand", load_ns=0, runs=(run,))))[2:]:
    ...     print(line)
    9,EXECUTE,4,US,NETRUN,ROOT,Graph 0: vit
    9,EXECUTE,3,US,BACKEND,ROOT,GRAPH_EXECUTE
    9,EXECUTE,2,US,BACKEND,SUB-EVENT,conv1:OpId_0
    """
    yield csv_line("source", measured.said)
    yield csv_line(*COLUMNS)
    if measured.load_ns > 0:
        yield csv_line(0, "INIT", number_us(measured.load_ns), "US", "NETRUN", "ROOT", "null")
    for run in measured.runs:
        at = run.end_ns // NS_PER_US
        yield csv_line(at, "EXECUTE", number_us(run.netrun_ns), "US", "NETRUN", "ROOT", f"Graph 0: {measured.graph}")
        if run.execute_ns is not None:
            yield csv_line(at, "EXECUTE", number_us(run.execute_ns), "US", "BACKEND", "ROOT", GRAPH_EXECUTE)
        for number, one in enumerate(run.operators):
            label = one.label(number)
            yield csv_line(at, "EXECUTE", number_us(one.run_ns), "US", "BACKEND", "SUB-EVENT", label)


def _rate(runs: Sequence[Execution]) -> float | None:
    """Return the inferences a second from the begin of the first to the end of the last; None where none follows."""
    spent_ns = runs[-1].end_ns - (runs[0].end_ns - runs[0].netrun_ns) if runs else 0
    return len(runs) * NS_PER_S / spent_ns if spent_ns > 0 else None
