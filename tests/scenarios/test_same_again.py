"""The same seed gives the same bytes, in another process and in another order; a policy shifts no draw."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from htpsim.experiments.runner import Task, run_tasks
from htpsim.results.columns import Execute
from htpsim.results.run import RunResult
from htpsim.scenario import load
from htpsim.sim import simulate
from htpsim.spec import Scenario
from tests.scenarios.support import SCENARIOS

FILES = ("records.csv", "summary.json", "requests.csv", "memory.csv", "scenario.json", "log.json", "slices.csv")
DRAWN = [
    "run.duration=8s",
    "run.warmup=1s",
    "models.vit.graphs.service={ kind = 'lognormal', mean = '370ms', cv = 0.2 }",
    "models.llm.prefill.service={ kind = 'erlang', mean = '36ms', stages = 9 }",
    "models.llm.decode.service={ kind = 'lognormal', mean = '19ms', cv = 0.1 }",
    "instances.output_tokens={ kind = 'uniform', low = 10, high = 120 }",
]
"""Every time and count drawn, so that a draw that went astray shows."""
WRITE = """
import sys
from htpsim.results.run import RunResult
from htpsim.scenario import load
from htpsim.sim import simulate

path, variant, folder, *settings = sys.argv[1:]
RunResult(simulate(load(path, set_values=settings).resolve(variant).scenario, 1)).write(folder)
"""


def scenarios() -> dict[str, Scenario]:
    file = load(SCENARIOS / "vit_migration.toml", set_values=DRAWN)
    return {variant: file.resolve(variant, "weights_4211").scenario for variant in file.variants}


@pytest.mark.slow
def test_another_process_writes_the_same_bytes(tmp_path: Path) -> None:
    path, variant = SCENARIOS / "vit_migration.toml", "genie_registry"
    here, there = tmp_path / "here", tmp_path / "there"
    RunResult(simulate(load(path, set_values=DRAWN).resolve(variant).scenario, 1)).write(here)

    environment = os.environ | {"PYTHONHASHSEED": "7", "PYTHONPATH": str(SCENARIOS.parent)}
    command = [sys.executable, "-c", WRITE, str(path), variant, str(there), *DRAWN]
    subprocess.run(command, check=True, env=environment, cwd=tmp_path)

    for name in FILES:
        assert (here / name).read_bytes() == (there / name).read_bytes(), name
    assert (here / "records.csv").read_text(encoding="utf-8").count("\n") > 200


@pytest.mark.slow
def test_variants_in_another_order_write_the_same_bytes(tmp_path: Path) -> None:
    tasks = [Task((name,), scenario, 0, keep_log=True) for name, scenario in scenarios().items()]

    for folder, order in (("forth", tasks), ("back", tasks[::-1])):
        for outcome in run_tasks(order, workers=1):
            assert outcome.log is not None
            RunResult(outcome.log).write(tmp_path / folder / outcome.key[0])

    for task in tasks:
        for name in FILES:
            forth, back = (tmp_path / folder / task.key[0] / name for folder in ("forth", "back"))
            assert forth.read_bytes() == back.read_bytes(), (task.key, name)


@pytest.mark.slow
def test_results_do_not_depend_on_the_number_of_workers() -> None:
    tasks = [Task((name,), scenario, 0, keep_log=True) for name, scenario in list(scenarios().items())[:3]]

    alone, together = run_tasks(tasks, workers=1), run_tasks(tasks, workers=2)

    for one, two in zip(alone, together, strict=True):
        assert one.log is not None
        assert two.log is not None
        assert one.log.executes == two.log.executes
        assert one.summary.to_dict() == two.summary.to_dict()


def test_another_seed_or_replication_gives_other_draws() -> None:
    scenario = scenarios()["legacy"]
    other_seed = replace(scenario, run=replace(scenario.run, seed=2))

    drawn = [solo_times(scenario, 0), solo_times(scenario, 1), solo_times(other_seed, 0)]

    assert len({tuple(sorted(times.items())) for times in drawn}) == 3


def solo_times(scenario: Scenario, replication: int = 0) -> dict[tuple[str, int, int, int, str], int]:
    """Return the service time drawn for each graphExecute, by what it was: client, request, stage, step, graph."""
    log = simulate(scenario, replication)
    rows = [Execute(*row) for row in log.executes]
    return {
        (log.clients[r.client], r.request, r.stage, r.step, log.graphs[r.graph].split("#")[0]): r.solo_ns for r in rows
    }


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"policy": policy}, id=policy)
        for policy in ("fifo", "priority", "stride", "drr", "lottery", "edf", "eevdf", "quota")
    ]
    + [pytest.param({"slots": 1}, id="one slot"), pytest.param({"scope": "request"}, id="whole requests")],
)
def test_changing_the_policy_changes_no_drawn_service_time(changes: dict[str, Any]) -> None:
    scenario = scenarios()["genie"]
    as_configured = solo_times(scenario)

    changed = solo_times(replace(scenario, guard=replace(scenario.guard, **changes)))

    common = as_configured.keys() & changed.keys()
    assert len(common) > 200
    assert {key: as_configured[key] for key in common} == {key: changed[key] for key in common}
    assert len({as_configured[key] for key in common}) > 100, "the times must vary for this to say anything"


@pytest.mark.parametrize("variant", ["legacy_one_copy", "genie", "genie_registry", "legacy_llm_high"])
def test_no_variant_shifts_the_draws_of_another(variant: str) -> None:
    legacy, other = solo_times(scenarios()["legacy"]), solo_times(scenarios()[variant])

    common = legacy.keys() & other.keys()
    assert len(common) > 200
    assert {key: legacy[key] for key in common} == {key: other[key] for key in common}
