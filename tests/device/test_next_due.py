"""Whose timer is due first: by instant, then core, then number, in whatever order the holders are listed."""

from __future__ import annotations

from itertools import permutations
from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from htpsim.device.records import NEVER, NOBODY
from htpsim.device.rules import next_due

timers = st.lists(st.tuples(st.sampled_from([NEVER, 0, 1, 2]), st.integers(0, 2)), max_size=5)


@given(timers)
def test_the_least_by_instant_core_and_number_is_due_and_a_tie_is_noted(timers: list[tuple[int, int]]) -> None:
    jobs = [SimpleNamespace(timer_ns=at, core=core, execute=n) for n, (at, core) in enumerate(timers)]
    due = [(job.timer_ns, job.core, job.execute) for job in jobs if job.timer_ns != NEVER]
    first = min(due, default=(0, 0, NOBODY))

    for holders in list(permutations(range(len(jobs))))[:24]:
        dev = SimpleNamespace(holders=len(jobs), tied=7)

        assert next_due(dev, jobs, holders) == first[2]
        assert dev.tied == int(sum(at == first[0] for at, _, _ in due) > 1)
