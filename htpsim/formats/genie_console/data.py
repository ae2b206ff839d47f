"""The data of a Genie console log; what the log does not state is ``None``, and a failed run has no key figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from htpsim.formats.genie_console.times import Times
from htpsim.formats.values import Value

Number: TypeAlias = Value[int] | Value[float]

QUERY_FAILED: Final = "Failed to query"


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """The key figures printed after one query."""

    line: int
    init: Number | None = None
    ttft: Number | None = None
    prompt_time: Number | None = None
    prompt_tokens: Number | None = None
    prompt_rate: Number | None = None
    generation_time: Number | None = None
    generated_tokens: Number | None = None
    generation_rate: Number | None = None
    acceptance_rate: Number | None = None
    rate_rule: str | None = None
    """How `generation_rate` counts, "n/t" or "(n-1)/t": by its own numbers, else by the version."""

    derived_prompt_tokens: int | None = None
    """Rate times time, where the number is not printed and comes out whole."""

    derived_generated_tokens: int | None = None
    token_time_ns: int | None = None
    """One over the generation rate [ns]."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """What is "allocated": buffers for input, output and KV cache, not the weights."""

    total: Value[int]
    buffers: Value[int]
    node: str | None
    """The node that a genie-app script was creating."""


@dataclass(frozen=True, slots=True)
class LogError:
    """One line of level ERROR of the library."""

    text: str
    line: int
    code: int | None
    context_index: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextMemory:
    """What a verbose log says of the memory of one context [bytes]."""

    context: int
    line: int
    graph: str | None = None
    weights: Value[int] | None = None
    io: Value[int] | None = None
    run_list: Value[int] | None = None
    spill_fill: Value[int] | None = None
    vtcm: Value[int] | None = None
    reserved: Value[int] | None = None
    protection_domain: Value[int] | None = None
    graph_priority: Value[int] | None = None

    @property
    def terms_bytes(self) -> int | None:
        """The sum of the five terms, ``None`` unless all are stated; it should be what is reserved."""
        terms = (self.weights, self.io, self.run_list, self.spill_fill, self.vtcm)
        stated = [term.value for term in terms if term is not None]
        return sum(stated) if len(stated) == len(terms) else None


@dataclass(frozen=True, slots=True)
class GraphTimes:
    """All whole executions of one graph."""

    graph: str
    tokens: int | None
    """How many tokens one execution takes in (AR-n); one in decode."""

    context_length: int | None
    split: int | None
    """Which part of the model, from 0."""

    times: Times


@dataclass(frozen=True, slots=True)
class Prefill:
    """One prompt: from the start of its first graph to the end of its last [ns, the log's own clock]."""

    start_ns: int
    end_ns: int
    chunks: int
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionLog:
    """Executions paired from a verbose log: from "QnnGraph_execute started" to "Graph X execution finished".

    Verbose logging itself slows the run, and now and then by far, so medians say more than means.
    """

    graphs: tuple[GraphTimes, ...]
    executions: int
    incomplete: int
    """Started, never finished, or the other way round."""

    ambiguous: int
    """Several were open and the log does not tell which one finished."""

    failed: int
    unclocked: int
    """Both stamps are zero: the clock of these lines did not run."""

    overlapping: bool
    """Whether a graph started while another was open: several threads, so steps and gaps cannot be told."""

    start_ns: int | None
    end_ns: int | None
    busy_ns: int
    """While at least one graph was open."""

    prefills: tuple[Prefill, ...]
    prefill_executions: int
    decode_tokens: int
    steps: tuple[tuple[int, Times], ...]
    """Context length, and the times from the end of one token to the end of the next."""

    step: Times | None
    """The same over all context lengths."""

    gap_graph: Times | None
    """On the host, from the end of one graph to the start of the next of the same decode step."""

    gap_step: Times | None
    """On the host, between two decode steps."""

    ends_in_step: bool
    largest_context: bool
    """Whether the last decode graph is of the largest context length that was loaded."""

    @property
    def span_ns(self) -> int | None:
        """From the first start to the last end."""
        return None if self.start_ns is None or self.end_ns is None else self.end_ns - self.start_ns

    @property
    def utilisation(self) -> float | None:
        """The share of the span in which a graph was open."""
        return self.busy_ns / self.span_ns if self.span_ns else None

    def of(self, graph: str) -> GraphTimes | None:
        """Return the executions of a graph."""
        return next((item for item in self.graphs if item.graph == graph), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleLog:
    """One log."""

    version: Value[str] | None
    """Of libGenie."""

    service: Value[str] | None
    builds: tuple[tuple[str, Value[str]], ...]
    settings: tuple[tuple[str, Value[str]], ...]
    """Keys of the backend's configuration as the log echoes them."""

    model_files: tuple[Value[str], ...]
    graphs_announced: Value[int] | None
    graphs_of: tuple[tuple[int, int], ...] = ()
    """Tokens and context length of each set of graphs that was loaded."""

    arch: Value[int] | None
    hvx_threads: Value[int] | None
    create_modes: tuple[Value[str], ...]
    contexts_created: int
    context_loads: tuple[tuple[int, Value[float]], ...]
    """Handle of each context, and how long its creation took [ms]; not where the clock did not run."""

    most: tuple[Value[int], Value[int]] | None
    """The most contexts and graphs that existed at once, as the log counts them."""

    left: tuple[tuple[int, int, int, int], ...]
    """Context that was freed, then contexts and graphs that existed after it, and the line."""

    allocations: tuple[Allocation, ...]
    memory: tuple[ContextMemory, ...]
    model_loads: tuple[tuple[str, Value[float]], ...]
    """Name and time of each model that a service loads by itself, such as a vision model through the QNN API [ms]."""

    load_total: Value[float] | None
    errors: tuple[LogError, ...]
    failures: tuple[Value[str], ...]
    queries: tuple[Query, ...]
    executions: ExecutionLog | None
    torn_lines: int = 0
    truncated: bool = False

    def setting(self, key: str) -> Value[str] | None:
        """Return a setting by its key; the last one where it is echoed twice."""
        return next((value for name, value in reversed(self.settings) if name == key), None)

    def whole_setting(self, key: str) -> Value[int] | None:
        """Return a setting that is a number."""
        found = self.setting(key)
        if found is None or not found.value.isascii() or not found.value.isdigit():
            return None
        return Value(int(found.value), "", found.line)

    @property
    def weight_sharing(self) -> Value[bool] | None:
        """Whether weights are shared between graphs, as the log echoes it."""
        found = self.setting("Weight Sharing")
        return Value(found.value == "true", "", found.line) if found and found.value in ("true", "false") else None

    @property
    def core_ids(self) -> tuple[int, ...]:
        """The cores that are configured."""
        found = (value.value for name, value in self.settings if name == "core_id")
        return tuple(dict.fromkeys(int(text) for text in found if text.isascii() and text.isdigit()))

    @property
    def end(self) -> Value[str] | None:
        """The last failure that the log states; ``None`` when it states none."""
        return self.failures[-1] if self.failures else None

    @property
    def contexts_before_failure(self) -> int | None:
        """How many contexts were created before the one that failed: contexts are created in order."""
        in_order = not any("Async" in mode.value for mode in self.create_modes)
        indices = [item.context_index for item in self.errors if item.context_index is not None]
        return min(indices) if indices and in_order else None

    @property
    def ran_out_of_context(self) -> bool:
        """Whether the query failed within a decode step of the largest context: derived, so likely, not stated."""
        run = self.executions
        failed = any(item.value.startswith(QUERY_FAILED) for item in self.failures)
        return failed and run is not None and run.ends_in_step and run.largest_context
