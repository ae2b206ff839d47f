"""What key figures hold for a calibration: Genie's profile of a dialog or pipeline, and an AI Hub perf.yaml."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from htpsim.experiments.calibrate.evidence import Evidence, Origin, Role, Stage, Stated, Timing, counted
from htpsim.experiments.calibrate.figures import GAPS_INSIDE, QueryFigures, take_queries, unit_factor
from htpsim.formats import Report, service_time_ns
from htpsim.formats.aihub_perf.data import AGGREGATED, PerfFile, PerfRow
from htpsim.formats.genie_profile import GenieProfile
from htpsim.formats.genie_profile.data import GENERATED, GENERATION, GENERATION_RATE, PROMPT_TOKENS, TTFT, ProfileEvent
from htpsim.formats.values import time_ns

_IMAGE: Final = re.compile(r"image|vision|vit", re.IGNORECASE)
_LINE: Final = re.compile(r"\blines? (\d+(?:, \d+)*)")
_NEAR: Final = 0.02
_SIBLINGS_MIN: Final = 3
_OUTLIER: Final = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which row of a perf.yaml is meant, as far as it leaves a choice."""

    component: str | None = None
    device: str | None = None
    runtime: str | None = None
    precision: str | None = None


def take_profile(report: Report, evidence: Evidence) -> None:
    """Take a Genie profile: figures of the LLM's queries, and the time of an image encoder's node."""
    profile: GenieProfile = report.data
    file = report.path
    queries = []
    for component in profile.components:
        for event in component.events:
            if event.is_create and event.init is not None and event.init.value > 0:
                origin = Origin(file, event.init.line, what=f"init of {component.name}")
                evidence.loads.append((component.name, Stated(time_ns(event.init, file), origin, unit="ns", n=1)))
            if event.is_query and event.figures:
                queries.append(_figures(event, file))
        if _IMAGE.search(component.name):
            _take_encoder(component.name, [event for event in component.events if event.is_query], file, evidence)
    take_queries([query for query in queries if query.ttft_ns or query.token_ns], file, evidence)


def _figures(event: ProfileEvent, file: str) -> QueryFigures:
    ttft, prompt, output = event.figure(TTFT), event.figure(PROMPT_TOKENS), event.figure(GENERATED)
    rate = event.figure(GENERATION_RATE)
    return QueryFigures(
        line=event.line,
        ttft_ns=time_ns(ttft, file) if ttft is not None and ttft.value > 0 else None,
        prompt_tokens=int(prompt.value) if prompt is not None else None,
        output_tokens=int(output.value) if output is not None else None,
        token_ns=event.token_time_ns,
        generation_s=event.seconds(GENERATION),
        rate=float(rate.value) if rate is not None else None,
    )


def _take_encoder(name: str, events: Sequence[ProfileEvent], file: str, evidence: Evidence) -> None:
    timed = [event.duration for event in events if event.duration is not None and event.duration.value > 0]
    if timed:
        values = tuple(time_ns(value, file) for value in timed)
        lines = [value.line for value in timed]
        evidence.timings.append(
            Timing(
                role="vit",
                stage="graphs",
                graph=name,
                origin=Origin(file, min(lines), max(lines), f"execution of node {name}, host time included"),
                counts=counted(values),
                n=len(values),
                first_ns=values[0],
                mark="derived",
            )
        )


def take_perf(report: Report, choice: Choice, role: Role, evidence: Evidence) -> None:
    """Take the rows of a perf.yaml that fit a choice: of an LLM, all its context lengths; else one latency.

    Raises
    ------
    FormatError
        When the choice leaves several devices, runtimes, precisions or components, with what there is.
    """
    data: PerfFile = report.data
    rows = [row for row in data.rows if _fits(row, choice)]
    language = [row for row in rows if row.tokens_per_second is not None]
    if language:
        lengths: list[int | None] = []
        lengths += sorted({row.context_length.value for row in language if row.context_length}) or [None]
        used = [_take_language(language, choice, length, len(lengths) > 1, report.path, evidence) for length in lengths]
        evidence.warn(GAPS_INSIDE.format(Origin(report.path)))
    else:
        used = [_take_latency(rows, data, choice, role, report.path, evidence)]
    _state_chip(used[0], report.path, evidence)
    lines = {line for row in used for line in _lines(row)}
    for note in report.notes:
        if (found_lines := _LINE.search(note)) and lines & {int(text) for text in found_lines[1].split(", ")}:
            evidence.warn(f"{Origin(report.path)}: {note}")


def _fits(row: PerfRow, choice: Choice) -> bool:
    wanted = {name: getattr(choice, name) for name in ("component", "device", "runtime", "precision")}
    if wanted["component"] is None and row.component == AGGREGATED:
        return False
    return all(value is None or getattr(row, name) == value for name, value in wanted.items())


def _query(choice: Choice, context_length: int | None = None) -> dict[str, Any]:
    """Return a choice as the readers take it."""
    return {
        "device": choice.device, "runtime": choice.runtime, "precision": choice.precision,
        "context_length": context_length,
    }  # fmt: skip


