"""Inputs for a model that nobody has inputs for: seeded draws of the right type and shape.

Numbers with a fraction are drawn between 0 and 1. Whole numbers are 0 or 1, because what they mean is unknown and both
are a valid token, position, index and mask in nearly every model. The time of an operator of ONNX Runtime's CPU
provider does not depend on what it multiplies, but that of a loop or of a gather may.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from htpsim import rng
from htpsim.errors import HtpsimError, nearest
from htpsim.formats.tree import few

TYPES: Final[dict[str, npt.DTypeLike]] = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(double)": np.float64,
    "tensor(bool)": np.bool_,
    **{f"tensor({name})": np.dtype(name) for name in ("int8", "int16", "int32", "int64")},
    **{f"tensor({name})": np.dtype(name) for name in ("uint8", "uint16", "uint32", "uint64")},
}
"""ONNX Runtime's name of a type -> NumPy's"""
DRAWN: Final = 2**20
"""Values after which the draws of an input begin anew, so that a large one needs no more memory than its own."""
LARGEST: Final = 2**31
"""Bytes of one input; a dimension given by mistake ends here and not in the swap."""


def shapes_of(title: str, inputs: Sequence[Any], dims: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """Return the shape of each input, with its symbolic dimensions filled.

    Parameters
    ----------
    title
        Of the model, for messages.
    inputs
        As a session of ONNX Runtime lists them: each with ``name``, ``type`` and ``shape``.
    dims
        Lengths by name of the dimension, or by ``input.position`` where the model gives it none.

    Raises
    ------
    HtpsimError
        When a dimension is not given, is given and not there, or a type cannot be drawn.
    """
    used: set[str] = set()
    missing: list[str] = []
    shapes: dict[str, tuple[int, ...]] = {}
    for item in inputs:
        if item.type not in TYPES:
            raise HtpsimError(f"{title}: input {item.name}: got {item.type}, expected one of {', '.join(TYPES)}")
        shape: list[int] = []
        for position, length in enumerate(item.shape):
            if isinstance(length, int):
                shape.append(length)
                continue
            own = f"{item.name}.{position}"
            key = own if own in dims or not isinstance(length, str) else length
            if key in dims:
                used.add(key)
                shape.append(dims[key])
            elif key not in missing:
                missing.append(key)
        shapes[item.name] = tuple(shape)
    _refuse(title, missing, sorted(set(dims) - used), inputs)
    return shapes


def _refuse(title: str, missing: list[str], unknown: list[str], inputs: Sequence[Any]) -> None:
    free = [length for item in inputs for length in item.shape if isinstance(length, str)]
    free += [
        f"{item.name}.{n}" for item in inputs for n, length in enumerate(item.shape) if not isinstance(length, int)
    ]
    for name in unknown:
        close = nearest(name, free)
        known = few(list(dict.fromkeys(free))) if free else "none: every dimension of this model is fixed"
        hint = f"; did you mean '{close}'?" if close else ""
        raise HtpsimError(f"{title}: dimension '{name}' is in no input, expected {known}{hint}")
    if missing:
        options = " ".join(f"--dim {name}=N" for name in missing)
        raise HtpsimError(f"{title}: {few(missing)} of its inputs may have any length, expected {options}")


def filled(title: str, item: Any, shape: tuple[int, ...], seed: int) -> npt.NDArray[Any]:
    """Return seeded values for one input.

    Raises
    ------
    HtpsimError
        When they would not fit into memory that a model of this kind can want.
    """
    kind = np.dtype(TYPES[item.type])
    count = int(np.prod([max(0, length) for length in shape], dtype=object)) if shape else 1
    if count * kind.itemsize > LARGEST:
        raise HtpsimError(f"{title}: input {item.name}: got a shape {shape}, expected at most {LARGEST} bytes")
    uniform = rng.draws(rng.stream_key(seed, 0, title, item.name), 0, min(count, DRAWN))
    if kind.kind == "f":
        values = (uniform / np.float64(2**32)).astype(kind)
    else:
        values = (uniform >> np.uint64(31)).astype(kind)
    return np.resize(values, shape)
