"""How many instances fit: held to a packer written here by hand, and to its own words about what one more needs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htpsim.errors import ScenarioError
from htpsim.experiments.fit import LIMITS, fit, fit_scenario, load_only, load_up
from htpsim.spec import Context, Device, Graph, Instance, Model, Registry, Scenario, constant

MOST = 8


@st.composite
def small_scenarios(draw: st.DrawFn) -> Scenario:
    """One core, one process; a ViT and an LLM of one context each; every limit tight enough to bind now and then."""
    sizes = st.integers(1, 20)

    def model(name: str, role: str) -> Model:
        context = Context(name="c", weights_bytes=draw(sizes), io_bytes=draw(st.integers(0, 5)))
        graph = (Graph(name="g", context="c", service=constant(1)),)
        graphs = {"graphs": graph} if role == "vit" else {"prefill": graph, "decode": graph}
        return Model(name=name, role=role, contexts=(context,), kv_bytes=draw(st.integers(0, 9)) * (role == "llm"),
                     load=draw(st.sampled_from(["read", "mmap"])), **graphs)  # fmt: skip

    device = Device(
        cores=1,
        pd_bytes=draw(st.integers(1, 80)),
        pd_count=draw(st.integers(1, 5)),
        pd_rule=draw(st.sampled_from(["by-model", "any"])),
        dram_budget_bytes=draw(st.none() | st.integers(1, 150)),
        contexts_per_process=draw(st.none() | st.integers(1, 12)),
    )
    instance = Instance(name="a", vit=model("vit", "vit"), llm=model("llm", "llm"))
    return Scenario(
        device=device,
        registry=Registry(llm=draw(st.booleans()), vit=draw(st.booleans())),
        instances=(instance,),
    )


def by_hand(scenario: Scenario) -> int:
    """Return how many instances start, by the words of the model."""
    return next((n - 1 for n in range(1, MOST + 1) if not all_start(scenario, n)), MOST)


def all_start(scenario: Scenario, instances: int) -> bool:
    """Take memory in the order in which the threads do, where loading takes no time.

    The ViTs come first, each with what its first user needs, or the one that all share; then, thread by thread, what a
    further user of a shared ViT needs, and the LLM.
    """
    device, registry, instance = scenario.device, scenario.registry, scenario.instances[0]
    pds: list[dict[str, int]] = [{} for _ in range(device.pd_count)]
    shared = {"vit": registry.vit, "llm": registry.llm}
    home: dict[str, int] = {}

    def starts(model: Model, number: int) -> bool:
        """Load a copy into the first PD that takes it, or join the one that is there."""
        asked = model.contexts[0].io_bytes + model.kv_bytes
        if not (shared[model.role] and number):
            asked += model.contexts[0].weights_bytes
            open_to_it = [
                i
                for i, pd in enumerate(pds)
                if (device.pd_rule == "any" or set(pd) <= {model.name}) and sum(pd.values()) + asked <= device.pd_bytes
            ]
            if not open_to_it:
                return False
            home[model.name] = open_to_it[0]
        pd = pds[home[model.name]]
        pd[model.name] = pd.get(model.name, 0) + asked
        return sum(pd.values()) <= device.pd_bytes

    vit, llm, numbers = instance.vit, instance.llm, range(instances)
    if registry.vit:
        fits = all(starts(model, i) for i in numbers for model in (vit, llm))
    else:
        fits = all(starts(model, i) for model in (vit, llm) for i in numbers)
    copies = sum(1 if one else instances for one in shared.values())
    held = sum(sum(pd.values()) for pd in pds)
    budget = device.dram_budget_bytes
    return fits and copies <= (device.contexts_per_process or copies) and (budget is None or held <= budget)


@given(small_scenarios())
def test_as_many_fit_as_a_packer_by_hand_finds(scenario: Scenario) -> None:
    assert fit_scenario(scenario, MOST).most == by_hand(scenario)


@given(small_scenarios())
def test_what_one_more_needs_is_enough_and_one_less_is_not(scenario: Scenario) -> None:
    found = fit_scenario(scenario, MOST)
    if found.most == MOST:
        assert not found.limit
        return
    assert found.limit in LIMITS
    assert f"device.{found.limit}" in found.reason

    def with_limit(value: int) -> Scenario:
        return replace(scenario, device=replace(scenario.device, **{found.limit: value}))

    if found.enough is None:
        assert found.next_most == found.most
        assert found.next_limit
        return
    assert found.more > 0
    assert fit_scenario(with_limit(found.enough), MOST).most > found.most
    assert fit_scenario(with_limit(found.enough - 1), MOST).most == found.most
    if found.next_most is not None:
        assert found.next_most > found.most


@given(small_scenarios())
def test_the_packing_is_what_the_ledgers_hold(scenario: Scenario) -> None:
    loaded = fit_scenario(scenario, MOST).loaded
    pd = loaded.ledgers.get("pd")
    assert sum(packed.held_bytes for packed in loaded.packing) == (pd.steady_bytes if pd else 0)
    for packed in loaded.packing:
        assert packed.held_bytes <= packed.limit_bytes
        assert packed.held_bytes == packed.users_bytes + sum(size for _, _, size in packed.contexts)
    assert not loaded.failed


def test_the_registry_fits_more_where_dram_binds() -> None:
    fits = fit("vit_migration", variants=["legacy", "genie_registry"], set_values=["device.dram_budget=8GB"])
    legacy, registry = fits["legacy"], fits["genie_registry"]
    assert legacy.limit == "dram_budget_bytes"
    assert legacy.most < registry.most
    frame = fits.to_dataframe()
    assert frame["fit"].tolist() == [legacy.most, registry.most]
    assert frame["one_more_needs"][0] == legacy.more
    assert "legacy" in fits._repr_html_()
    assert repr(fits).endswith(f"legacy {legacy.most}, genie_registry {registry.most}>")


def test_the_pattern_of_the_instances_repeats() -> None:
    scenario = Scenario(instances=(Instance(name="big", process=1), Instance(name="small", process=2)))
    grown = load_only(scenario, 5).instances
    assert [i.name for i in grown] == ["big", "small", "big 2", "small 2", "big 3"]
    assert [i.process for i in grown] == [1, 2, 1, 2, 1]


def test_nothing_to_repeat_is_refused() -> None:
    with pytest.raises(ScenarioError, match="expected at least one"):
        fit_scenario(Scenario())
    with pytest.raises(ScenarioError, match="did you mean 'genie'"):
        fit("vit_migration", variants=["geni"])
    with pytest.raises(ScenarioError, match="did you mean 'legacy'"):
        fit("vit_migration", variants=["legacy"], most=1)["legac"]


def test_loading_up_says_who_does_not_start() -> None:
    scenario = Scenario(
        device=Device(pd_bytes=10),
        instances=(
            Instance(name="a", vit=Model(name="v", role="vit", contexts=(Context(name="c", weights_bytes=11),))),
        ),
    )
    assert list(load_up(scenario, 1).failed) == ["a"]
