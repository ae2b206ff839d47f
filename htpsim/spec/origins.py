"""Where the default of each parameter comes from, and the rules that have no parameter; for the page on the model.

A parameter of mark ``choice`` has no origin: its value is the user's. A default that switches a rule off says where a
value may be found instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from htpsim.spec.param import Mark

_YIELD: Final = "vendor documentation, page on yielding"
_CHOSEN: Final = "chosen; nothing is published"
_PRODUCT: Final = "off: it depends on the product"
_LOG: Final = "a public console log prints it for each context"

ORIGINS: Final[Mapping[str, str]] = MappingProxyType({
    "Device.arch": "vendor documentation: the first with weight sharing and coexistence, and that of SA8255P",
    "Device.cores": "vendor documentation: most chips have one",
    "Device.topology": "chosen: what a device lists is the runtime's affair",
    "Device.vtcm_bytes": "public table of chips in executorch: 8 MB from v68 to v81",
    "Device.hvx": "a public profile counts 4",
    "Device.hmx": "vendor documentation, page on yielding: HMX is exclusive",
    "Device.dram_bandwidth": "off: 26 to 64 GB/s were measured, chip by chip",
    "Device.core_dram_bandwidth": "off: 15.8 GB/s was seen from one DSP (executorch#18806)",
    "Device.background_bandwidth": _PRODUCT,
    "Device.background_on_ns": _PRODUCT,
    "Device.background_off_ns": _PRODUCT,
    "Device.load_bandwidth": "off: a public set of loads took 1.6 to 6.5 s for 637 to 1,020 MB, at no constant rate",
    "Device.yield_rule": f"{_CHOSEN}; the printed timelines come out under it",
    "Device.yield_latency_ns": "the order of one save of VTCM, 8 MB at 30 to 60 GB/s",
    "Device.yield_interval_ns": _CHOSEN,
    "Device.evict_ns": "8 MB at 30 to 60 GB/s: 0.13 to 0.27 ms",
    "Device.restore_ns": "8 MB at 30 to 60 GB/s: 0.13 to 0.27 ms",
    "Device.priority_clamp": "QNN API documentation: without the OEM key it may happen, and is not told",
    "Device.acquire_ns": "off: within most published times; 199 us warm in a public profile of V79",
    "Device.power_up_ns": "off: 5.8 ms at a first call in a public profile of V79, 309 us in a public run trace",
    "Device.power_up_warm_ns": "off: 36 us in a public profile of V79",
    "Device.idle_timeout_ns": "vendor documentation: hmx_timeout_us is 300,000",
    "Device.first_call_ns": "off: a public run trace has 411 us, then 49, then 37",
    "Device.throttle_after_ns": "off: a public test of phones in continuous use (MegaDetector#34)",
    "Device.throttle_speed": "off: the same test, 196 ms at first and about 400 at last on one phone",
    "Device.throttle_rest_ns": _CHOSEN,
    "Device.rpc_call_ns": "off: within most published times; about 43 us a dispatch on V79",
    "Device.rpc_return_ns": "off: within most published times",
    "Device.rpc_polling_ns": "off; vendor documentation: rpc_polling_time, 9,999 us by default and at most",
    "Device.rpc_wake_ns": "off: without polling a token took 21 ms longer in one public report (Foundry-Local#1081)",
    "Device.pge": "off; vendor documentation: to be asked for, and excluded with several cores",
    "Device.pge_rate": "what sharing the units fairly would give two graphs",
    "Device.gang_efficiency": _CHOSEN,
    "Device.pd_bytes": "public reports of 3.2 to 3.5 GB (llama.cpp#22487, GenieX#1155); documented are 3.75",
    "Device.pd_rule": "a public log of a ViT in PD 0 and its LLM in PD 2 (qai-appbuilder)",
    "Device.pd_count": "a public thread counts up to 4 sessions a process (PowerServe#6)",
    "Device.mapping_limit_bytes": "off: a buffer of 1.08 GB failed in one thread, of 467 MB in another",
    "Device.contexts_per_process": "off: nothing is published",
    "Device.model_reserve_bytes": "off: nothing is published",
    "Device.leak_bytes": "off: threads report that repeated loads fail in the end (qai-appbuilder#97)",
    "Guard.policy": "chosen: the seed speaks of weights; the fork is private",
    "Guard.params": "of each policy: `htpsim policies`",
    "Guard.slots": _CHOSEN,
    "Guard.slots_per": _CHOSEN,
    "Guard.scope": "the seed: the guard sits inside execute()",
    "Guard.registration": "the seed: weights are registered on the thread",
    "Guard.unregistered": _CHOSEN,
    "Guard.default_weight": _CHOSEN,
    "Guard.overhead_ns": "off: nothing is published",
    "Guard.covers": "chosen: the seed puts the guard around graphExecute",
    "Guard.gap_inside": "chosen: public figures of workers behind one lock fit both",
    "Registry.llm": "the seed: LLM weights are shared",
    "Registry.llm_copies": _CHOSEN,
    "Registry.vit_copies": _CHOSEN,
    "Registry.adapters": "chosen: nothing is published, and it can only cost bytes",
    "Registry.waits_for_load": "chosen: what a registry that inserts first does",
    "Runtime.embedding_raw_apis": "the seed, of a runtime that has it; 2.46 does not",
    "Runtime.make_room": "chosen: no runtime is known to do it; an application did (onnxruntime-genai#1346)",
    "Runtime.on_throw": _CHOSEN,
    "Model.ar": "public models: AR-128 is usual",
    "Model.context_tokens": "public models: 4096 is usual",
    "Model.kv_bytes": "off: 2 x layers x KV heads x head size x context, at one byte each",
    "Model.tokens_per_image": "a public model of 512 x 512 pixels",
    "Model.lm_head_split": "chosen: published chunk times include the LM head",
    "Model.built_for_cores": "chosen: configurations name cores, and some binaries ignore them",
    "Model.placement": _CHOSEN,
    "Model.load": "public configurations: use-mmap true is usual",
    "Model.file_kept": "public threads on sessions that each keep a heap copy (onnxruntime#26952)",
    "Model.read_budget_bytes": "off; vendor documentation: file_read_memory_budget_in_mb",
    "Model.weight_sharing": "vendor documentation: a property of the binary, from v73 on",
    "Model.options": "none",
    "Model.graph_switch_ns": "off; vendor documentation: one set is loaded, and used by one at a time",
    "Model.lora_switch_ns": "off: Genie's profile prints lora-adapter-switching-time",
    "Context.weights_bytes": _LOG,
    "Context.run_list_bytes": _LOG,
    "Context.io_bytes": _LOG,
    "Context.spill_fill_bytes": _LOG,
    "Context.vtcm_backup_bytes": _LOG,
    "Context.file_bytes": "the file itself",
    "Context.load_bytes": "off: I/O estimation raises the peak of init, says one public thread (onnxruntime-qnn#752)",
    "Graph.service": "measured or published, graph by graph",
    "Graph.dram_bytes": "off: the generator of context binaries prints bytes read and written",
    "Graph.qnn": "what it is",
    "Graph.vtcm_bytes": "vendor documentation: vtcm_mb; all of it by default",
    "Graph.hvx": "vendor documentation: hvx_threads",
    "Graph.hmx": "vendor documentation: a graph that multiplies matrices takes it",
    "Graph.tier_tokens": "off; public bundles of several context lengths, whose graphs have the length in their name",
    "Instance.vit_thread": "the seed: ViT and LLM run on one worker thread",
    "Instance.host_gap_graph_ns": "off: measured on one's own host",
    "Instance.host_gap_stage_ns": "off: some tens of microseconds on the testbed of real threads (docs/trust.md)",
    "Instance.host_gap_step_ns": "off: 7 to 194 ms a token follow from public reports",
    "Instance.stale_handle_of": _CHOSEN,
    "OtherClient.when_full": "vendor documentation: a full queue blocks its caller",
    "OtherClient.host_gap_ns": "off: measured on one's own host",
    "Arrivals.think": "chosen: drawn, because a constant one locks phase",
})  # fmt: skip
"""By class and field; every parameter that is no choice has one."""


class Fixed(NamedTuple):
    """A rule without a parameter."""

    rule: str
    mark: Mark
    origin: str
    where: str
    """module that has it"""


FIXED: Final = (
    Fixed("a core runs one QNN graph at a time, unless graphs run in parallel", "doc", _YIELD, "device.admission"),
    Fixed("higher priority evicts, equal and lower wait until the graph ends", "doc", _YIELD, "device.admission"),
    Fixed("other clients coexist with a QNN graph in its PD, within HMX, HVX and VTCM", "doc", _YIELD,
          "device.admission"),
    Fixed("a victim keeps its remaining work and its arrival, and pays a restore", "doc", _YIELD, "device.rules"),
    Fixed("executions of one context queue in one FIFO", "doc", "vendor documentation, asynchronous execution",
          "device.contexts"),
    Fixed("graphs in parallel take turns at HMX and HVX, and have VTCM each of their own", "assumed",
          "follows from their being allowed at all: VTCM, priority and process are all that is asked",
          "device.admission"),
    Fixed("a graph of k cores starts and is evicted on all together", "assumed", "how else would it run",
          "device.admission"),
    Fixed("graphs share DRAM max-min fairly, a core's and the device's", "measured",
          "two NSPs of SA8255P keep 0.64 and 0.84 of their speed (open-genie-server)", "device.bandwidth"),
    Fixed("evict, restore and acquire hold the core and draw no bandwidth", "assumed", _CHOSEN, "device.bandwidth"),
    Fixed("whether a core is throttled is decided when a graph starts", "assumed", "graphs are short beside heat",
          "device.holding"),
    Fixed("a guard is a process's, and charges the time on a core at release", "seed", "the guard's place in the fork",
          "sched.guard"),
    Fixed("on path qnn a call meets no guard", "seed", "the legacy ViT", "sim.runtime"),
    Fixed("an instance has one call out at a time on a thread", "seed", "one worker thread", "sim.vlm"),
    Fixed("a ViT on a thread of its own carries no dialog handle", "seed", "handles are thread-local", "spec.plan"),
    Fixed("prefill takes ceil(prompt / AR) passes and yields the first token", "measured",
          "published first-token times are multiples of one pass", "sim.vlm"),
    Fixed("a step takes the graphs of the least context length that holds its tokens", "measured",
          "a public log of four lengths", "spec.tiers"),
    Fixed("a ViT on the host meets no guard, no core and no device memory, and no other ViT", "assumed",
          "CPU and GPU are not modelled", "sim.vlm"),
    Fixed("a context reserves five terms once, a user adds I/O and KV", "measured",
          "a public log whose terms sum to what it reserves", "memory.plan"),
    Fixed("a context goes to the first PD with room and is never split", "doc", "vendor documentation and its example",
          "memory.plan"),
    Fixed("a mapped file is in host memory once, one that is read once a load", "measured",
          "public threads (onnxruntime#26952)", "memory.plan"),
    Fixed("loads share the load bandwidth equally", "assumed", _CHOSEN, "memory.loading"),
    Fixed("one copy a key and process; nothing is freed while a graph executes", "seed", "the registry",
          "memory.registry"),
    Fixed("with different adapters, or with graphs switched, a copy is used in turns of one request", "assumed",
          "an adapter changes weights; a set of graphs replaces another", "memory.turns"),
    Fixed("unloaded to make room is what was out of use for longest; a dialog keeps its KV cache", "assumed", _CHOSEN,
          "sim.residency"),
)  # fmt: skip
"""The rules that hold in every scenario."""
