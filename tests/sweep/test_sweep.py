"""A sweep ends with the same table on any number of workers, on a cluster, and through any kill."""

from __future__ import annotations

import json
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from htpsim.errors import HtpsimError, ScenarioError
from htpsim.experiments.single import run_one
from htpsim.experiments.sweep import open_sweep, sweep
from htpsim.experiments.sweep.plan import Run
from htpsim.experiments.sweep.store import Figure, Found, Store
from tests.cli.support import PAIR, call, command, environment

SHORT = ["run.duration=500ms"]
AXES = ["guard.slots=1,2", "variant=legacy,guarded"]


def test_a_point_is_the_run_that_one_would_make_by_hand() -> None:
    table = sweep(PAIR, AXES, set_values=SHORT, replications=2, workers=1).to_dataframe()
    assert table[["point", "replication"]].to_numpy().tolist() == [[p, r] for p in range(4) for r in range(2)]
    row = table[(table["guard.slots"] == "2") & (table["variant"] == "guarded") & (table["replication"] == 1)].iloc[0]
    alone = run_one(PAIR, variant="guarded", set_values=[*SHORT, "guard.slots=2"], replication=1, workers=1)
    summary = alone.summaries[0]
    assert row["overall.tokens_per_s"] == summary.overall.tokens_per_s.value
    assert row["overall.ttft.mean"] == pytest.approx(summary.overall.ttft.mean.value, abs=1e-6)
    assert row["memory.device.steady_bytes"] == summary.memory["device"].steady_bytes
    assert "p99 needs" in row["why"]


@pytest.mark.slow
def test_the_table_does_not_depend_on_the_number_of_workers(tmp_path: Path) -> None:
    texts = []
    for workers in (1, 2, 3):
        sweep(PAIR, AXES, set_values=SHORT, workers=workers).export(tmp_path / "table.csv")
        texts.append((tmp_path / "table.csv").read_bytes())
    assert texts[0] == texts[1] == texts[2]


def test_a_finished_sweep_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = sweep(PAIR, AXES, set_values=SHORT, replications=1, out=tmp_path / "s", workers=1)
    monkeypatch.setattr("htpsim.experiments.sweep.drive.on_processes", None)
    again = sweep(PAIR, AXES, set_values=SHORT, replications=1, out=tmp_path / "s", workers=1)
    assert again == first == open_sweep(tmp_path / "s")


def test_another_sweep_is_kept_out_of_a_store(tmp_path: Path) -> None:
    sweep(PAIR, AXES, set_values=SHORT, replications=1, out=tmp_path / "s", workers=1)
    for vary, more, told in (
        (["guard.slots=1,3", AXES[1]], SHORT, "values"),
        (AXES, ["run.duration=600ms"], "duration: kept '500ms', asked '600ms'"),
        (AXES, [*SHORT, "run.seed=9"], "seed: kept 7, asked 9"),
        (AXES, [*SHORT, "device.cores=2"], "content"),
    ):
        with pytest.raises(HtpsimError, match="store of another sweep") as raised:
            sweep(PAIR, vary, set_values=more, replications=1, out=tmp_path / "s", workers=1)
        assert told in str(raised.value)


