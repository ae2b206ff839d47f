"""Scenario files: structure, extends, variants, cases, options, values set by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from htpsim import scenario
from htpsim.errors import ScenarioError
from htpsim.spec import Distribution
from tests.scenario.support import OVERLAYS, SMALL, written


def lines(error: pytest.ExceptionInfo[ScenarioError]) -> list[str]:
    return list(error.value.problems)


def test_a_small_file_becomes_a_spec(tmp_path: Path) -> None:
    loaded = scenario.load(written(tmp_path, SMALL))

    assert (loaded.title, loaded.question) == ("Small", "Does it load?")
    assert loaded.base.device.dram_bandwidth == 40_000_000_000
    assert [instance.name for instance in loaded.base.instances] == ["vlm0", "vlm1", "vlm2", "vlm3"]
    llm = loaded.base.instances[0].llm
    assert llm is not None
    assert [(graph.name, graph.context, graph.service.mean) for graph in llm.decode] == [
        ("decode0", "part0", 20_000_000),
        ("decode1", "part1", 20_000_000),
    ]
    assert llm.decode[0].dram_bytes == 600_000_000
    assert loaded.base.instances[0].vit is loaded.base.instances[3].vit


def test_what_is_not_given_keeps_the_default_of_the_spec(tmp_path: Path) -> None:
    loaded = scenario.load(written(tmp_path, SMALL)).base

    assert loaded.device.yield_latency_ns == 200_000
    assert loaded.instances[0].arrivals.think.kind == "exponential"


def test_byte_order_mark_and_windows_line_ends_are_read(tmp_path: Path) -> None:
    path = tmp_path / "scenario.toml"
    path.write_bytes(b"\xef\xbb\xbf" + SMALL.replace("\n", "\r\n").encode())

    assert scenario.load(path).title == "Small"


def test_overlays_apply_in_order_variant_case_options(tmp_path: Path) -> None:
    loaded = scenario.load(written(tmp_path, SMALL + OVERLAYS))

    assert loaded.variants == {
        "genie": scenario.Variant("ViT on Genie", "guarded"),
        "split": scenario.Variant("split", ""),
    }
    assert list(loaded.cases) == ["weighted", "one"]
    assert loaded.assumptions["slots"].title == "Slots"
    assert loaded.assumptions["slots"].options["two"].title == "two a process"
    resolved = loaded.resolve("genie", "weighted", ["slots.core"]).scenario
    assert [i.weight for i in resolved.instances] == [4, 2, 1, 1]
    assert {i.vit_path for i in resolved.instances} == {"genie"}
    assert resolved.guard.slots_per == "core"
    assert resolved.name == "scenario.genie.weighted.slots.core"
    assert resolved.title == "Small: ViT on Genie"


def test_an_overlay_reaches_one_instance_by_name_and_a_model(tmp_path: Path) -> None:
    loaded = scenario.load(written(tmp_path, SMALL + OVERLAYS))

    assert [i.weight for i in loaded.resolve(case="one").scenario.instances] == [1, 1, 7, 1]
    split = loaded.resolve("split").scenario.instances[0].vit
    assert split is not None
    assert split.split == 4


def test_later_options_win_over_earlier(tmp_path: Path) -> None:
    text = SMALL + "[assumptions.s.one.guard]\nslots = 1\n[assumptions.s.two.guard]\nslots = 2\n"
    loaded = scenario.load(written(tmp_path, text))

    assert loaded.resolve(options=["s.one", "s.two"]).scenario.guard.slots == 2
    assert loaded.resolve(options=["s.two", "s.one"]).scenario.guard.slots == 1


def test_values_set_by_hand_win_over_everything(tmp_path: Path) -> None:
    path = written(tmp_path, SMALL + OVERLAYS)
    values = ["guard.slots_per=core", "instances.weight=[1,2,3,4]", "instances.vlm1.llm_priority=HIGH", "run.seed = 7"]
    values += ["models.vit.graphs.service=300ms", "device.dram_bandwidth=none", 'instances.arrivals.think="2 s"']
    resolved = scenario.load(path, set_values=values).resolve("genie", "weighted").scenario

    assert resolved.guard.slots_per == "core"
    assert [i.weight for i in resolved.instances] == [1, 2, 3, 4]
    assert [i.llm_priority for i in resolved.instances] == ["NORMAL", "HIGH", "NORMAL", "NORMAL"]
    assert resolved.run.seed == 7
    assert resolved.device.dram_bandwidth is None
    assert resolved.instances[0].arrivals.think == Distribution(kind="constant", mean=2_000_000_000)
    vit = resolved.instances[0].vit
    assert vit is not None
    assert vit.graphs[0].service.mean == 300_000_000


def test_the_count_of_instances_can_be_set(tmp_path: Path) -> None:
    path = written(tmp_path, SMALL + OVERLAYS)
    loaded = scenario.load(path, set_values=["instances.count=6"])

    assert len(loaded.base.instances) == 6
    with pytest.raises(ScenarioError, match=r"cases\.weighted\.instances\.weight: got 4 values, expected 6"):
        loaded.resolve(case="weighted")


def test_a_value_set_by_hand_may_change_one_variant(tmp_path: Path) -> None:
    loaded = scenario.load(written(tmp_path, SMALL + OVERLAYS), set_values=["variants.genie.guard.slots=3"])

    assert loaded.base.guard.slots == 0
    assert loaded.resolve("genie").scenario.guard.slots == 3


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("extends=x.toml", "--set: extends: got an unknown key"),
        ("guard.slots", "got 'guard.slots', expected key=value"),
        ("=3", "got '=3', expected key=value"),
    ],
)
def test_what_is_no_assignment_is_refused(tmp_path: Path, value: str, said: str) -> None:
    with pytest.raises(ScenarioError, match=r"^--set: ") as error:
        scenario.load(written(tmp_path, SMALL), set_values=[value])

    assert said in str(error.value)


def test_a_file_extends_another_and_patches_its_lists(tmp_path: Path) -> None:
    written(tmp_path, SMALL + OVERLAYS, "base.toml")
    child = """
