"""What one copy costs and saves on two cores, and what the registry changes where every core has its copy anyway."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htpsim.results.columns import Execute
from htpsim.results.log import Row, RunLog
from htpsim.results.run import RunResult
from htpsim.sim import simulate
from htpsim.spec import (
    Arrivals,
    Context,
    Device,
    Distribution,
    Graph,
    Guard,
    Instance,
    Model,
    Registry,
    Run,
    Scenario,
    constant,
)
from htpsim.spec.work import Path

MS = 1_000_000
WEIGHTS, IO = 400_000_000, 5_000_000


def vit(service: Distribution, split: int = 1) -> Model:
    context = Context(name="vit", weights_bytes=WEIGHTS, io_bytes=IO)
    graph = Graph(name="vit", context="vit", service=service, dram_bytes=WEIGHTS)
    return Model(name="vit", role="vit", contexts=(context,), graphs=(graph,), split=split)


def llm(prefill: Distribution, decode: Distribution) -> Model:
    return Model(
        name="llm",
        role="llm",
        contexts=(Context(name="part", weights_bytes=2 * WEIGHTS, io_bytes=IO),),
        prefill=(Graph(name="prefill", context="part", service=prefill, dram_bytes=WEIGHTS),),
        decode=(Graph(name="decode", context="part", service=decode, dram_bytes=2 * WEIGHTS),),
        kv_bytes=1_000_000,
    )


def back_to_back(registry: Registry, path: Path = "qnn") -> RunResult:
    """Run two instances that encode one image after another on two cores."""
    instances = tuple(
        Instance(name=name, vit=vit(constant(100 * MS)), vit_path=path, arrivals=Arrivals(think=constant(0)))
        for name in ("left", "right")
    )
    device, run = Device(cores=2), Run(duration_ns=20_000 * MS, replications=1)
    return RunResult(simulate(Scenario(device=device, registry=registry, run=run, instances=instances), check=True))


@pytest.mark.parametrize("path", ["qnn", "genie"])
def test_one_copy_for_two_cores_saves_its_bytes_and_halves_the_throughput(path: Path) -> None:
    copies = back_to_back(Registry(vit=False), path)
    shared = back_to_back(Registry(vit=True, vit_copies="per-process"), path)

    per_core, per_process = copies.summary(), shared.summary()
    assert per_core.overall.images_per_s.value == 20
    assert per_process.overall.images_per_s.value == 10
    assert per_core.memory["device"].steady_bytes == 2 * (WEIGHTS + IO)
    assert per_process.memory["device"].steady_bytes == WEIGHTS + 2 * IO
    assert [core.utilisation.value for core in per_core.cores.values()] == [1, 1]
    assert [core.utilisation.value for core in per_process.cores.values()] == [1, 0]


def test_a_copy_a_core_from_the_registry_costs_no_throughput() -> None:
    """Two instances on two cores share nothing then; with four, two and two do, and only bytes fall."""
    shared = back_to_back(Registry(vit=True, vit_copies="per-core"))

    assert shared.summary().overall.images_per_s.value == 20
    assert shared.summary().memory["device"].steady_bytes == 2 * (WEIGHTS + IO)


@st.composite
def workloads(draw: st.DrawFn) -> Scenario:
    """Draw a scenario under the premise: a copy a core, by-instance placement, equal priority, loads at once."""

    def service(most_ms: int) -> Distribution:
        mean = draw(st.integers(5, most_ms)) * MS
        return draw(st.sampled_from([constant(mean), Distribution(kind="lognormal", mean=mean, cv=0.3)]))

    models = vit(service(150), split=draw(st.integers(1, 3))), llm(service(50), service(30))
    arrivals = draw(
        st.sampled_from(
            [
                Arrivals(think=constant(0)),
                Arrivals(think=Distribution(kind="exponential", mean=200 * MS)),
                Arrivals(kind="periodic", period_ns=400 * MS),
            ]
        )
    )
    instances = tuple(
        Instance(
            name=f"vlm{i}", vit=models[0], llm=models[1], vit_path=draw(st.sampled_from(["qnn", "genie"])),
            weight=draw(st.integers(1, 8)), output_tokens=constant(draw(st.integers(1, 6))), arrivals=arrivals,
            queue_limit=4,
        )
        for i in range(draw(st.integers(1, 5)))
    )  # fmt: skip
    return Scenario(
        device=Device(
            cores=draw(st.integers(1, 3)),
            dram_bandwidth=draw(st.sampled_from([None, 20_000_000_000])),
            rpc_call_ns=draw(st.sampled_from([0, 43_000])),
        ),
        guard=Guard(
            policy=draw(st.sampled_from(["fifo", "sfq", "quota"])),
            slots=draw(st.integers(0, 2)),
            slots_per=draw(st.sampled_from(["process", "core"])),
        ),
        run=Run(duration_ns=1_000 * MS, seed=draw(st.integers(1, 1000)), replications=1),
        instances=instances,
    )


def without_copy(rows: list[Row]) -> list[Row]:
    """Return rows without the number of the copy they ran on, which is bookkeeping."""
    at = Execute._fields.index("copy")
    return [(*row[:at], *row[at + 1 :]) for row in rows]


def held_bytes(log: RunLog) -> int:
    return RunResult(log).summary().memory["device"].steady_bytes


@pytest.mark.slow
@given(workloads())
def test_where_every_core_has_its_copy_the_registry_changes_bytes_and_no_timestamp(scenario: Scenario) -> None:
    own, shared = (simulate(replace(scenario, registry=Registry(vit=vit)), check=True) for vit in (False, True))

    assert without_copy(own.executes) == without_copy(shared.executes)
    assert own.requests == shared.requests
    copies_saved = max(0, len(scenario.instances) - scenario.device.cores)
    assert held_bytes(own) - held_bytes(shared) == copies_saved * WEIGHTS


@pytest.mark.parametrize("guarded", [{0}, {2}, {0, 2}, {1, 3}, {0, 1, 2, 3}])
def test_calls_of_one_instant_go_by_their_number_whether_they_share_a_copy_or_not(guarded: set[int]) -> None:
    """A guarded call is submitted after an unguarded one of the same instant, and has perhaps the lower number."""
    instances = tuple(
        Instance(
            name=f"vlm{i}",
            vit=vit(constant(90 * MS), split=3),
            vit_path="genie" if i in guarded else "qnn",
            arrivals=Arrivals(kind="periodic", period_ns=500 * MS),
        )
        for i in range(4)
    )
    guard, run = Guard(slots=4, policy="fifo"), Run(duration_ns=2_000 * MS)
    scenario = Scenario(device=Device(), guard=guard, run=run, instances=instances)

    own, shared = (simulate(replace(scenario, registry=Registry(vit=vit)), check=True) for vit in (False, True))

    assert [Execute(*row).execute for row in own.executes[:4]] == [0, 1, 2, 3]
    assert without_copy(own.executes) == without_copy(shared.executes)


def test_the_premise_is_needed() -> None:
    """With one copy a process the same comparison does change timestamps: the property above can fail."""
    instances = tuple(
        Instance(name=name, vit=vit(constant(100 * MS)), arrivals=Arrivals(think=constant(0))) for name in ("a", "b")
    )
    scenario = Scenario(device=Device(cores=2), run=Run(duration_ns=1_000 * MS), instances=instances)

    own = simulate(replace(scenario, registry=Registry(vit=False)))
    shared = simulate(replace(scenario, registry=Registry(vit=True, vit_copies="per-process")))

    assert without_copy(own.executes) != without_copy(shared.executes)
