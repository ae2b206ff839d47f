"""The table of a Genie console log, and what a reader of its figures should know."""

from __future__ import annotations

from dataclasses import fields

from htpsim.formats.genie_console.data import ConsoleLog, ContextMemory, ExecutionLog, Query
from htpsim.formats.genie_console.times import Times
from htpsim.formats.values import Fact, Value, row

_LISTED_MAX = 100
_MEAN_FAR = 1.25
_MIB = 2**20
# What public issue threads say of a code; not a specification.
_CODES = {
    1002: "memory or mapping",
    1003: "seen with too many clients at once",
    1007: "seen where memory ran short",
    5000: "a binary for another version or chip, according to a maintainer",
    5005: "architecture, skeleton path or a VTCM setting that is too large",
}


def facts(log: ConsoleLog) -> tuple[Fact, ...]:
    """List what the log states, then what was counted and paired."""
    rows = [row("log", "libGenie version", log.version), row("log", "service version", log.service)]
    rows += [row("log", f"{name} build", value) for name, value in log.builds]
    rows += [row("settings", name, value) for name, value in log.settings[:_LISTED_MAX]]
    rows += [
        row("log", "architecture", log.arch or log.whole_setting("dsp_arch")),
        row("log", "HVX threads", log.hvx_threads),
    ]
    rows += [row("model", "context binary", value) for value in log.model_files[:_LISTED_MAX]]
    rows.append(row("model", "graphs", log.graphs_announced))
    rows += [row("model", "created by", value) for value in log.create_modes[:_LISTED_MAX]]
    if log.contexts_created:
        rows.append(Fact("model", "contexts created", log.contexts_created, "count", note="counted"))
    rows += [
        row("load", f"context {handle:#x}", value, "derived from two stamps") for handle, value in log.context_loads
    ]
    rows += [row("load", name, value, "unit by the clock beside it") for name, value in log.model_loads[:_LISTED_MAX]]
    rows.append(row("load", "all models", log.load_total))
    for allocation in log.allocations[:_LISTED_MAX]:
        name = f"allocated for {allocation.node}" if allocation.node else "allocated"
        rows.append(row("memory", name, allocation.total, "I/O and KV cache, not the weights"))
        rows.append(row("memory", "buffers", allocation.buffers))
    for memory in log.memory[:_LISTED_MAX]:
        rows += _memory(memory)
    rows += [
        Fact(
            "failure",
            "error code" if item.code else "error",
            item.code or item.text,
            line=item.line,
            note=_meaning(item.code),
        )
        for item in log.errors[:_LISTED_MAX]
    ]
    rows += [row("failure", "said", value) for value in log.failures[:_LISTED_MAX]]
    for number, query in enumerate(log.queries[:_LISTED_MAX], start=1):
        rows += _query(f"query {number}", query)
    if not log.queries:
        rows.append(Fact("query", "key figures", None, note="not in the log"))
    return (*rows, *_executions(log.executions))


def _meaning(code: int | None) -> str:
    return f"{_CODES[code]}; so issue threads say" if code in _CODES else ""


def _memory(memory: ContextMemory) -> list[Fact]:
    section = f"memory of context {memory.context}"
    rows = [Fact(section, "graph", memory.graph, line=memory.line if memory.graph else None)]
    for field in fields(memory):
        value = getattr(memory, field.name)
        if isinstance(value, Value):
            rows.append(row(section, field.name.replace("_", " "), value))
    if memory.terms_bytes is not None:
        rows.append(Fact(section, "sum of the five terms", memory.terms_bytes, "bytes", note="derived"))
    return rows


def _query(section: str, query: Query) -> list[Fact]:
    rows = []
    for field in fields(query):
        value = getattr(query, field.name)
        if isinstance(value, Value):
            rows.append(row(section, field.name.replace("_", " "), value))
    derived = "derived: rate times time"
    if query.derived_prompt_tokens is not None:
        rows.append(Fact(section, "prompt tokens", query.derived_prompt_tokens, "count", note=derived))
    if query.derived_generated_tokens is not None:
        note = f"{derived}, {query.rate_rule}"
        rows.append(Fact(section, "generated tokens", query.derived_generated_tokens, "count", note=note))
    return rows


