"""Genie profile JSON: components with events with figures, in the usual and in the nested form.

    {"header": {"artifact_type": "GENIE_PROFILE"}, "components": [{"name": "dialog0", "type": "dialog", "events": [
        {"type": "GenieDialog_query", "duration": 5726945, "start": ..., "stop": ...,
         "time-to-first-token": {"value": 531665, "unit": "us"}, ...}]}]}

A component's events are known by their type, not by their place: a second query, a LoRA switch or a node of a
pipeline moves every place. The nested form holds lists of events by type of component: ``{"profile": {"dialog": []}}``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from htpsim.errors import FormatError, unknown_name
from htpsim.formats.form import Format, Match
from htpsim.formats.genie_profile.data import (
    GENERATED,
    GENERATION_RATE,
    INIT,
    PROMPT_RATE,
    PROMPT_TOKENS,
    Component,
    Figure,
    GenieProfile,
    ProfileEvent,
)
from htpsim.formats.genie_profile.report import facts, warnings
from htpsim.formats.genie_profile.slices import Slices
from htpsim.formats.jsonevents import Cursor
from htpsim.formats.samples import choose, refuse_selectors, statistic_ns
from htpsim.formats.source import Source, shown
from htpsim.formats.tree import Node
from htpsim.formats.values import Report, ServiceQuery, ServiceTime, Value, time_ns

NAME: Final = "genie-profile"

UNITS: Final = {
    "us": "us",
    "usec": "us",
    "MICROSEC": "us",
    "ms": "ms",
    "MILLISEC": "ms",
    "ns": "ns",
    "NANOSEC": "ns",
    "s": "s",
    "sec": "s",
    "SEC": "s",
    "toks/sec": "toks/sec",
    "tokens/s": "toks/sec",
    "TPS": "toks/sec",
    "toks/iteration": "toks/iteration",
    "TPI": "toks/iteration",
    "cycles": "cycles",
    "CYCLES": "cycles",
    "bytes": "bytes",
    "BYTES": "bytes",
    "": "",
    "NONE": "",
}
"""Every spelling of a unit, and the one used here."""

_TIMES: Final = frozenset({"ns", "us", "ms", "s"})
_COUNTS: Final = (PROMPT_TOKENS, GENERATED)
_RATES: Final = (PROMPT_RATE, GENERATION_RATE)
_EXPECTED: Final = "a Genie profile with 'components', or with 'profile'"
_KIND: Final = re.compile(r'"artifact_type"\s*:\s*"GENIE_PROFILE"')
_NESTED: Final = re.compile(r'\s*\{\s*"profile"\s*:\s*\{')
_QUERY: Final = re.compile(r'"Genie(?:Dialog|Pipeline|Node|Embedding)_\w+"|"time-to-first-token"')
_DERIVED: Final = {"create": "is_create", "query": "is_query", "free": "is_free"}
_TOKEN_TIME: Final = "token-time"


def sniff(source: Source) -> Match:
    """Say whether this is such a profile."""
    if not source.text.lstrip().startswith("{"):
        return Match.NO
    if _KIND.search(source.text):
        return Match.YES
    if not _QUERY.search(source.text):
        return Match.NO
    return Match.YES if _NESTED.match(source.text) or '"components"' in source.text else Match.NO


def read(source: Source, lenient: bool = False) -> Report:
    """Read a profile.

    Parameters
    ----------
    source
        The text.
    lenient
        Makes no difference: JSON is either well formed or not.

    Raises
    ------
    FormatError
        Names line and place of what is no JSON, of a figure without its unit, or of a negative time.

    Examples
    --------
    >>> from htpsim.formats.source import from_text
    >>> figure = '"time-to-first-token": {"value": 5, "unit": "ms"}'
    >>> text = f'{{"profile": {{"dialog": [{{"type": "GenieDialog_query", {figure}}}]}}}}'
    >>> read(from_text("a.json", text)).data.queries[0].figure("time-to-first-token")
    Value(value=5, unit='ms', line=1)
    """
    profile = parse(source)
    return Report(NAME, source.name, profile, facts(profile), source.notes + warnings(profile))


def parse(source: Source) -> GenieProfile:
    """Read a profile into its data; raises as :func:`read` does."""
    cursor = Cursor(source, _EXPECTED)
    header: Node | None = None
    metadata: Node | None = None
    components: list[Component] = []
    slices: Slices | None = None
    known = False
    for key in cursor.members():
        if key == "header":
            header = cursor.node(key)
        elif key == "metadata":
            metadata = cursor.node(key)
        elif key == "components":
            known = True
            components += [_component(item) for item in cursor.node(key).items()]
        elif key == "profile":
            known = True
            components += _nested(cursor.node(key))
        elif key == "traceEvents":
            slices = Slices()
            for event in cursor.events(key):
                slices.take(event)
    cursor.finish()
    if not known and slices is None:
        raise source.error(1, shown(source.text[:80]), _EXPECTED)
    return GenieProfile(
        version=_version(header),
        artifact=header.text("artifact_type") if header else None,
        timestamp=metadata.whole("timestamp", unit="us") if metadata else None,
        components=tuple(components),
        trace_events=slices.count if slices else None,
        crossing=slices.crossing() if slices else 0,
        truncated=cursor.truncated,
    )


def _nested(profile: Node) -> Iterator[Component]:
    for kind, node in profile.members().items():
        if isinstance(node.value, list):
            yield Component(kind, kind, node.line, tuple(_event(item) for item in node.items()))


def _component(node: Node) -> Component:
    name, kind = node.text("name"), node.text("type")
    found = node.find("events")
    events = tuple(_event(item) for item in found.items()) if found else ()
    return Component(name.value if name else "", kind.value if kind else "", node.line, events)


def _event(node: Node) -> ProfileEvent:
    kind = node.text("type")
    times = {name: node.whole(name, unit="us") for name in ("duration", "start", "stop")}
    for name, value in times.items():
        if value is not None and not 0 <= value.value < 2**63:
            node.members()[name].refuse("a number of us from 0 to 2^63")
    figures = [
        _figure(name, member)
        for name, member in node.members().items()
        if isinstance(member.value, dict) and "value" in member.value
    ]
    return ProfileEvent(kind.value if kind else "", node.line, **times, figures=tuple(item for item in figures if item))


def _figure(name: str, node: Node) -> Figure | None:
    value = node.number("value")
    written = node.text("unit")
    if value is None:
        return None
    if not 0 <= value.value < 2**63:
        node.members()["value"].refuse("a number from 0 to 2^63")
    spelled = written.value if written else ""
    if spelled not in UNITS:
        raise FormatError(unknown_name(f"{node.file}:{node.line}: unit of {name}", spelled, [u for u in UNITS if u]))
    unit = UNITS[spelled]
    wanted = ""
    if name.endswith("-time") or name == "time-to-first-token":
        wanted = "" if unit in _TIMES else "a time with its unit, such as us"
    elif name in _RATES:
        wanted = "" if unit == "toks/sec" else "a rate with its unit, toks/sec"
    elif name in _COUNTS:
        wanted = "" if unit == "" and value.value == int(value.value) else "a whole number without a unit"
    if wanted:
        got = f"{value.value} {spelled or 'without a unit'} at {node.where}"
        raise FormatError(f"{node.file}:{value.line}: got {got}, expected {wanted}")
    return Figure(name, Value(value.value, unit, value.line), spelled)


def _version(header: Node | None) -> str | None:
    node = header.find("version") if header else None
    if node is None:
        return None
    parts = [node.whole(part) for part in ("major", "minor", "patch")]
    return ".".join(str(part.value) for part in parts if part is not None) or None


def service_time(source: Source, query: ServiceQuery) -> ServiceTime:
    """Find a time over all queries of a component; the component takes the place of the graph.

    Raises
    ------
    FormatError
        When there is no such component, statistic or event, with the nearest, or several would do.
    """
    found, label = _samples(source, query)
    where = f"{source.name}:{found[0][1]}"
    values = tuple(value for value, _ in found)
    return ServiceTime(statistic_ns(values, query.statistic, where), f"{where} {label}", query.statistic)


def samples(source: Source, query: ServiceQuery) -> tuple[int, ...]:
    """Return a time of every query of a component [ns], in the order of the file."""
    return tuple(value for value, _ in _samples(source, query)[0])


def _samples(source: Source, query: ServiceQuery) -> tuple[list[tuple[int, int]], str]:
    """Return times with their lines, and what they are."""
    refuse_selectors(source.name, query)
    profile = parse(source)
    events = profile.events
    label = ""
    if query.graph is not None:
        names = list(dict.fromkeys(item.name for item in profile.components))
        name = choose(f"{source.name}:1", "component", query.graph, names)
        events = tuple(event for item in profile.components if item.name == name for event in item.events)
        label = f" of {name}"
    held: dict[str, list[tuple[int, int]]] = {}
    for event in events:
        for name, value, line in _timed(event, source.name):
            held.setdefault(name, []).append((value, line))
    wanted = query.event.replace("_", "-") if query.event else None
    chosen = choose(f"{source.name}:1", "event", wanted, sorted(held))
    return held[chosen], chosen + label


def _timed(event: ProfileEvent, file: str) -> Iterator[tuple[str, int, int]]:
    """Yield name, time [ns] and line of every time above zero of an event."""
    for figure in event.figures:
        if figure.value.unit in _TIMES and figure.value.value > 0 and figure.name != INIT:
            yield figure.name, time_ns(figure.value, file), figure.value.line
    if event.init is not None and event.init.value > 0:
        yield INIT, time_ns(event.init, file), event.init.line
    if event.duration is not None and event.duration.value > 0:
        for name, kind in _DERIVED.items():
            if getattr(event, kind):
                yield name, time_ns(event.duration, file), event.duration.line
    token = event.token_time_ns
    spent = event.figure("token-generation-time")
    if token and spent is not None:
        yield _TOKEN_TIME, token, spent.line


FORMAT: Final = Format(
    NAME,
    "Genie profile",
    "JSON that genie-t2t-run or genie-app writes: load time, time to first token, tokens a second, by component",
    sniff,
    read,
    service_time,
    samples,
)
