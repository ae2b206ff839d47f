"""The data of a perf.yaml: one row for every (component, precision, device, runtime, context length)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from htpsim.formats.values import Value

Number: TypeAlias = Value[int | float]

AGGREGATED: Final = "aggregated"
"""The component name of rows that old schemas give for the whole model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PerfRow:
    """One published result; what the file does not state is ``None``."""

    line: int
    component: str
    precision: str | None
    device: str | None
    chipset: str | None
    runtime: str
    job_status: Value[str] | None
    compute_unit: Value[str] | None
    layers: Value[int] | None
    layers_npu: Value[int] | None
    inference_time: Number | None
    """In us in old schemas, in ms in new ones; the unit says which."""

    inferences_per_second: Number | None
    """As published: old schemas give tokens a second of a whole pass, some devices count two cores."""

    peak_memory_min: Number | None
    """In bytes or MB; the unit says which."""

    peak_memory_max: Number | None
    context_length: Value[int] | None
    ttft_min: Number | None
    """Time to first token of the shortest prompt: one chunk."""

    ttft_max: Number | None
    tokens_per_second: Number | None
    prefill_tokens_per_second: Number | None

    @property
    def place(self) -> str:
        """Name the row for a table and for messages."""
        parts = [self.component, self.precision, self.device, self.runtime]
        if self.context_length is not None:
            parts.append(f"context {self.context_length.value}")
        return " / ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class PerfFile:
    """All rows of one file, in its order."""

    schema: str
    """``models`` (old: a list, or a single one) or ``precisions`` (new)."""

    rows: tuple[PerfRow, ...]
    unread: tuple[str, ...] = ()
    """Names of keys that the reader does not know."""

    def select(
        self,
        component: str | None = None,
        device: str | None = None,
        runtime: str | None = None,
        precision: str | None = None,
    ) -> tuple[PerfRow, ...]:
        """Return the rows that agree with everything given."""
        wanted = {"component": component, "device": device, "runtime": runtime, "precision": precision}
        return tuple(
            item
            for item in self.rows
            if all(value is None or getattr(item, name) == value for name, value in wanted.items())
        )
