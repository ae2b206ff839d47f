"""One measurement of one model: what was run, on what, and every time that was taken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from htpsim.experiments.measured.latency import Latency, doubts, latency
from htpsim.formats.writers.measured import Execution, Executions
from htpsim.units import format_time


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """What was run."""

    title: str
    """of the file, or of the graph that was built"""
    sha256: str
    file_bytes: int
    weights_bytes: int
    nodes: int
    opset: int
    dims: Mapping[str, int]
    """lengths of the dimensions that it leaves open"""
    seed: int
    """of its inputs"""

    @property
    def graph(self) -> str:
        """Name of the graph in tables: the title without its ending."""
        return Path(self.title).stem


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """On what it was run."""

    cpu: str
    architecture: str
    cpus: int
    """that this process may use"""
    system: str
    runtime: str
    """ONNX Runtime with its version"""
    providers: tuple[str, ...]
    governor: str | None
    """of the processor's frequency; None where the system does not say"""
    date: str
    command: str

    @property
    def chip(self) -> str:
        """What figures measured here may be combined with: figures of the same processor."""
        return f"CPU {self.cpu}"


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The runs with one number of threads."""

    threads: int
    load_ns: int
    """of the session that was run; of a file that was read before"""
    first_ns: int
    warmup_ns: tuple[int, ...]
    """runs between the first and those that count"""
    runs: tuple[Execution, ...]
    cpu_ns: int | None
    """processor time of all threads in the runs together; None where the system does not say"""
    resident_bytes: int | None
    """memory of the process with the session after its runs, less without; None where the system does not say"""
    switched: int | None
    """times that the system took a core away during the runs"""
    profiled: tuple[Execution, ...] = ()
    """further runs under the runtime's profiler, which slows them"""

    @cached_property
    def latency(self) -> Latency:
        """The runs that count."""
        return latency([run.netrun_ns for run in self.runs])

    @property
    def cpu_share(self) -> float | None:
        """Processor time over the length of the runs: how many cores they had."""
        spent = sum(run.netrun_ns for run in self.runs)
        return None if self.cpu_ns is None or not spent else self.cpu_ns / spent

    @property
    def profiler_slows(self) -> float | None:
        """Median of the profiled runs over that of the others; None where none were profiled."""
        if not self.profiled:
            return None
        return latency([run.netrun_ns for run in self.profiled]).median_ns / self.latency.median_ns

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, with every run; without what only the machine can tell."""
        return {
            "threads": self.threads,
            "load_ns": self.load_ns,
            "first_ns": self.first_ns,
            "warm": self.latency.to_dict(),
            "cpu_share": None if self.cpu_share is None else round(self.cpu_share, 6),
            "switched": self.switched,
            "resident_bytes": self.resident_bytes,
            "warmup_ns": list(self.warmup_ns),
            "runs_ns": [run.netrun_ns for run in self.runs],
            "profiler_slows": None if self.profiler_slows is None else round(self.profiler_slows, 6),
            "operators": [{"name": o.name, "kind": o.kind, "run_ns": o.run_ns, "share": round(o.share, 6)}
                          for o in operators(self.profiled)],
        }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One model with one or several numbers of threads."""

    model: Model
    machine: Machine
    cold_load_ns: int
    """of the first session"""
    cold: str
    """in which sense it was cold"""
    measured: tuple[Measured, ...]

    def doubts(self, measured: Measured) -> tuple[str, ...]:
        """Say what speaks against taking these runs for those of an idle machine."""
        found = doubts(measured.latency, measured.cpu_share if measured.threads == 1 else None)
        if measured.threads > self.machine.cpus:
            found = (f"more threads than the {self.machine.cpus} CPUs: they wait for one another", *found)
        return found

    def executions(self, measured: Measured, profiled: bool = False) -> Executions:
        """Return runs in the form that the writers of QNN's shapes take."""
        return Executions(
            graph=self.model.graph,
            said=f"{self.said(measured.threads)}{', profiled operator by operator' if profiled else ''}",
            load_ns=measured.load_ns,
            runs=measured.profiled if profiled else measured.runs,
        )

    def said(self, threads: int) -> str:
        """Say in a line what was measured with what."""
        m = self.machine
        return (
            f"measured with {m.runtime} ({', '.join(m.providers)}), not with QNN: {self.model.title}, "
            f"{threads} thread{'s' * (threads > 1)}, {m.cpu}, {m.date}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "model": {**asdict(replace(self.model, dims=dict(self.model.dims)))},
            "machine": asdict(self.machine),
            "cold_load_ns": self.cold_load_ns,
            "cold": self.cold,
            "threads": [one.to_dict() | {"doubts": list(self.doubts(one))} for one in self.measured],
        }

    def __repr__(self) -> str:
        times = ", ".join(f"{one.threads}: {format_time(one.latency.median_ns)}" for one in self.measured)
        return f"<Measurement of {self.model.title}: median by threads {times}>"


@dataclass(frozen=True, slots=True)
class OperatorTime:
    """What one operator takes in a run, on average."""

    name: str
    kind: str
    run_ns: int
    share: float
    """of all operators together"""


def operators(runs: tuple[Execution, ...]) -> list[OperatorTime]:
    """Return the mean of every operator over profiled runs, in the order of execution.

    >>> from htpsim.formats.writers.measured import Operator
    >>> conv, relu = Operator("a", "Conv", 3_000), Operator("b", "Relu", 1_000)
    >>> [(o.name, o.run_ns, o.share) for o in operators((Execution(0, 9_000, 8_000, (conv, relu)),))]
    [('a', 3000, 0.75), ('b', 1000, 0.25)]
    """
    sums: dict[tuple[int, str, str], int] = {}
    for run in runs:
        for number, one in enumerate(run.operators):
            key = (number, one.name, one.kind)
            sums[key] = sums.get(key, 0) + one.run_ns
    whole = sum(sums.values())
    return [
        OperatorTime(name, kind, round(spent / len(runs)), spent / whole if whole else 0.0)
        for (_, name, kind), spent in sums.items()
    ]


def by_kind(timed: list[OperatorTime]) -> list[tuple[str, int, int, float]]:
    """Return (kind, how many, time a run [ns], share) of operators, the longest first.

    >>> by_kind(
    ...     [OperatorTime("a", "Conv", 10, 0.5), OperatorTime("b", "Relu", 4, 0.2), OperatorTime("c", "Conv", 6, 0.3)]
    ... )
    [('Conv', 2, 16, 0.8), ('Relu', 1, 4, 0.2)]
    """
    found: dict[str, tuple[int, int, float]] = {}
    for one in timed:
        n, spent, share = found.get(one.kind, (0, 0, 0.0))
        found[one.kind] = n + 1, spent + one.run_ns, share + one.share
    rows = [(kind, *rest) for kind, rest in found.items()]
    return sorted(rows, key=lambda row: (-row[2], row[0]))
