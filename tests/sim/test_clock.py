"""The clock goes forward, and what it is asked to let happen in the past is an error."""

from __future__ import annotations

import pytest

from htpsim.errors import InvariantError
from htpsim.sim.clock import HOST, Clock, Instant, place


def test_a_negative_delay_is_refused() -> None:
    clock = Clock()
    happened: list[int] = []
    clock.at(5, place(HOST, 0), lambda _: happened.append(clock.now))
    clock.at(0, place(HOST, 0), lambda _: happened.append(clock.now))
    clock.run(until=10)

    asked = (
        lambda: clock.at(-1, place(HOST, 0), lambda _: None),
        lambda: clock.pause(-1, place(HOST, 0)),
        lambda: clock.schedule(Instant(clock), delay=-1),
    )
    for ask in asked:
        with pytest.raises(InvariantError, match=r"^clock: got a delay of -1 ns at 10 ns, expected at least 0$"):
            ask()
    assert happened == [0, 5]
