"""Faults of simulators that pre-empt (F01 to F09), each noticed here where it is planted."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from htpsim.device import admission, rules
from htpsim.device.records import RUNNING, WAITING
from htpsim.results import metrics as metrics_of
from htpsim.results.columns import DONE, DROPPED, NEVER, REFUSED, Request
from htpsim.scenario import checks_models, load, problems
from htpsim.sim import Simulation
from htpsim.sim.other import OtherThreads
from htpsim.sim.requests import Backlog
from htpsim.spec import PRIORITIES, Arrivals, Device, Distribution, Guard, Scenario
from tests.faults.planted import after, notices, swap
from tests.faults.scenes import S, calls, one, play, play_watched, refusal, runs, scene, told, units
from tests.sim.build import PLAIN, closed, executes, instance, llm, other, requests, vit

INSTANTS = ("called_ns", "granted_ns", "submitted_ns", "started_ns", "finished_ns", "returned_ns")
COSTLY = Device(yield_latency_ns=3, evict_ns=2, restore_ns=1, acquire_ns=1, pd_rule="any")


@pytest.mark.slow
def test_f01_time_never_goes_back() -> None:
    """A job that was pre-empted and signalled at one instant resumed at an instant already past, and the clock with it.

    https://github.com/r-simmer/simmer/issues/187. Here the intruder comes at every instant of the victim's life, so
    that it meets the victim's start and end, a change of its rate, a timer of its guard and an arrival in its queue.
    """
    device = replace(PLAIN, cores=2, dram_bandwidth=S)
    quota = Guard(policy="quota", slots=1, params=(("period_ns", 5),))
    victim = other("victim", 20, arrives=(0, 10), path="genie", placement="0")
    thirsty = [replace(graph, dram_bytes=20) for graph in victim.model.graphs]
    victim = replace(victim, model=replace(victim.model, graphs=tuple(thirsty)))
    neighbour = replace(victim, name="neighbour", model=replace(victim.model, name="n", placement="1"), path="qnn")

    def check() -> None:
        for at_ns in range(45):
            intruder = other("intruder", 5, arrives=(at_ns,), priority="HIGH", placement="0")
            clients = (victim, neighbour, intruder)
            log = play_watched(Simulation(scene(300, device=device, guard=quota, clients=clients)))
            for e in executes(log):
                reached = [getattr(e, name) for name in INSTANTS]
                assert reached == sorted(reached)
                assert all(a[1] <= b[0] for a, b in pairwise(runs(log, e)))

    def resume_in_the_past(*given: Any) -> None:
        for job in given[2]:
            end_ns = job.started_ns + job.solo_ns  # as if it had never been away
            if job.state == RUNNING and job.evictions and end_ns < job.since_ns == given[-1]:
                job.timer_ns = end_ns

    notices(check, after(rules, "dispatch", resume_in_the_past))


def test_f02_part_of_a_core_is_preempted_when_part_is_needed() -> None:
    """A resource with units free, but too few, was taken for one with room, and nobody was pre-empted for the rest.

    https://github.com/r-simmer/simmer/issues/114. Here three of four HVX units are taken and the newcomer needs three.
    """
    low = [units(name, 30, 1, arrives=(at_ns,)) for name, at_ns in (("a", 0), ("b", 1), ("c", 2))]

    def check() -> None:
        log = play(100, clients=(*low, units("high", 10, 3, arrives=(10,), priority="HIGH")))
        assert (one(log, "high").started_ns, one(log, "high").finished_ns) == (10, 20)
        assert {name: one(log, name).evictions for name in "abc"} == {"a": 0, "b": 1, "c": 1}
        assert [one(log, name).finished_ns for name in "abc"] == [30, 41, 42]

    taken: dict[str, Any] = {}
    honest_dispatch, honest_ask = rules.dispatch, rules.ask_to_yield

    def dispatch(*given: Any) -> None:
        dev, _, jobs, _, holders, *_ = given
        taken["hvx"] = sum(jobs[holders[k]].hvx for k in range(dev.holders))
        honest_dispatch(*given)

    def only_when_nothing_is_free(*given: Any) -> None:
        if taken["hvx"] >= given[0].hvx:
            honest_ask(*given)

    def plant(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(rules, "dispatch", dispatch)
        patch.setattr(rules, "ask_to_yield", only_when_nothing_is_free)

    notices(check, plant)


def test_f03_nothing_works_longer_than_it_was_there() -> None:
    """An entity that came back was given the working time of its earlier visit too: more than end minus start.

    https://github.com/r-simmer/simmer/issues/67: a counter that was not set to zero on one of the ways in. Records are
    used again here as well; what a graphExecute did on its core plus what it waited must be all of its time there.
    """
    low = other("low", 30, arrivals=closed(7))
    high = replace(other("high", 11), arrivals=Arrivals(kind="periodic", period_ns=37), priority="HIGH")

    def check() -> None:
        log = play(2_000, device=COSTLY, clients=(low, high))
        ended = [e for e in executes(log) if e.returned_ns != NEVER]
        assert sum(e.evictions for e in ended) > 20
        for e in ended:
            busy_ns = e.acquire_ns + e.run_ns + e.evict_ns + e.restore_ns
            assert busy_ns <= e.finished_ns - e.started_ns
            assert busy_ns + e.device_wait_ns == e.finished_ns - e.submitted_ns
            assert e.run_ns == e.solo_ns

    honest = rules.submit

    def forgetful(*given: Any) -> None:
        job = given[3][given[-2]]
        earlier_ns = job.run_ns
        honest(*given)
        job.run_ns = earlier_ns

    notices(check, swap(rules, "submit", forgetful))


def test_f04_nobody_shrinks_a_capacity_and_is_lost_by_it() -> None:
    """An entity that lowered the capacity of what it held pre-empted itself and was never seen again.

    https://github.com/r-simmer/simmer/issues/125. Here a capacity is a constant of the run: no key of a scenario file
    changes one over time, and nothing that runs does. A user's policy could; what it granted is served all the same.
    """
    clients = tuple(other(name, 10, arrives=(0, 1), path="genie") for name in "abc")
    policy = Guard(policy="tests.faults.mischief:Shrinks", slots=3)

    def check() -> None:
        simulation = Simulation(scene(500, device=replace(PLAIN, cores=3), guard=policy, clients=clients))
        device = simulation.runtime.machine.dev
        before = (device.cores, device.hvx, device.hmx, device.vtcm_bytes)
        log = simulation.run()
        assert (device.cores, device.hvx, device.hmx, device.vtcm_bytes) == before
        assert simulation.runtime.guards[0].lanes[0].record.slots == 1
        assert [r.state for r in requests(log)] == [DONE] * 6
        assert len(executes(log)) == 6

    def shrink(*given: Any) -> None:
        given[0].hvx -= 1

    notices(check, after(rules, "start", shrink))


def test_f04_a_scenario_file_has_no_capacity_that_changes(tmp_path: Path) -> None:
    """See above: the refusal names the key, and those that exist."""
    file = tmp_path / "shrinking.toml"
    file.write_text('[device]\ncores = 2\ncores_schedule = [{ at = "1s", cores = 1 }]\n', encoding="utf-8")

    said = refusal(lambda: load(file))

    assert "device.cores_schedule: got an unknown key, expected one of" in said
    assert " cores, " in said
    with pytest.raises(FrozenInstanceError):
        Device().cores = 1  # type: ignore[misc]


def test_f05_the_preempted_do_not_overfill_a_queue() -> None:
    """Who was pre-empted went back to a queue that was full already, which then held more than its limit.

    https://github.com/r-simmer/simmer/issues/59. Here the pre-empted keeps its place with its thread: it still counts
    as in flight, and it never enters the queue of those that wait for the thread.
    """
    low = replace(other("low", 20, arrives=(0, 12, 30)), outstanding=1, when_full="drop")
    high = other("high", 30, arrives=(10,), priority="HIGH")
    vlm = instance(
        "vlm", vit=vit(20), arrivals=Arrivals(kind="replay", times_ns=tuple(range(0, 60, 4))), queue_limit=2,
        vit_priority="LOW",
    )  # fmt: skip

    def check() -> None:
        log = play(500, clients=(low, high))
        assert one(log, "low").evictions == 1
        assert [r.state for r in requests(log) if r.client == 0] == [DONE, DROPPED, DROPPED]
        queue = play(500, instances=(vlm,), clients=(high,))
        assert max(e.evictions for e in calls(queue, "vlm")) == 1
        assert longest_queue([r for r in requests(queue) if r.client == 0 and r.state != DROPPED]) == 2

    def uncounted(self: Any, number: int) -> None:
        """Leave those that were evicted out of those in flight."""
        away = [j for j in self.runtime.machine.jobs if j.state == WAITING and j.evictions]
        mine = sum(job.client == self.client.number for job in away)
        self.in_flight -= mine
        honest_arrive(self, number)
        self.in_flight += mine

    def without_limit(self: Any, request: Any, *, taken_up: bool) -> None:
        self.queue.append(request)

    honest_arrive = OtherThreads._arrive
    notices(check, swap(OtherThreads, "_arrive", uncounted), swap(Backlog, "add", without_limit))


def longest_queue(served: list[Request]) -> int:
    """Return how many requests waited at most, from when they came until they were begun."""
    return max(sum(r.arrived_ns <= at_ns < r.begun_ns for r in served) for at_ns in {r.arrived_ns for r in served})


@pytest.mark.slow
def test_f06_who_preempts_whom_is_said_and_kept() -> None:
    """Whether an equal priority pre-empts was documented one way and implemented the other.

    https://github.com/r-simmer/simmer/issues/53. Here the rule stands with the code that keeps it, *equal or lower
    priority waits, higher evicts*, and all 64 pairs of levels keep it, for QNN graphs and for others.
    """
    assert "equal or lower priority wait and higher priority evict" in " ".join(str(admission.__doc__).split())

    def check() -> None:
        for make in (partial(other, "first", 20), partial(units, "first", 20, 4)):
            for mine, theirs in ((a, b) for a in PRIORITIES for b in PRIORITIES):
                first = make(arrives=(0,), priority=mine)
                second = replace(make(arrives=(10,), priority=theirs), name="second")
                log = play(100, clients=(first, second))
                higher = PRIORITIES.index(theirs) > PRIORITIES.index(mine)
                assert one(log, "first").evictions == higher
                assert one(log, "second").started_ns == (10 if higher else 20)
        clamped = replace(PLAIN, priority_clamp=True)
        low, high = (other(p, 20, arrives=(at,), priority=p) for at, p in ((0, "NORMAL"), (10, "CRITICAL")))
        assert one(play(100, device=clamped, clients=(low, high)), "NORMAL").evictions == 0

    def latest_first(jobs: Any, a: int, b: int) -> bool:
        return bool((jobs[a].level, jobs[a].arrival_ns) > (jobs[b].level, jobs[b].arrival_ns))

    notices(check, swap(admission, "goes_before", latest_first))


def test_f07_the_preempted_resumes_and_does_not_restart() -> None:
    """Whether a pre-empted job goes on or begins anew was an option whose effect its users could not see.

    https://github.com/r-simmer/simmer/issues/235. Here it resumes, always: the stretches of its work, which the log
    shows one by one, add up to its work, whoever came between and however often.
    """
    high = other("high", 5, arrives=(10, 17, 30), priority="HIGH")

    def check() -> None:
        log = play(200, clients=(other("low", 30, arrives=(0,)), high))
        low = one(log, "low")
        assert runs(log, low) == [(0, 10), (15, 17), (22, 30), (35, 45)]
        assert (low.evictions, low.run_ns, low.finished_ns) == (3, 30, 45)

    def begin_anew(*given: Any) -> None:
        job = given[2][given[-2]]
        job.left = job.work

    notices(check, after(rules, "evict", begin_anew))


def test_f08_the_newest_of_equals_leaves() -> None:
    """When room became scarce, the jobs that had come first were stopped and the last one went on.

    https://github.com/r-simmer/simmer/issues/246. Here equals leave in the order in which they would be admitted last:
    the newest first, one more for every unit that is needed.
    """
    low = [units(name, 50, 1, arrives=(at_ns,)) for name, at_ns in (("a", 0), ("b", 1), ("c", 2), ("d", 3))]

    def check() -> None:
        for needed in range(1, 5):
            log = play(300, clients=(*low, units("high", 10, needed, arrives=(10,), priority="HIGH")))
            stopped = [name for name in "abcd" if one(log, name).evictions]
            assert stopped == list("abcd")[4 - needed :]
            assert [one(log, name).finished_ns for name in "abcd"] == [
                50 + n + 10 * (name in stopped) for n, name in enumerate("abcd")
            ]

    honest = admission.goes_before

    def oldest_out(jobs: Any, a: int, b: int) -> bool:
        if jobs[a].level == jobs[b].level and admission.holds_core(jobs[a]) and admission.holds_core(jobs[b]):
            return bool(jobs[a].arrival_ns > jobs[b].arrival_ns)
        return honest(jobs, a, b)

    notices(check, swap(admission, "goes_before", oldest_out))


def test_f09_what_can_never_fit_is_refused_aloud() -> None:
    """A request for more than there is waited for ever, and nobody was told.

    https://github.com/r-simmer/simmer/issues/36. Here each kind of too much has its answer: what the scenario itself
    shows is refused before it starts, what memory cannot hold fails to load, what a draw makes too long is refused.
    """
    plain = other("greedy", 10)
    graph = plain.model.graphs[0]

    def greedy(**given: Any) -> list[str]:
        model = replace(plain.model, graphs=(replace(graph, **given),))
        return problems(Scenario(clients=(replace(plain, model=model),)))

    def check() -> None:
        for given in ({"vtcm_bytes": 9 << 20}, {"hvx": 5}, {"hmx": 2}):
            said = "\n".join(greedy(**given))
            assert said.startswith("models.greedy model.graphs.g0")
            assert "expected at most" in said
        wide = problems(Scenario(clients=(replace(plain, model=replace(plain.model, built_for_cores=2)),)))
        assert any("got 2, expected at most 1, the device's cores" in said for said in wide)
        assert greedy() == []

        heavy = other("heavy", 10, weights=70, arrives=(0,))
        log = play(100, device=replace(PLAIN, dram_budget_bytes=60), clients=(heavy, other("light", 10, arrives=(0,))))
        assert "asked 70 B" in log.failed["heavy"]
        assert "dram_budget_bytes 60 B" in log.failed["heavy"]
        assert any(note.startswith("heavy did not start") for note in told(log).notes)
        assert one(log, "light").returned_ns == 10

    notices(
        check,
        swap(checks_models, "_resources", lambda device, model, path: iter(())),
        swap(checks_models, "_placement", lambda device, model, path: iter(())),
        swap(metrics_of, "notes", lambda summary: []),
    )


def test_f09_a_prompt_too_long_for_its_context_is_refused_and_counted() -> None:
    """See above: of prompts drawn from 1 to 30 tokens, those that do not fit beside two more in 20 are refused."""
    model = llm((3,), (2,), context_tokens=20)
    vlm = instance("vlm", llm=model, text_tokens=Distribution(kind="uniform", low=1, high=30), arrivals=closed(5))

    log = play(2_000, instances=(vlm,))
    ended = [r for r in requests(log) if r.state in (DONE, REFUSED)]

    assert [r.state == REFUSED for r in ended] == [r.prompt_tokens + r.output_tokens > 20 for r in ended]
    assert told(log).overall.counts.refused == sum(r.state == REFUSED for r in ended) > 10
