"""Each value of a scenario by itself: the right type, a known word, not negative. The spec's own types decide."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from htpsim.scenario.checks_models import models_of
from htpsim.scenario.keys import SECTIONS, Key, Shape, keys_of, words_of
from htpsim.scenario.sourced import Path, Problem
from htpsim.scenario.wording import LARGEST, shown, unknown_word
from htpsim.spec import Distribution, Scenario

_MAY_BE_NEGATIVE = frozenset({"guard_priority"})


def value_problems(scenario: Scenario) -> Iterator[Problem]:
    """Yield what is wrong with single values, in the order of the spec."""
    for section in SECTIONS:
        yield from _table(getattr(scenario, section), (section,))
    for model in models_of(scenario):
        yield from _table(model, ("models", model.name))
    for instance in scenario.instances:
        yield from _table(instance, ("instances", instance.name))
    for client in scenario.clients:
        yield from _table(client, ("clients", client.name))


def _table(spec: Any, path: Path) -> Iterator[Problem]:
    for key in keys_of(spec.__class__).values():
        value = getattr(spec, key.field)
        if value is None and key.nullable:
            continue
        yield from _value(key, value, (*path, key.key))


def _value(key: Key, value: object, path: Path) -> Iterator[Problem]:
    if key.shape is Shape.REFERENCE:
        return
    if key.shape is Shape.TABLE:
        yield from _table(value, path)
    elif key.shape is Shape.TABLES and isinstance(value, tuple):
        for item in value:
            yield from _table(item, (*path, item.name))
    elif key.shape is Shape.DISTRIBUTION:
        yield from _distribution(value, path)
    elif key.shape is Shape.VALUES and isinstance(value, tuple):
        for i, inner in enumerate(value):
            yield from _scalar(key, inner, (*path, str(i)))
    elif key.shape is Shape.PARAMETERS and isinstance(value, tuple):
        for name, inner in value:
            yield from _whole(inner, (*path, name))
    else:
        yield from _scalar(key, value, path)


def _distribution(value: object, path: Path) -> Iterator[Problem]:
    if not isinstance(value, Distribution):
        yield path, f"got {shown(value)}, expected a Distribution"
        return
    for inner in (value.mean, value.low, value.high, value.stages, *value.sample):
        faults = list(_whole(inner, path))
        yield from faults
        if faults:
            return
    if not _is_number(value.cv):
        yield path, f"cv: got {shown(value.cv)}, expected 0 to 10"
        return
    yield from ((path, text) for text in value.problems())


def _scalar(key: Key, value: object, path: Path) -> Iterator[Problem]:
    words = words_of(key.type)
    if words:
        if not isinstance(value, str):
            yield path, f"got {shown(value)}, expected one of {', '.join(words)}"
        elif value not in words:
            yield path, unknown_word(value, words)
    elif key.type is int:
        yield from _whole(value, path, negative=key.key in _MAY_BE_NEGATIVE)
    elif key.type is float:
        if not _is_number(value):
            yield path, f"got {shown(value)}, expected a finite number"
    elif not isinstance(value, key.type):
        yield path, f"got {shown(value)}, expected {'true or false' if key.type is bool else 'text'}"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _whole(value: object, path: Path, negative: bool = False) -> Iterator[Problem]:
    if not isinstance(value, int) or isinstance(value, bool):
        yield path, f"got {shown(value)}, expected a whole number"
    elif abs(value) >= LARGEST:
        yield path, "got a whole number of 2^62 or more, expected a smaller one"
    elif value < 0 and not negative:
        yield path, f"got {value}, expected 0 or more"
