"""Rules of the calls: their events come in order, and a thread waits for its call."""

from __future__ import annotations

from collections.abc import Iterator

from htpsim.invariants.rule import Finding, Rule, nothing_missing
from htpsim.invariants.spans import History, Span
from htpsim.invariants.trace import NOWHERE


def broken_order(history: History) -> Iterator[Finding]:
    """Find graphExecutes whose events do not follow each other, and events of nobody or after the end."""
    trace = history.trace
    for span in history.spans.values():
        if span.fault is not None:
            event, why = span.fault
            yield event.time_ns, span.execute, f"{history.name(span)}: '{event.kind}' {why}", 0
    for event in trace.events:
        if event.execute not in trace.calls:
            yield event.time_ns, event.execute, f"'{event.kind}' of graphExecute {event.execute}, never called", 0
        elif event.time_ns > history.last_ns:
            late_ns = event.time_ns - history.last_ns
            yield event.time_ns, event.execute, f"'{event.kind}' {late_ns} ns after the end of the trace", late_ns


def second_calls(history: History) -> Iterator[Finding]:
    """Find threads that call again before their call has returned."""
    threads: dict[tuple[int, str], Span] = {}
    for span in sorted(history.sound, key=lambda span: span.called_ns):
        key = span.call.process, span.call.thread
        before = threads.get(key)
        threads[key] = span
        if before is None or (before.returned_ns != NOWHERE and before.returned_ns <= span.called_ns):
            continue
        still_ns = (before.returned_ns if before.returned_ns != NOWHERE else history.last_ns) - span.called_ns
        message = f"{history.name(span)} called while graphExecute {before.execute} of its thread was out"
        yield span.called_ns, span.execute, f"{message}, for {still_ns} ns more", still_ns


def moved_contexts(history: History) -> Iterator[Finding]:
    """Find graphs that ran on other cores than their context was loaded on."""
    cores: dict[tuple[int, str], tuple[int, ...]] = {}
    for span in history.sound:
        if span.started_ns == NOWHERE or not span.call.cores or not span.call.context:
            continue
        home = cores.setdefault((span.call.process, span.call.context), span.call.cores)
        if home != span.call.cores:
            message = f"{history.name(span)} ran on cores {span.call.cores}; context {span.call.context} is on {home}"
            yield span.started_ns, span.execute, message, 0


def _no_cores(history: History) -> str:
    return (
        "" if any(call.cores for call in history.trace.calls.values()) else "the trace does not say which core ran what"
    )


CAUSALITY = Rule(
    "causality", "each graphExecute's events come once and in order", nothing_missing, broken_order
)  # fmt: skip
ONE_CALL = Rule("one-call", "a thread has at most one graphExecute outstanding", nothing_missing, second_calls)
PLACEMENT = Rule("placement", "a context's graphs run on the cores it was loaded on", _no_cores, moved_contexts)
