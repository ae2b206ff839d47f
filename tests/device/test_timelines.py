"""The published pre-emption timelines, and ours, must come out exactly: predicted, nothing is fitted."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from htpsim.results.columns import Execute, Slice
from htpsim.sim import simulate
from htpsim.spec import Arrivals, Context, Device, Graph, Model, OtherClient, Run, Scenario, constant

OURS = Path(__file__).resolve().parents[1] / "fixtures" / "device" / "timelines.toml"
PUBLISHED = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "preemption_timelines.toml"
NAMES = ("base_queue", "base_higher", "base_complex", "same_pd", "multi_pd")
MB = 1 << 20
RUN = 1


def read(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text()) if path.exists() else {}


def scenario_of(script: dict[str, Any]) -> Scenario:
    """Every job becomes a client with one graph that arrives once."""
    core, clients = script.get("core", {}), []
    for number, job in enumerate(script["jobs"]):
        client = script.get("clients", {}).get(job["client"], {})
        graph = Graph(
            name="g",
            context="c",
            service=constant(job["work"]),
            qnn=client.get("qnn", True),
            hmx=client.get("hmx", 1),
            hvx=client.get("hvx", 1),
            vtcm_bytes=client.get("vtcm_mb", 8) * MB,
        )
        clients.append(
            OtherClient(
                name=f"{job['client']} {number}",
                model=Model(name=f"model {number}", role="other", contexts=(Context(name="c"),), graphs=(graph,)),
                priority=client.get("priority") or script["priorities"][job["client"]],
                process=client.get("pd", 0),
                arrivals=Arrivals(kind="replay", times_ns=(job["arrives"],)),
            )
        )
    device = Device(
        hvx=core.get("hvx", 4),
        hmx=core.get("hmx", 1),
        vtcm_bytes=core.get("vtcm_mb", 8) * MB,
        pd_rule="any",
        yield_latency_ns=script.get("yield_latency", 0),
        evict_ns=0,
        restore_ns=0,
    )
    return Scenario(device=device, clients=tuple(clients), run=Run(duration_ns=1_000))


def runs_of(script: dict[str, Any]) -> list[list[list[int]]]:
    """Return the stretches in which each job ran."""
    log = simulate(scenario_of(script), check=True)
    runs: dict[int, list[list[int]]] = {}
    for execute in map(Execute._make, log.executes):
        pieces = [s for s in map(Slice._make, log.slices) if s.execute == execute.execute and s.kind == RUN]
        whole = [[execute.started_ns, execute.finished_ns]]
        runs[execute.client] = [[s.start_ns, s.end_ns] for s in pieces] or whole
    return [runs[number] for number in range(len(script["jobs"]))]


@pytest.mark.parametrize("name", read(OURS))
def test_timeline(name: str) -> None:
    script = read(OURS)[name]

    assert runs_of(script) == [job["runs"] for job in script["jobs"]]


@pytest.mark.parametrize("name", NAMES)
def test_published_timeline(name: str) -> None:
    if not PUBLISHED.exists():
        pytest.skip("the file with the published timelines is not beside this checkout")
    script = read(PUBLISHED)[name]

    assert runs_of(script) == [job["runs"] for job in script["jobs"]]


def test_a_queue_behaves_alike_whether_the_first_outranks_the_second() -> None:
    script = read(OURS)["base_queue"] | {"priorities": {"A": "HIGH", "B": "NORMAL"}}

    assert runs_of(script) == [[[0, 30]], [[30, 60]]]


def test_the_five_published_ones_are_here() -> None:
    assert set(NAMES) <= set(read(OURS))