def _take_latency(
    rows: Sequence[PerfRow], data: PerfFile, choice: Choice, role: Role, file: str, evidence: Evidence
) -> PerfRow:
    """Take the one latency that fits, and return its row."""
    found = service_time_ns(file, choice.component, **_query(choice))
    line = int(found.source[len(file) + 1 :].split(" ", 1)[0])
    row = next(row for row in rows if row.inference_time is not None and row.inference_time.line == line)
    origin = Origin(file, line, what=f"latency of {row.place}")
    _add(row.component, "graphs", role, origin, found.value_ns, None, evidence)
    _warn_rate(row, file, evidence)
    _warn_siblings(row, data, file, evidence)
    return row


def _take_language(
    rows: Sequence[PerfRow], choice: Choice, length: int | None, several: bool, file: str, evidence: Evidence
) -> PerfRow:
    """Take chunk and step of an LLM at one context length, and return their row."""
    step = service_time_ns(file, choice.component, "average", "token_time", **_query(choice, length))
    line = int(step.source[len(file) + 1 :].split(" ", 1)[0])
    row = next(row for row in rows if row.tokens_per_second is not None and row.tokens_per_second.line == line)
    tier = length if several else None
    origin = Origin(file, line, what=f"1 / tokens a second of {row.place}")
    _add("decode", "decode", "llm", origin, step.value_ns, tier, evidence)
    if row.ttft_min is not None:
        chunk = service_time_ns(file, choice.component, "min", "time_to_first_token", **_query(choice, length))
        origin = Origin(file, row.ttft_min.line, what=f"least time to first token of {row.place}, one chunk")
        _add("prefill", "prefill", "llm", origin, chunk.value_ns, tier, evidence)
    if row.context_length is not None:
        origin = Origin(file, row.context_length.line, what="context length")
        known = evidence.llm.get("context_tokens")
        if known is None or int(known.value) < row.context_length.value:
            evidence.llm["context_tokens"] = Stated(row.context_length.value, origin)
        _take_chunks(row, file, evidence)
    return row


def _take_chunks(row: PerfRow, file: str, evidence: Evidence) -> None:
    """Take the tokens of a chunk: the greatest time to first token is so many times the least."""
    if row.ttft_min is None or row.ttft_max is None or row.context_length is None or row.ttft_min.value <= 0:
        return
    ratio = row.ttft_max.value / row.ttft_min.value
    chunks = round(ratio)
    if chunks > 1 and abs(ratio - chunks) < _NEAR * chunks and row.context_length.value % chunks == 0:
        what = f"context / (greatest / least time to first token) = {row.context_length.value} / {chunks}"
        origin = Origin(file, row.ttft_min.line, row.ttft_max.line, what)
        evidence.llm.setdefault("ar", Stated(row.context_length.value // chunks, origin, "derived"))


def _add(
    graph: str, stage: Stage, role: Role, origin: Origin, value_ns: int, tier: int | None, evidence: Evidence
) -> None:
    evidence.timings.append(
        Timing(
            role=role, stage=stage, graph=graph, origin=origin, counts=((value_ns, 1),), n=None, tier=tier,
            mark="measured" if stage == "graphs" else "derived",
        )
    )  # fmt: skip


def _state_chip(row: PerfRow, file: str, evidence: Evidence) -> None:
    if row.device:
        evidence.chips.append((row.device, Origin(file, row.line, what="device")))


def _lines(row: PerfRow) -> list[int]:
    held = (row.inference_time, row.inferences_per_second, row.ttft_min, row.ttft_max, row.tokens_per_second)
    return [row.line, *(value.line for value in held if value is not None)]


def _warn_rate(row: PerfRow, file: str, evidence: Evidence) -> None:
    time, rate = row.inference_time, row.inferences_per_second
    if time is None or rate is None or time.value <= 0:
        return
    ratio = float(rate.value) * time_ns(time, file) / 1e9
    if (factor := unit_factor(ratio)) is not None:
        evidence.warn(f"{Origin(file, rate.line)}: the rate is {factor:,} times 1/latency or its inverse: a unit "
                      "looks wrong")  # fmt: skip
    elif abs(ratio - 1) > _NEAR:
        evidence.warn(
            f"{Origin(file, rate.line)}: IPS is {ratio:.3g} x 1/latency on {row.device}: calibrated from the latency"
        )


def _warn_siblings(row: PerfRow, data: PerfFile, file: str, evidence: Evidence) -> None:
    """Say when a latency is far above that of every other device with the same runtime and precision."""
    if row.inference_time is None:
        return
    same = data.select(component=row.component, runtime=row.runtime, precision=row.precision)
    others = sorted(
        time_ns(other.inference_time, file)
        for other in same
        if other.inference_time is not None and other.device != row.device and other.inference_time.value > 0
    )
    own = time_ns(row.inference_time, file)
    if len(others) >= _SIBLINGS_MIN and own > _OUTLIER * others[-1]:
        evidence.warn(
            f"{Origin(file, row.inference_time.line)}: {own / others[-1]:.1f} times the slowest of {len(others)} "
            "sibling devices: an outlier, or a graph that fell back"
        )
