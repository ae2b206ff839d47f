"""Measuring tiny models for real: structure and bookkeeping, never how long anything took."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from htpsim.errors import HtpsimError
from htpsim.formats.ort_profile import read as read_profile
from htpsim.formats.source import from_text
from htpsim.live import host
from htpsim.live.measuring import Asked, joined, measure
from htpsim.live.models import build
from tests.measure.support import runs

pytest.importorskip("onnx", reason="the extra `measure` is not installed")
pytest.importorskip("onnxruntime", reason="the extra `measure` is not installed")

pytestmark = pytest.mark.slow
TINY = build("decode", blocks=1, width=64, past=3)


def test_every_run_is_kept_and_told_apart() -> None:
    said: list[str] = []
    found = measure(TINY, Asked(threads=(1, 2), runs=7, warmup=2, profiled=3), command=["a", "b c"], told=said.append)

    assert [one.threads for one in found.measured] == [1, 2]
    for one in found.measured:
        assert (len(one.runs), len(one.warmup_ns), len(one.profiled)) == (7, 2, 3)
        assert all(run.netrun_ns > 0 and run.execute_ns is None and not run.operators for run in one.runs)
        ends = [run.end_ns for run in one.runs]
        assert all(a + b.netrun_ns <= b.end_ns for a, b in zip(ends, one.runs[1:], strict=False))
        assert one.first_ns > 0 < one.load_ns
    assert found.machine.command == "a 'b c'"
    assert found.machine.runtime.startswith("ONNX Runtime ")
    assert {"loading it cold", "1 thread: running", "2 threads: profiling"} <= set(said)


def test_profiled_runs_list_every_operator_within_the_run() -> None:
    (one,) = measure(TINY, Asked(runs=1, warmup=1, profiled=3)).measured

    kinds = [[(op.name, op.kind) for op in run.operators] for run in one.profiled]
    assert kinds[0] == kinds[1] == kinds[2]
    assert {"MatMul", "Softmax"} <= {kind for _, kind in kinds[0]}
    for run in one.profiled:
        assert run.execute_ns is not None
        # The profiler's clock has whole microseconds: one may be lost at either end of each.
        assert sum(op.run_ns for op in run.operators) <= run.execute_ns + 2_000 * len(run.operators)
    assert one.profiler_slows is not None


def test_the_model_is_described() -> None:
    found = measure(TINY, Asked(runs=1, warmup=0, seed=7)).model

    assert (found.title, found.opset, found.seed) == ("decode_b1_w64_t1_p3", 20, 7)
    assert found.file_bytes == len(TINY)
    assert 0 < found.weights_bytes < len(TINY)


def test_a_file_is_measured_as_its_bytes_are(tmp_path: Path) -> None:
    (tmp_path / "a.onnx").write_bytes(TINY)

    found = measure(tmp_path / "a.onnx", Asked(runs=2, warmup=0))

    assert (found.model.title, found.model.graph) == ("a.onnx", "a")
    assert found.model.sha256 == measure(TINY, Asked(runs=1, warmup=0)).model.sha256
    assert "cache" in found.cold
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.onnx"]


def test_the_time_limits_the_runs_and_one_is_always_made() -> None:
    (one,) = measure(TINY, Asked(runs=10**6, at_most_ns=1)).measured

    assert (len(one.runs), len(one.warmup_ns)) == (1, 0)


def test_json_holds_every_run() -> None:
    found = measure(TINY, Asked(runs=5, warmup=1, profiled=1))

    read = json.loads(json.dumps(found.to_dict()))

    assert read["threads"][0]["runs_ns"] == [run.netrun_ns for run in found.measured[0].runs]
    assert read["threads"][0]["warm"]["n"] == 5
    assert read["model"]["sha256"] == found.model.sha256
    assert sum(op["share"] for op in read["threads"][0]["operators"]) == pytest.approx(1, abs=0.01)
    assert repr(found).startswith("<Measurement of decode_b1_w64_t1_p3: median by threads 1: ")


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        (Asked(threads=()), "expected numbers that differ"),
        (Asked(threads=(1, 1)), "expected numbers that differ"),
        (Asked(threads=(0,)), "got 0, expected 1 to 256"),
        (Asked(runs=0), "runs: got 0, expected at least 1"),
        (Asked(warmup=-1), "warmup: got -1, expected at least 0"),
        (Asked(profiled=-1), "profiled: got -1, expected at least 0"),
        (Asked(at_most_ns=0), "expected a time above zero"),
        (Asked(dims={"batch": 0}), "dimension batch: got 0, expected at least 1"),
        (Asked(dims={"batch": 1}), "every dimension of this model is fixed"),
    ],
)
def test_what_cannot_be_asked_is_refused(asked: Asked, complaint: str) -> None:
    with pytest.raises(HtpsimError) as caught:
        measure(TINY, asked)

    assert complaint in str(caught.value)


SESSION = '{"cat": "Session", "pid": 1, "tid": 1, "dur": %d, "ts": %d, "ph": "X", "name": "model_run", "args": {}}'
NODE = '{"cat": "Node", "pid": 1, "tid": 1, "dur": %d, "ts": %d, "ph": "X", "name": "%s", "args": {"op_name": "Conv"}}'


def test_runs_get_what_a_profile_says_of_them_and_no_other() -> None:
    events = []
    for number in range(3):
        start = 5 + 1_000 * number
        events += [SESSION % (900 + number, start), NODE % (1, start + 1, "a_fence_before")]
        events += [NODE % (100 + number, start + 2, "a_kernel_time"), NODE % (7, start + 300, "b_kernel_time")]
    profile = read_profile(from_text("p.json", f"[{','.join(events)}]")).data

    first, second = joined(runs([10**6, 2 * 10**6]), profile, 1)

    assert (first.netrun_ns, first.execute_ns, second.netrun_ns, second.execute_ns) == (
        10**6,
        901_000,
        2 * 10**6,
        902_000,
    )
    assert [(op.name, op.kind, op.run_ns) for op in first.operators] == [("a", "Conv", 101_000), ("b", "Conv", 7_000)]
    assert [op.run_ns for op in second.operators] == [102_000, 7_000]
    with pytest.raises(HtpsimError, match="the profile has 3 runs, expected 4: ask for fewer, such as --operators 3"):
        joined(runs([10**6]), profile, 3)


def test_memory_is_that_of_the_process() -> None:
    before = host.resident_bytes()
    if before is None:
        pytest.skip("this system does not say")
    held = bytearray(b"x" * 50_000_000)
    more = host.resident_bytes()
    del held
    after = host.resident_bytes()

    assert more is not None
    assert after is not None
    assert more - before > 45_000_000
    assert more - after > 45_000_000
