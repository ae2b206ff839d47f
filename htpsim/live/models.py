"""Small transformers built on the fly: what a ViT, a prompt chunk and a decode step look like to a processor.

They compute nothing of use. They have the operators, the shapes and the memory traffic of the real ones: a ViT and a
prefill chunk multiply matrices by matrices and are bound by arithmetic; a decode step multiplies every weight by one
vector and reads the keys and values of ``past`` tokens, so it is bound by memory. Prefill and decode of the same
blocks, width and seed have the same weights, as two graphs of one LLM do.

========  ===============================  ==========================================================
role      inputs                           outputs
========  ===============================  ==========================================================
vit       ``patches`` [tokens, 588]        ``features`` [tokens, width]
prefill   ``embeddings`` [tokens, width]   ``hidden`` [tokens, width], keys and values of the chunk
decode    ``embeddings`` [tokens, width]   ``hidden`` [tokens, width], keys and values of the new token
========  ===============================  ==========================================================

With ``past`` above 0, prefill and decode have an input ``past_key_i`` [heads, head width, past] and ``past_value_i``
[heads, past, head width] a block. Weights are drawn from a seeded stream, so the same arguments give the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from htpsim import rng
from htpsim.errors import HtpsimError, unknown_name
from htpsim.formats.writers.extra import needed

EXTRA: Final = "measure"
"""The extra that brings onnx and onnxruntime."""
OPSET: Final = 20
"""The first that has Gelu; ONNX Runtime reads it from 1.17 on."""
HEAD_WIDTH: Final = 64
PATCH: Final = 14 * 14 * 3
"""Values of one patch of an image: 14 by 14 pixels of three colours."""
GROWTH: Final = 4
"""How much wider the inner layer of a feed-forward part is."""
LARGEST_BYTES: Final = 2**31 - 2**20
"""More than that, protobuf cannot write in one piece."""
_SEED: Final = 20_24


@dataclass(frozen=True, slots=True)
class Size:
    """How large a model is."""

    blocks: int
    width: int
    """a multiple of the width of a head, 64"""
    tokens: int
    """rows that one execution works on"""
    past: int = 0
    """tokens whose keys and values it reads"""

    @property
    def weights_bytes(self) -> int:
        """Bytes of the matrices of its blocks, which are all but a few of the weights."""
        return 4 * self.blocks * (4 + 2 * GROWTH) * self.width**2

    @property
    def scores_bytes(self) -> int:
        """Bytes of one block's scores, of each row with each token that it may look at; its mask has fewer."""
        return 4 * (self.width // HEAD_WIDTH) * self.tokens * (self.past + self.tokens)


ROLES: Final = {
    "vit": Size(blocks=4, width=256, tokens=256),
    "prefill": Size(blocks=4, width=384, tokens=64),
    "decode": Size(blocks=4, width=384, tokens=1, past=256),
}
"""role -> the size it has by default: tens of milliseconds, half that, and a few on one thread of a PC"""


def sizes(role: str, *, tokens: float = 1.0, blocks: float = 1.0) -> Size:
    """Return the default size of a role with more or fewer tokens, or blocks.

    The time of a ViT and of a prefill chunk grows about as both, that of a decode step as its blocks.

    Raises
    ------
    HtpsimError
        When there is no such role.

    Examples
    --------
    >>> sizes("vit", tokens=0.5)
    Size(blocks=4, width=256, tokens=128, past=0)
    """
    size = _size(role)
    return Size(max(1, round(size.blocks * blocks)), size.width, max(1, round(size.tokens * tokens)), size.past)


def build(
    role: str,
    *,
    blocks: int | None = None,
    width: int | None = None,
    tokens: int | None = None,
    past: int | None = None,
    seed: int = _SEED,
) -> bytes:
    """Build an ONNX model; what is not given is as in :data:`ROLES`.

    Parameters
    ----------
    role
        ``vit``, ``prefill`` or ``decode``.
    blocks, width, tokens, past
        See :class:`Size`.
    seed
        Of the weights.

    Raises
    ------
    HtpsimError
        When there is no such role or size, or onnx is not installed.

    Examples
    --------
    >>> model = build("decode", blocks=1, width=64, past=8)
    >>> model == build("decode", blocks=1, width=64, past=8), len(model) > sizes("decode").weights_bytes // 1000
    (True, True)
    """
    usual = _size(role)
    size = Size(*(u if g is None else g for u, g in ((usual.blocks, blocks), (usual.width, width),
                                                     (usual.tokens, tokens), (usual.past, past))))  # fmt: skip
    _refuse(role, size)
    graph = _Graph(needed("onnx", EXTRA), seed)
    values = _vit(graph, size) if role == "vit" else _language(graph, size)
    return graph.model(f"{role}_b{size.blocks}_w{size.width}_t{size.tokens}_p{size.past}", values)


def _size(role: str) -> Size:
    if role not in ROLES:
        raise HtpsimError(unknown_name("role of a model", role, ROLES))
    return ROLES[role]


def _refuse(role: str, size: Size) -> None:
    least = {"blocks": size.blocks, "width": size.width, "tokens": size.tokens}
    for name, value in least.items():
        if value < 1:
            raise HtpsimError(f"{role}.{name}: got {value}, expected at least 1")
    if size.width % HEAD_WIDTH:
        raise HtpsimError(f"{role}.width: got {size.width}, expected a multiple of {HEAD_WIDTH}, the width of a head")
    if size.past < 0 or (role == "vit" and size.past):
        expected = "0: a ViT has no keys and values of before" if role == "vit" else "at least 0"
        raise HtpsimError(f"{role}.past: got {size.past}, expected {expected}")
    for what, nbytes in (("weights", size.weights_bytes), ("attention scores", size.scores_bytes)):
        if nbytes > LARGEST_BYTES:
            raise HtpsimError(f"{role}: got {nbytes} bytes of {what}, expected at most {LARGEST_BYTES}")


class _Graph:
    """A graph under construction: each method adds a node and returns the name of its output."""

    def __init__(self, onnx: Any, seed: int) -> None:
        self.onnx = onnx
        self.seed = seed
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self.inputs: list[Any] = []

    def input(self, name: str, shape: tuple[int, ...]) -> str:
        self.inputs.append(self._value(name, shape))
        return name

    def _value(self, name: str, shape: tuple[int, ...]) -> Any:
        return self.onnx.helper.make_tensor_value_info(name, self.onnx.TensorProto.FLOAT, shape)

    def op(self, kind: str, inputs: list[str], name: str, **attributes: Any) -> str:
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name

    def constant(self, name: str, values: npt.NDArray[Any]) -> str:
        self.weights.append(self.onnx.numpy_helper.from_array(values, name))
        return name

    def matrix(self, name: str, rows: int, columns: int) -> str:
        """Add a matrix that keeps the variance of what it is multiplied by."""
        count = rows * columns
        uniform = rng.draws(rng.stream_key(self.seed, 0, "weights", name), 0, count).astype(np.float32)
        spread = np.float32((12 / rows) ** 0.5)
        return self.constant(name, ((uniform / np.float32(2**32) - np.float32(0.5)) * spread).reshape(rows, columns))

    def linear(self, x: str, name: str, rows: int, columns: int) -> str:
        return self.op("MatMul", [x, self.matrix(f"{name}_weight", rows, columns)], name)

    def norm(self, x: str, name: str, width: int) -> str:
        scale = self.constant(f"{name}_scale", np.ones(width, np.float32))
        shift = self.constant(f"{name}_shift", np.zeros(width, np.float32))
        return self.op("LayerNormalization", [x, scale, shift], name, axis=-1, epsilon=1e-5)

    def shaped(self, x: str, name: str, shape: tuple[int, ...]) -> str:
        return self.op("Reshape", [x, self.constant(f"{name}_shape", np.array(shape, np.int64))], name)

    def model(self, name: str, outputs: list[tuple[str, tuple[int, ...]]]) -> bytes:
        """Return the whole as bytes, checked by onnx."""
        values = [self._value(output, shape) for output, shape in outputs]
        helper = self.onnx.helper
        graph = helper.make_graph(self.nodes, name, self.inputs, values, initializer=self.weights)
        opsets = [helper.make_opsetid("", OPSET)]
        made = helper.make_model(graph, opset_imports=opsets, ir_version=9, producer_name="htpsim")
        self.onnx.checker.check_model(made)
        # Plain SerializeToString may order what a map holds by chance; there is no map here, and this says so anyway.
        return bytes(made.SerializeToString(deterministic=True))


def _vit(graph: _Graph, size: Size) -> list[tuple[str, tuple[int, ...]]]:
    x = graph.linear(graph.input("patches", (size.tokens, PATCH)), "embed", PATCH, size.width)
    for number in range(size.blocks):
        x, _ = _block(graph, x, f"block{number}", size, None)
    return [(graph.norm(x, "features", size.width), (size.tokens, size.width))]


def _language(graph: _Graph, size: Size) -> list[tuple[str, tuple[int, ...]]]:
    """Return the outputs of a prompt chunk or a decode step, which differ in their size only."""
    heads = size.width // HEAD_WIDTH
    x = graph.input("embeddings", (size.tokens, size.width))
    caches: list[tuple[str, tuple[int, ...]]] = []
    allowed = np.tril(np.ones((size.tokens, size.past + size.tokens), bool), k=size.past)
    mask = graph.constant("mask", np.where(allowed, np.float32(0), np.float32(-1e4))) if size.tokens > 1 else None
    for number in range(size.blocks):
        x, (key, value) = _block(graph, x, f"block{number}", size, mask, number)
        caches += [(key, (heads, HEAD_WIDTH, size.tokens)), (value, (heads, size.tokens, HEAD_WIDTH))]
    return [(graph.norm(x, "hidden", size.width), (size.tokens, size.width)), *caches]


def _block(
    graph: _Graph, x: str, name: str, size: Size, mask: str | None, number: int | None = None
) -> tuple[str, tuple[str, str]]:
    """Add attention and feed-forward; returns the output, and the keys and values that it added to the past."""
    width, inner = size.width, GROWTH * size.width
    attended, cache = _attention(graph, graph.norm(x, f"{name}_norm1", width), name, size, mask, number)
    x = graph.op("Add", [x, graph.linear(attended, f"{name}_out", width, width)], f"{name}_added1")
    up = graph.linear(graph.norm(x, f"{name}_norm2", width), f"{name}_up", width, inner)
    down = graph.linear(graph.op("Gelu", [up], f"{name}_gelu"), f"{name}_down", inner, width)
    return graph.op("Add", [x, down], f"{name}_added2"), cache


def _attention(
    graph: _Graph, x: str, name: str, size: Size, mask: str | None, number: int | None
) -> tuple[str, tuple[str, str]]:
    heads, shape = size.width // HEAD_WIDTH, (size.tokens, size.width // HEAD_WIDTH, HEAD_WIDTH)
    turned = {}
    for part, order in (("q", (1, 0, 2)), ("k", (1, 2, 0)), ("v", (1, 0, 2))):
        made = graph.linear(x, f"{name}_{part}", size.width, size.width)
        made = graph.shaped(made, f"{name}_{part}_heads", shape)
        turned[part] = graph.op("Transpose", [made], f"{name}_{part}_turned", perm=order)
    key, value = turned["k"], turned["v"]
    if number is not None and size.past:
        past_key = graph.input(f"past_key_{number}", (heads, HEAD_WIDTH, size.past))
        past_value = graph.input(f"past_value_{number}", (heads, size.past, HEAD_WIDTH))
        key = graph.op("Concat", [past_key, key], f"{name}_keys", axis=2)
        value = graph.op("Concat", [past_value, value], f"{name}_values", axis=1)
    scale = graph.constant(f"{name}_scale", np.array(HEAD_WIDTH**-0.5, np.float32))
    scores = graph.op("MatMul", [turned["q"], key], f"{name}_scores")
    scores = graph.op("Mul", [scores, scale], f"{name}_scaled")
    if mask is not None:
        scores = graph.op("Add", [scores, mask], f"{name}_masked")
    weights = graph.op("Softmax", [scores], f"{name}_softmax", axis=-1)
    mixed = graph.op("MatMul", [weights, value], f"{name}_mixed")
    mixed = graph.op("Transpose", [mixed], f"{name}_mixed_turned", perm=(1, 0, 2))
    return graph.shaped(mixed, f"{name}_mixed_flat", (size.tokens, size.width)), (turned["k"], turned["v"])
