"""What must end in a clear error: a policy that misbehaves, a run that can go no further. No hang, no silence."""

from __future__ import annotations

import pytest

from htpsim.errors import IllegalTransition, InvariantError
from htpsim.results.columns import DONE
from htpsim.sim import Simulation
from htpsim.sim.uses import Use
from htpsim.spec import Guard, Run, Scenario
from tests.sim.build import PLAIN, closed, instance, llm, once, other, requests, run

LOOPS = (
    other("a", 10, path="genie", arrivals=closed(0)),
    other("b", 10, path="genie", arrivals=closed(0)),
)
LEGACY = other("legacy", 10, arrivals=closed(3))


def policy(name: str) -> Guard:
    return Guard(policy=f"tests.sim.mischief:{name}", slots=1)


@pytest.mark.parametrize("clients", [LOOPS, (*LOOPS, LEGACY)], ids=["alone", "beside one that goes on"])
@pytest.mark.parametrize("name", ["Never", "NeverWithTimer", "Once"])
def test_a_policy_that_grants_nobody_is_a_deadlock(name: str, clients: tuple[object, ...]) -> None:
    with pytest.raises(InvariantError, match=r"^deadlock at") as caught:
        run(10_000, guard=policy(name), clients=clients)

    told = str(caught.value)
    assert "process 0/a waits" in told
    assert "0 of 1 slots held" in told
    assert "b request 0 graphExecute" in told or "b request 1 graphExecute" in told
    assert "waits for the guard since" in told


def test_who_holds_what_is_told() -> None:
    """A guard that forgets a release: nothing is left to happen."""
    simulation = Simulation(
        Scenario(guard=Guard(slots=1), device=PLAIN, run=Run(duration_ns=500), clients=LOOPS), check=True
    )
    lost = simulation.runtime.guards[0]
    lost.lanes[0].release = lambda *given: None  # type: ignore[method-assign]

    with pytest.raises(InvariantError, match="nothing is left to happen") as caught:
        simulation.run()

    assert "1 of 1 slots held, process 0/a holds 1, process 0/a waits, process 0/b waits" in str(caught.value)


def test_what_is_not_a_deadlock() -> None:
    """All work done; a wait that is not over yet; a policy that waits for a partner, or for its next period."""
    assert requests(run(10_000, clients=(other("a", 10, arrives=(0,), path="genie"),)))[0].state == DONE
    run(
        15,
        guard=policy("Batch"),
        clients=tuple(other(n, 10, arrives=(at,), path="genie") for n, at in (("a", 0), ("b", 99))),
    )
    run(1_000, guard=policy("Batch"), clients=LOOPS)
    quota = Guard(policy="quota", slots=1, params=(("period_ns", 10), ("idle_over_budget", 1)))
    run(2_000, guard=quota, clients=(other("a", 900, path="genie", arrivals=closed(0)), LEGACY))


def test_a_loop_that_waits_for_a_partner_in_vain_is_a_deadlock() -> None:
    with pytest.raises(InvariantError, match="nothing is left to happen"):
        run(1_000, guard=policy("Batch"), clients=LOOPS[:1])


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("Stranger", "policy stranger chose an account with nobody waiting at 0 ns"),
        ("Raises", "policy raises: charge raised ZeroDivisionError at 10 ns"),
        ("Stuck", "policy stuck: timer returned 0 at 0 ns"),
        ("Thief", "guard .thief.*holders|accounts hold 0 slots, the lane counts 1"),
    ],
)
def test_a_policy_that_misbehaves_is_named(name: str, what: str) -> None:
    with pytest.raises(InvariantError, match=what):
        run(100, guard=policy(name), clients=LOOPS)


def test_an_error_inside_a_thread_comes_out_as_what_it_was() -> None:
    """SimPy builds exceptions anew from their arguments; ours survive that."""
    simulation = Simulation(Scenario(clients=LOOPS, run=Run(duration_ns=100)), check=True)
    simulation.runtime.begins = _refuse

    with pytest.raises(IllegalTransition, match=r"^no such thing$"):
        simulation.run()


def _refuse(use: Use) -> None:
    raise IllegalTransition("no such thing")


def test_an_interrupted_run_can_be_watched() -> None:
    """Progress is called with growing shares, the last of them 1, and does not change the run."""
    told: list[float] = []
    scenario = Scenario(instances=(instance("a", llm=llm((3,), (2,)), arrivals=once(0)),), run=Run(duration_ns=500))
    watched = Simulation(scenario).run(told.append)

    assert told == sorted(told)
    assert (len(told), told[-1]) == (100, 1.0)
    assert watched.executes == Simulation(scenario).run().executes
