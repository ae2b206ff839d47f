"""The data of a QNN trace: executions in ticks, operations in cycles, and a summary in microseconds."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final, TypeAlias

from htpsim.formats.values import Value

Number: TypeAlias = Value[int] | Value[float]

TICKS_PER_S: Final = 19_200_000
"""The clock of a RUN_TRACE. The file does not state it; the stated microseconds of every public trace agree with it."""

EXECUTE: Final = "QNN DSP Execute"


def ticks_ns(ticks: int) -> int:
    """Convert ticks of 19.2 MHz to nanoseconds [ns], rounded half to even.

    >>> ticks_ns(192), ticks_ns(7889)
    (10000, 410885)
    """
    return round(Fraction(ticks * 10**9, TICKS_PER_S))


@dataclass(frozen=True, slots=True)
class Phase:
    """One part of one execution on the DSP, or the whole of it."""

    event: str
    start: Value[int]
    """Since the beginning of the trace [ticks]."""

    ticks: Value[int]
    time: Value[float] | None
    """As the trace states it [us]."""

    frequency: Value[float] | None
    """Of the HTP while it lasted [GHz]."""

    @property
    def time_ns(self) -> int:
        """How long it lasted [ns], from the ticks, which are exact."""
        return ticks_ns(self.ticks.value)


@dataclass(frozen=True, slots=True)
class RunExecution:
    """One execution of one graph: the whole, and the phases within it."""

    graph: str
    core: int | None
    line: int
    phases: tuple[Phase, ...]

    def phase(self, event: str) -> Phase | None:
        """Return a phase by its name, ``None`` where it is absent."""
        return next((item for item in self.phases if item.event == event), None)


@dataclass(frozen=True, slots=True)
class Operation:
    """All runs of one operation of a trace in cycles."""

    name: str
    runs: int
    cycles: int
    line: int


@dataclass(frozen=True, slots=True)
class OpTrace:
    """Operations on the threads of the HTP [cycles]; no clock is stated, so there are no times.

    A trace draws each operation twice, by kind of thread and by thread. They are counted once.
    """

    events: int
    """As drawn."""

    distinct: int
    """Counted once."""

    cycles: int
    """Sum over the distinct ones; threads run side by side, so it may exceed the span."""

    span_cycles: int
    """From the first start to the last end."""

    operations: tuple[Operation, ...]
    """By name, most cycles first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What a summary states; what it does not is ``None``."""

    total: Number | None = None
    htp: Number | None = None
    overhead: Number | None = None
    vtcm_acquire: Number | None = None
    power_up: Number | None = None
    ddr_bandwidth: Number | None = None
    nodes: Value[int] | None = None
    average_node: Number | None = None
    longest_node: Value[str] | None = None
    timeline_cycles: Number | None = None
    idle_percent: Number | None = None
    others: tuple[tuple[str, Number], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One file. What it does not hold is ``None`` or empty."""

    artifact: Value[str] | None
    """RUN_TRACE or OP_TRACE as stated; ``None`` for a trace without a header, and for a summary."""

    version: str | None = None
    unit: str
    """Of the events: ``ticks`` (19.2 MHz), ``cycles``, or ``us`` as usual in such files; "" where there are none."""

    executions: tuple[RunExecution, ...] = ()
    """In the order of time."""

    loose: tuple[Phase, ...] = ()
    """Phases outside any execution."""

    operations: OpTrace | None = None
    events: tuple[tuple[str, Number], ...] = ()
    """Name and duration of each event of a trace without a header."""

    summary: Summary | None = None
    truncated: bool = False

    @property
    def graphs(self) -> tuple[str, ...]:
        """The names of all graphs, in the order of time."""
        return tuple(dict.fromkeys(item.graph for item in self.executions))

    def of(self, graph: str) -> tuple[RunExecution, ...]:
        """Return the executions of a graph."""
        return tuple(item for item in self.executions if item.graph == graph)

    @property
    def frequencies_ghz(self) -> tuple[float, float] | None:
        """The lowest and highest frequency of any phase [GHz]."""
        phases = [phase for item in self.executions for phase in item.phases]
        stated = [phase.frequency.value for phase in (*phases, *self.loose) if phase.frequency is not None]
        return (min(stated), max(stated)) if stated else None
