"""The same scenario and seed give the same log in any process; a variant never shifts another's draws."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htpsim.results import RunLog
from htpsim.sched import POLICIES
from htpsim.sim import simulate
from htpsim.spec import Device, Distribution, Guard, Registry, Run, Scenario, exponential
from tests.sim.build import PLAIN, Arrivals, executes, instance, llm, other, requests, vit
from tests.sim.digest import digest
from tests.sim.strategies import random_scenario, seeded_scenarios

ROOT = Path(__file__).resolve().parents[2]
CORPUS = range(12)
PROGRAM = """
from htpsim.sim import simulate
from tests.sim.digest import digest
from tests.sim.strategies import random_scenario
for seed in {seeds}:
    print(digest(simulate(random_scenario(seed))))
"""


def in_a_fresh_process(seeds: list[int], hash_seed: str) -> list[str]:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-c", PROGRAM.format(seeds=seeds)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.slow
def test_a_fresh_process_gives_the_same_log_in_any_order() -> None:
    here = [digest(simulate(random_scenario(seed))) for seed in CORPUS]

    assert in_a_fresh_process(list(CORPUS), "1") == here
    assert in_a_fresh_process(list(reversed(CORPUS)), "2") == here[::-1]


@given(seeded_scenarios())
def test_two_runs_in_one_process_are_the_same(scenario: Scenario) -> None:
    assert digest(simulate(scenario)) == digest(simulate(scenario))


LOGNORMAL = Distribution(kind="lognormal", mean=1_000, cv=0.3)


def varied(base: Any) -> Any:
    """Give every graph of a model a service time that varies."""
    lists = {k: tuple(replace(g, service=LOGNORMAL) for g in getattr(base, k)) for k in ("graphs", "prefill", "decode")}
    return replace(base, **lists)


def scenario(**given: Any) -> Scenario:
    vlm = instance(
        "a", vit=varied(vit(1)), llm=varied(llm((1, 1), (1, 1), ar=8)), images=Distribution(kind="uniform", high=2),
        output_tokens=Distribution(kind="uniform", low=1, high=9), arrivals=Arrivals(think=exponential(3_000)),
    )  # fmt: skip
    camera = replace(other("camera", 1), arrivals=Arrivals(kind="poisson", period_ns=5_000))
    base = Scenario(
        device=replace(PLAIN, cores=2),
        instances=(vlm, replace(vlm, name="b")),
        clients=(replace(camera, model=varied(camera.model)),),
        run=Run(duration_ns=200_000),
    )
    return replace(base, **given)


def every_vit(base: Scenario, **given: Any) -> tuple[Any, ...]:
    return tuple(replace(i, vit=i.vit and replace(i.vit, **given)) for i in base.instances)


def drawn(log: RunLog, *, without: str = "") -> dict[tuple[int, ...], int]:
    """Return the drawn time of every graphExecute by its address."""
    return {
        (e.client, e.request, e.stage, e.step, log.graphs[e.graph]): e.solo_ns  # type: ignore[misc]
        for e in executes(log)
        if not without or not log.graphs[e.graph].startswith(without)
    }


def shapes(log: RunLog) -> dict[tuple[int, int], tuple[int, int, int]]:
    return {(r.client, r.request): (r.images, r.prompt_tokens, r.output_tokens) for r in requests(log)}


BASE = scenario()
VARIANTS = {
    **{f"policy {name}": scenario(guard=Guard(policy=name)) for name in sorted(POLICIES)},
    "one slot": scenario(guard=Guard(slots=1)),
    "slots a core": scenario(guard=Guard(slots_per="core")),
    "request scope": scenario(guard=Guard(scope="request")),
    "vit on genie": scenario(instances=tuple(replace(i, vit_path="genie") for i in BASE.instances)),
    "registry": scenario(registry=Registry(vit=True, vit_copies="per-process")),
    "higher priority": scenario(instances=tuple(replace(i, llm_priority="HIGH") for i in BASE.instances)),
    "one core": scenario(device=PLAIN),
    "slow yields": scenario(device=Device(cores=2)),
    "without the camera": scenario(clients=()),
    "one instance more": scenario(instances=(*BASE.instances, replace(BASE.instances[0], name="c"))),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_changes_no_draw(name: str) -> None:
    one, two = simulate(BASE), simulate(VARIANTS[name])
    cameras = [log.clients.index("camera") if "camera" in log.clients else -1 for log in (one, two)]
    expected = {k: v for k, v in drawn(one).items() if k[0] != cameras[0]}
    got = {k: v for k, v in drawn(two).items() if k[0] != cameras[1]}
    both = expected.keys() & got.keys()

    assert len(both) > 100
    assert {k: got[k] for k in both} == {k: expected[k] for k in both}
    of_both = shapes(one).keys() & shapes(two).keys()
    assert all(shapes(one)[k] == shapes(two)[k] for k in of_both if k[0] < 2)


def test_cutting_the_vit_changes_no_draw_of_the_others_and_keeps_its_own_length() -> None:
    whole, cut = simulate(BASE), simulate(scenario(instances=every_vit(BASE, split=4)))
    one, two = drawn(whole, without="vit"), drawn(cut, without="vit")
    both = one.keys() & two.keys()
    lengths: list[dict[tuple[int, int, int], int]] = []
    for log in (whole, cut):
        total: dict[tuple[int, int, int], int] = {}
        count: dict[tuple[int, int, int], int] = {}
        for e in executes(log):
            if log.graphs[e.graph].startswith("vit"):
                key = (e.client, e.request, e.step)
                total[key] = total.get(key, 0) + e.solo_ns
                count[key] = count.get(key, 0) + 1
        full = max(count.values())
        lengths.append({key: total[key] for key in total if count[key] == full})

    assert len(both) > 100
    assert all(one[k] == two[k] for k in both)
    images = lengths[0].keys() & lengths[1].keys()
    assert len(images) > 10
    assert all(lengths[0][k] == lengths[1][k] for k in images)


def test_seed_and_replication_change_the_draws() -> None:
    base = drawn(simulate(BASE))
    for log in (simulate(BASE, 1), simulate(scenario(run=replace(BASE.run, seed=2)))):
        both = base.keys() & drawn(log).keys()
        assert sum(base[k] != drawn(log)[k] for k in both) > 0.9 * len(both)


@given(st.integers(0, 40), st.integers(0, 5))
def test_draws_do_not_depend_on_how_many_are_asked_for(request: int, extra: int) -> None:
    from htpsim.sim.draws import Draws
    from htpsim.spec.plan import make_plan

    graphs = make_plan(BASE).clients[0].models[1].decode
    draws = Draws(1, 0, "a")
    few, many = draws.service("decode", request, 3, graphs), draws.service("decode", request, 3 + extra, graphs)

    assert many[: len(few)] == few
