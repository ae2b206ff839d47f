"""One simulation, whole: device, guard, registry, runtime, who runs on it, and for how long."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from htpsim.spec.device import Device
from htpsim.spec.param import param
from htpsim.spec.work import Instance, OtherClient
from htpsim.units import NS_PER_S

Copies = Literal["per-core", "per-device", "per-process"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """``HtpConcurrencyScheduler::Guard``: one a process, acquired before and released after a guarded graphExecute."""

    policy: str = param(
        "assumed", "who is granted next; the fork's own rule is private", default="sfq", vary=("fifo", "sfq", "quota")
    )
    params: tuple[tuple[str, int], ...] = param("assumed", "the policy's own parameters", default=())
    slots: int = param(
        "assumed", "holders at once; 0: the number of cores a process, or one a core", default=0, vary=(1, 2)
    )
    slots_per: Literal["process", "core"] = param(
        "assumed",
        "whether slots are counted a process or a core; it decides the answer more than anything else",
        default="process",
        vary=("process", "core"),
    )
    scope: Literal["graph", "request"] = param(
        "assumed",
        "held for one graph, as it sits inside execute(), or for a whole request",
        default="graph",
        vary=("graph", "request"),
    )
    registration: Literal["thread", "query"] = param(
        "assumed",
        "weights are set once a thread, or only during a dialog query, after the ViT ran",
        default="thread",
        vary=("thread", "query"),
    )
    unregistered: Literal["default-weight", "bypass"] = param(
        "assumed", "what a call without a handle does", default="default-weight", vary=("default-weight", "bypass")
    )
    default_weight: int = param("assumed", "weight of a call without a handle", default=1)
    overhead_ns: int = param(
        "assumed", "time the guard itself takes, a call", default=0, unit="ns", vary=(10_000, 100_000)
    )
    covers: Literal["execute", "switches"] = param(
        "assumed",
        "what a slot is held for: graphExecute alone, or a graph or LoRA switch before it too",
        default="execute",
        vary=("execute", "switches"),
    )
    gap_inside: bool = param(
        "assumed", "the host gap after a token is spent holding the guard", default=False, vary=(True, False)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Registry:
    """``QnnModelRegistry``: one loaded model per key and process, counted by its users."""

    llm: bool = param("seed", "the LLM goes through the registry", default=True)
    vit: bool = param("choice", "the ViT goes through it too: the proposed change", default=False)
    llm_copies: Copies = param(
        "assumed",
        "how far one copy of the LLM reaches",
        default="per-core",
        vary=("per-core", "per-device", "per-process"),
    )
    vit_copies: Copies = param(
        "assumed",
        "how far one copy of the ViT reaches",
        default="per-core",
        vary=("per-core", "per-device", "per-process"),
    )
    adapters: Literal["keys", "turns"] = param(
        "assumed",
        "instances with different LoRA adapters on one model: a key and so a copy each, or turns at one copy, a "
        "request at a time",
        default="keys",
        vary=("keys", "turns"),
    )
    waits_for_load: bool = param("assumed", "a second caller during a load waits for it", default=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """What the installed runtime can do."""

    embedding_raw_apis: bool = param(
        "seed", "the ViT-on-Genie wrapper's raw API exists; false in 2.46, where creation throws", default=True
    )
    make_room: Literal["never", "idle"] = param(
        "assumed",
        "when a load finds no room: it fails, or copies that no request uses are unloaded, least recently used first",
        default="never",
        vary=("never", "idle"),
    )
    on_throw: Literal["fail", "fallback"] = param(
        "assumed", "when the wrapper throws: the instance fails, or its ViT falls back to path qnn", default="fail"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """How long, how often, from which seed."""

    duration_ns: int = param("choice", "measured time, after loading and warm-up", default=60 * NS_PER_S, unit="ns")
    warmup_ns: int = param("choice", "time after loading that is not measured", default=0, unit="ns")
    seed: int = param("choice", "seed of every draw", default=1)
    replications: int = param("choice", "independent repetitions", default=3)
    engine: Literal["auto", "reference", "kernel"] = param(
        "choice", "which engine runs it; both leave the same log, the kernel is compiled and faster", default="auto"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Everything that determines a run; two equal ones give byte-identical results.

    Instances keep their order: it is the index by which placement and ties are decided; other clients follow.
    """

    name: str = "scenario"
    title: str = ""
    device: Device = field(default_factory=Device)
    guard: Guard = field(default_factory=Guard)
    registry: Registry = field(default_factory=Registry)
    runtime: Runtime = field(default_factory=Runtime)
    run: Run = field(default_factory=Run)
    instances: tuple[Instance, ...] = ()
    clients: tuple[OtherClient, ...] = ()
