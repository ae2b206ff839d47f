"""The device against the slow reference, on random scripts: every instant and every part must be the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htpsim.results.columns import NEVER, SLICES, Execute, Slice
from htpsim.sim import simulate
from htpsim.spec import PRIORITIES, Arrivals, Context, Device, Graph, Model, OtherClient, Run, Scenario, constant
from tests.device import reference as ref

HORIZON = 300
LEVELS = ("LOW", "NORMAL", "NORMAL", "HIGH")


def clients(cores: int) -> st.SearchStrategy[list[dict[str, Any]]]:
    one = st.fixed_dictionaries(
        {
            "arrives": st.lists(st.integers(0, 60), min_size=1, max_size=4).map(sorted),
            "work": st.integers(1, 5).map(lambda n: 6 * n),
            "level": st.sampled_from(LEVELS),
            "pd": st.sampled_from((0, 0, 0, 1)),
            "qnn": st.sampled_from((True, True, False)),
            "hmx": st.sampled_from((0, 1)),
            "hvx": st.integers(0, 3),
            "vtcm": st.integers(0, 6),
            "width": st.sampled_from((1, 1, cores)),
        }
    )
    return st.lists(one, min_size=1, max_size=5)


DEVICES = st.builds(
    Device,
    cores=st.sampled_from((1, 1, 2, 3)),
    vtcm_bytes=st.just(8),
    pd_rule=st.just("any"),
    gang_efficiency=st.just(1.0),
    priority_clamp=st.sampled_from((False, False, True)),
    yield_rule=st.sampled_from(("latency", "grid")),
    yield_latency_ns=st.sampled_from((0, 3, 10)),
    yield_interval_ns=st.sampled_from((1, 5)),
    evict_ns=st.sampled_from((0, 4)),
    restore_ns=st.sampled_from((0, 5)),
    acquire_ns=st.sampled_from((0, 2)),
    power_up_ns=st.sampled_from((0, 7)),
    idle_timeout_ns=st.sampled_from((0, 10)),
)
SCRIPTS = DEVICES.flatmap(lambda d: st.tuples(st.just(d), clients(d.cores)))


def scenario_of(device: Device, script: list[dict[str, Any]]) -> Scenario:
    made = []
    for number, c in enumerate(script):
        graph = Graph(
            name="g", context="c", service=constant(c["work"]), qnn=c["qnn"], hmx=c["hmx"], hvx=c["hvx"],
            vtcm_bytes=c["vtcm"],
        )  # fmt: skip
        model = Model(
            name=f"m{number}", role="other", contexts=(Context(name="c"),), graphs=(graph,), built_for_cores=c["width"]
        )
        made.append(
            OtherClient(
                name=f"c{number}", model=model, priority=c["level"], process=c["pd"], outstanding=0,
                arrivals=Arrivals(kind="replay", times_ns=tuple(c["arrives"])),
            )
        )  # fmt: skip
    return Scenario(device=device, clients=tuple(made), run=Run(duration_ns=HORIZON))


def reference_of(device: Device, script: list[dict[str, Any]]) -> list[ref.Job]:
    arrivals = sorted((at, number) for number, c in enumerate(script) for at in c["arrives"])
    jobs = []
    for execute, (at, number) in enumerate(arrivals):
        c = script[number]
        level = PRIORITIES.index(c["level"])
        jobs.append(
            ref.Job(
                number=execute,
                context=number,
                arrives=at,
                work=c["work"] // c["width"],
                level=min(level, PRIORITIES.index("NORMAL")) if device.priority_clamp else level,
                pd=c["pd"],
                cores=tuple((number + k) % device.cores for k in range(c["width"])),
                qnn=c["qnn"],
                hmx=c["hmx"],
                hvx=c["hvx"],
                vtcm=c["vtcm"],
            )
        )
    rules = ref.Rules(
        cores=device.cores, hvx=device.hvx, hmx=device.hmx, vtcm=device.vtcm_bytes, grid=device.yield_rule == "grid",
        latency=device.yield_latency_ns, interval=device.yield_interval_ns, evict=device.evict_ns,
        restore=device.restore_ns, acquire=device.acquire_ns, power_up=device.power_up_ns,
        idle_timeout=device.idle_timeout_ns,
    )  # fmt: skip
    ref.Machine(rules, jobs).run(HORIZON)
    return jobs


def stretches_of(job: ref.Job) -> list[tuple[str, int, int]]:
    """Return where it held its cores, the way the log tells it: without stretches of no length."""
    ends = [at for _, at in job.stretches[1:]] + [HORIZON]
    names = {"acquiring": "acquire", "running": "run", "evicting": "evict", "restoring": "restore"}
    told = [(names[s], at, end) for (s, at), end in zip(job.stretches, ends, strict=True) if s in names]
    return [stretch for stretch in told if stretch[1] < stretch[2]]


def compare(device: Device, script: list[dict[str, Any]]) -> None:
    log = simulate(scenario_of(device, script), check=True)
    jobs = reference_of(device, script)
    assert len(log.executes) == len(jobs)
    slices: dict[int, list[tuple[str, int, int]]] = {}
    for s in map(Slice._make, log.slices):
        if s.start_ns < s.end_ns:
            slices.setdefault(s.execute, []).append((SLICES[s.kind], s.start_ns, s.end_ns))
    for e in map(Execute._make, log.executes):
        job = jobs[e.execute]
        assert (e.client, e.submitted_ns, e.level) == (job.context, job.arrives, job.level)
        assert (e.started_ns, e.finished_ns, e.evictions) == (job.started, job.finished, job.evictions), e
        if e.finished_ns != NEVER:
            told = (e.device_wait_ns, e.acquire_ns, e.run_ns, e.evict_ns, e.restore_ns)
            spent = job.spent
            waited = spent[ref.QUEUED] + spent[ref.WAITING]
            assert told == (waited, *(spent[s] for s in (ref.ACQUIRING, ref.RUNNING, ref.EVICTING, ref.RESTORING)))
            assert e.run_ns == e.solo_ns == job.work
        if e.evictions:
            assert slices[e.execute] == stretches_of(job)


@given(SCRIPTS)
def test_the_device_does_what_the_slow_reference_does(script: tuple[Device, list[dict[str, Any]]]) -> None:
    compare(*script)


def client(arrives: int, work: int, level: str, pd: int, **other: Any) -> dict[str, Any]:
    return {
        "arrives": [arrives], "work": work, "level": level, "pd": pd, "qnn": True, "hmx": 0, "hvx": 0, "vtcm": 0,
        "width": 1, **other,
    }  # fmt: skip


def test_what_a_gang_reserved_is_free_for_others_once_it_is_evicted() -> None:
    """Evicted from core 0 in no time, it ranks by arrival on core 1 too, where an earlier graph has waited."""
    device = Device(cores=2, vtcm_bytes=8, pd_rule="any", gang_efficiency=1.0, yield_latency_ns=0, evict_ns=0)
    compare(device, [
        client(1, 80, "LOW", 0, qnn=False, width=2), client(0, 6, "LOW", 0),
        client(20, 6, "NORMAL", 1), client(0, 6, "LOW", 1),
    ])  # fmt: skip


@pytest.mark.verify
@given(SCRIPTS, SCRIPTS)
def test_the_device_does_what_the_slow_reference_does_at_length(
    one: tuple[Device, list[dict[str, Any]]], two: tuple[Device, list[dict[str, Any]]]
) -> None:
    device, script = one
    all_of_them = [*script, *(c | {"width": min(c["width"], device.cores)} for c in two[1])]
    compare(device, all_of_them)
