"""Generated scenarios and the traces of running them, as hypothesis strategies and from seeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from hypothesis import strategies as st

from htpsim.experiments.trace import trace_of
from htpsim.invariants import Trace
from htpsim.sched import POLICIES
from htpsim.sim import simulate
from htpsim.spec import (
    Arrivals,
    Context,
    Device,
    Graph,
    Guard,
    Instance,
    Model,
    OtherClient,
    Registry,
    Run,
    Runtime,
    Scenario,
    constant,
)
from htpsim.testing.choose import Chooser, Drawn, Seeded
from htpsim.testing.parts import device_of, instance_of, llm_of, other_of, service_of, vit_of
from htpsim.testing.rarer import with_rarer

Draw = Callable[[st.SearchStrategy[Any]], Any]
LARGE: Final = 1 << 40


def guard_of(c: Chooser, policy: str | None = None, params: Mapping[str, int] | None = None) -> Guard:
    """Return a guard with every choice that the specification leaves open."""
    whole = c.of(False, False, False, True)
    chosen = policy or c.of(*POLICIES)
    return Guard(
        policy=chosen,
        params=tuple(params.items()) if params is not None else params_of(c, chosen),
        slots=c.of(0, 1, 2),
        slots_per="process" if whole else c.of("process", "core"),
        scope="request" if whole else "graph",
        registration=c.of("thread", "thread", "query"),
        unregistered=c.of("default-weight", "bypass"),
        overhead_ns=c.of(0, 0, 2),
        gap_inside=c.of(False, True),
    )  # fmt: skip


def params_of(c: Chooser, policy: str) -> tuple[tuple[str, int], ...]:
    """Return parameters that matter at this scale of time; the defaults are of milliseconds."""
    values: dict[str, dict[str, tuple[int, ...]]] = {
        "drr": {"quantum_ns": (1, 7, 30)},
        "eevdf": {"slice_ns": (1, 10)},
        "lottery": {"seed": (1, 2), "compensate": (0, 1)},
        "priority": {"ageing_ns": (0, 10)},
        "quota": {
            "unit": (0, 1), "period_ns": (20, 60), "calls": (1, 4), "carry_over_periods": (0, 2), "borrow": (1, 0, 2),
            "idle_over_budget": (0, 1),
        },
    }  # fmt: skip
    return tuple((name, c.of(*options)) for name, options in values.get(policy, {}).items())


def scenario_of(c: Chooser, policy: str | None = None, params: Mapping[str, int] | None = None) -> Scenario:
    """Return a scenario over every feature of the model, of up to three VLMs and two other clients."""
    device = device_of(c)
    vits = [vit_of(c, device, f"vit{n}") for n in range(c.of(1, 2))]
    llms = [llm_of(c, device, f"llm{n}") for n in range(c.of(1, 2))]
    count = c.whole(0, 3)
    others = c.whole(0 if count else 1, 2)
    plain = Scenario(
        device=device,
        guard=guard_of(c, policy, params),
        registry=Registry(
            llm=c.of(True, False),
            vit=c.of(False, True),
            llm_copies=c.of("per-core", "per-device", "per-process"),
            vit_copies=c.of("per-core", "per-device", "per-process"),
            waits_for_load=c.of(True, True, False),
        ),
        runtime=Runtime(embedding_raw_apis=c.of(True, True, True, False), on_throw=c.of("fail", "fallback")),
        run=Run(duration_ns=c.whole(60, 200), warmup_ns=c.of(0, 20), seed=c.whole(0, 3)),
        instances=tuple(instance_of(c, f"vlm{n}", vits, llms) for n in range(count)),
        clients=tuple(other_of(c, device, f"other{n}", c.of(0, 1)) for n in range(others)),
    )
    return with_rarer(c, plain)


def backlogged_of(
    c: Chooser, policy: str = "sfq", params: Mapping[str, int] | None = None, slots: int | None = 1
) -> Scenario:
    """Return a scenario in which every account has a call waiting or running from its first call on.

    That is the premise of every bound on shares: each client asks again in the instant it is answered, and all pass one
    guard to one core.
    """
    clients = []
    for n in range(c.whole(2, 4)):
        context = Context(name="c", weights_bytes=1)
        graph = Graph(name="g", context="c", service=service_of(c), vtcm_bytes=8)
        clients.append(
            OtherClient(
                name=f"client{n}",
                model=Model(name=f"model{n}", role="other", contexts=(context,), graphs=(graph,)),
                path="genie",
                weight=c.whole(1, 8),
                guard_priority=c.whole(0, 2),
                arrivals=Arrivals(kind="closed", think=constant(0), offset_ns=c.of(0, 0, 13)),
                outstanding=c.of(1, 1, 2),
            )
        )
    chosen = params_of(c, policy) if params is None else tuple(params.items())
    return Scenario(
        device=Device(cores=1, vtcm_bytes=8, pd_bytes=LARGE, pd_count=4 * len(clients)),
        guard=Guard(policy=policy, params=chosen, slots=slots or c.of(1, 2, 3)),
        run=Run(duration_ns=c.whole(100, 300), seed=c.whole(0, 3)),
        clients=tuple(clients),
    )


@st.composite
def devices(draw: Draw, cores: int | None = None) -> Device:
    """Devices of one to three cores, with every cost, limit and rule that the specification leaves open."""
    return device_of(Drawn(draw), cores)


@st.composite
def instances(draw: Draw, name: str = "vlm0", device: Device | None = None) -> Instance:
    """VLMs with models that fit `device`."""
    c = Drawn(draw)
    device = device or device_of(c)
    return instance_of(c, name, [vit_of(c, device)], [llm_of(c, device)])


@st.composite
def scenarios(draw: Draw, policy: str | None = None, params: Mapping[str, int] | None = None) -> Scenario:
    """Scenarios over every feature of the model.

    Parameters
    ----------
    policy : str, optional
        The guard's policy, a built-in one or ``module:Class``; by default any built-in one.
    params : mapping, optional
        Its parameters; by default some that matter at this scale.
    """
    return scenario_of(Drawn(draw), policy, params)


@st.composite
def backlogged_scenarios(
    draw: Draw, policy: str = "sfq", params: Mapping[str, int] | None = None, slots: int | None = 1
) -> Scenario:
    """Scenarios in which every account is backlogged from its first call on; `slots` None: one to three."""
    return backlogged_of(Drawn(draw), policy, params, slots)


def traces(policy: str | None = None, params: Mapping[str, int] | None = None) -> st.SearchStrategy[Trace]:
    """Return the strategy of traces of `scenarios`."""
    return scenarios(policy, params).map(trace_scenario)


def backlogged_traces(
    policy: str = "sfq", params: Mapping[str, int] | None = None, slots: int | None = 1
) -> st.SearchStrategy[Trace]:
    """Return the strategy of traces of `backlogged_scenarios`."""
    return backlogged_scenarios(policy, params, slots).map(trace_scenario)


def trace_scenario(scenario: Scenario) -> Trace:
    """Simulate a scenario and return its trace."""
    return trace_of(simulate(scenario))


def random_scenario(seed: int, policy: str | None = None, params: Mapping[str, int] | None = None) -> Scenario:
    """Return scenario number `seed`: the same kind as `scenarios`, made without hypothesis.

    >>> random_scenario(3) == random_scenario(3)
    True
    """
    return scenario_of(Seeded(seed), policy, params)


def random_backlogged(
    seed: int, policy: str = "sfq", params: Mapping[str, int] | None = None, slots: int | None = 1
) -> Scenario:
    """Return backlogged scenario number `seed`, made without hypothesis.

    >>> random_backlogged(3).guard.slots
    1
    """
    return backlogged_of(Seeded(seed), policy, params, slots)
