"""From everything that files hold to one scenario: models, device, instances, the recorded run as a case of its own.

What several files time is taken from the best of them; what none states is left to the scenario's default, with a
warning where results would mislead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from htpsim.errors import HtpsimError
from htpsim.experiments.calibrate.evidence import Evidence, Origin, Role, Stage, Stated, Timing, plain_name, pooled
from htpsim.experiments.calibrate.memory import contexts_of, load_bandwidth
from htpsim.experiments.calibrate.service import FEW, Method, ServiceModel, service_model, told
from htpsim.scenario.quantities import write
from htpsim.units import NS_PER_S, format_bytes, format_time

SHOWN: Final[dict[str, Callable[[int], str]]] = {
    "ns": format_time, "bytes": format_bytes, "bytes_per_s": lambda value: f"{format_bytes(value)}/s",
}  # fmt: skip
SLACK_NS: Final = NS_PER_S
"""How much longer than the recording a run that repeats it may take."""


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


@dataclass(slots=True, kw_only=True)
class Built:
    """The scenario as a tree of tables whose leaves are plain values and :class:`Leaf`."""

    tree: dict[str, Any] = field(default_factory=dict)
    used: list[Timing] = field(default_factory=list)


def build(evidence: Evidence, asked: Asked) -> Built:
    """Return the scenario that the evidence amounts to.

    Raises
    ------
    HtpsimError
        When no file times any graph, or files are of different chips.
    """
    return _Builder(evidence, asked).build()


def leaf(stated: Stated) -> Leaf:
    """Return a stated value as the scenario writes it."""
    value = write(stated.value, stated.unit) if stated.unit and not isinstance(stated.value, str) else stated.value
    shown = SHOWN[stated.unit](int(stated.value)) if stated.unit else str(value)
    return Leaf(value=value, mark=stated.mark, source=stated.source, shown=shown, n=stated.n)


@dataclass(slots=True)
class _Builder:
    evidence: Evidence
    asked: Asked
    built: Built = field(default_factory=Built)
    tiers: dict[int, dict[str, Leaf]] = field(default_factory=dict)
    """Service time of each decode graph by context length, where there are several."""

    def build(self) -> Built:
        chip = self.chip()
        timings = self.evidence.timings
        if not timings:
            text = "calibrate: got no time of any graph, expected a profile of the graphs among the files"
            raise HtpsimError("\n".join([text, *(f"! {warning}" for warning in self.evidence.warnings)]))
        models: dict[str, Any] = {}
        for role in ("vit", "llm"):
            own = [item for item in timings if item.role == role]
            if own:
                models[role] = self.llm(own) if role == "llm" else self.flat("vit", own)
        others = [item for item in timings if item.role == "other"]
        if others:
            models["other"] = self.flat("other", others)
        if "llm" not in models and self.evidence.parts is not None:
            self.evidence.warn("a genie_config.json, but no time of any graph of its LLM: the LLM is left out")
        self.contexts(models)
        if chip:
            for model in models.values():
                model["chip"] = chip
        tree = self.built.tree
        how = "As recorded in" if self.asked.as_recorded else "Calibrated from"
        tree["title"] = f"{how} {', '.join(self.evidence.files)}"
        if run := self.run():
            tree["run"] = run
        if device := self.device(chip):
            tree["device"] = device
        tree["models"] = {name: self.ordered(model) for name, model in models.items()}
        tree |= self.users(models)
        if self.tiers and self.asked.as_recorded:
            tree["variants"] = self.variants()
        return self.built

    def chip(self) -> str:
        """Return the chip that the files are of.

        A SoC number and a device's name are two ways to say it: only two of one kind can contradict one another.
        """
        chips = self.evidence.chips
        for kind in (True, False):
            same = [(name, origin) for name, origin in chips if name.startswith("SoC ") is kind]
            others = [(name, origin) for name, origin in same if name != same[0][0]]
            if others:
                raise HtpsimError(
                    f"calibrate: got figures of {same[0][0]} ({same[0][1]}) and of {others[0][0]} ({others[0][1]}), "
                    "expected files of one chip: chips are not mixed"
                )
        return chips[0][0] if chips else ""

    def device(self, chip: str) -> dict[str, Any]:
        """Return the device's table."""
        table: dict[str, Any] = {"chip": chip} if chip else {}
        table |= {key: leaf(stated) for key, stated in self.evidence.device.items()}
        bandwidth = load_bandwidth(self.evidence)
        if bandwidth is not None:
            table["load_bandwidth"] = leaf(bandwidth)
        return table

    def run(self) -> dict[str, Any]:
        """Return how long to run: as long as the recording, else for a minute, or more where answers are long."""
        if self.asked.as_recorded:
            if self.evidence.span_ns is None:
                text = "calibrate: got no file that records one prompt of an LLM graph by graph, expected a verbose log"
                raise HtpsimError(text)
            seconds = -(-(self.evidence.span_ns + SLACK_NS) // NS_PER_S)
            return {"duration": f"{seconds}s", "replications": 1}
        tokens = max(self.evidence.output_tokens, default=0)
        return {"duration": "60s"} if tokens < 500 else {"duration": "300s"}

    # --- models ---------------------------------------------------------------------------------------------------

    def flat(self, role: Role, timings: Sequence[Timing]) -> dict[str, Any]:
        """Return a model whose graphs run one after another, in the order of the files."""
        graphs: dict[str, list[Timing]] = {}
        for item in timings:
            graphs.setdefault(item.graph, []).append(item)
        rows = [
            {"name": plain_name(name, i), "graph": name, "service": self.service([self.best(found)])}
            for i, (name, found) in enumerate(graphs.items())
        ]
        model: dict[str, Any] = {"role": role, "graphs": rows}
        if role == "vit" and self.asked.image_tokens is not None:
            model["tokens_per_image"] = self.asked.image_tokens
        elif role == "vit":
            self.evidence.warn(
                "tokens_per_image: no file states how many prompt tokens an image becomes; 256 is assumed "
                "(--image-tokens)"
            )
        return model

    def llm(self, timings: Sequence[Timing]) -> dict[str, Any]:
        """Return the LLM's model."""
        model: dict[str, Any] = {"role": "llm"}
        stages: dict[Stage, list[Timing]] = {
            stage: [item for item in timings if item.stage == stage] for stage in ("prefill", "decode")
        }
        for stage, found in stages.items():
            if not found:
                raise HtpsimError(f"calibrate: got no time of any {stage} graph of the LLM, expected both stages timed")
        widest = max(item.tokens or 0 for item in stages["prefill"])
        if widest:
            stages["prefill"] = [item for item in stages["prefill"] if item.tokens in (widest, None)]
            origin = Origin(stages["prefill"][0].origin.file, stages["prefill"][0].origin.first)
            self.evidence.llm.setdefault("ar", Stated(widest, origin, "derived", note="AR-n of its prefill graphs"))
        model |= {key: leaf(stated) for key, stated in self.evidence.llm.items()}
        parts = max([item.parts for item in timings if item.part is not None], default=0)
        parts = parts or (int(self.evidence.parts.value) if self.evidence.parts else 1)
        for stage in ("prefill", "decode"):
            model[stage] = self.parts(stage, stages[stage], parts)
        return model

    def parts(self, stage: Stage, timings: Sequence[Timing], parts: int) -> list[dict[str, Any]]:
        """Return one graph a part of the model, all its context lengths together."""
        told_apart = [item for item in timings if item.part is not None]
        if not told_apart:
            return self.divided(stage, timings, parts)
        rows: list[dict[str, Any]] = []
        missing = []
        for part in range(parts):
            own = self.by_tier([item for item in told_apart if item.part == part])
            if not own:
                missing.append(part)
            rows.append({"name": f"{stage}{part}", "service": self.service(own) if own else None})
            if stage == "decode" and len(own) > 1:
                for item in own:
                    self.tiers.setdefault(item.tier or 0, {})[f"decode{part}"] = self.service([item])
        if missing:
            known = [row["service"].model.mean_ns for row in rows if row["service"] is not None]
            mean = sum(known) // len(known)
            names = ", ".join(str(part + 1) for part in missing)
            self.evidence.warn(f"{stage}: no time of part {names} of {parts}: the mean of the others is assumed")
            for part in missing:
                rows[part]["service"] = Leaf(
                    value=write(mean, "ns"), mark="assumed", shown=format_time(mean),
                    source=f"the mean of the {len(known)} other parts: no file times this one",
                )  # fmt: skip
        return rows

    def divided(self, stage: Stage, timings: Sequence[Timing], parts: int) -> list[dict[str, Any]]:
        """Return equal graphs that together take the time of a whole step."""
        own = self.by_tier(timings)
        if parts == 1:
            return [{"name": f"{stage}0", "service": self.service(own)}]
        model = service_model(pooled([item.counts for item in own]), None)
        share = model.mean_ns // parts
        source = f"{self.sources(own)}; the average, split evenly over {parts} graphs"
        shown = f"constant {format_time(share)}"
        value = Leaf(
            value=write(share, "ns"), mark="derived", source=source, shown=shown, n=self.count(own), model=model
        )
        return [{"name": f"{stage}{part}", "service": value} for part in range(parts)]

    def by_tier(self, timings: Iterable[Timing]) -> list[Timing]:
        """Return the best timing of each context length."""
        tiers: dict[int | None, list[Timing]] = {}
        for item in timings:
            tiers.setdefault(item.tier, []).append(item)
        return [self.best(found) for _, found in sorted(tiers.items(), key=lambda entry: entry[0] or 0)]

    def best(self, timings: Sequence[Timing]) -> Timing:
        """Return what rests on most executions, one that was not profiled in detail if there is one."""
        chosen = min(timings, key=lambda item: (item.detailed, item.part is None, -(item.n or 0)))
        for other in timings:
            if other is not chosen:
                self.evidence.warn(f"{other.graph}: timed by {chosen.origin} and {other.origin}; took the first")
        return chosen

    def service(self, timings: Sequence[Timing]) -> Leaf:
        """Return the service time of one graph, of all its context lengths together."""
        self.built.used += timings
        counts, n = pooled([item.counts for item in timings]), self.count(timings)
        first = timings[0].first_ns if len(timings) == 1 else None
        model = service_model(
            counts, n, method=self.asked.method, statistic=self.asked.statistic, first_ns=first
        )  # fmt: skip
        graph = timings[0].graph
        if model.cold_ns is not None:
            self.evidence.warn(
                f"{timings[0].origin}: the first execution took {format_time(model.cold_ns)}, the median of the others "
                f"{format_time(model.median_ns)}: a cold start, left out"
            )
        if n is not None and n < FEW:
            self.evidence.warn(f"{graph}: {n} execution{'s' * (n > 1)}, too few to say how they spread")
        counted_in = "the number of inferences is not stated" if n is None else f"n = {model.n}"
        source = f"{self.sources(timings)}; {counted_in}; {model.reason}"
        if timings[0].low_ns is not None and timings[0].high_ns is not None:
            source += f"; {format_time(timings[0].low_ns)} to {format_time(timings[0].high_ns)}"
        if any(item.detailed for item in timings):
            source += "; profiled in detail, so far too long"
        mark = "derived" if any(item.mark == "derived" for item in timings) else "measured"
        return Leaf(value=model.written, mark=mark, source=source, shown=told(model), n=model.n, model=model)

    def sources(self, timings: Sequence[Timing]) -> str:
        """Return where times come from, each file once with the range of its lines."""
        if len(timings) == 1:
            return str(timings[0].origin)
        found: dict[str, list[Origin]] = {}
        for item in timings:
            found.setdefault(item.origin.file, []).append(item.origin)
        texts = []
        for file, origins in found.items():
            firsts = [origin.first for origin in origins if origin.first is not None]
            lasts = [origin.last or origin.first or 0 for origin in origins]
            what = f"{origins[0].what} and of {len(origins) - 1} more context length{'s' * (len(origins) > 2)}"
            texts.append(str(Origin(file, min(firsts, default=None), max(lasts, default=None), what)))
        return ", ".join(texts)

    def count(self, timings: Sequence[Timing]) -> int | None:
        """Return how many executions times rest on; ``None`` where one file does not state it."""
        counts = [item.n for item in timings]
        return None if None in counts else sum(count or 0 for count in counts)

    # --- contexts, instances, cases -------------------------------------------------------------------------------

    def contexts(self, models: dict[str, Any]) -> None:
        """Give every model its contexts, and every graph the context that holds it."""
        for role, model in models.items():
            lists = [model[key] for key in ("graphs", "prefill", "decode") if key in model]
            graphs = [row.get("graph") for row in model.get("graphs", [])]
            found = contexts_of(role, len(model.get("decode", ())) or 1, graphs, self.evidence)
            model["contexts"] = [
                {"name": context.name} | {term: leaf(stated) for term, stated in context.terms.items()}
                for context in found.contexts
            ]
            for rows in lists:
                for number, row in enumerate(rows):
                    own = row.pop("graph", None)
                    row["context"] = (
                        found.of_graph.get(own) or found.contexts[min(number, len(found.contexts) - 1)].name
                    )

    def ordered(self, model: dict[str, Any]) -> dict[str, Any]:
        """Return a model's table, lists last, and in a graph the context before the service time."""
        lists = ("contexts", "graphs", "prefill", "decode")
        rows = {key: model[key] for key in lists if key in model}
        rows = {
            key: [{k: row[k] for k in ("name", "context", "service") if k in row} | row for row in found]
            for key, found in rows.items()
        }
        return {key: value for key, value in model.items() if key not in lists} | rows

    def users(self, models: dict[str, Any]) -> dict[str, Any]:
        """Return the instances, or the other client where there is neither ViT nor LLM."""
        found: dict[str, Any] = {}
        roles = [role for role in ("vit", "llm") if role in models]
        if self.asked.as_recorded:
            # The log is of the LLM alone, and its prompt has the image's tokens in it already.
            roles = ["llm"]
        if roles:
            table: dict[str, Any] = {"name": "vlm", "count": 1 if self.asked.as_recorded else self.asked.instances}
            table |= {role: role for role in roles}
            if self.asked.as_recorded:
                table["arrivals"] = {"kind": "replay", "times": [0]}
            image_tokens = (self.asked.image_tokens or 0) if "vit" in roles else 0
            if "llm" in models:
                table |= {key: leaf(stated) for key, stated in self.evidence.gaps.items()}
                table |= self.workload(image_tokens)
            found["instances"] = [table]
        if "other" in models:
            arrivals = {"kind": "closed", "think": 0}
            found["clients"] = [{"name": "client", "model": "other", "arrivals": arrivals}]
        return found

    def workload(self, image_tokens: int) -> dict[str, Any]:
        """Return the tokens of a request as the files show them; what an image becomes is part of the prompt."""
        evidence = self.evidence
        text = [max(1, tokens - image_tokens) for tokens in evidence.text_tokens]
        less = f"; less {image_tokens} of the image" if image_tokens else ""
        found = {}
        for key, values, remark in (("text_tokens", text, less), ("output_tokens", evidence.output_tokens, "")):
            if values:
                source = f"{evidence.workload[key]}{remark}; n = {len(values)}"
                found[key] = _tokens(values, source)
        return found

    def variants(self) -> dict[str, Any]:
        """Return a variant for each context length whose decode steps were timed apart."""
        return {
            f"cl{tier}": {
                "title": f"context length {tier}",
                "text": f"every decode step takes what it takes at context length {tier}, not what it takes on average",
                "models": {"llm": {"decode": {name: {"service": leaf} for name, leaf in own.items()}}},
            }
            for tier, own in sorted(self.tiers.items())
        }


def _tokens(values: Sequence[int], source: str) -> Leaf:
    """Return how many tokens requests had: a number where all had as many, else the numbers themselves."""
    n, low, high = len(values), min(values), max(values)
    alike = low == high
    shown = str(low) if alike else f"{n} values, {low} to {high}"
    value: Any = low if alike else {"sample": sorted(values)}
    return Leaf(value=value, mark="derived", source=source, shown=shown, n=n)
