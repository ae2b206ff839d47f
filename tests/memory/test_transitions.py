"""The tables of the machines: what the essays show is what runs, and no state is a trap."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from types import ModuleType
from typing import Any

import pytest

from htpsim.errors import IllegalTransition
from htpsim.memory import loading, memory, registry
from htpsim.memory.transitions import STORY_LENGTH, new_story, step, tell

Table = Mapping[tuple[StrEnum, StrEnum], StrEnum]

MACHINES = [
    pytest.param(registry, (registry.TRANSITIONS, registry.ROLES), id="registry"),
    pytest.param(memory, (memory.TRANSITIONS,), id="memory"),
    pytest.param(loading, (loading.TRANSITIONS,), id="loading"),
]


class Lamp(StrEnum):
    OFF = "off"
    ON = "on"


class Hand(StrEnum):
    PRESS = "press"
    BREAK = "break"


LAMP = {(Lamp.OFF, Hand.PRESS): Lamp.ON, (Lamp.ON, Hand.PRESS): Lamp.OFF}


@pytest.mark.parametrize(("module", "tables"), MACHINES)
def test_the_essay_shows_the_table_that_runs(module: ModuleType, tables: tuple[Table, ...]) -> None:
    shown = re.findall(r"^    (\w+) +--([\w ]+)--> +(\w+)", module.__doc__ or "", re.MULTILINE)

    runs = [(state.value, stimulus.value, after.value) for t in tables for (state, stimulus), after in t.items()]
    assert sorted(shown) == sorted(runs)


@pytest.mark.parametrize(("module", "tables"), MACHINES)
def test_every_state_is_reached_and_left_again(module: ModuleType, tables: tuple[Table, ...]) -> None:
    for table in tables:
        left = {state for (state, stimulus), after in table.items() if after is not state}
        entered = {after for (state, stimulus), after in table.items() if after is not state}

        assert left == entered == set(type(next(iter(entered))))


def test_a_step_follows_the_table() -> None:
    assert step(LAMP, "lamp", Lamp.ON, Hand.PRESS) is Lamp.OFF


def test_a_pair_the_table_lacks_is_refused_with_subject_state_stimulus_and_story() -> None:
    story = new_story()
    tell(story, Hand.PRESS, "me", Lamp.OFF, Lamp.ON)

    with pytest.raises(IllegalTransition) as refusal:
        step(LAMP, "lamp 3", Lamp.ON, Hand.BREAK, story)

    for word in ("lamp 3", "'break'", "'on'", "expected press", "press by me: off -> on"):
        assert word in str(refusal.value)


def test_a_refusal_can_be_rebuilt_from_its_args() -> None:
    with pytest.raises(IllegalTransition) as refusal:
        step(LAMP, "lamp", Lamp.ON, Hand.BREAK)

    error: Any = refusal.value
    assert str(type(error)(*error.args)) == str(error)


def test_a_story_forgets_its_oldest_steps() -> None:
    story = new_story()
    for number in range(STORY_LENGTH + 1):
        tell(story, Hand.PRESS, str(number), Lamp.OFF, Lamp.ON)

    assert len(story) == STORY_LENGTH
    assert story[0].startswith("press by 1:")
