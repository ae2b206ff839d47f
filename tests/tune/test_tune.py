"""Tuning finds the optimum where it is known, and says so where there is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given

from htpsim.errors import ScenarioError
from htpsim.experiments.bounds import bound
from htpsim.experiments.demand import parse_bound, parse_goal
from htpsim.experiments.tune import tune
from htpsim.results import RunResult
from htpsim.sim import simulate
from htpsim.spec import Scenario
from htpsim.testing import scenarios
from tests.cli.support import PAIR, call

ONE_VIT = """
[run]
duration = "30s"
replications = 1

[models.vit]
role = "vit"
contexts = [{ name = "c", weights = "1MB" }]
graphs = [{ name = "g", context = "c", service = "120ms" }]

[models.llm]
role = "llm"
contexts = [{ name = "c", weights = "1MB" }]
prefill = [{ name = "p", context = "c", service = "1ms" }]
decode = [{ name = "d", context = "c", service = "5ms" }]

[[instances]]
name = "seer"
vit = "vit"
arrivals = { kind = "poisson", period = "400ms" }

[[instances]]
name = "talker"
llm = "llm"
output_tokens = 40
"""

BACKLOG = """
[run]
duration = "1s"
replications = 1

[device]
cores = 1

[guard]
policy = "sfq"

[models.m]
role = "other"
contexts = [{ name = "c", weights = "1MB" }]
graphs = [{ name = "g", context = "c", service = "2ms" }]

[[clients]]
name = "a"
model = "m"
path = "genie"
arrivals = { kind = "periodic", period = "3ms" }

[[clients]]
name = "b"
model = "m"
path = "genie"
arrivals = { kind = "periodic", period = "3ms" }

[[clients]]
name = "c"
model = "m"
path = "genie"
arrivals = { kind = "periodic", period = "3ms" }
"""


@pytest.fixture
def one_vit(tmp_path: Path) -> Path:
    path = tmp_path / "one_vit.toml"
    path.write_text(ONE_VIT)
    return path


@pytest.fixture
def backlog(tmp_path: Path) -> Path:
    path = tmp_path / "backlog.toml"
    path.write_text(BACKLOG)
    return path


def test_the_least_cut_that_keeps_a_gap_is_found(one_vit: Path) -> None:
    """A decode step waits for one part of the ViT at most: 120 ms / k + 5 ms <= 36 ms from k = 4 on."""
    found = tune(one_vit, ["models.vit.split=1,2,3,4,6,8"], ["itl.max <= 36ms"], goal="vit.mean", workers=1)
    assert found.best is not None
    assert found.best.point == ("4",)
    assert found.best.kept[0].mean == pytest.approx(35e6, rel=0.01)
    assert {c.point for c in found.candidates if not c.keeps} == {("1",), ("2",), ("3",)}


def test_the_least_weight_that_keeps_a_rate_is_found(backlog: Path) -> None:
    """Of 500 jobs a second, a with weight w gets w / (w + 2): 300 of them from w = 3 on."""
    vary = ["clients.weight=" + ",".join(f"[{w},1,1]" for w in range(1, 9))]
    found = tune(backlog, vary, ["clients.a.requests_per_s >= 297"], goal="clients.b.requests_per_s", workers=1)
    assert found.best is not None
    assert found.best.point == ("[3,1,1]",)
    assert found.best.goal.mean == pytest.approx(100, rel=0.03)


def test_the_search_comes_near_the_optimum_of_more_points_than_it_may_look_at(backlog: Path) -> None:
    """a and b need half and a fifth of 500 jobs a second, so c can have 150; 80 of 1,600 points are looked at."""
    vary = ["clients.a.weight=1..40/40", "clients.b.weight=1..40/40"]
    keep = ["clients.a.requests_per_s >= 248", "clients.b.requests_per_s >= 98"]
    found = tune(backlog, vary, keep, goal="clients.c.requests_per_s", points=80, finalists=3, workers=1,
                 set_values=["clients.c.weight=10"])  # fmt: skip
    assert found.looked_at == 80
    assert found.points == 1600
    assert found.best is not None
    assert 130 <= found.best.goal.mean <= 155


def test_what_nobody_can_keep_is_left_out_without_a_run(one_vit: Path) -> None:
    found = tune(one_vit, ["models.vit.split=1,2"], ["itl.p50 <= 4ms"], workers=1)
    assert (found.best, found.hopeless, found.looked_at, found.candidates) == (None, 2, 0, ())
    assert "no schedule gets past 5e+06" in found.why_hopeless


def test_the_nearest_is_shown_where_nothing_keeps_the_bound(one_vit: Path) -> None:
    found = tune(one_vit, ["models.vit.split=1,2,3"], ["itl.max <= 20ms"], goal="vit.mean", workers=1)
    assert found.best is None
    assert found.candidates[0].point == ("3",)


def test_a_point_at_which_somebody_does_not_start_is_not_taken() -> None:
    """With one VLM of two in memory the other's tokens come sooner; that is no way to keep a bound."""
    vary, keep, short = ["device.dram_budget=165MB,800MB"], ["itl.p50 <= 80ms"], ["run.duration=2s"]
    found = tune(PAIR, vary, keep, goal="ttft.mean", variant="legacy", set_values=short, workers=1)
    assert found.best is not None
    assert found.best.point == ("800MB",)
    few = next(one for one in found.candidates if one.point == ("165MB",))
    assert not few.keeps
    assert "did not start" in few.goal.why


