"""A session: what it runs on, what it refuses, and that it leaves other threads running."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from htpsim.errors import HtpsimError
from htpsim.live.inputs import DRAWN, TYPES, filled, shapes_of
from htpsim.live.models import build
from htpsim.live.onnxfile import look_into
from htpsim.live.session import Session

onnx = pytest.importorskip("onnx", reason="the extra `measure` is not installed")
pytest.importorskip("onnxruntime", reason="the extra `measure` is not installed")

TINY = build("decode", blocks=1, width=64, past=3)


def model(
    kind: int = 1, shape: tuple[int | str, ...] = (2,), op: str = "Identity", domain: str = "", name: str = "x"
) -> bytes:
    """Return a model of one operator."""
    helper = onnx.helper
    values = [helper.make_tensor_value_info(n, kind, shape) for n in (name, "y")]
    node = helper.make_node(op, [name], ["y"], domain=domain)
    graph = helper.make_graph([node], "one", values[:1], values[1:])
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("own", 1)]
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString())


def item(name: str = "x", kind: str = "tensor(float)", shape: tuple[Any, ...] = (2,)) -> SimpleNamespace:
    return SimpleNamespace(name=name, type=kind, shape=list(shape))


def test_a_session_runs_until_it_is_closed() -> None:
    session = Session.open(TINY)
    session.run()
    session.run()
    session.close()
    session.close()

    with pytest.raises(HtpsimError, match="a run after the session was closed"):
        session.run()


def test_a_session_knows_the_bytes_of_its_constants() -> None:
    proto = onnx.load_model_from_string(TINY)

    with Session.open(TINY) as session:
        assert session.weights_bytes == sum(len(tensor.raw_data) for tensor in proto.graph.initializer)


def test_a_file_and_its_bytes_are_the_same_model(tmp_path: Path) -> None:
    (tmp_path / "a.onnx").write_bytes(TINY)

    assert look_into(tmp_path / "a.onnx").sha256 == look_into(TINY).sha256
    with Session.open(tmp_path / "a.onnx") as session:
        session.run()


def test_other_threads_run_while_a_session_does() -> None:
    session = Session.open(build("vit", blocks=2, width=128, tokens=128))
    counted, stop = [0], threading.Event()

    def count() -> None:
        while not stop.is_set():
            counted[0] += 1
            time.sleep(0)  # gives the lock up

    thread = threading.Thread(target=count, daemon=True)
    before = sys.getswitchinterval()
    sys.setswitchinterval(10)  # nobody is made to give the lock up: what the thread counts, it counts during the run
    try:
        thread.start()
        start = counted[0]
        runs = 0
        while counted[0] == start and runs < 300:  # one is enough where the thread wakes up in time
            session.run()
            runs += 1
        end = counted[0]
    finally:
        stop.set()
        sys.setswitchinterval(before)
        thread.join(10)
    assert end > start


@pytest.mark.parametrize("kind", ["FLOAT", "FLOAT16", "DOUBLE", "BOOL", "INT8", "INT32", "INT64", "UINT8"])
def test_inputs_of_the_types_of_real_models_are_filled(kind: str) -> None:
    with Session.open(model(onnx.TensorProto.DataType.Value(kind), (2, "batch")), dims={"batch": 3}) as session:
        session.run()


@pytest.mark.parametrize("kind", TYPES)
def test_filled_values_are_seeded_and_small(kind: str) -> None:
    one, same, other = (filled("m", item(kind=kind), (40,), seed) for seed in (1, 1, 2))

    assert one.dtype == TYPES[kind]
    assert one.shape == (40,)
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)
    assert 0 <= one.min() < one.max() <= 1


def test_a_large_input_repeats_its_draws() -> None:
    made = filled("m", item(), (2, DRAWN), 1)

    assert made.shape == (2, DRAWN)
    assert np.array_equal(made[0], made[1])


def test_a_scalar_and_an_empty_input_are_filled() -> None:
    assert filled("m", item(), (), 1).shape == ()
    assert filled("m", item(), (2, 0), 1).size == 0


def test_dimensions_are_filled_by_name_and_by_position() -> None:
    inputs = [item("a", shape=("batch", 3)), item("b", shape=("batch", None))]

    assert shapes_of("m", inputs, {"batch": 2, "b.1": 7}) == {"a": (2, 3), "b": (2, 7)}
    assert shapes_of("m", inputs[:1], {"a.0": 5}) == {"a": (5, 3)}


@pytest.mark.parametrize(
    ("inputs", "dims", "complaint"),
    [
        ([item(shape=("batch", None))], {}, "expected --dim batch=N --dim x.1=N"),
        ([item(shape=("batch",))], {"batsh": 1}, "'batsh' is in no input, expected batch"),
        ([item(shape=("batch",))], {"batsh": 1}, "did you mean 'batch'?"),
        ([item()], {"batch": 1}, "every dimension of this model is fixed"),
        ([item(kind="tensor(string)")], {}, "got tensor(string), expected one of tensor(float)"),
    ],
)
def test_dimensions_that_do_not_fit_are_refused(
    inputs: list[SimpleNamespace], dims: dict[str, int], complaint: str
) -> None:
    with pytest.raises(HtpsimError) as caught:
        shapes_of("m.onnx", inputs, dims)

    assert str(caught.value).startswith("m.onnx: ")
    assert complaint in str(caught.value)


def test_an_input_of_an_absurd_size_is_refused() -> None:
    with pytest.raises(HtpsimError, match="expected at most 2147483648 bytes"):
        filled("m", item(), (10**9, 10**9, 10**9), 1)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "a file without operators"),
        (b"not a model, but a letter", "expected an ONNX model"),
        (TINY[: len(TINY) // 2], "expected an ONNX model"),
        (model(op="Invented", domain="own"), "ONNX Runtime cannot load it: "),
        (model(op="Invented"), "Invented"),
        (model(onnx.TensorProto.STRING), "tensor(string)"),
        (model(shape=("n",)), "expected --dim n=N"),
    ],
)
def test_what_cannot_be_loaded_is_refused(tmp_path: Path, content: bytes, complaint: str) -> None:
    (tmp_path / "a.onnx").write_bytes(content)

    with pytest.raises(HtpsimError) as caught:
        Session.open(tmp_path / "a.onnx")

    assert "a.onnx: " in str(caught.value)
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


def external(folder: Path) -> Path:
    """Write a model whose weights lie in a file beside it."""
    path = folder / "a.onnx"
    proto = onnx.load_model_from_string(TINY)
    onnx.save_model(proto, str(path), save_as_external_data=True, location="a.data", size_threshold=1024)
    return path


def test_weights_beside_the_file_count(tmp_path: Path) -> None:
    path = external(tmp_path)
    found = look_into(path)

    assert found.weights_bytes == look_into(TINY).weights_bytes
    assert found.external == (tmp_path / "a.data",)
    assert found.file_bytes == path.stat().st_size + (tmp_path / "a.data").stat().st_size
    with Session.open(path) as session:
        session.run()


def test_the_fingerprint_covers_the_weights_beside_the_file(tmp_path: Path) -> None:
    path = external(tmp_path)
    before = look_into(path).sha256
    data = bytearray((tmp_path / "a.data").read_bytes())
    data[0] ^= 1
    (tmp_path / "a.data").write_bytes(data)

    assert look_into(path).sha256 != before


def test_missing_and_short_weights_are_refused(tmp_path: Path) -> None:
    path = external(tmp_path)
    data = tmp_path / "a.data"
    data.write_bytes(data.read_bytes()[:100])

    with pytest.raises(HtpsimError, match=r"a\.data: got 100 bytes of external data, expected at least"):
        Session.open(path)
    data.unlink()
    with pytest.raises(HtpsimError, match=r"external data a\.data is missing"):
        Session.open(path)
    with pytest.raises(HtpsimError, match="in memory with external data"):
        Session.open(path.read_bytes())


def test_a_name_over_several_lines_becomes_one(tmp_path: Path) -> None:
    (tmp_path / "two\nlines.onnx").write_bytes(TINY)

    assert look_into(tmp_path / "two\nlines.onnx").title == "two lines.onnx"


def test_a_name_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "odd\udcff.onnx"
    try:
        path.write_bytes(TINY)
    except OSError:
        pytest.skip("this file system takes text only")

    with pytest.raises(HtpsimError, match=r"^odd \.onnx: got a name that is no UTF-8"):
        Session.open(path)


def with_constant(kind: int = 1, **place: str) -> bytes:
    """Return a model that adds a constant which lies in another file."""
    helper = onnx.helper
    constant = onnx.TensorProto(name="w", data_type=kind, dims=[2], data_location=onnx.TensorProto.EXTERNAL)
    for key, value in {"location": "w.data", **place}.items():
        constant.external_data.add(key=key, value=value)
    values = [helper.make_tensor_value_info(n, 1, (2,)) for n in "xy"]
    node = helper.make_node("Add", ["x", "w"], ["y"])
    graph = helper.make_graph([node], "one", values[:1], values[1:], initializer=[constant])
    opsets = [helper.make_opsetid("", 20)]
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString())


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (with_constant(77), "constant w: got type 77, expected one that onnx knows"),
        (with_constant(0), "constant w: got type 0, expected one that onnx knows"),
        (with_constant(offset="zebra"), "constant w: offset of external data: got 'zebra', expected a whole number"),
        (
            with_constant(offset="9" * 5_000),
            f"constant w: offset of external data: got '{'9' * 40}', expected a whole number",
        ),
        (with_constant(length="\u0663"), "constant w: length of external data: got '\u0663', expected a whole number"),
        (with_constant(length="-8"), "constant w: length of external data: got '-8', expected a whole number"),
    ],
)
def test_constants_that_nobody_can_read_are_refused(tmp_path: Path, content: bytes, complaint: str) -> None:
    (tmp_path / "a.onnx").write_bytes(content)
    (tmp_path / "w.data").write_bytes(bytes(8))

    with pytest.raises(HtpsimError) as caught:
        look_into(tmp_path / "a.onnx")

    assert str(caught.value) == f"a.onnx: {complaint}"


def test_a_file_that_is_missing_is_named_on_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.onnx").write_bytes(with_constant(location="w\n\x1b[31m.data"))

    with pytest.raises(HtpsimError, match=r"^a\.onnx: external data w \[31m\.data is missing, expected it at [^\n]*$"):
        look_into(tmp_path / "a.onnx")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_refused_instead_of_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.onnx")

    with pytest.raises(HtpsimError, match="got no ordinary file"):
        look_into(tmp_path / "a.onnx")


def test_an_operator_that_fails_while_running_is_named() -> None:
    helper = onnx.helper
    values = [
        helper.make_tensor_value_info("x", onnx.TensorProto.INT64, (8,)),
        helper.make_tensor_value_info("y", 1, (8, 2)),
    ]
    rows = onnx.numpy_helper.from_array(
        np.ones((1, 2), np.float32), "rows"
    )  # and the inputs ask for the second one too
    node = helper.make_node("Gather", ["rows", "x"], ["y"], name="look_up")
    graph = helper.make_graph([node], "one", values[:1], values[1:], initializer=[rows])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)

    with Session.open(made.SerializeToString()) as session, pytest.raises(HtpsimError, match=r"a run fails: .*look_up"):
        session.run()


def test_a_number_of_threads_below_one_is_refused() -> None:
    with pytest.raises(HtpsimError, match="threads: got 0, expected at least 1"):
        Session.open(TINY, threads=0)


@pytest.mark.parametrize("package", ["onnx", "onnxruntime"])
def test_a_missing_package_names_the_extra(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)

    with pytest.raises(HtpsimError, match=rf"{package}: got no such package.*htpsim\[measure\]"):
        Session.open(TINY)
