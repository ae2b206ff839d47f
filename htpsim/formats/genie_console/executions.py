"""Executions of graphs, paired from the lines of a verbose log.

A line says that a handle started, a later one that a graph finished; which handle is which graph is learned wherever
only one is open. Both stamps come from the same kind of line, because other lines of the log have another clock. Of
what several threads did at once, only what can be told apart is taken.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import astuple, dataclass, field
from typing import Final

from htpsim.errors import FormatError
from htpsim.formats.genie_console.data import ExecutionLog, GraphTimes, Prefill
from htpsim.formats.genie_console.times import VALUES_MAX, Recorder
from htpsim.units import NS_PER_S

EXECUTE: Final = "execute"
STEP: Final = "step"
GAP_GRAPH: Final = "host-gap-graph"
GAP_STEP: Final = "host-gap-step"
ALL: Final = ""

_OPEN_MAX: Final = 1024
_GRAPHS_MAX: Final = 4096
_PREFILLS_MAX: Final = 100_000
_RESTART_NS: Final = NS_PER_S
"""A clock that jumps back further is that of another run."""

_NAME: Final = re.compile(r".*?(?:^|_)ar(\d{1,6})_cl(\d{1,8})_(\d{1,3})_of_(\d{1,3})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Variant:
    """What a graph of an LLM is for."""

    tokens: int
    context_length: int
    split: int


def variant_of(graph: str) -> tuple[Variant, int] | None:
    """Return what the name of an LLM's graph says it is for, and of how many parts it is one; ``None`` for others.

    >>> variant_of("token_ar1_cl2048_3_of_4"), variant_of("vit")
    ((Variant(tokens=1, context_length=2048, split=2), 4), None)
    """
    found = _NAME.fullmatch(graph)
    return (Variant(int(found[1]), int(found[2]), int(found[3]) - 1), int(found[4])) if found else None


@dataclass(slots=True)
class Pairing:
    """Takes starts and finishes in the order of the log."""

    recorder: Recorder
    refuse: Callable[[int, str, str], FormatError]
    """Builds the refusal of a line."""

    variants: dict[str, Variant | None] = field(default_factory=dict)
    splits: dict[tuple[int, int], int] = field(default_factory=dict)
    """How many parts there are, by tokens and context length."""

    open: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Handles that run, with time and line of their start, oldest first."""

    names: dict[str, str] = field(default_factory=dict)
    now_ns: int = 0
    executions: int = 0
    incomplete: int = 0
    ambiguous: int = 0
    failed: int = 0
    unclocked: int = 0
    overlapping: bool = False
    start_ns: int | None = None
    end_ns: int | None = None
    busy_ns: int = 0
    busy_since_ns: int = 0
    last: tuple[int, Variant] | None = None
    """End of the last graph of an LLM, and which it was."""

    token_end_ns: int | None = None
    gap_ns: int | None = None
    tokens: int = 0
    prefill: Prefill | None = None
    prefills: list[Prefill] = field(default_factory=list)
    prefill_executions: int = 0

    def insert(self, graph: str, split: int, tokens: int, context_length: int) -> None:
        """Note what a graph is for, as the log states it."""
        self._note(graph, Variant(tokens, context_length, split))

    def restart(self) -> None:
        """Begin another run: what is open will not finish, and handles have new meanings."""
        self.incomplete += len(self.open)
        self.open.clear()
        self.names.clear()
        self.last = self.token_end_ns = None
        self._close_prefill()

    def started(self, now_ns: int, handle: str, line: int) -> None:
        """Take a start.

        Raises
        ------
        FormatError
            When more graphs are open than any device runs.
        """
        if now_ns < self.now_ns - _RESTART_NS:
            self.restart()
        self.now_ns = now_ns
        if self.open.pop(handle, None) is not None:
            self.incomplete += 1
        if self.open:
            self.overlapping = True
        else:
            self.busy_since_ns = now_ns
        if len(self.open) >= _OPEN_MAX:
            raise self.refuse(line, f"graph {len(self.open) + 1} that starts and none that finishes", "some to finish")
        self.open[handle] = (now_ns, line)
        self.gap_ns = now_ns - self.last[0] if self.last else None
        if self.start_ns is None and now_ns:
            self.start_ns = now_ns

    def finished(self, now_ns: int, graph: str, result: str, line: int) -> None:
        """Take a finish.

        Raises
        ------
        FormatError
            When it lies before its start, or there are more graphs or values than any log has.
        """
        handle = self._handle_of(graph)
        if handle is None:
            return
        start_ns, start_line = self.open.pop(handle)
        if now_ns < start_ns:
            expected = f"one not before the start in line {start_line}, at {start_ns / 1e6} ms"
            raise self.refuse(line, f"a finish at {now_ns / 1e6} ms", expected)
        self.now_ns = now_ns
        self.executions += 1
        if not self.open:
            self.busy_ns += max(0, now_ns - self.busy_since_ns)
        if now_ns == 0:
            self.unclocked += 1
        elif result.strip("0"):
            self.failed += 1
        else:
            self._record(now_ns, graph, now_ns - start_ns, line)
        self.end_ns = now_ns or self.end_ns

    def _handle_of(self, graph: str) -> str | None:
        """Find which of the open handles is this graph; learn it where only one is open."""
        if not self.open:
            self.incomplete += 1
            return None
        if len(self.open) == 1:
            (handle,) = self.open
            if len(self.names) < 2 * _GRAPHS_MAX:
                self.names[handle] = graph
            return handle
        same = [handle for handle in self.open if self.names.get(handle) == graph]
        unknown = [handle for handle in self.open if handle not in self.names]
        if same or len(unknown) == 1:
            return (same or unknown)[0]
        self.ambiguous += 1
        del self.open[next(iter(self.open))]
        return None

    def _record(self, now_ns: int, graph: str, spent_ns: int, line: int) -> None:
        self.recorder.add((EXECUTE, graph), spent_ns, line)
        if self.recorder.values > VALUES_MAX or len(self.recorder.series) > _GRAPHS_MAX:
            raise self.refuse(line, "ever new graphs and times", f"at most {_GRAPHS_MAX} graphs and {VALUES_MAX} times")
        variant = self._variant(graph)
        if variant is None or self.overlapping:
            self.last = self.token_end_ns = None
        elif variant.tokens > 1:
            self._in_prefill(now_ns, variant, spent_ns, line)
        else:
            self._in_decode(now_ns, variant, line)
        if variant is not None:
            self.last = (now_ns, variant)

    def _in_prefill(self, now_ns: int, variant: Variant, spent_ns: int, line: int) -> None:
        self.token_end_ns = None
        self.prefill_executions += 1
        begun = self.prefill or Prefill(now_ns - spent_ns, now_ns, 0, line)
        self.prefill = Prefill(begun.start_ns, now_ns, begun.chunks + (variant.split == 0), begun.line)

    def _in_decode(self, now_ns: int, variant: Variant, line: int) -> None:
        self._close_prefill()
        if self.gap_ns is not None and self.gap_ns >= 0 and self.last and self.last[1].tokens <= 1:
            self.recorder.add((GAP_STEP if variant.split == 0 else GAP_GRAPH, ALL), self.gap_ns, line)
        if variant.split + 1 < self.splits[variant.tokens, variant.context_length]:
            return
        self.tokens += 1
        if self.token_end_ns is not None and now_ns >= self.token_end_ns:
            step_ns = now_ns - self.token_end_ns
            self.recorder.add((STEP, str(variant.context_length)), step_ns, line)
            self.recorder.add((STEP, ALL), step_ns, line)
        self.token_end_ns = now_ns

    def _close_prefill(self) -> None:
        if self.prefill is not None and len(self.prefills) < _PREFILLS_MAX:
            self.prefills.append(self.prefill)
        self.prefill = None

    def _variant(self, graph: str) -> Variant | None:
        if graph not in self.variants:
            found = variant_of(graph)
            if found is None:
                if len(self.variants) < 2 * _GRAPHS_MAX:
                    self.variants[graph] = None
            else:
                self._note(graph, *found)
        return self.variants.get(graph)

    def _note(self, graph: str, variant: Variant, parts: int = 0) -> None:
        if len(self.variants) < 2 * _GRAPHS_MAX:
            self.variants[graph] = variant
            key = (variant.tokens, variant.context_length)
            self.splits[key] = max(self.splits.get(key, 0), variant.split + 1, parts)

    def result(self) -> ExecutionLog | None:
        """Return what was paired; ``None`` when no graph started or finished."""
        if not (self.executions or self.incomplete or self.ambiguous or self.open):
            return None
        self._close_prefill()
        recorder = self.recorder
        graphs = []
        for name in recorder.names(EXECUTE):
            times, variant = recorder.times((EXECUTE, name)), self._variant(name)
            if times is not None:
                tokens, length, split = astuple(variant) if variant else (None, None, None)
                graphs.append(GraphTimes(name, tokens, length, split, times))
        lengths = [int(name) for name in recorder.names(STEP) if name != ALL]
        steps = ((length, recorder.times((STEP, str(length)))) for length in lengths)
        last = self.last[1] if self.last and not self.overlapping else None
        return ExecutionLog(
            graphs=tuple(graphs),
            executions=self.executions,
            incomplete=self.incomplete + len(self.open),
            ambiguous=self.ambiguous,
            failed=self.failed,
            unclocked=self.unclocked,
            overlapping=self.overlapping,
            start_ns=self.start_ns,
            end_ns=self.end_ns,
            busy_ns=self.busy_ns,
            prefills=tuple(self.prefills),
            prefill_executions=self.prefill_executions,
            decode_tokens=self.tokens,
            steps=tuple((length, times) for length, times in steps if times is not None),
            step=recorder.times((STEP, ALL)),
            gap_graph=recorder.times((GAP_GRAPH, ALL)),
            gap_step=recorder.times((GAP_STEP, ALL)),
            ends_in_step=last is not None
            and last.tokens <= 1
            and last.split + 1 < self.splits[last.tokens, last.context_length],
            largest_context=last is not None and last.context_length == max(length for _, length in self.splits),
        )
