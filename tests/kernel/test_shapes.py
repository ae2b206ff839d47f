"""Code for what a scenario uses: which shape it has, and that nothing fixed in it is ever anything else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htpsim.errors import HtpsimError
from htpsim.kernel import NeedsReference
from htpsim.kernel.engine import run
from htpsim.kernel.keeping import Keeping
from htpsim.kernel.layout import Layout
from htpsim.kernel.shapes import FULL, PLAIN, SHARED, Shape, differs, shape_of
from htpsim.kernel.store import Store
from htpsim.sched import policy_class
from htpsim.sim.loads import load_alone
from htpsim.spec import Scenario
from htpsim.spec.plan import make_plan
from tests.kernel.simple import simple
from tests.kernel.test_engines import SCENARIO
from tests.sim.build import other
from tests.sim.spice import spiced
from tests.sim.strategies import BYTE_A_NS


def features(scenario: Scenario) -> str:
    return shape_of(make_plan(scenario), keeps=True).features


def on_device(**changes: Any) -> Scenario:
    return replace(SCENARIO, device=replace(SCENARIO.device, **changes))


def on_instances(**changes: Any) -> Scenario:
    return replace(SCENARIO, instances=tuple(replace(i, **changes) for i in SCENARIO.instances))


def test_a_shape_is_what_the_scenario_uses() -> None:
    assert features(SCENARIO) == PLAIN
    assert features(on_device(dram_bandwidth=BYTE_A_NS)) == SHARED
    assert features(replace(SCENARIO, guard=replace(SCENARIO.guard, slots_per="core"))) == PLAIN


@pytest.mark.parametrize(
    "scenario",
    [
        replace(SCENARIO, clients=(other("camera", 7),)),
        on_device(dram_bandwidth=BYTE_A_NS, background_bandwidth=BYTE_A_NS),
        on_device(dram_bandwidth=BYTE_A_NS, background_bandwidth=1, background_on_ns=5, background_off_ns=5),
        on_device(core_dram_bandwidth=BYTE_A_NS),
        on_device(power_up_ns=1),
        on_device(power_up_warm_ns=1),
        on_device(throttle_after_ns=1),
        on_device(rpc_return_ns=1),
        on_device(rpc_polling_ns=1, rpc_wake_ns=1),
        on_device(pge=True),
        on_device(cores=2, topology="gang"),
        on_instances(vit_priority="HIGH"),
        on_instances(vit_path="host"),
        on_instances(vit_thread="own"),
        on_instances(vit_residency="request"),
        replace(SCENARIO, runtime=replace(SCENARIO.runtime, make_room="idle")),
        replace(SCENARIO, guard=replace(SCENARIO.guard, scope="request")),
        replace(SCENARIO, guard=replace(SCENARIO.guard, gap_inside=True)),
        replace(SCENARIO, instances=tuple(
            replace(i, llm=i.llm and replace(i.llm, graph_switch_ns=3)) for i in SCENARIO.instances
        )),
    ],
)  # fmt: skip
def test_anything_else_takes_the_code_for_everything(scenario: Scenario) -> None:
    assert features(scenario) == FULL


def store_of(scenario: Scenario, *, keeps: bool = True) -> Store | None:
    try:
        plan = make_plan(scenario)
        return Store(Layout(plan, load_alone(plan), 0, policy_class(scenario.guard.policy), keeps=keeps))
    except HtpsimError:
        return None


def watched(record: Any, fixed: Mapping[str, int]) -> None:
    """Let a record refuse that a fixed field becomes anything else."""
    kind: Any = type(record)

    def write(self: Any, field: str, value: int) -> None:
        assert fixed.get(field, value) == value, field
        kind.__setattr__(self, field, value)

    record.__class__ = type("Watched", (kind,), {"__slots__": (), "__setattr__": write})


@pytest.mark.slow
@given(seed=st.integers(0, 2**32), shared=st.booleans(), keeps=st.booleans())
def test_what_a_shape_fixes_is_never_anything_else(seed: int, shared: bool, keeps: bool) -> None:
    scenario = simple(seed, shared=shared)
    store = store_of(scenario, keeps=keeps)
    if store is None:
        return
    shape = store.layout.shape
    assert shape.features == (SHARED if shared else PLAIN)
    for table in ("dev", "st", "cores", "users", "threads", "jobs"):
        records = store.records(table)
        if table == "st":  # whoever makes the tables says how much room there is; code does not ask where it is fixed
            records.row_room = shape.fixed("st").get("row_room", records.row_room)
            records.slice_room = shape.fixed("st").get("slice_room", records.slice_room)
        for record in [records] if table in {"dev", "st"} else records:
            watched(record, shape.fixed(table))
    try:
        run(store, Keeping(store, store.layout.plan, store.layout.loaded))
    except NeedsReference:
        return


@pytest.mark.slow
@given(seed=st.integers(0, 2**32))
def test_tables_begin_as_the_shape_says(seed: int) -> None:
    for scenario in (spiced(seed), simple(seed, shared=False), simple(seed, shared=True)):
        store = store_of(scenario)
        if store is not None:
            assert differs(store.layout.memory.arrays, store.layout.counts(), store.layout.shape) == []


def test_a_table_that_is_not_as_the_shape_says_is_found() -> None:
    store = store_of(replace(SCENARIO, clients=(other("camera", 7),)))
    assert store is not None

    assert "users.instance" in differs(store.layout.memory.arrays, store.layout.counts(), Shape(PLAIN, keeps=True))
