"""Genie's genie_config.json: a dialog or a part of one, with its engine, context, and context binaries.

Besides ``dialog`` a file may hold a ``text-generator``, an ``image-encoder``, an ``embedding`` and so on, each with
the same kind of engine inside; an engine may be a list (draft and target of speculative decoding), or stand in a list
of ``shared-engines``, each a ``standalone-engine`` that several dialogs use. Some parts spell alike things differently:
an ``embedding`` has ``ctx-size`` and ``embed-size`` in its context, where a dialog has ``size``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from htpsim.errors import nearest
from htpsim.formats import jsontext
from htpsim.formats.form import Format, Match
from htpsim.formats.source import Source
from htpsim.formats.tree import Node, few
from htpsim.formats.values import Fact, Report, Value, row

NAME: Final = "genie-config"

ROOTS: Final = ("dialog", "text-generator", "image-encoder", "text-encoder", "embedding", "standalone-engine")
"""Keys that can hold a component; a fragment has one of them and no dialog."""

STANDALONE: Final = "standalone-engine"
SHARED: Final = "shared-engines"
_ENGINE: Final = frozenset({"backend", "model", "n-threads", "role"})

_EXPECTED: Final = "a genie_config.json with 'dialog' or a component such as 'image-encoder'"
_ROOT_FIRST: Final = re.compile(rf'\s*\{{\s*"(?:{"|".join(ROOTS)})"\s*:')
_TRACE: Final = re.compile(r'"(?:ctx-bins"\s*:\s*\[|(?:dialog|QnnHtp)"\s*:\s*\{)')
_PLACEHOLDER: Final = re.compile(r"<[A-Za-z_][\w -]*>")
_KNOWN: Final = frozenset(
    {"version", "type", "context", "sampler", "tokenizer", "engine", "max-num-tokens", "embedding", "stop-sequence"}
    | {"ssd-q1", "accumulate-embeddings", "text-encoder", "prompt", "truncate-input", "shared-engines"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """One engine: where it runs, and what it loads. Each value is ``None`` where the file does not state it."""

    line: int
    role: Value[str] | None
    n_threads: Value[int] | None
    backend: Value[str] | None
    mmap: Value[bool] | None
    mmap_budget: Value[int] | None
    poll: Value[bool] | None
    kv_dim: Value[int] | None
    pos_id_dim: Value[int] | None
    cpu_mask: Value[str] | None
    rope_theta: Value[int | float] | None
    async_init: Value[bool] | None
    graph_switching: Value[bool] | None
    shared_engine: Value[bool] | None
    spill_fill_bytes: Value[int] | None
    extensions: Value[str] | None
    """Path of the htp_backend_ext_config.json."""

    ctx_bins: tuple[Value[str], ...]
    library_bin: Value[str] | None
    """The model of an engine that is no HTP's: one file, of the CPU's transformer."""

    lora_adapters: tuple[Value[str], ...]
    vision_height: Value[int] | None
    vision_width: Value[int] | None
    rope_type: Value[str] | None
    rope_dim: Value[int] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GenieConfig:
    """One configuration."""

    root: str
    """Which component this is: ``dialog``, ``image-encoder`` and so on."""

    type: Value[str] | None
    context_size: Value[int] | None
    n_vocab: Value[int] | None
    bos_token: Value[int] | None
    eos_tokens: tuple[Value[int], ...]
    eot_token: Value[int] | None
    max_num_tokens: Value[int] | None
    embedding_size: Value[int] | None
    embedding_datatype: Value[str] | None
    forecast_prefix: Value[int] | None
    forecast_token_count: Value[int] | None
    tokenizer: Value[str] | None
    engines: tuple[Engine, ...]
    placeholders: tuple[Value[str], ...]
    """Paths that are still to be filled in, such as ``<models_path>/part_1.bin``."""

    unread: tuple[str, ...]
    """Places of keys that the reader does not know."""

    @property
    def engine(self) -> Engine | None:
        """The only engine, or of several the one whose role is target or primary, else the first."""
        main = [item for item in self.engines if item.role and item.role.value in ("target", "primary")]
        return next(iter(main or self.engines), None)

    @property
    def ctx_bins(self) -> tuple[Value[str], ...]:
        """The context binaries of that engine: one a split. Empty when the file names none."""
        return self.engine.ctx_bins if self.engine else ()


def sniff(source: Source) -> Match:
    """Say whether this is such a configuration; a log that quotes one is not."""
    if _ROOT_FIRST.match(source.text):
        return Match.YES
    is_object = source.text.lstrip().startswith("{")
    return Match.TRACES if is_object and _TRACE.search(source.text) else Match.NO


def read(source: Source, lenient: bool = False) -> Report:
    """Read a configuration.

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
    >>> read(from_text("g.json", '{"dialog": {"context": {"size": 4096}}}')).data.context_size
    Value(value=4096, unit='tokens', line=1)
    """
    config = parse(source)
    return Report(NAME, source.name, config, _facts(config), source.notes + _warnings(config))


def parse(source: Source) -> GenieConfig:
    """Return the configuration; raises as :func:`read` does."""
    document = jsontext.parse(source, _EXPECTED)
    if not isinstance(document.value, dict):
        document.refuse(_EXPECTED)
    root = next((name for name in ROOTS if document.find(name) is not None), None)
    if root is None:
        keys = list(document.value)
        close = next((f"; did you mean '{near}'?" for key in keys if (near := nearest(key, ROOTS))), "")
        got = f"the keys {', '.join(keys[:5])}" if keys else "no keys"
        raise source.error(document.line, got, _EXPECTED + close)
    body = document.members()[root]
    engines = tuple(_engine(item) for item in _engines(document, root, body))
    eos = body.find("context", "eos-token")
    ssd = body.find("ssd-q1")
    paths = [body.text("tokenizer", "path"), *(item.extensions for item in engines)]
    paths += [path for item in engines for path in (*item.ctx_bins, *item.lora_adapters, item.library_bin)]
    return GenieConfig(
        root=root,
        type=body.text("type"),
        context_size=body.whole("context", "size", unit="tokens") or body.whole("context", "ctx-size", unit="tokens"),
        n_vocab=body.whole("context", "n-vocab", unit="tokens"),
        bos_token=body.whole("context", "bos-token"),
        eos_tokens=tuple(value for item in (eos.items() if eos else []) if (value := item.whole())),
        eot_token=body.whole("context", "eot-token"),
        max_num_tokens=body.whole("max-num-tokens", unit="tokens"),
        embedding_size=body.whole("embedding", "size", unit="values")
        or body.whole("context", "embed-size", unit="values"),
        embedding_datatype=body.text("embedding", "datatype"),
        forecast_prefix=ssd.whole("forecast-prefix", unit="tokens") if ssd else None,
        forecast_token_count=ssd.whole("forecast-token-count", unit="tokens") if ssd else None,
        tokenizer=body.text("tokenizer", "path"),
        engines=engines,
        placeholders=tuple(path for path in paths if path and _PLACEHOLDER.search(path.value)),
        unread=(*document.unread({root, SHARED}), *body.unread(_KNOWN if root != STANDALONE else _KNOWN | _ENGINE)),
    )


def _engines(document: Node, root: str, body: Node) -> list[Node]:
    """Return the engines of a component: its own, or what the file shares among dialogs."""
    if root == STANDALONE:
        # The tool reads 'engine' below; files that leave this level out are meant the same.
        return _held(body, "engine") or ([body] if _ENGINE & set(body.members()) else [])
    own = _held(body, "engine")
    shared = [*_held(body, SHARED), *_held(document, SHARED)]
    return own + [engine for item in shared for engine in _held(item.find(STANDALONE) or item, "engine")]


def _held(body: Node, key: str) -> list[Node]:
    found = body.find(key)
    return found.items() if found is not None else []


def _texts(node: Node | None) -> tuple[Value[str], ...]:
    return tuple(value for item in (node.items() if node else []) if (value := item.text()))


def _engine(node: Node) -> Engine:
    backend = ("backend", "QnnHtp")
    adapters = node.find("model", "binary", "lora", "adapters")
    return Engine(
        line=node.line,
        role=node.text("role"),
        n_threads=node.whole("n-threads", unit="count"),
        backend=node.text("backend", "type"),
        mmap=node.flag(*backend, "use-mmap"),
        mmap_budget=node.whole(*backend, "mmap-budget"),
        poll=node.flag(*backend, "poll"),
        kv_dim=node.whole(*backend, "kv-dim", unit="values"),
        pos_id_dim=node.whole(*backend, "pos-id-dim", unit="values"),
        cpu_mask=node.text(*backend, "cpu-mask"),
        rope_theta=node.number(*backend, "rope-theta"),
        async_init=node.flag(*backend, "allow-async-init"),
        graph_switching=node.flag(*backend, "enable-graph-switching"),
        shared_engine=node.flag(*backend, "shared-engine"),
        spill_fill_bytes=node.whole(*backend, "spill-fill-bufsize", unit="bytes"),
        extensions=node.text("backend", "extensions"),
        ctx_bins=_texts(node.find("model", "binary", "ctx-bins")),
        library_bin=node.text("model", "library", "model-bin"),
        lora_adapters=tuple(name for item in (adapters.items() if adapters else []) if (name := item.text("name"))),
        vision_height=node.whole("model", "vision-param", "height", unit="patches"),
        vision_width=node.whole("model", "vision-param", "width", unit="patches"),
        rope_type=node.text("model", "positional-encoding", "rope-scaling", "rope-type"),
        rope_dim=node.whole("model", "positional-encoding", "rope-dim", unit="values"),
    )


def _facts(config: GenieConfig) -> tuple[Fact, ...]:
    root = config.root
    rows = [
        Fact("file", "component", root),
        row(root, "type", config.type),
        row(root, "context size", config.context_size),
        row(root, "vocabulary", config.n_vocab),
        row(root, "begin token", config.bos_token),
        *(row(root, "end token", token) for token in config.eos_tokens),
        row(root, "end-of-turn token", config.eot_token),
        row(root, "most tokens of an answer", config.max_num_tokens),
        row(root, "embedding size", config.embedding_size),
        row(root, "embedding type", config.embedding_datatype),
        row(root, "forecast prefix", config.forecast_prefix),
        row(root, "tokenizer", config.tokenizer),
    ]
    for number, engine in enumerate(config.engines):
        place = "engine" if len(config.engines) == 1 else f"engine {engine.role.value if engine.role else number}"
        rows += _engine_facts(place, engine)
    return tuple(rows)


def _engine_facts(place: str, engine: Engine) -> list[Fact]:
    return [
        row(place, "host threads", engine.n_threads),
        row(place, "backend", engine.backend),
        row(place, "memory-mapped weights", engine.mmap),
        row(place, "mapping budget", engine.mmap_budget, _zero(engine.mmap_budget, "no budget")),
        row(place, "polling", engine.poll),
        row(place, "KV dimension", engine.kv_dim),
        row(place, "position dimension", engine.pos_id_dim),
        row(place, "CPU mask", engine.cpu_mask),
        row(place, "RoPE theta", engine.rope_theta),
        row(place, "RoPE type", engine.rope_type),
        row(place, "asynchronous load", engine.async_init),
        row(place, "graph switching", engine.graph_switching),
        row(place, "spill-fill buffer", engine.spill_fill_bytes, _zero(engine.spill_fill_bytes, "not set here")),
        row(place, "backend extensions", engine.extensions),
        row(place, "image height", engine.vision_height),
        row(place, "image width", engine.vision_width),
        Fact(place, "context binaries", len(engine.ctx_bins), "count", note="" if engine.ctx_bins else "none named"),
        *(row(place, f"context binary {number}", path) for number, path in enumerate(engine.ctx_bins, start=1)),
        *([row(place, "model file, not of the HTP", engine.library_bin)] if engine.library_bin else []),
        *(row(place, "LoRA adapter", name) for name in engine.lora_adapters),
    ]


def _zero(value: Value[int] | None, meaning: str) -> str:
    return meaning if value is not None and value.value == 0 else ""


def _warnings(config: GenieConfig) -> tuple[str, ...]:
    notes = []
    if config.placeholders:
        first = config.placeholders[0]
        notes.append(f"{len(config.placeholders)} paths are placeholders (line {first.line}: {first.value})")
    if config.root == "dialog" and config.embedding_size is not None:
        notes.append("takes embeddings: the text half of a vision-language model; the ViT must come from another file")
    if config.root != "dialog":
        size = "" if config.context_size else ", so no context size"
        notes.append(f"a fragment: only '{config.root}', no dialog{size}")
    if len(config.engines) > 1:
        roles = ", ".join(item.role.value if item.role else "none" for item in config.engines[:8])
        notes.append(f"{len(config.engines)} engines, of roles {roles}: each loads its own binaries")
    if config.max_num_tokens and config.context_size and config.max_num_tokens.value > config.context_size.value:
        notes.append(f"line {config.max_num_tokens.line}: more tokens of an answer than the context holds")
    if config.unread:
        notes.append(f"keys not read: {few(config.unread)}")
    return tuple(notes)


FORMAT: Final = Format(
    NAME,
    "Genie configuration",
    "genie_config.json: context size, context binaries, memory mapping, polling and the rest of a Genie engine",
    sniff,
    read,
)
