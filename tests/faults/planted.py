"""Plant a fault, and hold a check to noticing it: a check that passes with and without the fault shows nothing."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import Any

import pytest

Plant = Callable[[pytest.MonkeyPatch], None]


def notices(check: Callable[[], None], *plants: Plant) -> None:
    """Hold htpsim to `check`, and `check` to failing, by an assertion of its own, once any one fault is planted."""
    check()
    for plant in plants:
        with pytest.MonkeyPatch.context() as patch:
            plant(patch)
            with pytest.raises(AssertionError):
                check()


def swap(place: object, name: str, fault: object) -> Plant:
    """Plant a fault by putting it in the place of an attribute, which must exist."""
    return lambda patch: patch.setattr(place, name, fault)


def swap_item(place: MutableMapping[Any, Any], key: object, fault: object) -> Plant:
    """Plant a fault by putting it in the place of an entry, which must exist."""
    assert key in place
    return lambda patch: patch.setitem(place, key, fault)


def after(place: object, name: str, then: Callable[..., None]) -> Plant:
    """Plant a fault that comes after an honest function and is given the same arguments."""
    honest = getattr(place, name)

    def faulty(*given: Any, **named: Any) -> Any:
        answer = honest(*given, **named)
        then(*given, **named)
        return answer

    return swap(place, name, faulty)
