"""One step of a state machine, and the words of its refusal.

The machines of this package are tables ``(state, stimulus) -> state``. A pair that a table does not have is refused
before anything is changed, with the story of the thing it was asked of: the last steps it took, oldest first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final, NoReturn, TypeVar

from htpsim.errors import IllegalTransition

STORY_LENGTH: Final = 24
"""Steps that a story remembers; older ones explain nothing any more."""

State = TypeVar("State", bound=StrEnum)
Stimulus = TypeVar("Stimulus", bound=StrEnum)
Story = deque[str]


def new_story() -> Story:
    """Return an empty story."""
    return deque(maxlen=STORY_LENGTH)


def step(
    table: Mapping[tuple[State, Stimulus], State],
    subject: object,
    state: State,
    stimulus: Stimulus,
    story: Iterable[str] = (),
) -> State:
    """Return the state that follows `state` upon `stimulus`.

    Raises
    ------
    IllegalTransition
        When the table does not have the pair.

    Examples
    --------
    >>> class Lamp(StrEnum):
    ...     OFF = "off"
    ...     ON = "on"
    >>> step({(Lamp.OFF, Lamp.ON): Lamp.ON}, "lamp", Lamp.OFF, Lamp.ON)
    <Lamp.ON: 'on'>
    """
    following = table.get((state, stimulus))
    if following is None:
        refuse(subject, state, stimulus, expected(table, state), story)
    return following


def expected(table: Mapping[tuple[State, Stimulus], State], state: State) -> str:
    """Word what a state would take."""
    return f"expected {' or '.join(stimulus.value for at, stimulus in table if at is state) or 'nothing'}"


def refuse(subject: object, state: StrEnum, stimulus: StrEnum, why: str, story: Iterable[str]) -> NoReturn:
    """Raise the IllegalTransition that names subject, state, stimulus, the reason and the story."""
    told = "; ".join(story) or "nothing happened yet"
    raise IllegalTransition(f"{subject}: got '{stimulus.value}' in state '{state.value}', {why} (story: {told})")


def tell(story: Story, stimulus: StrEnum, by: str, before: StrEnum, after: StrEnum) -> None:
    """Add a step that was taken to a story."""
    story.append(f"{stimulus.value} by {by}: {before.value} -> {after.value}")
