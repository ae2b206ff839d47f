"""Configuration of qnn-throughput-net-run: several threads that execute models on backends, at the same time.

``backends``, ``models`` and ``contexts`` are named once; each thread of ``testCase`` names one of each, how often it
executes and with which pause. Of all public files it is the nearest to a scenario, and it can become one (``htpsim
import``); how long an execution takes stands in none of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from htpsim.errors import unknown_name
from htpsim.formats import jsontext
from htpsim.formats.form import Format, Match
from htpsim.formats.source import Source
from htpsim.formats.tree import Node, few
from htpsim.formats.values import Fact, Report, Value, row
from htpsim.spec import PRIORITIES

NAME: Final = "qnn-throughput"
DEPTH_DEFAULT: Final = 10
"""Executions that an asynchronous thread may have in flight where its context says nothing (public documentation)."""

DEPTH_MAX: Final = 300
UNITS: Final = ("count", "second")

_EXPECTED: Final = "a configuration of qnn-throughput-net-run: 'backends', 'models', 'contexts' and 'testCase'"
_TEST: Final = re.compile(r'"testCase"\s*:\s*\{')
_PARTS: Final = re.compile(r'"(?:backendName|backends|threadName|contextName)"\s*:')
_ROOT: Final = frozenset({"backends", "models", "contexts", "testCase"})
_THREAD: Final = frozenset(
    {"threadName", "backend", "context", "model", "interval", "loopUnit", "loop", "executeAsynchronous"}
    | {"backendConfig", "useRandomData", "inputPath", "outputPath"}
)
_THREADS_MAX: Final = 1000


@dataclass(frozen=True, slots=True)
class Backend:
    """Where graphs run."""

    name: Value[str]
    path: Value[str] | None
    perf_profile: Value[str] | None
    profiling: Value[str] | None

    @property
    def is_htp(self) -> bool:
        """Whether its library is the HTP's, by the name of the file; a backend without a path is taken for one."""
        return self.path is None or "htp" in re.split(r"[\\/]", self.path.value)[-1].lower()


@dataclass(frozen=True, slots=True)
class ThroughputModel:
    """What is executed."""

    name: Value[str]
    path: Value[str] | None
    cached: Value[bool] | None
    """Whether the path is a context binary."""


@dataclass(frozen=True, slots=True)
class ThroughputContext:
    """What a thread's graphs are loaded into."""

    name: Value[str]
    priority: Value[str] | None
    """In htpsim's words, such as NORMAL_HIGH."""

    queue_depth: Value[int] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """One loop of executions."""

    name: Value[str]
    backend: Backend
    context: ThroughputContext
    model: ThroughputModel
    interval: Value[int] | None
    loop: Value[int] | None
    loop_unit: Value[str] | None
    asynchronous: Value[bool] | None

    @property
    def outstanding(self) -> int:
        """Executions it may have in flight."""
        if self.asynchronous is None or not self.asynchronous.value:
            return 1
        return self.context.queue_depth.value if self.context.queue_depth else DEPTH_DEFAULT


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """One configuration."""

    backends: tuple[Backend, ...]
    models: tuple[ThroughputModel, ...]
    contexts: tuple[ThroughputContext, ...]
    threads: tuple[Thread, ...]
    iteration: Value[int] | None
    unread: tuple[str, ...]


