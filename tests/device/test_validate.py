"""Records of a device that do not agree are found, and the complaint says what does not agree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from htpsim.device.records import NEVER, NOBODY, WAITING
from htpsim.device.validate import validate
from htpsim.errors import InvariantError
from tests.device.test_contexts import Bench


def running() -> Bench:
    """Job 0 runs, job 1 is queued behind it."""
    bench = Bench(2)
    bench.submit(0)
    bench.start()
    bench.submit(1)
    return bench


def check(bench: Bench) -> None:
    validate(bench.dev, bench.cores, bench.contexts, bench.jobs, bench.clients, bench.holders)


def put(name: str, index: int = 0, **fields: int) -> Callable[[Bench], None]:
    """Return the damage of other values in a record."""

    def damage(bench: Bench) -> None:
        found: Any = getattr(bench, name)
        for field, value in fields.items():
            setattr(found if name == "dev" else found[index], field, value)

    return damage


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (put("jobs", client_at=1), "device: heads of contexts are [0], clients are [0]"),
        (put("contexts", head=1), "device: heads of contexts are [1], clients are [0]"),
        (put("dev", clients=0), "device: heads of contexts are [0], clients are []"),
        (put("jobs", holder_at=1), "device: [0] hold cores, holders are [0]"),
        (put("dev", holders=0), "device: [0] hold cores, holders are []"),
        (put("jobs", state=WAITING), "device: [] hold cores, holders are [0]"),
        (put("cores", holder=NOBODY), "core 0: names -1 as its holder, [0] hold it"),
        (put("jobs", cores=0), "core 0: names 0 as its holder, [] hold it"),
        (put("cores", held=2), "core 0: counts 2 holders, 1 hold it"),
        (put("cores", others=1), "core 0: counts 1 clients that are not QNN graphs, there are 0"),
        (put("jobs", left=-1), "graphExecute 0: -1 of 1073741824 work left"),
        (put("jobs", left=(1 << 30) + 1), "graphExecute 0: 1073741825 of 1073741824 work left"),
        (put("jobs", timer_ns=NEVER), "graphExecute 0: running with timer -1"),
        (put("jobs", yield_due=1), "graphExecute 0: running with timer 1024"),
        (put("jobs", yield_due=1, timer_ns=NEVER), "graphExecute 0: due to yield, and nobody asked"),
        (put("jobs", 1, state=WAITING), "graphExecute 1 is behind its context's head, not queued"),
    ],
)
def test_damage_is_found_and_named(damage: Callable[[Bench], None], complaint: str) -> None:
    bench = running()
    check(bench)
    damage(bench)

    with pytest.raises(InvariantError) as found:
        check(bench)

    assert str(found.value) == complaint


@pytest.mark.parametrize("left", [0, 1 << 30])
def test_all_and_nothing_may_be_left(left: int) -> None:
    bench = running()
    bench.jobs[0].left = left
    check(bench)
