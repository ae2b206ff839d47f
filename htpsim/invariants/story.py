"""The story of a graphExecute: its every transition, who was served meanwhile, and how to see it again."""

from __future__ import annotations

from typing import Final

from htpsim.errors import HtpsimError
from htpsim.invariants.trace import NOWHERE, Call, Event, Trace

OTHERS_MAX: Final = 6
"""Others that are named for each wait; the rest are counted."""


def story(trace: Trace, execute: int) -> str:
    """Tell what happened to one graphExecute, event by event.

    Parameters
    ----------
    trace : Trace
        Where it happened.
    execute : int
        Its number.

    Raises
    ------
    HtpsimError
        When the trace has no such graphExecute.

    Examples
    --------
    >>> call = Call(execute=4, thread="vlm0", handle="vlm0", weight=2, graph="llm/decode", context="llm/all")
    >>> print(story(Trace(calls={4: call}, events=[Event(10, "call", 4), Event(15, "grant", 4)]), 4))
    graphExecute 4: graph llm/decode, context llm/all, thread vlm0, handle vlm0 (weight 2), process 0, path genie
                  10 ns  call
                  15 ns  grant    5 ns later
    """
    call = trace.calls.get(execute)
    if call is None:
        last = max(trace.calls, default=NOWHERE)
        raise HtpsimError(
            f"graphExecute: got {execute}, expected one of the {len(trace.calls)} of the trace, up to {last}"
        )
    lines = [_facts(call)]
    before: Event | None = None
    for event in trace.history(execute):
        after = "" if before is None else f"  {event.time_ns - before.time_ns:,} ns later"
        meanwhile = _meanwhile(trace, call, before, event)
        lines.append(f"{event.time_ns:>16,} ns  {event.kind:<7}{after}{meanwhile}".rstrip())
        before = event
    if before is not None and before.kind not in ("return", "release") and trace.last_ns > before.time_ns:
        lines.append(f"{trace.last_ns:>16,} ns  the trace ends")
    if trace.replay:
        lines.append(f"see it again with: {trace.replay}")
    return "\n".join(lines)


def _facts(call: Call) -> str:
    weight = "" if call.weight is None else f" (weight {call.weight})"
    facts = [
        f"graph {call.graph or '?'}",
        f"context {call.context or '?'}",
        f"thread {call.thread}",
        f"handle {call.handle}{weight}" if call.handle is not None else "no handle",
        f"process {call.process}",
        f"path {call.path}",
    ]
    if call.cores:
        facts.append(f"core {', '.join(map(str, call.cores))}")
    if call.level != NOWHERE:
        facts.append(f"level {call.level}")
    if call.solo_ns != NOWHERE:
        facts.append(f"work {call.solo_ns:,} ns")
    return f"graphExecute {call.execute}: {', '.join(facts)}"


def _meanwhile(trace: Trace, call: Call, before: Event | None, event: Event) -> str:
    """Say who was granted, or took the core, while it waited."""
    kinds = {"grant": ("grant",), "start": ("start", "resume"), "resume": ("start", "resume")}.get(event.kind)
    if before is None or kinds is None:
        return ""
    others = [
        other.execute
        for other in trace.events
        if other.kind in kinds
        and before.time_ns <= other.time_ns <= event.time_ns
        and other.execute != call.execute
        and _same_place(call, trace.calls.get(other.execute), event.kind)
    ]
    if not others:
        return ""
    named = ", ".join(map(str, others[:OTHERS_MAX]))
    more = f" and {len(others) - OTHERS_MAX} more" if len(others) > OTHERS_MAX else ""
    return f", after {named}{more}"


def _same_place(call: Call, other: Call | None, kind: str) -> bool:
    """Tell whether the other was served by the same guard, or on a core of the same."""
    if other is None:
        return False
    if kind == "grant":
        return other.process == call.process
    return bool(set(other.cores) & set(call.cores))
