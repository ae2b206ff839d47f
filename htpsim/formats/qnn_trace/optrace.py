"""OP_TRACE: each operation on the threads of the HTP, in cycles, drawn once by kind of thread and once by thread."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from htpsim.formats.jsonevents import Event
from htpsim.formats.qnn_trace.data import Operation, OpTrace

_Key: TypeAlias = tuple[str, str, int, int]


@dataclass(slots=True)
class OpCollector:
    """Counts operations; the same one drawn under another process is the same one."""

    drawn: int = 0
    counts: dict[_Key, dict[int, int]] = field(default_factory=dict)
    """How often each operation is drawn, by process."""

    lines: dict[str, int] = field(default_factory=dict)
    strings: dict[str, str] = field(default_factory=dict)

    def take(self, event: Event) -> None:
        """Count one event.

        Raises
        ------
        FormatError
            When its name or a number is missing, or a number is negative.
        """
        if event.text("ph") != "X":
            return
        name = event.text("name")
        if name is None:
            event.refuse("name", "the name of an operation")
        name = self.strings.setdefault(name, name)
        identity = event.inner("args").text("ID") or ""
        key = (name, self.strings.setdefault(identity, identity), event.needed("ts"), event.needed("dur"))
        by_process = self.counts.setdefault(key, {})
        pid = event.whole("pid") or 0
        by_process[pid] = by_process.get(pid, 0) + 1
        self.lines.setdefault(name, event.line)
        self.drawn += 1

    def trace(self) -> OpTrace | None:
        """Return what was counted; ``None`` when there was nothing."""
        if not self.counts:
            return None
        runs: dict[str, int] = {}
        cycles: dict[str, int] = {}
        for (name, _, _, duration), by_process in self.counts.items():
            count = max(by_process.values())
            runs[name] = runs.get(name, 0) + count
            cycles[name] = cycles.get(name, 0) + count * duration
        first = min(start for _, _, start, _ in self.counts)
        last = max(start + duration for _, _, start, duration in self.counts)
        operations = [Operation(name, runs[name], cycles[name], self.lines[name]) for name in runs]
        operations.sort(key=lambda item: (-item.cycles, item.line))
        return OpTrace(self.drawn, sum(runs.values()), sum(cycles.values()), last - first, tuple(operations))
