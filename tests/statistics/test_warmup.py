"""Warm-up is found where a run settles, and refused where it does not."""

from __future__ import annotations

import pytest

from htpsim.errors import HtpsimError
from htpsim.experiments.warmup import common_warm_up, warm_up
from htpsim.spec import Arrivals, Context, Device, Graph, Model, OtherClient, Run, Scenario, constant
from tests.cli.support import PAIR, call

MS = 1_000_000


def draining(jobs: int, service_ms: int) -> Scenario:
    """Jobs of so many ms every 10 ms, after `jobs` of them that all came at once."""
    times = tuple([0] * jobs + [10 * k * MS for k in range(1, 900)])
    model = Model(name="m", role="other", contexts=(Context(name="c", weights_bytes=1),),
                  graphs=(Graph(name="g", context="c", service=constant(service_ms * MS)),))  # fmt: skip
    client = OtherClient(name="q", model=model, arrivals=Arrivals(kind="replay", times_ns=times))
    return Scenario(device=Device(cores=1), run=Run(duration_ns=9_000 * MS), clients=(client,))


def test_the_backlog_of_the_beginning_is_cut() -> None:
    """Forty jobs of 5 ms are worked off in 400 ms: after that each job takes its 5 ms."""
    found = warm_up(draining(40, 5))
    assert 390 * MS <= found.length_ns <= 450 * MS
    assert "of " in found.said["jobs"]
    assert warm_up(draining(0, 5)).length_ns == 0


def test_what_never_settles_is_refused() -> None:
    with pytest.raises(HtpsimError, match="has not settled"):
        warm_up(draining(0, 11))
    with pytest.raises(HtpsimError, match="nothing happened"):
        warm_up(Scenario())


def test_of_several_the_longest_counts() -> None:
    assert common_warm_up([draining(0, 5), draining(40, 5)]) == warm_up(draining(40, 5))


def test_the_command_leaves_the_warm_up_to_mser5(capsys: pytest.CaptureFixture[str]) -> None:
    done = call(capsys, "run", PAIR, "--for", "10s", "--warmup", "auto", "--replications", "1", "--workers", "1")
    assert done.code == 0
    assert done.err.startswith("Warm-up by MSER-5: ")
    fixed = call(capsys, "run", PAIR, "--for", "1s", "--warmup", "250ms", "--replication", "0", "--workers", "1")
    assert fixed.code == 0
    wrong = call(capsys, "run", PAIR, "--warmup", "soon")
    assert wrong.code == 2
    assert "or auto" in wrong.err
    twice = call(capsys, "run", PAIR, "--warmup", "1s", "--set", "run.warmup=2s")
    assert "got both" in twice.err
