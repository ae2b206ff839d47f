"""What a Genie console log holds for a calibration: times of graphs, host gaps, memory terms, loads, key figures."""

from __future__ import annotations

from typing import Final

from htpsim.experiments.calibrate.evidence import ContextBytes, Evidence, Origin, Role, Stage, Stated, Timing
from htpsim.experiments.calibrate.figures import QueryFigures, take_queries, take_tokens
from htpsim.formats import Report
from htpsim.formats.genie_console import ConsoleLog, ContextMemory, ExecutionLog, GraphTimes, Times, variant_of
from htpsim.formats.values import time_ns
from htpsim.units import NS_PER_MS, format_time

TERMS: Final = {
    "weights": "weights",
    "run_list": "run_list",
    "io": "io",
    "spill_fill": "spill_fill",
    "vtcm_backup": "vtcm",
}
"""Key of a context in a scenario file -> field of the log's memory."""

PERTURBED: Final = 1.25


def take(report: Report, role: Role, evidence: Evidence) -> None:
    """Take what a console log holds; graphs that are not an LLM's have the given role."""
    log: ConsoleLog = report.data
    file = report.path
    _take_device(log, file, evidence)
    for memory in log.memory:
        _take_memory(memory, file, evidence)
    _take_buffers(log, file, evidence)
    for handle, spent in log.context_loads:
        origin = Origin(file, spent.line, what=f"creation of context {handle:#x}")
        evidence.loads.append((f"context {handle:#x}", Stated(time_ns(spent, file), origin, "derived", "ns", 1)))
    for name, spent in log.model_loads:
        origin = Origin(file, spent.line, what=f"load of model {name}")
        evidence.loads.append((name, Stated(time_ns(spent, file), origin, unit="ns", n=1)))
    if log.executions is not None:
        _take_executions(log, log.executions, file, role, evidence)
    elif log.queries:
        take_queries(_queries(log, file), file, evidence)
    for failure in log.failures:
        evidence.warn(f"{Origin(file, failure.line)}: the log says '{failure.value}': its run did not end well")


def _take_device(log: ConsoleLog, file: str, evidence: Evidence) -> None:
    soc = log.whole_setting("soc_model") or log.whole_setting("soc_id")
    if soc is not None:
        evidence.chips.append((f"SoC {soc.value}", Origin(file, soc.line, what="soc_model")))
    arch = log.arch or log.whole_setting("dsp_arch")
    if arch is not None:
        origin = Origin(file, arch.line, what="architecture")
        evidence.state(evidence.device, "arch", Stated(f"v{arch.value}", origin))
    cores = log.core_ids
    if cores:
        line = next(value.line for name, value in log.settings if name == "core_id")
        origin = Origin(file, line, what="core ids as configured")
        evidence.state(evidence.device, "cores", Stated(len(cores), origin))


def _take_memory(memory: ContextMemory, file: str, evidence: Evidence) -> None:
    terms = {}
    for key, name in TERMS.items():
        value = getattr(memory, name)
        if value is not None:
            origin = Origin(file, value.line, what=f"{name.replace('_', ' ')} of {memory.graph}")
            terms[key] = Stated(value.value, origin, unit="bytes")
    role: Role | None = "llm" if memory.graph is not None and variant_of(memory.graph) else None
    name = memory.graph or f"context{memory.context}"
    graphs = (memory.graph,) if memory.graph is not None else ()
    evidence.contexts.append(ContextBytes(role=role, name=name, graphs=graphs, terms=terms))
    if memory.reserved is not None and memory.terms_bytes not in (None, memory.reserved.value):
        where = Origin(file, memory.reserved.line)
        evidence.warn(f"{where}: {memory.reserved.value} bytes reserved, but the terms add up to {memory.terms_bytes}")


def _take_buffers(log: ConsoleLog, file: str, evidence: Evidence) -> None:
    """Take the size that is allocated for an instance: its I/O and its KV cache, in one figure."""
    own = [item for item in log.allocations if item.node is None]
    if len(own) != 1:
        return
    total = own[0].total
    note = "I/O and KV cache of the LLM in one figure, not its weights"
    evidence.state(
        evidence.llm, "kv", Stated(total.value, Origin(file, total.line, what="allocated"), unit="bytes", note=note)
    )