def test_a_front_has_nothing_that_another_beats(one_vit: Path) -> None:
    found = tune(one_vit, ["models.vit.split=1,2,4,8"], ["itl.max <= 70ms"], goal="vit.mean", workers=1)
    for one in found.front:
        for other in found.candidates:
            better = other.goal.mean <= one.goal.mean and other.kept[0].mean <= one.kept[0].mean
            equal = other.goal.mean == one.goal.mean and other.kept[0].mean == one.kept[0].mean
            assert not better or equal
    frame = found.to_dataframe()
    assert frame["front"].sum() == len(found.front) >= 2
    assert list(frame.columns[:3]) == ["models.vit.split", "overall.vit.mean", "overall.vit.mean half-width"]


@given(scenarios())
def test_no_run_gets_past_a_bound(scenario: Scenario) -> None:
    summary = RunResult(simulate(scenario)).summary()
    for group in ("overall", *(f"clients.{i.name}" for i in scenario.instances)):
        for measure in ("itl", "ttft", "vit", "prefill"):
            for stat in ("mean", "p50", "max"):
                value = summary.metric(f"{group}.{measure}.{stat}").value
                least = bound(scenario, f"{group}.{measure}.{stat}")
                assert value is None or least is None or value >= least, (group, measure)


@pytest.mark.parametrize("variant", ["legacy", "guarded", "shared"])
def test_no_run_yields_more_tokens_than_the_bound(variant: str) -> None:
    from htpsim.scenario import load

    scenario = load(PAIR, set_values=["run.duration=20s"]).resolve(variant).scenario
    summary = RunResult(simulate(scenario)).summary()
    for path in ("overall.tokens_per_s", "clients.vlm0.tokens_per_s"):
        most = bound(scenario, path)
        assert most is not None
        assert summary.metric(path).value <= 1.1 * most  # the draws of think times of one run


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("itl.p99", "expected FIGURE <= VALUE"),
        ("itl.p99 < 80ms", "expected FIGURE <= VALUE"),
        ("itl.p99 <= 80", "expected a time"),
        ("tokens_per_s >= many", "expected a number"),
        ("tokens_per_s >= nan", "got 'nan', expected a number"),
        ("slow_tokens <= inf%", "got 'inf%', expected a number"),
        ("itl.p99 <= nan", r"^--keep: overall\.itl\.p99: got 'nan', expected a time with a unit"),
        ("itl.p98 <= 80ms", "--keep: metric overall.itl: got 'p98', .* did you mean 'p99'"),
        ("itl <= 80ms", "--keep: metric overall.itl: got a group, expected one of its members: mean"),
        ("memory.device.steady_bytes <= 4ms", "got '4ms', expected a size"),
    ],
)
def test_a_bound_that_is_none_is_told(text: str, told: str) -> None:
    with pytest.raises(ScenarioError, match=told):
        parse_bound(text)


