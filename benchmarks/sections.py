"""The tables of docs/performance.md, one function each."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from benchmarks import c_loop
from benchmarks.engines import bare, in_c, kernel, reference
from benchmarks.timing import Prepare, markdown, ratios, spread, take_turns
from benchmarks.workload import Times, scenario
from htpsim.experiments.engine import tally
from htpsim.spec import Arrivals, Scenario
from htpsim.units import NS_PER_MS, NS_PER_US

ROOT = Path(__file__).resolve().parents[1]
SECONDS = {"bare": 400, "reference": 240, "kernel": 7_700}
"""Simulated seconds a turn: about as many seconds of the processor for each."""

Changes = Callable[[Scenario], Scenario]


def engines(rounds: int) -> str:
    """All engines on the migration scenario, by its service times."""
    rows: list[list[str]] = []
    for times in ("constant", "lognormal"):
        for genie in (False, True):
            rows += _engines(rounds, times, genie)
    return markdown(["scenario, engine", "graphExecutes/s", "times the bare loop"], rows)


def _engines(rounds: int, times: Times, genie: bool) -> Iterator[list[str]]:
    def at(who: str) -> Scenario:
        return scenario(times, bandwidth=False, genie=genie, seconds=SECONDS[who])

    contenders = {
        "bare SimPy loop": bare(at("bare")),
        "reference, records on": reference(at("reference")),
        "kernel, records on": kernel(at("kernel")),
        "kernel, records off": kernel(at("kernel"), records=False),
    }
    if c_loop.compiled():
        contenders["bare loop in C"] = in_c(at("kernel"))
    found = take_turns(contenders, rounds)
    base = found["bare SimPy loop"]
    for name, rates in found.items():
        what = f"{'Genie + registry' if genie else 'legacy ViT'}, {times}: {name}"
        yield [what, spread(rates, ",.0f"), spread(ratios(rates, base), ".3g")]
    if not c_loop.compiled():
        yield ["bare loop in C", "no compiler", "no compiler"]


def features(rounds: int) -> str:
    """The kernel with one feature more at a time, records off, as a share of its rate without any."""
    plain = scenario("constant", bandwidth=False, genie=True, seconds=SECONDS["kernel"] // 2)
    device = plain.device
    changes: dict[str, Scenario] = {
        "nothing besides": plain,
        "lognormal service times": scenario(
            "lognormal", bandwidth=False, genie=True, seconds=SECONDS["kernel"] // 2
        ),
        "DRAM bandwidth shared": scenario("constant", bandwidth=True, genie=True, seconds=SECONDS["kernel"] // 2),
        "a ViT of higher priority that evicts": _instances(plain, vit_path="qnn", vit_priority="HIGH"),
        "RPC and acquire": replace(
            plain, device=replace(device, rpc_call_ns=43 * NS_PER_US, rpc_return_ns=20 * NS_PER_US, acquire_ns=199_000)
        ),
        "host gaps": _instances(plain, host_gap_graph_ns=100_000, host_gap_step_ns=300_000),
        "periodic arrivals": _instances(
            plain, arrivals=Arrivals(kind="periodic", period_ns=40_000 * NS_PER_MS), queue_limit=2
        ),
        "slots a core": replace(plain, guard=replace(plain.guard, slots_per="core")),
        "a slot for the whole request": replace(plain, guard=replace(plain.guard, scope="request")),
        "graphs on both cores at once": replace(plain, device=replace(device, topology="gang")),
    }  # fmt: skip
    found = take_turns({name: kernel(each, records=False) for name, each in changes.items()}, rounds)
    base = found["nothing besides"]
    rows = [[name, spread(rates, ",.0f"), spread(ratios(rates, base), ".2f")] for name, rates in found.items()]
    return markdown(["with", "graphExecutes/s", "of the rate without"], rows)


def _instances(given: Scenario, **changes: object) -> Scenario:
    return replace(given, instances=tuple(replace(i, **changes) for i in given.instances))  # type: ignore[arg-type]


def sizes(rounds: int) -> str:
    """How the rate falls with instances, cores and splits; records off."""
    seconds = SECONDS["kernel"] // 3
    contenders: dict[str, Prepare] = {}
    for instances in (1, 2, 4, 8, 16, 32, 64):
        made = scenario("constant", bandwidth=False, genie=True, seconds=seconds, instances=instances)
        contenders[f"{instances} instances, 2 cores"] = kernel(made, records=False)
    for cores in (1, 4, 8):
        made = scenario("constant", bandwidth=False, genie=True, seconds=seconds, instances=8)
        device = replace(made.device, cores=cores)
        contenders[f"8 instances, {cores} core{'s' * (cores > 1)}"] = kernel(
            replace(made, device=device), records=False
        )
    for splits in (1, 2, 4, 8):
        made = scenario("constant", bandwidth=False, genie=True, seconds=seconds, splits=splits)
        contenders[f"4 instances, 2 cores, {splits} split{'s' * (splits > 1)}"] = kernel(made, records=False)
    found = take_turns(contenders, rounds)
    base = found["4 instances, 2 cores"]
    rows = [[name, spread(rates, ",.0f"), spread(ratios(rates, base), ".2f")] for name, rates in found.items()]
    return markdown(["size", "graphExecutes/s", "of the rate with 4 instances, 2 cores, 3 splits"], rows)


def threads(rounds: int) -> str:
    """Replications on one thread and on two, by the clock on the wall: the loop holds no lock of the interpreter."""
    made = scenario("lognormal", bandwidth=False, genie=True, seconds=SECONDS["kernel"])
    tally(made, 1)  # compiled before anything is timed

    def on(workers: int) -> Prepare:
        return lambda: lambda: sum(run.executes for run in tally(made, 8, workers))

    found = take_turns({f"{n} thread{'s' * (n > 1)}": on(n) for n in (1, 2)}, rounds, time.perf_counter)
    base = found["1 thread"]
    rows = [[name, spread(rates, ",.0f"), spread(ratios(rates, base), ".2f")] for name, rates in found.items()]
    return markdown(["eight replications, records off", "graphExecutes/s of the wall", "of one thread"], rows)


def targets(rounds: int) -> str:
    """What 607,000 graphExecutes take, and ten simulated minutes."""
    rows = []
    for what, seconds in (("607,000 graphExecutes", 7_700), ("ten simulated minutes", 600)):
        for records in (False, True):
            made = scenario("lognormal", bandwidth=False, genie=True, seconds=seconds)
            run = kernel(made, records=records)()
            count = run()
            spent = []
            for _ in range(rounds):
                begun = time.process_time()
                run()
                spent.append(time.process_time() - begun)
            rows.append([f"{what} ({count:,}), records {'on' if records else 'off'}", spread(spent, ".3f")])
    minutes = scenario("lognormal", bandwidth=False, genie=True, seconds=600)
    begun, spent_s = time.perf_counter(), time.process_time()
    count = sum(run.executes for run in tally(minutes, MANY, 2))
    wall, spent_s = time.perf_counter() - begun, time.process_time() - spent_s
    rows.append([f"{MANY:,} times ten simulated minutes on two threads ({count:,}), once", f"{spent_s:.1f}"])
    rows.append(["the same, by the clock on the wall", f"{wall:.1f}"])
    return markdown(["run", "seconds of the processor"], rows)


MANY = 2_000
PROGRAM = """
import time
begun = time.process_time()
from benchmarks.workload import scenario
from htpsim.kernel import tally
from htpsim.kernel.compiled import function_for
from htpsim.kernel.shapes import shape_of
from htpsim.sched import Sfq
from htpsim.sim.loads import load_alone
from htpsim.spec.plan import make_plan
plan = make_plan(scenario("constant", bandwidth=False, genie=True, seconds={seconds}, instances={instances}))
loaded = load_alone(plan)
ready = time.process_time()
function_for(Sfq, shape_of(plan, keeps=False))
made = time.process_time()
count = tally(plan, loaded, compiled=True).executes
from pathlib import Path
status = Path("/proc/self/status").read_text()
most = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
print(ready - begun, made - ready, int(most) / 1024)
"""


def starts(rounds: int) -> str:
    """What it takes to begin: compiling once, from the disk afterwards, imports, memory."""
    with tempfile.TemporaryDirectory() as folder:
        cold = _program(folder, 10)
        cached = [_program(folder, 10) for _ in range(rounds)]
        hour, day = _program(folder, 3_600, instances=8), _program(folder, 24 * 3_600, instances=8)
    rows = [
        ["compiling for a policy, once after installation", f"{cold[1]:.1f} s"],
        ["loading what was compiled", f"{spread([c[1] for c in cached], '.2f')} s"],
        ["`import htpsim`", f"{_spent(rounds, '-c', 'import htpsim')} s"],
        ["`htpsim --help`", f"{_spent(rounds, '-m', 'htpsim', '--help')} s"],
        ["most memory of a run of 10 s, records off", f"{cached[0][2]:.0f} MB"],
        ["most memory of a run of an hour, eight instances, records off", f"{hour[2]:.0f} MB"],
        ["most memory of a run of 24 hours, eight instances, records off", f"{day[2]:.0f} MB"],
    ]
    return markdown(["what", "processor time or memory"], rows)


def _program(folder: str, seconds: int, instances: int = 4) -> tuple[float, ...]:
    environment = {**os.environ, "NUMBA_CACHE_DIR": folder, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", PROGRAM.format(seconds=seconds, instances=instances)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return tuple(map(float, done.stdout.split()))


def _spent(rounds: int, *arguments: str) -> str:
    """Return the processor time that a program takes, start of the interpreter included."""
    spent = []
    for _ in range(rounds):
        before = os.times()
        subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, check=True)
        after = os.times()
        spent.append(after.children_user + after.children_system - before.children_user - before.children_system)
    return spread(spent, ".2f")


SECTIONS: dict[str, tuple[str, Callable[[int], str]]] = {
    "engines": ("Engines", engines),
    "targets": ("How long a run takes", targets),
    "features": ("Feature by feature", features),
    "sizes": ("Instances, cores, splits", sizes),
    "threads": ("Threads", threads),
    "starts": ("Starting", starts),
}