def test_a_foreign_file_is_left_alone(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("mine")
    base = tmp_path / "base.db"
    with sqlite3.connect(base) as made:
        made.execute("CREATE TABLE mine (x)")
    made.close()
    for path in (text, base):
        before = path.read_bytes()
        with pytest.raises(HtpsimError, match="no store of a sweep"):
            sweep(PAIR, AXES, set_values=SHORT, replications=1, out=path, workers=1)
        assert path.read_bytes() == before
    with pytest.raises(HtpsimError, match="no such file"):
        open_sweep(tmp_path / "nothing")


def test_every_wrong_value_is_told_before_anything_is_run(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError) as raised:
        sweep(PAIR, ["guard.slotz=1", "device.evict=1us,5q", "variant=legacy,gaurded"], out=tmp_path / "s", workers=1)
    told = str(raised.value)
    assert "did you mean 'slots'" in told
    assert "5q" in told
    assert "did you mean 'guarded'" in told
    assert not list(tmp_path.iterdir())
    with pytest.raises(ScenarioError, match="metric"):
        sweep(PAIR, AXES, metrics=["overal.ttft.mean"], workers=1)


def test_values_that_do_not_go_together_are_a_row_that_says_why() -> None:
    """Each is good beside the other axis's first; the ViT on core 1 of one core is not."""
    found = sweep(
        PAIR, ["device.cores=2,1", "models.vit.placement='0','1'"], set_values=SHORT, replications=1, workers=1
    )
    table = found.to_dataframe()
    whys = {(row["device.cores"], row["models.vit.placement"]): row["why"] for _, row in table.iterrows()}
    assert "placement" in whys["1", "'1'"]
    assert table["overall.tokens_per_s"].notna().sum() == 3


def test_a_run_is_in_the_store_whole_and_once(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    store.begin({"axes": ["a"]}, [("1",), ("2",)])
    figures = (Figure(3, 1, ""), Figure(0.25, 2, ""), Figure(None, 0, "no samples"), Figure(2**60 + 1, 1, ""))
    found = Found(Run(1, 0), figures, "", 0.5)
    store.add([found])
    store.add([Found(Run(1, 0), (Figure(9, 9, ""),), "", 9.0), Found(Run(0, 0), (), "not together", 0.1)])
    assert list(store.found()) == [Found(Run(0, 0), (), "not together", 0.1), found]
    assert store.done() == {Run(0, 0), Run(1, 0)}
    with pytest.raises(sqlite3.ProgrammingError):
        store.add([Found(Run(0, 1), figures, "", 0.1), Found(Run(1, 1), (Figure([], 1, ""),), "", 0.1)])  # type: ignore[arg-type]
    assert Run(0, 1) not in store.done()


def killed_and_resumed(folder: Path, kills: int, seed: int) -> bytes:
    """Run a sweep that is killed at random moments until one attempt gets to the end; return its table."""
    words = command("sweep", PAIR, "--vary", "guard.slots=1,2", "--vary", "device.evict=0us..500us/6", "--for", "1s",
                    "--workers", "2", "--out", str(folder / "store"), "--table", str(folder / "table.csv"))  # fmt: skip
    chance = random.Random(seed)
    counts = [0]
    while kills:
        process = subprocess.Popen(words, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        wanted = counts[-1] + chance.randrange(4)
        while time.monotonic() < deadline and process.poll() is None and _runs(folder / "store") < wanted:
            time.sleep(0.01)
        time.sleep(chance.random() / 2)
        process.send_signal(signal.SIGKILL)
        process.wait()
        counts.append(_runs(folder / "store"))
        kills -= 1
    assert counts == sorted(counts), "a run that was found is never lost"
    done = subprocess.run(words, env=environment(), capture_output=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return (folder / "table.csv").read_bytes()


def _runs(store: Path) -> int:
    return len(Store(store).done()) if store.exists() else 0


def undisturbed(folder: Path) -> bytes:
    axes = ["guard.slots=1,2", "device.evict=0us..500us/6"]
    sweep(PAIR, axes, set_values=['run.duration="1s"'], workers=1).export(folder / "plain.csv")
    return (folder / "plain.csv").read_bytes()


def test_a_sweep_that_breaks_off_is_gone_on_with(tmp_path: Path) -> None:
    """The cheap form of a kill: what was stored before the break is kept, and nothing is done twice."""
    counts: list[float] = []

    def break_off(done: float, total: int, what: str) -> None:
        counts.append(done)
        if len(counts) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(PAIR, AXES, set_values=SHORT, out=tmp_path / "store", workers=1, progress=break_off)
    kept = Store(tmp_path / "store").done()
    assert 0 < len(kept) < 12
    done: list[float] = []
    found = sweep(PAIR, AXES, set_values=SHORT, out=tmp_path / "store", workers=1,
                  progress=lambda count, total, what: done.append(count))  # fmt: skip
    assert len(done) == 12 - len(kept)
    assert found.to_dataframe().equals(sweep(PAIR, AXES, set_values=SHORT, workers=1).to_dataframe())


@pytest.mark.verify
def test_a_sweep_survives_ten_kills(tmp_path: Path) -> None:
    assert killed_and_resumed(tmp_path, 10, seed=2) == undisturbed(tmp_path)


@pytest.mark.slow
def test_a_cluster_gives_the_same_table_though_a_worker_dies(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
    axes = ["guard.slots=1,2", "device.evict=0us..500us/10"]
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1",
                                  dashboard_address=None) as cluster:  # fmt: skip
        killed = []

        def kill_one(done: float, total: int, what: str) -> None:
            if not killed:
                killed.append(next(iter(cluster.workers.values())).pid)
                subprocess.run([sys.executable, "-c", f"import os; os.kill({killed[0]}, 9)"], check=True)

        found = sweep(PAIR, axes, set_values=['run.duration="500ms"'], cluster=cluster.scheduler_address,
                      progress=kill_one)  # fmt: skip
    assert killed
    here = sweep(PAIR, axes, set_values=['run.duration="500ms"'], workers=1)
    assert found.to_dataframe().equals(here.to_dataframe())


def test_nobody_at_the_address_is_told() -> None:
    pytest.importorskip("distributed", reason="dask.distributed is not installed")
    with pytest.raises(HtpsimError, match=r"got no answer from tcp://127\.0\.0\.1:9"):
        sweep(PAIR, AXES, set_values=SHORT, cluster="tcp://127.0.0.1:9")


def test_the_command_prints_the_points(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["sweep", PAIR, "--vary", AXES[0], "--vary", AXES[1], "--for", "500ms", "--workers", "1"]
    done = call(capsys, *words, "--table", str(tmp_path / "t.csv"))
    assert done.code == 0
    assert "4 points, 12 runs" in done.out
    assert max(map(len, done.out.splitlines())) <= 80
    assert (tmp_path / "t.csv").read_text().startswith("point,replication,guard.slots,variant,overall.ttft.mean")
    said = json.loads(call(capsys, *words, "--json", "--metric", "clients.vlm0.ttft.p50").out)
    assert said["metrics"] == ["clients.vlm0.ttft.p50"]
    assert len(said["runs"]) == 12


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--vary", "guard.slots"], "expected KEY=a,b,c"),
        (["--vary", "guard.slots=1", "--design", "lhs"], "for a sample"),
        ([], "expected at least one"),
        (["--vary", "guard.slots=1", "--out", "."], "got a folder"),
    ],
)
def test_wrong_words_are_told(capsys: pytest.CaptureFixture[str], arguments: list[str], told: str) -> None:
    done = call(capsys, "sweep", PAIR, *arguments)
    assert done.code == 2
    assert told in done.err


def test_a_damaged_store_is_told_and_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = tmp_path / "s"
    sweep(PAIR, AXES, set_values=SHORT, replications=1, out=store, workers=1)
    whole = store.read_bytes()
    assert len(whole) > 8192
    for harmed in (whole[:4096] + bytes(len(whole) - 4096), whole[:4096] + b"\x55" * (len(whole) - 4096)):
        store.write_bytes(harmed)
        with pytest.raises(HtpsimError, match=r"s: got a store that cannot be used \(.*\), expected one that is whole"):
            sweep(PAIR, AXES, set_values=SHORT, replications=1, out=store, workers=1)
        with pytest.raises(HtpsimError, match="cannot be used"):
            open_sweep(store)
        assert call(capsys, "sweep", PAIR, "--vary", AXES[0], "--out", str(store)).code == 2
        assert store.read_bytes() == harmed
    with pytest.raises(HtpsimError, match="cannot be used"):
        sweep(PAIR, AXES, set_values=SHORT, replications=1, out=tmp_path / "no" / "folder", workers=1)


@pytest.mark.parametrize(
    "path", ["overall.itl.p98", "overall.itl", "clients.vlm0.itl", "overall.itl.p99.value", "title"]
)
def test_a_figure_that_no_run_has_is_told_before_anything_is_run(tmp_path: Path, path: str) -> None:
    with pytest.raises(ScenarioError, match=r"^metric"):
        sweep(PAIR, AXES, set_values=SHORT, metrics=["overall.itl.p50", path], out=tmp_path / "s", workers=1)
    assert not list(tmp_path.iterdir())


def test_a_count_and_a_size_are_figures_too() -> None:
    paths = ["overall.counts.done", "memory.pd.peak_bytes", "clients.vlm1.device.device_ns"]
    found = sweep(PAIR, AXES[:1], set_values=SHORT, metrics=paths, replications=1, workers=1, variant="legacy")
    one = run_one(PAIR, set_values=[*SHORT, "guard.slots=1"], variant="legacy", replication=0, workers=1)
    values = dict(one.to_dataframe()[["metric", "value"]].itertuples(index=False))
    assert found.to_dataframe().loc[0, paths].to_dict() == {path: values[path] for path in paths}
    assert [e.unit for e in found.estimates()[0]] == ["count", "bytes", "ns"]


def test_a_sweep_of_a_variant_has_its_replications(tmp_path: Path) -> None:
    file = tmp_path / "two.toml"
    head = 'title = "through the guard"'
    file.write_text(Path(PAIR).read_text(encoding="utf-8").replace(head, f"{head}\nrun = {{ replications = 2 }}"))
    found = sweep(file, AXES[:1], set_values=SHORT, variant="guarded", workers=1)
    assert len(found.found) == 2 * len(found.points)


def test_a_point_at_which_somebody_does_not_start_says_so_beside_its_figures(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["--vary", "device.dram_budget=165MB,800MB", "--variant", "legacy", "--replications", "1", "--workers", "1"]
    found = sweep(PAIR, words[1:2], set_values=SHORT, variant="legacy", replications=1, workers=1)
    few, all_of_them = found.to_dataframe()["why"]
    assert "did not start: model 'llm'" in few
    assert "did not start" not in all_of_them
    assert found.to_dataframe()["overall.ttft.mean"].notna().all()
    assert "! 165MB: vlm0 did not start" in " ".join(call(capsys, "sweep", PAIR, *words, "--for", "500ms").out.split())
