"""Whatever the kernel does not know is refused by name, never ignored."""

from __future__ import annotations

import typing
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from typing import Any

import pytest

from htpsim import spec
from htpsim.kernel.layout import PACE_LIMIT
from htpsim.kernel.supports import HONOURED, WORDS, unsupported
from htpsim.sim.requests import Pace
from htpsim.spec import Scenario
from tests.sim.build import instance, llm, other, vit

SPECS = {name: getattr(spec, name) for name in spec.__all__ if is_dataclass(getattr(spec, name)) and name != "Param"}
SCENARIO = Scenario(instances=(instance("vlm0", vit=vit(5), llm=llm((3,), (2,))),), clients=(other("other0", 7),))


def changed(f: Field[Any], value: Any) -> Any:
    """Return another value of about the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return f"{value} or another" if isinstance(value, str) else 7


def within(scenario: Scenario, kind: type) -> list[Any]:
    """Return every spec of a kind in a scenario."""
    found: list[Any] = []

    def walk(node: Any) -> None:
        if isinstance(node, kind):
            found.append(node)
        if is_dataclass(node):
            for f in fields(node):
                walk(getattr(node, f.name))
        elif isinstance(node, tuple):
            for item in node:
                walk(item)

    walk(scenario)
    return found


def with_field(node: Any, kind: type, name: str, value: Any) -> Any:
    """Return a spec with a field changed wherever it occurs."""
    if isinstance(node, tuple):
        return tuple(with_field(item, kind, name, value) for item in node)
    if not is_dataclass(node):
        return node
    node = replace(node, **{f.name: with_field(getattr(node, f.name), kind, name, value) for f in fields(node)})
    return replace(node, **{name: value}) if isinstance(node, kind) else node


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, f.name) for kind, spec_class in SPECS.items() for f in fields(spec_class)]
)
def test_every_parameter_is_honoured_or_refused(kind: str, name: str) -> None:
    if name in HONOURED[kind]:
        return
    (f,) = (f for f in fields(SPECS[kind]) if f.name == name)
    nodes = within(SCENARIO, SPECS[kind])
    assert nodes, f"the scenario of this test has no {kind}"
    value = getattr(nodes[0], name)
    assert f.default is not MISSING or f.default_factory is not MISSING

    assert name in unsupported(with_field(SCENARIO, SPECS[kind], name, changed(f, value)))


def test_nothing_is_said_to_be_honoured_that_does_not_exist() -> None:
    assert HONOURED.keys() == SPECS.keys()
    for kind, names in HONOURED.items():
        assert names <= {f.name for f in fields(SPECS[kind])}, kind


def test_every_word_of_a_choice_is_known_or_refused() -> None:
    for kind, spec_class in SPECS.items():
        hints = typing.get_type_hints(spec_class)
        for f in fields(spec_class):
            if typing.get_origin(hints[f.name]) is typing.Literal and f.name in HONOURED[kind]:
                assert set(WORDS[kind, f.name]) <= set(typing.get_args(hints[f.name])), (kind, f.name)


def test_a_word_that_is_not_known_is_refused() -> None:
    far = replace(SCENARIO, registry=replace(SCENARIO.registry, llm_copies="per-continent"))  # type: ignore[arg-type]

    assert unsupported(SCENARIO) == ""
    assert unsupported(far) == 'registry.llm_copies = "per-continent"'


def test_a_closed_loop_gets_as_far_as_in_the_reference_engine() -> None:
    assert PACE_LIMIT == Pace.LIMIT
