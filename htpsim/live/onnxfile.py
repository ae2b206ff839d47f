"""What an ONNX file says of itself, read without running it: size of its weights, opset, files beside it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from htpsim.errors import HtpsimError
from htpsim.formats.writers.extra import needed
from htpsim.live.models import EXTRA

_CHUNK: Final = 2**20
_PLACE: Final = ("offset", "length")
_DIGITS_MAX: Final = 18
"""Of a number in a file: what has more is no count of bytes."""
_BITS_OF_PACKED: Final = {"INT4": 4, "UINT4": 4, "FLOAT4E2M1": 4, "INT2": 2, "UINT2": 2}
"""Types of which several lie in one byte."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxFile:
    """One model as it lies on disk, or in memory."""

    title: str
    """Name of the file; of the graph, where the model was built in memory."""
    sha256: str
    """Of the file, and of the files of external data in the order of their names."""
    file_bytes: int
    """Of the file and its external data."""
    weights_bytes: int
    nodes: int
    opset: int
    domains: tuple[str, ...]
    """Sets of operators beside the standard one."""
    external: tuple[Path, ...]


def look_into(model: bytes | Path) -> OnnxFile:
    """Read what an ONNX model says of itself.

    Raises
    ------
    HtpsimError
        When it is no ONNX model, a file of external data is missing or too short, or onnx is not installed.

    Examples
    --------
    >>> from htpsim.live.models import build
    >>> found = look_into(build("vit", blocks=1, width=64, tokens=4))
    >>> found.title, found.opset, found.weights_bytes
    ('vit_b1_w64_t4_p0', 20, 348764)
    """
    onnx = needed("onnx", EXTRA)
    title = plain(model.name) if isinstance(model, Path) else "model"
    content = _content(model)
    try:
        proto = onnx.load_model_from_string(content)
    except Exception as error:  # protobuf's own, of a class that depends on how it was built
        raise HtpsimError(f"{title}: got something else, expected an ONNX model: {_first(error)}") from error
    if not proto.graph.node or not proto.opset_import:
        raise HtpsimError(f"{title}: got a file without operators, expected an ONNX model")
    tensors = list(_tensors(onnx, proto.graph))
    external = _external(tensors, model.parent if isinstance(model, Path) else None, title)
    digest, size = hashlib.sha256(content), len(content)
    for path in external:
        size += path.stat().st_size
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    opsets = {entry.domain: int(entry.version) for entry in proto.opset_import}
    return OnnxFile(
        title=title if isinstance(model, Path) else plain(proto.graph.name),
        sha256=digest.hexdigest(),
        file_bytes=size,
        weights_bytes=sum(_bytes_of(onnx, tensor, title) for tensor in tensors),
        nodes=len(proto.graph.node),
        opset=opsets.get("", opsets.get("ai.onnx", 0)),
        domains=tuple(sorted(name for name in opsets if name not in ("", "ai.onnx"))),
        external=external,
    )


def plain(text: str) -> str:
    """Return a name on one line, of characters that can be written anywhere.

    >>> plain("a\\n b\\ud800.onnx"), plain("")
    ('a b .onnx', 'model')
    """
    return " ".join("".join(c if c.isprintable() else " " for c in text).split()) or "model"


def _content(model: bytes | Path) -> bytes:
    if isinstance(model, bytes):
        return model
    if model.is_dir():
        raise HtpsimError(f"{model}: got a folder, expected an ONNX model such as model.onnx")
    if model.exists() and not model.is_file():  # a pipe or a device may never end
        raise HtpsimError(f"{model}: got no ordinary file, expected an ONNX model such as model.onnx")
    try:
        str(model).encode("utf-8")
    except UnicodeEncodeError as error:
        raise HtpsimError(f"{plain(model.name)}: got a name that is no UTF-8, expected one that is") from error
    return model.read_bytes()


def _first(error: Exception) -> str:
    """Return the first line of a library's message."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _tensors(onnx: Any, graph: Any) -> Iterator[Any]:
    """Yield every constant of a graph and of the graphs within its operators."""
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    kinds = onnx.AttributeProto
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == kinds.TENSOR:
                yield attribute.t
            elif attribute.type == kinds.GRAPH:
                yield from _tensors(onnx, attribute.g)
            elif attribute.type == kinds.GRAPHS:
                for inner in attribute.graphs:
                    yield from _tensors(onnx, inner)


def _bytes_of(onnx: Any, tensor: Any, title: str) -> int:
    count = 1
    for length in tensor.dims:
        count *= length
    known = onnx.TensorProto.DataType.values()
    if tensor.data_type not in known or tensor.data_type == onnx.TensorProto.UNDEFINED:
        raise HtpsimError(f"{title}: constant {tensor.name}: got type {tensor.data_type}, expected one that onnx knows")
    kind = onnx.TensorProto.DataType.Name(tensor.data_type)
    if kind in _BITS_OF_PACKED:
        return int((count * _BITS_OF_PACKED[kind] + 7) // 8)
    if kind == "STRING":
        return sum(len(text) for text in tensor.string_data)
    return int(count * onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize)


def _whole(text: str, where: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX):
        raise HtpsimError(f"{where} of external data: got '{plain(text[:40])}', expected a whole number")
    return int(text)


def _external(tensors: list[Any], folder: Path | None, title: str) -> tuple[Path, ...]:
    """Return the files that weights lie in, each of them there and long enough."""
    found: dict[str, int] = {}
    for tensor in tensors:
        stated = {entry.key: entry.value for entry in tensor.external_data}
        if tensor.data_location == tensor.EXTERNAL and "location" in stated:
            end = sum(_whole(stated.get(key, "0"), f"{title}: constant {tensor.name}: {key}") for key in _PLACE)
            found[stated["location"]] = max(end, found.get(stated["location"], 0))
    if found and folder is None:
        raise HtpsimError(f"{title}: got a model in memory with external data, expected its file")
    paths = []
    for name, end in sorted(found.items()):
        path = (folder or Path()) / name
        if not path.is_file():
            raise HtpsimError(f"{title}: external data {plain(name)} is missing, expected it at {plain(str(path))}")
        if path.stat().st_size < end:
            raise HtpsimError(
                f"{plain(str(path))}: got {path.stat().st_size} bytes of external data, expected at least {end}"
            )
        paths.append(path)
    return tuple(paths)