def test_bounds_and_goals_are_read_as_they_are_written() -> None:
    assert (parse_bound("tokens_per_s >= 5").less, parse_bound("slow_tokens <= 2%").limit) == (False, 0.02)
    assert parse_goal("max clients.a.vit.mean").path == "clients.a.vit.mean"
    assert (
        parse_bound("memory.device.steady_bytes <= 4GB").limit
        == parse_bound("memory.pd.peak_bytes <= 4000000000").limit
    )
    assert parse_bound("counts.dropped <= 3").path == "overall.counts.dropped"
    assert parse_bound("roles.vit.guarded_share >= 50%").limit == 0.5
    with pytest.raises(ScenarioError, match=r"--goal: metric overall\.vit: got 'maen'.*did you mean 'mean'"):
        parse_goal("vit.maen")
    with pytest.raises(ScenarioError, match="--goal"):
        parse_goal("most tokens_per_s")


@pytest.mark.parametrize("goal", ["nosuch", "max vti.mean", "overall.vit", "vit.means"])
def test_a_goal_that_no_run_has_is_told_before_anything_is_run(goal: str) -> None:
    with pytest.raises(ScenarioError, match="--goal: metric overall"):
        parse_goal(goal)


def test_the_command_says_what_to_take(capsys: pytest.CaptureFixture[str], one_vit: Path) -> None:
    words = [
        "tune",
        str(one_vit),
        "--vary",
        "models.vit.split=1,4",
        "--goal",
        "vit.mean",
        "--workers",
        "1",
        "--for",
        "40s",
    ]
    done = call(capsys, *words, "--keep", "itl.max <= 36ms")
    assert done.code == 0
    assert "Take models.vit.split=4: it keeps itl.max <= 36ms" in done.out.replace("\n", " ")
    assert max(map(len, done.out.splitlines())) <= 80
    none = call(capsys, *words, "--keep", "itl.max <= 10ms")
    assert none.code == 1
    assert "Nothing keeps itl.max <= 10ms. The nearest is models.vit.split=4" in none.out.replace("\n", " ")
    assert json.loads(call(capsys, *words, "--keep", "itl.max <= 36ms", "--json").out)["best"] == ["4"]


def test_a_directory_holds_page_tables_and_a_front_a_bound(
    capsys: pytest.CaptureFixture[str], one_vit: Path, tmp_path: Path
) -> None:
    out = tmp_path / "tuned"
    asked = ["tune", str(one_vit), "--vary", "models.vit.split=1,4", "--goal", "vit.mean", "--workers", "1"]
    done = call(capsys, *asked, "--for", "40s", "--keep", "itl.max <= 36ms", "--out", str(out))
    assert done.code == 0
    names = sorted(path.name for path in out.iterdir())
    assert names == ["candidates.csv", "pareto-overall-itl-max.png", "provenance.json", "report.txt", "tuned.json"]
    assert json.loads((out / "tuned.json").read_text())["best"] == ["4"]
    assert len((out / "candidates.csv").read_text().splitlines()) == 3
    assert (out / "report.txt").read_text().strip() == done.out.strip()
    (out / "mine.txt").write_text("kept")
    again = call(capsys, *asked, "--for", "40s", "--keep", "itl.max <= 36ms", "--out", str(out))
    assert again.code == 2
    assert "mine.txt" in again.err
