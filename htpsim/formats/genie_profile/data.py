"""The data of a Genie profile: components, their events, the figures of each event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from htpsim.formats.tokenrates import WITHOUT_FIRST, agrees, definition
from htpsim.formats.values import Value
from htpsim.units import NS_PER_S, TIME_UNITS

Number: TypeAlias = Value[int] | Value[float]

INIT: Final = "init-time"
TTFT: Final = "time-to-first-token"
PROMPT_TOKENS: Final = "num-prompt-tokens"
PROMPT_RATE: Final = "prompt-processing-rate"
GENERATED: Final = "num-generated-tokens"
GENERATION: Final = "token-generation-time"
GENERATION_RATE: Final = "token-generation-rate"

_QUERIES: Final = ("_query", "Query", "_execute", "_generate", "_setData")


@dataclass(frozen=True, slots=True)
class Figure:
    """One key figure of an event, by the name the file gives it."""

    name: str
    value: Number
    unit_written: str
    """As the file spells it; `value` has the usual spelling."""


@dataclass(frozen=True, slots=True)
class ProfileEvent:
    """One call into Genie."""

    type: str
    line: int
    duration: Value[int] | None
    """[us]"""

    start: Value[int] | None
    stop: Value[int] | None
    figures: tuple[Figure, ...] = ()

    def figure(self, name: str) -> Number | None:
        """Return a figure, ``None`` where it is absent."""
        return next((item.value for item in self.figures if item.name == name), None)

    @property
    def is_create(self) -> bool:
        """Whether it creates the component, loading included."""
        return self.type.endswith("_create")

    @property
    def is_free(self) -> bool:
        """Whether it frees the component."""
        return self.type.endswith("_free")

    @property
    def is_query(self) -> bool:
        """Whether it runs a prompt, an embedding, or a node of a pipeline."""
        return self.type.endswith(_QUERIES)

    @property
    def init(self) -> Number | None:
        """The time to load: the stated one, else that of the whole call, as pipelines and nodes state no other."""
        stated = self.figure(INIT)
        return stated if stated is not None or not self.is_create else self.duration

    @property
    def token_time_ns(self) -> int | None:
        """The time of one token [ns], by the definition that the stated rate follows; ``None`` when it follows none."""
        spent, tokens, rate = self.seconds(GENERATION), self.figure(GENERATED), self.figure(GENERATION_RATE)
        if spent is None or tokens is None or tokens.value < 1:
            return None
        count = int(tokens.value)
        if rate is not None:
            if not agrees(count, spent, rate.value):
                return None
            count -= definition(count, spent, rate.value) == WITHOUT_FIRST
        return round(spent * NS_PER_S / count) if count else None

    def seconds(self, name: str) -> float | None:
        """Return a figure as seconds, ``None`` where it is absent or no time."""
        value = self.figure(name)
        if value is None or value.unit not in TIME_UNITS:
            return None
        return value.value * TIME_UNITS[value.unit] / NS_PER_S


@dataclass(frozen=True, slots=True)
class Component:
    """One dialog, embedding, engine, pipeline or node."""

    name: str
    type: str
    line: int
    events: tuple[ProfileEvent, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GenieProfile:
    """One profile. What it does not state is ``None``; without any figure there are no zeros either."""

    version: str | None
    artifact: Value[str] | None
    timestamp: Value[int] | None
    components: tuple[Component, ...]
    trace_events: int | None
    """How many slices are listed beside the components; ``None`` when there is no such list."""

    crossing: int = 0
    """How many slices begin within another of their thread and end behind it."""

    truncated: bool = False

    @property
    def events(self) -> tuple[ProfileEvent, ...]:
        """All events of all components, in the order of the file."""
        return tuple(event for component in self.components for event in component.events)

    @property
    def create(self) -> ProfileEvent | None:
        """The first event that creates a component."""
        return next((event for event in self.events if event.is_create), None)

    @property
    def queries(self) -> tuple[ProfileEvent, ...]:
        """All events that run something, whichever place they have in the file."""
        return tuple(event for event in self.events if event.is_query)

    @property
    def free(self) -> ProfileEvent | None:
        """The first event that frees a component."""
        return next((event for event in self.events if event.is_free), None)

    @property
    def has_figures(self) -> bool:
        """Whether any event has a key figure."""
        return any(event.figures for event in self.events)
