"""Blame: the causes of a delay sum to it to the nanosecond, and name who was really there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htpsim.errors import HtpsimError
from htpsim.results import RunLog, RunResult
from htpsim.results.blame import DEVICE, EVICTED, EVICTION, GUARD, KINDS, NOBODY, OWN, STRETCH, Blame
from htpsim.results.columns import NEVER, STAGE_DECODE, STAGE_VIT
from htpsim.results.delays import (
    Key,
    blame_matrix,
    delay_of,
    named_token,
    parts_of,
    slowest_tokens,
    together,
)
from htpsim.results.occupants import Occupants, shared_out
from htpsim.sim import simulate
from htpsim.spec import Arrivals, Context, Device, Graph, Guard, Instance, Model, Run, Scenario, constant
from htpsim.testing import scenarios
from tests.results.strategies import logs

stretches = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 30), st.integers(0, 30)), max_size=12)


@given(stretches, st.integers(0, 30), st.integers(0, 30))
def test_the_holders_of_a_place_are_those_that_a_look_at_every_instant_finds(held, start, end):
    found = {t: s.holders for s in Occupants(held).between(start, end) for t in range(s.start_ns, s.end_ns)}
    assert found == {t: tuple(sorted({h for h, a, b in held if a <= t < b})) for t in range(start, end)}


@given(st.integers(0, 10**12), st.lists(st.integers(0, 99), min_size=1, max_size=9, unique=True))
def test_equal_parts_sum_to_the_whole(amount, among):
    parts = dict(shared_out(amount, tuple(among)))
    assert sum(parts.values()) == amount
    assert max(parts.values()) - min(parts.values()) <= 1


def assert_exact(log: RunLog) -> Blame:
    """Every graphExecute that returned, every token and every first token: the parts are the whole."""
    result = RunResult(log)
    blame, x = result.blame, result.tables.executes
    rows = np.flatnonzero(x["returned_ns"] != NEVER)
    table = blame.table(rows)
    added = np.zeros(len(x), dtype=np.int64)
    np.add.at(added, table["row"], table["delay_ns"])
    assert (added[rows] == (x["returned_ns"] - x["called_ns"])[rows]).all()
    assert (table["delay_ns"] >= 0).all()
    for kinds, parts in (((GUARD, KINDS.index("guard-policy")), ["guard_wait_ns"]),
                         ((DEVICE, KINDS.index("core-idle"), EVICTED), ["device_wait_ns"]),
                         ((EVICTION,), ["evict_ns", "restore_ns"])):  # fmt: skip
        added[:] = 0
        chosen = np.isin(table["kind"], kinds)
        np.add.at(added, table["row"][chosen], table["delay_ns"][chosen])
        assert (added[rows] == sum(x[part] for part in parts)[rows]).all(), parts
    tokens = result.tables.tokens
    for client, request, token in zip(tokens.client, tokens.request, tokens.token, strict=True):
        delay = delay_of(blame, Key(int(client), int(request), int(token)))
        assert sum(part.delay_ns for part in delay.parts) == delay.total_ns
        assert all(part.delay_ns > 0 for part in delay.parts)
    return blame


@settings(max_examples=30)
@given(logs())
def test_the_causes_of_a_log_from_elsewhere_sum_to_its_delays(log: RunLog) -> None:
    assert_exact(log)


@given(scenarios())
def test_the_causes_of_a_simulated_delay_sum_to_it(scenario: Scenario) -> None:
    assert_exact(simulate(scenario))


@pytest.mark.verify
@settings(deadline=None)
@given(scenarios())
def test_the_causes_of_many_simulated_delays_sum_to_them(scenario: Scenario) -> None:
    assert_exact(simulate(scenario))


@given(scenarios())
def test_a_culprit_on_the_core_was_on_the_core(scenario: Scenario) -> None:
    log = simulate(scenario)
    blame = RunResult(log).blame
    x = blame.tables.executes
    rows = np.flatnonzero(x["returned_ns"] != NEVER)
    for cause in (cause for row in rows.tolist() for cause in blame.causes(row)):
        if cause.kind not in (DEVICE, EVICTED) or cause.culprit == NOBODY:
            continue
        started, finished = (int(x[name][cause.culprit]) for name in ("started_ns", "finished_ns"))
        finished = log.end_ns if finished == NEVER else finished
        assert started < x["finished_ns"][cause.row]
        assert finished > x["submitted_ns"][cause.row]
        assert cause.culprit != cause.row


def pair(vit_ms: int = 100, **guard: object) -> Scenario:
    """Two instances on one core: one sends images only, the other only decodes, 10 ms a token."""
    context = (Context(name="c", weights_bytes=1),)
    vit = Model(name="vit", role="vit", contexts=context,
                graphs=(Graph(name="g", context="c", service=constant(vit_ms * 10**6)),))  # fmt: skip
    llm = Model(name="llm", role="llm", contexts=context, context_tokens=4096, ar=8,
                prefill=(Graph(name="p", context="c", service=constant(20 * 10**6)),),
                decode=(Graph(name="d", context="c", service=constant(10 * 10**6)),))  # fmt: skip
    once = Arrivals(kind="replay", times_ns=(0,))
    seer = Instance(name="seer", vit=vit, vit_path="qnn", images=constant(1),
                    arrivals=Arrivals(kind="replay", times_ns=(25 * 10**6,)))  # fmt: skip
    talker = Instance(name="talker", llm=llm, text_tokens=constant(8), output_tokens=constant(5), arrivals=once,
                      images=constant(0))  # fmt: skip
    return Scenario(
        device=Device(cores=1, load_bandwidth=10**15),
        guard=Guard(**guard),
        run=Run(duration_ns=10**9, warmup_ns=0, replications=1),
        instances=(seer, talker),
    )


def test_a_token_behind_an_image_names_the_image() -> None:
    blame = RunResult(simulate(pair())).blame
    key = slowest_tokens(blame, "itl", 0.01)[0]
    delay = delay_of(blame, key)
    vit, own = delay.parts[:2]
    assert (vit.kind, vit.client, vit.stage, vit.path, vit.through) == ("device", "seer", "vit", "qnn", "")
    assert (own.kind, own.client, own.stage) == ("own", "talker", "decode")
    assert vit.delay_ns + own.delay_ns == delay.total_ns
    assert own.delay_ns >= 10**7
    # the image came 25 ms after the request; the graphExecute of that moment held the core up to 5 ms longer
    assert 95 * 10**6 <= vit.delay_ns <= 100 * 10**6


def test_waiting_for_a_holder_that_waits_counts_against_the_one_on_the_core() -> None:
    """The inversion: a decode holds the one slot, stuck behind an unguarded image; a second talker waits for it."""
    base = pair(slots=1)
    seer, talker = base.instances
    scenario = replace(base, instances=(seer, talker, replace(talker, name="second")))
    blame = RunResult(simulate(scenario)).blame
    x = blame.tables.executes
    rows = np.flatnonzero((x["client"] == 2) & (x["stage"] == STAGE_DECODE))
    through = [part for part in parts_of(blame, rows) if part.through]
    assert {part.kind for part in through} == {"guard"}
    assert max(part.delay_ns for part in through if part.client == "seer") > 50 * 10**6


def test_the_matrix_is_the_sum_of_all_causes_but_own_ones() -> None:
    blame = RunResult(simulate(pair())).blame
    matrix = blame_matrix(blame)
    table = blame.table(np.flatnonzero(blame.tables.returned))
    assert matrix.to_numpy().sum() == table["delay_ns"][table["kind"] != OWN].sum()
    assert matrix.loc["talker", "seer"] > 0
    assert matrix.loc["talker", "talker"] == 0
    assert list(matrix.columns) == ["seer", "talker", "nobody"]


def test_running_beside_another_counts_as_stretch_of_that_one() -> None:
    base = pair()
    seer, talker = base.instances
    heavy = replace(seer.vit, graphs=(replace(seer.vit.graphs[0], dram_bytes=10**9),))
    hungry = replace(talker.llm, decode=(replace(talker.llm.decode[0], dram_bytes=10**8),))
    scenario = replace(
        base,
        device=replace(base.device, cores=2, dram_bandwidth=12 * 10**9),
        instances=(replace(seer, vit=heavy), replace(talker, llm=hungry)),
    )
    blame = assert_exact(simulate(scenario))
    x = blame.tables.executes
    table = blame.table(np.flatnonzero(x["stage"] == STAGE_DECODE))
    slowed = table["kind"] == STRETCH
    assert slowed.any()
    assert set(x["stage"][table["culprit"][slowed]].tolist()) == {STAGE_VIT}


def test_adding_up_keeps_the_total() -> None:
    blame = RunResult(simulate(pair())).blame
    delays = [delay_of(blame, key) for key in slowest_tokens(blame, "itl", 1.0)]
    assert sum(part.delay_ns for part in together(delays)) == sum(delay.total_ns for delay in delays)
    assert [delay.total_ns for delay in delays] == sorted((delay.total_ns for delay in delays), reverse=True)


def test_what_is_not_there_is_refused_by_name() -> None:
    blame = RunResult(simulate(pair())).blame
    with pytest.raises(HtpsimError, match="talker: got token 5 of request 0"):
        delay_of(blame, named_token(blame, "talker", 0, 5))
    with pytest.raises(HtpsimError, match="did you mean 'talker'"):
        named_token(blame, "talke", 0, 1)
    with pytest.raises(HtpsimError, match="did you mean 'ttft'"):
        slowest_tokens(blame, "tft")
    with pytest.raises(HtpsimError, match="no gap ended"):
        slowest_tokens(blame, "itl", clients=["seer"])
