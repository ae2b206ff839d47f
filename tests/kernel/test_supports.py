"""Whatever the kernel does not know is refused by name, never ignored."""

from __future__ import annotations

import typing
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from htpsim import spec
from htpsim.kernel.layout import PACE_LIMIT
from htpsim.kernel.supports import HONOURED, TURNS_MAX, WORDS, unsupported
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


def test_the_page_names_whatever_is_not_known() -> None:
    page = (Path(__file__).parents[2] / "docs" / "performance.md").read_text(encoding="utf-8")
    unknown = [f.name for kind, spec_class in SPECS.items() for f in fields(spec_class) if f.name not in HONOURED[kind]]
    for kind, spec_class in SPECS.items():
        hints = typing.get_type_hints(spec_class)
        choices = (f.name for f in fields(spec_class) if typing.get_origin(hints[f.name]) is typing.Literal)
        unknown += [name for name in choices if set(typing.get_args(hints[name])) != set(WORDS[kind, name])]

    assert [name for name in unknown if f"`{name}`" not in page] == []
    assert ("The kernel knows the whole model" in page) == (not unknown)
    assert f"more than {TURNS_MAX} guards and cores" in page


def test_what_stays_refused_is_named() -> None:
    empty = replace(
        SCENARIO, clients=(replace(SCENARIO.clients[0], model=replace(SCENARIO.clients[0].model, graphs=())),)
    )
    silent = replace(SCENARIO.instances[0], llm=llm((), ()))
    blind = replace(SCENARIO.instances[0], vit=vit())

    assert unsupported(replace(SCENARIO, device=replace(SCENARIO.device, cores=TURNS_MAX))).startswith("63 guards and")
    assert unsupported(replace(SCENARIO, device=replace(SCENARIO.device, cores=TURNS_MAX - 1))) == ""
    assert unsupported(empty) == "other0: a model without graphs"
    assert unsupported(replace(SCENARIO, instances=(silent,))) == "vlm0: an LLM without graphs"
    assert unsupported(replace(SCENARIO, instances=(blind,))) == "vlm0: a ViT without graphs"