extends = "base.toml"
title = "Child"
[guard]
policy = "fifo"
[instances]
weight = 2
[instances.vlm3]
weight = 9
[variants.genie.guard]
slots = 4
"""
    loaded = scenario.load(written(tmp_path, child))

    assert (loaded.title, loaded.question) == ("Child", "Does it load?")
    assert [i.weight for i in loaded.base.instances] == [2, 2, 2, 9]
    genie = loaded.resolve("genie").scenario
    assert (genie.guard.policy, genie.guard.slots, genie.instances[0].vit_path) == ("fifo", 4, "genie")
    assert loaded.variants["genie"].title == "ViT on Genie"


def test_a_list_replaces_the_list_below(tmp_path: Path) -> None:
    written(tmp_path, SMALL, "base.toml")
    loaded = scenario.load(written(tmp_path, 'extends = "base.toml"\n[[instances]]\nname = "solo"\nllm = "llm"\n'))

    assert [i.name for i in loaded.base.instances] == ["solo"]
    assert loaded.base.instances[0].vit is None


def test_a_circle_of_files_is_refused(tmp_path: Path) -> None:
    written(tmp_path, 'extends = "c.toml"', "b.toml")
    written(tmp_path, 'extends = "b.toml"', "c.toml")
    with pytest.raises(ScenarioError) as error:
        scenario.load(written(tmp_path, 'extends = "b.toml"', "a.toml"))

    assert str(error.value).endswith("extends: got a circle (b.toml -> c.toml -> b.toml), expected a file that ends it")


def test_unknown_names_are_refused_with_the_nearest(tmp_path: Path) -> None:
    loaded = scenario.load(written(tmp_path, SMALL + OVERLAYS))

    with pytest.raises(ScenarioError) as error:
        loaded.resolve("geni", "weighed", ["slots.cores"])
    assert [line.split(": ", 1)[1] for line in lines(error)] == [
        "variant: got 'geni', expected one of genie, split; did you mean 'genie'?",
        "case: got 'weighed', expected one of one, weighted; did you mean 'weighted'?",
        "option: got 'slots.cores', expected one of slots.core, slots.two; did you mean 'slots.core'?",
    ]


def test_a_file_without_variants_says_so(tmp_path: Path) -> None:
    loaded = scenario.load(written(tmp_path, SMALL))

    with pytest.raises(ScenarioError, match="variant: got 'genie', expected none: the file has none"):
        loaded.resolve("genie")


def test_a_shipped_name_that_is_none_is_refused() -> None:
    with pytest.raises(ScenarioError, match=r"scenario: got 'no_such_scenario_at_all', expected one of "):
        scenario.load("no_such_scenario_at_all")


def test_a_folder_of_the_name_of_a_shipped_scenario_is_no_scenario(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = next(iter(scenario.shipped()))
    (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)

    assert scenario.find(name) == scenario.shipped()[name]


def test_a_file_without_the_suffix_is_read(tmp_path: Path) -> None:
    assert scenario.load(written(tmp_path, SMALL, "plain")).base.name == "plain"


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"gone\.toml: got no such file or directory, expected a readable scenario"):
        scenario.load(tmp_path / "gone.toml")


def test_every_wrong_overlay_is_told_at_once(tmp_path: Path) -> None:
    text = SMALL + "[variants.a.guard]\nslots_per = 'cores'\n[cases.b.run]\nseed = 1.5\n[assumptions.c.d]\nfoo = 1\n"
    with pytest.raises(ScenarioError) as error:
        scenario.load(written(tmp_path, text))

    assert [line.split(": ", 1)[1] for line in lines(error)] == [
        "assumptions.c.d.foo: got an unknown key, expected one of clients, device, guard, instances, models, registry, "
        "run, runtime, text, title",
        "variants.a.guard.slots_per: got 'cores', expected one of core, process; did you mean 'core'?",
        "cases.b.run.seed: got 1.5, expected a whole number",
    ]


def test_warnings_come_with_the_resolved_scenario(tmp_path: Path) -> None:
    loaded = scenario.load(written(tmp_path, SMALL + "arrivals = { think = '1s' }\n"))

    assert "lock phase" in loaded.resolve().warnings[0]


def test_policy_parameters_take_times_and_switches(tmp_path: Path) -> None:
    params = (
        '[guard]\npolicy = "quota"\nparams = { period = "50ms", idle_over_budget = true, carry_over_periods = 2 }\n'
    )
    loaded = scenario.load(written(tmp_path, SMALL + params))

    assert dict(loaded.base.guard.params) == {"period_ns": 50_000_000, "idle_over_budget": 1, "carry_over_periods": 2}


def test_clients_refer_to_models(tmp_path: Path) -> None:
    text = SMALL + '[[clients]]\nname = "adas"\nmodel = "vit"\n'
    text += 'arrivals = { kind = "periodic", period = "33ms" }\n'
    client = scenario.load(written(tmp_path, text)).base.clients[0]

    assert (client.name, client.model.name, client.arrivals.period_ns) == ("adas", "vit", 33_000_000)


@pytest.mark.parametrize("name", sorted(scenario.shipped()))
def test_a_shipped_scenario_is_valid_in_every_variant_and_case(name: str) -> None:
    loaded = scenario.load(name)

    assert loaded.question
    for variant in loaded.variants:
        for case in [None, *loaded.cases]:
            assert scenario.problems(loaded.resolve(variant, case).scenario) == []
