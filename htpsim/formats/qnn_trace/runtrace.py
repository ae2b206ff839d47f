"""RUN_TRACE: each execution of a graph on the DSP with its phases, in ticks of 19.2 MHz.

The whole is one event, and the phases lie within its time. Names of threads, such as "Core 0 Execs", are repeated
after each execution. The microseconds that an event states must agree with its ticks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from htpsim.errors import FormatError
from htpsim.formats.jsonevents import Event
from htpsim.formats.qnn_trace.data import EXECUTE, TICKS_PER_S, Phase, RunExecution
from htpsim.formats.skipped import SAID_MAX
from htpsim.formats.values import Value

_CORE: Final = re.compile(r"Core (\d{1,3})\b", re.ASCII)
_AGREES: Final = 1e-4
"""Stated times have six digits; a wrong clock is off by far more."""


@dataclass(slots=True)
class RunTrace:
    """Collects the events of a trace."""

    lenient: bool = False
    phases: dict[tuple[int, int, str], list[Phase]] = field(default_factory=dict)
    """By process, thread and graph."""

    cores: dict[tuple[int, int], int] = field(default_factory=dict)
    contradictions: int = 0
    notes: list[str] = field(default_factory=list)

    def take(self, event: Event) -> None:
        """Sort in one event.

        Raises
        ------
        FormatError
            When a number is missing, negative, or the ticks contradict the stated time.
        """
        place = (event.whole("pid") or 0, event.whole("tid") or 0)
        if event.text("ph") == "M":
            core = _CORE.match(event.inner("args").text("name") or "") if event.text("name") == "thread_name" else None
            if core:
                self.cores[place] = int(core[1])
            return
        if event.text("ph") != "X":
            return
        args = event.inner("args")
        graph = args.text("graph_name")
        name = event.text("name")
        if name is None:
            event.refuse("name", "a name such as 'Graph Execute'")
        if graph is None:
            args.refuse("graph_name", "the name of a graph")
        start, ticks = event.needed("ts"), event.needed("dur")
        stated, frequency = args.number("summary_time_us"), args.number("summary_htp_frequency_ghz")
        self._check_clock(event, ticks, stated)
        self.phases.setdefault((*place, graph), []).append(
            Phase(
                name,
                Value(start, "ticks", event.line),
                Value(ticks, "ticks", event.line),
                None if stated is None else Value(stated, "us", event.line),
                None if frequency is None else Value(frequency, "GHz", event.line),
            )
        )

    def _check_clock(self, event: Event, ticks: int, stated: float | None) -> None:
        expected = ticks * 10**6 / TICKS_PER_S
        if stated is None or abs(stated - expected) <= _AGREES * max(expected, 0.1):
            return
        problem = (
            f"{event.file}:{event.line}: got {stated} us for {ticks} ticks at {event.where}, "
            f"expected {expected:.6g} us, as ticks run at 19.2 MHz"
        )
        if not self.lenient:
            raise FormatError(problem)
        self.contradictions += 1
        if len(self.notes) < SAID_MAX:
            self.notes.append(problem)

    def executions(self) -> tuple[tuple[RunExecution, ...], tuple[Phase, ...]]:
        """Return the executions in the order of time, and the phases outside any."""
        found: list[RunExecution] = []
        loose: list[Phase] = []
        for (pid, tid, graph), phases in self.phases.items():
            core = self.cores.get((pid, tid))
            for group in _grouped(phases):
                if group[0].event == EXECUTE:
                    found.append(RunExecution(graph, core, group[0].ticks.line, tuple(group)))
                else:
                    loose += group
        found.sort(key=lambda item: (item.phases[0].start.value, item.line))
        return tuple(found), tuple(loose)


def _grouped(phases: Iterable[Phase]) -> list[list[Phase]]:
    """Put each phase with the execution within whose time it lies; one outside any is alone."""
    groups: list[list[Phase]] = []
    current: list[Phase] = []
    end = -1
    for phase in sorted(phases, key=lambda item: (item.start.value, item.event != EXECUTE, -item.ticks.value)):
        last = phase.start.value + phase.ticks.value
        if phase.event != EXECUTE and last <= end:
            current.append(phase)
            continue
        groups.append([phase])
        if phase.event == EXECUTE:
            current, end = groups[-1], last
    return groups
