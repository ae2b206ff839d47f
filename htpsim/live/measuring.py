"""Measuring one model: load it cold, run it first and warm, profile its operators; one number of threads at a time.

Order, and why: the file is dropped from the system's cache and loaded once, which gives the cold load and leaves the
libraries warm. Then each number of threads gets a session of its own, opened after the one before was freed, so that
what the process grows by is that session. Profiled runs come last and from another session, because the profiler slows.
"""

from __future__ import annotations

import platform
import shlex
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from htpsim.errors import HtpsimError
from htpsim.experiments.measured import Machine, Measured, Measurement, Model
from htpsim.formats.ort_profile import KERNEL, RUN, OrtProfile
from htpsim.formats.ort_profile import read as read_profile
from htpsim.formats.source import from_text
from htpsim.formats.writers.extra import needed
from htpsim.formats.writers.measured import Execution, Operator
from htpsim.live import host
from htpsim.live.models import EXTRA
from htpsim.live.onnxfile import OnnxFile, look_into
from htpsim.live.session import NO_DIMS, PROVIDERS, Session
from htpsim.units import NS_PER_S, NS_PER_US

RUNS: Final = 200
"""What a p99 needs."""
AT_MOST_NS: Final = 60 * NS_PER_S
WARMUP: Final = 5
PROFILED: Final = 10
THREADS_MAX: Final = 256

Told = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """How to measure."""

    threads: Sequence[int] = (1,)
    runs: int = RUNS
    at_most_ns: int = AT_MOST_NS
    """of the runs that count, for each number of threads, and as much for those before; what is begun is finished"""
    warmup: int = WARMUP
    """runs between the first and those that count"""
    profiled: int = 0
    """further runs whose operators are timed"""
    dims: Mapping[str, int] = field(default_factory=lambda: NO_DIMS)
    seed: int = 1

    def check(self) -> None:
        """Raise unless it can be done.

        Raises
        ------
        HtpsimError
            Names what was given and what was expected.
        """
        least = {"runs": (self.runs, 1), "warmup": (self.warmup, 0), "profiled": (self.profiled, 0)}
        for name, (given, lowest) in least.items():
            if given < lowest:
                raise HtpsimError(f"measure: {name}: got {given}, expected at least {lowest}")
        if self.at_most_ns <= 0:
            raise HtpsimError(f"measure: at_most_ns: got {self.at_most_ns}, expected a time above zero")
        if not self.threads or len(set(self.threads)) < len(self.threads):
            raise HtpsimError(f"measure: threads: got {list(self.threads)}, expected numbers that differ")
        for count in self.threads:
            if not 1 <= count <= THREADS_MAX:
                raise HtpsimError(f"measure: threads: got {count}, expected 1 to {THREADS_MAX}")
        for name, length in self.dims.items():
            if length < 1:
                raise HtpsimError(f"measure: dimension {name}: got {length}, expected at least 1")


def measure(
    model: bytes | Path, asked: Asked | None = None, *, command: Sequence[str] = (), told: Told | None = None
) -> Measurement:
    """Measure how long a model takes in ONNX Runtime on this machine.

    Parameters
    ----------
    model
        An ONNX file, or its bytes, such as :func:`~htpsim.live.models.build` returns.
    asked
        How; by default 200 runs on one thread, for a minute at most.
    command
        The command line, for the provenance.
    told
        Called with what is under way.

    Raises
    ------
    HtpsimError
        When the model cannot be loaded, fed or run, or the extra `measure` is not installed.

    Examples
    --------
    >>> from htpsim.live.models import build
    >>> found = measure(build("vit", blocks=1, width=64, tokens=4), Asked(runs=3, warmup=0))
    >>> found.model.title, found.measured[0].latency.n
    ('vit_b1_w64_t4_p0', 3)
    """
    how = asked or Asked()
    how.check()
    say = told or (lambda _: None)
    say("reading the model")
    file = look_into(model)
    runtime = needed("onnxruntime", EXTRA)
    say("loading it cold")
    dropped = host.forget([model, *file.external]) if isinstance(model, Path) else False
    with Session.open(model, threads=how.threads[0], dims=how.dims, seed=how.seed, file=file) as session:
        cold_ns = session.load_ns
    return Measurement(
        model=Model(
            title=file.title,
            sha256=file.sha256,
            file_bytes=file.file_bytes,
            weights_bytes=file.weights_bytes,
            nodes=file.nodes,
            opset=file.opset,
            dims=dict(how.dims),
            seed=how.seed,
        ),
        machine=_machine(f"ONNX Runtime {runtime.__version__}", command),
        cold_load_ns=cold_ns,
        cold=_cold(model, dropped),
        measured=tuple(_measured(model, file, count, how, say) for count in how.threads),
    )


