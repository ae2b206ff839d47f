"""The rule of requests: none is lost, none is served twice, and every graphExecute belongs to one that was begun."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from htpsim.invariants.rule import Finding, Rule
from htpsim.invariants.spans import History, Span
from htpsim.invariants.trace import NOWHERE, RequestEvent

_AFTER: Final = {
    "arrive": ("",),
    "begin": ("arrive",),
    "done": ("begin",),
    "drop": ("arrive",),
    "refuse": ("arrive", "begin"),
}
_STATES: Final = {"arrive": "queued", "begin": "running", "done": "done", "drop": "dropped", "refuse": "refused"}


@dataclass(slots=True)
class _Request:
    """One request as its events tell it."""

    events: list[RequestEvent] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)

    def at(self, kind: str) -> int:
        return next((event.time_ns for event in self.events if event.kind == kind), NOWHERE)

    @property
    def state(self) -> str:
        return _STATES[self.events[-1].kind] if self.events else "never arrived"


def lost_requests(history: History) -> Iterator[Finding]:
    """Find requests that are missing, in no state or in two, and graphExecutes that serve none."""
    requests: dict[tuple[str, int], _Request] = {}
    for event in history.trace.requests:
        requests.setdefault((event.client, event.request), _Request()).events.append(event)
    for span in history.sound:
        if span.call.request != NOWHERE:
            requests.setdefault((span.call.client, span.call.request), _Request()).spans.append(span)
    for (client, number), request in sorted(requests.items()):
        name = f"request {number} of {client}"
        yield from _wrong_events(name, request)
        yield from _wrong_service(name, request)
        if request.state == "done":
            yield from _wrong_tokens(name, request)
    yield from _wrong_counts(history, requests)


def _wrong_events(name: str, request: _Request) -> Iterator[Finding]:
    before, before_ns = "", NOWHERE
    for event in request.events:
        if before not in _AFTER[event.kind] or event.time_ns < before_ns:
            message = f"{name}: '{event.kind}' at {event.time_ns} ns after '{before or 'nothing'}' at {before_ns} ns"
            yield event.time_ns, name, message, 0
            return
        before, before_ns = event.kind, event.time_ns


def _wrong_service(name: str, request: _Request) -> Iterator[Finding]:
    """Find graphExecutes before a request was begun or after it was done, and those of one that was not served."""
    begun_ns, done_ns = request.at("begin"), request.at("done")
    for span in request.spans:
        if begun_ns == NOWHERE or request.state in ("dropped", "refused"):
            yield (
                span.called_ns,
                span.execute,
                f"graphExecute {span.execute} serves {name}, which is {request.state}",
                0,
            )
        elif span.called_ns < begun_ns:
            early_ns = begun_ns - span.called_ns
            yield (
                span.called_ns,
                span.execute,
                f"graphExecute {span.execute} came {early_ns} ns before {name} was begun",
                early_ns,
            )
        elif done_ns != NOWHERE and (span.returned_ns == NOWHERE or span.returned_ns > done_ns):
            yield span.called_ns, span.execute, f"graphExecute {span.execute} was still out when {name} was done", 0


def _wrong_tokens(name: str, request: _Request) -> Iterator[Finding]:
    """Find a request that is done without having yielded each of its tokens once, in order."""
    asked = next(event.tokens for event in request.events if event.kind == "arrive")
    yielding = [span for span in request.spans if NOWHERE not in (span.call.token, span.returned_ns)]
    tokens = [span.call.token for span in sorted(yielding, key=lambda span: span.returned_ns)]
    if (asked or tokens) and tokens != list(range(asked)):
        message = f"{name} asked for {asked} tokens and is done with {len(tokens)}: {tokens[:8]}"
        yield request.at("done"), name, message, len(tokens) - asked


def _wrong_counts(history: History, requests: dict[tuple[str, int], _Request]) -> Iterator[Finding]:
    """Find clients whose arrivals are not numbered without a gap: one is missing."""
    for client in sorted({client for client, _ in requests}):
        mine = {number: request for (name, number), request in requests.items() if name == client}
        arrived = [number for number, request in mine.items() if request.events]
        threads = {span.call.thread for request in mine.values() for span in request.spans}
        if len(threads) > 1:  # of several loops one may still be thinking, with a number of its own
            continue
        if sorted(arrived) != list(range(len(arrived))):
            missing = sorted(set(range(max(arrived) + 1)) - set(arrived))
            message = f"{client}: {len(arrived)} requests arrived, numbers {missing[:8]} are in no state"
            yield history.last_ns, client, message, len(missing)


def _no_requests(history: History) -> str:
    return "" if history.trace.requests else "the trace has no requests (arrive, begin, done ...)"


REQUESTS: Final = Rule(
    "requests",
    "arrivals are done, running, queued, dropped or refused, and no work is done for another",
    _no_requests,
    lost_requests,
)
