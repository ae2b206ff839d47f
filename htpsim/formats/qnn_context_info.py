"""JSON that qnn-context-binary-utility writes about a context binary: its graphs, their tensors, what each reserves.

What a graph needs stands in two places: ``graphBlobInfo.info`` has spill-fill in bytes and VTCM in MB (older tools have
nothing else), ``graphBlobInfoV2`` has run list ("op data"), I/O, constants and weights in bytes. Weights that the
graphs of a binary share are one pool of the context, printed with each graph: they are counted once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from htpsim.formats import jsontext
from htpsim.formats.form import Format, Match
from htpsim.formats.source import Source
from htpsim.formats.tree import Node
from htpsim.formats.values import Fact, Report, Value, row

NAME: Final = "qnn-context-info"
BYTES_PER_VTCM_MB: Final = 2**20

_EXPECTED: Final = "what qnn-context-binary-utility writes: 'info' with 'graphs', each with a 'graphName'"
_GRAPH: Final = re.compile(r'"graphName"\s*:')
_OTHERS: Final = re.compile(r'"(?:graphInputs|graphOutputs|numGraphs|contextBlobSize|graphBlobInfo)"\s*:')
_BITS: Final = re.compile(r"QNN_DATATYPE_[A-Z_]+?_(?P<bits>4|8|16|32|64)", re.ASCII)
_LISTED_MAX: Final = 24


@dataclass(frozen=True, slots=True)
class Tensor:
    """One input or output of a graph."""

    name: Value[str]
    data_type: Value[str] | None
    dimensions: tuple[int, ...]

    @property
    def size_bytes(self) -> int | None:
        """Elements times bytes of one, computed; ``None`` where the type has no fixed size. Four bits take a byte."""
        bits = _BITS.fullmatch(self.data_type.value) if self.data_type else None
        return None if bits is None else math.prod(self.dimensions) * max(1, int(bits["bits"]) // 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextGraph:
    """One graph of the binary. Each size is ``None`` where the file does not state it."""

    name: Value[str]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    spill_fill: Value[int] | None
    vtcm_mb: Value[int] | None
    hvx_threads: Value[int] | None
    optimisation: Value[int] | None
    io: Value[int] | None
    op_data: Value[int] | None
    """Run lists and what else an execution needs of its operators."""

    const: Value[int] | None
    """Weights of this graph alone."""

    ddr_tensors: Value[int] | None
    shared_weights: Value[int] | None
    """Of the whole context: the same figure with each of its graphs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextInfo:
    """One context binary."""

    build: Value[str] | None
    soc_model: Value[int] | None
    dsp_arch: Value[int] | None
    blob: Value[int] | None
    """Size of the binary."""

    graphs: tuple[ContextGraph, ...]

    def _sum(self, name: str) -> int | None:
        found = [getattr(graph, name) for graph in self.graphs]
        return sum(value.value for value in found) if found and all(found) else None

    def _most(self, name: str) -> int | None:
        found = [getattr(graph, name) for graph in self.graphs]
        return max(value.value for value in found) if found and all(found) else None

    @property
    def weights_bytes(self) -> int | None:
        """The pool that graphs share, once, and what each graph has of its own."""
        own, pool = self._sum("const"), self._most("shared_weights")
        return own + pool if own is not None and pool is not None else None

    @property
    def run_list_bytes(self) -> int | None:
        """Of all graphs together: each has its own."""
        return self._sum("op_data")

    @property
    def io_bytes(self) -> int | None:
        """Of all graphs together: whether they share buffers is the client's choice and not in the file."""
        return self._sum("io")

    @property
    def spill_fill_bytes(self) -> int | None:
        """The largest of any graph: one buffer serves all."""
        return self._most("spill_fill")

    @property
    def vtcm_backup_bytes(self) -> int | None:
        """The largest VTCM of any graph."""
        most = self._most("vtcm_mb")
        return None if most is None else most * BYTES_PER_VTCM_MB


def sniff(source: Source) -> Match:
    """Say whether this is such a file."""
    if not source.text.lstrip().startswith("{") or not _GRAPH.search(source.text):
        return Match.NO
    return Match.YES if _OTHERS.search(source.text) else Match.TRACES


def read(source: Source, lenient: bool = False) -> Report:
    """Read a file.

    Parameters
    ----------
    source
        The text.
    lenient
        Makes no difference: JSON is either well formed or not.

    Raises
    ------
    FormatError
        Names line and column of what is no JSON, or the place of a value of the wrong kind.

    Examples
    --------
    >>> from htpsim.formats.source import from_text
    >>> text = '{"info": {"contextBlobSize": 9, "graphs": [{"info": {"graphName": "vit", "graphInputs": []}}]}}'
    >>> read(from_text("a.json", text)).data.graphs[0].name
    Value(value='vit', unit='', line=1)
    """
    info = parse(source)
    return Report(NAME, source.name, info, tuple(_facts(info)), source.notes + _warnings(info))


