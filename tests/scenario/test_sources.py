"""Values with their sources: where they may stand, what becomes of them, what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from htpsim import scenario
from htpsim.errors import ScenarioError
from htpsim.scenario import SourcedValue
from htpsim.scenario.sourced import condensed
from tests.scenario.support import SMALL, written


def sourced(value: str, mark: str = "measured") -> str:
    return f'{{ value = {value}, source = "a log", mark = "{mark}" }}'


def test_any_value_may_carry_its_source(tmp_path: Path) -> None:
    text = SMALL.replace('"161ms"', sourced('{ mean = "161ms", cv = 0.2 }')).replace(
        "cores = 2", f"cores = {sourced('2')}"
    )
    text += f"weight = {sourced('[4, 2, 1, 1]', 'assumed')}\n"
    text += "[guard]\npolicy = 'quota'\n[guard.params]\nperiod = " + sourced('"50ms"') + "\n"
    loaded = scenario.load(written(tmp_path, text))

    assert loaded.base.device.cores == 2
    assert [i.weight for i in loaded.base.instances] == [4, 2, 1, 1]
    assert dict(loaded.base.guard.params) == {"period_ns": 50_000_000}
    vit = loaded.base.instances[0].vit
    assert vit is not None
    assert (vit.graphs[0].service.kind, vit.graphs[0].service.cv) == ("lognormal", 0.2)
    assert [(source.key, source.value) for source in loaded.sources] == [
        ("device.cores", "2"),
        ("models.vit.graphs.vit.service", '{ mean = "161ms", cv = 0.2 }'),
        ("instances.vlm0.weight", "4"),
        ("instances.vlm1.weight", "2"),
        ("instances.vlm2.weight", "1"),
        ("instances.vlm3.weight", "1"),
        ("guard.params.period", "50ms"),
    ]


def test_a_source_goes_with_the_value_that_replaced_it(tmp_path: Path) -> None:
    text = SMALL.replace("cores = 2", f"cores = {sourced('2')}")
    text += f"[variants.four.device]\ncores = {sourced('4', 'assumed')}\n[variants.own.device]\ncores = 4\n"
    loaded = scenario.load(written(tmp_path, text))

    assert loaded.sources == (SourcedValue("device.cores", "2", "measured", "a log"),)
    assert loaded.resolve("four").sources == (SourcedValue("device.cores", "4", "assumed", "a log"),)
    assert loaded.resolve("own").sources == ()


def test_sources_of_models_that_nobody_uses_are_left_out(tmp_path: Path) -> None:
    spare = f'[models.spare]\nrole = "vit"\ncontexts = [{{ name = "c" }}]\nkv = {sourced("0")}\n'
    spare += 'graphs = [{ name = "g", context = "c", service = "1ms" }]\n'
    loaded = scenario.load(written(tmp_path, SMALL + spare + '[variants.v.instances]\nvit = "spare"\n'))

    assert loaded.sources == ()
    assert [source.key for source in loaded.resolve("v").sources] == ["models.spare.kv"]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (
            '{ value = 2, source = "a log" }',
            "device.cores.mark: got nothing, expected one of measured, derived, assumed",
        ),
        ('{ value = 2, mark = "assumed" }', "device.cores.source: got nothing, expected where the value comes from"),
        ('{ value = 2, source = " ", mark = "assumed" }', "device.cores.source: got ' ', expected where the value"),
        (
            '{ value = 2, source = "a", mark = "assummed" }',
            "device.cores.mark: got 'assummed', expected one of assumed, derived, measured; did you mean 'assumed'?",
        ),
        (
            '{ value = 2, source = "a", mark = "assumed", sorce = 1 }',
            "device.cores.sorce: got an unknown key, expected value, source, mark; did you mean 'source'?",
        ),
        (
            '{ value = { value = 2, source = "a", mark = "assumed" }, source = "a", mark = "assumed" }',
            "device.cores.value: got a sourced value within another, expected a value",
        ),
        ('{ value = "two", source = "a", mark = "assumed" }', "device.cores: got 'two', expected a whole number"),
    ],
)
def test_a_source_that_says_nothing_is_refused(tmp_path: Path, value: str, said: str) -> None:
    with pytest.raises(ScenarioError) as error:
        scenario.load(written(tmp_path, SMALL.replace("cores = 2", f"cores = {value}")))

    assert said in str(error.value)


def test_what_a_whole_list_shares_is_told_once() -> None:
    shared = [SourcedValue(f"instances.vlm{i}.weight", "1", "assumed", "a guess") for i in range(3)]
    other = SourcedValue("instances.vlm3.weight", "2", "assumed", "a guess")

    assert condensed(shared, ["instances"]) == (SourcedValue("instances.*.weight", "1", "assumed", "a guess"),)
    assert condensed([*shared, other], ["instances"]) == (*shared, other)
    assert condensed([other], ["instances"]) == (other,)
