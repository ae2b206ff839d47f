"""The graphs of an LLM: for each context length that was timed (tier) as many as the model has parts.

A file that times graphs gives each part its own times; one that times whole steps only, equal parts of a step. The
longest context length that was timed stands in for all longer ones, up to the model's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from htpsim.errors import HtpsimError
from htpsim.experiments.calibrate.evidence import Evidence, Origin, Stage, Stated, Timing, plain_name
from htpsim.experiments.calibrate.leaf import Asked, Leaf, best, service_leaf, stated_leaf
from htpsim.experiments.calibrate.service import service_model
from htpsim.scenario.quantities import write
from htpsim.units import format_time

Row = dict[str, Any]


def llm_model(timings: Sequence[Timing], evidence: Evidence, asked: Asked) -> dict[str, Any]:
    """Return the LLM's model; each of its graphs has its part, for the context it lies in.

    Raises
    ------
    HtpsimError
        When no file times one of the two stages.
    """
    unfit = [item for item in timings if item.part is not None and item.part < 0]
    for item in unfit:
        evidence.warn(f"{item.origin}: parts are counted from 1, so this is none; left out")
    stages: dict[Stage, list[Timing]] = {
        stage: [item for item in timings if item.stage == stage and item not in unfit]
        for stage in ("prefill", "decode")
    }
    for stage, found in stages.items():
        if not found:
            text = f"calibrate: got no time of any {stage} graph of the LLM, expected both stages timed"
            raise HtpsimError("\n".join([text, *(f"! {warning}" for warning in evidence.warnings)]))
    widest = max(item.tokens or 0 for item in stages["prefill"])
    if widest:
        stages["prefill"] = [item for item in stages["prefill"] if item.tokens in (widest, None)]
        where = stages["prefill"][0].origin
        note = "AR-n of its prefill graphs"
        evidence.llm.setdefault("ar", Stated(widest, Origin(where.file, where.first), "derived", note=note))
    model: dict[str, Any] = {"role": "llm"} | {key: stated_leaf(stated) for key, stated in evidence.llm.items()}
    parts = max([max(item.parts, item.part + 1) for item in timings if item.part is not None], default=0)
    parts = parts or (int(evidence.parts.value) if evidence.parts else 1)
    for stage, found in stages.items():
        model[stage] = _Graphs(stage, parts, evidence, asked).rows(found)
    return model


@dataclass(frozen=True, slots=True)
class _Graphs:
    """The graphs of one stage."""

    stage: Stage
    parts: int
    evidence: Evidence
    asked: Asked

    def rows(self, timings: Sequence[Timing]) -> list[Row]:
        """Return the rows of every tier, those of one length after another."""
        told_apart = [item for item in timings if item.part is not None]
        make = self.separate if told_apart else self.divided
        tiers: dict[int, list[Timing]] = {}
        for item in told_apart or timings:
            tiers.setdefault(item.tier or 0, []).append(item)
        wanted = self.wanted(sorted(tiers))
        found = []
        for tier, label in wanted.items():
            several = {"tier_tokens": label} if len(wanted) > 1 else {}
            found += [row | several for row in make(tiers[tier], f"_cl{tier}" if several else "")]
        return found

    def wanted(self, tiers: list[int]) -> dict[int, int]:
        """Return the context lengths to write with the one that each stands for; no more than the model has."""
        context = self.evidence.llm.get("context_tokens")
        longest = int(context.value) if context is not None else tiers[-1]
        needed = [tier for number, tier in enumerate(tiers) if number == 0 or tiers[number - 1] < longest]
        last = needed[-1]
        if 0 < last < longest and len(tiers) > 1:
            self.evidence.warn(
                f"{self.stage}: no graph for a context longer than {last} was timed: that one stands for all up to "
                f"{longest}"
            )
        return {tier: max(tier, longest) if tier == last else tier for tier in needed}

    def separate(self, timings: Sequence[Timing], suffix: str) -> list[Row]:
        """Return one graph a part, by the name that it has on the device."""
        by_part: dict[int, list[Timing]] = {}
        for item in timings:
            by_part.setdefault(item.part or 0, []).append(item)
        rows: list[Row] = []
        known: list[int] = []
        for part in range(self.parts):
            name, service = f"{self.stage}{part}{suffix}", None
            if part in by_part:
                chosen = best(by_part[part], self.evidence)
                name, service = plain_name(chosen.graph, part), service_leaf(chosen, self.asked, self.evidence)
                known += [service.model.mean_ns] if service.model else []
            rows.append({"name": name, "part": part, "service": service})
        lacking = [row for row in rows if row["service"] is None]
        if lacking:
            names = ", ".join(str(row["part"] + 1) for row in lacking)
            self.evidence.warn(
                f"{self.stage}: no time of part {names} of {self.parts}: the mean of the others is assumed"
            )
        mean = sum(known) // len(known)
        for row in lacking:
            row["service"] = Leaf(
                value=write(mean, "ns"), mark="assumed", shown=format_time(mean),
                source=f"the mean of {len(known)} of {self.parts} parts: no file times this one",
            )  # fmt: skip
        return rows

    def divided(self, timings: Sequence[Timing], suffix: str) -> list[Row]:
        """Return equal graphs that together take the time of a whole step."""
        chosen = best(timings, self.evidence)
        service = service_leaf(chosen, self.asked, self.evidence)
        if self.parts > 1:
            # Drawn apart, parts would spread less than the step they make; its average says what is known.
            share = service_model(chosen.counts, None).mean_ns // self.parts
            service = Leaf(
                value=write(share, "ns"), mark="derived", shown=f"constant {format_time(share)}", n=chosen.n,
                source=f"{chosen.origin}; the average, split evenly over {self.parts} graphs", model=service.model,
            )  # fmt: skip
        return [{"name": f"{self.stage}{part}{suffix}", "part": part, "service": service} for part in range(self.parts)]
