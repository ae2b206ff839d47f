"""The JSON Schema that editors use: it is valid, admits what loads, and refuses what a typing hand gets wrong."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from htpsim import scenario
from htpsim.results.write import json_text
from htpsim.scenario.keys import NAMED_LISTS, SECTIONS, keys_of
from htpsim.spec import Arrivals, Model, Scenario
from tests.scenario.support import OVERLAYS, SMALL

SCHEMA = scenario.json_schema()
VALIDATOR = Draft202012Validator(SCHEMA)
ROOT = Path(__file__).resolve().parents[2]
FILES = sorted([*(ROOT / "scenarios").glob("**/*.toml"), *(ROOT / "htpsim/scenario/presets").glob("*/*.toml")])


def faults(text: str) -> list[str]:
    return [".".join(map(str, error.absolute_path)) for error in VALIDATOR.iter_errors(tomllib.loads(text))]


def test_it_is_a_schema_and_plain_json() -> None:
    Draft202012Validator.check_schema(SCHEMA)

    assert json.loads(json.dumps(SCHEMA)) == SCHEMA


def test_it_is_shipped_beside_the_scenarios_that_name_it() -> None:
    shipped = ROOT / "scenarios" / "scenario.schema.json"

    assert shipped.read_text(encoding="utf-8") == json_text(SCHEMA), "write it again: htpsim schema -o " + shipped.name
    for path in (ROOT / "scenarios").glob("**/*.toml"):
        first = path.read_text(encoding="utf-8").splitlines()[0]
        assert (path.parent / first.removeprefix("#:schema ")).resolve() == shipped.resolve(), path


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_shipped_file_fits(path: Path) -> None:
    assert faults(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "text",
    [
        SMALL + OVERLAYS,
        'extends = "vit_migration"\n[instances]\nweight = [4, 2, 1, 1]\n[instances.vlm3]\nvit = "none"\n',
        "[device]\ndram_bandwidth = 'none'\n[guard.params]\nperiod = '100ms'\nidle_over_budget = true\n",
        "[models.m.graphs]\nservice = { profile = 'a.txt', graph = 'g' }\n[run]\nwarmup = 0\n",
        "[[instances]]\ncount = 2\n[instances.arrivals]\noffset = ['0ms', '5ms']\n",
        "[[instances]]\n[instances.arrivals]\nthink = { mean = '1s', kind = 'exponential' }\n",
        "[[instances]]\nname = 'a'\nweight = { value = [1, 2], source = 'x', mark = 'assumed' }\n",
    ],
)
def test_what_an_author_may_write_fits(text: str) -> None:
    assert faults(text) == []


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("colour = 'red'", ""),
        ("[device]\ncors = 2", "device"),
        ("[device]\nyield_latency = 5", "device.yield_latency"),
        ("[device]\nyield_latency = '5 apples'", "device.yield_latency"),
        ("[device]\ntopology = 'gangg'", "device.topology"),
        ("[device]\ncores = true", "device.cores"),
        ("[device]\ncores = { value = 2, source = 'x', mark = 'guess' }", "device.cores"),
        ("[variants.a.gard]\nslots = 1", "variants.a"),
        ("[assumptions.slots.core.guard]\nslots_per = 'cores'", "assumptions.slots.core.guard.slots_per"),
        ("[[instances]]\nwieght = 3", "instances"),
        ("[models.m]\nrole = 'vti'", "models.m.role"),
    ],
)
def test_what_a_typing_hand_gets_wrong_is_found(text: str, where: str) -> None:
    assert faults(text) == [where]


def test_every_parameter_is_described_in_the_words_of_the_spec() -> None:
    tables = [*(type(getattr(Scenario(), section)) for section in SECTIONS), Model, Arrivals, *NAMED_LISTS.values()]
    for spec in tables:
        properties: dict[str, Any] = SCHEMA["$defs"][spec.__name__]["properties"]
        for key in keys_of(spec).values():
            assert properties[key.key].get("description", "") == key.text or "anyOf" not in properties[key.key]


def test_defaults_are_written_as_an_author_would() -> None:
    device = SCHEMA["$defs"]["Device"]["properties"]

    assert (device["yield_latency"]["default"], device["vtcm"]["default"]) == ("200us", "8MiB")
