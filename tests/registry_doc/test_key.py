"""The key: whatever changes what is loaded is in it. Each part left out hands one user what was loaded for another."""

from __future__ import annotations

from dataclasses import replace

import pytest

from htpsim.memory import Memory, Outcome, Registry, registry_key
from htpsim.memory.placement import Key
from htpsim.results.run import RunResult
from htpsim.sim import simulate
from htpsim.spec import (
    Arrivals,
    Context,
    Device,
    Graph,
    Guard,
    Instance,
    Model,
    Run,
    Scenario,
    constant,
)
from htpsim.spec import (
    Registry as RegistrySpec,
)

TWO = Device(cores=2)
VIT = Model(name="vit.bin", role="vit", contexts=(Context(name="veg", weights_bytes=100, io_bytes=5),))
PARTS = ("files", "options", "process", "scope", "core")


def key_of(model: Model, process: int, core: int) -> Key:
    return registry_key(model, process, core, "per-core", TWO)


def without(key: Key, part: str) -> Key:
    """Return a key that forgets one part."""
    return tuple(value for name, value in zip(PARTS, key, strict=True) if name != part)


@pytest.mark.parametrize(
    ("part", "other"),
    [
        pytest.param("files", (replace(VIT, name="another.bin"), 0, 0), id="files"),
        pytest.param("options", (replace(VIT, options="adapter=night"), 0, 0), id="adapter"),
        pytest.param("options", (replace(VIT, options="graph-switching"), 0, 0), id="graph switching"),
        pytest.param("process", (VIT, 1, 0), id="process"),
        pytest.param("core", (VIT, 0, 1), id="core"),
    ],
)
def test_a_key_that_forgets_a_part_hands_out_what_was_loaded_for_another(
    part: str, other: tuple[Model, int, int]
) -> None:
    first, second = key_of(VIT, 0, 0), key_of(*other)

    def outcomes(one: Key, two: Key) -> list[Outcome]:
        registry = Registry()
        asked = [registry.get_or_create(one, "a")]
        registry.loaded(one)
        return [*asked, registry.get_or_create(two, "b")]

    assert outcomes(first, second) == [Outcome.LOAD, Outcome.LOAD]
    assert outcomes(without(first, part), without(second, part)) == [Outcome.LOAD, Outcome.SHARE]


def test_two_users_of_the_same_share_one_key_and_one_copy() -> None:
    registry = Registry()

    assert registry.get_or_create(key_of(VIT, 0, 1), "a") is Outcome.LOAD
    assert registry.get_or_create(key_of(replace(VIT), 0, 1), "b") is Outcome.WAIT


def test_what_a_user_owns_is_not_in_the_key() -> None:
    """A KV cache differs between users of one copy: it does not change what is loaded."""
    assert key_of(replace(VIT, kv_bytes=7), 0, 0) == key_of(VIT, 0, 0)


def test_users_of_one_copy_keep_their_own_weight() -> None:
    """Two ViTs of 10 ms on one copy, at 3 to 1: they share bytes and not the core."""
    vit = replace(VIT, graphs=(Graph(name="veg", context="veg", service=constant(10_000_000)),))
    instances = tuple(
        Instance(name=name, vit=vit, vit_path="genie", weight=weight, arrivals=Arrivals(think=constant(0)))
        for name, weight in (("heavy", 3), ("light", 1))
    )
    log = simulate(
        Scenario(
            guard=Guard(slots=1),
            registry=RegistrySpec(vit=True),
            run=Run(duration_ns=4_000_000_000, replications=1),
            instances=instances,
        ),
        check=True,
    )

    summary = RunResult(log).summary()
    assert [load.role for load in summary.loads] == ["owner", "borrower"]
    assert summary.metric("clients.heavy.device.share").value == pytest.approx(3 / 4, abs=0.01)


def test_a_copy_lies_in_the_address_space_of_its_own_process() -> None:
    """Why the process is in the key: nothing of a copy of process 0 is mapped where process 1 runs."""
    memory = Memory(TWO)
    memory.load("of process 0", VIT, 0, (0,), 0)
    memory.attach("a", "of process 0", 0, 0)

    assert {process for process, _ in memory.pds()} == {0}
    assert memory.contexts_loaded(1) == 0


def test_two_processes_hold_two_copies_of_one_mapped_file() -> None:
    memory = Memory(TWO)
    for process in (0, 1):
        memory.load(f"of process {process}", VIT, process, (0,), 0)

    assert (memory.held("device"), memory.held("host")) == (200, 100), "the page cache is shared, the context is not"
