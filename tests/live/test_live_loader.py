"""Loading under real threads: one load for a key, one fate for all who wait, nothing freed while a graph executes."""

from __future__ import annotations

import threading

import pytest

from htpsim.errors import CapacityError, IllegalTransition
from htpsim.live import TimedBench
from htpsim.live.faults import FaultPlan
from htpsim.live.loader import LiveLoader
from htpsim.live.stopping import Stop, clock_from_now
from htpsim.live.work import Stage, Work
from htpsim.spec import Device, Model, Registry
from htpsim.spec.plan import GraphPlan, make_plan
from tests.live.bench import scene, vlm, wait_until

BOTH = Registry(llm=True, vit=True)


class Gated(TimedBench):
    """Work that opens when it is let, and may fail then."""

    def __init__(self, error: str = "") -> None:
        super().__init__()
        self.gate, self.error, self.opened, self.closed = threading.Event(), error, 0, 0

    def open(self, model: Model, graph: GraphPlan, stage: Stage) -> Work:
        assert self.gate.wait(10)
        if self.error:
            raise OSError(self.error)
        self.opened += 1
        work = super().open(model, graph, stage)
        work.close = self.count  # type: ignore[method-assign]
        return work

    def count(self) -> None:
        self.closed += 1


def loader_of(bench: TimedBench, instances: int, registry: Registry = BOTH, **device: int) -> LiveLoader:
    plan = make_plan(
        scene(*(vlm(f"vlm{n}") for n in range(instances)), registry=registry, device=Device(**device))  # type: ignore[arg-type]
    )
    return LiveLoader(plan, bench, clock_from_now(), Stop(), FaultPlan())


def obtain(loader: LiveLoader, gate: threading.Event) -> dict[str, str]:
    """Let every instance obtain its models at once, the loads held back until all have asked; return what failed."""
    failed: dict[str, str] = {}

    def one(number: int) -> None:
        client = loader.plan.clients[number]
        try:
            loader.obtain_all(client)
        except CapacityError as error:
            failed[client.name] = str(error)

    threads = [threading.Thread(target=one, args=(n,), daemon=True) for n in range(len(loader.plan.clients))]
    for thread in threads:
        thread.start()
    key = "vit", "", 0, "core", 0
    wait_until(lambda: len(loader.registry.users(key)) == len(threads))
    gate.set()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    return failed


def test_all_who_ask_for_a_key_share_one_load() -> None:
    bench = Gated()
    loader = loader_of(bench, 4)

    assert obtain(loader, bench.gate) == {}

    assert bench.opened == 3  # one graph of the ViT, two of the LLM
    assert sorted(row.role for row in loader.log) == ["borrower"] * 6 + ["owner"] * 2
    assert [copy.users for copy in loader.copy_rows()] == [4, 4]
    loader.validate()


def test_a_load_that_fails_tells_the_same_to_everybody_who_waits_and_leaves_nothing() -> None:
    bench = Gated("no such file")
    loader = loader_of(bench, 3)

    failed = obtain(loader, bench.gate)

    assert len(failed) == 3
    assert len(set(failed.values())) == 1
    assert "cannot be loaded: no such file" in failed["vlm0"]
    assert loader.memory.held("device") == 0
    assert loader.copy_rows() == []
    loader.validate()


def test_without_the_registry_everybody_loads_for_themselves() -> None:
    bench = Gated()
    bench.gate.set()
    loader = loader_of(bench, 3, Registry(llm=False, vit=False))
    for client in loader.plan.clients:
        loader.obtain_all(client)

    assert bench.opened == 9
    assert len(loader.copy_rows()) == 6
    assert loader.memory.held("device") == 6 * 1_000


def test_a_budget_refuses_with_the_limit_and_frees_what_was_held() -> None:
    bench = Gated()
    bench.gate.set()
    loader = loader_of(bench, 1, dram_budget_bytes=1_500)

    with pytest.raises(CapacityError, match="dram_budget"):
        loader.obtain_all(loader.plan.clients[0])

    assert loader.memory.held("device") == 0
    assert bench.closed == 1  # the ViT, which had fitted


def test_nothing_is_freed_while_a_graph_executes_and_the_last_user_closes_the_sessions() -> None:
    bench = Gated()
    bench.gate.set()
    loader = loader_of(bench, 2)
    copies = [loader.obtain_all(client) for client in loader.plan.clients]
    vit = copies[0][0]
    first, second = loader.plan.clients

    loader.begins(first.name, vit)
    with pytest.raises(IllegalTransition, match="nothing is freed while a graph executes"):
        loader.give_back(first)
    loader.ends(first.name, vit)
    loader.give_back(first)
    assert bench.closed == 0
    loader.give_back(second)

    assert bench.closed == 3
    assert loader.memory.held("device") == 0


def test_a_copy_that_is_loaded_again_takes_the_place_that_it_had() -> None:
    bench = Gated()
    bench.gate.set()
    loader = loader_of(bench, 2)
    first, second = loader.plan.clients

    loader.obtain_all(first)
    loader.give_back(first)
    (vit, llm) = loader.obtain_all(second)

    assert (vit.contexts, llm.contexts) == ([0], [1])
    assert [copy.users for copy in loader.copy_rows()] == [1, 1]
    assert bench.opened == 6
    assert bench.closed == 3
