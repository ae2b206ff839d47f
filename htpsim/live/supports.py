"""What the testbed takes of a scenario. Whatever it cannot do with threads and sessions is refused by name.

It has no accelerator: no VTCM to evict, no DRAM bandwidth of its own to share out, no polling. A core never interrupts
a graph, which is what a scenario says with a `device.yield_latency` longer than any graph.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from htpsim.errors import ScenarioError
from htpsim.kernel.supports import unknown_parameters
from htpsim.spec import Scenario
from htpsim.spec.distribution import table
from htpsim.spec.plan import level_of
from htpsim.units import NS_PER_S, format_time

_IN_A_GRAPH: Final = re.compile(r"^instances\.[^.]+\.(vit|llm)\.(graphs|prefill|decode)\.[^.]+\.")
"""Graphs of a model have the same parameters set, as a rule, and instances the same models: they are told once."""
UNINTERRUPTED_NS: Final = NS_PER_S
"""A yield latency from which on no graph of the testbed is ever interrupted [ns]."""

INSTANCES_MAX: Final = 32
"""Threads that the testbed is willing to start."""

GRAPH_MAX_NS: Final = 10 * NS_PER_S
"""The longest that a graph may take: nobody interrupts it, so the end of a run waits for it [ns]."""

REQUESTS_MAX: Final = 1_000_000
"""Requests of one instance that may arrive in a run; a thread could not even count more in the time they take."""

DURATION_MAX_NS: Final = 3_600 * NS_PER_S

HONOURED: Final[dict[str, frozenset[str]]] = {
    name: frozenset(words.split())
    for name, words in {
        "Scenario": "name title device guard registry runtime run instances clients",
        # What concerns evicting has no effect where nothing is evicted; bytes are counted as the engines count them.
        "Device": "name arch cores topology vtcm_bytes hvx hmx yield_rule yield_latency_ns yield_interval_ns evict_ns "
        "restore_ns idle_timeout_ns priority_clamp dram_budget_bytes host_budget_bytes pd_bytes pd_rule pd_count "
        "mapping_limit_bytes contexts_per_process model_reserve_bytes",
        "Guard": "policy params slots slots_per scope registration unregistered default_weight covers",
        "Registry": "llm vit llm_copies vit_copies waits_for_load adapters",
        "Runtime": "embedding_raw_apis on_throw make_room",
        "Run": "duration_ns warmup_ns seed replications engine",
        "Instance": "name process weight guard_priority vit llm vit_path vit_thread vit_residency llm_path "
        "vit_priority llm_priority arrivals images text_tokens output_tokens dialog_turns queue_limit drop "
        "host_gap_graph_ns host_gap_step_ns stale_handle_of ttft_deadline_ns itl_deadline_ns",
        "Arrivals": "kind think period_ns jitter_ns offset_ns times_ns",
        "Model": "name role contexts graphs prefill decode ar context_tokens kv_bytes tokens_per_image split placement "
        "load options file_kept read_budget_bytes weight_sharing",
        "Graph": "name context service qnn vtcm_bytes hvx hmx tier_tokens",
        "Context": "name weights_bytes run_list_bytes io_bytes spill_fill_bytes vtcm_backup_bytes file_bytes "
        "load_bytes",
        "Distribution": "kind mean cv sample low high stages",
    }.items()
}

WORDS: Final[dict[tuple[str, str], tuple[object, ...]]] = {
    ("Device", "topology"): ("one-device", "device-per-core"),
    ("Guard", "slots_per"): ("process", "core"),
    ("Guard", "scope"): ("graph",),
    ("Guard", "registration"): ("thread", "query"),
    ("Guard", "unregistered"): ("default-weight", "bypass"),
    ("Guard", "covers"): ("execute",),
    ("Registry", "adapters"): ("keys",),
    ("Registry", "waits_for_load"): (True,),
    ("Runtime", "make_room"): ("never",),
    ("Instance", "vit_path"): ("genie", "qnn"),
    ("Instance", "vit_thread"): ("same",),
    ("Instance", "vit_residency"): ("stays",),
    ("Instance", "llm_path"): ("genie", "qnn"),
    ("Arrivals", "kind"): ("closed", "periodic", "poisson", "replay"),
    ("Graph", "qnn"): (True,),
    ("Graph", "tier_tokens"): (0,),
}


def refuse_unsupported(scenario: Scenario) -> None:
    """Raise unless the testbed can do everything that a scenario asks for.

    Raises
    ------
    ScenarioError
        One line for everything that it cannot do.

    Examples
    --------
    >>> from htpsim.spec import Device
    >>> refuse_unsupported(Scenario(device=Device(dram_bandwidth=10**9)))
    Traceback (most recent call last):
    htpsim.errors.ScenarioError: live: got device.dram_bandwidth, which the testbed cannot do
    """
    found = [f"live: got {name}, which the testbed cannot do" for name in dict.fromkeys(_refused(scenario))]
    if found:
        raise ScenarioError(*found)


def _refused(scenario: Scenario) -> Iterator[str]:
    for name in unknown_parameters(scenario, HONOURED, WORDS):
        yield _IN_A_GRAPH.sub(r"\1.\2.*.", name)
    if scenario.clients:
        yield f"clients.{scenario.clients[0].name}: other clients than instances"
    if len(scenario.instances) > INSTANCES_MAX:
        yield f"{len(scenario.instances)} instances, of at most {INSTANCES_MAX}"
    if scenario.run.warmup_ns + scenario.run.duration_ns > DURATION_MAX_NS:
        yield "a run of more than an hour"
    if _longest_ns(scenario) > GRAPH_MAX_NS:
        yield f"a graph of {format_time(_longest_ns(scenario))}, of at most {format_time(GRAPH_MAX_NS)}"
    levels = {
        level_of(priority, scenario.device)
        for i in scenario.instances
        for model, priority in ((i.vit, i.vit_priority), (i.llm, i.llm_priority))
        if model is not None
    }
    device = scenario.device
    if len(levels) > 1 and (device.yield_rule != "latency" or device.yield_latency_ns < UNINTERRUPTED_NS):
        yield ('different QNN priorities, which evict; with device.yield_latency = "10s" a core finishes what it runs')
    length_ns = scenario.run.warmup_ns + scenario.run.duration_ns
    for instance in scenario.instances:
        arrivals = instance.arrivals
        if arrivals.kind in ("periodic", "poisson") and length_ns // max(1, arrivals.period_ns) > REQUESTS_MAX:
            yield f"{instance.name}: more than {REQUESTS_MAX:,} requests"
        yield from _empty(instance.name, instance)


def _longest_ns(scenario: Scenario) -> int:
    """Return the longest time that can be drawn for any graph."""
    models = [model for i in scenario.instances for model in (i.vit, i.llm) if model is not None]
    graphs = (graph for model in models for graph in (*model.graphs, *model.prefill, *model.decode))
    return max((int(table(graph.service)[-1]) for graph in graphs), default=0)


def _empty(name: str, instance: object) -> Iterator[str]:
    vit, llm = getattr(instance, "vit", None), getattr(instance, "llm", None)
    if vit is not None and not vit.graphs:
        yield f"{name}: a ViT without graphs"
    if llm is not None and not (llm.prefill and llm.decode):
        yield f"{name}: an LLM without graphs"
