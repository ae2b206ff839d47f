"""What the compiled engine takes. Whatever it does not know is refused by name, never ignored.

The tables name every parameter of the specification that the engine honours, and where one is a word, the words. A new
parameter is not in them, so a scenario that sets it runs in the reference engine until somebody has looked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Final

from htpsim.sched import POLICIES
from htpsim.spec import Scenario

Honoured = Mapping[str, frozenset[str]]
"""Name of a class of the specification -> its parameters that are known."""
Words = Mapping[tuple[str, str], tuple[object, ...]]
"""(class, parameter) -> the words that are known."""

TURNS_MAX: Final = 62
"""Guards and cores that may ask for their turn in one instant: bits of an int64."""

HONOURED: Final[dict[str, frozenset[str]]] = {
    name: frozenset(words.split())
    for name, words in {
        "Scenario": "name title device guard registry runtime run instances clients",
        "Device": "name arch cores topology vtcm_bytes hvx hmx dram_bandwidth core_dram_bandwidth background_bandwidth "
        "background_on_ns background_off_ns load_bandwidth yield_rule yield_latency_ns yield_interval_ns evict_ns "
        "restore_ns priority_clamp acquire_ns power_up_ns power_up_warm_ns idle_timeout_ns first_call_ns "
        "throttle_after_ns throttle_speed throttle_rest_ns rpc_call_ns rpc_return_ns rpc_polling_ns rpc_wake_ns "
        "gang_efficiency dram_budget_bytes host_budget_bytes pd_bytes pd_rule pd_count mapping_limit_bytes "
        "contexts_per_process model_reserve_bytes pge pge_rate leak_bytes",
        "Guard": "policy params slots slots_per scope registration unregistered default_weight overhead_ns gap_inside "
        "covers",
        "Registry": "llm vit llm_copies vit_copies waits_for_load adapters",
        "Runtime": "embedding_raw_apis on_throw make_room",
        "Run": "duration_ns warmup_ns seed replications engine",
        "Instance": "name process weight guard_priority vit llm vit_path vit_thread llm_path vit_priority llm_priority "
        "arrivals images text_tokens output_tokens dialog_turns queue_limit drop host_gap_graph_ns host_gap_step_ns "
        "host_gap_stage_ns "
        "stale_handle_of ttft_deadline_ns itl_deadline_ns adapter "
        "vit_residency",
        "OtherClient": "name model process path weight guard_priority priority arrivals outstanding when_full "
        "host_gap_ns deadline_ns",
        "Arrivals": "kind think period_ns jitter_ns offset_ns times_ns",
        "Model": "name role contexts graphs prefill decode ar context_tokens kv_bytes tokens_per_image lm_head_split "
        "split built_for_cores placement load options file_kept read_budget_bytes weight_sharing "
        "graph_switch_ns lora_switch_ns",
        "Graph": "name context service dram_bytes qnn vtcm_bytes hvx hmx tier_tokens",
        "Context": "name weights_bytes run_list_bytes io_bytes spill_fill_bytes vtcm_backup_bytes file_bytes "
        "load_bytes",
        "Distribution": "kind mean cv sample low high stages",
    }.items()
}

WORDS: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("Device", "topology"): ("one-device", "device-per-core", "gang"),
    ("Device", "yield_rule"): ("latency", "grid"),
    ("Device", "pd_rule"): ("by-model", "any"),
    ("Guard", "slots_per"): ("process", "core"),
    ("Guard", "scope"): ("graph", "request"),
    ("Guard", "registration"): ("thread", "query"),
    ("Guard", "unregistered"): ("default-weight", "bypass"),
    ("Guard", "covers"): ("execute", "switches"),
    ("Registry", "llm_copies"): ("per-core", "per-device", "per-process"),
    ("Registry", "vit_copies"): ("per-core", "per-device", "per-process"),
    ("Registry", "adapters"): ("keys", "turns"),
    ("Runtime", "on_throw"): ("fail", "fallback"),
    ("Runtime", "make_room"): ("never", "idle"),
    ("Run", "engine"): ("auto", "reference", "kernel"),
    ("Instance", "vit_path"): ("genie", "qnn", "host"),
    ("Instance", "vit_residency"): ("stays", "request"),
    ("Instance", "vit_thread"): ("same", "own"),
    ("Instance", "llm_path"): ("genie", "qnn"),
    ("Instance", "drop"): ("oldest", "newest"),
    ("OtherClient", "path"): ("genie", "qnn"),
    ("OtherClient", "when_full"): ("block", "drop"),
    ("Arrivals", "kind"): ("closed", "periodic", "poisson", "replay"),
    ("Model", "role"): ("vit", "llm", "other"),
    ("Model", "load"): ("read", "mmap"),
    ("Distribution", "kind"): ("constant", "sample", "exponential", "lognormal", "uniform", "erlang"),
}


def unsupported(scenario: Scenario) -> str:
    """Return the first thing in a scenario that the compiled engine does not know, or "".

    Examples
    --------
    >>> unsupported(Scenario())
    ''
    """
    found = next(unknown_parameters(scenario, HONOURED, WORDS), "")
    if found:
        return found
    turns = scenario.device.cores + len({i.process for i in scenario.instances} | {c.process for c in scenario.clients})
    if turns > TURNS_MAX:
        return f"{turns} guards and cores, of at most {TURNS_MAX}"
    return next(_empty(scenario), "")


def is_built_in(scenario: Scenario) -> bool:
    """Tell whether the guard's policy is one of htpsim's own."""
    return scenario.guard.policy in POLICIES


def unknown_parameters(spec: Any, honoured: Honoured, words: Words, prefix: str = "") -> Iterator[str]:
    """Yield the dotted name of every parameter that is set and not in the tables.

    Parameters
    ----------
    spec : dataclass
        A scenario, or a part of one.
    honoured, words : mapping
        The parameters that are known by the name of their class; of those that are a word, the words.
    prefix : str
        Where `spec` stands in the scenario.

    Examples
    --------
    >>> list(unknown_parameters(Scenario(), {"Scenario": frozenset()}, {}))[:2]
    []
    """
    kind = type(spec).__name__
    known = honoured.get(kind, frozenset())
    for f in fields(spec):
        name = f"{prefix}.{f.name}" if prefix else f.name
        value = getattr(spec, f.name)
        if f.name not in known:
            default = f.default_factory() if f.default_factory is not MISSING else f.default
            if value != default:
                yield name
        elif (kind, f.name) in words and value not in words[kind, f.name]:
            yield f'{name} = "{value}"'
        elif is_dataclass(value):
            yield from unknown_parameters(value, honoured, words, name)
        elif isinstance(value, tuple) and value and is_dataclass(value[0]):
            for item in value:
                yield from unknown_parameters(item, honoured, words, f"{name}.{getattr(item, 'name', '?')}")


def _empty(scenario: Scenario) -> Iterator[str]:
    """Yield where a step has no graph at all, which nothing but the reference engine's words can tell."""
    for instance in scenario.instances:
        if instance.vit is not None and not instance.vit.graphs:
            yield f"{instance.name}: a ViT without graphs"
        llm = instance.llm
        if llm is not None and not (len(llm.prefill) > llm.lm_head_split and llm.decode):
            yield f"{instance.name}: an LLM without graphs"
    for client in scenario.clients:
        if not client.model.graphs:
            yield f"{client.name}: a model without graphs"
