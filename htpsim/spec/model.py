"""A model as the runtime sees it: contexts with their bytes, graphs with their times, a role."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from htpsim.spec.distribution import Distribution
from htpsim.spec.param import param

Role = Literal["vit", "llm", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """One compiled QNN graph: the unit of ``graphExecute``."""

    name: str
    """Its name in tables and traces; of its own in the model."""
    context: str
    """Name of the context that holds it."""
    service: Distribution = param("measured", "time of one execution alone on an idle core", unit="ns")
    dram_bytes: int = param("assumed", "bytes it moves over DRAM in one execution; 0: none", default=0, unit="bytes")
    qnn: bool = param(
        "doc", "a QNN graph; false for another HTP client (one QNN graph at a time on a core)", default=True
    )
    vtcm_bytes: int = param(
        "doc", "VTCM it holds while it runs; a QNN graph asks for all by default", default=8 << 20, unit="bytes"
    )
    hvx: int = param("doc", "HVX units it holds", default=1)
    hmx: int = param("doc", "HMX units it holds", default=1)
    tier_tokens: int = param(
        "doc",
        "context length it was compiled for, among prefill or decode graphs of several; a step is run by those of the "
        "least that holds its tokens; 0: one length for all",
        default=0,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One context binary: what it reserves when loaded, in the five terms a public log prints."""

    name: str
    """Its name, which graphs refer to; of its own in the model."""
    weights_bytes: int = param("measured", "weights", default=0, unit="bytes")
    run_list_bytes: int = param("measured", "run list", default=0, unit="bytes")
    io_bytes: int = param(
        "measured", "input and output buffers; each user of a shared copy has its own", default=0, unit="bytes"
    )
    spill_fill_bytes: int = param("measured", "spill-fill buffer", default=0, unit="bytes")
    vtcm_backup_bytes: int = param("measured", "VTCM backup buffer", default=0, unit="bytes")
    file_bytes: int | None = param("measured", "size of the binary; none: as the weights", default=None, unit="bytes")
    load_bytes: int = param(
        "measured", "device memory it takes besides while it is being loaded; the peak of init", default=0, unit="bytes"
    )

    @property
    def shared_bytes(self) -> int:
        """What the owner of a copy holds: everything but the I/O."""
        return self.weights_bytes + self.run_list_bytes + self.spill_fill_bytes + self.vtcm_backup_bytes

    @property
    def reserved_bytes(self) -> int:
        """The five-term sum that one unshared load reserves."""
        return self.reserved_bytes_of(1)

    def reserved_bytes_of(self, users: int) -> int:
        """Return what one copy reserves for so many users: one that nobody uses is not loaded.

        >>> [Context(name="c", weights_bytes=10, io_bytes=3).reserved_bytes_of(users) for users in range(3)]
        [0, 13, 16]
        """
        return self.shared_bytes + users * self.io_bytes if users else 0

    @property
    def binary_bytes(self) -> int:
        """Bytes read to load it."""
        return self.weights_bytes if self.file_bytes is None else self.file_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """An ordered list of contexts and graphs with a role.

    A ``vit`` executes `graphs` once an image, an ``other`` client once a job. An ``llm`` executes `prefill` once a
    chunk of `ar` tokens and `decode` once a token; where these hold a set for each of several context lengths (tiers),
    each step takes the set of the least length that holds the tokens so far and its own.
    """

    name: str
    """What is loaded: two instances naming the same model share a copy where the registry lets them."""
    role: Role
    """What runs it: a vit encodes images, an llm prefills and decodes, other is a client of any kind."""
    contexts: tuple[Context, ...] = ()
    """Its context binaries, in the order in which they are loaded."""
    graphs: tuple[Graph, ...] = ()
    """Of a vit or other: what is executed for an image or a job, in order."""
    prefill: tuple[Graph, ...] = ()
    """Of an llm: what is executed for each chunk of the prompt, in order."""
    decode: tuple[Graph, ...] = ()
    """Of an llm: what is executed for each token after the first, in order."""
    ar: int = param("doc", "tokens of one prefill pass (AR-n)", default=128)
    context_tokens: int = param("doc", "context length the binary was compiled for", default=4096)
    kv_bytes: int = param("measured", "KV cache an instance adds", default=0, unit="bytes")
    tokens_per_image: int = param("measured", "prompt tokens one image becomes", default=256)
    lm_head_split: bool = param(
        "assumed",
        "the last prefill graph is the LM head and runs in the last chunk only; published chunk times include it",
        default=False,
    )
    split: int = param("choice", "cut each ViT graph into this many equal graphs", default=1)
    built_for_cores: int = param("assumed", "cores a graph takes at once; 0: all in topology gang, else one", default=0)
    placement: str = param(
        "assumed",
        "core a copy is loaded on: by-instance (index mod cores), least-loaded, or a core number",
        default="by-instance",
        vary=("by-instance", "least-loaded", "0"),
    )
    load: Literal["read", "mmap"] = param(
        "doc", "how the file reaches memory: a copy a load, or one page-cache copy", default="mmap"
    )
    file_kept: bool = param(
        "assumed",
        "with load read: the file's bytes stay in host memory; a public thread has a heap copy for each session",
        default=True,
        vary=(True, False),
    )
    read_budget_bytes: int | None = param(
        "doc",
        "with load read: how much of a file is in host memory at a time, and nothing afterwards; none: all of it",
        default=None,
        unit="bytes",
    )
    weight_sharing: bool = param(
        "doc",
        "the binary was built so that its sets of graphs (prefill, decode, tiers) share weights; false: each set "
        "brings those of its contexts once more",
        default=True,
    )
    options: str = param("doc", "load options that make a different key (graph switching, memory hints)", default="")
    graph_switch_ns: int = param(
        "measured",
        "graph switching: time to load another set of graphs (prefill, decode, a tier) in place of the one that is "
        "loaded; 0: all stay loaded",
        default=0,
        unit="ns",
    )
    lora_switch_ns: int = param(
        "measured", "time to apply a LoRA adapter; Genie's profile tells it", default=0, unit="ns"
    )

    def as_built(self) -> Model:
        """Return the model with the bytes that its binaries have as they were built: with shared weights or without.

        >>> from htpsim.spec.distribution import constant
        >>> sets = [(Graph(name=name, context="c", service=constant(1)),) for name in ("ar128", "ar1")]
        >>> model = Model(
        ...     name="m",
        ...     role="llm",
        ...     contexts=(Context(name="c", weights_bytes=5),),
        ...     prefill=sets[0],
        ...     decode=sets[1],
        ...     weight_sharing=False,
        ... )
        >>> model.as_built().contexts[0].weights_bytes
        10
        """
        if self.weight_sharing:
            return self
        lists = (self.graphs, self.prefill, self.decode)
        sets = {(graph.context, n, graph.tier_tokens) for n, graphs in enumerate(lists) for graph in graphs}
        built = []
        for context in self.contexts:
            times = max(1, sum(name == context.name for name, _, _ in sets))
            file_bytes = None if context.file_bytes is None else times * context.file_bytes
            built.append(replace(context, weights_bytes=times * context.weights_bytes, file_bytes=file_bytes))
        return replace(self, contexts=tuple(built))

    @property
    def all_graphs(self) -> tuple[Graph, ...]:
        """Every graph of the model, in the order graphs, prefill, decode."""
        return self.graphs + self.prefill + self.decode
