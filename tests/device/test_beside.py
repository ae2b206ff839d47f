"""Who may run beside whom on a core, one client after the other."""

from __future__ import annotations

from itertools import permutations
from types import SimpleNamespace
from typing import Any

from htpsim.device.admission import clear_taken, may_join, next_to_start, take
from htpsim.device.records import NOBODY, RUNNING, WAITING


def device(**given: int) -> Any:
    dev = SimpleNamespace(**{"coexists": 1, "parallel": 1, "vtcm_bytes": 8, "hvx": 4, "hmx": 1, **given})
    clear_taken(dev)
    return dev


def graph(**given: int) -> Any:
    return SimpleNamespace(**{"pd": 0, "qnn": 1, "level": 5, "vtcm_bytes": 2, "hvx": 4, "hmx": 1, **given})


def joined(dev: Any, *clients: Any) -> list[bool]:
    """Take those in that may join, in order."""
    found = []
    for client in clients:
        found.append(may_join(dev, client))
        if found[-1]:
            take(dev, client)
    return found


def test_parallel_graphs_of_one_priority_join_until_vtcm_is_full() -> None:
    assert joined(device(), *[graph()] * 5) == [True] * 4 + [False]
    assert joined(device(), graph(vtcm_bytes=8), graph(vtcm_bytes=0), graph(vtcm_bytes=1)) == [True, True, False]
    assert joined(device(parallel=0), graph(), graph()) == [True, False]


def test_another_priority_or_protection_domain_stays_out() -> None:
    assert joined(device(), graph(), graph(level=6), graph()) == [True, False, True]
    assert joined(device(), graph(), graph(pd=1), graph()) == [True, False, True]
    assert joined(device(coexists=0), graph(), graph()) == [True, False]


def test_beside_holders_of_two_priorities_no_graph_has_the_same() -> None:
    for levels in permutations((5, 5, 6)):
        dev = device()
        for level in levels:
            take(dev, graph(level=level))
        assert dev.taken_level == NOBODY
        assert not any(may_join(dev, graph(level=level, vtcm_bytes=0)) for level in (5, 6))


def test_others_share_hvx_and_hmx_with_the_greatest_graph() -> None:
    small, great = graph(hvx=1, hmx=0), graph(hvx=3, hmx=1)
    other = graph(qnn=0, hvx=1, hmx=0, vtcm_bytes=1)

    assert joined(device(), small, great, other, other) == [True, True, True, False]
    assert joined(device(), great, small, graph(qnn=0, hvx=1, hmx=1), other) == [True, True, False, True]
    assert joined(device(), other, graph(qnn=0, hvx=2, hmx=0), graph(qnn=0, hvx=2, hmx=0)) == [True, True, False]
    assert joined(device(), other, great, small, other) == [True, True, True, False]


def test_the_next_to_start_is_an_admitted_one_that_waits_for_these_cores_and_fits() -> None:
    def client(number: int, cores: int, admitted: int, **given: int) -> Any:
        about = {"cores": cores, "admitted": admitted, "execute": number, "state": WAITING, "arrival_ns": 0, **given}
        return graph(**about)

    jobs = [
        client(0, 0b10, 0b10),
        client(1, 0b01, 0b00),
        client(2, 0b01, 0b01, state=RUNNING),
        client(3, 0b01, 0b01, vtcm_bytes=7),
        client(4, 0b01, 0b01, arrival_ns=1),
        client(5, 0b01, 0b01),
        client(6, 0b11, 0b01),
    ]
    dev = device(clients=len(jobs), holders=1, cores=2)
    cores = [SimpleNamespace(held=1), SimpleNamespace(held=0)]

    found = [next_to_start(dev, cores, jobs, list(range(len(jobs))), [2], mask) for mask in (0b01, 0b10, 0b11)]

    assert found == [5, 0, 0]
