"""A measurement as a preset: a scenario file of one model, with what it was measured with on top.

It is written by what writes a calibrated scenario, so its service time is chosen by the same table: a constant for few
or equal runs, the runs themselves for many. Its chip is the processor, so no scenario mixes it with figures of an HTP.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal, TypeAlias

from htpsim.errors import HtpsimError
from htpsim.experiments.calibrate.build import build
from htpsim.experiments.calibrate.calibration import Calibration
from htpsim.experiments.calibrate.evidence import ContextBytes, Evidence, Origin, Stated, Timing, counted, plain_name
from htpsim.experiments.calibrate.leaf import Asked
from htpsim.experiments.calibrate.service import COLD
from htpsim.experiments.measured.measurement import Measured, Measurement
from htpsim.units import NS_PER_S, format_bytes, format_time

Role: TypeAlias = Literal["vit", "other"]
ROLES: Final[tuple[Role, ...]] = ("other", "vit")


def preset(
    measurement: Measurement, *, threads: int | None = None, role: Role = "other", image_tokens: int | None = None
) -> Calibration:
    """Return the preset of a measurement; its ``write`` writes it whole or not at all.

    Parameters
    ----------
    measurement
        What was measured.
    threads
        Which of its numbers of threads; by default the first.
    role
        What the model is in a scenario: a client's "other", or the "vit" of an instance.
    image_tokens
        Of a ViT: prompt tokens that one image becomes.

    Raises
    ------
    HtpsimError
        When it was not measured with so many threads.
    """
    by_threads = {one.threads: one for one in measurement.measured}
    chosen = measurement.measured[0].threads if threads is None else threads
    if chosen not in by_threads:
        raise HtpsimError(f"preset: got {chosen} threads, expected one of {', '.join(map(str, by_threads))}")
    measured = by_threads[chosen]
    evidence = _evidence(measurement, measured, role)
    tree = build(evidence, Asked(image_tokens=image_tokens))
    model, machine = measurement.model, measurement.machine
    tree["title"] = f"{model.title} with {machine.runtime} on {machine.cpu}, {_threads(chosen)}"
    return Calibration(
        (model.title,),
        tree,
        (*evidence.warnings, *measurement.doubts(measured)),
        heading=tuple(_heading(measurement, measured)),
    )


def _evidence(measurement: Measurement, measured: Measured, role: Role) -> Evidence:
    model, machine = measurement.model, measurement.machine
    what = f"run with {machine.runtime}, {_threads(measured.threads)}, {machine.cpu}, {machine.date}"
    origin = Origin(model.title, what=what)
    found = measured.latency
    evidence = Evidence(files=[model.title], chips=[(machine.chip, origin)])
    evidence.timings.append(
        Timing(
            role=role,
            stage="graphs",
            graph=plain_name(model.graph, 0),
            origin=origin,
            counts=counted(tuple(run.netrun_ns for run in measured.runs)),
            n=found.n,
        )
    )
    weights = Stated(model.weights_bytes, Origin(model.title, what="constants of the model"), "measured", "bytes")
    evidence.contexts.append(
        ContextBytes(role=role, name=plain_name(model.graph, 0), graphs=(), terms={"weights": weights})
    )
    if model.weights_bytes and measurement.cold_load_ns:
        rate = model.weights_bytes * NS_PER_S // measurement.cold_load_ns
        note = f"{model.weights_bytes} bytes of weights in {format_time(measurement.cold_load_ns)}"
        evidence.device["load_bandwidth"] = Stated(max(1, rate), origin, "derived", "bytes_per_s", 1, note)
    if measured.first_ns > COLD * found.median_ns:
        more = measured.first_ns - found.median_ns
        note = f"its first run, {format_time(measured.first_ns)}, less the median of the others"
        evidence.device["first_call"] = Stated(more, origin, "derived", "ns", 1, note)
    return evidence


def _threads(count: int) -> str:
    return f"{count} thread{'s' * (count > 1)}"


def _heading(measurement: Measurement, measured: Measured) -> Iterator[str]:
    """Yield all that is needed to measure the same again."""
    model, machine, found = measurement.model, measurement.machine, measured.latency
    yield f"Written by htpsim measure: {machine.command}"
    yield f"model: {model.title}, {model.file_bytes} bytes, SHA-256 {model.sha256}"
    yield f"opset {model.opset}, {model.nodes} nodes, {model.weights_bytes} bytes of weights"
    if model.dims:
        yield f"dimensions: {', '.join(f'{name}={length}' for name, length in model.dims.items())}"
    yield f"inputs: drawn with seed {model.seed}"
    yield f"runtime: {machine.runtime}, {', '.join(machine.providers)}, {_threads(measured.threads)}, no spinning"
    governor = f", frequency by '{machine.governor}'" if machine.governor else ""
    yield f"machine: {machine.cpu}, {machine.architecture}, {machine.cpus} CPUs, {machine.system}{governor}"
    yield f"date: {machine.date}"
    before = f"a first one of {format_time(measured.first_ns)} and {len(measured.warmup_ns)} to warm up"
    yield f"runs: {found.n} after {before}"
    if measured.resident_bytes is not None:
        yield f"memory: the session with its runs held {format_bytes(measured.resident_bytes)} of the process"
    yield "A CPU's time. It says nothing about an HTP, and a scenario cannot mix it with figures of one."
