"""A starved client is named and its means are withheld; a slow one is not starved."""

from __future__ import annotations

import pytest

from htpsim.results import RunLog, summarise
from htpsim.results.columns import DONE, RUNNING, STAGE_JOB
from htpsim.spec import OtherClient, Run, Scenario
from tests.results.synthetic import MS, execute, model, plain, request

S = 1000 * MS


def loops(horizon: int, *, loser: tuple[int, ...]) -> RunLog:
    """Two closed loops of a 300 ms graph: one served all the time, the other made of one call."""
    graph = model("net", "other", graphs=300 * MS)
    rows = [
        plain(0, k, STAGE_JOB, k * 300 * MS, (k + 1) * 300 * MS, execute=k + 1) for k in range(horizon // (300 * MS))
    ]
    jobs = [
        request(client=0, request=k, state=DONE, arrived_ns=begun, begun_ns=begun, done_ns=begun + 300 * MS)
        for k, begun in enumerate(range(0, len(rows) * 300 * MS, 300 * MS))
    ]
    scenario = Scenario(
        name="loops",
        run=Run(duration_ns=horizon),
        clients=(OtherClient(name="high", model=graph), OtherClient(name="low", model=graph)),
    )
    return RunLog(
        scenario=scenario, replication=0, engine="", end_ns=horizon, clients=["high", "low"], graphs=["net/graphs"],
        executes=[*rows, loser], requests=[*jobs, request(client=1, state=RUNNING, begun_ns=0)],
    )  # fmt: skip


def waiting(called_ns: int) -> tuple[int, ...]:
    return execute(client=1, stage=STAGE_JOB, called_ns=called_ns, granted_ns=called_ns, submitted_ns=called_ns,
                   solo_ns=300 * MS)  # fmt: skip


def test_a_call_that_never_ran_is_starved_and_named() -> None:
    summary = summarise(loops(600 * S, loser=waiting(0)))

    assert summary.clients["low"].starved == "a job call of request 0 unfinished for 600 s; alone it takes 300 ms"
    assert summary.clients["low"].job.mean.value is None
    assert summary.clients["low"].job.mean.why.startswith("starved: ")
    assert summary.clients["high"].job.mean.value == 300 * MS
    assert summary.overall.job.mean.why == "low starved"
    assert "low starved: a job call of request 0" in summary.notes[0]


def test_one_that_took_30_seconds_in_600_is_slow_not_starved() -> None:
    slow = plain(1, 0, STAGE_JOB, 30 * S, 30 * S + 300 * MS, wait=30 * S)

    assert summarise(loops(600 * S, loser=slow)).clients["low"].starved == ""


@pytest.mark.parametrize(
    ("horizon", "called", "starved"),
    [
        pytest.param(60 * S, 29_999 * MS, True, id="just beyond both"),
        pytest.param(60 * S, 30 * S, False, id="exactly 100 x solo and half the time"),
        pytest.param(20 * S, 0, False, id="a short run proves nothing"),
    ],
)
def test_the_limits(horizon: int, called: int, starved: bool) -> None:
    summary = summarise(loops(horizon, loser=waiting(called)))

    assert bool(summary.clients["low"].starved) == starved


def test_a_call_that_did_return_too_late_is_named_too() -> None:
    late = plain(1, 0, STAGE_JOB, 599 * S, 599 * S + 300 * MS, wait=599 * S)

    assert "took 599 s" in summarise(loops(600 * S, loser=late)).clients["low"].starved


def test_a_short_run_says_that_it_is_empty() -> None:
    empty = loops(0, loser=waiting(0))
    empty.executes, empty.requests = [], []
    assert summarise(empty).notes == ["nothing arrived: no client has work, or the run ended before its first arrival"]
    assert summarise(empty).overall.tokens_per_s.why == "the measured window is empty"

    unfinished = loops(200 * MS, loser=waiting(0))
    assert summarise(unfinished).notes == [
        "no request or job finished in the measured window: most figures are n/a; a longer duration is needed"
    ]
