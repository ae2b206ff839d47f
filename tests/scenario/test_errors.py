"""What a wrong scenario file is told: golden messages, every problem at once, and never a traceback."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htpsim import scenario
from htpsim.errors import ScenarioError
from tests.scenario.support import OVERLAYS, SMALL, inline, written

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "scenario"


def complaints(path: Path, set_values: tuple[str, ...] = ()) -> str:
    with pytest.raises(ScenarioError) as error:
        scenario.load(path, set_values=set_values)
    return "".join(f"{line.replace(str(path.parent), '.')}\n" for line in error.value.problems)


@pytest.mark.parametrize("name", ["wrong_keys", "wrong_rules", "wrong_lists"])
def test_the_messages_are_those_that_were_agreed(name: str) -> None:
    assert complaints(FIXTURES / f"{name}.toml") == (FIXTURES / f"{name}.txt").read_text(encoding="utf-8")


def test_a_problem_names_the_file_of_the_chain_that_holds_the_value(tmp_path: Path) -> None:
    written(tmp_path, SMALL.replace('service = "161ms"', 'service = "161 minutes"'), "base.toml")
    child = written(tmp_path, 'extends = "base.toml"\n[guard]\nslots_per = "cores"\n')

    assert complaints(child).splitlines() == [
        "./scenario.toml: guard.slots_per: got 'cores', expected one of core, process; did you mean 'core'?",
        "./base.toml: models.vit.graphs.vit.service: got '161 minutes', expected a time with a unit "
        "(ns, us, µs, ms, s, min, h), such as 1.8ms",
    ]


def test_a_problem_set_by_hand_names_the_command_line(tmp_path: Path) -> None:
    said = complaints(written(tmp_path, SMALL), ("guard.policy=sfqq", "guard.slots=-1"))

    assert said.splitlines()[0] == "--set: guard.slots: got -1, expected 0 or more"


def test_no_toml_is_told_where(tmp_path: Path) -> None:
    assert "(at line 2, column 5)" in complaints(written(tmp_path, "[run]\nseed\n"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a." * 40 + "a = 1", "tables nested more than 20 deep"),
        ("a = " + "[" * 3000, "tables nested too deeply"),
        ('title = "a\\u0000b"', "title: a NUL character"),
        ("seed = " + "9" * 5000, "got no valid TOML"),
        ("instances = []", "instances: got none, expected at least one instance or client"),
        ("instances = 3", "instances: got 3, expected a list"),
        ("instances = {}", "instances: got a table, expected a list of tables, [[instances]]"),
        ("models = 3", "models: got 3, expected a table"),
        ("device = 1979-05-27", "device: got 1979-05-27, expected a table"),
        ("variants = 3", "variants: got 3, expected tables [variants.NAME]"),
        ("extends = 3", "extends: got no text, expected a .toml file or a shipped scenario"),
        ("extends = 'nowhere'", "extends: got 'nowhere', expected one of"),
        ("run.seed = 99999999999999999999", "run.seed: got a whole number of 2^62 or more, expected a whole number"),
        ("device.gang_efficiency = nan", "device.gang_efficiency: got nan, expected a finite number"),
        ("device.preset = 3", "device.preset: got 3, expected the name of a device preset"),
        ("device.chip = 3", "device.chip: got 3, expected the name of a chip"),
        (
            "device.preset = 'x.toml'",
            "device.preset: got a preset that cannot be read, expected one (./x.toml: got no such file",
        ),
    ],
)
def test_odd_files_are_refused_in_words(tmp_path: Path, text: str, said: str) -> None:
    assert said in complaints(written(tmp_path, text))


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "scenario.toml"
    path.write_bytes(b"title = '\xff'")

    assert "got no UTF-8 at byte 9" in complaints(path)


PIECES = ["=", "[", "]", "{", "}", '"', ".", "\n", "4", "-1", "true", "nan", "1ms", "'x'", "count", "name", "preset"]
PIECES += ["instances", "models", "vit", "value", "source", "profile", "extends", "[[instances]]\n", "[device]\n"]


def mutated(seed: int, edits: int) -> str:
    random_edit = random.Random(seed)
    text = SMALL + OVERLAYS
    for _ in range(edits):
        at = random_edit.randrange(len(text) + 1)
        end = min(len(text), at + random_edit.choice([0, 0, 1, 3, 12]))
        text = text[:at] + random_edit.choice(PIECES) + text[end:]
    return text


def problems_of(path: Path, *set_values: str) -> tuple[str, ...]:
    """Return what a file is told: nothing where it loads. Anything but a ScenarioError gets through."""
    try:
        scenario.load(path, set_values=set_values)
    except ScenarioError as error:
        return error.problems or ("no problem was told",)
    return ()


@given(seed=st.integers(0, 2**32), edits=st.integers(1, 6))
def test_a_damaged_file_is_refused_or_loads_but_never_breaks(
    tmp_path_factory: pytest.TempPathFactory, seed: int, edits: int
) -> None:
    path = written(tmp_path_factory.mktemp("damaged"), mutated(seed, edits))
    said = problems_of(path)
    assert all(line.startswith(str(path)) for line in said)
    assert said or scenario.problems(scenario.load(path).base) == []


VALUES: st.SearchStrategy[object] = st.recursive(
    st.one_of(st.integers(), st.booleans(), st.floats(), st.sampled_from(["1ms", "2GB", "vit", "none", "core", ""])),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(PIECES), inner, max_size=3)),
    max_leaves=6,
)
PLACES = [
    "instances.weight",
    "instances",
    "instances.count",
    "models.vit.graphs",
    "models.llm.decode.service",
    "models",
]
PLACES += ["device.cores", "guard.params", "device", "run", "instances.arrivals", "instances.arrivals.think", "title"]
PLACES += ["variants", "variants.genie", "cases.x", "instances.vlm1", "models.vit.preset", "models.llm.genie_config"]
PLACES += ["device.htp_backend_ext", "models.vit.contexts.vit", "clients", "assumptions", "assumptions.slots.core"]


@given(place=st.sampled_from(PLACES), value=VALUES)
def test_any_value_in_any_place_is_refused_or_loads(
    tmp_path_factory: pytest.TempPathFactory, place: str, value: object
) -> None:
    path = written(tmp_path_factory.mktemp("odd"), SMALL + OVERLAYS)
    assert all(": " in line for line in problems_of(path, f"{place}={inline(value)}"))
