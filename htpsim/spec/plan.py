"""From a scenario to what an engine needs: numbered clients, graphs with integer tables, guard accounts.

Everything that involves a float, a name or a library is done here, before an engine starts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from htpsim.errors import ScenarioError
from htpsim.spec.device import NORMAL, PRIORITIES, Device
from htpsim.spec.distribution import table
from htpsim.spec.limits import LARGEST, beyond_limits
from htpsim.spec.model import Graph, Model
from htpsim.spec.scenario import Scenario
from htpsim.spec.tiers import tiers_of
from htpsim.spec.work import Instance, OtherClient
from htpsim.units import NS_PER_S

NO_ACCOUNT = -1
NO_HANDLE = ""
WRAPPER_THROWS = "the ViT-on-Genie wrapper throws at creation: this runtime has no raw embedding API (as in 2.46)"
Table = npt.NDArray[np.int64]
T = TypeVar("T", int, Table)


@dataclass(slots=True, kw_only=True)
class GraphPlan:
    """One graph ready to execute."""

    number: int
    name: str
    """"model/graph"; "#2/4" is appended to a segment of a cut graph"""
    context: int
    """position of its context in the model"""
    draw: int
    """which draw of a step it uses: segments of a cut graph share it, and so do the graphs of one place in the sets
    for several context lengths, so that neither a cut nor a tier moves any other draw"""
    solo_ns: Table
    """quantile table of its time alone"""
    demand: Table
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
    """set by set, as `prefill_tiers` lists them; all sets are of one size"""
    decode: list[GraphPlan] = field(default_factory=list)
    prefill_tiers: list[int] = field(default_factory=lambda: [0])
    """context lengths, ascending; [0]: one set for all"""
    decode_tiers: list[int] = field(default_factory=lambda: [0])
    adapter: str = ""
    """LoRA adapter that it answers with"""
    switches: bool = False
    """its copy changes: graphs are switched, or some instance answers on the model with an adapter"""
    on_host: bool = False
    """never meets guard or device: a ViT on CPU or GPU"""

    @property
    def all_graphs(self) -> list[GraphPlan]:
        """Every graph of the model, in the order graphs, prefill, decode."""
        return self.graphs + self.prefill + self.decode


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


def solo_and_demand(graph: Graph, parts: int, part: int, width: int, device: Device) -> tuple[Table, Table]:
    """Return the tables of time alone and DRAM demand of segment `part` of `parts` of a graph on `width` cores.

    A graph cannot run faster than its cores can fetch its bytes; the last segment takes what division leaves.
    """
    solo: Table = table(graph.service)
    if width > 1:
        solo = np.maximum(1, np.rint(solo / (width * device.gang_efficiency)).astype(np.int64))
    solo = _part(solo, parts, part)
    work = _part(graph.dram_bytes, parts, part) * NS_PER_S
    if not work:
        return solo, np.zeros_like(solo)
    if work >= LARGEST:
        solo = solo.astype(object)  # Python's integers do not overflow; what is too large is refused
    if device.core_dram_bandwidth:
        solo = np.maximum(solo, -(-work // (device.core_dram_bandwidth * width)))
    return solo, -(-work // np.maximum(1, solo))


def _part(whole: T, parts: int, part: int) -> T:
    """Return part number `part` of `parts` equal ones; the last takes what division leaves."""
    share = whole // parts
    return whole - share * (parts - 1) if part == parts - 1 else share


class _Planner:
    """Numbers graphs and accounts while it walks the clients."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.graphs: list[str] = []
        self.accounts: list[AccountPlan] = []
        self.notes: list[str] = []
        self.handles: dict[tuple[int, str], int] = {}
        self.tables: dict[str, tuple[Table, Table]] = {}

    def open_accounts(self) -> None:
        """Open the guard accounts, in the order of the clients: that order decides ties."""
        scenario = self.scenario
        started = [i for i in scenario.instances if not self.throws(i)]
        handles = {(i.process, self.vit_handle(i)) for i in started}
        handles |= {(i.process, i.name) for i in started if i.llm is not None and i.llm_path == "genie"}
        for i in scenario.instances:
            if (i.process, i.name) in handles:
                self.account(i.name, i.process, i.weight, i.guard_priority)
            if i in started and self.vit_handle(i) == NO_HANDLE and scenario.guard.unregistered == "default-weight":
                self.account(f"{i.name} unregistered", i.process, scenario.guard.default_weight, 0)
        for c in scenario.clients:
            if c.path == "genie":
                self.account(c.name, c.process, c.weight, c.guard_priority)

    def account(self, name: str, process: int, weight: int, priority: int) -> None:
        """Open a guard account."""
        index = sum(a.process == process for a in self.accounts)
        self.handles[process, name] = len(self.accounts)
        self.accounts.append(
            AccountPlan(
                name=f"process {process}/{name}", process=process, index=index, weight=weight, priority=priority
            )
        )

    def throws(self, instance: Instance) -> bool:
        """Tell whether creating the instance throws, and ends there."""
        return self.wrapper_throws(instance) and self.scenario.runtime.on_throw == "fail"

    def wrapper_throws(self, instance: Instance) -> bool:
        """Tell whether creating its ViT-on-Genie wrapper throws."""
        wrapped = instance.vit is not None and instance.vit_path == "genie"
        return wrapped and not self.scenario.runtime.embedding_raw_apis

    def vit_handle(self, instance: Instance) -> str | None:
        """Return whose dialog handle the thread carries when its ViT calls the guard; None if it never does."""
        if instance.vit is None or instance.vit_path != "genie" or self.wrapper_throws(instance):
            return None
        if self.scenario.guard.registration == "thread" and instance.vit_thread == "same":
            return instance.name
        return instance.stale_handle_of or NO_HANDLE

    def vit_account(self, instance: Instance) -> int:
        """Return the account of that handle, or NO_ACCOUNT where a call without one goes past the guard."""
        handle = self.vit_handle(instance)
        if handle == NO_HANDLE:
            handle = f"{instance.name} unregistered"
        return NO_ACCOUNT if handle is None else self.handles.get((instance.process, handle), NO_ACCOUNT)

    def graph_plans(self, model: Model, graphs: tuple[Graph, ...]) -> list[GraphPlan]:
        """Return the graphs of one step, numbered."""
        device = self.scenario.device
        width = width_of(model, device)
        contexts = [c.name for c in model.contexts]
        parts = model.split if model.role == "vit" else 1
        plans = []
        tiers = tiers_of(graphs)
        in_set = max(1, len(graphs) // len(tiers))
        for place, graph in enumerate(sorted(graphs, key=lambda graph: graph.tier_tokens)):
            draw = place % in_set
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
            model=model.as_built(),
            level=level_of(priority, self.scenario.device),
            guarded=guarded,
            account=account if guarded else NO_ACCOUNT,
            bypass=path == "genie" and not guarded,
            via_registry=registry[0],
            copies=registry[1],
            graphs=self.graph_plans(model, model.graphs),
            prefill=self.graph_plans(model, model.prefill),
            decode=self.graph_plans(model, model.decode),
            prefill_tiers=tiers_of(model.prefill),
            decode_tiers=tiers_of(model.decode),
            on_host=path == "host",
        )

    def instance(self, number: int, instance: Instance) -> ClientPlan:
        """Plan one VLM."""
        registry = self.scenario.registry
        plan = ClientPlan(number=number, name=instance.name, process=instance.process, spec=instance, models=[])
        if self.throws(instance):
            plan.failure = WRAPPER_THROWS
            return plan
        if instance.vit is not None:
            path: str = instance.vit_path
            shared = registry.vit and path != "host"
            if self.wrapper_throws(instance):
                path, shared = "qnn", False
                self.notes.append(
                    f"{instance.name}: {WRAPPER_THROWS}; its ViT fell back to path qnn with a copy of its own"
                )
            account = self.vit_account(instance)
            plan.vit = self.model_plan(
                instance.vit, instance.vit_priority, path, account, (shared, registry.vit_copies)
            )
            plan.models.append(plan.vit)
        if instance.llm is not None:
            account = self.handles[instance.process, instance.name] if instance.llm_path == "genie" else NO_ACCOUNT
            plan.llm = self.model_plan(
                instance.llm, instance.llm_priority, instance.llm_path, account, (registry.llm, registry.llm_copies)
            )
            plan.llm.adapter = instance.adapter
            users = (other for other in self.scenario.instances if other.llm == instance.llm)
            plan.llm.switches = instance.llm.graph_switch_ns > 0 or any(other.adapter for other in users)
            plan.models.append(plan.llm)
        return plan

    def other(self, number: int, client: OtherClient) -> ClientPlan:
        """Plan one other client."""
        account = self.handles[client.process, client.name] if client.path == "genie" else NO_ACCOUNT
        model = self.model_plan(client.model, client.priority, client.path, account, (False, "per-core"))
        return ClientPlan(number=number, name=client.name, process=client.process, spec=client, models=[model])


