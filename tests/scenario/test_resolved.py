"""A resolved scenario as plain values: complete, JSON, and loading again as the same."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htpsim import scenario
from htpsim.scenario.keys import Shape, keys_of
from htpsim.scenario.resolved import resolved_dict, without_none
from htpsim.spec import Device, Distribution, Guard, Instance, Run, Scenario, parameters
from tests.scenario.support import OVERLAYS, SMALL, llm, toml, vit, written
from tests.scenario.support import scenario as small


def again(folder: Path, tree: dict[str, Any]) -> Scenario:
    return scenario.load(written(folder, toml(tree))).base


def test_it_loads_again_as_the_same(tmp_path: Path) -> None:
    loaded = scenario.load(written(tmp_path, SMALL + OVERLAYS))
    resolved = loaded.resolve("genie", "weighted", ["slots.core"])
    reloaded = again(tmp_path, resolved.to_toml_dict())

    assert dataclasses.replace(reloaded, name=resolved.scenario.name) == resolved.scenario


@pytest.mark.parametrize("name", sorted(scenario.shipped()))
def test_shipped_scenarios_load_again_as_the_same(tmp_path: Path, name: str) -> None:
    loaded = scenario.load(name)
    for variant in loaded.variants:
        resolved = loaded.resolve(variant)
        tree = {key: value for key, value in resolved.to_toml_dict().items() if value != []}

        assert dataclasses.replace(again(tmp_path, tree), name=resolved.scenario.name) == resolved.scenario


TIMES = st.integers(1, 10**12)
BYTES = st.integers(1, 2**40)
SCENARIOS = st.builds(
    small,
    device=st.builds(
        Device,
        cores=st.integers(1, 4),
        dram_bandwidth=BYTES | st.none(),
        load_bandwidth=BYTES | st.none(),
        yield_latency_ns=TIMES,
        pd_bytes=BYTES,
        gang_efficiency=st.floats(0.01, 1),
        priority_clamp=st.booleans(),
        topology=st.sampled_from(["one-device", "device-per-core", "gang"]),
    ),
    guard=st.builds(Guard, slots=st.integers(0, 4), overhead_ns=TIMES, gap_inside=st.booleans()),
    run=st.builds(Run, duration_ns=TIMES, seed=st.integers(0, 2**61)),
    instances=st.lists(
        st.builds(
            dict,
            weight=st.integers(1, 99),
            guard_priority=st.integers(-9, 9),
            images=st.integers(1, 2).map(lambda mean: Distribution(mean=mean)),
            text_tokens=st.lists(st.integers(1, 99), min_size=1).map(
                lambda s: Distribution(kind="sample", sample=tuple(s))
            ),
            queue_limit=st.integers(0, 5) | st.none(),
            ttft_deadline_ns=TIMES | st.none(),
        ),
        min_size=1,
        max_size=3,
    ).map(lambda many: tuple(Instance(name=f"v{i}", vit=vit(), llm=llm(), **one) for i, one in enumerate(many))),
)


@given(given_scenario=SCENARIOS)
def test_any_scenario_that_is_sound_loads_again_as_the_same(
    tmp_path_factory: pytest.TempPathFactory, given_scenario: Scenario
) -> None:
    tree = without_none(resolved_dict(given_scenario))
    if scenario.problems(given_scenario) == []:
        reloaded = again(tmp_path_factory.mktemp("again"), tree)

        assert dataclasses.replace(reloaded, name=given_scenario.name) == given_scenario


def test_it_is_json_and_leaves_nothing_out() -> None:
    tree = resolved_dict(small())

    assert json.loads(json.dumps(tree)) == tree
    assert tree["device"]["load_bandwidth"] is None
    assert set(tree["device"]) == set(keys_of(Device))
    assert set(tree["instances"][0]["arrivals"]) == {"kind", "think", "period", "jitter", "offset", "times"}


def test_every_parameter_of_the_spec_has_a_key() -> None:
    whole = small()
    fields = {name.rsplit(".", 1)[1] for name, _, _ in parameters(whole)}
    keyed = {
        key.field
        for part in (
            whole.device,
            whole.guard,
            whole.registry,
            whole.runtime,
            whole.run,
            *whole.instances,
            vit(),
            llm(),
        )
        for key in keys_of(type(part)).values()
    }
    nested = {
        key.field
        for spec in (Instance, type(vit()))
        for outer in keys_of(spec).values()
        if outer.shape in {Shape.TABLE, Shape.TABLES}
        for key in keys_of(outer.type).values()
    }

    assert fields <= keyed | nested
