"""The models built on the fly: what goes in and out, and that they are the same each time."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from htpsim.errors import HtpsimError
from htpsim.live.models import ROLES, Size, build, sizes

onnx = pytest.importorskip("onnx", reason="the extra `measure` is not installed")
TINY = {"blocks": 2, "width": 128, "tokens": 4}


@pytest.mark.parametrize("role", ROLES)
def test_the_same_arguments_give_the_same_bytes(role: str) -> None:
    first, second = build(role, blocks=1, width=64, tokens=2), build(role, blocks=1, width=64, tokens=2)

    assert first == second
    assert first != build(role, blocks=1, width=64, tokens=2, seed=2)


def test_a_model_has_the_bytes_it_had_when_it_was_first_measured() -> None:
    # A measured preset names the SHA-256 of its model; this one must not change unnoticed.
    weights = onnx.load_model_from_string(build("vit", blocks=1, width=64, tokens=2)).graph.initializer
    content = b"".join(onnx.numpy_helper.to_array(tensor).tobytes() for tensor in weights)

    assert hashlib.sha256(content).hexdigest()[:16] == "492df8819b27462e"


def shapes(values: object) -> dict[str, tuple[int, ...]]:
    return {v.name: tuple(d.dim_value for d in v.type.tensor_type.shape.dim) for v in values}  # type: ignore[attr-defined]


def test_a_vit_takes_patches_and_gives_features() -> None:
    graph = onnx.load_model_from_string(build("vit", **TINY)).graph

    assert shapes(graph.input) == {"patches": (4, 588)}
    assert shapes(graph.output) == {"features": (4, 128)}


@pytest.mark.parametrize("role", ["prefill", "decode"])
def test_a_language_model_reads_the_past_and_gives_what_it_adds_to_it(role: str) -> None:
    graph = onnx.load_model_from_string(build(role, **TINY, past=5)).graph

    assert shapes(graph.input) == {
        "embeddings": (4, 128),
        **{f"past_key_{n}": (2, 64, 5) for n in range(2)},
        **{f"past_value_{n}": (2, 5, 64) for n in range(2)},
    }
    assert list(shapes(graph.output).values()) == [(4, 128), *[(2, 64, 4), (2, 4, 64)] * 2]


def test_without_a_past_there_is_no_input_for_it() -> None:
    graph = onnx.load_model_from_string(build("prefill", **TINY)).graph

    assert list(shapes(graph.input)) == ["embeddings"]


def test_prefill_and_decode_are_graphs_of_one_model() -> None:
    def weights(role: str) -> dict[str, bytes]:
        found = onnx.load_model_from_string(build(role, blocks=2, width=64)).graph.initializer
        return {tensor.name: tensor.raw_data for tensor in found if tensor.name.endswith("_weight")}

    assert weights("prefill") == weights("decode")


def test_a_step_continues_the_chunk_before_it() -> None:
    ort = pytest.importorskip("onnxruntime", reason="the extra `measure` is not installed")
    small = {"blocks": 2, "width": 128}
    prefill, decode = (
        ort.InferenceSession(build(role, **small, tokens=tokens, past=past))
        for role, tokens, past in (("prefill", 5, 0), ("decode", 1, 4))
    )
    embeddings = np.random.default_rng(1).standard_normal((5, 128), np.float32)

    whole, *caches = prefill.run(None, {"embeddings": embeddings})
    past = {f"past_key_{n}": caches[2 * n][:, :, :4] for n in range(2)}
    past |= {f"past_value_{n}": caches[2 * n + 1][:, :4] for n in range(2)}
    step, *added = decode.run(None, {"embeddings": embeddings[4:], **past})

    assert np.allclose(step[0], whole[4], atol=1e-4)
    assert np.allclose(added[0][:, :, 0], caches[0][:, :, 4], atol=1e-4)
    assert np.std(whole) > 0.5


def test_a_chunk_does_not_look_ahead() -> None:
    graph = onnx.load_model_from_string(build("prefill", blocks=1, width=64, tokens=3, past=2)).graph
    mask = next(onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer if tensor.name == "mask")

    assert (mask == 0).tolist() == np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0], [1, 1, 1, 1, 1]], bool).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("role", ROLES)
def test_the_bytes_of_the_blocks_are_most_of_the_weights(role: str) -> None:
    size = ROLES[role]

    assert size.weights_bytes <= len(build(role)) <= 1.06 * size.weights_bytes


def test_a_size_can_be_scaled() -> None:
    assert sizes("decode", blocks=2) == Size(8, 384, 1, 256)
    assert sizes("prefill", tokens=0.001).tokens == 1


@pytest.mark.parametrize(
    ("role", "given", "complaint"),
    [
        ("vti", {}, "role of a model: got 'vti', expected one of decode, prefill, vit; did you mean 'vit'?"),
        ("vit", {"blocks": 0}, "vit.blocks: got 0, expected at least 1"),
        ("vit", {"width": 65}, "vit.width: got 65, expected a multiple of 64"),
        ("vit", {"past": 1}, "vit.past: got 1, expected 0"),
        ("decode", {"past": -1}, "decode.past: got -1, expected at least 0"),
        ("decode", {"width": 64_000}, "of weights, expected at most"),
        ("prefill", {"tokens": 10**14}, "bytes of attention scores, expected at most"),
        ("vit", {"tokens": 60_000}, "bytes of attention scores, expected at most"),
        ("decode", {"past": 10**12}, "bytes of attention scores, expected at most"),
    ],
)
def test_what_cannot_be_built_is_refused(role: str, given: dict[str, int], complaint: str) -> None:
    with pytest.raises(HtpsimError) as caught:
        build(role, **given)

    assert complaint in str(caught.value)