def beyond_bytes(scenario: Scenario) -> list[str]:
    """Return what the sum of bytes cannot decide, a sentence for each model of which that is known.

    >>> beyond_bytes(Scenario())
    []
    """
    used = [model for i in scenario.instances for model in (i.vit, i.llm) if model is not None]
    told = []
    for model in dict.fromkeys([*used, *(client.model for client in scenario.clients)]):
        tiers = {graph.tier_tokens for graph in model.all_graphs if graph.tier_tokens}
        if len(tiers) > 1:
            told.append(
                f"{model.name}: has graphs for {len(tiers)} context lengths; its bytes are counted as given, and "
                "whether it loads may depend on more: a public report has such bundles fail where others of their size "
                "load"
            )
        if not model.weight_sharing:
            told.append(
                f"{model.name}: built without shared weights, so each set of graphs counts them whole; what a compiler "
                "makes of that is for the binary's own size to say"
            )
    return told


def make_plan(scenario: Scenario) -> Plan:
    """Return a scenario that has passed its checks, numbered.

    Raises
    ------
    ScenarioError
        When numbers could overflow during the run, or time could stand still.

    Examples
    --------
    >>> make_plan(Scenario()).clients
    []
    """
    planner = _Planner(scenario)
    planner.open_accounts()
    clients = [planner.instance(n, i) for n, i in enumerate(scenario.instances)]
    clients += [planner.other(len(clients) + n, c) for n, c in enumerate(scenario.clients)]
    plan = Plan(
        scenario=scenario, clients=clients, graphs=planner.graphs, accounts=planner.accounts,
        notes=[*planner.notes, *beyond_bytes(scenario)],
    )  # fmt: skip
    problems = beyond_limits(scenario, plan.slots(), planner.tables)
    if problems:
        raise ScenarioError(*problems)
    return plan
