"""What the graphs of a scenario really do on the testbed: sessions of ONNX Runtime, or timed pieces of nothing.

A *bench* prepares a scenario, which may change what its contexts weigh, and opens the work of one graph of one loaded
copy. ``OnnxBench`` builds each graph as a small model whose shape the scenario states in ``models.NAME.options``, as
"blocks=4 width=256"; how many tokens it takes stands in the scenario anyway, but for a ViT, which may take more
("tokens=256") than an image becomes. ``TimedBench`` sleeps for the service time
that was drawn, the very one that the engines draw, so that only what is around the work differs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, Protocol

from htpsim.errors import ScenarioError, nearest
from htpsim.formats.writers.extra import needed
from htpsim.live.models import EXTRA, build
from htpsim.live.onnxfile import look_into
from htpsim.live.session import Session
from htpsim.spec import Model, Scenario
from htpsim.spec.plan import GraphPlan, ModelPlan
from htpsim.units import NS_PER_S

_SHAPE: Final = {"blocks": 64, "width": 4096, "tokens": 8192}
"""Largest values; tokens may be left out."""

Stage = Literal["vit", "prefill", "decode"]


class Work(Protocol):
    """One graph of one loaded copy."""

    weights_bytes: int

    def run(self, wanted_ns: int) -> None:
        """Execute it once; `wanted_ns` is the service time that the scenario draws, for work that has none itself."""

    def close(self) -> None:
        """Give back what it holds."""


class Bench(Protocol):
    """Where work comes from."""

    name: str

    def prepare(self, scenario: Scenario) -> Scenario:
        """Return the scenario with its contexts as heavy as they will be."""

    def open(self, model: Model, graph: GraphPlan, stage: Stage) -> Work:
        """Load the work of one graph for one copy of a model."""


class TimedWork:
    """Takes the time that was drawn, asleep; weighs nothing."""

    weights_bytes = 0

    def run(self, wanted_ns: int) -> None:
        """Let the time pass."""
        time.sleep(wanted_ns / NS_PER_S)

    def close(self) -> None:
        """Hold nothing."""


class TimedBench:
    """Work that only takes time: for tests of everything around it, and for scenarios that state no shape.

    Parameters
    ----------
    work : callable
        What is done instead of sleeping, told the time that was drawn [ns].

    Examples
    --------
    >>> TimedBench().prepare(Scenario()) == Scenario()
    True
    """

    name = "timed"

    def __init__(self, work: Callable[[int], None] | None = None) -> None:
        self.work = work

    def prepare(self, scenario: Scenario) -> Scenario:
        """Change nothing."""
        return scenario

    def open(self, model: Model, graph: GraphPlan, stage: Stage) -> Work:
        """Return work that takes the time drawn."""
        work = TimedWork()
        if self.work is not None:
            setattr(work, "run", self.work)  # noqa: B010 - a method of this one piece of work
        return work


class OnnxWork:
    """A session of ONNX Runtime on one thread: that of the core it runs on."""

    def __init__(self, model: bytes) -> None:
        self._session = Session.open(model, threads=1)
        self.weights_bytes = self._session.weights_bytes

    def run(self, wanted_ns: int) -> None:
        """Run it once."""
        self._session.run()

    def close(self) -> None:
        """Close the session."""
        self._session.close()


class OnnxBench:
    """Small models of ONNX Runtime in the roles and shapes that a scenario states; each is built once."""

    name = "onnx"

    def __init__(self) -> None:
        self._built: dict[tuple[str, int, int, int, int], bytes] = {}
        self._weights: dict[tuple[str, int, int, int, int], int] = {}

    def prepare(self, scenario: Scenario) -> Scenario:
        """Return the scenario with each context as heavy as the weights of its sessions.

        Raises
        ------
        ScenarioError
            When onnxruntime is missing, or a model does not state its shape.
        """
        refuse_without_onnx()
        instances = tuple(
            replace(i, vit=i.vit and self._weighed(i.vit), llm=i.llm and self._weighed(i.llm))
            for i in scenario.instances
        )
        return replace(scenario, instances=instances)

    def _weighed(self, model: Model) -> Model:
        """Return a model whose contexts hold the bytes of the sessions that they are."""
        held = dict.fromkeys((context.name for context in model.contexts), 0)
        for stage, graphs in stages_of(model):
            parts = model.split if model.role == "vit" else 1
            for graph in graphs:
                held[graph.context] += parts * self._weight(_shape(model, stage))
        contexts = tuple(
            replace(
                context, weights_bytes=held[context.name], run_list_bytes=0, io_bytes=0, spill_fill_bytes=0,
                vtcm_backup_bytes=0, file_bytes=None, load_bytes=0,
            )
            for context in model.contexts
        )  # fmt: skip
        return replace(model, contexts=contexts, weight_sharing=True)

    def _weight(self, shape: tuple[str, int, int, int, int]) -> int:
        if shape not in self._weights:
            self._weights[shape] = look_into(self._bytes(shape)).weights_bytes
        return self._weights[shape]

    def _bytes(self, shape: tuple[str, int, int, int, int]) -> bytes:
        if shape not in self._built:
            role, blocks, width, tokens, past = shape
            self._built[shape] = build(role, blocks=blocks, width=width, tokens=tokens, past=past)
        return self._built[shape]

    def open(self, model: Model, graph: GraphPlan, stage: Stage) -> Work:
        """Open a session of its own for one graph of one copy."""
        return OnnxWork(self._bytes(_shape(model, stage)))


def refuse_without_onnx() -> None:
    """Raise HtpsimError unless the packages of the extra `measure` are there."""
    for name in ("onnx", "onnxruntime"):
        needed(name, EXTRA)


def stages_of(model: Model | ModelPlan) -> list[tuple[Stage, Sequence[Any]]]:
    """Return the graphs of a model, as specified or as planned, by the stages that it has.

    >>> stages_of(Model(name="vit", role="vit"))
    []
    """
    found: list[tuple[Stage, Sequence[Any]]]
    found = [("vit", model.graphs), ("prefill", model.prefill), ("decode", model.decode)]
    return [(stage, graphs) for stage, graphs in found if graphs]


def _shape(model: Model, stage: Stage) -> tuple[str, int, int, int, int]:
    """Return (role, blocks, width, tokens, past) of one graph of a stage of a model; its graphs share the blocks."""
    given = shape_of(model)
    graphs = len(dict(stages_of(model))[stage]) * (model.split if stage == "vit" else 1)
    if given["blocks"] % graphs:
        raise ScenarioError(
            f"models.{model.name}.options: got blocks={given['blocks']}, expected a multiple of the {graphs} graphs "
            f"that the {stage} is cut into"
        )
    blocks, width = given["blocks"] // graphs, given["width"]
    if stage == "decode":
        return stage, blocks, width, 1, model.context_tokens
    tokens = given.get("tokens", model.tokens_per_image) if stage == "vit" else model.ar
    return stage, blocks, width, tokens, 0


def shape_of(model: Model) -> dict[str, int]:
    """Return the shape that a model states in its options.

    Raises
    ------
    ScenarioError
        When it states none, or not with whole numbers above zero.

    Examples
    --------
    >>> shape_of(Model(name="vit", role="vit", options="blocks=4 width=256"))
    {'blocks': 4, 'width': 256}
    """
    where, found = f"models.{model.name}.options", {}
    for word in model.options.split():
        name, _, value = word.partition("=")
        if name not in _SHAPE:
            close = nearest(name, _SHAPE)
            hint = f"; did you mean '{close}'?" if close else ""
            raise ScenarioError(f"{where}: got '{word}', expected {', '.join(_SHAPE)}{hint}")
        if not (value.isascii() and value.isdigit() and 1 <= int(value) <= _SHAPE[name]):
            raise ScenarioError(f"{where}: {name}: got '{value}', expected a whole number from 1 to {_SHAPE[name]}")
        found[name] = int(value)
    if not {"blocks", "width"} <= found.keys():
        raise ScenarioError(
            f"{where}: got '{model.options}', expected the shape of the model that the testbed builds, such as "
            '"blocks=4 width=256"; or let graphs only take their time with --work timed'
        )
    return found
