"""A pass over 0.635 GB of weights at 15.8 GB/s takes at least 40.19 ms."""

from __future__ import annotations

import pytest

from htpsim.results.run import RunResult
from htpsim.sim import simulate
from htpsim.spec import Arrivals, Context, Device, Graph, Model, OtherClient, Run, Scenario, constant

BYTES = 635_039_744
"""DDR bytes read a pass, from a public log of the context binary generator (hotschmoe/specula)."""
BANDWIDTH = 15_800_000_000
"""What a DSP drew from DRAM, in bytes a second (pytorch/executorch issue 18806)."""
LEAST_NS = 40_192_389
"""635,039,744 / 15.8e9 s, rounded up."""


def passes_ns(device: Device, alone_ns: int) -> list[int]:
    """Return how long each pass takes when nobody else is there."""
    graph = Graph(name="decode", context="llm", service=constant(alone_ns), dram_bytes=BYTES)
    model = Model(name="llm", role="other", contexts=(Context(name="llm"),), graphs=(graph,))
    client = OtherClient(name="loop", model=model, arrivals=Arrivals(think=constant(0)))
    scenario = Scenario(device=device, run=Run(duration_ns=1_000_000_000), clients=(client,))
    samples: list[int] = RunResult(simulate(scenario, check=True)).samples("job")["value_ns"].tolist()
    return samples


@pytest.mark.parametrize("limit", ["dram_bandwidth", "core_dram_bandwidth"])
@pytest.mark.parametrize("alone_ms", [1, 20, 40])
def test_a_pass_takes_no_less_than_its_bytes_need(limit: str, alone_ms: int) -> None:
    """Predicted. 0.635 GB / 15.8 GB/s = 40.19 ms, however fast it computes, and whichever of the two is narrow."""
    taken = passes_ns(Device(dram_bandwidth=BANDWIDTH) if limit == "dram_bandwidth" else both(), alone_ms * 1_000_000)

    assert len(taken) == 24
    assert min(taken) >= LEAST_NS
    assert max(taken) == pytest.approx(LEAST_NS, rel=5e-5)  # a share of the speed is a whole number of 2^-20


def both() -> Device:
    return Device(dram_bandwidth=10 * BANDWIDTH, core_dram_bandwidth=BANDWIDTH)


def test_a_pass_that_computes_longer_than_that_is_not_slowed() -> None:
    """Predicted. At 50 ms it asks for less than there is."""
    assert set(passes_ns(Device(dram_bandwidth=BANDWIDTH), 50_000_000)) == {50_000_000}
