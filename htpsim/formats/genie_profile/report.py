"""The table of a Genie profile, and what a reader of its figures should know."""

from __future__ import annotations

from htpsim.formats.genie_profile.data import (
    GENERATED,
    GENERATION,
    GENERATION_RATE,
    PROMPT_RATE,
    PROMPT_TOKENS,
    TTFT,
    GenieProfile,
    ProfileEvent,
)
from htpsim.formats.tokenrates import agrees, definition
from htpsim.formats.values import Fact, row

_NEAR = 0.02


def facts(profile: GenieProfile) -> tuple[Fact, ...]:
    """List every event with its figures, as the file states them."""
    rows = [
        row("profile", "artifact", profile.artifact),
        Fact("profile", "version", profile.version, note="derived from its parts"),
        row("profile", "timestamp", profile.timestamp),
    ]
    for component in profile.components:
        for event in component.events:
            section = f"{component.name or component.type} / {event.type}"
            rows.append(row(section, "duration", event.duration))
            rows += [
                row(section, item.name, item.value, "" if item.unit_written == item.value.unit else item.unit_written)
                for item in event.figures
            ]
            if event.token_time_ns is not None:
                rows.append(
                    Fact(section, "time per token", event.token_time_ns, "ns", note="derived: time over tokens")
                )
    if not profile.has_figures:
        rows.append(Fact("profile", "key figures", None, note="not in the file"))
    if profile.trace_events is not None:
        rows.append(Fact("trace", "slices", profile.trace_events, "count", note="derived"))
    return tuple(rows)


def warnings(profile: GenieProfile) -> tuple[str, ...]:
    """Say what is missing, cut, or does not agree with itself."""
    notes = []
    if not profile.has_figures:
        notes.append("no KPI in this file: nothing was measured, which is not zero")
    if profile.crossing:
        notes.append(
            f"{profile.crossing} slices cross another one of their thread: a viewer that nests them draws wrongly"
        )
    if profile.truncated:
        notes.append("the file ends in the middle: what comes after the last whole slice is missing")
    for event in profile.events:
        notes += _consistent(event)
    return tuple(notes)


def _consistent(event: ProfileEvent) -> list[str]:
    notes = []
    where = f"line {event.line}: {event.type}"
    if event.start and event.stop and event.duration and event.stop.value - event.start.value != event.duration.value:
        notes.append(f"{where}: stop less start is not the duration")
    tokens, seconds, rate = event.figure(GENERATED), event.seconds(GENERATION), event.figure(GENERATION_RATE)
    if tokens and seconds and rate and tokens.value and rate.value:
        rule = definition(int(tokens.value), seconds, rate.value)
        if rule:
            notes.append(f"{where}: token-generation-rate is {rule}, n tokens in t seconds; releases differ in this")
        elif not agrees(int(tokens.value), seconds, rate.value):
            notes.append(f"{where}: {tokens.value} tokens in {seconds:g} s are not {rate.value} tokens/s")
    prompt, first, speed = event.figure(PROMPT_TOKENS), event.seconds(TTFT), event.figure(PROMPT_RATE)
    if prompt and first and speed and speed.value and abs(prompt.value / first / speed.value - 1) > _NEAR:
        notes.append(
            f"{where}: {prompt.value} prompt tokens in {first:g} s to the first token are not {speed.value} tokens/s"
        )
    return notes
