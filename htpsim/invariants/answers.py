"""The rule of answers: a finished graphExecute is back at its host when the RPC says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from htpsim.invariants.rule import Finding, Rule, no_device
from htpsim.invariants.spans import History
from htpsim.invariants.trace import NOWHERE


def wrong_answers(history: History) -> Iterator[Finding]:
    """Find answers that took another time than the RPC's, or than the waking of a host that had stopped polling."""
    device = history.trace.device
    assert device is not None
    for span in history.sound:
        if NOWHERE in (span.returned_ns, span.finished_ns):
            continue
        polled = device.rpc_polling_ns
        asleep = polled != NOWHERE and span.finished_ns - span.submitted_ns > polled
        wanted_ns = device.rpc_return_ns + (device.rpc_wake_ns if asleep else 0)
        took_ns = span.returned_ns - span.finished_ns
        if took_ns != wanted_ns:
            message = f"{history.name(span)} was back at its host after {took_ns} ns, expected {wanted_ns}"
            yield span.returned_ns, span.execute, message, took_ns - wanted_ns


def _no_rpc(history: History) -> str:
    device = history.trace.device
    if device is not None and device.rpc_return_ns == NOWHERE:
        return "the trace does not say how long an answer takes to its host"
    return no_device(history)


ANSWERS: Final = Rule(
    "answers", "an answer takes the time of its RPC, and wakes a host that no longer polls", _no_rpc, wrong_answers
)