def sniff(source: Source) -> Match:
    """Say whether this is such a configuration."""
    if not source.text.lstrip().startswith("{") or not _TEST.search(source.text):
        return Match.NO
    return Match.YES if _PARTS.search(source.text) else Match.TRACES


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
        Names line and column of what is no JSON, or the place of a value of the wrong kind or of a name that is
        nowhere defined, with the nearest.

    Examples
    --------
    >>> from htpsim.formats.source import from_text
    >>> text = '''{"backends": [{"backendName": "htp"}], "models": [{"modelName": "vit"}],
    ... "contexts": [{"contextName": "c", "priority": "high"}], "testCase": {"threads": [{"threadName": "t",
    ... "backend": "htp", "context": "c", "model": "vit", "interval": 0, "loopUnit": "second", "loop": 10}]}}'''
    >>> thread = read(from_text("t.json", text)).data.threads[0]
    >>> thread.context.priority, thread.loop
    (Value(value='HIGH', unit='', line=2), Value(value=10, unit='s', line=3))
    """
    config = parse(source)
    return Report(NAME, source.name, config, tuple(_facts(config)), source.notes + _warnings(config))


def parse(source: Source) -> Throughput:
    """Return the configuration; raises as :func:`read` does."""
    root = jsontext.parse(source, _EXPECTED)
    if not isinstance(root.value, dict) or not isinstance((root.find("testCase") or root).value, dict):
        root.refuse(_EXPECTED)
    case = root.find("testCase")
    if case is None:
        root.refuse(_EXPECTED)
    backends = {item.name.value: item for item in map(_backend, _named(root, "backends", "backendName"))}
    models = {item.name.value: item for item in map(_model, _named(root, "models", "modelName"))}
    contexts = {item.name.value: item for item in map(_context, _named(root, "contexts", "contextName"))}
    nodes = _named(case, "threads", "threadName")
    if len(nodes) > _THREADS_MAX:
        nodes[_THREADS_MAX].refuse(f"at most {_THREADS_MAX} threads")
    return Throughput(
        backends=tuple(backends.values()),
        models=tuple(models.values()),
        contexts=tuple(contexts.values()),
        threads=tuple(_thread(node, backends, models, contexts) for node in nodes),
        iteration=case.count("iteration", unit="count"),
        unread=(*root.unread(_ROOT), *(place for node in nodes for place in node.unread(_THREAD)))[:100],
    )


def _named(parent: Node, key: str, name_key: str) -> list[Node]:
    """Return the items of a list, each of which must have a name of its own."""
    held = parent.find(key)
    items = held.items() if held is not None else []
    seen: dict[str, int] = {}
    for item in items:
        name = item.text(name_key)
        if name is None:
            item.refuse(f"an entry with '{name_key}'")
        if name.value in seen:
            item.refuse(f"another {name_key} than '{name.value}', which line {seen[name.value]} has")
        seen[name.value] = name.line
    return items


def _name(node: Node, key: str) -> Value[str]:
    return node.text(key) or node.refuse(f"'{key}'")


def _backend(node: Node) -> Backend:
    return Backend(
        _name(node, "backendName"), node.text("backendPath"), node.text("perfProfile"), node.text("profilingLevel")
    )


def _model(node: Node) -> ThroughputModel:
    return ThroughputModel(_name(node, "modelName"), node.text("modelPath"), node.flag("loadFromCachedBinary"))


def _context(node: Node) -> ThroughputContext:
    priority, depth = node.text("priority"), node.count("executeAsyncQueueDepth", unit="count")
    if priority is not None:
        word = priority.value.upper().removeprefix("QNN_PRIORITY_").replace("DEFAULT", "NORMAL")
        if word not in PRIORITIES:
            (node.find("priority") or node).refuse(unknown_name("", word, PRIORITIES).partition("expected ")[2])
        priority = Value(word, "", priority.line)
    if depth is not None and not 1 <= depth.value <= DEPTH_MAX:
        (node.find("executeAsyncQueueDepth") or node).refuse(f"a depth from 1 to {DEPTH_MAX}")
    return ThroughputContext(_name(node, "contextName"), priority, depth)


def _thread(
    node: Node,
    backends: dict[str, Backend],
    models: dict[str, ThroughputModel],
    contexts: dict[str, ThroughputContext],
) -> Thread:
    unit = node.text("loopUnit")
    if unit is not None and unit.value not in UNITS:
        (node.find("loopUnit") or node).refuse(" or ".join(f"'{word}'" for word in UNITS))
    counted = unit is None or unit.value == UNITS[0]
    return Thread(
        name=_name(node, "threadName"),
        backend=_defined(node, "backend", backends),
        context=_defined(node, "context", contexts),
        model=_defined(node, "model", models),
        interval=node.count("interval", unit="us"),
        loop=node.count("loop", unit="count" if counted else "s"),
        loop_unit=unit,
        asynchronous=node.flag("executeAsynchronous"),
    )


def _defined(node: Node, key: str, known: dict[str, Any]) -> Any:
    """Return what a thread names."""
    name = _name(node, key).value
    if name not in known:
        listed = unknown_name("", name, known).partition("expected ")[2] if known else "a name that is defined"
        (node.find(key) or node).refuse(f"{listed}, of the file's {key}s")
    return known[name]


def _facts(config: Throughput) -> Iterator[Fact]:
    for backend in config.backends[:_THREADS_MAX]:
        place = f"backend {backend.name.value}"
        yield row(place, "library", backend.path, "the HTP" if backend.is_htp else "not the HTP")
        yield row(place, "performance profile", backend.perf_profile)
        yield row(place, "profiling", backend.profiling)
    for model in config.models[:_THREADS_MAX]:
        yield row(f"model {model.name.value}", "file", model.path)
        yield row(f"model {model.name.value}", "is a context binary", model.cached)
    for context in config.contexts[:_THREADS_MAX]:
        yield row(f"context {context.name.value}", "priority", context.priority)
        yield row(f"context {context.name.value}", "asynchronous depth", context.queue_depth)
    for thread in config.threads:
        place = f"thread {thread.name.value}"
        yield Fact(
            place, "runs", thread.model.name.value, line=thread.name.line, note=f"on {thread.backend.name.value}"
        )
        yield row(place, "interval", thread.interval)
        yield row(place, "loop", thread.loop)
        yield row(place, "asynchronous", thread.asynchronous)
        yield Fact(place, "executions in flight", thread.outstanding, "count", note="at most")
    yield row("test case", "iterations", config.iteration)


def _warnings(config: Throughput) -> tuple[str, ...]:
    notes = ["how long an execution takes is not in this file"]
    others = [thread.name.value for thread in config.threads if not thread.backend.is_htp]
    if others:
        notes.append(f"{len(others)} threads do not run on the HTP: {', '.join(others[:8])}")
    if not config.threads:
        notes.append("no thread in the test case")
    if config.unread:
        notes.append(f"keys not read: {few(config.unread)}")
    return tuple(notes)


FORMAT: Final = Format(
    NAME,
    "QNN throughput configuration",
    "JSON of qnn-throughput-net-run: threads with model, backend, priority, pause and loop; becomes a scenario",
    sniff,
    read,
)