def _take_executions(log: ConsoleLog, run: ExecutionLog, file: str, role: Role, evidence: Evidence) -> None:
    llm = [item for item in run.graphs if item.tokens is not None]
    splits: dict[tuple[int | None, int | None], int] = {}
    for item in llm:
        key = (item.tokens, item.context_length)
        splits[key] = max(splits.get(key, 0), (item.split or 0) + 1)
    for item in run.graphs:
        evidence.timings.append(_timing(item, splits.get((item.tokens, item.context_length), 1), file, role))
    longest = max([length for _, length in log.graphs_of] or [item.context_length or 0 for item in llm] or [0])
    if longest:
        first = min((item.times.line for item in llm), default=None)
        note = "the largest context length of its graphs"
        evidence.state(evidence.llm, "context_tokens", Stated(longest, Origin(file, first), "derived", note=note))
    for name, gap, what in (
        ("host_gap_graph", run.gap_graph, "host gap between two graphs of a decode step"),
        ("host_gap_step", run.gap_step, "host gap between two decode steps"),
    ):
        if gap is not None:
            evidence.state(evidence.gaps, name, _gap(gap, what, file))
    _take_workload(log, run, file, evidence)
    _warn(run, file, evidence)


def _timing(item: GraphTimes, parts: int, file: str, role: Role) -> Timing:
    times = item.times
    stage: Stage = "graphs" if item.tokens is None else "prefill" if item.tokens > 1 else "decode"
    return Timing(
        role=role if item.tokens is None else "llm",
        stage=stage,
        graph=item.graph,
        origin=Origin(file, times.line, times.last_line, f"execute of {item.graph}"),
        counts=times.counts,
        n=times.n,
        first_ns=times.first_ns,
        part=item.split,
        parts=parts,
        tokens=item.tokens,
        tier=item.context_length,
    )


def _gap(times: Times, what: str, file: str) -> Stated:
    note = f"mean, median {format_time(times.median_ns)}"
    return Stated(times.mean_ns, Origin(file, times.line, times.last_line, what), "derived", "ns", times.n, note)


def _take_workload(log: ConsoleLog, run: ExecutionLog, file: str, evidence: Evidence) -> None:
    """Take the one prompt of a log and its tokens; several prompts do not tell which tokens are whose."""
    if len(run.prefills) != 1 or not run.decode_tokens or run.overlapping:
        take_tokens(_queries(log, file), file, evidence)
        return
    prefill = run.prefills[0]
    ar = max(item.tokens or 1 for item in run.graphs)
    output = run.decode_tokens + 1
    prompt, how = prefill.chunks * ar, f"{prefill.chunks} chunks of {ar} tokens, taken to be full"
    context = evidence.llm.get("context_tokens")
    stated = _queries(log, file)
    if len(stated) == 1 and stated[0].prompt_tokens is not None:
        prompt, how = stated[0].prompt_tokens, f"by the key figures in line {stated[0].line}"
    elif log.ran_out_of_context and context is not None:
        left = int(context.value) - output
        if (prefill.chunks - 1) * ar < left <= prompt:
            prompt, how = left, f"{context.value} tokens of context, which ran full, less {output} that came out"
    evidence.text_tokens.append(prompt)
    evidence.output_tokens.append(output)
    evidence.workload["text_tokens"] = Origin(file, prefill.line, what=f"prompt of {prompt} tokens: {how}")
    evidence.workload["output_tokens"] = Origin(
        file, prefill.line, what=f"{run.decode_tokens} decode steps and the prompt's own token"
    )
    evidence.span_ns = run.span_ns


def _warn(run: ExecutionLog, file: str, evidence: Evidence) -> None:
    name = Origin(file)
    far = [item for item in run.graphs if item.times.mean_ns > PERTURBED * item.times.median_ns]
    if far:
        worst = max(far, key=lambda item: item.times.mean_ns / item.times.median_ns)
        evidence.warn(
            f"{name}: verbose logging perturbs the run: {worst.graph} takes {format_time(worst.times.mean_ns)} on "
            f"average, {format_time(worst.times.median_ns)} in the median; so of {len(far)} graphs"
        )
    if run.overlapping:
        evidence.warn(f"{name}: graphs overlap, so their times include waiting, and host gaps are not told")
    lost = run.incomplete + run.ambiguous + run.failed + run.unclocked
    if lost:
        evidence.warn(f"{name}: {lost} executions are incomplete, failed or without a clock, and left out")


def _queries(log: ConsoleLog, file: str) -> list[QueryFigures]:
    found = []
    for query in log.queries:
        first = query.ttft or query.prompt_time
        prompt = query.prompt_tokens.value if query.prompt_tokens else query.derived_prompt_tokens
        output = query.generated_tokens.value if query.generated_tokens else query.derived_generated_tokens
        found.append(
            QueryFigures(
                line=query.line,
                ttft_ns=time_ns(first, file) if first is not None and first.value > 0 else None,
                prompt_tokens=None if prompt is None else int(prompt),
                output_tokens=None if output is None else int(output),
                token_ns=query.token_time_ns,
                generation_s=None
                if query.generation_time is None
                else time_ns(query.generation_time, file) / (NS_PER_MS * 1000),
                rate=None if query.generation_rate is None else float(query.generation_rate.value),
            )
        )
    return found
