"""Arrivals, queues, dialogs, drops: what comes, what is taken up, what is refused."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from htpsim.errors import ScenarioError
from htpsim.results.columns import DONE, DROPPED, NEVER, QUEUED, REFUSED, RUNNING
from htpsim.sim import Simulation
from htpsim.sim.draws import Draws
from htpsim.spec import Arrivals, Distribution, Guard, Run, Scenario, constant, exponential
from tests.sim.build import PLAIN, closed, executes, instance, llm, other, requests, run, spans, vit

CAMERA = instance("camera", vit=vit(25))


def periodic(period_ns: int, **given: int) -> Arrivals:
    return Arrivals(kind="periodic", period_ns=period_ns, **given)


def arrived(arrivals: Arrivals, duration_ns: int = 100) -> list[int]:
    log = run(duration_ns, instances=(replace(CAMERA, vit=vit(1), arrivals=arrivals),))
    return [r.arrived_ns for r in requests(log)]


def test_periodic_arrivals() -> None:
    assert arrived(periodic(30)) == [0, 30, 60, 90]
    assert arrived(periodic(30, offset_ns=10)) == [10, 40, 70, 100]


def test_a_replay_is_used_once() -> None:
    assert arrived(Arrivals(kind="replay", times_ns=(3, 3, 50), offset_ns=2)) == [5, 5, 52]


def test_poisson_arrivals_are_the_sums_of_addressed_draws() -> None:
    draws = Draws(1, 0, "camera")
    gaps = [draws.value("arrival", n, exponential(30)) for n in range(50)]
    instants = [sum(gaps[: n + 1]) for n in range(50)]

    assert arrived(Arrivals(kind="poisson", period_ns=30), 500) == [t for t in instants if t <= 500]
    assert len(set(gaps)) > 10


def test_jitter_moves_frames_but_never_past_each_other() -> None:
    draws = Draws(1, 0, "camera")
    jitter = [draws.value("jitter", n, Distribution(kind="uniform", high=70)) for n in range(40)]
    wanted, latest = [], 0
    for n, late in enumerate(jitter):
        latest = max(latest, 30 * n + late)
        wanted.append(latest)

    assert arrived(periodic(30, jitter_ns=70), 600) == [t for t in wanted if t <= 600]
    assert any(a == b for a, b in pairwise(wanted))


def test_a_closed_loop_waits_for_its_answer() -> None:
    assert arrived(closed(10, offset_ns=4), 50) == [14, 25, 36, 47]


def test_arrivals_come_while_the_models_load() -> None:
    device = replace(PLAIN, load_bandwidth=10**9)
    log = run(
        100, device=device, warmup_ns=10, instances=(replace(CAMERA, vit=vit(5, weights=40), arrivals=periodic(30)),)
    )

    assert (log.ready_ns, log.start_ns, log.end_ns) == (40, 50, 150)
    assert [(r.arrived_ns, r.begun_ns) for r in requests(log)][:4] == [(0, 40), (30, 45), (60, 60), (90, 90)]


def test_a_closed_loop_begins_when_loaded() -> None:
    device = replace(PLAIN, load_bandwidth=10**9)
    log = run(100, device=device, clients=(other("a", 5, weights=40, arrivals=closed(10)),))

    assert requests(log)[0].arrived_ns == 50


@pytest.mark.parametrize(
    ("limit", "drop", "states"),
    [
        (None, "oldest", [DONE, DONE, DONE, DONE, RUNNING, QUEUED, QUEUED, QUEUED, QUEUED, QUEUED, QUEUED]),
        (1, "oldest", [DONE, DROPPED, DONE, DROPPED, DONE, DROPPED, DROPPED, DONE, DROPPED, RUNNING, QUEUED]),
        (1, "newest", [DONE, DONE, DROPPED, DONE, DROPPED, DONE, DROPPED, DROPPED, RUNNING, DROPPED, QUEUED]),
        (0, "oldest", [DONE, DROPPED, DROPPED, DONE, DROPPED, DROPPED, DONE, DROPPED, DROPPED, RUNNING, DROPPED]),
        (0, "newest", [DONE, DROPPED, DROPPED, DONE, DROPPED, DROPPED, DONE, DROPPED, DROPPED, RUNNING, DROPPED]),
    ],
)
def test_what_a_full_queue_drops(limit: int | None, drop: str, states: list[int]) -> None:
    """A frame each 10, 25 of work: who waits and who is dropped, by hand; one taken up at once never waits."""
    log = run(100, instances=(replace(CAMERA, arrivals=periodic(10), queue_limit=limit, drop=drop),))

    assert [r.state for r in requests(log)] == states


def test_other_clients_block_or_drop() -> None:
    """Two at a time, arrivals each 10, 30 of work on one core."""
    arrives = (0, 10, 20, 30, 70)
    blocks = run(200, clients=(other("a", 30, arrives=arrives, outstanding=2),))
    drops = run(200, clients=(other("a", 30, arrives=arrives, outstanding=2, when_full="drop"),))

    assert [r.state for r in requests(blocks)] == [DONE] * 5
    assert [e.called_ns for e in executes(blocks)] == [0, 10, 30, 60, 90]
    assert [r.state for r in requests(drops)] == [DONE, DONE, DROPPED, DONE, DONE]
    assert [e.called_ns for e in executes(drops)] == [0, 10, 30, 70]


def test_unlimited_clients_queue_in_their_context() -> None:
    log = run(200, clients=(other("a", 30, arrives=(0, 1, 2, 3), outstanding=0),))

    assert [(e.submitted_ns, e.started_ns) for e in executes(log)] == [(0, 0), (1, 30), (2, 60), (3, 90)]


def test_closed_loops_of_one_client_go_round_side_by_side() -> None:
    log = run(100, clients=(other("a", 10, arrivals=closed(5), outstanding=2),))

    assert spans(log)[:4] == [(0, 5, 15), (0, 15, 25), (0, 25, 35), (0, 35, 45)]
    assert [r.request for r in requests(log)] == list(range(len(requests(log))))


def test_a_job_that_has_not_arrived_is_not_counted() -> None:
    log = run(100, clients=(other("a", 10, arrivals=closed(1_000)),))

    assert requests(log) == []


def test_a_dialog_keeps_its_kv_and_a_full_context_is_refused() -> None:
    """Five tokens a turn in a context of 12: turns 0 and 1 fit, the third is refused and the dialog starts anew."""
    chat = instance("chat", llm=llm((1,), (1,), ar=2, context_tokens=12), text_tokens=constant(3), dialog_turns=4,
                    arrivals=periodic(100))  # fmt: skip
    log = run(600, instances=(chat,))

    told = [(r.turn, r.state, r.prompt_tokens, r.tokens) for r in requests(log)]
    assert told == [(0, DONE, 3, 2), (1, DONE, 3, 2), (2, REFUSED, 3, 0), (0, DONE, 3, 2), (1, DONE, 3, 2),
                    (2, REFUSED, 3, 0), (0, RUNNING, 3, 0)]  # fmt: skip
    assert [r.done_ns for r in requests(log) if r.state == REFUSED] == [200, 500]


def test_a_finished_dialog_frees_its_context() -> None:
    chat = instance("chat", llm=llm((1,), (1,), context_tokens=12), text_tokens=constant(3), dialog_turns=2,
                    arrivals=periodic(100))  # fmt: skip

    assert [(r.turn, r.state) for r in requests(run(450, instances=(chat,)))] == [
        (0, DONE), (1, DONE), (0, DONE), (1, DONE), (0, DONE),
    ]  # fmt: skip


def test_a_later_turn_prefills_its_own_tokens_only() -> None:
    chat = instance("chat", llm=llm((10,), (1,), ar=2), text_tokens=constant(3), dialog_turns=3, arrivals=periodic(100))
    log = run(250, instances=(chat,))

    assert [r.first_token_ns - r.begun_ns for r in requests(log)] == [20, 20, 20]


def test_a_request_without_images_skips_the_vit() -> None:
    log = run(instances=(instance("a", vit=vit(10), llm=llm((5,), (1,)), images=constant(0)),))

    (request,) = requests(log)
    assert (request.vit_done_ns, request.first_token_ns) == (NEVER, 5)


def test_a_warm_up_lies_between_loading_and_the_window() -> None:
    log = run(100, warmup_ns=30, clients=(other("a", 1, arrives=(0,)),))

    assert (log.ready_ns, log.start_ns, log.end_ns) == (0, 30, 130)


@pytest.mark.parametrize(
    "given",
    [
        {"clients": (replace(other("a", 1), model=replace(other("a", 1).model, graphs=()), arrivals=closed(0)),)},
        {"instances": (instance("a", vit=vit(1), images=constant(0), arrivals=closed(0)),)},
        {"instances": (instance("a", llm=llm((1,), (1,), context_tokens=1), arrivals=closed(0)),)},
    ],
    ids=["a job of nothing", "a request of nothing", "a request that is always refused"],
)
def test_a_loop_that_never_lets_time_pass_is_refused(given: dict[str, tuple[object, ...]]) -> None:
    with pytest.raises(ScenarioError, match=r"\.a: got \d+ requests of a closed loop that took no time, at 0 ns"):
        run(**given)


@pytest.mark.parametrize(
    ("scenario", "what"),
    [
        (Scenario(clients=(other("a", 1, arrivals=periodic(0)),)), r"clients\.a\.arrivals\.period: got 0 ns"),
        (
            Scenario(clients=(other("a", 1, outstanding=0),)),
            r"clients\.a\.outstanding: got unlimited for a closed loop",
        ),
        (Scenario(clients=(other("a", 1, process=70_000),)), r"clients\.a\.process: got 70000"),
        (Scenario(clients=(other("a", 2**42),)), r"models\.a model/g0: got up to"),
        (
            Scenario(run=Run(duration_ns=2**46), guard=Guard(policy="eevdf")),
            r"run\.duration: .* virtual times of policy eevdf would overflow",
        ),
        (Scenario(run=Run(duration_ns=2**53)), r"run\.duration: .* instants would not be exact"),
        (
            Scenario(run=Run(duration_ns=2**45), device=replace(PLAIN, cores=2), guard=Guard(policy="stride")),
            r"run\.duration: .* with 2 slots",
        ),
        (Scenario(device=replace(PLAIN, load_bandwidth=1), clients=(other("a", 1, weights=10**8),)), r"run\.duration"),
        (Scenario(device=replace(PLAIN, dram_bandwidth=2**42)), r"device\.dram_bandwidth: got"),
        (Scenario(device=replace(PLAIN, yield_rule="grid", yield_interval_ns=0)), r"device\.yield_interval: got 0"),
    ],
)
def test_what_an_engine_cannot_count_is_refused_beforehand(scenario: Scenario, what: str) -> None:
    with pytest.raises(ScenarioError, match=what):
        Simulation(scenario)


def test_a_duration_just_below_the_limit_is_taken() -> None:
    assert Simulation(Scenario(run=Run(duration_ns=2**46 - 1))).run().executes == []


def test_the_thread_of_an_instance_has_one_call_outstanding() -> None:
    a = instance("a", vit=vit(10), llm=llm((5, 5), (1, 1)), arrivals=periodic(7))
    calls = executes(run(400, instances=(a,)))

    assert all(before.returned_ns <= after.called_ns for before, after in pairwise(calls))
