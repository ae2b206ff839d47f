"""On generated logs, the vectorised figures equal a slow reading of the rows, and what must hold holds."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given

from htpsim.results import RunLog, RunResult, summarise
from htpsim.results.columns import DONE, NEVER, PARTS, PATH_GENIE, QUEUED, RUNNING, STAGE_VIT, STAGES, Execute, Request
from tests.results.strategies import logs


def executes(log: RunLog) -> list[Execute]:
    return [Execute(*row) for row in log.executes]


def requests(log: RunLog) -> list[Request]:
    return [Request(*row) for row in log.requests]


def inside(log: RunLog, time_ns: int) -> bool:
    return log.start_ns < time_ns <= log.end_ns


def slow_samples(log: RunLog) -> dict[str, list[int]]:
    """Read every latency sample off the rows, one by one."""
    found: dict[str, list[int]] = {
        name: [] for name in ("ttft", "itl", "tpot", "vit", "vit_image", "prefill", "worst_gap")
    }
    for r in requests(log):
        mine = [x for x in executes(log) if (x.client, x.request) == (r.client, r.request)]
        times = [x.returned_ns for x in sorted(mine, key=lambda x: x.token) if x.token >= 0 and x.returned_ns != NEVER]
        gaps = [later - earlier for earlier, later in pairwise(times)]
        found["itl"] += [gap for gap, end in zip(gaps, times[1:], strict=True) if inside(log, end)]
        if inside(log, r.first_token_ns):
            found["ttft"].append(r.first_token_ns - r.arrived_ns)
            found["prefill"].append(r.first_token_ns - min(x.called_ns for x in mine if STAGES[x.stage] == "prefill"))
        if inside(log, r.vit_done_ns):
            vit = [x for x in mine if x.stage == STAGE_VIT]
            found["vit"].append(r.vit_done_ns - min(x.called_ns for x in vit))
            found["vit_image"].append(max(x.returned_ns for x in vit) - min(x.called_ns for x in vit))
        if r.state == DONE and inside(log, r.done_ns) and gaps:
            found["tpot"].append(sum(gaps) // len(gaps))
            found["worst_gap"].append(max(gaps))
    return found


@given(logs())
def test_samples_equal_a_slow_reading(log: RunLog) -> None:
    result = RunResult(log)

    for name, values in slow_samples(log).items():
        assert sorted(result.samples(name)["value_ns"].tolist()) == sorted(values), name


@given(logs())
def test_device_time_and_utilisation_equal_a_count_of_instants(log: RunLog) -> None:
    summary = summarise(log)
    busy: dict[int, set[int]] = defaultdict(set)
    by_client: dict[int, int] = defaultdict(int)
    for x in executes(log):
        if x.started_ns != NEVER:
            held = range(max(x.started_ns, log.start_ns), log.end_ns if x.finished_ns == NEVER else x.finished_ns)
            busy[x.core] |= set(held)
            by_client[x.client] += len(held)

    for core, figures in enumerate(summary.cores.values()):
        assert figures.utilisation.value == pytest.approx(len(busy[core]) / (log.end_ns - log.start_ns))
        assert 0 <= figures.utilisation.value <= 1
    for i, client in enumerate(summary.clients.values()):
        assert client.device.device_ns == by_client[i]


@given(logs())
def test_conservation_and_sums(log: RunLog) -> None:
    summary = summarise(log)

    for i, group in enumerate([*summary.clients.values(), summary.overall]):
        mine = [r for r in requests(log) if group is summary.overall or r.client == i]
        c = group.counts
        assert c.arrived == len(mine)
        assert c.arrived == c.done + c.running + c.queued + c.dropped + c.refused
        assert all(sum(p.parts_ns.values()) == p.total_ns for p in group.parts.values())
        assert group.open_requests.value == sum(
            r.state in {QUEUED, RUNNING} and r.first_token_ns == NEVER for r in mine
        )
    returned = [x for x in executes(log) if inside(log, x.returned_ns)]
    for part in PARTS:
        assert sum(p.parts_ns[part] for p in summary.overall.parts.values()) == sum(getattr(x, part) for x in returned)
    assert summary.overall.counts.arrived == sum(c.counts.arrived for c in summary.clients.values())
    assert summary.overall.tokens.value == sum(c.tokens.value for c in summary.clients.values())


@given(logs())
def test_the_line_at_the_guard_equals_a_replay(log: RunLog) -> None:
    guarded = [x for x in executes(log) if x.path == PATH_GENIE]
    grants = sorted(x.granted_ns for x in guarded if x.granted_ns != NEVER)
    in_line = [sum(x.called_ns <= at for x in guarded) - before for before, at in enumerate(grants) if inside(log, at)]
    guard = summarise(log).guard

    assert guard.line_max.value == (max(in_line) if in_line else None)
    assert guard.choices.value == (pytest.approx(sum(n > 1 for n in in_line) / len(in_line)) if in_line else None)


@given(logs())
def test_shares_add_up_and_nobody_gets_more_than_it_wants(log: RunLog) -> None:
    clients = list(summarise(log).clients.values())

    for name in ("share", "weight_share", "fair_share"):
        values = [value for c in clients if (value := getattr(c.device, name).value) is not None]
        if values:
            assert sum(values) == pytest.approx(1)
            assert all(0 <= value <= 1 for value in values)
    assert all(0 <= c.device.demand.value <= log.scenario.device.cores + 1e-9 for c in clients)


@given(logs())
def test_misses_equal_a_slow_reading(log: RunLog) -> None:
    for i, client in enumerate(summarise(log).clients.values()):
        deadline = log.scenario.instances[i].ttft_deadline_ns
        mine = [r for r in requests(log) if r.client == i]
        if deadline is None:
            assert client.ttft_misses.value is None
            continue
        ended = [r.first_token_ns - r.arrived_ns for r in mine if inside(log, r.first_token_ns)]
        still = [log.end_ns - r.arrived_ns for r in mine if r.first_token_ns == NEVER and r.state in {QUEUED, RUNNING}]
        late = sum(v > deadline for v in ended + still)
        nobody = not ended and not late
        assert client.ttft_misses.value == (None if nobody else late)


@given(logs())
def test_the_summary_does_not_depend_on_the_container(log: RunLog) -> None:
    plain = summarise(log).to_dict()
    log.executes = np.array(log.executes, dtype=np.int64).reshape(-1, len(Execute._fields))

    assert summarise(log).to_dict() == plain