def _executions(run: ExecutionLog | None) -> list[Fact]:
    if run is None:
        return []
    rows = [
        Fact("executions", "whole", run.executions, "count", note="paired"),
        Fact("executions", "not whole", run.incomplete + run.ambiguous, "count", note="paired"),
        Fact("executions", "failed", run.failed, "count", note="paired"),
        Fact("executions", "span", _ms(run.span_ns), "ms", note="derived"),
        Fact("executions", "busy", _ms(run.busy_ns), "ms", note="derived"),
    ]
    if run.utilisation is not None:
        rows.append(Fact("executions", "busy share", round(run.utilisation, 4), note="derived"))
    for number, prefill in enumerate(run.prefills[:_LISTED_MAX], start=1):
        spent = _ms(prefill.end_ns - prefill.start_ns)
        rows.append(Fact(f"prompt {number}", "prefill", spent, "ms", note=f"derived; {prefill.chunks} chunks"))
    if run.decode_tokens:
        rows.append(Fact("decode", "tokens", run.decode_tokens, "count", note="counted"))
    for name, times in (
        ("step", run.step),
        ("host gap between graphs", run.gap_graph),
        ("host gap between steps", run.gap_step),
    ):
        rows += _times("decode", name, times)
    for length, times in run.steps[:_LISTED_MAX]:
        rows += _times(f"decode at context {length}", "step", times)
    for item in run.graphs[:_LISTED_MAX]:
        rows += _times(item.graph, "execute", item.times)
    return rows


def _times(section: str, name: str, times: Times | None) -> list[Fact]:
    if times is None:
        return []
    if times.n == 1:
        return [Fact(section, name, _ms(times.first_ns), "ms", note="once")]
    figures = (("median", times.median_ns), ("mean", times.mean_ns), ("least", times.min_ns), ("most", times.max_ns))
    return [Fact(section, name, _ms(value), "ms", note=f"{which} of {times.n}") for which, value in figures]


def _ms(value_ns: int | None) -> float | None:
    return None if value_ns is None else round(value_ns / 1e6, 3)


def warnings(log: ConsoleLog) -> tuple[str, ...]:
    """Say what is missing, torn, slowed, or easily misread."""
    notes = []
    if not log.queries:
        timed = "its times are those of its executions" if log.executions else "nothing was measured, which is not zero"
        notes.append(f"no KPI in this log: {timed}")
    for query in log.queries[:1]:
        if query.generation_rate is not None:
            rule = query.rate_rule or "n/t or (n-1)/t, which the version does not tell"
            notes.append(f"line {query.line}: tokens a second are {rule}; releases differ in this")
    if log.allocations:
        notes.append(
            "the allocated size is of I/O and KV cache, not of the weights: it does not tell whether a model fits"
        )
    for memory in log.memory:
        notes += _reserved(memory)
    if log.torn_lines:
        notes.append(f"{log.torn_lines} lines were torn by lines of another writer, and mended")
    if log.ran_out_of_context:
        notes.append("the query failed within a decode step of the largest context: the context was probably full")
    return (*notes, *_of_executions(log.executions))


def _reserved(memory: ContextMemory) -> list[str]:
    if memory.reserved is None or memory.terms_bytes is None:
        return []
    if memory.terms_bytes != memory.reserved.value:
        return [
            f"line {memory.reserved.line}: {memory.reserved.value} bytes are reserved for context {memory.context}, "
            f"the five terms add up to {memory.terms_bytes}"
        ]
    mib = memory.reserved.value / _MIB
    return [
        f"context {memory.context} reserves {mib:.2f} MiB, which the log calls MB: "
        "weights, I/O, run list, spill-fill, VTCM"
    ]


def _of_executions(run: ExecutionLog | None) -> list[str]:
    if run is None:
        return []
    notes = ["verbose logging slows the run: take medians, not means, of its executions"]
    far = [item for item in run.graphs if item.times.mean_ns > _MEAN_FAR * item.times.median_ns]
    if far:
        worst = max(far, key=lambda item: item.times.mean_ns / item.times.median_ns)
        mean, median = _ms(worst.times.mean_ns), _ms(worst.times.median_ns)
        notes.append(f"{worst.graph}: mean {mean} ms, median {median} ms; so of {len(far)} graphs")
    if run.incomplete or run.ambiguous:
        notes.append(f"{run.incomplete + run.ambiguous} executions could not be paired and are left out")
    if run.failed:
        notes.append(f"{run.failed} executions failed and are left out")
    if run.unclocked:
        notes.append(f"{run.unclocked} executions have no time, because the clock of their lines did not run")
    if run.overlapping:
        notes.append("graphs overlap: several threads ran, so decode steps and host gaps are not told")
    return notes
