"""From a scenario to what an engine needs: numbered clients, graphs with integer tables, guard accounts.

Everything that involves a float, a name or a library is done here, before an engine starts.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from htpsim.spec.device import NORMAL, PRIORITIES, Device
from htpsim.spec.distribution import table
from htpsim.spec.model import Graph, Model
from htpsim.spec.scenario import Scenario
from htpsim.spec.work import Instance, OtherClient
from htpsim.units import NS_PER_S

NO_ACCOUNT = -1


@dataclass(slots=True, kw_only=True)
class GraphPlan:
    """One graph ready to execute."""

    number: int
    name: str
    """"model/graph"; "#2/4" is appended to a segment of a cut graph"""
    context: int
    """position of its context in the model"""
    draw: int
    """which draw of a step it uses: segments of one cut graph share it, so a cut moves no other draw"""
    solo_ns: list[int]
    """quantile table of its time alone"""
    demand: list[int]
    """DRAM bytes a second at full rate, for each entry of solo_ns"""
    qnn: bool
    vtcm_bytes: int
    hvx: int
    hmx: int
    width: int
    """cores it takes at once"""


@dataclass(slots=True, kw_only=True)
class ModelPlan:
    """A model of one client: how it is reached, and its graphs."""

    model: Model
    level: int
    """QNN priority level after clamping"""
    guarded: bool
    account: int
    """guard account its calls use, or NO_ACCOUNT"""
    bypass: bool
    """on path genie, but its calls carry no handle and go past the guard"""
    via_registry: bool
    copies: str
    graphs: list[GraphPlan] = field(default_factory=list)
    prefill: list[GraphPlan] = field(default_factory=list)
    decode: list[GraphPlan] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ClientPlan:
    """One instance or other client."""

    number: int
    name: str
    process: int
    spec: Instance | OtherClient
    models: list[ModelPlan]
    """in order of loading: vit, llm; or the one model of another client"""
    vit: ModelPlan | None = None
    llm: ModelPlan | None = None
    failure: str = ""
    """why it cannot be created at all"""


@dataclass(slots=True, kw_only=True)
class AccountPlan:
    """One dialog handle (or the lack of one) in the guard of a process."""

    name: str
    process: int
    index: int
    """position among the accounts of its process"""
    weight: int
    priority: int


@dataclass(slots=True, kw_only=True)
class Plan:
    """A scenario, numbered."""

    scenario: Scenario
    clients: list[ClientPlan]
    graphs: list[str]
    accounts: list[AccountPlan]
    notes: list[str]

    def slots(self) -> int:
        """Slots of one lane: as given, or the number of cores a process, or one a core."""
        guard = self.scenario.guard
        return guard.slots or (1 if guard.slots_per == "core" else self.scenario.device.cores)


def level_of(priority: str, device: Device) -> int:
    """Return the level of a QNN priority as the device treats it.

    >>> level_of("HIGH", Device(priority_clamp=True)) == level_of("NORMAL", Device())
    True
    """
    level = PRIORITIES.index(priority)
    return min(level, NORMAL) if device.priority_clamp else level


def width_of(model: Model, device: Device) -> int:
    """Return how many cores a graph of `model` takes at once."""
    if model.built_for_cores:
        return model.built_for_cores
    return device.cores if device.topology == "gang" and model.role != "other" else 1


def solo_and_demand(graph: Graph, parts: int, part: int, width: int, device: Device) -> tuple[list[int], list[int]]:
    """Return the tables of time alone and DRAM demand of segment `part` of `parts` of a graph on `width` cores.

    A graph cannot run faster than its cores can fetch its bytes; the last segment takes what division leaves.
    """
    solo: npt.NDArray[np.int64] = table(graph.service)
    if width > 1:
        solo = np.maximum(1, np.rint(solo / (width * device.gang_efficiency)).astype(np.int64))
    share = solo // parts
    solo = solo - share * (parts - 1) if part == parts - 1 else share
    work = graph.dram_bytes // parts * NS_PER_S
    if not work:
        return solo.tolist(), [0] * len(solo)
    if device.core_dram_bandwidth:
        solo = np.maximum(solo, -(-work // (device.core_dram_bandwidth * width)))
    demand: npt.NDArray[np.int64] = -(-work // np.maximum(1, solo))
    return solo.tolist(), demand.tolist()


class _Planner:
    """Numbers graphs and accounts while it walks the clients."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.graphs: list[str] = []
        self.accounts: list[AccountPlan] = []
        self.notes: list[str] = []
        self.handles: dict[tuple[int, str], int] = {}
        self.tables: dict[str, tuple[list[int], list[int]]] = {}

    def account(self, name: str, process: int, weight: int, priority: int) -> int:
        """Return the number of an account, opening it when it is new."""
        key = (process, name)
        if key not in self.handles:
            index = sum(a.process == process for a in self.accounts)
            self.handles[key] = len(self.accounts)
            self.accounts.append(
                AccountPlan(
                    name=f"process {process}/{name}", process=process, index=index, weight=weight, priority=priority
                )
            )
        return self.handles[key]

    def graph_plans(self, model: Model, graphs: tuple[Graph, ...]) -> list[GraphPlan]:
        """Return the graphs of one step, numbered."""
        device = self.scenario.device
        width = width_of(model, device)
        contexts = [c.name for c in model.contexts]
        parts = model.split if model.role == "vit" else 1
        plans = []
        for draw, graph in enumerate(graphs):
            for part in range(parts):
                name = f"{model.name}/{graph.name}" + (f"#{part + 1}/{parts}" if parts > 1 else "")
                if name not in self.tables:
                    self.graphs.append(name)
                    self.tables[name] = solo_and_demand(graph, parts, part, width, device)
                solo, demand = self.tables[name]
                plans.append(
                    GraphPlan(
                        number=self.graphs.index(name), name=name, context=contexts.index(graph.context), draw=draw,
                        solo_ns=solo, demand=demand, qnn=graph.qnn, vtcm_bytes=min(graph.vtcm_bytes, device.vtcm_bytes)
                        if graph.qnn else graph.vtcm_bytes, hvx=graph.hvx, hmx=graph.hmx, width=width,
                    )
                )  # fmt: skip
        return plans

    def model_plan(self, model: Model, priority: str, path: str, account: int, registry: tuple[bool, str]) -> ModelPlan:
        """Return one model of one client, numbered."""
        guarded = path == "genie" and account != NO_ACCOUNT
        return ModelPlan(
            model=model,
            level=level_of(priority, self.scenario.device),
            guarded=guarded,
            account=account if guarded else NO_ACCOUNT,
            bypass=path == "genie" and not guarded,
            via_registry=registry[0],
            copies=registry[1],
            graphs=self.graph_plans(model, model.graphs),
            prefill=self.graph_plans(model, model.prefill),
            decode=self.graph_plans(model, model.decode),
        )

    def vit_account(self, instance: Instance) -> int:
        """Return the account the ViT's guarded calls use, given when weights are registered."""
        guard = self.scenario.guard
        if guard.registration == "thread":
            return self.account(instance.name, instance.process, instance.weight, instance.guard_priority)
        if instance.stale_handle_of:
            other = next(i for i in self.scenario.instances if i.name == instance.stale_handle_of)
            return self.account(other.name, instance.process, other.weight, other.guard_priority)
        if guard.unregistered == "bypass":
            return NO_ACCOUNT
        return self.account(f"{instance.name} unregistered", instance.process, guard.default_weight, 0)

    def instance(self, number: int, instance: Instance) -> ClientPlan:
        """Plan one VLM."""
        registry, runtime = self.scenario.registry, self.scenario.runtime
        plan = ClientPlan(number=number, name=instance.name, process=instance.process, spec=instance, models=[])
        if instance.llm is not None and instance.llm_path == "genie":
            self.account(instance.name, instance.process, instance.weight, instance.guard_priority)
        if instance.vit is not None:
            path, shared = instance.vit_path, registry.vit
            if path == "genie" and not runtime.embedding_raw_apis:
                thrown = (
                    "the ViT-on-Genie wrapper throws at creation: this runtime has no raw embedding API (as in 2.46)"
                )
                if runtime.on_throw == "fail":
                    plan.failure = thrown
                    return plan
                path, shared = "qnn", False
                self.notes.append(f"{instance.name}: {thrown}; its ViT fell back to path qnn with a copy of its own")
            account = self.vit_account(instance) if path == "genie" else NO_ACCOUNT
            plan.vit = self.model_plan(
                instance.vit, instance.vit_priority, path, account, (shared, registry.vit_copies)
            )
            plan.models.append(plan.vit)
        if instance.llm is not None:
            account = NO_ACCOUNT
            if instance.llm_path == "genie":
                account = self.account(instance.name, instance.process, instance.weight, instance.guard_priority)
            plan.llm = self.model_plan(
                instance.llm, instance.llm_priority, instance.llm_path, account, (registry.llm, registry.llm_copies)
            )
            plan.models.append(plan.llm)
        return plan

    def other(self, number: int, client: OtherClient) -> ClientPlan:
        """Plan one other client."""
        account = NO_ACCOUNT
        if client.path == "genie":
            account = self.account(client.name, client.process, client.weight, client.guard_priority)
        model = self.model_plan(client.model, client.priority, client.path, account, (False, "per-core"))
        return ClientPlan(number=number, name=client.name, process=client.process, spec=client, models=[model])


def make_plan(scenario: Scenario) -> Plan:
    """Return a scenario that has passed its checks, numbered.

    >>> make_plan(Scenario()).clients
    []
    """
    planner = _Planner(scenario)
    clients = [planner.instance(n, i) for n, i in enumerate(scenario.instances)]
    clients += [planner.other(len(clients) + n, c) for n, c in enumerate(scenario.clients)]
    return Plan(
        scenario=scenario, clients=clients, graphs=planner.graphs, accounts=planner.accounts, notes=planner.notes
    )
