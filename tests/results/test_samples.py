"""What counts as an image, a prefill, a gap, at the edges of the window and of the run."""

from __future__ import annotations

import pytest

from htpsim.results import RunLog, summarise
from htpsim.results.columns import DONE, NEVER, RUNNING, STAGE_DECODE, STAGE_PREFILL, STAGE_VIT
from htpsim.results.samples import itl, prefill, tpot, vit, vit_image
from htpsim.results.tables import Tables
from htpsim.spec import Instance, Scenario
from tests.results.synthetic import LLM, VIT, hand_log, plain, request


def log_of(executes: list[tuple[int, ...]], requests: list[tuple[int, ...]], start: int, end: int) -> Tables:
    scenario = Scenario(instances=(Instance(name="a", vit=VIT, llm=LLM),))
    return Tables(
        RunLog(
            scenario=scenario, replication=0, engine="", start_ns=start, end_ns=end, clients=["a"],
            graphs=["vit/graphs"], executes=executes, requests=requests,
        )
    )  # fmt: skip


def test_an_image_of_two_graphs_ends_with_its_last_and_an_unfinished_one_does_not_count() -> None:
    first = [plain(0, 0, STAGE_VIT, 0, 10, step=0), plain(0, 0, STAGE_VIT, 15, 30, step=0, wait=2)]
    # The second image has returned its first graph only; its second has not been called yet.
    second = [plain(0, 0, STAGE_VIT, 30, 44, step=1)]
    running = [request(state=RUNNING, images=2)]

    assert vit_image(log_of(first + second, running, 0, 50)).value_ns.tolist() == [30]
    assert vit(log_of(first + second, running, 0, 50)).value_ns.tolist() == []

    done = [request(state=RUNNING, images=2, vit_done_ns=60)]
    second.append(plain(0, 0, STAGE_VIT, 50, 60, step=1))
    assert vit_image(log_of(first + second, done, 0, 70)).value_ns.tolist() == [30, 30]
    assert vit(log_of(first + second, done, 0, 70)).value_ns.tolist() == [60]


@pytest.mark.parametrize(("start", "end", "counted"), [(20, 30, [10]), (19, 29, []), (29, 30, [10]), (30, 40, [])])
def test_a_sample_counts_when_it_ends_in_the_window(start: int, end: int, counted: list[int]) -> None:
    rows = [
        plain(0, 0, STAGE_PREFILL, 10, 20, execute=0, token=0),
        plain(0, 0, STAGE_DECODE, 20, 30, execute=1, token=1),
    ]
    requests = [request(state=DONE, first_token_ns=20, done_ns=30, tokens=2, output_tokens=2)]
    tables = log_of(rows, requests, start, end)

    assert itl(tables).value_ns.tolist() == counted
    assert tpot(tables).value_ns.tolist() == counted


def test_prefill_starts_at_its_first_chunk_and_leaves_the_queue_out() -> None:
    rows = [
        plain(0, 0, STAGE_PREFILL, 10, 20, execute=0, wait=3),
        plain(0, 0, STAGE_PREFILL, 20, 35, execute=1, step=1, token=0),
    ]
    requests = [request(state=RUNNING, arrived_ns=1, first_token_ns=35, tokens=1, output_tokens=2)]

    assert prefill(log_of(rows, requests, 0, 100)).value_ns.tolist() == [28]


def test_tokens_of_two_requests_have_no_gap_between_them() -> None:
    gaps = Tables(hand_log()).tokens

    assert gaps.client.tolist() == [0, 0, 0, 0, 1, 1]
    assert gaps.gap_ns.tolist() == [NEVER, 40, 40, 160, NEVER, 290]


def test_slow_tokens_are_judged_by_their_own_clients_median() -> None:
    """Ten gaps of 10 and two of 16 at one client: 16 is above 1.5 x 10, so two of twelve are slow."""
    ends = [10 * k for k in range(1, 12)] + [126, 142]
    rows = [
        plain(0, 0, STAGE_DECODE if k else STAGE_PREFILL, end - 5, end, execute=k, token=k)
        for k, end in enumerate(ends)
    ]
    tables = log_of(rows, [request(state=RUNNING, first_token_ns=10, tokens=13, output_tokens=20)], 0, 200)
    summary = summarise(tables.log, tables)

    assert summary.overall.slow_tokens.value == pytest.approx(2 / 12)
    assert summary.overall.slow_tokens.n == 12


def test_an_empty_log_has_a_summary() -> None:
    summary = summarise(log_of([], [], 0, 100).log)

    assert summary.overall.counts.arrived == 0
    assert summary.cores["core 0"].utilisation.value == 0.0
    assert summary.guard.weights_without_effect == "no call passed a guard"
