"""The rules of the device as rules: exclusion and order on each core, and what the sweep of ``device`` finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Final

from htpsim.invariants.device import Sweep
from htpsim.invariants.rule import Finding, Rule, no_device, no_device_events
from htpsim.invariants.running import fits
from htpsim.invariants.spans import History, Span
from htpsim.invariants.trace import NOWHERE, Call, DeviceFacts


def crowded_cores(history: History) -> Iterator[Finding]:
    """Find clients on a core together that exclude each other."""
    cores: dict[int, list[tuple[int, int, Span]]] = {}
    for span in history.sound:
        for begin_ns, end_ns in span.holds:
            for core in span.call.cores:
                until_ns = end_ns if end_ns != NOWHERE else history.last_ns + 1
                if until_ns > begin_ns:
                    cores.setdefault(core, []).append((begin_ns, until_ns, span))
    for core, holds in sorted(cores.items()):
        holds.sort(key=lambda hold: (hold[0], hold[1], hold[2].execute))
        there: list[tuple[int, Span]] = []
        for begin_ns, until_ns, span in holds:
            there = [hold for hold in there if hold[0] > begin_ns]
            if not _together(history.trace.device, span.call, [other.call for _, other in there]):
                others = ", ".join(history.name(other) for _, other in there)
                together_ns = min(until_ns, max(end_ns for end_ns, _ in there)) - begin_ns
                message = f"{history.name(span)} took core {core} beside {others}, for {together_ns} ns"
                yield begin_ns, span.execute, message, together_ns
            there.append((until_ns, span))


def _together(device: DeviceFacts | None, call: Call, others: list[Call]) -> bool:
    """Tell whether they may share a core; where the device's constants are not known, they do not decide."""
    if device is not None:
        return fits(device, call, others)
    return all(other.pd == call.pd and not (other.qnn and call.qnn) for other in others)


def overtaken_in_context(history: History) -> Iterator[Finding]:
    """Find graphExecutes that began before an older one of their context had finished."""
    contexts: dict[tuple[int, str], list[Span]] = {}
    for span in history.sound:
        if span.submitted_ns != NOWHERE and span.call.context:
            contexts.setdefault((span.call.process, span.call.context), []).append(span)
    never_ns = history.last_ns + 1

    def order(span: Span) -> tuple[int, int, int]:
        # A simulation takes submissions of one instant by number; a recording's may have come in either order.
        started_ns = span.started_ns if span.started_ns != NOWHERE else never_ns
        return span.submitted_ns, 0 if history.trace.engine else started_ns, span.execute

    for (_, context), spans in contexts.items():
        spans.sort(key=order)
        for older, younger in pairwise(spans):
            if younger.started_ns == NOWHERE:
                continue
            until_ns = older.finished_ns if older.finished_ns != NOWHERE else never_ns
            if until_ns > younger.started_ns:
                message = (
                    f"{history.name(younger)} began before {older.execute} had finished, which was submitted to "
                    f"context {context} before it"
                )
                yield younger.started_ns, younger.execute, message, until_ns - younger.started_ns


def _swept(rule: str) -> Callable[[History], list[Finding]]:
    """Return the finder of a rule that the sweep judges; the sweep is made once a trace."""

    def find(history: History) -> list[Finding]:
        if "device" not in history.memo:
            history.memo["device"] = Sweep(history).run()
        return history.memo["device"][rule]

    return find


EXCLUSION: Final = Rule(
    "core-exclusion",
    "a core runs one QNN graph and one protection domain at a time, with HMX, HVX and VTCM within the core's",
    no_device_events,
    crowded_cores,
)
CONTEXT_FIFO: Final = Rule(
    "context-fifo",
    "a context runs one graphExecute at a time, in order of submission",
    no_device_events,
    overtaken_in_context,
)
RUNNING_SET: Final = Rule(
    "running-set", "nobody waits while one that goes after it takes the core", no_device, _swept("running-set")
)
EVICTION: Final = Rule(
    "eviction", "whoever lost its place yields when the rule says, and nobody else does", no_device, _swept("eviction")
)
DEVICE_WORK: Final = Rule(
    "device-work", "no core idles while a client waits that it could run", no_device, _swept("device-work")
)
COSTS: Final = Rule(
    "device-costs",
    "acquire, evict and restore take the time that the device takes for them",
    no_device,
    _swept("device-costs"),
)
