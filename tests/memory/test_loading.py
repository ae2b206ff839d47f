from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htpsim.errors import IllegalTransition, InvariantError
from htpsim.memory import Loading
from htpsim.memory.loading import State

GB = 10**9

Load = tuple[int, int, int]
"""start_ns, load_id, bytes"""


def run(bandwidth: int | None, loads: Iterable[Load]) -> dict[int, int]:
    """Return the end of each load, driven as an engine does: starts and ends in order of time."""
    loading = Loading(bandwidth)
    ends: dict[int, int] = {}
    waiting = sorted(loads, key=lambda load: load[0])
    now_ns = 0
    while True:
        next_end_ns = loading.next_end_ns(now_ns)
        instants = [at for at in (next_end_ns, waiting[0][0] if waiting else None) if at is not None]
        if not instants:
            return ends
        now_ns = min(instants)
        if waiting and waiting[0][0] == now_ns:
            _, load_id, count_bytes = waiting.pop(0)
            loading.start(load_id, count_bytes, now_ns)
        else:
            ends |= dict.fromkeys(loading.finish(now_ns), now_ns)
        loading.validate()


def by_the_nanosecond(bandwidth: int, loads: list[Load]) -> dict[int, int]:
    """Return the end of each load by stepping through every nanosecond; the slow reference."""
    left: dict[int, int] = {}
    ends: dict[int, int] = {}
    for now_ns in range(100_000):
        left |= {load_id: count * GB for start_ns, load_id, count in loads if start_ns == now_ns}
        for load_id in [load_id for load_id, rest in left.items() if rest <= 0]:
            ends[load_id] = now_ns
            del left[load_id]
        if len(ends) == len(loads):
            return ends
        for load_id in left:
            left[load_id] -= max(1, bandwidth // len(left))
    raise AssertionError("loads do not end")


def test_one_load_takes_its_bytes_over_the_bandwidth_rounded_up() -> None:
    assert run(3 * GB, [(0, 0, 10 * GB)]) == {0: 3_333_333_334}


def test_two_loads_share_and_the_longer_gets_all_once_alone() -> None:
    assert run(2 * GB, [(0, 0, 1 * GB), (0, 1, 2 * GB)]) == {0: 1_000_000_000, 1: 1_500_000_000}


def test_a_later_load_slows_the_one_in_flight() -> None:
    assert run(2 * GB, [(0, 0, 2 * GB), (500_000_000, 1, 2 * GB)]) == {0: 1_500_000_000, 1: 2_000_000_000}


@pytest.mark.parametrize(("bandwidth", "count_bytes"), [(None, 5 * GB), (GB, 0)])
def test_without_bandwidth_or_bytes_a_load_ends_in_the_instant_it_starts(
    bandwidth: int | None, count_bytes: int
) -> None:
    loading = Loading(bandwidth)
    loading.start(4, count_bytes, 7)

    assert loading.next_end_ns(7) == 7
    assert loading.state(4) is State.READ
    assert loading.finish(7) == [4]
    assert loading.state(4) is State.ABSENT
    assert loading.next_end_ns(7) is None


def test_loads_that_end_together_end_in_order_of_id() -> None:
    loading = Loading(3 * GB)
    for load_id in (2, 0, 1):
        loading.start(load_id, GB, 0)

    assert loading.next_end_ns(0) == 1_000_000_000
    assert loading.finish(999_999_999) == []
    assert loading.finish(1_000_000_000) == [0, 1, 2]


def test_an_end_not_yet_collected_takes_no_bandwidth_from_a_start_in_the_same_instant() -> None:
    loading = Loading(2 * GB)
    loading.start(0, GB, 0)
    loading.start(1, 3 * GB, 500_000_000)
    loading.next_end_ns(600_000_000)

    assert loading.finish(600_000_000) == [0]
    assert loading.next_end_ns(600_000_000) == 2_000_000_000


def test_more_loads_than_bytes_a_second_still_progress() -> None:
    ends = run(2, [(0, load_id, 1) for load_id in range(5)])

    assert set(ends.values()) == {GB}


def test_an_id_in_flight_cannot_start_again() -> None:
    loading = Loading(GB)
    loading.start(1, 5, 0)

    with pytest.raises(IllegalTransition, match="load 1: got 'start' in state 'reading'"):
        loading.start(1, 500, 0)

    assert loading.next_end_ns(0) == 5


def test_time_does_not_go_back() -> None:
    loading = Loading(GB)
    loading.start(1, 5, 10)

    with pytest.raises(InvariantError, match="9 ns after 10 ns"):
        loading.next_end_ns(9)


def test_validate_finds_a_load_that_read_too_much() -> None:
    loading = Loading(GB)
    loading.start(1, 5, 0)
    loading._left[1] = -1

    with pytest.raises(InvariantError, match="load 1"):
        loading.validate()


load_lists = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 40)), min_size=1, max_size=6).map(
    lambda drawn: [(start_ns, load_id, count) for load_id, (start_ns, count) in enumerate(drawn)]
)


@given(st.integers(GB // 2, 4 * GB), load_lists)
def test_ends_equal_those_of_stepping_through_every_nanosecond(bandwidth: int, loads: list[Load]) -> None:
    assert run(bandwidth, loads) == by_the_nanosecond(bandwidth, loads)


@given(st.integers(1, 4 * GB), load_lists, st.randoms(use_true_random=False))
def test_ends_do_not_depend_on_the_order_of_insertion(bandwidth: int, loads: list[Load], random: object) -> None:
    shuffled = list(loads)
    random.shuffle(shuffled)  # type: ignore[attr-defined]

    assert run(bandwidth, shuffled) == run(bandwidth, loads)


@given(st.integers(1, 4 * GB), load_lists, st.lists(st.integers(0, 200), max_size=20))
def test_asking_changes_nothing(bandwidth: int, loads: list[Load], asked_at: list[int]) -> None:
    quiet, asked = Loading(bandwidth), Loading(bandwidth)
    for start_ns, load_id, count in sorted(loads):
        quiet.start(load_id, count, start_ns)
    for now_ns, load in sorted(
        [(load[0], load) for load in loads] + [(at, None) for at in asked_at], key=lambda x: x[0]
    ):
        if load is None:
            asked.next_end_ns(now_ns)
        else:
            asked.start(load[1], load[2], now_ns)

    assert quiet.next_end_ns(300) == asked.next_end_ns(300)
    assert quiet.finish(400) == asked.finish(400)


@given(st.integers(1_000, 4 * GB), st.lists(st.integers(1, 10**6), min_size=1, max_size=8))
def test_loads_that_start_together_waste_no_bandwidth_but_that_of_rounding(bandwidth: int, sizes: list[int]) -> None:
    ends = run(bandwidth, [(0, load_id, size) for load_id, size in enumerate(sizes)])

    count = len(sizes)
    assert -(-sum(sizes) * GB // bandwidth) <= max(ends.values())
    assert max(ends.values()) <= -(-sum(sizes) * GB // (bandwidth - count)) + count
    assert all(ends[load_id] >= -(-size * GB // bandwidth) for load_id, size in enumerate(sizes))
