"""Faults of accounting for capacity and work (F24 to F30), each noticed here where it is planted."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import numpy as np
import pytest

from htpsim.device import rules
from htpsim.device.records import FULL_RATE
from htpsim.experiments.trace import trace_of
from htpsim.invariants import check_trace
from htpsim.results import RunLog, occupancy
from htpsim.results import metrics as metrics_of
from htpsim.results.columns import NEVER, Execute
from htpsim.rng import stream_key
from htpsim.sched import guard as guard_rules
from htpsim.sim import Simulation
from htpsim.sim import draws as draws_of
from htpsim.sim.draws import Draws
from htpsim.spec import Arrivals, Device, Distribution, Guard, Registry, Run, Scenario, exponential, table
from tests.faults.planted import after, notices, swap
from tests.faults.scenes import S, calls, one, play, refusal, runs, scene, told, units
from tests.sim.build import PLAIN, closed, executes, instance, llm, other, requests, vit


def utilisation(log: RunLog, core: int = 0) -> float:
    value = told(log).cores[f"core {core}"].utilisation.value
    assert value is not None
    return value


def test_f24_one_that_ends_and_one_that_begins_are_not_two() -> None:
    """A job that ended and one that began in the same instant both counted in it: utilisation of 200 %.

    https://github.com/oar-team/batsim/issues/14. Here stretches are open at one end, so jobs back to back fill a core
    once, and a real overlap, be it of a nanosecond, is found in the trace.
    """
    clients = [other(name, 10, arrivals=closed(0)) for name in "ab"]

    def check() -> None:
        log = play(500, clients=tuple(clients))
        spans = sorted((e.started_ns, e.finished_ns) for e in executes(log) if e.finished_ns != NEVER)
        assert [start_ns for start_ns, _ in spans[1:]] == [end_ns for _, end_ns in spans[:-1]]
        assert utilisation(log) == 1
        assert told(log).cores["core 0"].device_ns == 500
        assert check_trace(trace_of(log)).of("core-exclusion") == []

    def both_ends_counted(start_ns: Any, end_ns: Any) -> int:
        return int((end_ns - start_ns + 1).sum())

    notices(check, swap(metrics_of, "union_ns", both_ends_counted))
    log = play(500, clients=tuple(clients))
    log.executes[3] = earlier(log.executes[3])
    (found,) = check_trace(trace_of(log), ["core-exclusion"]).violations
    assert (found.time_ns, found.amount) == (29, 1)


def earlier(row: tuple[int, ...]) -> tuple[int, ...]:
    """Let a graphExecute begin a nanosecond before its core was free."""
    e = Execute._make(row)
    return tuple(e._replace(started_ns=e.started_ns - 1, device_wait_ns=e.device_wait_ns - 1, run_ns=e.run_ns + 1))


def test_f25_utilisation_is_kept_by_the_library_for_any_capacity() -> None:
    """Users had to add up utilisation themselves, and what they were told to do was wrong for more than one server.

    https://github.com/cristiklein/simpy/issues/1. Here it is a figure of each core: two clients on a core at once
    count once, two cores apart count apart, a graph built for two counts on both, and one that never ends counts too.
    """
    two = replace(PLAIN, cores=2)

    def check() -> None:
        together = (units("a", 400, 2, arrives=(0,)), units("b", 300, 2, arrives=(200,)))
        log = play(1_000, clients=together)
        assert utilisation(log) == 0.5
        assert told(log).cores["core 0"].device_ns == 700

        apart = (other("a", 400, arrives=(0,), placement="0"), other("b", 300, arrives=(200,), placement="1"))
        log = play(1_000, device=two, clients=apart)
        assert [utilisation(log, core) for core in (0, 1)] == [0.4, 0.3]

        gang = other("gang", 800, arrives=(0,), built_for_cores=2)
        log = play(1_000, device=replace(two, gang_efficiency=1.0), clients=(gang,))
        assert [utilisation(log, core) for core in (0, 1)] == [0.4, 0.4]

        log = play(1_000, warmup_ns=100, clients=(other("long", 10**6, arrives=(500,)),))
        assert utilisation(log) == 0.6

    def added_up(start_ns: Any, end_ns: Any) -> int:
        return int((end_ns - start_ns).sum())

    def narrow(tables: Any) -> Any:
        return np.ones(len(tables.log.graphs), dtype=np.int64)

    honest = occupancy.occupancy

    def of_the_finished(tables: Any) -> Any:
        held = honest(tables)
        ended = tables.executes["finished_ns"][held.row] != NEVER
        return occupancy.Occupancy(*(column[ended] for column in held))

    notices(
        check,
        swap(metrics_of, "union_ns", added_up),
        swap(occupancy, "gang_width", narrow),
        swap(metrics_of, "occupancy", of_the_finished),
    )


def test_f26_no_capacity_falls_below_what_is_in_use() -> None:
    """The capacity of a resource could be set below what was claimed of it, and availability went negative.

    https://github.com/salabim/salabim/issues/26. Here nobody can change a specification, and a user's policy that takes
    slots away from under their holders is stopped with the numbers.
    """
    parts: list[Any] = [Device(), Guard(), Registry(), Run(), Scenario(), other("a", 1), instance("b", vit=vit(1))]
    for part in parts:
        for field in fields(part):
            with pytest.raises(FrozenInstanceError):
                setattr(part, field.name, getattr(part, field.name))

    clients = tuple(other(name, 10, path="genie", arrivals=closed(0)) for name in "ab")
    policy = Guard(policy="tests.faults.mischief:Revokes", slots=2)
    scenario = scene(100, device=replace(PLAIN, cores=2), guard=policy, clients=clients)

    def check() -> None:
        assert "2 holders, expected 0 to 1 (the slots)" in refusal(lambda: Simulation(scenario, check=True).run())

    notices(check, swap(guard_rules, "validate", lambda *given: None))


def test_f27_who_stays_was_not_preempted() -> None:
    """A job that was taken off its processor and put back on it in the same instant counted as pre-empted.

    https://github.com/MaximeCheramy/simso/issues/23. Here C takes the room of B and A must go within 5 ns; when A's
    time is up B is done, there is room for A again, and nothing happens to it.
    """
    device = replace(PLAIN, yield_latency_ns=5)
    a = units("a", 40, 3, arrives=(0,), priority="LOW")
    b = units("b", 13, 1, arrives=(2,))
    c = units("c", 20, 1, arrives=(10,), priority="HIGH")

    def check() -> None:
        log = play(200, device=device, clients=(a, b, c))
        assert (one(log, "b").finished_ns, one(log, "c").started_ns) == (15, 15)
        assert (one(log, "a").evictions, one(log, "a").finished_ns) == (0, 40)
        assert told(log).clients["a"].device_wait.mean.value == 0
        assert log.slices == []

    honest = rules.dispatch

    def stop_who_is_due(*given: Any) -> None:
        dev, cores, jobs, clients, listed, evicted, _, now_ns = given
        for j in [clients[k] for k in range(dev.clients)]:
            if jobs[j].yield_due:
                rules.evict(dev, cores, jobs, listed, evicted, j, now_ns)
        honest(*given)

    notices(check, swap(rules, "dispatch", stop_who_is_due))


def test_f28_speed_counts_in_what_was_executed() -> None:
    """Work was counted by the clock, and how fast the processor had been was forgotten.

    https://github.com/MaximeCheramy/simso/issues/12. Here two graphs that share DRAM slow each other to a half while
    both run and no longer; the work done at each speed adds up to the work, also over an eviction.
    """
    device = replace(PLAIN, cores=2, dram_bandwidth=S)

    def thirsty(name: str, time_ns: int, **given: Any) -> Any:
        client = other(name, time_ns, **given)
        graphs = tuple(replace(graph, dram_bytes=time_ns) for graph in client.model.graphs)
        return replace(client, model=replace(client.model, graphs=graphs))

    first = thirsty("first", 10, arrives=(0,), placement="0")
    second = thirsty("second", 10, arrives=(4,), placement="1")

    def check() -> None:
        log = play(100, device=device, clients=(first, second))
        assert [(one(log, n).run_ns, one(log, n).finished_ns) for n in ("first", "second")] == [(16, 16), (16, 20)]

        intruder = other("intruder", 7, arrives=(8,), priority="HIGH", placement="0")
        log = play(100, device=device, clients=(first, second, intruder))
        # Of first, 4 + 2 is done at 8, then 1 until second ends at 17, then the last 3.
        assert runs(log, one(log, "first")) == [(0, 8), (15, 20)]
        assert (one(log, "second").finished_ns, one(log, "first").run_ns) == (17, 13)

    def by_the_clock(job: Any, now_ns: int) -> None:
        job.left = max(0, job.left - FULL_RATE * (now_ns - job.settled_ns))
        job.settled_ns = now_ns

    notices(check, swap(rules, "settle", by_the_clock))


def test_f29_an_interruption_draws_no_new_service_time() -> None:
    """After an interruption the service time was drawn again, so that long jobs became average ones.

    https://github.com/CiwPython/Ciw/pull/85 and /pull/202. Here a service time is drawn once, by an address that no
    interruption is part of: with and without interruptions it is the same, and all of it is done.
    """
    low = other("low", 10, arrivals=closed(5))
    service = Distribution(kind="sample", sample=(10, 50))
    graphs = tuple(replace(graph, service=service) for graph in low.model.graphs)
    low = replace(low, model=replace(low.model, graphs=graphs))
    high = replace(other("high", 3), arrivals=Arrivals(kind="periodic", period_ns=11), priority="HIGH")

    def check() -> None:
        alone, disturbed = play(3_000, clients=(low,)), play(3_000, clients=(low, high))
        mine = [e for e in calls(disturbed, "low") if e.returned_ns != NEVER]
        assert sum(e.evictions for e in mine) > 50
        assert {e.solo_ns for e in mine} == {10, 50}
        assert [e.solo_ns for e in mine] == [e.solo_ns for e in calls(alone, "low")][: len(mine)]
        assert [e.run_ns for e in mine] == [e.solo_ns for e in mine]

    def draw_again(*given: Any) -> None:
        job = given[2][given[-2]]
        job.left = min(job.left, 10 * FULL_RATE)  # the shorter of the two times, whichever it was before

    notices(check, after(rules, "evict", draw_again))


PURPOSES = ("arrival", "decode", "images", "jitter", "job", "output_tokens", "prefill", "text_tokens", "think", "vit")


@pytest.mark.slow
def test_f30_each_purpose_has_draws_of_its_own() -> None:
    """Several decisions took their numbers from one stream, so one variant's numbers were not those of another.

    https://github.com/starsimhub/starsim/issues/118, /pull/141 and /pull/349. Here a draw has an address, (seed,
    replication, client, purpose, index): what one purpose draws, and how often, moves nothing else.
    """
    uniform, tokens = Distribution(kind="uniform", high=2), Distribution(kind="uniform", low=1, high=9)
    vlm = instance(
        "vlm", vit=varied(vit(10)), llm=varied(llm((10,), (10,), ar=4)), images=uniform, text_tokens=tokens,
        output_tokens=tokens, arrivals=Arrivals(think=exponential(100)),
    )  # fmt: skip
    variants = {
        "no images": replace(vlm, images=Distribution(mean=0)),
        "longer prompts": replace(vlm, text_tokens=Distribution(mean=20)),
        "no pause": replace(vlm, arrivals=Arrivals(think=exponential(1))),
        "a cut ViT": replace(vlm, vit=replace(varied(vit(10)), split=3)),
    }

    def check() -> None:
        base = drawn(play(8_000, instances=(vlm,)))
        for name, variant in variants.items():
            log = drawn(play(8_000, instances=(variant,), clients=(varied_client("beside"),)))
            for purpose in ("output_tokens", "decode"):
                both = [address for address in base[purpose] if address in log[purpose]]
                assert len(both) > 20, name
                assert all(base[purpose][address] == log[purpose][address] for address in both), name

    def streams_apart() -> None:
        many = table(Distribution(kind="uniform", high=10**6))
        draws = Draws(1, 0, "vlm")
        spread = Distribution(kind="uniform", high=10**6)
        seen = {purpose: [draws.value(purpose, n, spread) for n in range(50)] for purpose in PURPOSES}
        assert len({tuple(values) for values in seen.values()}) == len(PURPOSES)
        assert all(value in many for value in seen["vit"])

    history = {"drawn": 0}

    def from_one_stream(self: Draws, purpose: str, index: int, distribution: Distribution) -> int:
        if len(table(distribution)) > 1:
            history["drawn"] += 1
        return honest(self, "all", history["drawn"], distribution)

    def without_purpose(seed: int, replication: int, client: str, purpose: str) -> int:
        return honest_key(seed, replication, client, "")

    honest, honest_key = Draws.value, stream_key
    notices(check, swap(Draws, "value", from_one_stream))
    notices(streams_apart, swap(draws_of, "stream_key", without_purpose))


def varied(model: Any) -> Any:
    """Let every graph of a model take a time that varies."""
    service = Distribution(kind="lognormal", mean=20, cv=0.5)
    lists = ("graphs", "prefill", "decode")
    return replace(model, **{n: tuple(replace(g, service=service) for g in getattr(model, n)) for n in lists})


def varied_client(name: str) -> Any:
    client = other(name, 10, arrivals=Arrivals(kind="poisson", period_ns=500))
    return replace(client, model=varied(client.model))


def drawn(log: RunLog) -> dict[str, dict[tuple[int, ...], int]]:
    """Return the first client's draws that no variant here is about, by purpose and address."""
    mine = [e for e in executes(log) if e.client == 0 and e.stage == 2]
    return {
        "output_tokens": {(r.request,): r.output_tokens for r in requests(log) if r.client == 0},
        "decode": {(e.request, e.step): e.solo_ns for e in mine},
    }
