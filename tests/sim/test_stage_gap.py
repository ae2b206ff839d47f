"""Host time between the ViT and the prompt: without any a thread calls again before its slot goes to another."""

from __future__ import annotations

from htpsim.results.columns import STAGE_PREFILL, STAGE_VIT, Execute
from htpsim.sim import simulate
from htpsim.spec import Guard, Run, Scenario, constant
from tests.sim.build import PLAIN, instance, llm, once, vit


def scene(gap_ns: int, chunks: int = 1) -> Scenario:
    """Make two instances, of which the first goes before the second, each with a ViT, a prompt and two tokens."""
    given = {
        "vit": vit(10), "llm": llm((5,), (2,), ar=8), "vit_path": "genie", "text_tokens": constant(8 * chunks),
        "output_tokens": constant(2), "host_gap_stage_ns": gap_ns, "arrivals": once(0),
    }  # fmt: skip
    return Scenario(
        device=PLAIN,
        guard=Guard(policy="priority", slots=1),
        run=Run(duration_ns=1_000),
        instances=(instance("a", guard_priority=1, **given), instance("b", **given)),
    )


def calls(gap_ns: int, chunks: int = 1) -> list[tuple[int, int, int]]:
    """Return (client, stage, start) of every graphExecute, by start."""
    rows = [Execute(*row) for row in simulate(scene(gap_ns, chunks), check=True).executes]
    return [(row.client, row.stage, row.started_ns) for row in sorted(rows, key=lambda row: row.started_ns)]


def test_without_it_the_first_keeps_its_place_and_with_it_the_other_comes_between() -> None:
    kept, lost = calls(0), calls(1)

    assert kept[:3] == [(0, STAGE_VIT, 0), (0, STAGE_PREFILL, 10), (0, 2, 15)]
    assert lost[:3] == [(0, STAGE_VIT, 0), (1, STAGE_VIT, 10), (0, STAGE_PREFILL, 20)]


def test_it_comes_after_each_chunk_but_the_last() -> None:
    alone = scene(3, chunks=2)
    alone = Scenario(device=alone.device, guard=alone.guard, run=alone.run, instances=alone.instances[:1])
    rows = [Execute(*row) for row in simulate(alone, check=True).executes]

    assert [row.started_ns for row in sorted(rows, key=lambda row: row.called_ns)] == [0, 13, 21, 26]
