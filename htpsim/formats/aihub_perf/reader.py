"""Reads perf.yaml. The schema changed with almost every release; three shapes and their keys cover all of it.

::

    models: [{name, performance_metrics: [{RUNTIME: {...}, reference_device_info: {...}}]}]       old
    models: {name, performance_metrics: [...]}                                                    old, some LLMs
    precisions: {PRECISION: {components: {NAME: {performance_metrics: {DEVICE: {RUNTIME}}}}}}      new

What a runtime holds: a latency, or LLM figures directly, under ``llm_metrics``, or in a list of those a context length.
The unit is in the key: without a suffix times are in us and memory in bytes, with one in ms and MB.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from htpsim.formats import yamltext
from htpsim.formats.aihub_perf.data import AGGREGATED, Number, PerfFile, PerfRow
from htpsim.formats.aihub_perf.notes import facts, warnings
from htpsim.formats.aihub_perf.service import find_service_time
from htpsim.formats.form import Format, Match
from htpsim.formats.source import Source
from htpsim.formats.tree import Node
from htpsim.formats.values import Report, ServiceQuery, ServiceTime, Value

NAME: Final = "aihub-perf"

_EXPECTED: Final = "an AI Hub perf.yaml with 'models' or 'precisions'"
_INFERENCE: Final = {"inference_time": "us", "inference_time_milliseconds": "ms"}
_RATE: Final = {"throughput": "inf/sec", "inferences_per_second": "inf/sec"}
_MEMORY: Final = {"estimated_peak_memory_range": "bytes", "estimated_peak_memory_range_mb": "MB"}
_TTFT: Final = {"time_to_first_token_range": "us", "time_to_first_token_range_milliseconds": "ms"}
_LLM: Final = frozenset({"context_length", "tokens_per_second", "prefill_tokens_per_second", *_TTFT})
_JOB: Final = frozenset({"job_id", "job_status", "precision", "primary_compute_unit", "layer_info", "layer_counts"})
_UNUSED: Final = frozenset({"evaluation_metrics", "tool_versions", "desired_compute_unit"})
_KNOWN: Final = _JOB | _LLM | _UNUSED | frozenset({"llm_metrics", *_INFERENCE, *_RATE, *_MEMORY})
_NOT_RUNTIMES: Final = frozenset({"reference_device_info", "timestamp"})
_MISSING: Final = frozenset({"", "null", "none", "n/a", "unknown"})

_ROOT_KEY: Final = re.compile(r"^(?:models|precisions|components|aggregated):", re.MULTILINE)
_METRICS_KEY: Final = re.compile(r"^[ ]+(?:- )?performance_metrics:", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in the file a runtime stands."""

    component: str
    precision: str | None
    device: str | None
    chipset: str | None


def sniff(source: Source) -> Match:
    """Say whether this is a perf.yaml, by two keys that stand in every one."""
    if not _ROOT_KEY.search(source.text):
        return Match.NO
    return Match.YES if _METRICS_KEY.search(source.text) else Match.NO


def read(source: Source, lenient: bool = False) -> Report:
    """Read a perf.yaml.

    Parameters
    ----------
    source
        The text.
    lenient
        Makes no difference: YAML is either well formed or not.

    Raises
    ------
    FormatError
        Names the line of what is no YAML or not of the expected type.
    """
    data = parse(source)
    return Report(NAME, source.name, data, facts(data), source.notes + warnings(data) + source.doubts)


def parse(source: Source) -> PerfFile:
    """Return the rows of a perf.yaml; raises as :func:`read` does."""
    root = yamltext.parse(source, _EXPECTED)
    if not isinstance(root.value, dict):
        root.refuse(_EXPECTED)
    schema = "precisions" if root.find("precisions") or root.find("components") else "models"
    rows: list[PerfRow] = []
    unread: dict[str, None] = {}
    for place, runtime, details in _runtimes(root):
        metrics = details.find("llm_metrics")
        rows += [_row(place, runtime, details, item) for item in (metrics.items() if metrics else [details])]
        for item in [details, *(metrics.items() if metrics else [])]:
            unread.update({where.rsplit(".", 1)[-1]: None for where in item.unread(_KNOWN)})
    if not rows:
        root.refuse("at least one result under 'performance_metrics'")
    return PerfFile(schema, tuple(rows), tuple(unread))


