"""Times of an LLM from the key figures of whole queries: time to first token, tokens a second, tokens in and out.

A query's time to first token is ceil(prompt / AR) chunks of prefill; one over its token rate is a decode step. Neither
tells graphs or host gaps apart: a step so derived has the gaps in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from htpsim.experiments.calibrate.evidence import Evidence, Origin, Timing, counted

AR: Final = 128
"""Tokens of a prefill chunk where no file says: what all published binaries have."""

GAPS_INSIDE: Final = (
    "{}: a step by its key figures has the host's gaps in it: the NPU is busy for less of it, and other clients would "
    "get more; a verbose log tells them apart"
)
SCALES: Final = (1e3, 1e6)
NEAR: Final = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryFigures:
    """The figures of one query; ``None`` where they are not stated."""

    line: int
    ttft_ns: int | None = None
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    token_ns: int | None = None
    generation_s: float | None = None
    rate: float | None = None


def take_queries(queries: Sequence[QueryFigures], file: str, evidence: Evidence) -> None:
    """Take the chunk and step times of queries, and how many tokens they had."""
    chunks = [(q.ttft_ns // _chunks(q.prompt_tokens), q.line) for q in queries if q.ttft_ns and q.prompt_tokens]
    steps = [(q.token_ns, q.line) for q in queries if q.token_ns]
    for stage, found, how in (
        ("prefill", chunks, f"time to first token / chunks of {AR} tokens"),
        ("decode", steps, "1 / tokens a second, host gaps included"),
    ):
        if not found:
            continue
        lines = [line for _, line in found]
        evidence.timings.append(
            Timing(
                role="llm",
                stage="prefill" if stage == "prefill" else "decode",
                graph=stage,
                origin=Origin(file, min(lines), max(lines), how),
                counts=counted(tuple(value for value, _ in found)),
                n=len(found),
                mark="derived",
            )
        )
    if steps:
        evidence.warn(GAPS_INSIDE.format(Origin(file)))
    without = [q.line for q in queries if q.ttft_ns and not q.prompt_tokens]
    if without and not chunks:
        evidence.warn(
            f"{Origin(file, without[0])}: a time to first token without a number of prompt tokens: no time of a chunk "
            "follows"
        )
    take_tokens(queries, file, evidence)
    for query in queries:
        _check_units(query, file, evidence)


def take_tokens(queries: Sequence[QueryFigures], file: str, evidence: Evidence) -> None:
    """Take how many tokens queries had in and out."""
    for key, kept, counts in (
        ("text_tokens", evidence.text_tokens, [q.prompt_tokens for q in queries]),
        ("output_tokens", evidence.output_tokens, [q.output_tokens for q in queries]),
    ):
        stated = [count for count in counts if count]
        if stated and not kept:
            kept.extend(stated)
            lines = [q.line for q in queries]
            evidence.workload[key] = Origin(file, min(lines), max(lines), "tokens of the queries")


def _chunks(prompt_tokens: int) -> int:
    return -(-prompt_tokens // AR)


def _check_units(query: QueryFigures, file: str, evidence: Evidence) -> None:
    """Say when a rate and a time contradict one another by a thousand: one of them has the wrong unit."""
    if not query.output_tokens or not query.generation_s or not query.rate:
        return
    factor = query.output_tokens / query.generation_s / query.rate
    if (found := unit_factor(factor)) is not None:
        evidence.warn(
            f"{Origin(file, query.line)}: {query.output_tokens} tokens in {query.generation_s:g} s are not "
            f"{query.rate:g} a second but {found:,} times that or its inverse: a unit looks wrong"
        )


def unit_factor(ratio: float) -> int | None:
    """Return the power of a thousand that a ratio is near to, up or down; ``None`` for an ordinary one.

    >>> unit_factor(1012.0), unit_factor(0.00099), unit_factor(1.3)
    (1000, 1000, None)
    """
    if ratio <= 0:
        return None
    ratio = max(ratio, 1 / ratio)
    return next((round(scale) for scale in SCALES if abs(ratio / scale - 1) < NEAR), None)