def _cold(model: bytes | Path, dropped: bool) -> str:
    if isinstance(model, bytes):
        return "the model was in memory"
    return "the system was asked to drop the file from its cache" if dropped else "the file may have been in the cache"


def _machine(runtime: str, command: Sequence[str]) -> Machine:
    return Machine(
        cpu=host.cpu_name(),
        architecture=platform.machine(),
        cpus=host.usable_cpus(),
        system=platform.platform(),
        runtime=runtime,
        providers=PROVIDERS,
        governor=host.governor(),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        command=shlex.join(command) or "from Python",
    )


def _measured(model: bytes | Path, file: OnnxFile, threads: int, how: Asked, say: Told) -> Measured:
    label = f"{threads} thread{'s' * (threads > 1)}"
    say(f"{label}: loading")
    before = host.resident_bytes()
    with Session.open(model, threads=threads, dims=how.dims, seed=how.seed, file=file) as session:
        say(f"{label}: running")
        first, *warmup = _timed(session, 1 + how.warmup, how.at_most_ns)
        switched, spent = host.switches(), host.cpu_clock(threads)
        runs = _timed(session, how.runs, how.at_most_ns)
        spent = host.cpu_clock(threads) - spent
        after = host.switches()
        held = host.resident_bytes()
        load_ns = session.load_ns
    return Measured(
        threads=threads,
        load_ns=load_ns,
        first_ns=first.netrun_ns,
        warmup_ns=tuple(run.netrun_ns for run in warmup),
        runs=tuple(runs),
        cpu_ns=spent,
        resident_bytes=None if before is None or held is None else max(0, held - before),
        switched=None if switched is None or after is None else after - switched,
        profiled=_profiled(model, file, threads, how, say) if how.profiled else (),
    )


def _timed(session: Session, runs: int, at_most_ns: int) -> list[Execution]:
    """Run as often as asked, or until the time is up; once at least."""
    clock, run = time.perf_counter_ns, session.run
    begun = clock()
    found: list[Execution] = []
    end = begun
    while len(found) < runs and (end - begun < at_most_ns or not found):
        start = clock()
        run()
        end = clock()
        found.append(Execution(end - begun, end - start))
    return found


def _profiled(model: bytes | Path, file: OnnxFile, threads: int, how: Asked, say: Told) -> tuple[Execution, ...]:
    """Run under ONNX Runtime's profiler, and give every run what the profile says of it."""
    say(f"{threads} thread{'s' * (threads > 1)}: profiling")
    with tempfile.TemporaryDirectory(prefix="htpsim-measure-") as folder:
        prefix = Path(folder, "profile")
        with Session.open(
            model, threads=threads, dims=how.dims, seed=how.seed, file=file, profile=prefix
        ) as session:  # fmt: skip
            warm = len(_timed(session, 1 + how.warmup, how.at_most_ns))
            runs = _timed(session, how.profiled, how.at_most_ns)
            path = session.end_profile()
        profile: OrtProfile = read_profile(
            from_text(path.name, path.read_text(encoding="utf-8", errors="replace"))
        ).data
    return joined(runs, profile, warm)


def joined(runs: Sequence[Execution], profile: OrtProfile, skipped: int) -> tuple[Execution, ...]:
    """Return runs with what a profile says of them.

    Parameters
    ----------
    runs
        As their caller timed them, in order.
    profile
        Of the session that made them.
    skipped
        Runs that the session made before.

    Raises
    ------
    HtpsimError
        When the profile holds fewer runs; ONNX Runtime stops writing after a million events.
    """
    whole = profile.named(RUN)
    if len(whole) < skipped + len(runs):
        raise HtpsimError(
            f"the profile has {len(whole)} runs, expected {skipped + len(runs)}: ask for fewer, such as --operators 3"
        )
    operators: dict[int | None, list[Operator]] = {}
    for node in profile.nodes:
        if node.kind == KERNEL:
            one = Operator(node.label, node.op or "unknown", node.duration.value * NS_PER_US)
            operators.setdefault(node.run, []).append(one)
    return tuple(
        Execution(run.end_ns, run.netrun_ns, whole[number].duration.value * NS_PER_US, tuple(operators.get(number, ())))
        for number, run in enumerate(runs, start=skipped)
    )