def parse(source: Source) -> ContextInfo:
    """Return the content; raises as :func:`read` does."""
    root = jsontext.parse(source, _EXPECTED)
    body = root.find("info") if isinstance(root.value, dict) else None
    graphs = body.find("graphs") if body is not None and isinstance(body.value, dict) else None
    if body is None or graphs is None:
        root.refuse(_EXPECTED)
    return ContextInfo(
        build=body.text("buildId"),
        soc_model=body.count("socModel"),
        dsp_arch=body.count("contextMetadata", "info", "dspArch"),
        blob=body.count("contextBlobSize", unit="bytes"),
        graphs=tuple(_graph(_inner(item)) for item in graphs.items()),
    )


def _inner(node: Node) -> Node:
    """Return what ``info`` holds; some tools leave that level out."""
    return node.find("info") or node


def _graph(node: Node) -> ContextGraph:
    name = node.text("graphName")
    if name is None:
        node.refuse("a graph with 'graphName'")
    first, second = ("graphBlobInfo", "info"), ("graphBlobInfoV2",)
    return ContextGraph(
        name=name,
        inputs=_tensors(node.find("graphInputs")),
        outputs=_tensors(node.find("graphOutputs")),
        spill_fill=node.count(*first, "spillFillBufferSize", unit="bytes"),
        vtcm_mb=node.count(*first, "vtcmSize", unit="MB"),
        hvx_threads=node.count(*first, "numHvxThreads", unit="count"),
        optimisation=node.count(*first, "optimizationLevel"),
        io=node.count(*second, "ioTensorSize", unit="bytes"),
        op_data=node.count(*second, "opDataSize", unit="bytes"),
        const=node.count(*second, "constSize", unit="bytes"),
        ddr_tensors=node.count(*second, "ddrTensorSize", unit="bytes"),
        shared_weights=node.count(*second, "sharedWeightsSize", unit="bytes"),
    )


def _tensors(node: Node | None) -> tuple[Tensor, ...]:
    found = []
    for item in node.items() if node is not None else []:
        inner = _inner(item)
        name, dimensions = inner.text("name"), inner.find("dimensions")
        if name is None:
            inner.refuse("a tensor with 'name'")
        sizes = [size for size in (part.count() for part in (dimensions.items() if dimensions else [])) if size]
        if any(size.value >= 2**31 for size in sizes) or len(sizes) > 16:
            (dimensions or inner).refuse("at most 16 dimensions below 2^31")
        found.append(Tensor(name, inner.text("dataType"), tuple(size.value for size in sizes)))
    return tuple(found)


_SIZES: Final = {
    "run list": "run_list_bytes",
    "weights": "weights_bytes",
    "I/O": "io_bytes",
    "spill-fill": "spill_fill_bytes",
    "VTCM backup": "vtcm_backup_bytes",
}


def _facts(info: ContextInfo) -> Iterator[Fact]:
    yield row("context", "build", info.build)
    yield row("context", "SoC model", info.soc_model)
    yield row("context", "DSP architecture", info.dsp_arch)
    yield row("context", "size of the binary", info.blob)
    for name, attribute in _SIZES.items():
        size = getattr(info, attribute)
        yield Fact("context", name, size, "" if size is None else "bytes", note="of all graphs, computed")
    for graph in info.graphs:
        place = f"graph {graph.name.value}"
        yield row(place, "spill-fill", graph.spill_fill)
        yield row(place, "VTCM", graph.vtcm_mb)
        yield row(place, "HVX threads", graph.hvx_threads)
        yield row(place, "optimisation", graph.optimisation)
        yield row(place, "I/O tensors", graph.io)
        yield row(place, "op data", graph.op_data, "run list")
        yield row(place, "weights of its own", graph.const)
        yield row(place, "weights shared", graph.shared_weights, "of the whole context, counted once")
        yield row(place, "DDR tensors", graph.ddr_tensors)
        for kind, tensors in (("input", graph.inputs), ("output", graph.outputs)):
            yield Fact(place, f"{kind}s", len(tensors), "count")
            for tensor in tensors[:_LISTED_MAX]:
                form = f"{'x'.join(map(str, tensor.dimensions))} {tensor.data_type.value if tensor.data_type else ''}"
                size = tensor.size_bytes
                yield Fact(place, f"{kind} {tensor.name.value}", size, "" if size is None else "bytes", note=form)


def _warnings(info: ContextInfo) -> tuple[str, ...]:
    notes = []
    if not info.graphs:
        notes.append("no graph in the file")
    if info.graphs and all(graph.io is None for graph in info.graphs):
        notes.append("no 'graphBlobInfoV2': weights, run list and I/O are missing, not zero; newer tools write them")
    pools = {graph.shared_weights.value for graph in info.graphs if graph.shared_weights}
    if len(pools) > 1:
        notes.append(
            f"graphs state different pools of shared weights ({', '.join(map(str, sorted(pools)[:8]))}): "
            "the largest is taken"
        )
    if len(info.graphs) > 1 and pools and max(pools) == 0:
        notes.append(f"{len(info.graphs)} graphs share no weights: each holds its own")
    return tuple(notes)


FORMAT: Final = Format(
    NAME,
    "QNN context binary information",
    "JSON of qnn-context-binary-utility: graphs, tensors, weights, run list, I/O, spill-fill and VTCM of a binary",
    sniff,
    read,
)
