"""Who asks for the HTP and when: arrivals, VLM instances, other clients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from htpsim.spec.distribution import Distribution, constant, exponential
from htpsim.spec.model import Model
from htpsim.spec.param import param
from htpsim.units import NS_PER_S

Path = Literal["genie", "qnn"]
VitPath = Literal["genie", "qnn", "host"]
"""``host`` is a ViT that runs on CPU or GPU, and never meets guard, HTP or device memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """When requests arrive. Closed loops wait for the answer, think, and ask again; the others do not wait."""

    kind: Literal["closed", "periodic", "poisson", "replay"] = param("choice", "arrival process", default="closed")
    think: Distribution = param(
        "assumed",
        "closed: pause between answer and next request; a constant one phase-locks",
        default=exponential(NS_PER_S),
        unit="ns",
    )
    period_ns: int = param("choice", "periodic: time between frames; poisson: mean time between", default=0, unit="ns")
    jitter_ns: int = param("choice", "periodic: each frame comes up to this much later", default=0, unit="ns")
    offset_ns: int = param("choice", "time of the first arrival after the start", default=0, unit="ns")
    times_ns: tuple[int, ...] = param("choice", "replay: arrival times, used once", default=(), unit="ns")


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One VLM: a ViT, an LLM, its KV cache, one worker thread, a process and a weight."""

    name: str
    """Its name in tables and files, and in overlays that change it alone."""
    process: int = param("choice", "process it lives in; guard and registry end there", default=0)
    weight: int = param("choice", "weight of its dialog handle in the guard", default=1)
    guard_priority: int = param("choice", "rank for the guard's priority policy; larger is served first", default=0)
    vit: Model | None = None
    """Its ViT: the name of a table in [models] of role vit; none: it takes no images."""
    llm: Model | None = None
    """Its LLM: the name of a table in [models] of role llm; none: it only encodes images."""
    adapter: str = param("choice", "LoRA adapter that its LLM answers with; none: the model as it is", default="")
    vit_path: VitPath = param(
        "choice", "how the ViT reaches the device; host: not at all, its times are those of CPU or GPU", default="qnn"
    )
    vit_residency: Literal["stays", "request"] = param(
        "choice",
        "request: the ViT is loaded for each request and unloaded when its images are encoded; the first load, before "
        "the LLM's, only shows that it fits",
        default="stays",
    )
    vit_thread: Literal["same", "own"] = param(
        "seed",
        "own: the ViT of the next request runs on a second thread, beside the LLM of this one",
        default="same",
    )
    llm_path: Path = param("choice", "how the LLM reaches the device", default="genie")
    vit_priority: str = param("choice", "QNN priority of the ViT's contexts", default="NORMAL")
    llm_priority: str = param("choice", "QNN priority of the LLM's contexts", default="NORMAL")
    arrivals: Arrivals = Arrivals()
    """When its requests arrive."""
    images: Distribution = param("choice", "images of a request", default=constant(1))
    text_tokens: Distribution = param("choice", "text tokens of a request's prompt", default=constant(64))
    output_tokens: Distribution = param("choice", "tokens it generates", default=constant(100))
    dialog_turns: int = param("choice", "requests before the dialog starts anew; its KV stays meanwhile", default=1)
    queue_limit: int | None = param("choice", "requests that may wait for the thread; none: no limit", default=None)
    drop: Literal["oldest", "newest"] = param("choice", "which waiting request a full queue drops", default="oldest")
    host_gap_graph_ns: int = param(
        "measured", "host time after each graph of a step but its last", default=0, unit="ns"
    )
    host_gap_step_ns: int = param("measured", "host time after each token", default=0, unit="ns")
    host_gap_stage_ns: int = param(
        "measured",
        "host time after the ViT of an image and after each chunk of a prompt but the last; with 0 the thread calls "
        "again before its slot is granted to another, for which no real guard waits",
        default=0,
        unit="ns",
    )
    stale_handle_of: str | None = param(
        "assumed",
        "instance whose dialog handle the pooled thread still carries before the query; none: it carries none",
        default=None,
    )
    ttft_deadline_ns: int | None = param("choice", "TTFT that counts as a miss beyond", default=None, unit="ns")
    itl_deadline_ns: int | None = param("choice", "ITL that counts as a miss beyond", default=None, unit="ns")


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherClient:
    """Anything else that uses the HTP: perception, speech, a benchmark loop. One job executes its graphs in order."""

    name: str
    """Its name in tables and files, and in overlays that change it alone."""
    model: Model
    """What it runs: the name of a table in [models] of role other or vit."""
    process: int = param("choice", "process it lives in", default=0)
    path: Path = param("choice", "how it reaches the device", default="qnn")
    weight: int = param("choice", "weight in the guard, on path genie", default=1)
    guard_priority: int = param("choice", "rank for the guard's priority policy", default=0)
    priority: str = param("choice", "QNN priority of its contexts", default="NORMAL")
    arrivals: Arrivals = Arrivals()
    """When its jobs arrive."""
    outstanding: int = param("choice", "jobs it may have in flight; 0: unlimited", default=1)
    when_full: Literal["block", "drop"] = param("doc", "what happens to a job beyond that", default="block")
    host_gap_ns: int = param("measured", "host time after each graph of a job", default=0, unit="ns")
    deadline_ns: int | None = param("choice", "job latency that counts as a miss beyond", default=None, unit="ns")
