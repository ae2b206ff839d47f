"""What the tests of the testbed share: small scenarios, work that takes no processor, and a run that leaves nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from htpsim.experiments.trace import trace_of
from htpsim.invariants import Report, check_trace
from htpsim.live import Fault, LiveRun, TimedBench, run_live
from htpsim.results.columns import DONE, Request
from htpsim.results.log import RunLog
from htpsim.spec import Arrivals, Context, Device, Graph, Guard, Instance, Model, Registry, Run, Scenario, constant
from htpsim.units import NS_PER_MS

MS = NS_PER_MS


def model(name: str, role: str, **given: Any) -> Model:
    """Make a model of one context."""
    return Model(name=name, role=role, contexts=(Context(name="c", weights_bytes=1_000),), **given)  # type: ignore[arg-type]


def graphs(**times_ms: float) -> tuple[Graph, ...]:
    """Make graphs by name and time."""
    return tuple(Graph(name=name, context="c", service=constant(round(ms * MS))) for name, ms in times_ms.items())


VIT = model("vit", "vit", graphs=graphs(vit=3), tokens_per_image=8)
LLM = model("llm", "llm", prefill=graphs(prefill=2), decode=graphs(decode=1), ar=16, context_tokens=256)


def vlm(name: str, **given: Any) -> Instance:
    """Make an instance that asks again at once."""
    about: dict[str, Any] = {"vit": VIT, "llm": LLM, "vit_path": "genie", "text_tokens": constant(8)}
    about |= {"output_tokens": constant(6), "arrivals": Arrivals(think=constant(2 * MS))}
    return Instance(name=name, **(about | given))


def scene(*instances: Instance, duration_ms: int = 150, **given: Any) -> Scenario:
    """Make a scenario of instances, by default two, on one core with one slot."""
    about: dict[str, Any] = {"device": Device(yield_latency_ns=10**10), "guard": Guard(slots=1), "registry": Registry()}
    found = instances or (vlm("vlm0"), vlm("vlm1"))
    return Scenario(instances=found, run=Run(duration_ns=duration_ms * MS), **(about | given))


def play(
    scenario: Scenario, *faults: Fault, bench: TimedBench | None = None, check: bool = True, **given: Any
) -> LiveRun:
    """Run for real, every record validated, and hold the run to leaving no thread behind."""
    before = set(threading.enumerate())
    try:
        return run_live(scenario, bench or TimedBench(), faults=faults, check=check, **given)
    finally:
        until = time.monotonic() + 5
        while set(threading.enumerate()) - before and time.monotonic() < until:
            time.sleep(0.01)
        assert not set(threading.enumerate()) - before, "threads were left behind"


def play_until(enough: Callable[[RunLog], bool], scenario: Scenario, *faults: Fault, **given: Any) -> LiveRun:
    """Run for real, as often as it takes for a run in which enough happened: each four times as long as the one before.

    A busy machine may let hardly anything happen in the time of one run.
    """
    for _ in range(4):
        live = play(scenario, *faults, **given)
        if enough(live.log):
            return live
        scenario = replace(scenario, run=replace(scenario.run, duration_ns=4 * scenario.run.duration_ns))
    raise AssertionError("too little happened, in however long a run")


def all_answer(log: RunLog) -> bool:
    """Tell whether every instance that has not failed was through with a request."""
    return all(any(row.state == DONE for row in requests(log, name)) for name in log.clients if name not in log.failed)


def checked(log: RunLog, rules: Sequence[str] | None = None) -> Report:
    """Check the trace of a run, without slack: instants noted under the lock that decides are exact."""
    return check_trace(trace_of(log), rules)


def requests(log: RunLog, name: str) -> list[Request]:
    """Return the requests of an instance."""
    return [row for row in map(Request._make, log.requests) if log.clients[row.client] == name]


def wait_until(true: Callable[[], bool], limit_s: float = 10.0) -> None:
    """Wait for something that another thread brings about."""
    until = time.monotonic() + limit_s
    while not true():
        assert time.monotonic() < until, "it never came"
        time.sleep(0.001)


def with_guard(scenario: Scenario, **changes: Any) -> Scenario:
    """Change the guard of a scenario."""
    return replace(scenario, guard=replace(scenario.guard, **changes))
