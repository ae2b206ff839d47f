"""Water-filling by its definition, and device shares in cases whose answer is plain."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htpsim.results import summarise, water_fill
from htpsim.results.columns import NEVER, PATH_GENIE, STAGE_PREFILL, Execute
from htpsim.results.occupancy import gang_width, occupancy, union_ns
from htpsim.results.shares import waiting_ns
from htpsim.results.tables import Tables
from htpsim.spec import Arrivals, Device, Guard
from tests.results.synthetic import MS, Machine, execute, hand_log, vlm_scenario

amounts = st.floats(0, 10, allow_subnormal=False)


@given(st.lists(st.tuples(amounts, st.integers(1, 9)), min_size=1, max_size=8), st.floats(0, 20))
def test_water_filling_is_weighted_max_min(clients: list[tuple[float, int]], capacity: float) -> None:
    demands, weights = [d for d, _ in clients], [w for _, w in clients]
    given_ = water_fill(demands, weights, capacity)

    assert all(0 <= g <= d for g, d in zip(given_, demands, strict=True))
    assert sum(given_) == pytest.approx(min(sum(demands), capacity), abs=1e-9)
    # Whoever is not satisfied stands at the level of the water, and nobody is above it.
    levels = [g / w for g, w in zip(given_, weights, strict=True)]
    thirsty = [level for level, g, d in zip(levels, given_, demands, strict=True) if g < d - 1e-9]
    if thirsty:
        assert max(levels) <= min(thirsty) + 1e-9
        assert max(thirsty) - min(thirsty) <= 1e-9


@pytest.mark.parametrize(
    ("demands", "weights", "capacity", "expected"),
    [
        ([1, 1], [3, 1], 1, [0.75, 0.25]),
        ([0.1, 1], [3, 1], 1, [0.1, 0.9]),
        ([0.2, 0.3], [1, 1], 2, [0.2, 0.3]),
        ([1, 1], [0, 1], 1, [0, 1]),
        ([1, 1], [1, 1], -1, [0, 0]),
        ([], [], 1, []),
    ],
)
def test_water_filling_by_hand(
    demands: list[float], weights: list[int], capacity: float, expected: list[float]
) -> None:
    assert water_fill(demands, weights, capacity) == pytest.approx(expected)


def test_a_gang_holds_each_of_its_cores() -> None:
    log = hand_log()
    log.scenario = replace(log.scenario, device=Device(cores=2, topology="gang"))
    summary = summarise(log)

    assert gang_width(Tables(log)).tolist() == [2, 2, 2, 2]
    assert [core.utilisation.value for core in summary.cores.values()] == pytest.approx([780 / 900] * 2)
    assert summary.clients["a"].device.device_ns == 2 * 610


def test_slots_a_core_fill_the_water_core_by_core() -> None:
    """Alone on its core, weight 1 is owed its whole demand; in one pool it is owed less."""

    def fair(slots_per: str) -> float:
        log = hand_log()
        core, client, path = (Execute._fields.index(name) for name in ("core", "client", "path"))
        rows = [list(row) for row in log.executes]
        for row in rows:
            row[core] = 1 if row[client] == 1 else 0
            row[path] = PATH_GENIE
        log.executes = [tuple(row) for row in rows if row[client] != 2]
        log.scenario = replace(
            log.scenario,
            clients=(),
            device=Device(cores=2),
            guard=Guard(slots_per=slots_per, slots=1),
            instances=tuple(replace(i, weight=w) for i, w in zip(log.scenario.instances, (30, 1), strict=True)),
        )
        log.requests = [row for row in log.requests if row[0] != 2]
        return summarise(log).metric("clients.b.device.fair_share").value

    a, b = 610 / (900 - 250), 40 / (900 - 340)
    assert fair("core") == pytest.approx(b / (a + b))
    assert fair("process") == pytest.approx(1 - a)


def test_what_arrives_by_the_clock_demands_no_more_than_it_brings() -> None:
    scenario = vlm_scenario(instances=1, cores=1, tokens=10, jitter=False)
    periodic = Arrivals(kind="periodic", period_ns=4000 * MS)
    scenario = replace(scenario, instances=tuple(replace(i, arrivals=periodic) for i in scenario.instances))
    arrivals = {0: [scenario.run.warmup_ns + 10_000 * MS + k * 4000 * MS for k in range(12)]}
    summary = summarise(Machine(scenario, arrivals).run())
    work = 370 + 3 * 110 + 9 * 57

    assert summary.clients["vlm0"].counts.done == 12
    assert summary.metric("clients.vlm0.device.demand").value == pytest.approx(12 * work / 60_000, rel=1e-3)


def test_two_at_one_instant_on_one_core_count_once() -> None:
    assert union_ns(np.array([0, 0, 10]), np.array([10, 10, 20])) == 20


def test_stretches_of_an_evicted_call_replace_its_span() -> None:
    held = occupancy(Tables(hand_log()))
    mine = held.row == 8

    assert sorted(zip(held.start_ns[mine].tolist(), held.end_ns[mine].tolist(), strict=True)) == [
        (500, 550), (550, 560), (690, 700), (700, 760),
    ]  # fmt: skip


def test_an_open_stretch_lasts_to_the_end() -> None:
    log = hand_log()
    log.slices = [*log.slices, (9, 1, 800, -1)]

    held = occupancy(Tables(log))

    assert held.length_ns[held.row == 9].tolist() == [200]


def test_waiting_while_evicted_counts_to_the_instant_also_when_it_never_returned() -> None:
    log = hand_log()
    assert waiting_ns(Tables(log)).tolist() == [120 + 130, 240 + 100, 0]

    rows = [Execute(*row) for row in log.executes]
    rows[8] = rows[8]._replace(finished_ns=NEVER, returned_ns=NEVER, released_ns=NEVER)
    log.executes = [tuple(row) for row in [*rows[:8], *rows[9:], rows[8]]]
    log.slices = log.slices[:2]  # evicted at 560 and not back when the run ended at 1000

    assert waiting_ns(Tables(log)).tolist() == [120 + 440, 240 + 100, 0]


def test_a_client_that_only_waited_is_owed_what_it_could_have_taken() -> None:
    """It held no core, so nothing tells its demand but its wait; by weights 1:1 it is owed half."""
    log = hand_log()
    rows = [Execute(*row) for row in log.executes]
    waits = execute(client=1, request=0, stage=STAGE_PREFILL, path=PATH_GENIE, called_ns=100, solo_ns=9000)
    log.executes = [*(tuple(x._replace(path=PATH_GENIE)) for x in rows if x.client == 0), waits]
    log.requests = [row for row in log.requests if row[0] != 2]
    equal = tuple(replace(i, weight=1) for i in log.scenario.instances)
    log.scenario = replace(log.scenario, clients=(), instances=equal)
    clients = summarise(log).clients

    assert clients["b"].device.device_ns == 0
    assert clients["b"].device.demand.value == 1.0
    assert clients["b"].device.fair_share.value == pytest.approx(0.5)
