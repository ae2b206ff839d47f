"""The testbed with sessions that really run; skipped where onnxruntime is not installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from htpsim.errors import HtpsimError, ScenarioError
from htpsim.live import OnnxBench
from htpsim.live.host import resident_bytes
from htpsim.live.runs import live_one
from htpsim.live.work import OnnxWork, refuse_without_onnx
from htpsim.scenario import load
from tests.live.bench import checked

TINY = [
    'models.vit.options="blocks=4 width=64 tokens=16"',
    'models.llm.options="blocks=2 width=64"',
    "run.duration=0.4s",
    "run.warmup=0s",
]
BOTH = {"genie": ("genie", 4), "genie_registry": ("genie", 1), "legacy": ("qnn", 4)}
"""variant -> path of the ViT, and copies of it"""


@pytest.fixture(autouse=True)
def _installed() -> None:
    pytest.importorskip("onnx", reason="needs onnx: pip install htpsim[measure]")
    pytest.importorskip("onnxruntime", reason="needs onnxruntime: pip install htpsim[measure]")


@pytest.mark.slow
@pytest.mark.parametrize("variant", BOTH)
def test_the_variants_run_for_real_with_the_copies_they_should_have(variant: str) -> None:
    path, copies = BOTH[variant]

    single, live = live_one("live/variants", variant=variant, set_values=TINY)

    assert checked(live.log).ok
    vit = [copy for copy in live.log.copies if copy.role == "vit"]
    assert len(vit) == copies
    assert sum(copy.users for copy in vit) == 4
    assert {instance.vit_path for instance in live.log.scenario.instances} == {path}
    assert live.weights_bytes == sum(
        context.weights_bytes
        for copy in live.log.copies
        for instance in live.log.scenario.instances[:1]
        for model in (instance.vit, instance.llm)
        if model is not None and model.name == copy.model
        for context in model.contexts
    )
    assert single.summaries[0].metric("overall.tokens_per_s").value


@pytest.mark.slow
def test_a_copy_is_in_memory_once_for_each_time_it_is_loaded() -> None:
    bench = OnnxBench()
    scenario = load("live/variants").resolve("genie").scenario
    model = bench.prepare(scenario).instances[0].vit
    assert model is not None
    weights_bytes = model.contexts[0].weights_bytes

    before = resident_bytes()
    works = [OnnxWork(bench._bytes(("vit", 4, 256, 128, 0))) for _ in range(4)]
    after = resident_bytes()

    assert all(work.weights_bytes == weights_bytes for work in works)
    if before is not None and after is not None:
        assert after - before > 3 * weights_bytes
    for work in works:
        work.close()


def test_a_cut_that_does_not_divide_the_blocks_is_refused() -> None:
    scenario = load("live/vit_split", set_values=['models.vit.options="blocks=3 width=64"']).resolve().scenario

    with pytest.raises(ScenarioError, match=r"models.vit.options: got blocks=3, expected a multiple of the 4 graphs"):
        OnnxBench().prepare(scenario)


def test_without_the_packages_it_says_how_to_install_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)

    with pytest.raises(HtpsimError, match=r"pip install htpsim\[measure\]"):
        refuse_without_onnx()


@pytest.mark.verify
def test_the_driver_measures_predicts_and_scores(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.trust", "--repeats", "2", "--for", "3s", "--solo", "2s"]
    command += ["--only", "genie", "--only", "legacy", "--out", str(tmp_path)]
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=300, check=False)

    assert done.returncode == 0, done.stderr
    assert "memory copies and their bytes exact | 2 of 2 scenarios | yes" in done.stdout
    assert "every rule holds on every trace | 4 of 4 traces | yes" in done.stdout
    assert {path.name for path in tmp_path.iterdir()} == {"genie.toml", "legacy.toml", "trust.json"}
