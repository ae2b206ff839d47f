"""One scenario file on the testbed, in the form in which a simulated run is shown, written and traced."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace

from htpsim.errors import ScenarioError, unknown_name
from htpsim.experiments.single import Single
from htpsim.experiments.trace import trace_of
from htpsim.invariants import check_trace
from htpsim.live.engine import LiveRun, run_live
from htpsim.live.work import Bench, OnnxBench, TimedBench
from htpsim.results.run import RunResult
from htpsim.scenario import load

WORKS: dict[str, Callable[[], Bench]] = {"onnx": OnnxBench, "timed": TimedBench}
"""Kinds of work by name; read only."""


def bench_of(work: str) -> Bench:
    """Return the bench of a name.

    Raises
    ------
    ScenarioError
        When there is none.

    Examples
    --------
    >>> bench_of("timed").name
    'timed'
    """
    if work not in WORKS:
        raise ScenarioError(unknown_name("work", work, WORKS))
    return WORKS[work]()


def live_one(  # noqa: PLR0913 - all but the first have a name and a default
    scenario: str | os.PathLike[str],
    *,
    variant: str | None = None,
    case: str | None = None,
    options: Sequence[str] = (),
    set_values: Sequence[str] = (),
    replication: int = 0,
    bench: Bench | None = None,
    check: bool = False,
    progress: Callable[[float], None] | None = None,
) -> tuple[Single, LiveRun]:
    """Run one scenario, variant and case on real threads.

    Parameters
    ----------
    scenario
        A scenario file or the name of a shipped one.
    variant, case, options, set_values
        As for :func:`~htpsim.experiments.single.run_one`.
    replication
        Which repetition: its draws are those of the simulated one.
    bench
        What the graphs really do; by default sessions of ONNX Runtime.
    check
        Validate the guards after every action, and hold the trace to every rule that applies.
    progress
        Told which share of the time has passed.

    Returns
    -------
    Single, LiveRun
        The run in the form of a simulated one, and what only the testbed knows.

    Raises
    ------
    ScenarioError, InvariantError
        When the file is wrong or asks for what the testbed cannot do; when a rule broke.

    Examples
    --------
    >>> sets = ["run.duration=0.2s", "run.warmup=0s"]
    >>> single, live = live_one("live/four_threads", set_values=sets, bench=TimedBench())
    >>> single.log.engine, live.threads
    ('live', 5)
    """
    file = load(scenario, set_values=set_values)
    resolved = file.resolve(variant, case, options)
    live = run_live(resolved.scenario, bench or OnnxBench(), replication, check=check, progress=progress)
    if check:
        check_trace(trace_of(live.log)).require()
    summary = RunResult(live.log).summary()
    ran = replace(resolved, scenario=live.log.scenario)
    return Single(ran, [summary], live.log, file, variant, case, tuple(options)), live
