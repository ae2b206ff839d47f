"""Every figure of a log that is small enough to be computed by hand."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from htpsim.errors import HtpsimError
from htpsim.results import RunResult, Summary, summarise
from htpsim.results.columns import Execute
from htpsim.spec import Guard
from tests.results.synthetic import hand_log

LENGTH = 900


@pytest.fixture(scope="module")
def summary() -> Summary:
    return summarise(hand_log())


@pytest.mark.parametrize(
    ("path", "value", "n"),
    [
        ("clients.a.ttft.mean", 200, 1),
        ("overall.ttft.mean", 200, 1),
        ("clients.a.itl.mean", 80, 3),
        ("clients.a.itl.max", 160, 3),
        ("clients.b.itl.mean", 290, 1),
        ("overall.itl.mean", 132.5, 4),
        ("clients.a.tpot.mean", 80, 1),
        ("overall.tpot.mean", (80 + 290) / 2, 2),
        ("clients.a.worst_gap.mean", 160, 1),
        ("clients.b.worst_gap.mean", 290, 1),
        ("clients.a.vit.mean", 180, 2),
        ("clients.a.vit_image.mean", 180, 2),
        ("clients.a.prefill.mean", 100, 1),
        ("clients.job.job.mean", 150, 1),
        ("overall.tokens", 5, 5),
        ("overall.tokens_per_s", 5e9 / LENGTH, 5),
        ("clients.a.tokens_per_s", 4e9 / LENGTH, 4),
        ("clients.a.images_per_s", 2e9 / LENGTH, 2),
        ("overall.requests_per_s", 3e9 / LENGTH, 3),
        ("clients.a.ttft_misses", 1, 2),
        ("clients.a.itl_misses", 1, 3),
        ("clients.job.job_misses", 1, 1),
        ("overall.ttft_misses", 1, 2),
        ("clients.a.open_requests", 1, 1),
        ("clients.a.open_age", 500, 1),
        ("clients.b.open_requests", 2, 2),
        ("clients.b.open_age", 100, 2),
        ("overall.open_requests", 3, 3),
        ("overall.guard_wait.mean", 50, 5),
        ("clients.b.guard_wait.max", 250, 1),
        ("clients.a.guard_wait.max", 0, 4),
        ("overall.device_wait.mean", 290 / 8, 8),
        ("clients.a.device_wait.mean", 290 / 6, 6),
        ("clients.a.device.share", 610 / 790, 6),
        ("clients.b.device.share", 40 / 790, 1),
        ("clients.job.device.share", 140 / 790, 1),
        ("clients.a.device.weight_share", 0.75, 6),
        ("clients.a.device.demand", 610 / (LENGTH - 120 - 130), 6),
        ("clients.b.device.demand", 40 / (LENGTH - 240 - 100), 1),
        ("cores.core 0.utilisation", 780 / LENGTH, 12),
        ("guard.calls", 5, 5),
        ("guard.waited", 1 / 5, 5),
        ("guard.line_max", 2, 6),
        ("guard.choices", 4 / 6, 6),
        ("guard.bypassed", 0, 5),
        ("roles.vit.guarded_share", 0.0, 2),
        ("roles.llm.guarded_share", 1.0, 5),
    ],
)
def test_metric(summary: Summary, path: str, value: float, n: int) -> None:
    metric = summary.metric(path)

    assert metric.value == pytest.approx(value, rel=1e-12)
    assert metric.n == n


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("clients.b.ttft.mean", "no samples"),
        ("clients.a.itl.p50", "3 samples, p50 needs 5"),
        ("clients.a.slow_tokens", "fewer than 5 gaps, too few for a median"),
        ("clients.b.ttft_misses", "no deadline set"),
        ("clients.job.device.fair_share", "no call of it passes a guard"),
        ("clients.job.guard_wait.mean", "no call passed a guard in the window"),
        ("clients.job.open_age", "none is open"),
    ],
)
def test_what_cannot_be_said_is_withheld_with_its_reason(summary: Summary, path: str, why: str) -> None:
    assert (summary.metric(path).value, summary.metric(path).why) == (None, why)


def test_the_water_filled_share_takes_the_unguarded_client_off_first(summary: Summary) -> None:
    taken, thirst_b = 140 / LENGTH, 40 / (LENGTH - 340)

    assert summary.metric("clients.b.device.fair_share").value == pytest.approx(thirst_b)
    assert summary.metric("clients.a.device.fair_share").value == pytest.approx(1 - taken - thirst_b)


def test_arrivals_are_conserved(summary: Summary) -> None:
    b = summary.clients["b"].counts

    assert (b.arrived, b.done, b.running, b.queued, b.dropped, b.refused) == (4, 1, 1, 1, 1, 0)
    for group in (summary.overall, *summary.clients.values()):
        c = group.counts
        assert c.arrived == c.done + c.running + c.queued + c.dropped + c.refused


def test_parts_sum_to_the_whole_of_each_stage(summary: Summary) -> None:
    parts = summary.overall.parts

    assert {stage: (p.n, p.total_ns) for stage, p in parts.items()} == {
        "vit": (2, 360),
        "prefill": (1, 100),
        "decode": (4, 530),
        "job": (1, 140),
    }
    assert parts["vit"].parts_ns["device_wait_ns"] == 170
    assert parts["decode"].parts_ns["guard_wait_ns"] == 250
    assert all(sum(p.parts_ns.values()) == p.total_ns for p in parts.values())


def test_memory_is_kept_by_ledger_and_place(summary: Summary) -> None:
    memory = summary.memory

    assert {k: (v.steady_bytes, v.peak_bytes, v.limit_bytes) for k, v in memory.items()} == {
        "device": (600, 700, 1000),
        "host": (0, 50, None),
        "pd": (300, 300, None),
    }
    assert memory["pd"].places["process 0 core 0 pd 0"].limit_bytes == 3_500_000_000


def test_copies_and_loads(summary: Summary) -> None:
    assert [(c.model, c.copies, c.users) for c in summary.copies] == [("adas", 1, 1), ("llm", 1, 2), ("vit", 1, 1)]
    assert summary.load_ns == 8
    assert next((x.client, x.model, x.role, x.duration_ns) for x in summary.loads) == ("a", "vit", "owner", 4)


def test_roles_tell_what_was_measured(summary: Summary) -> None:
    vit, llm = summary.roles["vit"], summary.roles["llm"]

    assert (vit.instances, vit.copies, vit.device_ns, vit.paths, vit.weights) == (1, 1, 190, ["qnn"], [])
    assert (llm.instances, llm.copies, llm.device_ns, llm.paths, llm.weights) == (2, 1, 460, ["genie"], [1, 3])
    assert vit.priorities == ["NORMAL"]


def test_the_reader_is_told_what_the_means_leave_out(summary: Summary) -> None:
    assert [note for note in summary.notes if note.startswith("b: 2 requests were without a first token")]


def test_weights_without_a_choice_are_said_to_have_no_effect() -> None:
    log = hand_log()
    log.scenario = replace(log.scenario, guard=Guard(slots=1, policy="fifo"))

    assert summarise(log).guard.weights_without_effect == "policy fifo does not look at weights"
    assert "weights had no effect: policy fifo does not look at weights" in summarise(log).notes


def test_no_line_no_effect() -> None:
    log = hand_log()
    i = Execute._fields.index("client")
    log.executes = [row for row in log.executes if row[i] != 1]

    assert summarise(log).guard.weights_without_effect == (
        "no two calls were ever in line together, so the guard never had a choice"
    )
    log.scenario = replace(log.scenario, guard=Guard(slots=2))
    assert summarise(log).guard.weights_without_effect == (
        "as many slots (2) as clients in the guard (2): nobody ever waits"
    )


def test_an_instance_that_did_not_start_claims_no_share() -> None:
    log = hand_log()
    log.failed = {"b": "device DRAM: asked 5, held 1, free 4"}
    summary = summarise(log)

    assert summary.metric("clients.a.device.weight_share").value == 1.0
    assert "b did not start: device DRAM: asked 5, held 1, free 4" in summary.notes


def test_the_summary_is_json_with_integers_and_stable_order(summary: Summary) -> None:
    plain = summary.to_dict()
    text = json.dumps(plain)

    assert json.loads(text) == plain
    assert list(plain)[:4] == ["scenario", "title", "seed", "replication"]
    assert plain["clients"]["a"]["itl"]["max"] == {"value": 160, "n": 3, "unit": "ns", "why": ""}
    assert type(plain["clients"]["a"]["device"]["device_ns"]) is int
    assert summarise(hand_log()).to_dict() == plain
    assert "by hand" not in text, "the engine must not show: two engines give the same summary"


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("overall.itll.p99", "did you mean 'itl'"),
        ("overall.itl", "mean, p50"),
        ("clients.c.itl", "expected one of a, b"),
    ],
)
def test_an_unknown_metric_is_refused_with_the_nearest(summary: Summary, path: str, hint: str) -> None:
    with pytest.raises(HtpsimError, match=hint):
        summary.metric(path)


def test_a_run_shows_itself() -> None:
    result = RunResult(hand_log())

    assert repr(result) == "<RunResult 'hand', seed 1, replication 0: 11 graphExecutes, 7 requests>"
    assert "<th>a</th>" in result._repr_html_()
    assert 'title="3 samples, p50 needs 5">n/a' in result._repr_html_()
    assert result.samples("itl")["value_ns"].tolist() == [40, 40, 160, 290]
    with pytest.raises(HtpsimError, match="did you mean 'ttft'"):
        result.samples("tfft")
