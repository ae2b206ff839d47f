"""Faults of measuring (F10 to F15, F19, F20, F31, F32): what is counted, from where, and what is left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from htpsim.results import RunLog
from htpsim.results import metric as metric_of
from htpsim.results import metrics as metrics_of
from htpsim.results import notes as notes_of
from htpsim.results.columns import DONE, DROPPED, NEVER, PARTS, QUEUED, RUNNING, Execute, Request
from htpsim.results.metric import Metric, Stats, order_statistic, samples_needed, stats
from htpsim.results.samples import DEFINITIONS, MEASURES, Sample
from htpsim.results.tables import Tables
from htpsim.scenario import problems
from htpsim.sim import Simulation
from htpsim.sim.requests import Backlog
from htpsim.spec import Arrivals, Instance, Run, Scenario, constant
from tests.faults.planted import Plant, notices, swap, swap_item
from tests.faults.scenes import S, metrics, play, scene, told
from tests.sim.build import PLAIN, closed, executes, instance, llm, other, requests, vit


def replay(*times_ns: int) -> Arrivals:
    return Arrivals(kind="replay", times_ns=times_ns)


def vlm(**given: Any) -> Instance:
    """Make one whose request takes 12 ns to its first token and 3 more to its second."""
    return instance("vlm", vit=vit(5), llm=llm((7,), (3,)), **given)


def measured(name: str, value: Callable[[Tables, Any], Any]) -> Plant:
    """Plant another value of a measure of requests, for the samples that the honest one takes."""
    honest = MEASURES[name]

    def faulty(tables: Tables) -> Sample:
        rows = tables.measured(tables.requests["first_token_ns"])
        return Sample(honest(tables).client, value(tables, rows))

    return swap_item(MEASURES, name, faulty)


def since_begun(tables: Tables, rows: Any) -> Any:
    """Return a time to first token that leaves out the queue."""
    r = tables.requests
    return (r["first_token_ns"] - r["begun_ns"])[rows]


def test_f10_what_is_not_steady_yet_is_not_measured() -> None:
    """A warm-up was left to the user to think of, so averages held the empty and cold beginning.

    https://github.com/r-simmer/simmer/issues/214. Here loading never counts, a warm-up is a parameter of every run, and
    what ends within it is in no figure: of this loop, the job that had to wait for the core to power up.
    """
    loop = other("loop", 10, weights=500, arrivals=closed(0))
    cold = replace(PLAIN, power_up_ns=100, load_bandwidth=S)

    def check() -> None:
        log = play(1_000, warmup_ns=150, device=cold, clients=(loop,))
        summary = told(log)
        assert (log.ready_ns, log.start_ns, log.end_ns) == (500, 650, 1_650)
        job = summary.clients["loop"].job
        assert (job.mean.value, job.max.value, job.mean.n) == (10, 10, 100)
        assert summary.overall.requests_per_s.value == 100 * S / 1_000
        assert summary.cores["core 0"].utilisation.value == 1
        unwarmed = told(play(1_000, device=cold, clients=(loop,))).clients["loop"].job
        assert (unwarmed.max.value, unwarmed.mean.n) == (110, 90)

    def all_that_ended(self: Tables, time_ns: Any) -> Any:
        return (time_ns > self.log.ready_ns) & (time_ns <= self.log.end_ns)

    notices(check, swap(Tables, "measured", all_that_ended))


def test_f11_ttft_counts_from_the_request_and_from_nothing_earlier() -> None:
    """Time to first token was counted from the start of the session, which made it 28 to 71 times too long.

    https://github.com/inference-sim/inference-sim/issues/962. Here every request has an arrival of its own: late in the
    run, after a pause, or as a later turn of a dialog.
    """

    def check() -> None:
        for arrivals in (replay(1_000, 10_000, 100_000), closed(5_000)):
            for turns in (1, 3):
                ttft = told(play(120_000, instances=(vlm(arrivals=arrivals, dialog_turns=turns),))).overall.ttft
                assert ttft.mean.n >= 3
                assert (ttft.mean.value, ttft.max.value) == (12, 12)

    def since_the_start(tables: Tables, rows: Any) -> Any:
        return tables.requests["first_token_ns"][rows] - tables.log.start_ns

    def since_the_session_began(tables: Tables, rows: Any) -> Any:
        return tables.requests["first_token_ns"][rows] - tables.requests["arrived_ns"].min()

    notices(check, measured("ttft", since_the_start), measured("ttft", since_the_session_began))


def test_f12_each_part_of_a_latency_is_in_it_once() -> None:
    """A composed latency left out the wait in one queue and counted one service twice.

    https://github.com/inference-sim/inference-sim/issues/1510. Here it is checked part by part: a time to first token
    is the wait for the thread, the calls up to that token and the host's gaps between them; a call is its parts.
    """
    one = vlm(arrivals=replay(0, 0, 4, 90), vit_path="genie", host_gap_graph_ns=2)
    one = replace(one, llm=llm((7, 4), (3,)))
    rivals = tuple(other(f"rival{n}", 9, arrivals=closed(1)) for n in range(2))
    device = replace(PLAIN, rpc_call_ns=1, rpc_return_ns=2, acquire_ns=1, yield_latency_ns=3, evict_ns=2)

    def check() -> None:
        log = play(2_000, device=device, instances=(one,), clients=rivals)
        asked = [r for r in requests(log) if r.client == 0]
        assert [r.state for r in asked] == [DONE] * 4
        expected = [_to_first_token(log, r) for r in asked]
        assert sorted(MEASURES["ttft"](Tables(log)).value_ns.tolist()) == sorted(expected)
        assert asked[1].begun_ns > asked[1].arrived_ns
        for parts in told(log).overall.parts.values():
            assert parts.total_ns == sum(parts.parts_ns.values())

    def service_twice(tables: Tables, rows: Any) -> Any:
        prefill_ns = MEASURES["prefill"](tables).value_ns
        return (tables.requests["first_token_ns"] - tables.requests["arrived_ns"])[rows] + prefill_ns

    notices(check, measured("ttft", since_begun), measured("ttft", service_twice))


def _to_first_token(log: RunLog, request: Request) -> int:
    """Add up what a request spent until its first token; a gap of 2 ns follows the first of two prefill graphs."""
    mine = [e for e in executes(log) if (e.client, e.request) == (request.client, request.request)]
    until = next(n for n, e in enumerate(mine) if e.token == 0)
    calls_ns = sum(sum(getattr(e, part) for part in PARTS) for e in mine[: until + 1])
    return request.begun_ns - request.arrived_ns + calls_ns + 2


def test_f13_a_run_too_short_says_so() -> None:
    """A horizon shorter than the first answer gave an empty result that looked like one without load.

    https://github.com/inference-sim/inference-sim/issues/193. Here no figure is zero for want of samples: it is missing
    with its reason, and a sentence tells why most of them are.
    """

    def check() -> None:
        short = told(play(11, instances=(vlm(arrivals=replay(0)),)))
        assert any("no request or job finished" in note and "longer duration" in note for note in short.notes)
        assert (short.overall.counts.arrived, short.overall.counts.running) == (1, 1)
        empty = told(play(11, instances=(vlm(arrivals=replay(12)),)))
        assert any("nothing arrived" in note for note in empty.notes)
        for summary in (short, empty):
            assert summary.overall.ttft.mean.value is None
            silent = [path for path, m in metrics(summary).items() if m.value is None and not m.why]
            assert silent == []
        none = Scenario(run=Run(duration_ns=0), instances=(vlm(),))
        assert any(said.startswith("run.duration: got 0") for said in problems(none))

    def zero(values: Any, unit: str = "ns", *, why: str = "") -> Stats:
        honest = stats(values, unit, why=why)
        return honest if len(values) else Stats(*[Metric(0, 0, unit)] * 5)

    def without_a_reason(why: str, unit: str, n: int = 0) -> Metric:
        return Metric(None, n, unit)

    notices(
        check,
        swap(notes_of, "_emptiness", lambda summary: []),
        swap(metrics_of, "stats", zero),
        swap(metric_of, "missing", without_a_reason),
    )


OVERLOADED = {"arrivals": Arrivals(kind="periodic", period_ns=6), "ttft_deadline_ns": 40}
"""Every 6 ns a request of 15 ns."""


def test_f14_what_is_still_open_is_told_beside_every_mean() -> None:
    """Requests that ran or waited at the end were left out of the means, so the worst of an overload was invisible.

    https://github.com/inference-sim/inference-sim/issues/1298, /1310 and /1389. A mean cannot hold what has no end yet;
    so here the open ones are counted, queued and running alike, with the age of the oldest, they count as misses once
    they are beyond their deadline, and a sentence says that the means are too low.
    """

    def check() -> None:
        log = play(600, instances=(vlm(**OVERLOADED),))
        summary, asked = told(log).clients["vlm"], requests(log)
        still = [r for r in asked if r.first_token_ns == NEVER]
        assert {r.state for r in still} == {QUEUED, RUNNING}
        assert summary.open_requests.value == len(still) > 50
        assert summary.open_age.value == 600 - still[0].arrived_ns
        late = [r for r in asked if (600 if r.first_token_ns == NEVER else r.first_token_ns) - r.arrived_ns > 40]
        assert summary.ttft_misses.value == len(late)
        assert any("the means leave them out and are too low" in note for note in told(log).notes)

    def nothing_open(tables: Tables) -> Sample:
        return Sample(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))

    def only_running(tables: Tables) -> Sample:
        r = tables.requests
        rows = (r["first_token_ns"] == NEVER) & (r["state"] == RUNNING)
        return Sample(r["client"][rows], tables.log.end_ns - r["arrived_ns"][rows])

    notices(
        check,
        swap(metrics_of, "open_first_tokens", nothing_open),
        swap(metrics_of, "open_first_tokens", only_running),
        swap(notes_of, "_left_out", lambda summary: []),
    )


def test_f15_every_arrival_is_somewhere() -> None:
    """Arrivals were not completions plus what ran plus what waited, and nothing checked that they were.

    https://github.com/inference-sim/inference-sim/issues/273. Here arrivals are known from outside, by their times;
    each is in one state, and the states are what the engine's queues and the rows of the graphExecutes say.
    """
    times = tuple(range(0, 400, 7))
    full = replace(other("full", 10, arrives=times), outstanding=1, when_full="drop")
    blocked = replace(other("blocked", 10, arrives=times), outstanding=2)
    queue = vlm(arrivals=replay(*times), queue_limit=3, drop="oldest")
    newest = replace(queue, name="newest", drop="newest", vit_path="genie")

    def check() -> None:
        simulation = Simulation(scene(350, instances=(queue, newest), clients=(full, blocked)))
        log = simulation.run()
        came = sum(at_ns <= 350 for at_ns in times)
        for name, client in told(log).clients.items():
            number = log.clients.index(name)
            thread: Any = simulation.threads[number]
            mine = [r for r in requests(log) if r.client == number]
            state = Counter(r.state for r in mine)
            counts = client.counts
            assert counts.arrived == came == len(mine)
            assert counts.done + counts.running + counts.queued + counts.dropped + counts.refused == came
            waiting = thread.backlog.queue if number < 2 else thread.waiting
            assert counts.queued == state[QUEUED] == len(waiting)
            assert (counts.dropped > 0) == (name != "blocked")
            served = {e.request for e in executes(log) if e.client == number}
            assert {r.request for r in mine if r.state in (DONE, RUNNING)} == served

    def forget(self: Backlog, request: Any, *, taken_up: bool) -> None:
        """Turn one away without a word."""
        if taken_up or len(self.queue) < 3:
            self.queue.append(request)

    def write_down_what_was_served(self: Simulation, *window: int) -> RunLog:
        log = honest(self, *window)
        log.requests[:] = [row for row in log.requests if Request._make(row).state not in (QUEUED, DROPPED)]
        return log

    honest = Simulation._log
    notices(check, swap(Backlog, "add", forget), swap(Simulation, "_log", write_down_what_was_served))


def test_f19_the_definition_stands_beside_the_figure() -> None:
    """Time to first token meant one thing in the simulator and another in the stack that it was compared with.

    https://github.com/microsoft/vidur/issues/80. Here both are offered by names of their own, ``ttft`` as the user
    waits and ``prefill`` as the runtime's own timer sees it, and every output carries what each figure means.
    """
    assert set(MEASURES) <= set(DEFINITIONS)

    def check() -> None:
        log = play(200, instances=(vlm(arrivals=replay(0, 1)),))
        summary = told(log)
        assert summary.to_dict()["definitions"]["ttft"].startswith("first token - arrival of the request")
        assert summary.to_dict()["definitions"]["prefill"].startswith("first token - first prefill call")
        first = [e.returned_ns for e in executes(log) if e.token == 0]
        begun = [e.called_ns for e in executes(log) if e.token == 0]
        tables = Tables(log)
        assert MEASURES["ttft"](tables).value_ns.tolist() == [first[0] - 0, first[1] - 1] == [12, 26]
        assert MEASURES["prefill"](tables).value_ns.tolist() == [a - b for a, b in zip(first, begun, strict=True)]

    def second_token(tables: Tables, rows: Any) -> Any:
        return (tables.requests["done_ns"] - tables.requests["arrived_ns"])[rows]

    notices(
        check,
        measured("ttft", since_begun),
        measured("ttft", second_token),
        swap_item(DEFINITIONS, "ttft", "first token - start of the service"),
    )


def test_f20_an_overload_shows_in_ttft() -> None:
    """Time to first token was what the model had been told it was, however many requests stood before it.

    https://github.com/llm-d/llm-d-inference-sim/issues/266. Here request n of an overload has waited n times what the
    thread fell behind; below capacity nobody waits.
    """

    def check() -> None:
        for period_ns, behind_ns in ((20, 0), (15, 0), (10, 5), (5, 10)):
            log = play(500, instances=(vlm(arrivals=Arrivals(kind="periodic", period_ns=period_ns)),))
            ttft = told(log).overall.ttft
            served = MEASURES["ttft"](Tables(log)).value_ns.tolist()
            assert len(served) >= 25
            assert served == [12 + n * behind_ns for n in range(len(served))]
            assert ttft.max.value == served[-1]

    notices(check, measured("ttft", since_begun))


def test_f31_a_quantile_is_a_value_that_occurred_and_not_the_largest() -> None:
    """The 95th percentile of few samples lay beyond their maximum, or was the maximum and called a percentile.

    https://github.com/agno-agi/agno/issues/8656, https://github.com/mergewatch/mergewatch.ai/issues/336. Here it is the
    least value that 95 % do not exceed, and none is given of fewer samples than would leave two above it.
    """

    def check() -> None:
        for count in (*range(1, 130), 199, 200, 201, 333):
            ordered = [3 * n + 1 for n in range(count)]
            found = stats(np.array(ordered[::-1], dtype=np.int64))
            for percent, metric in ((50, found.p50), (95, found.p95), (99, found.p99)):
                rank = next(rank for rank in range(1, count + 1) if 100 * rank >= percent * count)
                if metric.value is None:
                    assert count < 5 or count - rank < 2
                    assert str(count) in metric.why
                else:
                    assert metric.value == ordered[rank - 1]
                    assert percent == 50 or count - rank >= 2

    def floored(ordered: Any, percent: int) -> int:
        return int(ordered[min(len(ordered) - 1, len(ordered) * percent // 100)])

    def beyond(ordered: Any, percent: int) -> float:
        place = (len(ordered) + 1) * percent / 100 - 1
        below = min(int(place), len(ordered) - 2)
        return float(ordered[below] + (place - below) * (ordered[below + 1] - ordered[below]))

    notices(
        check,
        swap(metric_of, "order_statistic", floored),
        swap(metric_of, "order_statistic", beyond),
        swap(metric_of, "samples_needed", lambda percent: 2),
    )
    assert (order_statistic(np.array([4, 9]), 95), samples_needed(95)) == (9, 40)


def test_f32_tokens_of_unfinished_requests_count() -> None:
    """Throughput was made of finished requests only, so one cut off by the end took its tokens with it.

    https://github.com/vllm-project/guidellm/issues/529. Here a token counts when it comes, whatever becomes of its
    request; device time counts up to the end as well.
    """
    endless = instance(
        "endless", llm=llm((10,), (10,), context_tokens=10_000), arrivals=replay(0), output_tokens=constant(5_000)
    )

    def check() -> None:
        log = play(1_000, warmup_ns=100, instances=(endless,))
        summary = told(log).overall
        assert summary.counts.done == 0
        assert (summary.tokens.value, summary.tokens_per_s.value) == (100, 100 * S / 1_000)
        assert (summary.itl.mean.value, summary.itl.mean.n) == (10, 100)
        assert told(log).clients["endless"].device.device_ns == 1_000
        assert len([e for e in map(Execute._make, log.executes) if e.returned_ns == NEVER]) == 1

    def of_the_done(tables: Tables) -> Any:
        tokens = honest.func(tables)
        rows = tables.requests["state"][tables.request_rows(tokens.client, tokens.request)] == DONE
        return type(tokens)(*(column[rows] for column in tokens))

    honest: Any = Tables.__dict__["tokens"]
    notices(check, swap(Tables, "tokens", property(of_the_done)))
