"""`htpsim measure`: what it prints, what it writes, and what it refuses without a trace."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from htpsim.formats import read
from htpsim.live.models import build
from htpsim.report.cells import to_text
from htpsim.report.measured import measured_page
from htpsim.scenario import load
from tests.cli.support import call
from tests.measure.support import MS, measured, measurement, runs

onnx = pytest.importorskip("onnx", reason="the extra `measure` is not installed")
pytest.importorskip("onnxruntime", reason="the extra `measure` is not installed")

TINY = ("--size", "blocks=1", "--size", "width=64", "--size", "tokens=2")
SHORT = ("--runs", "6", "--warmup", "1")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "net.onnx"
    path.write_bytes(build("decode", blocks=1, width=64, past=2))
    return path


@pytest.mark.slow
def test_a_model_built_on_the_fly_is_measured(capsys: Any) -> None:
    done = call(capsys, "measure", "--builtin", "vit", *TINY, *SHORT, "--threads", "1,2", "--operators", "2")

    assert (done.code, done.err) == (0, "")
    for words in ("vit_b1_w64_t2_p0: opset 20", "Warm runs, ms", "n/a", "First run", "Operators", "MatMul", "A CPU's"):
        assert words in done.out
    assert max(len(line) for line in done.out.splitlines()) <= 80


@pytest.mark.slow
def test_everything_is_written_and_can_be_read(capsys: Any, tmp_path: Path, model: Path) -> None:
    files = [tmp_path / name for name in ("own.toml", "own.txt", "own.csv")]
    outputs = ["-o", str(files[0]), "--qnn-viewer", str(files[1]), "--qnn-csv", str(files[2])]

    done = call(capsys, "measure", str(model), *SHORT, "--json", *outputs)

    assert done.code == 0
    found = json.loads(done.out)["threads"][0]
    assert load(files[0]).base.clients[0].model.graphs[0].name == "net"
    assert f"SHA-256 {json.loads(done.out)['model']['sha256']}" in files[0].read_text(encoding="utf-8")
    viewer = read(files[1]).data
    mean = viewer.average.event("NetRun", "net").value * 1000
    assert mean == pytest.approx(sum(found["runs_ns"]) / 6, abs=1)
    csv = read(files[2]).data
    assert (len(csv.executions), csv.graphs, csv.level) == (10, ("net",), "detailed")
    assert [line.partition(" to ")[2] for line in done.err.splitlines()] == [str(path) for path in files]


@pytest.mark.slow
def test_a_model_built_on_the_fly_can_be_kept(capsys: Any, tmp_path: Path) -> None:
    kept = tmp_path / "vit.onnx"

    assert call(capsys, "measure", "--builtin", "vit", *TINY, *SHORT, "--save", str(kept)).code == 0
    assert kept.read_bytes() == build("vit", blocks=1, width=64, tokens=2)


@pytest.mark.slow
def test_what_a_preset_leaves_open_is_said(capsys: Any, tmp_path: Path) -> None:
    output = ("-o", str(tmp_path / "vit.toml"), "--role", "vit")

    open_ = call(capsys, "measure", "--builtin", "vit", *TINY, *SHORT, *output)
    given = call(capsys, "measure", "--builtin", "vit", *TINY, *SHORT, *output, "--image-tokens", "64")

    assert "! tokens_per_image: no file states" in open_.err
    assert (open_.code, given.code, given.err) == (0, 0, f"Written to {tmp_path / 'vit.toml'}\n")


@pytest.mark.parametrize("package", ["onnx", "onnxruntime"])
def test_without_the_extra_it_is_named(capsys: Any, model: Path, monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)

    done = call(capsys, "measure", str(model), *SHORT)

    assert (done.code, done.out) == (2, "")
    assert f"{package}: got no such package, expected it: pip install htpsim[measure]" in done.err


def dynamic(folder: Path) -> Path:
    """Write a model with a dimension of any length."""
    helper = onnx.helper
    values = [helper.make_tensor_value_info(n, onnx.TensorProto.INT64, ("batch", 3)) for n in "xy"]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", values[:1], values[1:])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    (folder / "any.onnx").write_bytes(made.SerializeToString())
    return folder / "any.onnx"


@pytest.mark.slow
def test_open_dimensions_are_filled(capsys: Any, tmp_path: Path) -> None:
    path = str(dynamic(tmp_path))

    refused = call(capsys, "measure", path, *SHORT)
    done = call(capsys, "measure", path, *SHORT, "--dim", "batch=4")

    assert refused.code == 2
    assert "expected --dim batch=N" in refused.err
    assert done.code == 0
    assert "batch=4" in done.out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((), "got neither MODEL nor --builtin"),
        (("MODEL", "--builtin", "vit"), "got both MODEL and --builtin"),
        (("MODEL", "--size", "blocks=1"), "--size: got it with MODEL"),
        (("MODEL", "--save", "x.onnx"), "--save: got it with MODEL"),
        (("--builtin", "vti"), "--builtin: got 'vti'"),
        (("--builtin", "vit", "--size", "block=1"), "did you mean 'blocks'?"),
        (("--builtin", "vit", "--size", "blocks"), "such as batch=1"),
        (("--builtin", "vit", "--size", f"blocks={'9' * 5_000}"), "such as batch=1"),
        (("--builtin", "vit", "--size", "blocks=\u0663"), "such as batch=1"),
        (("MODEL", "--image-tokens", "8"), "expected it with -o FILE.toml --role vit"),
        (("MODEL", "--role", "vit", "--image-tokens", "8", "-o", "own.json"), "expected a .toml file"),
        (("--builtin", "vit", "--size", "width=3"), "expected a multiple of 64"),
        (("MODEL", "--threads", "1,x"), "such as 1,2,4"),
        (("MODEL", "--threads", "0"), "got 0, expected 1 to 256"),
        (("MODEL", "--role", "llm"), "--role: got 'llm', expected one of other, vit"),
        (("MODEL", "-o", "own.json"), "expected a .toml file"),
        (("MODEL", "-o", "nowhere/own.toml"), "in no folder that exists"),
        (("MODEL", "--qnn-csv", "a.csv", "--qnn-viewer", "a.csv"), "one file for two results"),
        (("MODEL", "--qnn-csv", "MODEL"), "as the model and as a result"),
        (("absent.onnx",), "absent.onnx: got no such file"),
        (("FOLDER",), "got a folder, expected an ONNX model"),
        (("LETTER",), "expected an ONNX model"),
        (("UNKNOWN",), "ONNX Runtime cannot load it"),
        (("BESIDE",), "external data a.data is missing"),
    ],
)
def test_bad_input_is_refused_and_nothing_is_written(
    capsys: Any, tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...],
    complaint: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    named = {"MODEL": "net.onnx", "FOLDER": "folder", "LETTER": "letter.onnx", "UNKNOWN": "unknown.onnx"}
    Path("folder").mkdir()
    Path("letter.onnx").write_text("Dear reader", encoding="utf-8")
    Path("unknown.onnx").write_bytes(model.read_bytes().replace(b"Softmax", b"Softmix"))
    proto = onnx.load(str(model))
    onnx.save_model(proto, "beside.onnx", save_as_external_data=True, location="a.data", size_threshold=1024)
    Path("a.data").unlink()
    before = sorted(Path().rglob("*"))

    extra = () if {"-o", "--qnn-csv"} & set(arguments) else ("-o", "own.toml")
    done = call(capsys, "measure", *(named.get(a, {"BESIDE": "beside.onnx"}.get(a, a)) for a in arguments), *extra)

    assert (done.code, done.out) == (2, "")
    assert complaint in " ".join(done.err.split())
    assert "Traceback" not in done.err
    assert sorted(Path().rglob("*")) == before


def test_a_page_names_what_it_withholds_and_doubts() -> None:
    made = measurement(
        measured([4 * MS, 5 * MS] * 12, cpu_ns=54 * MS), measured([3 * MS] * 250, threads=3, cpu_ns=None),
    )  # fmt: skip
    text = to_text(measured_page(made))

    assert "1          24  4.0  5.0  n/a¹  n/a²   4.5  4.0  5.0" in text
    assert "3         250  3.0  3.0   3.0   3.0   3.0  3.0  3.0" in text
    assert "1          9.0   2.25x  20.0      64.0  2.2   0.50  +0.0%     0.0%" in text
    assert "! 1 thread: the runs had 50 % of a core" in text
    assert "! 3 threads: more threads than the 2 CPUs" in text
    assert "Operators" not in text
    assert max(len(line) for line in text.splitlines()) <= 80


def test_runs_beyond_the_histogram_are_counted() -> None:
    text = to_text(measured_page(measurement(measured([3 * MS] * 150 + [4 * MS] * 148 + [900 * MS] * 2))))

    assert "4.0 (2 beyond)" in text


def test_several_threads_need_no_whole_core_each() -> None:
    shared = measurement(measured([4 * MS] * 60, threads=2, cpu_ns=100 * MS))

    assert shared.doubts(shared.measured[0]) == ()
    assert shared.measured[0].to_dict()["cpu_share"] == pytest.approx(100 / 240, abs=1e-6)


def test_the_rarer_kinds_of_operators_are_summed_up() -> None:
    from htpsim.formats.writers.measured import Operator

    kinds = tuple(Operator(f"n{number}", f"Kind{number:02}", (20 - number) * MS) for number in range(12))
    text = to_text(measured_page(measurement(measured(profiled=runs([300 * MS], kinds)))))

    assert "Kind07" in text
    assert "Kind08" not in text
    assert "4 other kinds 4 42.0 24.1%" in " ".join(text.split())
