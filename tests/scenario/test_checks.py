"""Each rule of a whole scenario: broken alone, it is the one that is told; and what is allowed passes."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from htpsim.scenario import problems, warnings
from htpsim.spec import (
    Arrivals,
    Context,
    Device,
    Distribution,
    Graph,
    Guard,
    Instance,
    OtherClient,
    Registry,
    Run,
    Runtime,
    Scenario,
    constant,
)
from tests.scenario.support import llm, scenario, vit

DEVICE = Device(cores=2, dram_bandwidth=40_000_000_000)
APP = Graph(name="app", context="app", service=constant(1_000_000))


def device(**changes: Any) -> Scenario:
    return scenario(device=dataclasses.replace(DEVICE, **changes))


def one(**changes: Any) -> Scenario:
    return scenario(instances=(Instance(**({"name": "vlm0", "vit": vit(), "llm": llm()} | changes)),))


def client(**changes: Any) -> Scenario:
    model = vit(name="app", role="other", contexts=(Context(name="app"),), graphs=(APP,))
    return scenario(clients=(OtherClient(**({"name": "app", "model": model} | changes)),))


def vit_of(**changes: Any) -> Scenario:
    return one(vit=vit(**changes))


def llm_of(**changes: Any) -> Scenario:
    return one(llm=llm(**changes))


def graph_of(**changes: Any) -> Scenario:
    return vit_of(graphs=(dataclasses.replace(vit().graphs[0], **changes),))


def arriving(**changes: Any) -> Scenario:
    return one(arrivals=Arrivals(**changes))


def test_a_sound_scenario_has_no_problems_and_no_warnings() -> None:
    assert problems(scenario()) == []
    assert warnings(scenario()) == []


BROKEN = {
    "run.duration: got 0, expected a time to measure": scenario(run=Run(duration_ns=0)),
    "run.replications: got 0, expected at least 1": scenario(run=Run(replications=0)),
    "run.duration: got 20h with warm-up, expected less than 35184s": scenario(
        run=Run(duration_ns=72_000 * 10**9), guard=Guard(policy="stride")
    ),
    "run.duration: got 3000h with warm-up, expected less than 9007199s": scenario(
        run=Run(duration_ns=3_000 * 3_600 * 10**9)
    ),
    "run.seed: got -1, expected 0 or more": scenario(run=Run(seed=-1)),
    "instances: got none, expected at least one instance or client": scenario(instances=()),
    "device.arch: got 'v74', expected one of v66, v68, v69, v73, v75, v79, v81; did you mean 'v79'?": device(
        arch="v74"
    ),
    "device.cores: got 0, expected at least 1": device(cores=0),
    "device.cores: got true, expected a whole number": device(cores=True),
    "device.topology: got 'gan', expected one of device-per-core, gang, one-device; did you mean 'gang'?": device(
        topology="gan"
    ),
    "device.evict: got -5, expected 0 or more": device(evict_ns=-5),
    "device.pd: got 0, expected the usable size of a protection domain": device(pd_bytes=0),
    "device.dram_bandwidth: got 0, expected a rate, or 'none' where it is not modelled": device(dram_bandwidth=0),
    "device.yield_interval: got 0, expected the spacing of yield points for yield_rule 'grid'": device(
        yield_rule="grid", yield_interval_ns=0
    ),
    "device.gang_efficiency: got 0.0, expected above 0, at most 1": device(gang_efficiency=0.0),
    "device.gang_efficiency: got nan, expected a finite number": device(gang_efficiency=float("nan")),
    "device.background_bandwidth: got 40GB/s, expected less than dram_bandwidth, 40GB/s": device(
        background_bandwidth=40_000_000_000
    ),
    "device.background_bandwidth: got 1GB/s without a dram_bandwidth, expected both": device(
        dram_bandwidth=None, background_bandwidth=10**9
    ),
    "guard.default_weight: got 0, expected at least 1": scenario(guard=Guard(default_weight=0)),
    "guard.params.perio: got an unknown key, expected a key of this table; did you mean 'period'? "
    "(policy quota)": scenario(guard=Guard(policy="quota", params=(("perio_ns", 5),))),
    "guard.params.period: got 0, expected 1ns to 1h (policy quota)": scenario(
        guard=Guard(policy="quota", params=(("period_ns", 0),))
    ),
    "guard.params.borrow: got 3, expected 0 to 2 (policy quota)": scenario(
        guard=Guard(policy="quota", params=(("borrow", 3),))
    ),
    "guard.params.x: got an unknown key, expected none (policy fifo)": scenario(
        guard=Guard(policy="fifo", params=(("x", 5),))
    ),
    "models.vit.graphs: got no graphs, expected at least one for role 'vit'": vit_of(graphs=()),
    "models.vit.prefill: got graphs, expected none for role 'vit', which has graphs": vit_of(
        prefill=(dataclasses.replace(vit().graphs[0], name="p"),)
    ),
    "models.llm.decode: got no graphs, expected at least one for role 'llm'": llm_of(decode=()),
    "models.vit: got 2 contexts called 'vit', expected a name of its own for each": vit_of(
        contexts=(Context(name="vit"), Context(name="vit"))
    ),
    "models.vit.graphs.vit.context: got 'vip', expected one of vit; did you mean 'vit'?": graph_of(context="vip"),
    "models.vit.graphs.vit.context: got 'vit', expected a context of the model, which has none": vit_of(contexts=()),
    "models.vit.graphs.vit.service: got 0, expected a time above 0: nothing runs in no time": graph_of(
        service=constant(0)
    ),
    "models.vit.graphs.vit.service: got a mean of 0, expected a time above 0: nothing runs in no time": graph_of(
        service=Distribution(kind="exponential")
    ),
    "models.vit.graphs.vit.service: uniform: got low 5 and high 2, expected 0 <= low <= high": graph_of(
        service=Distribution(kind="uniform", low=5, high=2)
    ),
    "models.vit.graphs.vit.service: cv: got inf, expected 0 to 10": graph_of(
        service=Distribution(kind="lognormal", mean=5, cv=float("inf"))
    ),
    "models.vit.graphs.vit.vtcm: got 9MiB, expected at most 8MiB, the VTCM of a core": graph_of(vtcm_bytes=9 << 20),
    "models.vit.graphs.vit.hvx: got 5, expected at most 4, what a core has": graph_of(hvx=5),
    "models.vit.split: got 0, expected at least 1": vit_of(split=0),
    "models.llm.ar: got 0, expected at least 1": llm_of(ar=0),
    "models.llm.split: got 2 for an llm, expected 1: give it more prefill and decode graphs": llm_of(split=2),
    "models.llm.lm_head_split: got true with one prefill graph, expected the LM head after others": llm_of(
        lm_head_split=True
    ),
    "models.vit.placement: got core 2, expected a core from 0 to 1": vit_of(placement="2"),
    "models.vit.placement: got 'by-instnce', expected a core such as '0', or one of by-instance, least-loaded; "
    "did you mean 'by-instance'?": vit_of(placement="by-instnce"),
    "models.vit.built_for_cores: got 3, expected at most 2, the device's cores": vit_of(built_for_cores=3),
    "models.vit: got 2 different models of this name, expected one": scenario(
        instances=(Instance(name="a", vit=vit()), Instance(name="b", vit=vit(split=2)))
    ),
    "instances.vlm0: got 2 instances or clients of this name, expected a name of its own for each": scenario(
        instances=(Instance(name="vlm0", llm=llm()), Instance(name="vlm0", llm=llm()))
    ),
    "instances.vlm0: got neither vit nor llm, expected at least one, the name of a model": one(vit=None, llm=None),
    "instances.vlm0.vit: got 'llm' of role 'llm', expected a model of role 'vit'": one(vit=llm()),
    "instances.vlm0.weight: got 0, expected at least 1": one(weight=0),
    "instances.vlm0.dialog_turns: got 0, expected at least 1": one(dialog_turns=0),
    "instances.vlm0.process: got -1, expected 0 or more": one(process=-1),
    "instances.vlm0.vit_path: got 'geni', expected one of genie, host, qnn; did you mean 'genie'?": one(
        vit_path="geni"
    ),
    "instances.vlm0.llm_priority: got 'HIHG', expected one of CRITICAL, CRITICAL_PLUS, HIGH, HIGH_PLUS, LOW, NORMAL, "
    "NORMAL_HIGH, NORMAL_LOW; did you mean 'HIGH'?": one(llm_priority="HIHG"),
    "instances.vlm0.output_tokens: got 0, expected at least 1: prefill yields the first token": one(
        output_tokens=constant(0)
    ),
    "instances.vlm0.text_tokens: got 0 with no images, expected a prompt of at least one token": one(
        text_tokens=constant(0), images=constant(0)
    ),
    "instances.vlm0: got requests of at least 4356 tokens, expected at most 4096, the context of 'llm'": one(
        text_tokens=constant(4000)
    ),
    "instances.vlm0.stale_handle_of: got 'vlm9', expected another instance, and there is none": one(
        stale_handle_of="vlm9"
    ),
    "instances.a.stale_handle_of: got 'b' of another process, expected an instance of the same one": scenario(
        instances=(Instance(name="a", llm=llm(), stale_handle_of="b"), Instance(name="b", llm=llm(), process=1))
    ),
    "instances.vlm0.arrivals.period: got nothing, expected a time for kind 'poisson'": arriving(kind="poisson"),
    "instances.vlm0.arrivals.times: got none, expected at least one arrival time for kind 'replay'": arriving(
        kind="replay"
    ),
    "instances.vlm0.arrivals.times: got times out of order, expected them ascending": arriving(
        kind="replay", times_ns=(2, 1)
    ),
    "clients.app.model: got 'llm' of role 'llm', expected a model with graphs, of role 'other'": client(model=llm()),
    "clients.app.weight: got 0, expected at least 1": client(weight=0),
    "clients.app.when_full: got 'wait', expected one of block, drop": client(when_full="wait"),
}


@pytest.mark.parametrize("said", BROKEN)
def test_a_broken_rule_is_told_and_nothing_else(said: str) -> None:
    assert problems(BROKEN[said]) == [said]


def test_without_a_vit_a_prompt_has_no_images() -> None:
    """An LLM alone may fill its whole context with text and answer, and its prompt must have text."""
    assert problems(one(vit=None, text_tokens=constant(96), output_tokens=constant(4000))) == []
    (full,) = problems(one(vit=None, text_tokens=constant(97), output_tokens=constant(4000)))
    (empty,) = problems(one(vit=None, text_tokens=constant(0)))

    assert "at least 4097 tokens" in full
    assert "got 0 with no images" in empty


def test_all_problems_are_told_at_once() -> None:
    wrong = scenario(device=Device(cores=0), run=Run(duration_ns=0), guard=Guard(default_weight=0))

    assert [line.split(":")[0] for line in problems(wrong)] == ["run.duration", "device.cores", "guard.default_weight"]


def test_an_unknown_policy_is_told_with_the_nearest() -> None:
    (said,) = problems(scenario(guard=Guard(policy="sfqq")))

    assert said.startswith("guard.policy: got 'sfqq', expected one of ")
    assert "did you mean 'sfq'?" in said


@pytest.mark.parametrize(
    ("arch", "allowed"), [("v66", False), ("v68", False), ("v69", False), ("v73", True), ("v81", True)]
)
def test_graphs_share_a_binary_from_v73_on(arch: str, allowed: bool) -> None:
    said = problems(device(arch=arch))

    assert (said == []) is allowed
    assert allowed or "graphs share weights within a binary from v73 on" in said[0]


def test_before_v73_contexts_of_their_own_are_fine() -> None:
    prefill, decode = llm().prefill[0], llm().decode[0]
    own = llm(
        contexts=(Context(name="p"), Context(name="d")),
        prefill=(dataclasses.replace(prefill, context="p"),),
        decode=(dataclasses.replace(decode, context="d"),),
    )

    assert problems(scenario(device=Device(arch="v68"), instances=(Instance(name="a", llm=own),))) == []


@pytest.mark.parametrize(("arch", "allowed"), [("v69", False), ("v73", True)])
def test_another_client_runs_beside_a_qnn_graph_from_v73_on(arch: str, allowed: bool) -> None:
    app = vit(name="app", role="other", contexts=(Context(name="app"),), graphs=(dataclasses.replace(APP, qnn=False),))
    both = scenario(
        device=Device(arch=arch),
        instances=(Instance(name="a", vit=vit()),),
        clients=(OtherClient(name="app", model=app),),
    )

    assert (problems(both) == []) is allowed
    alone = scenario(device=Device(arch=arch), instances=(), clients=(OtherClient(name="app", model=app),))
    assert problems(alone) == []


REQUEST = Guard(scope="request", slots_per="core")


def moved(device: Device, registry: Registry | None = None, path: str = "genie", **changes: Any) -> Scenario:
    users = tuple(Instance(name=f"vlm{i}", vit=vit(**changes), llm=llm(), vit_path=path) for i in range(2))  # type: ignore[arg-type]
    return scenario(device=device, instances=users, guard=REQUEST, registry=registry or Registry())


@pytest.mark.parametrize(
    ("allowed", "given"),
    [
        pytest.param(True, moved(DEVICE), id="both by instance"),
        pytest.param(True, moved(Device(cores=1), Registry(llm_copies="per-process")), id="one core"),
        pytest.param(True, moved(dataclasses.replace(DEVICE, topology="gang"), placement="least-loaded"), id="gang"),
        pytest.param(True, moved(DEVICE, path="qnn", placement="1"), id="the ViT never meets the guard"),
        pytest.param(False, moved(DEVICE, placement="1"), id="the ViT is pinned"),
        pytest.param(False, moved(DEVICE, placement="least-loaded"), id="a run decides"),
        pytest.param(False, moved(DEVICE, Registry(llm_copies="per-process")), id="one copy of the LLM"),
        pytest.param(False, moved(DEVICE, Registry(llm_copies="per-device")), id="one copy a device of two cores"),
        pytest.param(
            True,
            moved(dataclasses.replace(DEVICE, topology="device-per-core"), Registry(llm_copies="per-device")),
            id="a device is a core",
        ),
        pytest.param(True, moved(DEVICE, Registry(vit_copies="per-process")), id="the ViT does not use the registry"),
    ],
)
def test_a_request_may_hold_a_core_only_if_it_stays_there(allowed: bool, given: Scenario) -> None:
    said = problems(given)

    assert (said == []) is allowed
    assert allowed or said == [
        "guard.scope: got 'request' with slots_per 'core', expected 'graph': ViT and LLM of 'vlm0' may be on two cores"
    ]


def locked(**arrivals: Any) -> Scenario:
    users = tuple(Instance(name=f"vlm{i}", llm=llm(), arrivals=Arrivals(**arrivals)) for i in range(2))
    return scenario(instances=users)


def weighted(guard: Guard, **changes: Any) -> Scenario:
    users = tuple(Instance(**({"name": f"vlm{i}", "llm": llm(), "weight": i + 1} | changes)) for i in range(3))
    return scenario(instances=users, guard=guard)


def sharing(*priorities: str, registry: Registry | None = None, clamp: bool = False, **given: Any) -> Scenario:
    """Instances whose LLMs are one copy, each at a priority of its own."""
    users = tuple(
        Instance(name=f"vlm{n}", llm=llm(), llm_priority=priority, **{key: value[n] for key, value in given.items()})
        for n, priority in enumerate(priorities)
    )
    shared = registry or Registry(llm_copies="per-process")
    return scenario(device=dataclasses.replace(DEVICE, priority_clamp=clamp), registry=shared, instances=users)


def unrandom(run: Run) -> Scenario:
    return scenario(instances=(Instance(name="a", llm=llm(), arrivals=Arrivals(think=constant(5))),), run=run)


WARNED = {
    "lock phase": locked(think=constant(10**9)),
    "lock phase: a start offset alone": locked(think=Distribution(kind="sample", sample=(5, 5))),
    "run.replications: 2; a comparison rests on at least 3": scenario(run=Run(replications=2)),
    "device.dram_bandwidth: not given, so the 2 cores do not slow each other": device(dram_bandwidth=None),
    "instances.vlm0.arrivals.period (1s): not used by kind 'closed'": arriving(period_ns=10**9),
    "instances.vlm0.arrivals.jitter (1s): not used by kind 'poisson'": arriving(
        kind="poisson", period_ns=5, jitter_ns=10**9
    ),
    "guard.policy: 'fifo' does not look at weights, and they differ": weighted(Guard(policy="fifo")),
    "guard.slots: 3 for the 3 guarded threads of process 0: nobody ever waits": weighted(Guard(slots=3)),
    "instances.vlm0: priority above NORMAL, which device.priority_clamp turns into NORMAL": scenario(
        device=dataclasses.replace(DEVICE, priority_clamp=True),
        instances=(Instance(name="vlm0", llm=llm(), llm_priority="HIGH"),),
    ),
    "instances.llm_priority: vlm0 NORMAL, vlm1 HIGH on one copy of 'llm'": sharing("NORMAL", "HIGH"),
    "wrapper of vlm0 throws at creation; these instances fail": scenario(
        instances=(Instance(name="vlm0", vit=vit(), vit_path="genie"),), runtime=Runtime(embedding_raw_apis=False)
    ),
    "models.llm.decode: asks for 52.6GB/s of DRAM, more than the device has (40GB/s)": llm_of(
        decode=(dataclasses.replace(llm().decode[0], dram_bytes=3_000_000_000),)
    ),
}


@pytest.mark.parametrize("said", WARNED)
def test_a_reader_is_warned(said: str) -> None:
    assert problems(WARNED[said]) == []
    (warned,) = warnings(WARNED[said])
    assert said in warned


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(locked(think=Distribution(kind="exponential", mean=10**9)), id="think time varies"),
        pytest.param(locked(kind="periodic", period_ns=10**9, think=constant(5)), id="no closed loop"),
        pytest.param(arriving(think=constant(10**9)), id="one loop has nothing to lock to"),
        pytest.param(weighted(Guard(slots=2)), id="somebody waits"),
        pytest.param(weighted(Guard(policy="fifo"), weight=2), id="equal weights"),
        pytest.param(device(dram_bandwidth=None, cores=1), id="one core"),
        pytest.param(unrandom(Run(replications=1)), id="nothing is drawn"),
        pytest.param(sharing("HIGH", "HIGH"), id="one priority for one copy"),
        pytest.param(sharing("NORMAL", "HIGH", registry=Registry(llm=False)), id="a copy each"),
        pytest.param(sharing("NORMAL", "HIGH", registry=Registry()), id="a copy a core"),
        pytest.param(sharing("NORMAL", "HIGH", process=(0, 1)), id="a copy a process"),
        pytest.param(sharing("NORMAL", "HIGH", adapter=("", "a")), id="a copy an adapter"),
        pytest.param(client(arrivals=Arrivals(think=constant(0))), id="a client that never pauses"),
    ],
)
def test_nobody_is_warned_without_need(given: Scenario) -> None:
    assert problems(given) == []
    assert warnings(given) == []
