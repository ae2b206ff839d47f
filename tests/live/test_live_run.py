"""The testbed as a whole, on work that only takes time: its records are those of a run, and every rule holds."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from htpsim.errors import HtpsimError, InvariantError, ScenarioError
from htpsim.experiments.check import check_file
from htpsim.experiments.opened import open_run
from htpsim.experiments.trace import trace_of
from htpsim.experiments.trace_export import export
from htpsim.live import TimedBench, engine, run_live
from htpsim.live.engine import END_LIMIT_S
from htpsim.live.host import processors
from htpsim.live.runs import live_one
from htpsim.live.supports import refuse_unsupported
from htpsim.results.columns import DROPPED, PARTS, PATHS, REQUEST_STATES, STAGE_DECODE, Execute
from htpsim.results.read import read_log
from htpsim.results.run import RunResult
from htpsim.sched import POLICIES
from htpsim.spec import Arrivals, Device, Guard, OtherClient, Registry, Scenario, constant
from htpsim.units import NS_PER_S
from tests.live.bench import MS, VIT, all_answer, checked, graphs, model, play, play_until, requests, scene, vlm

USUAL = ("fifo", "priority", "quota", "sfq")
SHORT = ["run.duration=0.4s", "run.warmup=0s"]


def rows(scenario: Scenario) -> list[Execute]:
    return [Execute(*row) for row in play_until(all_answer, scenario).log.executes]


@pytest.mark.parametrize("policy", [p if p in USUAL else pytest.param(p, marks=pytest.mark.verify) for p in POLICIES])
def test_every_rule_holds_on_the_trace_of_real_threads(policy: str) -> None:
    guard = Guard(policy=policy, slots=1)
    scenario = scene(vlm("vlm0", weight=4, guard_priority=1), vlm("vlm1"), vlm("vlm2", vit_path="qnn"), guard=guard)
    live = play_until(lambda log: any(row[3] == STAGE_DECODE for row in log.executes), scenario)

    report = checked(live.log)

    assert report.violations == []
    assert {"guard-exclusion", "guard-order", "core-exclusion", "running-set", "parts", "little"} <= set(report.checked)
    assert live.threads == 4


def test_the_log_is_a_runs_log_and_comes_back_from_its_files(tmp_path: Path) -> None:
    live = play(scene(vlm("vlm0"), vlm("vlm1", vit_path="qnn")))
    result = RunResult(live.log)

    result.write(tmp_path / "run")

    again = read_log(tmp_path / "run", live.log.scenario)
    assert (again.executes, again.requests, again.engine) == (live.log.executes, live.log.requests, "live")
    assert result.summary().clients.keys() == {"vlm0", "vlm1"}
    for row in map(Execute._make, live.log.executes):
        if row.returned_ns >= 0:
            assert sum(getattr(row, part) for part in PARTS) == row.returned_ns - row.called_ns
            assert row.returned_ns <= live.log.end_ns
    assert [row[0] for row in sorted(live.log.executes)] == list(range(len(live.log.executes)))


def test_paths_and_accounts_are_what_threads_carry() -> None:
    scenario = scene(vlm("vlm0"), vlm("vlm1", vit_path="qnn"), guard=Guard(slots=1, registration="query"))
    seen = {(row.client, row.stage): (PATHS[row.path], row.weight) for row in rows(scenario)}

    assert seen[0, 0] == ("genie", 1)
    assert seen[1, 0] == ("qnn", 0)
    bypass = replace(scenario, guard=replace(scenario.guard, unregistered="bypass"))
    assert {PATHS[row.path] for row in rows(bypass) if row.client == 0 and row.stage == 0} == {"bypass"}


def test_open_arrivals_come_when_they_are_due_and_a_full_queue_drops_the_oldest() -> None:
    camera = Arrivals(kind="periodic", period_ns=4 * MS)
    log = play(scene(vlm("vlm0", arrivals=camera, queue_limit=1), vlm("vlm1"))).log

    seen = requests(log, "vlm0")

    assert [row.arrived_ns for row in seen] == [4 * MS * n for n in range(len(seen))]
    assert sum(row.state == DROPPED for row in seen) > len(seen) // 3
    assert checked(log).ok


def test_the_same_draws_as_in_the_engines() -> None:
    from htpsim.sim import simulate

    wide = [vlm(f"vlm{n}", images=constant(2), output_tokens=constant(3 + n)) for n in range(2)]
    scenario = scene(*wide)
    live, simulated = play_until(all_answer, scenario, replication=3).log, simulate(scenario, 3)

    shapes = [
        [(r.request, r.images, r.prompt_tokens, r.output_tokens) for r in requests(log, "vlm1")]
        for log in (live, simulated)
    ]
    both = min(map(len, shapes))
    assert both > 0
    assert shapes[0][:both] == shapes[1][:both]
    assert [REQUEST_STATES[r.state] for r in requests(live, "vlm1")[:1]] == ["done"]


@pytest.mark.skipif(len(processors()) < 2, reason="needs two processors")
def test_two_cores_run_side_by_side_and_copies_stay_where_they_are_loaded() -> None:
    device = Device(cores=2, yield_latency_ns=10**10)
    scenario = scene(
        *(vlm(f"vlm{n}") for n in range(4)), device=device, guard=Guard(slots_per="core"),
        registry=Registry(llm=True, vit=True),
    )  # fmt: skip
    log = play_until(all_answer, scenario).log

    assert {(row[1] % 2, row[7]) for row in log.executes} == {(0, 0), (1, 1)}
    assert len(log.copies) == 4
    assert checked(log).ok


def test_a_policy_that_grants_nobody_is_told_as_a_deadlock() -> None:
    scenario = scene(guard=Guard(policy="tests.live.idle:Idle", slots=1), duration_ms=5_000)

    with pytest.raises(InvariantError, match=r"deadlock at .* 0 of 1 slots held, process 0/vlm0 waits"):
        play(scenario)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"device": Device(dram_bandwidth=10**9)}, "device.dram_bandwidth"),
        ({"device": Device(cores=2, topology="gang")}, 'device.topology = "gang"'),
        ({"device": Device(acquire_ns=1)}, "device.acquire_ns"),
        ({"device": Device(pge=True)}, "device.pge"),
        ({"guard": Guard(scope="request")}, 'guard.scope = "request"'),
        ({"guard": Guard(gap_inside=True)}, "guard.gap_inside"),
        ({"registry": Registry(adapters="turns")}, 'registry.adapters = "turns"'),
        ({"instances": (vlm("a", vit_thread="own"),)}, 'instances.a.vit_thread = "own"'),
        ({"instances": (vlm("a", vit_path="host"),)}, 'instances.a.vit_path = "host"'),
        ({"instances": (vlm("a", llm_priority="HIGH"),), "device": Device()}, "which evict"),
        ({"clients": (OtherClient(name="camera", model=VIT),)}, "clients.camera"),
        ({"instances": tuple(vlm(f"v{n}") for n in range(33))}, "33 instances"),
        (
            {"instances": (vlm("a", arrivals=Arrivals(kind="periodic", period_ns=1)),)},
            "a: more than 1,000,000 requests",
        ),
        ({"instances": (vlm("a", vit=model("vit", "vit", graphs=graphs(vit=10_001))),)}, "a graph of 10 s, of at most"),
    ],
)
def test_what_threads_cannot_do_is_refused_by_name(changes: dict[str, object], named: str) -> None:
    with pytest.raises(ScenarioError) as raised:
        refuse_unsupported(replace(scene(), **changes))  # type: ignore[arg-type]

    assert named in str(raised.value)
    assert "which the testbed cannot do" in str(raised.value)


def test_the_end_of_a_run_does_not_wait_for_a_pause_of_the_host() -> None:
    begun = time.monotonic()

    live = play(scene(*(vlm(f"vlm{n}", host_gap_step_ns=600 * NS_PER_S) for n in range(2))))

    assert time.monotonic() - begun < END_LIMIT_S
    assert live.log.end_ns - live.log.start_ns == 150 * MS


def test_threads_that_do_not_end_share_one_limit_and_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()
    monkeypatch.setattr(engine, "END_LIMIT_S", 1)
    names = [f"vlm{n}" for n in range(12)]

    begun = time.monotonic()
    with pytest.raises(HtpsimError, match="did not end within") as raised:
        run_live(scene(*map(vlm, names), duration_ms=50), TimedBench(lambda _: gate.wait(60) and None))
    spent_s = time.monotonic() - begun
    gate.set()

    assert "htp core 0" in str(raised.value)
    assert set(names) & set(str(raised.value).replace(",", "").split())
    assert spent_s < len(names)  # a limit of its own for each of those stuck would take longer


def test_the_machine_is_told_whole_though_threads_are_bound_to_parts_of_it() -> None:
    live = play(scene(duration_ms=20))

    assert f", {len(processors())} processors, " in live.machine
    assert any(live.machine in note for note in live.log.notes)


@pytest.mark.slow
def test_a_run_directory_opens_exports_and_checks_like_any_other(tmp_path: Path) -> None:
    from htpsim.report.directory import scenario_dict

    single, _ = live_one("live/four_threads", set_values=SHORT, bench=TimedBench())
    single.result.write(tmp_path / "run", scenario=scenario_dict(single.resolved))

    run = open_run(tmp_path / "run")
    export(run, tmp_path / "run.jsonl")
    export(run, tmp_path / "run.json")

    assert run.log.engine == "live"
    assert not trace_of(run.log).engine
    assert check_file(tmp_path / "run.jsonl").ok
    assert json.loads((tmp_path / "run.json").read_text())["traceEvents"]


@pytest.mark.verify
def test_the_command_runs_and_ends(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "htpsim", "live", "live/quota", "--work", "timed", "--for", "0.3s"]
    command += ["--out", str(tmp_path / "run"), "--trace", str(tmp_path / "t.jsonl"), "--set", 'run.warmup="0s"']
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    assert done.returncode == 0, done.stderr
    assert "Ran on 5 threads" in done.stderr
    assert check_file(tmp_path / "t.jsonl").ok
    assert "Quota on real threads" in (tmp_path / "run" / "report.txt").read_text()
