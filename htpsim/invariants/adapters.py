"""The rule of adapters: a copy answers with one LoRA adapter at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from htpsim.invariants.rule import Finding, Rule
from htpsim.invariants.spans import History, Span
from htpsim.invariants.trace import NOWHERE

Turn = tuple[int, int, Span]
"""(first call, last return, its first graphExecute) of one request on one copy."""


def mixed_adapters(history: History) -> Iterator[Finding]:
    """Find requests that were answered on one copy at one time with different adapters."""
    turns: dict[tuple[int, str], dict[tuple[str, int], Turn]] = {}
    for span in history.sound:
        call = span.call
        if call.context and call.request != NOWHERE:
            until_ns = span.returned_ns if span.returned_ns != NOWHERE else history.last_ns
            copy = turns.setdefault((call.process, call.context), {})
            begin_ns, end_ns, first = copy.get((call.client, call.request), (span.called_ns, until_ns, span))
            copy[call.client, call.request] = begin_ns, max(end_ns, until_ns), first
    for copy in turns.values():
        if len({first.call.adapter for _, _, first in copy.values()}) > 1:
            yield from _overlaps(history, sorted(copy.values(), key=lambda turn: turn[:2]))


def _overlaps(history: History, turns: list[Turn]) -> Iterator[Finding]:
    latest: dict[str, Turn] = {}
    for begin_ns, end_ns, first in turns:
        for adapter, (_, until_ns, other) in latest.items():
            if adapter != first.call.adapter and until_ns > begin_ns:
                message = (
                    f"{history.name(first)} answers with adapter '{first.call.adapter}' on a copy on which "
                    f"{other.call.thread} still answers with '{adapter}'"
                )
                yield begin_ns, first.execute, message, min(until_ns, end_ns) - begin_ns
        if first.call.adapter not in latest or latest[first.call.adapter][1] < end_ns:
            latest[first.call.adapter] = begin_ns, end_ns, first


def _no_adapters(history: History) -> str:
    return "" if any(call.adapter for call in history.trace.calls.values()) else "no request has a LoRA adapter"


ADAPTERS: Final = Rule("adapters", "a copy answers with one LoRA adapter at a time", _no_adapters, mixed_adapters)
