"""Faults staged on real threads and in the reference engine have the same outcome."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from htpsim.errors import InvariantError
from htpsim.live import Fault
from htpsim.results.columns import REQUEST_STATES
from htpsim.results.log import RunLog
from htpsim.spec import Registry, Scenario
from tests.live.bench import all_answer, checked, play, play_until, requests, scene, vlm
from tests.live.staged import simulate_staged

SHARED = Registry(llm=True, vit=True)


@dataclass(frozen=True)
class Outcome:
    """What came of a fault, in words that both sides have."""

    failed: tuple[tuple[str, str], ...]
    first: tuple[str, int, int]
    """state of the first request of vlm0, tokens it yielded, tokens it counts as asked for"""
    served: bool
    """the others got on to the end"""
    users: tuple[tuple[str, int], ...]
    """of each kind of copy that has any"""


def outcome(log: RunLog) -> Outcome:
    first = next(iter(requests(log, "vlm0")), None)
    told = ("none", 0, 0) if first is None else (REQUEST_STATES[first.state], first.tokens, first.output_tokens)
    users: dict[str, int] = {}
    for copy in log.copies:
        users[copy.model] = users.get(copy.model, 0) + copy.users
    left = tuple(sorted((k, n) for k, n in users.items() if n))
    return Outcome(tuple(sorted(log.failed.items())), told, all_answer(log), left)


CASES: dict[str, tuple[Fault, ...]] = {
    "a ViT's graph fails": (Fault(kind="graph", instance="vlm0", stage="vit"),),
    "a prefill's graph fails": (Fault(kind="graph", instance="vlm0", stage="prefill"),),
    "a decode graph fails in mid-answer": (Fault(kind="graph", instance="vlm0", step=3),),
    "a ViT's session cannot be loaded": (Fault(kind="load", instance="vlm0", model="vit"),),
    "no session of the shared LLM can be loaded": tuple(
        Fault(kind="load", instance=name, model="llm") for name in ("vlm0", "vlm1")
    ),
    "a thread dies holding the guard, which its scope gives back": (Fault(kind="dies", instance="vlm0", step=2),),
    "a request is cancelled in mid-decode": (Fault(kind="cancel", instance="vlm0", step=1),),
    "an instance is destroyed while its models are loaded": (Fault(kind="destroy", instance="vlm0"),),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_fault_ends_alike_on_real_threads_and_in_the_engine(case: str) -> None:
    faults = CASES[case]
    scenario = scene(vlm("vlm0"), vlm("vlm1"), duration_ms=400)

    live = play_until(all_answer, scenario, *faults).log
    simulated = simulate_staged(scenario, faults)

    shared = "shared LLM" in case
    hide = re.compile(r"of 'vlm\d'") if shared else re.compile(r"(?!)")  # whoever came first has tried to load
    told = [{name: hide.sub("", text) for name, text in log.failed.items()} for log in (live, simulated)]
    assert told[0] == told[1]
    live.failed, simulated.failed = told
    assert outcome(live) == outcome(simulated)
    assert checked(live).ok, checked(live).violations[:3]


@pytest.mark.slow
def test_an_instance_destroyed_while_another_loads_the_same_key_leaves_the_copy_to_it() -> None:
    scenario = scene(vlm("vlm0"), vlm("vlm1"), vlm("vlm2"), duration_ms=300, registry=SHARED)
    faults = [Fault(kind="destroy", instance="vlm1")]

    live, simulated = play_until(all_answer, scenario, *faults).log, simulate_staged(scenario, faults)

    assert outcome(live) == outcome(simulated)
    assert outcome(live).users == (("llm", 2), ("vit", 2))
    assert len(live.copies) == len(simulated.copies) == 2


def test_a_slot_that_nobody_gives_back_is_told_as_a_deadlock_with_who_holds_what() -> None:
    fault = Fault(kind="dies-holding", instance="vlm0", step=1)

    def told(run: Callable[[Scenario], object]) -> str:
        with pytest.raises(InvariantError) as raised:
            run(scene(duration_ms=5_000))
        return str(raised.value)

    live = told(lambda scenario: play(scenario, fault))
    simulated = told(lambda scenario: simulate_staged(scenario, [fault]))

    for text in (live, simulated):
        assert "deadlock at" in text
        assert "nothing is left to happen" in text
        assert (
            "guard of process 0 (policy sfq): 1 of 1 slots held, process 0/vlm0 holds 1, process 0/vlm1 waits" in text
        )
    assert "vlm0 has ended: its thread died holding the guard" in live
