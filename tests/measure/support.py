"""A measurement made by hand, so that no test depends on a clock."""

from __future__ import annotations

from collections.abc import Sequence

from htpsim.experiments.measured import Machine, Measured, Measurement, Model
from htpsim.formats.writers.measured import Execution, Operator

MS = 1_000_000


def runs(times_ns: Sequence[int], operators: tuple[Operator, ...] = ()) -> tuple[Execution, ...]:
    """Return runs back to back; with operators, as a profiler saw them."""
    ends = [sum(times_ns[: number + 1]) for number in range(len(times_ns))]
    execute = [time - 1_000 if operators else None for time in times_ns]
    return tuple(Execution(*each, operators) for each in zip(ends, times_ns, execute, strict=True))


def measured(times_ns: Sequence[int] = (4 * MS, 5 * MS, 6 * MS), threads: int = 1, **more: object) -> Measured:
    """Return the runs of one number of threads."""
    given = {
        "load_ns": 20 * MS, "first_ns": 9 * MS, "warmup_ns": (5 * MS,), "cpu_ns": sum(times_ns),
        "resident_bytes": 64 * 2**20, "switched": 0, **more,
    }  # fmt: skip
    return Measured(threads=threads, runs=runs(times_ns), **given)  # type: ignore[arg-type]


def measurement(*each: Measured, title: str = "small net.onnx", weights_bytes: int = 40_000_000) -> Measurement:
    """Return a measurement of an invented model on an invented machine."""
    return Measurement(
        model=Model(
            title=title, sha256="ab" * 32, file_bytes=41_000_000, weights_bytes=weights_bytes, nodes=94, opset=20,
            dims={"batch": 1}, seed=1,
        ),
        machine=Machine(
            cpu='Some "fast" CPU', architecture="x86_64", cpus=2, system="Linux", runtime="ONNX Runtime 1.99",
            providers=("CPUExecutionProvider",), governor=None, date="2026-11-30T23:00:00+00:00",
            command="htpsim measure 'small net.onnx'",
        ),
        cold_load_ns=80 * MS,
        cold="the model was in memory",
        measured=each or (measured(),),
    )  # fmt: skip