def service_time(source: Source, query: ServiceQuery) -> ServiceTime:
    """Find a published time; see :func:`htpsim.formats.aihub_perf.service.find_service_time`."""
    return find_service_time(parse(source), source.name, query)


def _runtimes(root: Node) -> Iterator[tuple[_Place, str, Node]]:
    """Yield every runtime of every schema, with its place."""
    models = root.find("models")
    for model in models.items() if models else []:
        name = model.text("name")
        yield from _listed(model, name.value if name else "unnamed")
    aggregated = root.find("aggregated")
    if aggregated is not None:
        yield from _listed(aggregated, AGGREGATED)
    yield from _by_component(root, None)
    precisions = root.find("precisions")
    for precision, held in (precisions.members() if precisions else {}).items():
        yield from _by_component(held, precision)


def _listed(model: Node, component: str) -> Iterator[tuple[_Place, str, Node]]:
    """Walk the old shape: a list of devices, each with its runtimes beside its description."""
    metrics = model.find("performance_metrics")
    for entry in metrics.items() if metrics else []:
        device = entry.text("reference_device_info", "name")
        chipset = entry.text("reference_device_info", "chipset")
        for runtime, details in entry.members().items():
            if runtime in _NOT_RUNTIMES or details.value is None:
                continue
            precision = details.text("precision")
            place = _Place(
                component,
                precision.value if precision else None,
                device.value if device else None,
                chipset.value if chipset else None,
            )
            yield place, runtime, details


def _by_component(parent: Node, precision: str | None) -> Iterator[tuple[_Place, str, Node]]:
    """Walk the new shape: mappings all the way down."""
    components = parent.find("components")
    for component, held in (components.members() if components else {}).items():
        metrics = held.find("performance_metrics")
        for device, runtimes in (metrics.members() if metrics else {}).items():
            for runtime, details in runtimes.members().items():
                if details.value is not None:
                    yield _Place(component, precision, device, None), runtime, details


def _row(place: _Place, runtime: str, details: Node, metrics: Node) -> PerfRow:
    layers = details.find("layer_counts") or details.find("layer_info")
    memory_min, memory_max = _range(details, _MEMORY)
    ttft_min, ttft_max = _range(metrics, _TTFT)
    return PerfRow(
        line=metrics.line,
        component=place.component,
        precision=place.precision,
        device=place.device,
        chipset=place.chipset,
        runtime=runtime,
        job_status=details.text("job_status"),
        compute_unit=details.text("primary_compute_unit"),
        layers=_first(layers, "total", "total_layers"),
        layers_npu=_first(layers, "npu", "layers_on_npu"),
        inference_time=_number(details, _INFERENCE),
        inferences_per_second=_number(details, _RATE),
        peak_memory_min=memory_min,
        peak_memory_max=memory_max,
        context_length=metrics.whole("context_length", unit="tokens"),
        ttft_min=ttft_min,
        ttft_max=ttft_max,
        tokens_per_second=_number(metrics, {"tokens_per_second": "tokens/s"}),
        prefill_tokens_per_second=_number(metrics, {"prefill_tokens_per_second": "tokens/s"}),
    )


def _number(node: Node, keys: dict[str, str]) -> Number | None:
    """Return the number under the first of the keys that is there; a quoted "null" is none."""
    for key, unit in keys.items():
        found = node.find(key)
        if found is None or (isinstance(found.value, str) and found.value.lower() in _MISSING):
            continue
        return node.number(key, unit=unit)
    return None


def _range(node: Node, keys: dict[str, str]) -> tuple[Number | None, Number | None]:
    for key, unit in keys.items():
        held = node.find(key)
        if held is not None:
            return _number(held, {"min": unit}), _number(held, {"max": unit})
    return None, None


def _first(node: Node | None, *keys: str) -> Value[int] | None:
    for key in keys:
        found = node.whole(key, unit="count") if node is not None else None
        if found is not None:
            return found
    return None


FORMAT: Final = Format(
    NAME,
    "AI Hub perf.yaml",
    "published latencies, time to first token and token rates of one model, by device and runtime",
    sniff,
    read,
    service_time,
)
