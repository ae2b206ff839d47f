"""One value of the scenario with what it rests on: a stated figure, or the service time of a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from htpsim.experiments.calibrate.evidence import Evidence, Origin, Stated, Timing
from htpsim.experiments.calibrate.service import FEW, Method, ServiceModel, service_model, told
from htpsim.scenario.quantities import write
from htpsim.units import format_bytes, format_time

SHOWN: Final[dict[str, Callable[[int], str]]] = {
    "ns": format_time, "bytes": format_bytes, "bytes_per_s": lambda value: f"{format_bytes(value)}/s",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """One value of the scenario with what it rests on."""

    value: Any
    """As TOML states it."""

    mark: str
    source: str
    shown: str = ""
    n: int | None = None
    model: ServiceModel | None = None


@dataclass(slots=True, kw_only=True)
class Asked:
    """What the user decides, and files do not state."""

    instances: int = 1
    method: Method = "auto"
    statistic: str = "average"
    image_tokens: int | None = None
    as_recorded: bool = False
    """One instance that gets the recorded prompt once, instead of instances that are asked again and again."""


def stated_leaf(stated: Stated) -> Leaf:
    """Return a stated value as the scenario writes it."""
    value = write(stated.value, stated.unit) if stated.unit and not isinstance(stated.value, str) else stated.value
    shown = SHOWN[stated.unit](int(stated.value)) if stated.unit else str(value)
    return Leaf(value=value, mark=stated.mark, source=stated.source, shown=shown, n=stated.n)


def tokens_leaf(values: Sequence[int], source: str) -> Leaf:
    """Return how many tokens requests had: a number where all had as many, else the numbers themselves.

    >>> tokens_leaf([26, 26], "a log").value, tokens_leaf([26, 9], "a log").value
    (26, {'sample': [9, 26]})
    """
    n, low, high = len(values), min(values), max(values)
    alike = low == high
    shown = str(low) if alike else f"{n} values, {low} to {high}"
    value: Any = low if alike else {"sample": sorted(values)}
    return Leaf(value=value, mark="derived", source=f"{source}; n = {n}", shown=shown, n=n)


def service_leaf(timing: Timing, asked: Asked, evidence: Evidence) -> Leaf:
    """Return the service time of one graph, and warn of what makes it doubtful."""
    n = timing.n
    model = service_model(
        timing.counts, n, method=asked.method, statistic=asked.statistic, first_ns=timing.first_ns
    )  # fmt: skip
    if model.cold_ns is not None:
        evidence.warn(
            f"{timing.origin}: the first execution took {format_time(model.cold_ns)}, the median of the others "
            f"{format_time(model.median_ns)}: a cold start, left out"
        )
        more = Stated(
            model.cold_ns - model.median_ns, Origin(timing.origin.file, timing.origin.first, what=f"{timing.graph}"),
            "derived", "ns", 1, "its first execution less the median of the others",
        )  # fmt: skip
        evidence.device.setdefault("first_call", more)
    if n is not None and n < FEW:
        evidence.warn(f"{timing.graph}: {n} execution{'s' * (n > 1)}, too few to say how they spread")
    counted_in = "the number of inferences is not stated" if n is None else f"n = {model.n}"
    source = f"{timing.origin}; {counted_in}; {model.reason}"
    if timing.detailed:
        source += "; profiled in detail, so far too long"
    return Leaf(value=model.written, mark=timing.mark, source=source, shown=told(model), n=model.n, model=model)


def best(timings: Sequence[Timing], evidence: Evidence) -> Timing:
    """Return what rests on most executions, one that was not profiled in detail if there is one."""
    chosen = min(timings, key=lambda item: (item.detailed, item.part is None, -(item.n or 0)))
    for other in timings:
        if other is not chosen:
            evidence.warn(f"{other.graph}: timed by {chosen.origin} and {other.origin}; took the first")
    return chosen
