"""A whole scenario as plain values, for the run directory: every parameter, defaults included, none lost."""

from __future__ import annotations

from typing import Any

from htpsim.scenario.checks_models import models_of
from htpsim.scenario.distributions import from_distribution
from htpsim.scenario.keys import SECTIONS, Key, Shape, keys_of
from htpsim.scenario.quantities import write
from htpsim.spec import Scenario


def resolved_dict(scenario: Scenario) -> dict[str, Any]:
    """Return a scenario as JSON-able values in the form of a scenario file; what is not set is None.

    Quantities are text with a unit that reads back exactly, so the values without the Nones, written as TOML, load as
    the same scenario.

    >>> resolved_dict(Scenario())["device"]["yield_latency"]
    '200us'
    """
    tree: dict[str, Any] = {"title": scenario.title}
    tree |= {section: _table(getattr(scenario, section)) for section in SECTIONS}
    tree["models"] = {model.name: _table(model) for model in models_of(scenario)}
    tree["instances"] = [_table(instance) for instance in scenario.instances]
    tree["clients"] = [_table(client) for client in scenario.clients]
    return tree


def without_none(value: Any) -> Any:
    """Return a tree without the keys that hold None, which TOML cannot write.

    >>> without_none({"a": None, "b": [{"c": None, "d": 1}]})
    {'b': [{'d': 1}]}
    """
    if isinstance(value, dict):
        return {key: without_none(inner) for key, inner in value.items() if inner is not None}
    return [without_none(inner) for inner in value] if isinstance(value, list) else value


def _table(spec: Any) -> dict[str, Any]:
    return {key.key: _value(key, getattr(spec, key.field)) for key in keys_of(spec.__class__).values()}


def _value(key: Key, value: Any) -> Any:
    if value is None:
        return None
    if key.shape is Shape.DISTRIBUTION:
        return from_distribution(value, key.unit)
    if key.shape is Shape.TABLE:
        return _table(value)
    if key.shape is Shape.TABLES:
        return [_table(item) for item in value]
    if key.shape is Shape.REFERENCE:
        return value.name
    if key.shape is Shape.VALUES:
        return [write(item, key.unit) for item in value]
    if key.shape is Shape.PARAMETERS:
        return dict(value)
    return write(value, key.unit) if key.type is int else value
