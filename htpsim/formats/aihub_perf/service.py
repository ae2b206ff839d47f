"""A service time out of a perf.yaml: one row, one event, or a refusal that says what there is to choose from."""

from __future__ import annotations

from typing import Final

from htpsim.errors import FormatError, unknown_name
from htpsim.formats.aihub_perf.data import AGGREGATED, Number, PerfFile, PerfRow
from htpsim.formats.values import ServiceQuery, ServiceTime, time_ns
from htpsim.units import NS_PER_S

INFERENCE: Final = "inference_time"
CHUNK: Final = "time_to_first_token"
TOKEN: Final = "token_time"
_EVENTS: Final = (INFERENCE, CHUNK, TOKEN)
_STATISTICS: Final = {INFERENCE: ("average",), CHUNK: ("min", "max"), TOKEN: ("average",)}
_LISTED_MAX: Final = 8


def find_service_time(data: PerfFile, file: str, query: ServiceQuery) -> ServiceTime:
    """Find one published time [ns].

    The graph is the component. ``inference_time`` is the published latency; ``time_to_first_token`` has a min, one
    prompt chunk, and a max; ``token_time`` is derived, one over the published tokens a second.

    Raises
    ------
    FormatError
        When a name is unknown, more than one row is left, or the row does not hold the event.
    """
    chosen = _choose(data, file, query)
    event = query.event or INFERENCE
    if event not in _EVENTS:
        raise FormatError(unknown_name(f"{file}:{chosen.line}: event", event, _EVENTS))
    held = {name for name, value in _values(chosen).items() if value is not None}
    if event not in held:
        given = "no event" if query.event is None else f"event '{event}'"
        there = ", ".join(sorted(held)) or "none: the row holds no time"
        raise FormatError(f"{file}:{chosen.line}: got {given} for {chosen.place}, expected one of: {there}")
    if query.statistic not in _STATISTICS[event]:
        expected = " or ".join(_STATISTICS[event])
        raise FormatError(f"{file}:{chosen.line}: got statistic '{query.statistic}' of {event}, expected {expected}")
    value = chosen.ttft_max if query.statistic == "max" else _values(chosen)[event]
    if value is None:
        raise FormatError(f"{file}:{chosen.line}: got no {event} {query.statistic}, expected a number")
    where = f"{file}:{value.line}"
    if event == TOKEN:
        if value.value <= 0:
            raise FormatError(f"{where}: got {value.value} tokens/s, expected a rate above zero")
        derived = f"{where} 1/tokens_per_second of {chosen.place}"
        return ServiceTime(max(1, round(NS_PER_S / value.value)), derived, query.statistic)
    return ServiceTime(time_ns(value, file), f"{where} {event} of {chosen.place}", query.statistic)


def _values(row: PerfRow) -> dict[str, Number | None]:
    return {INFERENCE: row.inference_time, CHUNK: row.ttft_min, TOKEN: row.tokens_per_second}


def _choose(data: PerfFile, file: str, query: ServiceQuery) -> PerfRow:
    """Narrow the rows down by everything given; exactly one must be left."""
    rows = [item for item in data.rows if query.graph is not None or item.component != AGGREGATED] or list(data.rows)
    wanted = {"component": query.graph, "device": query.device, "runtime": query.runtime, "precision": query.precision}
    for name, value in wanted.items():
        if value is None:
            continue
        known = {str(held) for item in rows if (held := getattr(item, name)) is not None}
        rows = [item for item in rows if getattr(item, name) == value]
        if not rows:
            raise FormatError(unknown_name(f"{file}: {'graph' if name == 'component' else name}", value, known))
    if query.context_length is not None:
        lengths = sorted({item.context_length.value for item in rows if item.context_length})
        rows = [item for item in rows if item.context_length and item.context_length.value == query.context_length]
        if not rows:
            expected = ", ".join(map(str, lengths)) or "none: these rows have no context length"
            raise FormatError(f"{file}: context_length: got {query.context_length}, expected one of {expected}")
    if len(rows) > 1:
        raise FormatError(_ambiguous(file, rows))
    return rows[0]


def _ambiguous(file: str, rows: list[PerfRow]) -> str:
    """Say what distinguishes the rows that are left, and list some."""
    names = {"component": "graph", "device": "device", "runtime": "runtime", "precision": "precision"}
    differing = [given for name, given in names.items() if len({getattr(item, name) for item in rows}) > 1]
    if len({item.context_length and item.context_length.value for item in rows}) > 1:
        differing.append("context_length")
    listed = "; ".join(f"line {item.line}: {item.place}" for item in rows[:_LISTED_MAX])
    more = f"; and {len(rows) - _LISTED_MAX} more" if len(rows) > _LISTED_MAX else ""
    missing = ", ".join(differing) or "a file in which they do not repeat"
    return f"{file}: got {len(rows)} results that fit, expected one; give {missing}: {listed}{more}"
