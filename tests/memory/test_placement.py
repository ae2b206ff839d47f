from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htpsim.errors import ScenarioError
from htpsim.memory import gang_cores, place, registry_key
from htpsim.spec import Device, Model

LLM = Model(name="llm", role="llm")


def test_by_instance_is_index_mod_cores() -> None:
    assert [place("by-instance", index, Device(cores=3), [0, 0, 0]) for index in range(7)] == [0, 1, 2, 0, 1, 2, 0]


def test_least_loaded_takes_the_fewest_bytes_and_the_lowest_core_of_a_tie() -> None:
    device = Device(cores=4)

    assert place("least-loaded", 0, device, [9, 3, 2, 2]) == 2
    assert place("least-loaded", 3, device, [5, 5, 5, 5]) == 0


def test_a_number_is_that_core_whoever_asks() -> None:
    assert [place("1", index, Device(cores=2), [0, 99]) for index in range(3)] == [1, 1, 1]


@pytest.mark.parametrize("placement", ["2", "-1", "", "1.0", "²", "core0"])
def test_a_core_that_is_not_there_is_refused(placement: str) -> None:
    with pytest.raises(ScenarioError, match=f"got '{placement}', expected .* a core from 0 to 1"):
        place(placement, 0, Device(cores=2), [0, 0])


def test_a_misspelt_placement_is_answered_with_the_nearest() -> None:
    with pytest.raises(ScenarioError, match="did you mean 'least-loaded'"):
        place("leastloaded", 0, Device(cores=2), [0, 0])


@given(st.integers(1, 8), st.integers(0, 7), st.integers(1, 8))
def test_a_gang_takes_neighbours_inside_the_device_each_once(cores: int, core: int, width: int) -> None:
    core, width = core % cores, min(width, cores)

    taken = gang_cores(core, width, Device(cores=cores))

    assert len(set(taken)) == len(taken) == width
    assert taken[0] == core
    assert all(after == (before + 1) % cores for before, after in pairwise(taken))


@pytest.mark.parametrize("width", [0, 3])
def test_a_gang_wider_than_the_device_is_refused(width: int) -> None:
    with pytest.raises(ScenarioError, match=f"got {width}, expected 1 to 2"):
        gang_cores(0, width, Device(cores=2))


@pytest.mark.parametrize(
    ("copies", "topology", "shared"),
    [
        ("per-core", "one-device", False),
        ("per-core", "device-per-core", False),
        ("per-device", "one-device", True),
        ("per-device", "device-per-core", False),
        ("per-process", "one-device", True),
        ("per-process", "device-per-core", True),
    ],
)
def test_two_cores_share_a_key_as_far_as_copies_reach(copies: str, topology: Any, shared: bool) -> None:
    device = Device(cores=2, topology=topology)

    assert (registry_key(LLM, 0, 0, copies, device) == registry_key(LLM, 0, 1, copies, device)) is shared


@pytest.mark.parametrize("copies", ["per-core", "per-device", "per-process"])
def test_model_options_and_process_never_share_a_key(copies: str) -> None:
    device, adapted = Device(cores=2), Model(name="llm", role="llm", options="adapter=a")
    keys = [
        registry_key(model, process, 0, copies, device)
        for model in (LLM, adapted, Model(name="vit", role="vit"))
        for process in (0, 1)
    ]

    assert len(set(keys)) == 6


def test_a_reach_that_is_none_is_refused() -> None:
    with pytest.raises(ScenarioError, match="did you mean 'per-core'"):
        registry_key(LLM, 0, 0, "percore", Device())


def test_a_placement_like_no_other_is_refused_without_a_guess_and_a_near_one_with_it() -> None:
    with pytest.raises(ScenarioError) as refusal:
        place("zzzz", 0, Device(cores=2), [0, 0])

    assert str(refusal.value) == "placement: got 'zzzz', expected by-instance, least-loaded or a core from 0 to 1"
    with pytest.raises(ScenarioError) as close:
        place("least-load", 0, Device(cores=2), [0, 0])
    assert str(close.value) == (
        "placement: got 'least-load', expected by-instance, least-loaded or a core from 0 to 1; "
        "did you mean 'least-loaded'?"
    )
