"""Faults of event loops (F16 to F18, F21 to F23): order, ends, ties, drift; each noticed here where it is planted."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from htpsim.device import admission, rules
from htpsim.results.columns import NEVER
from htpsim.sim import Simulation, simulate
from htpsim.sim.clock import Clock
from htpsim.sim.requests import Instants
from htpsim.spec import Arrivals, Guard
from htpsim.units import parse_time
from tests.faults.planted import after, notices, swap
from tests.faults.scenes import S, one, play, play_watched, refusal, runs, scene, tied, told, units
from tests.sim.build import closed, executes, instance, llm, other, requests, vit
from tests.sim.digest import digest, text

ROOT = Path(__file__).resolve().parents[2]


def test_f16_what_is_left_over_does_not_stretch_the_end() -> None:
    """Timeouts of requests long answered stayed in the queue, moved the end of the run and thinned out its throughput.

    https://github.com/inference-sim/inference-sim/issues/1085. Here the end is the one that was asked for, whatever is
    pending then: a policy's next period, a timer that a pre-emption made void, a process of the user's own.
    """
    loop = other("loop", 10, path="genie", arrivals=closed(0))
    late = other("late", 10, arrives=(5, 2_500), priority="HIGH")
    quota = Guard(policy="quota", params=(("period_ns", 1_700),))

    def check() -> None:
        simulation = Simulation(scene(1_000, clients=(loop, late), guard=quota))
        simulation.env.timeout(3_000)
        log = simulation.run()
        assert (log.start_ns, log.end_ns) == (0, 1_000)
        assert simulation.env.now == 1_000
        assert max(max(e.returned_ns, e.finished_ns, e.called_ns) for e in executes(log)) == 1_000
        assert told(log).clients["loop"].requests_per_s.value == 99 * S / 1_000

    def until_nothing_is_left(self: Simulation, at_ns: int) -> Any:
        return honest(self, max(at_ns, *(int(entry[0]) for entry in self.env._queue)))

    honest = Simulation._stop_at
    notices(check, swap(Simulation, "_stop_at", until_nothing_is_left))


def test_f17_preemption_does_not_go_round_in_circles() -> None:
    """Jobs pre-empted each other again and again in one place: 173,622 retries, and none of them got anywhere.

    https://github.com/inference-sim/inference-sim/issues/297 and /963. Here one eviction needs one arrival of somebody
    higher, what was done stays done, and a loop in which no time would pass is refused.
    """
    clients = [units(f"c{n}", 25, 4, arrives=(4 * n, 4 * n, 4 * n)) for n in range(3)]
    comes_at = range(10, 200, 5)
    storm = units("storm", 3, 4, arrives=tuple(comes_at), priority="HIGH")

    def check() -> None:
        log = play_watched(Simulation(scene(600, clients=(*clients, storm))))
        mine = [e for e in executes(log) if log.clients[e.client] != "storm"]
        stopped_at = [end_ns for e in mine for _, end_ns in runs(log, e)[:-1]]
        assert 10 < sum(e.evictions for e in mine) == len(stopped_at) <= len(comes_at)
        assert set(stopped_at) <= set(comes_at)
        assert all(e.returned_ns != NEVER for e in executes(log))
        assert max(e.finished_ns for e in mine) == 9 * 25 + 3 * len(comes_at)

    def back_at_once(*given: Any) -> None:
        job = given[2][given[-2]]
        if job.evictions:
            job.timer_ns = given[-1]

    def who_holds_goes_last(jobs: Any, a: int, b: int) -> bool:
        return bool((jobs[a].level, -admission.holds_core(jobs[a])) > (jobs[b].level, -admission.holds_core(jobs[b])))

    notices(check, after(rules, "start", back_at_once), swap(admission, "goes_before", who_holds_goes_last))


@pytest.mark.slow
def test_f17_a_loop_in_which_no_time_passes_is_refused() -> None:
    """See above: requests that ask for nothing, one after the other without a pause."""
    idle = instance("idle", vit=vit(5), llm=llm((1,), (1,), context_tokens=1), arrivals=closed(0))

    said = refusal(lambda: play(100, instances=(idle,)))

    assert "instances.idle" in said
    assert "a closed loop that took no time" in said


def test_f18_overload_is_exact() -> None:
    """Past saturation the simulator drifted away from its own load, and arrivals came on a grid instead of on time.

    https://github.com/casys-kaist/LLMServingSim/issues/40. Here arrivals come to the nanosecond at twice what the core
    can do, and each waits for exactly what Lindley's recursion says.
    """
    arrives = tuple(sorted(at_ns * 7_919 % 1_009 for at_ns in range(200)))

    def check() -> None:
        log = play(5_000, clients=(other("open", 11, arrives=arrives),))
        asked, free_ns = requests(log), 0
        assert [r.arrived_ns for r in asked] == list(arrives)
        for r in asked:
            free_ns = max(free_ns, r.arrived_ns) + 11
            assert r.done_ns == free_ns
        periodic = Arrivals(kind="periodic", period_ns=7, offset_ns=3)
        log = play(2_000, clients=(other("camera", 11, arrivals=periodic),))
        assert [r.arrived_ns for r in requests(log)] == list(range(3, 2_001, 7))
        assert told(log).overall.requests_per_s.value == (2_000 - 3) // 11 * S / 2_000

    def on_a_grid(self: Instants, number: int) -> int | None:
        due_ns = honest(self, number)
        return None if due_ns is None else -(-due_ns // 4) * 4

    honest = Instants.instant
    notices(check, swap(Instants, "instant", on_a_grid))


def test_f21_ties_are_decided_by_the_model_and_not_by_the_heap() -> None:
    """Events of one instant came in an order that a heap happened to have; one more event, doing nothing, changed it.

    https://github.com/arbor-sim/arbor/issues/385, https://github.com/tinyos/tinyos-main/issues/419. Here every action
    of an instant has its place in it, in whatever order it was scheduled, and a process that does nothing changes
    nothing.
    """
    ties = [other("c0", 5, arrives=tuple(range(0, 200, 10)))]
    ties += [other(name, 10, path="genie", arrives=tuple(range(0, 200, 10))) for name in ("c1", "c2")]

    def in_any_order() -> None:
        for order in permutations(range(5)):
            clock, seen = Clock(), list[Any]()
            events = {number: clock.at(7, number, seen.append) for number in order}
            clock.run()
            assert seen == [events[number] for number in range(5)]

    def beside_a_bystander() -> None:
        alone, watched = (Simulation(scene(400, clients=tuple(ties))) for _ in range(2))
        watched.env.process(bystander(watched.env))
        assert text(alone.run()) == text(watched.run())

    def bystander(env: Clock) -> Generator[Any, None, None]:
        while True:
            yield env.timeout(5)

    def as_scheduled(self: Clock, delay_ns: int, where: int, action: Any) -> Any:
        return honest(self, delay_ns, 0, action)

    def as_full_as_the_queue_is(self: Clock, delay_ns: int, where: int, action: Any) -> Any:
        by_chance = len(self._queue) * 7 % 5 << 70
        return honest(self, delay_ns, by_chance + where, action)

    honest = Clock.at
    notices(in_any_order, swap(Clock, "at", as_scheduled))
    notices(beside_a_bystander, swap(Clock, "at", as_full_as_the_queue_is))


PROGRAM = """
from dataclasses import replace
from htpsim.sim import engine
from tests.faults.scenes import tied
from tests.sim.digest import digest
print(digest(engine.simulate(tied())))
honest = engine.make_plan
def in_the_order_of_a_set(scenario):
    byname = {client.name: client for client in scenario.clients}
    return honest(replace(scenario, clients=tuple(byname[name] for name in set(byname))))
engine.make_plan = in_the_order_of_a_set
print(digest(engine.simulate(tied())))
"""


@pytest.mark.slow
def test_f22_no_result_depends_on_the_order_of_a_set() -> None:
    """Two runs of one seed differed, because the contents of cells lay in sets and sets were walked.

    https://github.com/mesa/mesa/issues/745 and /1138. Here a process that hashes texts in another way writes the same
    log; it does not once clients are numbered in the order of a set.
    """
    hash_seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    honest, planted = done.stdout.split()

    assert honest == digest(simulate(tied()))
    assert honest != planted


@pytest.mark.slow
def test_f23_the_clock_does_not_drift() -> None:
    """Times were sums of floats: an event meant for an instant fell just before or behind it, or was missed.

    https://github.com/RobotLocomotion/drake/issues/15021, https://github.com/pathsim/pathsim/pull/249. Here time is a
    whole number from the file to the log: the millionth frame is on time, 200 Hz and 80 Hz meet where they must, and
    what ends exactly at the end of the run still counts.
    """
    assert sum(parse_time("0.1ms") for _ in range(30)) == parse_time("3ms") == parse_time("0.003s") == 3_000_000

    def frames(period_ns: int, **given: Any) -> Arrivals:
        return Arrivals(kind="periodic", period_ns=period_ns, **given)

    def check() -> None:
        tenths = other("tenths", 10, arrivals=frames(100_000))
        log = play(100_000 * 1_000, clients=(tenths,))
        assert [r.arrived_ns for r in requests(log)] == [100_000 * n for n in range(1_001)]
        assert {type(value) for row in (*log.executes, *log.requests) for value in row} == {int}

        fast, slow = other("fast", 10, arrivals=frames(5_000_000)), other("slow", 10, arrivals=frames(12_500_000))
        log = play(S, clients=(fast, slow))
        instants = [{r.arrived_ns for r in requests(log) if r.client == client} for client in (0, 1)]
        assert sorted(instants[0] & instants[1]) == list(range(0, S + 1, 25_000_000))

        log = play(30, clients=(other("last", 10, arrives=(20,)),))
        assert (one(log, "last").returned_ns, told(log).overall.requests_per_s.n) == (30, 1)

    def added_up(self: Instants, number: int) -> int | None:
        if self.arrivals.kind != "periodic":
            return honest(self, number)
        seconds = 0.0 if number == 0 else float(self._clock_ns) + self.arrivals.period_ns / S
        self._clock_ns = seconds  # type: ignore[assignment]
        return int(seconds * S)

    def as_float(self: Instants, number: int) -> Any:
        due_ns = honest(self, number)
        return None if due_ns is None else float(due_ns)

    honest = Instants.instant
    notices(check, swap(Instants, "instant", added_up), swap(Instants, "instant", as_float))
